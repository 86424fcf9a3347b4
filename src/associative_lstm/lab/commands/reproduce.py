"""`alstm reproduce`: the paper's figures and tables, each with its data, its picture and its verdicts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from associative_lstm.lab.commands import learning
from associative_lstm.lab.commands.common import console, errors, progress_bar
from associative_lstm.lab.commands.executing import check_cluster
from associative_lstm.lab.commands.fig10 import fig10

if TYPE_CHECKING:
    from associative_lstm.lab.experiments.claims import Outcome

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def reproduce(context: typer.Context) -> None:
    """Reproduce a figure or a table of the paper: its data, its picture, and a verdict on each claim.

    Example: alstm reproduce fig2 --seed 1
    """
    if context.invoked_subcommand is None:
        console.print(context.get_help(), highlight=False, markup=False)


_IMAGES = typer.Option(help="A folder of photographs, instead of those that come with scikit-image.")
_OUT = typer.Option(help="The folder to write to (default: results/ and the name of the figure or table).")
_SEED = typer.Option(help="Decides keys, permutations and the choice of photographs.", min=0)
_STEPS = typer.Option(
    help="Minibatches per network and round of the timing; 0 counts parameters only.", min=0
)
_COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}


@app.command()
def fig1(
    images: Annotated[Path | None, _IMAGES] = None,
    out: Annotated[Path | None, _OUT] = None,
    seed: Annotated[int, _SEED] = 0,
) -> None:
    """Store 20 photographs and read them back from 1, 4 and 20 copies of the memory trace.

    Example: alstm reproduce fig1 --images ~/photographs
    """
    from associative_lstm.lab.experiments import fig1 as experiment

    report(experiment.run(out or Path("results/fig1"), images=images, seed=seed, warn=_warn))


@app.command()
def fig2(
    images: Annotated[Path | None, _IMAGES] = None,
    out: Annotated[Path | None, _OUT] = None,
    draws: Annotated[int, typer.Option(help="Independent draws of keys and permutations.", min=1)] = 5,
    seed: Annotated[int, _SEED] = 0,
) -> None:
    """Measure the error of a retrieved photograph for 1 to 100 copies and 1 to 100 images.

    Example: alstm reproduce fig2 --draws 10
    """
    from associative_lstm.lab.experiments import fig2 as experiment

    with progress_bar("figure 2", draws) as advance:
        folder = out or Path("results/fig2")
        outcome = experiment.run(folder, images=images, draws=draws, seed=seed, warn=_warn, advance=advance)
    report(outcome)


@app.command()
def properties(
    images: Annotated[Path | None, _IMAGES] = None,
    out: Annotated[Path | None, _OUT] = None,
    seed: Annotated[int, _SEED] = 0,
) -> None:
    """Show the memory's properties: changing copies, partial keys, many items, other ways to bind.

    Example: alstm reproduce properties
    """
    from associative_lstm.lab.experiments import properties as experiment

    with progress_bar("properties", experiment.STEPS) as advance:
        folder = out or Path("results/properties")
        outcome = experiment.run(folder, images=images, seed=seed, warn=_warn, advance=advance)
    report(outcome)


app.command()(fig10)


@app.command()
def table1(
    out: Annotated[Path | None, _OUT] = None,
    steps: Annotated[int, _STEPS] = 10,
    seed: Annotated[int, _SEED] = 0,
) -> None:
    """Count and time the networks of the copy task.

    Example: alstm reproduce table1
    """
    _table(1, out, steps, seed)


@app.command()
def table2(
    out: Annotated[Path | None, _OUT] = None,
    steps: Annotated[int, _STEPS] = 10,
    seed: Annotated[int, _SEED] = 0,
) -> None:
    """Count and time the networks of the arithmetic task.

    Example: alstm reproduce table2
    """
    _table(2, out, steps, seed)


@app.command()
def table3(
    out: Annotated[Path | None, _OUT] = None,
    steps: Annotated[int, _STEPS] = 10,
    seed: Annotated[int, _SEED] = 0,
) -> None:
    """Count and time the networks compared to a Neural Turing Machine.

    Example: alstm reproduce table3
    """
    _table(3, out, steps, seed)


for _name in learning.TITLES:
    app.command(_name)(learning.command(_name, lambda outcome: report(outcome)))


@app.command("all")
def everything(
    runs: learning.Runs = Path("results/runs"),
    out: learning.Out = Path("results"),
    jobs: learning.Jobs = 1,
    seed: learning.Seed = 0,
    smoke: learning.Smoke = False,
    cluster: learning.Cluster = None,
    address: learning.Address = None,
) -> None:
    """Reproduce every figure and table but the Wikipedia one (fig10), which needs its text.

    Runs that are done are not made again; figures 1 and 2, the properties and the tables are measured again (and left
    out with --smoke).

    Example: alstm reproduce all --jobs 2
    """
    from associative_lstm.lab.experiments.learning import figures

    check_cluster(cluster, address)
    if not smoke:
        fig1(out=out / "fig1", seed=seed)
        fig2(out=out / "fig2", seed=seed)
        properties(out=out / "properties", seed=seed)
        for number in (1, 2, 3):
            _table(number, out / f"table{number}", 10, seed)
    learning.run_figures(list(figures.NAMES), runs, out, jobs, seed, smoke, report, cluster, address)


def _table(number: int, out: Path | None, steps: int, seed: int) -> None:
    from associative_lstm.lab.experiments import tables

    table = tables.TABLES[number]
    with progress_bar(f"table {number}", len(table.rows) * tables.ROUNDS) as advance:
        folder = out or Path(f"results/table{number}")
        outcome = tables.run(folder, number, steps=steps, seed=seed, advance=advance)
    header = ("network", "N_h", "params", "paper", "diff", "speed", "paper", "ms")
    shown = Table(*header, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title_justify="left")
    shown.title = table.title
    for column in shown.columns[1:]:
        column.justify, column.no_wrap = "right", True
    for entry in tables.read(folder, number):
        network, size, *others = tables.as_cells(entry)
        shown.add_row(network, size.split()[0].rstrip(","), *others)
    console.print(shown)
    report(outcome)


def report(outcome: "Outcome") -> None:
    """Print the verdicts of an experiment, and what it wrote."""
    for claim in outcome.claims:
        verdict = Text(f"{claim.verdict:9}", style=_COLOURS[claim.verdict])
        console.print(verdict, Text(claim.sentence, style="bold"))
        console.print(Text(f"          {claim.criterion}: {claim.measured}", style="dim"))
    if outcome.cost:
        cost = ", ".join(f"{value:,} {unit.replace('_', ' ')}" for unit, value in outcome.cost.items())
        console.print(f"cost: {cost}", soft_wrap=True, highlight=False)
    for path in outcome.written:
        console.print(f"written: {path}", soft_wrap=True, highlight=False)


def _warn(message: str) -> None:
    errors.print(message, style="yellow", soft_wrap=True, highlight=False, markup=False)
