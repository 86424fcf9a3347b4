"""What every experiment is, whatever it measures: a name, a title, and what stands for it on a page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import NamedTuple

from associative_lstm.lab.experiments.claim import Claim

Advance = Callable[[], None]


class Outcome(NamedTuple):
    """What an experiment wrote, its claims with their verdicts, and what it cost where that was measured."""

    written: list[Path]
    claims: list[Claim]
    cost: Mapping[str, float] = {}


class Points(NamedTuple):
    """One panel of measured points: its title, its axes, and for each of its series the lines that it has."""

    title: str
    x: str
    y: str
    n: Sequence[int]
    series: Mapping[str, Sequence[Sequence[float]]]


@dataclass(frozen=True)
class Experiment:
    """A figure or a table: ``name`` is its subcommand and the folder of its results, ``text`` a sentence about it.

    Of its folder, a page shows the ``pictures`` (file, and what it shows), the Markdown in ``page`` and, where there
    is a function ``points`` that reads them, measured points. ``ours``: its claims are not the paper's.
    """

    name: str
    title: str
    text: str
    _: KW_ONLY
    pictures: Sequence[tuple[str, str]] = ()
    page: str = ""
    points: Callable[[Path], Mapping[str, Points]] | None = None
    ours: bool = False

    @property
    def short(self) -> str:
        """The title up to its colon: Figure 6."""
        return self.title.split(":")[0]


@dataclass(frozen=True)
class Measurement(Experiment):
    """An experiment that measures by itself, without runs: ``measure`` takes the folder to write to and options.

    It calls ``advance``, one of the options, ``advances`` times; where it is ``drawn``, as many times as an option
    ``draws`` asks for.
    """

    measure: Callable[..., Outcome]
    advances: int = 1
    drawn: bool = False
