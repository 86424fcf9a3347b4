"""Words for what is printed: counted things, names that were meant, and text that no terminal takes for a command."""

import difflib
import unicodedata
from collections.abc import Iterable


def counted(number: int, one: str, many: str | None = None) -> str:
    """So many of something, in the singular where it is one.

    >>> counted(1, "copy"), counted(4, "copy"), counted(20_000, "step"), counted(2, "process")
    ('1 copy', '4 copies', '20,000 steps', '2 processes')
    """
    regular = f"{one[:-1]}ies" if one.endswith("y") else f"{one}es" if one.endswith("s") else f"{one}s"
    return f"{number:,} {one if number == 1 else many or regular}"


def nearest(name: object, known: Iterable[str]) -> str:
    """A few words that help who wrote ``name`` and meant one of ``known``."""
    near = difflib.get_close_matches(str(name), known := list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"


def printable(text: str) -> str:
    """The text with a replacement character for every one that could command a terminal.

    >>> printable("to \\x1b[31mred\\x07, and a new line:\\n").replace("\ufffd", "?")
    'to ?[31mred?, and a new line:\\n'
    """
    return "".join(c if c in "\n\t" or unicodedata.category(c)[0] != "C" else "\ufffd" for c in text)
