"""The picture: accuracy against the size of the state, and against pairs over copies."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from associative_lstm.lab.draw.pictures import style
from associative_lstm.lab.draw.tables import Measured
from associative_lstm.lab.experiments.recall.grid import (
    COPIES,
    HEADS,
    OPEN,
    OURS,
    PAIRS,
    SETTINGS,
    SHIFT,
    Point,
)
from associative_lstm.lab.experiments.recall.published import MQAR
from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.palette import BLUE, CYCLE, SKY

_OURS = {OURS: (BLUE, "-", "o"), SHIFT: (BLUE, "--", "s"), HEADS: (BLUE, ":", "D"), OPEN: (SKY, "-", "^")}


def draw(measured: Measured) -> Figure:
    """Two panels of accuracy by state, and one of what copies buy: of those that something was measured for."""
    names = [name for name in ("stacked", "mqar") if any(setting == name for setting, _ in measured)]
    with style():
        figure = Figure(figsize=(4.5 * len(names) + 4.5, 5.6 if names else 4.5), layout="constrained")
        *by_state, copies = figure.subplots(1, len(names) + 1, squeeze=False)[0]
        for axes, name in zip(by_state, names, strict=True):
            _by_state(axes, measured, name)
            if name == "mqar":
                _published(axes)
        _by_ratio(copies, measured)
        handles = {
            label: handle
            for axes in by_state
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        if handles:
            figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=9)
        return figure


def _published(axes: Axes) -> None:
    for name, kilobytes, accuracy in MQAR:
        place = (kilobytes * 250, accuracy)
        axes.plot(*place, "x", color="0.55")
        axes.annotate(name, place, fontsize=7, color="0.45", xytext=(3, 2), textcoords="offset points")
    axes.plot([], [], "x", color="0.55", label="published, other training")


def _look(point: Point) -> tuple[str, str, str]:
    if point.kind.startswith("Associative LSTM"):
        return _OURS.get(point.kind, (SKY, "-" if point.values["copies"] == 4 else "--", "o"))
    colour, line = NETWORKS[point.values["model"]].look(point.values)
    return colour, line, "o"


def _by_state(axes: Axes, measured: Measured, name: str) -> None:
    kinds: dict[str, list[Point]] = {}
    for point in SETTINGS[name].points:
        if (name, point.name) in measured:
            kinds.setdefault(point.kind, []).append(point)
    for kind, points in kinds.items():
        rows = [measured[name, point.name] for point in points]
        x = [float(some[0]["state"]) for some in rows]
        all_of = [[float(row["accuracy"]) for row in some] for some in rows]
        colour, line, marker = _look(points[0])
        axes.plot(
            x, [np.mean(some) for some in all_of], line, marker=marker, color=colour, label=kind, markersize=5
        )
        axes.vlines(
            x, [min(some) for some in all_of], [max(some) for some in all_of], color=colour, alpha=0.4
        )
    axes.set(title=SETTINGS[name].title, xlabel="numbers of state", ylabel="accuracy", ylim=(0, 1.03))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")


def _by_ratio(axes: Axes, measured: Measured) -> None:
    for colour, copies in zip(CYCLE, COPIES, strict=False):
        name = f"associative-64-{copies}"
        there = [pairs for pairs in PAIRS if (f"copies-{pairs}", name) in measured]
        means = [np.mean([row["accuracy"] for row in measured[f"copies-{p}", name]]) for p in there]
        if there:
            axes.plot([p / copies for p in there], means, "o-", color=colour, label=f"{copies}", markersize=5)
    axes.set(title="Stacked MQAR, N_h 64", xlabel="pairs / copies", ylabel="accuracy", ylim=(0, 1.03))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    if axes.lines:
        axes.legend(title="copies", fontsize=9)
