"""Arithmetic: add or subtract two long numbers, digit by digit."""

import random
import re

from associative_lstm.lab.tasks.online import OnlineTask, mark


class Arithmetic(OnlineTask):
    r"""A sum or difference of two numbers of 1 to 8 digits, and the result reversed, its sign last.

    The first number may be negative; there are no leading zeros, and no negative zero. Scored are the result
    and the ``]`` that ends it::

        -4-98308856=06880389-]-981+1721=047]-10+75723=31757]
                    ^^^^^^^^^^          ^^^^          ^^^^^^

    >>> task = Arithmetic()
    >>> text = task.sequence(random.Random(5))
    >>> print(text, task.marks(text), sep="\n")
    76760-9482052=2925049-]
                  ^^^^^^^^^
    """

    name = "arithmetic"
    description = "add or subtract, the result written in reverse"
    chance = 3.15  # by place in the result, how often each symbol stands there; after - comes ]: measured
    longest = 8

    def sequence(self, rng: random.Random) -> str:
        first, second = self._number(rng), self._number(rng)
        if rng.random() < 0.5:
            first = -first
        if rng.random() < 0.5:
            operator, result = "+", first + second
        else:
            operator, result = "-", first - second
        return f"{first}{operator}{second}={str(abs(result))[::-1]}{'-' * (result < 0)}]"

    def _number(self, rng: random.Random) -> int:
        digits = 1 + int(rng.random() * self.longest)
        smallest = 10 ** (digits - 1) if digits > 1 else 0
        return smallest + int(rng.random() * (10**digits - smallest))

    def marks(self, text: str) -> str:
        return mark(_SCORED, text)


_SCORED = re.compile(r"(?<==)[0-9]+-?]?")
