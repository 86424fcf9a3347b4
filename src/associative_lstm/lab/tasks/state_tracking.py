"""State tracking: what a sequence has come to, in sequences longer than any that were trained on."""

import itertools
import math
from abc import abstractmethod
from types import MappingProxyType

import numpy as np

from associative_lstm.lab.tasks.fixed import Drawn, FixedTask, letters

_SHORTEST = 3


class _Tracking(FixedTask):
    """Sequences of 3 to ``length`` steps to train on and to test, scored at every step (of sums, every number).

    Those of the split "longer" have up to ``longest`` steps, of which those beyond ``length`` are scored.
    """

    splits = ("train", "test", "longer")
    options = MappingProxyType({"length": 40, "longest": 256, "sequences": 10_000})
    every = 1
    """Steps from one that is scored to the next."""

    def __init__(self, length: int = 40, longest: int = 256, sequences: int = 10_000) -> None:
        super().__init__(sequences)
        if not _SHORTEST <= length <= longest - self.every:
            below = f"{self.every} below" if self.every > 1 else "below"
            raise ValueError(
                f"length must be at least {_SHORTEST} and {below} longest, got {length} and {longest}"
            )
        self.length, self.longest = length, longest

    @abstractmethod
    def inputs(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        """Random symbols, ``(count, T)``."""

    @abstractmethod
    def states(self, inputs: np.ndarray) -> np.ndarray:
        """What each sequence has come to after every step, ``(count, T)``."""

    def lengths(self, rng: np.random.Generator, count: int, least: int, most: int) -> np.ndarray:
        """How long each of the sequences is."""
        return rng.integers(least, most + 1, count)

    def draw(self, rng: np.random.Generator, count: int, split: str) -> Drawn:
        least, most = (self.length + 1, self.longest) if split == "longer" else (_SHORTEST, self.length)
        lengths = self.lengths(rng, count, least, most)
        inputs = self.inputs(rng, (count, most))
        place = np.arange(most)
        first = self.length if split == "longer" else 0
        scored = (place < lengths[:, None]) & (place >= first) & (place % self.every == 0)
        return Drawn(inputs, self.states(inputs), scored)


class Parity(_Tracking):
    r"""Bits; after every one, whether the number of ones so far is odd::

        inputs   1 0 1 1 0
        targets  1 1 0 1 1
        scored   ^ ^ ^ ^ ^

    >>> batch = next(Parity().stream(batch_size=1, seed=0))
    >>> int(batch.inputs.sum()) % 2 == int(batch.targets[-1])
    True
    """

    name = "parity"
    description = "whether the number of ones is odd"
    vocabulary = "01"
    input_size = output_size = 2
    chance = 1.0

    def inputs(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        return rng.integers(0, 2, shape)

    def states(self, inputs: np.ndarray) -> np.ndarray:
        return inputs.cumsum(1) % 2


class ModularArithmetic(_Tracking):
    r"""Numbers below 5 with ``+``, ``-`` and ``*`` between them; after every one, what it comes to, modulo 5.

    Products go first. All lengths are odd::

        inputs   2 + 1 - 2 * 3
        targets  2   3   1   2
        scored   ^   ^   ^   ^

    >>> task = ModularArithmetic(length=9)
    >>> batch = next(task.stream(batch_size=1, seed=0))
    >>> text = task.decode(batch.inputs[:, 0])
    >>> eval(text) % 5 == int(batch.targets[-1])
    True
    """

    name = "modular-arithmetic"
    description = "what sums and products of numbers below 5 come to, modulo 5"
    every = 2
    vocabulary = "01234+-*"
    input_size, output_size = 8, 5
    chance = math.log2(5)

    def lengths(self, rng: np.random.Generator, count: int, least: int, most: int) -> np.ndarray:
        return 1 + 2 * rng.integers(least // 2, (most - 1) // 2 + 1, count)

    def inputs(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        symbols = rng.integers(0, 5, shape)
        symbols[:, 1::2] = rng.integers(5, 8, symbols[:, 1::2].shape)
        return symbols

    def states(self, inputs: np.ndarray) -> np.ndarray:
        found = np.zeros_like(inputs)
        found[:, 0] = inputs[:, 0]
        total, product = np.zeros_like(inputs[:, 0]), inputs[:, 0]
        for t in range(2, inputs.shape[1], 2):
            operator, number = inputs[:, t - 1], inputs[:, t]
            times = operator == 7
            total = np.where(times, total, total + product) % 5
            product = np.where(times, product * number, np.where(operator == 6, -number, number)) % 5
            found[:, t] = (total + product) % 5
        return found


class SwapsOfFive(_Tracking):
    r"""Swaps of two of five things; after every one, in which of the 120 orders of the group S5 they are.

    A symbol is an order, and the inputs are the ten that swap two things. Three things, which have the six orders
    ``abc``, ``acb``, ``bac``, ``bca``, ``cab`` and ``cba``::

        inputs   bac acb bac
        targets  bac bca cba
        scored    ^   ^   ^

    >>> batch = next(SwapsOfFive().stream(batch_size=1, seed=0))
    >>> bool((batch.inputs[0] == batch.targets[0]).all())  # the first swap, from the order that is given
    True
    """

    name = "s5"
    description = "the order of five things after every swap of two"
    options = MappingProxyType({"length": 24, "longest": 96, "sequences": 10_000})
    input_size = output_size = 120
    vocabulary = letters(120)
    chance = math.log2(120)

    _ORDERS = tuple(itertools.permutations(range(5)))
    _NUMBER = MappingProxyType({order: k for k, order in enumerate(_ORDERS)})
    _SWAPS = np.array([k for k, order in enumerate(_ORDERS) if sum(a != b for a, b in enumerate(order)) == 2])

    def __init__(self, length: int = 24, longest: int = 96, sequences: int = 10_000) -> None:
        super().__init__(length, longest, sequences)
        self._after = np.zeros((120, 120), dtype=np.int64)  # what an order becomes by a swap of places
        for before, swap in itertools.product(range(120), self._SWAPS.tolist()):
            order, places = self._ORDERS[before], self._ORDERS[swap]
            self._after[before, swap] = self._NUMBER[tuple(order[place] for place in places)]

    def inputs(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        return rng.choice(self._SWAPS, shape)

    def states(self, inputs: np.ndarray) -> np.ndarray:
        found, order = np.zeros_like(inputs), np.zeros_like(inputs[:, 0])
        for t in range(inputs.shape[1]):
            order = found[:, t] = self._after[order, inputs[:, t]]
        return found
