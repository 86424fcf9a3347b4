"""`alstm demo`: what the memory does, in about two minutes."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.live import Live
from rich.table import Table
from rich.text import Text

from associative_lstm.lab.commands.common import SEEDS, console, errors, live_line, so_long
from associative_lstm.lab.commands.train import a_folder
from associative_lstm.lab.words import counted

if TYPE_CHECKING:
    from associative_lstm.lab.run.config import Config

_NAMES = {"associative-lstm": "Associative LSTM", "lstm": "LSTM"}
_CURVE = 24
_SYMBOLS = 200  # of a minibatch: two windows of 100
_COLOURS = {"associative-lstm": "blue", "lstm": "dark_orange"}
_INTRODUCTION = """\
Two networks with 128 units each read text like this, one character at a time:

    s(ml,a),s(qc,n),q(ml)[bold green]a.[/]

and must say the last two characters before they come: which value was stored under the name asked for?"""


def demo(
    steps: Annotated[int, typer.Option(help="Minibatches for each network.", min=1)] = 4_000,
    out: Annotated[
        Path | None, typer.Option(help="A new folder (default: a new one in runs/).", parser=a_folder)
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides weights and data.", **SEEDS)] = 0,
) -> None:
    """Train the Associative LSTM and the LSTM side by side on variable assignment, and ask both the same questions.

    Example: alstm demo
    """
    from associative_lstm.lab.draw.runs import plot_runs
    from associative_lstm.lab.experiments.demo import ask, compile_kernels, demo_configs, train_side_by_side
    from associative_lstm.lab.files import RunError
    from associative_lstm.lab.inside.page import load, samples, write_page

    folder = out or next(p for k in range(1, 10_000) if not lexists(p := Path("runs") / f"demo-{k}"))
    if folder.exists() and any(folder.iterdir()):
        raise RunError(f"{folder} is not empty: choose another folder")
    configs = demo_configs(steps, seed)
    folder.mkdir(parents=True, exist_ok=True)  # what stands in the way is said before anything is shown
    console.print(Text.from_markup(_INTRODUCTION))
    console.print()
    started = time.monotonic()
    compile_kernels(configs["associative-lstm"])
    with _board(configs, folder) as show:
        folders = train_side_by_side(configs, folder, show)
    picture = folder / "demo.png"
    plot_runs(list(folders.values()), picture)
    queries = ask(folders, count=8, seed=seed)
    console.print(_measured(folders, seed))
    console.print(_answered(queries))
    page = folder / "inside.html"
    readers = [load(run) for run in folders.values()]
    text, *examples = samples(readers[0].trained.task, seed)
    write_page(readers, text, examples, page)
    seconds = counted(round(time.monotonic() - started), "second")
    console.print(f"{seconds}; ask further questions with: alstm sample {folders['lstm']}")
    console.print(f"learning curves: {picture}")
    console.print(f"what they remember, a page for a browser: {page}")
    console.print(f"runs: {folder}")


@contextmanager
def _board(configs: Mapping[str, "Config"], folder: Path) -> Iterator[Callable[[object], None]]:
    """Show from their logs how far the runs are: live on a terminal, elsewhere now and then and in the end.

    Gives a function that is to be called about every second.
    """

    def rows() -> list[tuple[Text, ...]]:
        return [_row(name, config, folder / name) for name, config in configs.items()]

    def table() -> Table:
        made = Table("network", "step", "cost", "bits", "symbols/s", "left", box=None, pad_edge=False)
        for row in rows():
            made.add_row(*row)
        return made

    if errors.is_terminal:
        with Live(get_renderable=table, console=errors, refresh_per_second=4):
            yield lambda _: None
        return
    with live_line("demo") as line:
        yield lambda _: line(
            0, 1, "; ".join(f"{name} {step}, {bits} bits" for name, step, _, bits, *_ in rows())
        )
    errors.print(table())


def _row(name: str, config: "Config", folder: Path) -> tuple[Text, ...]:
    """A run in the table; the cost so far is a small curve."""
    from associative_lstm.lab.run.folder import read_log

    log = read_log(folder)
    step, seconds = (log[-1]["step"], log[-1]["seconds"]) if log else (0, None)
    bits = f"{log[-1]['cost']:.2f}" if log else "..."
    ends = [config.steps * (k + 1) / _CURVE for k in range(_CURVE)]
    costs = [next(line["cost"] for line in log if line["step"] >= end) for end in ends if end <= step]
    bars = "".join("▁▂▃▄▅▆▇█"[min(int(cost / 2.5 * 8), 7)] for cost in costs)
    rate = f"{step * _SYMBOLS / seconds:,.0f}" if seconds else "..."
    left = so_long(seconds / step * (config.steps - step) if seconds else None).removesuffix(" left")
    texts = f"{step:,}/{config.steps:,}", bars.ljust(_CURVE, "·"), bits, rate, left
    return Text(_NAMES[name], style=f"bold {_COLOURS[name]}"), *map(Text, texts)


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
        said = [(query.answers[name], query.answers[name] == query.right) for name in _NAMES]
        cells = [Text(f"{a} {'✓' if good else '✗'}", "green" if good else "bold red") for a, good in said]
        table.add_row(query.text, query.right, *cells)
    return table
