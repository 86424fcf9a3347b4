"""The plots of learning curves, each with a table of its networks and of how far their runs are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from associative_lstm.lab.experiments.learning.criteria import spread
from associative_lstm.lab.experiments.learning.curves import Curve
from associative_lstm.lab.experiments.learning.drawing import look_of
from associative_lstm.lab.experiments.learning.judging import LearningFigure
from associative_lstm.lab.experiments.learning.measures import final_cost, solved_at
from associative_lstm.lab.experiments.learning.runs import CurveRuns, Run
from associative_lstm.lab.experiments.learning.wikipedia import Passes, WikipediaFigure
from associative_lstm.lab.report.lines import Json, learning_plot, series, test_line_of, unit_of
from associative_lstm.lab.report.runs import UNREADABLE, Runs, seconds_of


@dataclass(frozen=True)
class NetworkRow:
    """A network in the table of a figure, as text; ``anchor`` is where its runs are in the page, if there are any.

    ``sweep`` has the cost at the end of the sweep with every rate, and whether it is the best.
    """

    label: str
    anchor: str
    state: str
    finished: bool
    sweep: list[tuple[str, bool]]
    final: str
    solved: str
    seconds: str


@dataclass(frozen=True)
class Plotted:
    """One plot with its table."""

    id: str
    unit: str
    rates: list[str]
    rows: list[NetworkRow]
    plot: Json

    @property
    def state(self) -> str:
        """How many networks are finished, in words."""
        done = sum(row.finished for row in self.rows)
        return f"{done} of {len(self.rows)} networks finished" if done < len(self.rows) else ""


def plots_of(figure: LearningFigure, runs: Runs, lines: dict[str, Json]) -> list[Plotted]:
    """The plots of a figure, from what there is of its runs; costs of a test text are added to ``lines``."""
    if isinstance(figure, WikipediaFigure):
        return _test_plots(figure, runs, lines)
    found = []
    longer = [p for p in figure.long_panels if any(_read(runs, c).runs for c in p.curves)]
    for stem, title, planned, names, _ in (*figure.panels, *longer):
        read = [_read(runs, curve) for curve in planned]
        labels = names or [c.label for c in read]
        entries = [
            series(
                label,
                look_of(c.curve.network),
                {"best": _ids(runs, c.runs), "sweep": _ids(runs, c.sweep.values())},
                c.rate,
                "" if c.finished else state_of(c),
            )
            for label, c in zip(labels, read, strict=True)
        ]
        task = planned[0].task
        caption = title if len(figure.panels) + len(longer) > 1 else ""
        plot = learning_plot(title, task, entries, caption)
        rates = sorted({rate for c in read for rate in (*c.curve.rates, *c.sweep)})
        rows = [_row(c, label, rates) for label, c in zip(labels, read, strict=True)]
        found.append(Plotted(stem, unit_of(task), [f"{rate:g}" for rate in rates], rows, plot))
    return found


def _read(runs: Runs, curve: Curve) -> CurveRuns:
    """The curve; what can be read of its sweep if one of its runs cannot."""
    try:
        return runs.logs.curve(curve)
    except UNREADABLE:  # told by Runs, run by run
        prepared = runs.logs.prepare(curve)
        first, folder = prepared.swept_with, runs.logs.folder
        places = {rate: runs.logs.name(prepared.folder(folder, rate, first)) for rate in prepared.rates}
        sweep = {rate: runs.runs[name] for rate, name in places.items() if name in runs.runs}
        return CurveRuns(prepared, sweep, None, [])


def _ids(runs: Runs, chosen: Iterable[Run]) -> list[str]:
    """The lines of the runs that have logged anything."""
    names = [runs.logs.name(run.folder) for run in chosen if run.steps]
    return [name for name in names if name in runs.runs]


def state_of(c: CurveRuns) -> str:
    """How far the runs of a curve are, in words."""
    if c.finished:
        return "finished"
    if c.can_be_judged:
        return c.lacks
    if not c.sweep:
        return "not run yet"
    if c.rate is None:
        ended = [rate for rate, run in c.sweep.items() if run.diverged or run.steps >= c.curve.sweep_steps]
        if len(ended) < len(c.curve.rates):
            return f"sweep under way: {len(ended)} of {len(c.curve.rates)} rates"
        if c.always_diverged:
            return "diverged with every rate"
        return "the best rate is not settled yet"
    whole = [run for run in c.runs if run.diverged or run.steps >= c.curve.steps]
    seeds = "seed" if len(c.curve.seeds) == 1 else "seeds"
    return f"{len(whole)} of {len(c.curve.seeds)} {seeds} finished"


def _row(c: CurveRuns, label: str, rates: Sequence[float]) -> NetworkRow:
    final = solved = seconds = ""
    if c.can_be_judged:
        final = spread([final_cost(run, c.length) for run in c.runs], "diverged")
        solved = spread([solved_at(run) for run in c.runs])
        seconds = f"{np.mean([seconds_of(run) for run in c.runs]):,.0f}"
    state = state_of(c)
    return NetworkRow(label, _anchor(c), state, c.finished, _sweep(c, rates), final, solved, seconds)


def _anchor(c: CurveRuns) -> str:
    network = c.curve.network
    return f"runs:{c.curve.task}/{network.same_as or network.name}" if c.sweep else ""


def _sweep(c: CurveRuns, rates: Sequence[float]) -> list[tuple[str, bool]]:
    def swept(rate: float) -> str:
        if rate not in c.sweep:
            return ""
        cost = c.sweep_cost(rate)
        if np.isfinite(cost):
            return f"{cost:.3g}"
        return "diverged" if c.sweep[rate].diverged else "…"

    return [(swept(rate), rate == c.rate) for rate in rates]


# --- the figure whose measure is the cost of a test text


def _test_plots(figure: WikipediaFigure, runs: Runs, lines: dict[str, Json]) -> list[Plotted]:
    """The cost of the test text, and that of the training text."""
    (panel,) = figure.panels
    every = [Passes(_read(runs, curve), figure.whole) for curve in (*panel.curves, *figure.needed_fast)]
    passes = [p for p in every if p.found.curve in panel.curves or p.found.sweep]
    for run in (run for p in passes for run in (*p.found.sweep.values(), *p.runs) if run.tests):
        lines[f"{runs.logs.name(run.folder)}#test"] = test_line_of(run)
    rows = [_pass_row(p) for p in passes]
    late = [run.cost[run.step > run.steps / 20] for p in passes for run in p.found.sweep.values()]
    plots: list[Plotted] = []
    for what, end in (("the whole test text", "#test"), ("training", "")):
        entries = []
        for p, row in zip(passes, rows, strict=True):
            shown, swept = ([] if p.shown is None else [p.shown]), list(p.found.sweep.values())
            chosen, ids = ([f"{name}{end}" for name in _ids(runs, some)] for some in (shown, swept))
            views = {"best": [i for i in chosen if i in lines], "sweep": [i for i in ids if i in lines]}
            rate = None if p.shown is None else p.shown.config.learning_rate
            note = "" if row.finished else row.state
            entries.append(series(p.found.label, look_of(p.found.curve.network), views, rate, note))
        plot = learning_plot(f"{figure.title}, {what}", panel.curves[0].task, entries, f"Cost, {what}")
        # From 8 bits, the first minibatches would dwarf the rest: the axis begins where a twentieth is done.
        top = 1.05 * max((float(costs.max(initial=0.0)) for costs in late), default=0.0)
        plot["views"] = [{"key": "best", "name": "judged"}, {"key": "sweep", "name": "every rate"}]
        plot["y"] = [quantity | {"top": top, "zero": False} for quantity in plot["y"]]
        name = "test" if end else "training"
        unit = unit_of(panel.curves[0].task)
        plots.append(Plotted(f"{panel.stem}-{name}", unit, [], [] if plots else rows, plot))
    return plots


def _pass_row(p: Passes) -> NetworkRow:
    run, done, state = p.shown, p.best is not None, "finished"
    if run is None:
        state = state_of(p.found)
    elif run.diverged and not done:
        state = f"diverged after {run.steps:,} minibatches"
    elif not done:
        state = f"{run.steps:,} of {p.whole:,} minibatches"
    tested = [] if run is None else [f"{cost:.4g} on the test text" for cost in run.tests.values()][-1:]
    final = ", ".join([*tested, *([] if done else [state])])
    seconds = "" if run is None else f"{seconds_of(run):,.0f}"
    return NetworkRow(p.found.label, _anchor(p.found), state, done, [], final, "", seconds)
