"""What the subcommands share: the console, the live line, and names to complete."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from associative_lstm.lab.config import MODELS, PRESETS
from associative_lstm.lab.tasks import TASKS

console = Console(highlight=False, soft_wrap=True, markup=False)  # paths and texts may hold brackets
errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)


def complete_task(incomplete: str) -> list[tuple[str, str]]:
    """Task names that begin so, for the shell."""
    return [(name, task.description) for name, task in TASKS.items() if name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[str]:
    """Network names that begin so, for the shell."""
    return [name for name in MODELS if name.startswith(incomplete)]


def complete_preset(incomplete: str) -> list[str]:
    """Preset names that begin so, for the shell."""
    return [name for name in PRESETS if name.startswith(incomplete)]


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
                cost = "..." if math.isnan(p.cost) else f"{p.cost:.3f}"
                testing = "" if p.tested is None else f"testing, {p.tested:.0%}"
                progress.update(
                    line,
                    completed=p.step,
                    total=p.steps,
                    cost=cost,
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
                f"{label}: step {p.step:,}/{p.steps:,}, cost {p.cost:.3f} bits, "
                f"{p.symbols_per_second:,.0f} symbols/s, {p.seconds_left:,.0f} s left{testing}",
                file=sys.stderr,
                flush=True,
            )

    yield say


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[], None]]:
    """A function to be called once per piece of work done."""
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        line = progress.add_task(label, total=total)
        yield lambda: progress.advance(line)
