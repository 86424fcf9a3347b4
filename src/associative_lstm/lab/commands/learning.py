"""`alstm reproduce fig3` ... `fig13`, `starts` and `all`: learning curves through one grid of runs."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn

from associative_lstm.lab.commands.common import errors
from associative_lstm.lab.commands.executing import Address, Cluster, Jobs, executing
from associative_lstm.lab.files import RunError

if TYPE_CHECKING:
    from associative_lstm.lab.experiments.claims import Outcome
    from associative_lstm.lab.grid import GridProgress

TITLES = {
    "fig3": "Train the networks of figure 3: copy, fixed length.",
    "fig4": "Train the networks of figure 4: copy, variable length.",
    "fig5": "Train the networks of figure 5: XML, with unitary RNNs.",
    "fig6": "Train the networks of figure 6: XML.",
    "fig7": "Train the networks of figure 7: variable assignment.",
    "fig8": "Train the networks of figure 8: arithmetic.",
    "fig9": "Train the networks of figure 9: arithmetic with 3 heads.",
    "fig11": "Train the networks of figure 11: XML against the NTM.",
    "fig12": "Train the networks of figure 12: variable assignment against the NTM.",
    "fig13": "Train the networks of figure 13: arithmetic against the NTM.",
    "tuning": "Train the LSTMs and the Associative LSTM of the question whether tuning closes the gap.",
    "starts": "Train the Associative LSTM from four initialisations on three tasks.",
}

RUNS, OUT, SMOKE = Path("results/runs"), Path("results"), Path("runs/smoke")

Out = Annotated[Path, typer.Option(help="The folder for pictures, tables and verdicts, one folder each.")]
Runs = Annotated[Path, typer.Option(help="The folder of the runs: what is there and done is not made again.")]
Seed = Annotated[int, typer.Option(help="The first of the seeds.", min=0)]
Smoke = Annotated[
    bool, typer.Option("--smoke", help="Tiny networks and a few minibatches, to see that it works.")
]


def command(name: str, report: Callable[["Outcome"], None]) -> Callable[..., None]:
    """The subcommand that reproduces one figure."""

    def reproduce(
        runs: Runs = RUNS,
        out: Out = OUT,
        jobs: Jobs = 1,
        seed: Seed = 0,
        smoke: Smoke = False,
        cluster: Cluster = None,
        address: Address = None,
    ) -> None:
        run_figures([name], runs, out, jobs, seed, smoke, report, cluster, address)

    reproduce.__doc__ = f"{TITLES[name]}\n\n    Example: alstm reproduce {name} --jobs 2"
    return reproduce


def run_figures(
    names: list[str],
    runs: Path,
    out: Path,
    jobs: int,
    seed: int,
    smoke: bool,
    report: Callable[["Outcome"], None],
    cluster: str | None = None,
    address: str | None = None,
) -> None:
    """Make the runs of the figures in one grid, then draw and judge each."""
    from associative_lstm.lab.experiments.learning import figures

    prepare = figures.preparation(seed=seed, quick=smoke)
    if smoke:  # never among the results
        runs, out = (SMOKE / "runs" if runs == RUNS else runs), (SMOKE if out == OUT else out)
        refuse_results(runs, out)
    label = names[0] if len(names) == 1 else "all figures"
    with executing(jobs, cluster, address) as execute, grid_line(label) as show:
        failed = figures.make(names, runs, execute, prepare, show)
    for name in names:
        report(figures.draw(name, out / name, runs, prepare, first_seed=seed, smoke=smoke))
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise RunError(f"not all runs were made: {failed[0]}{more}; the same command goes on from there")


def refuse_results(*folders: Path) -> None:
    """What --smoke makes must not be among the recorded results."""
    recorded = OUT.resolve()
    if any(path.resolve() == recorded or recorded in path.resolve().parents for path in folders):
        raise RunError(f"--smoke makes no results: choose folders outside {recorded}")


@contextmanager
def grid_line(label: str) -> Iterator[Callable[["GridProgress"], None]]:
    """A function that shows where a grid is: on a terminal in one live line, elsewhere now and then a line."""

    def left(seconds: float | None) -> str:
        if seconds is None:
            return "..."
        return f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{seconds / 60:.0f} min"

    if errors.is_terminal:
        columns: tuple[Any, ...] = (
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,}/{task.total:,} minibatches, {task.fields[runs]} runs"),
            TextColumn("{task.fields[left]} left"),
        )
        with Progress(*columns, console=errors) as progress:
            line = progress.add_task(label, total=1, runs="...", left="...")

            def show(p: "GridProgress") -> None:
                runs = f"{p.runs_done}/{p.runs}"
                time_left = left(p.seconds_left)
                progress.update(line, completed=p.steps_done, total=p.steps, runs=runs, left=time_left)

            yield show
        return
    due = time.monotonic() + 2.0

    def say(p: "GridProgress") -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + 30.0
            print(
                f"{label}: {p.steps_done:,}/{p.steps:,} minibatches, {p.runs_done}/{p.runs} runs, "
                f"{left(p.seconds_left)} left",
                file=sys.stderr,
                flush=True,
            )

    yield say
