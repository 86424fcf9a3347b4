"""A claim: a sentence of the paper, the criterion by which it is judged from what was measured, and the verdict."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from associative_lstm.lab.files import write_atomically

Verdict = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Reading:
    """A claim judged another time: by runs of the fast recipe, or by another criterion, such as one it had before."""

    name: str
    verdict: Verdict
    numbers: Mapping[str, float | str] = field(default_factory=dict)
    criterion: str = ""  # if it is another
    runs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()  # as of a claim
    short: bool = False  # by runs that are not as long as those as the paper trained

    @property
    def measured(self) -> str:
        """The numbers as text."""
        return measured(self.numbers)


FAST, SHORT, BEFORE, FAST_BEFORE = (
    "by the fast recipe",
    "by the recipe's short runs",
    "by the criterion before",
    "by the fast recipe and the criterion before",
)
"""The names of readings."""


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper in our words, a criterion fixed before measuring, and the numbers behind the verdict.

    >>> judge("More copies, less noise.", "error(20 copies) < error(1 copy)", True, one=19.1, twenty=0.95).verdict
    'holds'
    """

    sentence: str
    criterion: str
    verdict: Verdict
    numbers: Mapping[str, float | str] = field(default_factory=dict)
    key: str = ""  # its number, by which a page can be linked to
    runs: tuple[str, ...] = ()  # the folders of the runs behind the verdict, where there are any
    lacks: tuple[str, ...] = ()  # what was planned and is not there yet, where the verdict stands without it
    readings: tuple[Reading, ...] = ()

    @property
    def measured(self) -> str:
        """The numbers as text.

        >>> judge("", "", True, slope=-0.99876543, parameters=65226.0).measured
        'slope -0.9988; parameters 65,226'
        """
        return measured(self.numbers)

    @property
    def item(self) -> str:
        """The whole of it, as an item of a list in Markdown."""
        return (
            f"- **{self.verdict}**: {self.sentence} Criterion: {self.criterion}. Measured: {self.measured}."
        )

    def read(self, name: str) -> Reading | None:
        """The reading of this name, if there is one."""
        return next((reading for reading in self.readings if reading.name == name), None)


def measured(numbers: Mapping[str, float | str]) -> str:
    """Numbers as text; a reason is told as it is.

    >>> measured({"mean_ratio": 2.0, "N_h 60, 4 copies": 0.5, "reason": "seeds overlap"})
    'mean ratio 2; N_h 60, 4 copies 0.5; seeds overlap'
    """
    return "; ".join(f"{_words(name)}{shown(value)}" for name, value in numbers.items())


def _words(name: str) -> str:
    """What a number is called: words, or the name of a Python argument."""
    return "" if name == "reason" else f"{name if ' ' in name else name.replace('_', ' ')} "


def verdict_of(holds: bool | None) -> Verdict:
    """The word for a decision; ``None`` is for measurements that cannot tell."""
    return "undecided" if holds is None else "holds" if holds else "fails"


def judge(sentence: str, criterion: str, holds: bool | None, **numbers: float | str) -> Claim:
    """A claim with its verdict; ``None`` is for measurements that cannot tell."""
    return Claim(sentence, criterion, verdict_of(holds), numbers)


def write_claims(path: Path, claims: Iterable[Claim], **about: object) -> Path:
    """Write the claims as JSON, with what else a reader needs to know ``about`` how they were measured."""
    content = {"about": about, "claims": [asdict(claim) for claim in claims]}
    write_atomically(
        path, (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    )
    return path


def read_claims(path: Path) -> list[Claim]:
    """The claims of a file that `write_claims` wrote."""
    claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
    return [_read(claim) for claim in claims]


def _read(content: dict[str, Any]) -> Claim:
    def lists(of: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        return {name: tuple(of.get(name, ())) for name in ("runs", "lacks")}

    readings = [Reading(**(each | lists(each))) for each in content.get("readings", ())]
    return Claim(**(content | lists(content) | {"readings": tuple(readings)}))


def shown(value: float | str) -> str:
    """A number of a claim as text.

    >>> shown(65226.0), shown(-0.99876543), shown("0.3 (0.2 to 0.4)")
    ('65,226', '-0.9988', '0.3 (0.2 to 0.4)')
    """
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"
