"""What the subcommands share: the console, the live line, and names to complete."""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
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


def know(files: list[Path] | None) -> None:
    """Run the files that the user has named, so that what they register is known."""
    if files:
        from associative_lstm.lab.own import load

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
def live_line(label: str, steps: int) -> Iterator[Callable[[Any], None]]:
    """A function that shows where a run is: on a terminal in one live line, elsewhere now and then a line."""
    if errors.is_terminal:
        columns = (
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("step {task.completed:,}/{task.total:,}"),
            TextColumn("cost [cyan]{task.fields[cost]}[/] bits"),
            TextColumn("{task.fields[rate]:,.0f} symbols/s"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[testing]}"),
        )
        with Progress(*columns, console=errors) as progress:
            line = progress.add_task(label, total=steps, cost="...", rate=0.0, testing="")

            def show(p: Any) -> None:
                testing = "" if p.tested is None else f"testing, {p.tested:.0%}"
                progress.update(
                    line,
                    completed=p.step,
                    total=p.steps,
                    cost=_cost(p.cost),
                    rate=p.symbols_per_second,
                    testing=testing,
                )

            yield show
        return
    due = time.monotonic() + 2.0

    def say(p: Any) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + 10.0
            testing = "" if p.tested is None else f", testing, {p.tested:.0%}"
            print(
                f"{label}: step {p.step:,}/{p.steps:,}, cost {_cost(p.cost)} bits, "
                f"{p.symbols_per_second:,.0f} symbols/s, {p.seconds_left:,.0f} s left{testing}",
                file=sys.stderr,
                flush=True,
            )

    yield say


def _cost(cost: float) -> str:
    return "..." if math.isnan(cost) else f"{cost:.3f}"


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[], None]]:
    """A function to be called once per piece of work done; where there is no terminal, a line now and then."""
    if not errors.is_terminal:
        due, done = time.monotonic() + 30.0, 0

        def say() -> None:
            nonlocal due, done
            done += 1
            if time.monotonic() >= due:
                due = time.monotonic() + 30.0
                print(f"{label}: {done / total:.0%}", file=sys.stderr, flush=True)

        yield say
        return
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=errors, transient=True) as progress:
        line = progress.add_task(label, total=total)
        yield lambda: progress.advance(line)
