"""XML: close the tags that were opened."""

import math
import random
import re

from associative_lstm.lab.tasks.online import OnlineTask, mark


class XML(OnlineTask):
    r"""Nested tags with random names of 1 to 10 letters, at most 4 deep, to be closed by name.

    Scored are every ``<``, and in a closing tag the name and the ``>``::

        <xkw><svgquspn><oqrwxsln></oqrwxsln></svgquspn><jrcfcacaa></jrcfcacaa></xkw>
        ^    ^         ^         ^ ^^^^^^^^^^ ^^^^^^^^^^          ^ ^^^^^^^^^^^ ^^^^

    Whether a tag is opened or closed next is a coin's decision, except that the root must be opened and the
    fourth level closed. Every sequence is one root tag with all it contains.

    >>> task = XML()
    >>> text = task.sequence(random.Random(4))
    >>> print(text, task.marks(text), sep="\n")
    <cke><xutfn><cf></cf></xutfn></cke>
    ^    ^      ^   ^ ^^^^ ^^^^^^^ ^^^^
    """

    name = "xml"
    description = "nested tags, to be closed by name"
    # Of a tag's 8.5 scored symbols (two <, 5.5 letters, one >) only the name and its length are uncertain.
    chance = (math.log2(10) + 5.5 * math.log2(26)) / 8.5
    recurrent_update = False  # "W_hu is set to zero", section 5
    deepest = 4

    def sequence(self, rng: random.Random) -> str:
        tags, opened = [], [self.name_of(rng, 10)]
        tags.append(f"<{opened[0]}>")
        while opened:
            if len(opened) < self.deepest and rng.random() < 0.5:
                opened.append(self.name_of(rng, 10))
                tags.append(f"<{opened[-1]}>")
            else:
                tags.append(f"</{opened.pop()}>")
        return "".join(tags)

    def marks(self, text: str) -> str:
        return mark(_SCORED, text)


_SCORED = re.compile(r"<|(?<=</)[a-z]+>?")
