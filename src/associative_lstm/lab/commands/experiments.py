"""The subcommands of `alstm reproduce`: one for every experiment of the registry, and one for all."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table as Shown

from associative_lstm.lab.commands import reproduce_curves
from associative_lstm.lab.commands.common import console, errors, progress_bar
from associative_lstm.lab.commands.jobs import check_cluster
from associative_lstm.lab.commands.verdicts import print_outcome
from associative_lstm.lab.experiments.experiment import Experiment, Measurement
from associative_lstm.lab.experiments.inside.study import InsideStudy
from associative_lstm.lab.experiments.learning.judging import LearningFigure
from associative_lstm.lab.experiments.learning.wikipedia import WikipediaFigure
from associative_lstm.lab.experiments.recall.study import RecallStudy
from associative_lstm.lab.experiments.registry import EXPERIMENTS
from associative_lstm.lab.experiments.tables import Table, as_cells

app = typer.Typer(rich_markup_mode=None)

Images = Annotated[
    Path | None, typer.Option(help="A folder of photographs, instead of those that come with scikit-image.")
]
Out = Annotated[
    Path | None,
    typer.Option(help="The folder to write to (default: results/ and the name of the figure or table)."),
]
Seed = Annotated[int, typer.Option(help="Decides keys, permutations and the choice of photographs.", min=0)]
Draws = Annotated[int, typer.Option(help="Independent draws of keys and permutations.", min=1)]
Steps = Annotated[
    int,
    typer.Option(help="Timed training steps of every network, at least; 0 counts parameters only.", min=0),
]


def _measurement(experiment: Measurement) -> Callable[..., None]:
    def measure(images: Images = None, out: Out = None, seed: Seed = 0) -> None:
        _measure(experiment, out, experiment.advances, images=images, seed=seed)

    def draw(
        images: Images = None, out: Out = None, draws: Draws = experiment.advances, seed: Seed = 0
    ) -> None:
        _measure(experiment, out, draws, images=images, draws=draws, seed=seed)

    return draw if experiment.drawn else measure


def _measure(experiment: Measurement, out: Path | None, advances: int, **options: object) -> None:
    with progress_bar(experiment.short.lower(), advances) as advance:
        folder = out or Path("results") / experiment.name
        warn = partial(errors.print, style="yellow")
        outcome = experiment.measure(folder, warn=warn, advance=advance, **options)
    print_outcome(outcome)


def _table(table: Table) -> Callable[..., None]:
    def count_and_time(out: Out = None, steps: Steps = 10, seed: Seed = 0) -> None:
        _count_and_time(table, out or Path("results") / table.name, steps, seed)

    return count_and_time


def _count_and_time(table: Table, out: Path, steps: int, seed: int) -> None:
    with progress_bar(table.short.lower(), len(table.rows) - 1) as advance:
        entries = table.measure(steps=steps, seed=seed, advance=advance)
    header = ("network", "N_h", "params", "paper", "diff", "speed", "paper", "ms")
    shown = Shown(*header, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title_justify="left")
    shown.title = table.title
    for column in shown.columns[1:]:
        column.justify, column.no_wrap = "right", True
    for entry in entries:
        network, size, *others = as_cells(entry)
        shown.add_row(network, size.split()[0].rstrip(","), *others)
    console.print(shown)
    print_outcome(table.write(out, entries, steps=steps, seed=seed))


def _command(experiment: Experiment) -> Callable[..., None]:
    """The subcommand of an experiment, by its kind."""
    match experiment:
        case WikipediaFigure():
            return reproduce_curves.wikipedia_command(experiment)
        case LearningFigure() | InsideStudy():
            return reproduce_curves.command(experiment)
        case RecallStudy():
            return reproduce_curves.recall_command(experiment)
        case Measurement():
            return _measurement(experiment)
        case Table():
            return _table(experiment)
        case _:
            raise TypeError(f"{experiment.name}: there is no subcommand for this kind of experiment")


for _experiment in EXPERIMENTS:
    _made = _command(_experiment)
    _title = _experiment.title if _experiment.title.endswith("?") else f"{_experiment.title}."
    _help = (f"{_title} {_experiment.text}", inspect.cleandoc(_made.__doc__ or ""))
    _example = f"Example: alstm reproduce {_experiment.name}"
    app.command(_experiment.name, help="\n\n".join(filter(None, (*_help, _example))))(_made)


@app.command("all")
def everything(
    runs: reproduce_curves.Runs = reproduce_curves.RUNS,
    out: reproduce_curves.Out = reproduce_curves.OUT,
    draw: reproduce_curves.Draw = False,
    jobs: reproduce_curves.Jobs = 1,
    seed: reproduce_curves.Seed = 0,
    smoke: reproduce_curves.Smoke = False,
    cluster: reproduce_curves.Cluster = None,
    address: reproduce_curves.Address = None,
) -> None:
    """Reproduce every figure and table but the Wikipedia one (fig10), which needs its text, what needs weights, and
    the comparison with today's networks (recall), which takes a night.

    Runs that are done are not made again; figures 1 and 2, the properties and the tables are measured again (and left
    out with --smoke). With --draw nothing is run or measured; learning curves are drawn and judged anew, fig10 too.

    Example: alstm reproduce all --jobs 2
    """
    check_cluster(cluster, address)
    if draw:
        reproduce_curves.refuse_choices(cluster)
        drawn = [
            e for e in EXPERIMENTS if isinstance(e, LearningFigure) and (e.in_all or not (smoke or seed))
        ]
        reproduce_curves.draw_figures(drawn, runs, out, seed, smoke)
        return
    if not smoke:
        for experiment in EXPERIMENTS:
            if isinstance(experiment, Measurement):
                _measure(experiment, out / experiment.name, experiment.advances, seed=seed)
            elif isinstance(experiment, Table):
                _count_and_time(experiment, out / experiment.name, 10, seed)
    figures = [e for e in EXPERIMENTS if isinstance(e, LearningFigure) and e.in_all]
    reproduce_curves.run_figures(figures, runs, out, jobs, seed, smoke, cluster, address)
