"""What the subcommands share: the console, the live line, and names to complete."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.segment import Segment

from associative_lstm.lab.run.config import LARGEST
from associative_lstm.lab.words import printable

SEEDS: dict[str, Any] = {"min": 0, "max": LARGEST}
"""What every --seed may be."""


class _Console(Console):
    """Prints nothing that a terminal would obey, wherever it comes from: a file's name, a text, a message."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


console = _Console(highlight=False, soft_wrap=True, markup=False)  # paths and texts may hold brackets
errors = _Console(stderr=True, highlight=False, soft_wrap=True, markup=False)


Own = Annotated[
    list[Path] | None,
    typer.Option("--from", help="A Python file that registers tasks or networks of your own."),
]
"""The option of commands that may meet a task or a network that is not the lab's."""


Device = Annotated[
    Literal["cpu", "cuda"], typer.Option(help="What computes: cpu, or cuda for a GPU (ROCm's too).")
]
"""The option of commands whose work is not a run's own."""


def know(files: list[Path] | None) -> None:
    """Run the files that the user has named, so that what they register is known."""
    if files:
        from associative_lstm.lab.from_file import load

        load(files)


def finite(name: str, value: float) -> float:
    """``value`` if it is a number that can be computed with: the ranges of options let "nan" and "inf" through."""
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value}")
    return value


def completing(known: Iterable[str]) -> Callable[[str], list[str]]:
    """What the shell completes a name by: those of the ``known`` that begin so."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete


@contextmanager
def live_line(
    label: str, every: float = 10.0, *, transient: bool = False
) -> Iterator[Callable[[int, int, str], None]]:
    """A function that shows how much is done of how much, and some words about it.

    On a terminal in one live line, elsewhere as a line now and then, ``every`` so many seconds.
    """
    if errors.is_terminal:
        words = TextColumn("{task.fields[words]}", markup=False)
        bold = TextColumn("[bold]{task.description}")
        with Progress(bold, BarColumn(bar_width=24), words, console=errors, transient=transient) as progress:
            line = progress.add_task(label, words="...")
            yield lambda done, total, words: progress.update(line, completed=done, total=total, words=words)
        return
    due = time.monotonic() + min(every, 2.0)

    def say(done: int, total: int, words: str) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + every
            print(f"{label}: {words}", file=sys.stderr, flush=True)

    yield say


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[], None]]:
    """A function to be called once per piece of work done."""
    done, started = 0, time.monotonic()

    def advance() -> None:
        nonlocal done
        done += 1
        to_come = (time.monotonic() - started) * (total - done) / done
        show(done, total, f"{done / total:.0%}, {so_long(to_come)}")

    with live_line(label, 30.0, transient=True) as show:
        yield advance


def so_long(seconds: float | None) -> str:
    """The time that is left, in words.

    >>> so_long(42.3), so_long(1234), so_long(7200), so_long(None)
    ('42 s left', '21 min left', '2.0 h left', '... left')
    """
    if seconds is None:
        return "... left"
    if seconds < 600:
        return f"{seconds:.0f} s left"
    return f"{seconds / 60:.0f} min left" if seconds <= 5400 else f"{seconds / 3600:.1f} h left"
