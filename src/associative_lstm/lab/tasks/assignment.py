"""Variable assignment: key-value retrieval in a small language."""

import math
import random
import re

from associative_lstm.lab.tasks.online import OnlineTask, mark


class Assignment(OnlineTask):
    r"""One to four assignments ``s(variable,value)``, a query ``q(variable)``, and the value to be predicted.

    Variables are distinct names of 1 to 4 letters, values single letters. Scored are the value and the
    ``.``::

        s(ml,a),s(qc,n),q(ml)a.s(ksxm,n),s(u,v),s(ikl,c),s(ol,n),q(ikl)c.
                             ^^                                        ^^

    >>> task = Assignment()
    >>> text = task.sequence(random.Random(3))
    >>> print(text, task.marks(text), sep="\n")
    s(jpq,b),q(jpq)b.
                   ^^
    """

    name = "assignment"
    description = "variables are set, then one is asked for"
    chance = math.log2(26) / 2  # a letter out of 26, and a full stop that is certain
    recurrent_update = False  # "W_hu is set to zero", section 5
    most = 4

    def sequence(self, rng: random.Random) -> str:
        values: dict[str, str] = {}
        for _ in range(1 + int(rng.random() * self.most)):
            variable = self.name_of(rng, 4)
            while variable in values:
                variable = self.name_of(rng, 4)
            values[variable] = self.letter(rng)
        asked = list(values)[int(rng.random() * len(values))]
        assignments = "".join([f"s({variable},{value})," for variable, value in values.items()])
        return f"{assignments}q({asked}){values[asked]}."

    def marks(self, text: str) -> str:
        return mark(_SCORED, text)


_SCORED = re.compile(r"(?<=\))[a-z]\.?")
