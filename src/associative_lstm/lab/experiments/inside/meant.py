"""Which write an answer should be read from. It is known from the text:

of a queried variable its value, of a closing tag the same letter of the tag that was opened, of a copied character
itself, of a result's digit those of both numbers in its place.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

Kinds = Mapping[str, tuple[int, ...]]
"""Writes by what they are to an answer."""


class Answer(NamedTuple):
    """A symbol to be predicted, the writes it should be read from, and those that could be taken for them."""

    place: int
    meant: tuple[int, ...]
    others: Kinds
    group: str
    names: tuple[str, ...] = ("what was meant",)

    @property
    def kinds(self) -> Kinds:
        """All of these writes; those that were meant by their names."""
        return dict(zip(self.names, [(k,) for k in self.meant], strict=True)) | dict(self.others)


def assignment(text: str) -> Iterator[Answer]:
    """`s(ml,a),s(qc,n),q(ml)a.`: the value that was set, and not that of another variable."""
    before: list[int] = []
    for sequence in re.finditer(r"((?:s\([a-z]+,[a-z]\),)+)q\(([a-z]+)\)[a-z]", text):
        set_ = list(re.finditer(r"s\(([a-z]+),([a-z])\)", sequence[1]))
        places = {m[1]: sequence.start() + m.start(2) for m in set_}
        asked = sequence[2]
        if asked not in places:
            continue  # the beginning is missing
        name = next(sequence.start() + m.start(1) for m in set_ if m[1] == asked)
        others = {
            "values of other variables": tuple(place for other, place in places.items() if other != asked),
            "values of earlier sequences": tuple(before),
            "the variable's name": tuple(range(name, name + len(asked))),
        }
        shared = max((_shared(asked, other) for other in places if other != asked), default=0)
        yield Answer(sequence.end() - 1, (places[asked],), others, ALIKE[min(shared, 2)])
        before += places.values()


ALIKE = ("no other begins alike", "another begins with the same letter", "another begins with the same two")
"""The groups of queries, by how many letters another variable begins with that are those of the one asked for."""


def _shared(a: str, b: str) -> int:
    """How many letters two names begin with in common."""
    return next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def xml(text: str) -> Iterator[Answer]:
    """`<ab><c></c></ab>`: the same letter of the tag that is open, and not of another."""
    opened: list[tuple[str, int]] = []
    closed: dict[int, list[tuple[str, int]]] = {}
    for tag in re.finditer(r"<(/?)([a-z]+)>", text):
        if not tag[1]:
            opened.append((tag[2], tag.start(2)))
        elif opened and opened[-1][0] == tag[2]:
            name, start = opened.pop()
            depth = len(opened) + 1
            here = closed.get(depth, [])
            elsewhere = [one for other, some in closed.items() if other != depth for one in some]
            for i in range(len(name)):
                others = {
                    "this tag, the letter before": (start + i - 1,) if i else (),
                    "this tag, the letter after": (start + i + 1,) if i + 1 < len(name) else (),
                    "tags open around it, the same letter": _letter(opened, i),
                    "closed tags of this depth, the same letter": _letter(here, i),
                    "closed tags of other depths, the same letter": _letter(elsewhere, i),
                }
                yield Answer(tag.start(2) + i, (start + i,), others, f"depth {depth}")
            closed.setdefault(depth, []).append((name, start))


def _letter(tags: list[tuple[str, int]], i: int) -> tuple[int, ...]:
    return tuple(start + i for name, start in tags if i < len(name))


def arithmetic(text: str) -> Iterator[Answer]:
    """`-981+1721=047]`: the digits of both numbers in the result's place."""
    for sum_ in re.finditer(r"-?(\d+)([+-])(\d+)(=)(\d+)-?\]", text):
        for i in range(len(sum_[5])):
            place = sum_.start(5) + i
            digits = {
                f"{which} number, {words}": (sum_.end(k) - 1 - j,) if 0 <= j < len(sum_[k]) else ()
                for k, which in ((1, "first"), (3, "second"))
                for words, j in (("its place", i), ("the place below", i - 1), ("the place above", i + 1))
            }
            names = tuple(name for name, some in digits.items() if name.endswith("its place") and some)
            meant = tuple(k for name in names for k in digits[name])
            rest = {*range(*sum_.span(1)), *range(*sum_.span(3)), sum_.start(2)}
            rest -= {k for some in digits.values() for k in some}
            others = {name: some for name, some in digits.items() if not name.endswith("its place")} | {
                "the rest of both numbers": tuple(sorted(rest)),
                "the step before the answer": (place - 1,),
                "the result so far, and =": tuple(range(sum_.start(4), place - 1)),
                "earlier sums": tuple(range(sum_.start(0))),
            }
            if meant:
                group = "a digit of both" if len(meant) > 1 else "a digit of one"
                yield Answer(place, meant, others, group, names)


def copy(text: str) -> Iterator[Answer]:
    """`cah___:___`: the character, and not another of them. The answers stand beside the last blanks."""
    count, start = len(text) - len(text.lstrip("abcdefgh")), text.index(":") + 1
    for i in range(count):
        others = {
            "the character before": (i - 1,) if i else (),
            "the character after": (i + 1,) if i + 1 < count else (),
            "characters further off": tuple(k for k in range(count) if abs(k - i) > 1),
        }
        yield Answer(start + i, (i,), others, "a character")


MEANT: Mapping[str, Callable[[str], Iterator[Answer]]] = {
    "copy": copy,
    "xml": xml,
    "assignment": assignment,
    "arithmetic": arithmetic,
}
