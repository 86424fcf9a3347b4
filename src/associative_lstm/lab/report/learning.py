"""The sections of the learning curves: plots, a table of every network, and how far the runs are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from associative_lstm.lab.experiments.learning.curves import STARTS, Curve, Network, copies_in_words
from associative_lstm.lab.experiments.learning.decisions import spread
from associative_lstm.lab.experiments.learning.drawing import look_of
from associative_lstm.lab.experiments.learning.figures import Prepare, panels_of
from associative_lstm.lab.experiments.learning.measures import final_cost, solved_at
from associative_lstm.lab.experiments.learning.runs import CurveRuns, Run, read_curve
from associative_lstm.lab.report.lines import Json, learning_plot, series, unit_of
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
class Panel:
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


def panels(name: str, runs: Runs, prepare: Prepare) -> list[Panel]:
    """The plots of one of the figures, from what there is of its runs."""
    found = []
    planned = panels_of(name)
    for title, curves in planned.items():
        single = len(planned) == 1
        identifier = name if single else f"{name}-{curves[0].task}"
        read = [_read(runs, prepare(curve)) for curve in curves]
        labels = {c.network.name: c.network.label if name != "starts" else _start(c.network) for c in curves}
        entries = [
            series(
                labels[c.curve.network.name],
                look_of(c.curve.network),
                {"best": _ids(runs, c.runs), "sweep": _ids(runs, list(c.sweep.values()))},
                c.rate,
                "" if c.finished else state_of(c),
            )
            for c in read
        ]
        plot = learning_plot(title, curves[0].task, entries, "" if single else title)
        rates = sorted({rate for c in read for rate in (*c.curve.rates, *c.sweep)})
        rows = [_row(c, labels[c.curve.network.name], rates) for c in read]
        found.append(Panel(identifier, unit_of(curves[0].task), [f"{rate:g}" for rate in rates], rows, plot))
    return found


def _read(runs: Runs, curve: Curve) -> CurveRuns:
    """The curve; what can be read of its sweep if one of its runs cannot."""
    try:
        return read_curve(runs.folder, curve)
    except UNREADABLE:  # told by Runs, run by run
        first = curve.seeds[0]
        places = {rate: runs.name(curve.folder(runs.folder, rate, first)) for rate in curve.rates}
        sweep = {rate: runs.runs[name] for rate, name in places.items() if name in runs.runs}
        return CurveRuns(curve, sweep, None, [])


def _ids(runs: Runs, chosen: Sequence[Run]) -> list[str]:
    """The lines of the runs that have logged anything."""
    names = [runs.name(run.folder) for run in chosen if run.steps]
    return [name for name in names if name in runs.runs]


def state_of(c: CurveRuns) -> str:
    """How far the runs of a curve are, in words."""
    if c.finished:
        return "finished"
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


def _start(network: Network) -> str:
    """An Associative LSTM among others, by what tells it from them: copies, keys and forget gate."""
    copies = network.values["copies"]
    start = next(text for end, text, _ in STARTS if network.name == f"associative-lstm-{copies}{end}")
    return f"{copies_in_words(copies)}, {start}"


def _row(c: CurveRuns, label: str, rates: Sequence[float]) -> NetworkRow:
    def swept(rate: float) -> str:
        if rate not in c.sweep:
            return ""
        cost = c.sweep_cost(rate)
        if np.isfinite(cost):
            return f"{cost:.3g}"
        return "diverged" if c.sweep[rate].diverged else "…"

    final = solved = seconds = ""
    if c.finished:
        final = spread([final_cost(run, c.curve.steps) for run in c.runs], "diverged")
        solved = spread([solved_at(run) for run in c.runs])
        seconds = f"{np.mean([seconds_of(run) for run in c.runs]):,.0f}"
    return NetworkRow(
        label,
        f"runs:{c.curve.task}/{c.curve.network.name}" if c.sweep else "",
        state_of(c),
        c.finished,
        [(swept(rate), rate == c.rate) for rate in rates],
        final,
        solved,
        seconds,
    )
