"""`alstm reproduce` for learning curves: their runs through one grid, then pictures and verdicts from the logs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.box import SIMPLE
from rich.table import Table

from associative_lstm.lab.commands.common import console, errors, live_line, progress_bar, so_long
from associative_lstm.lab.commands.jobs import Address, Cluster, Jobs, executing
from associative_lstm.lab.commands.verdicts import print_outcome
from associative_lstm.lab.experiments.experiment import Outcome
from associative_lstm.lab.experiments.inside.study import InsideStudy
from associative_lstm.lab.experiments.learning.curves import Curve
from associative_lstm.lab.experiments.learning.judging import LearningFigure, preparation
from associative_lstm.lab.experiments.learning.runs import Logs, make_runs
from associative_lstm.lab.experiments.learning.wikipedia import WikipediaFigure, figure_10
from associative_lstm.lab.experiments.recall.cost import plan as plan_of
from associative_lstm.lab.experiments.recall.cost import points as timed
from associative_lstm.lab.experiments.recall.grid import needed
from associative_lstm.lab.experiments.recall.study import RecallStudy
from associative_lstm.lab.files import RunError
from associative_lstm.lab.sweep.jobs import Execute, GridProgress, Show
from associative_lstm.lab.tasks.enwik8 import find_corpus, keep_enwik8

RUNS, OUT, SMOKE = Path("results/runs"), Path("results"), Path("runs/smoke")

Out = Annotated[Path, typer.Option(help="The folder for pictures, tables and verdicts, one folder each.")]
Runs = Annotated[Path, typer.Option(help="The folder of the runs: what is there and done is not made again.")]
Seed = Annotated[int, typer.Option(help="The first of the seeds.", min=0)]
Smoke = Annotated[
    bool, typer.Option("--smoke", help="Tiny networks and a few minibatches, to see that it works.")
]


Recipe = Annotated[
    Literal["paper", "fast"],
    typer.Option(
        help="Train as the paper did, or by the fast recipe, for the second verdict of every claim."
    ),
]
Network = Annotated[
    list[str] | None, typer.Option(help="Make the runs of this network only; may be repeated.")
]
Draw = Annotated[bool, typer.Option("--draw", help="Make no runs: draw and judge from those that are there.")]


def command(figure: LearningFigure | InsideStudy) -> Callable[..., None]:
    """The subcommand of a figure."""

    def reproduce(
        runs: Runs = RUNS,
        out: Out = OUT,
        jobs: Jobs = 1,
        seed: Seed = 0,
        smoke: Smoke = False,
        cluster: Cluster = None,
        address: Address = None,
    ) -> None:
        """Makes what is missing of the runs, then draws and judges."""
        run_figures([figure], runs, out, jobs, seed, smoke, cluster, address)

    def reproduce_learning(
        runs: Runs = RUNS,
        out: Out = OUT,
        recipe: Recipe = "paper",
        network: Network = None,
        draw: Draw = False,
        jobs: Jobs = 1,
        seed: Seed = 0,
        smoke: Smoke = False,
        cluster: Cluster = None,
        address: Address = None,
    ) -> None:
        """Makes what is missing of the runs, then draws and judges."""
        if draw and isinstance(figure, LearningFigure):
            refuse_choices(recipe != "paper" or network or cluster)
            draw_figures([figure], runs, out, seed, smoke)
            return
        chosen = partial(_chosen, recipe=recipe, networks=network or ())
        run_figures([figure], runs, out, jobs, seed, smoke, cluster, address, chosen)

    return reproduce_learning if isinstance(figure, LearningFigure) else reproduce


def _chosen(
    figure: LearningFigure | InsideStudy, *, recipe: str = "paper", networks: Sequence[str] = ()
) -> list[Curve]:
    """The curves of a figure that are asked for: of a recipe, and of some networks."""
    needed = figure.needed
    if recipe == "fast" and isinstance(figure, LearningFigure):
        needed = figure.needed_fast or [c for c in needed if c.network.steps is not None]
    known = list(dict.fromkeys(c.network.name for c in needed))
    if unknown := [name for name in networks if name not in known]:
        raise ValueError(f"network must be one of {', '.join(known)}, got {unknown[0]!r}")
    return [c for c in needed if not networks or c.network.name in networks]


def refuse_choices(given: object) -> None:
    if given:
        raise ValueError("--draw makes no runs: leave out what chooses them")


def draw_figures(
    figures: Sequence[LearningFigure], runs: Path, out: Path, seed: int, smoke: bool = False
) -> None:
    """Draw and judge the figures from the runs that are there."""
    runs, out = _places(runs, out, smoke)
    if not runs.is_dir():
        raise RunError(f"{runs} is not a folder of runs")
    logs = Logs(runs, preparation(seed=seed, quick=smoke))
    for figure in figures:
        folder = out / figure.name
        print_outcome(figure.recorded(folder).draw(folder, logs, first_seed=seed, smoke=smoke))


def run_figures(
    figures: Sequence[LearningFigure | InsideStudy],
    runs: Path,
    out: Path,
    jobs: int,
    seed: int,
    smoke: bool,
    cluster: str | None = None,
    address: str | None = None,
    chosen: Callable[[LearningFigure | InsideStudy], list[Curve]] = _chosen,
) -> None:
    """Make the runs of the figures in one grid, those that are ``chosen`` of each, then draw and judge."""
    runs, out = _places(runs, out, smoke)
    logs = Logs(runs, preparation(seed=seed, quick=smoke))
    folders = {figure.name: out / figure.name for figure in figures}
    about = {"first_seed": seed, "smoke": smoke}
    with executing(jobs, cluster, address) as execute:
        _make_and_draw(figures, logs, folders, execute, about, chosen)


def _make_and_draw(
    figures: Sequence[LearningFigure | InsideStudy],
    logs: Logs,
    folders: Mapping[str, Path],
    execute: Execute,
    about: Mapping[str, object],
    chosen: Callable[[LearningFigure | InsideStudy], list[Curve]] = _chosen,
) -> None:
    wanted = [c for figure in figures for c in chosen(figure)]
    with live_line(figures[0].short.lower() if len(figures) == 1 else "all figures", 30.0) as line:
        failed = make_runs(logs.folder, map(logs.prepare, wanted), execute, _shown_on(line))
    for figure in figures:
        print_outcome(_drawn(figure, folders[figure.name], logs, about))
    _refuse_failed(failed)


def _shown_on(line: Callable[[int, int, str], None]) -> Show:
    """What shows where a grid is, on a live line."""

    def show(p: GridProgress) -> None:
        words = f"{p.steps_done:,}/{p.steps:,} minibatches, {p.runs_done}/{p.runs} runs"
        line(p.steps_done, p.steps, f"{words}, {so_long(p.seconds_left)}")

    return show


def _refuse_failed(failed: Sequence[str]) -> None:
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise RunError(f"not all runs were made: {failed[0]}{more}; the same command goes on from there")


def _drawn(
    figure: LearningFigure | InsideStudy, folder: Path, logs: Logs, about: Mapping[str, object]
) -> Outcome:
    if isinstance(figure, LearningFigure):
        return figure.draw(folder, logs, **about)
    with progress_bar("looking into networks", len(figure.runs(logs))) as advance:
        return figure.draw(folder, logs, advance=advance, **about)


def recall_command(study: RecallStudy) -> Callable[..., None]:
    """The subcommand of the comparison with today's networks."""

    def reproduce(
        runs: Runs = RUNS,
        out: Out = OUT,
        jobs: Jobs = 1,
        seed: Seed = 0,
        only: Annotated[
            list[str] | None, typer.Option(help="Make the runs of this setting only; may be repeated.")
        ] = None,
        plan: Annotated[
            bool, typer.Option("--plan", help="Make no runs: measure steps, and say how long all will take.")
        ] = False,
        smoke: Smoke = False,
        cluster: Cluster = None,
        address: Address = None,
    ) -> None:
        """Makes what is missing of the runs, setting by setting, then draws and judges. A night on two cores; it may
        be stopped at any time, and the same command goes on.
        """
        settings = needed(only or ())
        if plan:
            _print_plan(settings, jobs)
            return
        runs, out = _places(runs, out, smoke)
        prepare = preparation(seed=seed, quick=smoke)
        failed: list[str] = []
        with executing(jobs, cluster, address) as execute:
            for name, curves in settings.items():
                with live_line(name, 30.0) as line:
                    prepared = [prepare(curve) for curve in curves]
                    failed += make_runs(runs, prepared, execute, _shown_on(line))
        about = {"first_seed": seed, "smoke": smoke}
        with progress_bar("timing networks", len(timed())) as advance:
            seconds = 0.1 if smoke else 4.0
            logs = Logs(runs, prepare)
            print_outcome(study.draw(out / study.name, logs, advance=advance, seconds=seconds, **about))
        _refuse_failed(failed)

    return reproduce


def _print_plan(settings: Mapping[str, object], jobs: int) -> None:
    """How long the settings will take, network by network."""
    table, all_hours = Table("setting", "network", "ms", "runs", "core-hours", box=SIMPLE), 0.0
    with progress_bar("measuring steps", len(settings)) as advance:
        for name in settings:
            for network, milliseconds, runs, hours in plan_of(name):
                table.add_row(name, network, f"{milliseconds:.0f}", str(runs), f"{hours:.2f}")
                all_hours += hours
            advance()
    console.print(table)
    said = f"in all {all_hours:.1f} core-hours: {all_hours / jobs:.1f} hours with --jobs {jobs}"
    console.print(f"{said}; more where rates beyond those of the sweep are asked for")


def wikipedia_command(figure: WikipediaFigure) -> Callable[..., None]:
    """The subcommand of the figure that has a text of its own."""

    def reproduce(
        data: Annotated[
            Path | None, typer.Option(help="The text (plain, .gz or .zip; default: enwik8, downloaded once).")
        ] = None,
        steps: Annotated[
            int | None, typer.Option(help="Minibatches of a run (default: one pass, 96000).", min=1)
        ] = None,
        recipe: Recipe = "paper",
        network: Network = None,
        draw: Draw = False,
        jobs: Jobs = 1,
        runs: Annotated[
            Path | None,
            typer.Option(help="The folder of all runs; what is in it goes on (default: results/runs)."),
        ] = None,
        out: Annotated[
            Path | None, typer.Option(help="The folder to write to (default: results/fig10).")
        ] = None,
        smoke: Smoke = False,
        cluster: Cluster = None,
        address: Address = None,
        seed: Annotated[int, typer.Option(help="The figure has one seed, 0.", min=0, max=0)] = 0,
    ) -> None:
        """Hours per network, which makes one or two passes, with its best learning rates. It may be stopped at any
        time: the same command goes on from the checkpoints. Logs that came without these, as in a clone, begin again
        if they are not whole: give another --runs to keep them.
        """
        runs = runs or (SMOKE / "runs" if smoke else RUNS)
        out = out or (SMOKE if smoke else OUT) / figure.name
        if draw:
            refuse_choices(data or steps or network or cluster or smoke or recipe != "paper")
            if not runs.is_dir():
                raise RunError(f"{runs} is not a folder of runs")
            print_outcome(figure.recorded(out).draw(out, Logs(runs)))
            return
        text = None
        if smoke:
            refuse_results(runs, out)
            if data is not None:
                raise ValueError("--smoke has a text of its own: leave out --data")
        else:
            text = keep_enwik8(data or find_corpus(progress=errors.print), errors.print)
        chosen = figure_10(text, steps, network or (), recipe=recipe, smoke_in=runs if smoke else None)
        chosen.refuse_other_texts(runs)
        with executing(jobs, cluster, address) as execute:
            _make_and_draw([chosen], Logs(runs), {figure.name: out}, execute, {})
        if smoke:
            errors.print("tiny networks on a tiny text: the verdicts mean nothing")

    return reproduce


def _places(runs: Path, out: Path, smoke: bool) -> tuple[Path, Path]:
    """The folders of runs and results: what --smoke makes is never among the results."""
    if smoke:
        runs, out = (SMOKE / "runs" if runs == RUNS else runs), (SMOKE if out == OUT else out)
        refuse_results(runs, out)
    return runs, out


def refuse_results(*folders: Path) -> None:
    """What --smoke makes must not be among the recorded results."""
    recorded = OUT.resolve()
    if any(path.resolve() == recorded or recorded in path.resolve().parents for path in folders):
        raise RunError(f"--smoke makes no results: choose folders outside {recorded}")
