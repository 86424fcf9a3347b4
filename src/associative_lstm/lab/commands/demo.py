"""`alstm demo`: what the memory does, in about two minutes."""

import time
from os.path import lexists
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from associative_lstm.lab.commands.common import SEEDS, console, errors
from associative_lstm.lab.commands.train import a_folder
from associative_lstm.lab.words import counted

_NAMES = {"associative-lstm": "Associative LSTM", "lstm": "LSTM"}
_CURVE = 30
_COLOURS = {"associative-lstm": "blue", "lstm": "dark_orange"}
_INTRODUCTION = """\
Two networks with 128 units each read text like this, one character at a time:

    s(ml,a),s(qc,n),q(ml)[bold green]a.[/]

and must say the last two characters before they come: which value was stored under the name asked for?"""


def demo(
    steps: Annotated[int, typer.Option(help="Minibatches for each network.", min=1)] = 12_000,
    out: Annotated[
        Path | None, typer.Option(help="A new folder (default: a new one in runs/).", parser=a_folder)
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides weights and data.", **SEEDS)] = 0,
) -> None:
    """Train the Associative LSTM and the LSTM side by side on variable assignment, and ask both the same questions.

    Example: alstm demo
    """
    from associative_lstm.lab.draw.curves import plot_runs
    from associative_lstm.lab.experiments.demo import ask, demo_configs, train_side_by_side
    from associative_lstm.lab.files import RunError

    folder = out or next(p for k in range(1, 10_000) if not lexists(p := Path("runs") / f"demo-{k}"))
    if folder.exists() and any(folder.iterdir()):
        raise RunError(f"{folder} is not empty: choose another folder")
    configs = demo_configs(steps, seed)
    folder.mkdir(parents=True, exist_ok=True)  # what stands in the way is said before anything is shown
    console.print(Text.from_markup(_INTRODUCTION))
    console.print()
    started = time.monotonic()
    board = _Board(steps)
    with board:
        folders = train_side_by_side(configs, folder, board.update, board.say)
    picture = folder / "demo.png"
    plot_runs(list(folders.values()), picture)
    queries = ask(folders, count=8, seed=seed)
    console.print(_measured(folders, seed))
    console.print(_answered(queries))
    seconds = counted(round(time.monotonic() - started), "second")
    console.print(f"{seconds}; ask further questions with: alstm sample {folders['lstm']}")
    console.print(f"learning curves: {picture}")
    console.print(f"runs: {folder}")


class _Board:
    """What the networks have come to: a row each, with the cost so far as a small curve.

    It is shown live on a terminal; elsewhere there is a line now and then, and the rows in the end.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        nan = float("nan")
        self._latest: dict[str, Any] = dict.fromkeys(_NAMES, (0, steps, nan, 0.0, nan))
        self._curves: dict[str, list[float]] = {name: [] for name in _NAMES}
        self._said: list[str] = []
        self._due = time.monotonic() + 5
        self._live = (
            Live(self._picture(), console=errors, refresh_per_second=4) if errors.is_terminal else None
        )

    def __enter__(self) -> None:
        if self._live is not None:
            self._live.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        elif kind is None:
            errors.print(self._picture())

    def say(self, message: str) -> None:
        if self._live is None:
            errors.print(message)
        else:
            self._said.append(message)

    def update(self, name: str, progress: Any) -> None:
        step, _, cost, *_ = self._latest[name] = progress
        while cost == cost and len(self._curves[name]) < _CURVE * step // self._steps:
            self._curves[name].append(cost)
        if self._live is not None:
            self._live.update(self._picture())
        elif time.monotonic() > self._due:
            self._due = time.monotonic() + 10
            states = [
                f"{_NAMES[name]} step {p[0]:,}" + (f", {p[2]:.2f} bits" if p[2] == p[2] else "")
                for name, p in self._latest.items()
            ]
            errors.print("; ".join(states))

    def _picture(self) -> Group:
        table = Table("network", "step", "cost", "bits", "symbols/s", "left", box=None, pad_edge=False)
        for name, label in _NAMES.items():
            step, steps, cost, rate, left, *_ = self._latest[name]
            bars = "".join("▁▂▃▄▅▆▇█"[min(int(value / 2.5 * 8), 7)] for value in self._curves[name])
            table.add_row(
                Text(label, style=f"bold {_COLOURS[name]}"),
                f"{step:,}/{steps:,}",
                Text(bars.ljust(_CURVE, "·"), style=_COLOURS[name]),
                f"{cost:.2f}" if cost == cost else "...",
                f"{rate:,.0f}",
                f"{left:,.0f} s" if left == left else "",
            )
        return Group(*(Text(message, style="dim", overflow="fold") for message in self._said), table)


def _measured(folders: dict[str, Path], seed: int) -> Table:
    """Both networks on the same fresh data."""
    from associative_lstm.lab.experiments.demo import share_of_values_right
    from associative_lstm.lab.run.evaluation import evaluate, load_trained
    from associative_lstm.lab.run.model import count_parameters

    table = Table("on fresh data", "parameters", "bits per scored symbol (95%)", "values right", box=SIMPLE)
    for name, folder in folders.items():
        trained = load_trained(folder)
        result = evaluate(trained.model, trained.task, trained.task.stream(64, seed, split="test"), 20)
        low, high = result.interval
        table.add_row(
            Text(_NAMES[name], style=f"bold {_COLOURS[name]}"),
            f"{count_parameters(trained.model):,}",
            f"{result.cost:.3f} ({low:.3f} to {high:.3f})",
            f"{100 * share_of_values_right(trained, seed=seed, lanes=64, batches=20):.1f}%",
        )
    return table


def _answered(queries: list[Any]) -> Table:
    table = Table("the same questions to both", "right", *_NAMES.values(), box=SIMPLE)
    table.columns[0].no_wrap = True
    for query in queries:
        cells = []
        for name in _NAMES:
            said = query.answers[name]
            good = said == query.right
            cells.append(Text(f"{said} {'✓' if good else '✗'}", style="green" if good else "bold red"))
        table.add_row(query.text, query.right, *cells)
    return table
