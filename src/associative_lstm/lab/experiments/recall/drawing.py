"""The pictures: who recalls and who keeps track; what recall depends on besides; and how MQAR is learned."""

import functools
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from associative_lstm.lab.draw.pictures import style
from associative_lstm.lab.draw.tables import Measured
from associative_lstm.lab.experiments.recall.grid import (
    COPIES,
    DRAWN,
    HEADS,
    OPEN,
    OURS,
    PAIRS,
    SETTINGS,
    SHIFT,
    TRACKING,
    Point,
    stands_in_the_middle,
)
from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.palette import BLUE, SKY
from associative_lstm.lab.tasks import TASKS

_OURS = {OURS: (BLUE, "-", "o"), SHIFT: (BLUE, "--", "s"), HEADS: (BLUE, ":", "D"), OPEN: (SKY, "-", "^")}
_FEWER = {1: "v", 4: "s"}
"""Markers of ours with fewer copies."""


Panel = Callable[[Axes], None]

_ON_STATE = ("stacked", "mqar")
_BY_PAIRS = ("stacked", "stacked-64")


def draw(measured: Measured) -> Figure:
    """How much is recalled with how large a state, and who keeps track."""
    there = {setting for setting, _ in measured}
    panels: list[Panel] = [
        functools.partial(_by_size, measured=measured, name=name, what="state")
        for name in _ON_STATE
        if name in there
    ]
    if tracked := [name for name in TRACKING if name in there]:
        panels.append(functools.partial(_beyond, measured=measured, tracked=tracked))
    return _in_a_row(panels)


def draw_dependence(measured: Measured) -> Figure:
    """What else recall depends on: weights, pairs, and copies."""
    there = {setting for setting, _ in measured}
    panels: list[Panel] = []
    if "stacked" in there:
        panels.append(functools.partial(_by_size, measured=measured, name="stacked", what="parameters"))
    if there.issuperset(_BY_PAIRS):
        panels.append(functools.partial(_by_pairs, measured=measured))
    if there.intersection(f"copies-{pairs}" for pairs in PAIRS):
        panels.append(functools.partial(_by_ratio, measured=measured))
    return _in_a_row(panels)


def _in_a_row(panels: Sequence[Panel]) -> Figure:
    """The panels beside each other, with one legend for those that have none of their own."""
    with style():
        columns = max(1, len(panels))
        figure = Figure(figsize=(4.6 * columns, 5.2), layout="constrained")
        handles: dict[str, Artist] = {}
        for axes, panel in zip(figure.subplots(1, columns, squeeze=False).flat, panels, strict=False):
            panel(axes)
            if axes.get_legend() is None:
                shown, labels = axes.get_legend_handles_labels()
                handles |= dict(zip(labels, shown, strict=True))
        if handles:
            shown, labels = list(handles.values()), list(handles)
            figure.legend(shown, labels, loc="outside lower center", ncols=columns, fontsize=9)
        return figure


def _look(point: Point) -> tuple[str, str, str]:
    if point.kind.startswith("Associative LSTM"):
        return _OURS.get(point.kind, (SKY, "", _FEWER.get(point.values["copies"], "o")))
    colour, line = NETWORKS[point.values["model"]].look(point.values)
    if point.values.get("negative_eigenvalues"):
        return colour, "--", "*"
    return colour, "" if point.kind == "Attention" else line, "o"


def _by_size(axes: Axes, measured: Measured, name: str, what: str) -> None:
    """A line for every kind of network, by its numbers of state or its weights, and a small dot for every seed.

    Diamonds: what longer training made of those that had recalled less of MQAR.
    """
    kinds: dict[str, list[Point]] = {}
    for point in SETTINGS[name].points:
        if (name, point.name) in measured:
            kinds.setdefault(point.kind, []).append(point)
    for kind, points in kinds.items():
        rows = [measured[name, point.name] for point in points]
        x = np.array([float(some[0][what]) for some in rows])
        all_of = [[float(row["accuracy"]) for row in some] for some in rows]
        colour, line, marker = _look(points[0])
        ours, grows = kind.startswith("Associative LSTM"), kind == "Attention"
        axes.plot(
            x,
            [np.mean(some) for some in all_of],
            linestyle=line or "none",
            marker=marker,
            color=colour,
            markerfacecolor="white" if grows else colour,
            linewidth=2.4 if ours else 1.2,
            markersize=8 if marker == "*" else 6 if ours else 5,
            zorder=3 if ours else 2,
            label=f"{kind} (its state grows)" if grows else kind,
        )
        for place, some in zip(x, all_of, strict=True):
            _dots(axes, place, some, colour)
        for point in points if name == "mqar" else ():
            if longer := measured.get(("mqar-long", point.name)):
                values, place = [float(row["accuracy"]) for row in longer], float(longer[0][what])
                axes.plot(place, np.mean(values), "D", color=colour, markerfacecolor="white", markersize=7)
                _dots(axes, place, values, colour)
    _guess(axes, 1 / SETTINGS[name].values.get("pairs", 4))
    passes = ", in 13 passes (diamonds: 32)" if name == "mqar" else ""
    axes.set(title=SETTINGS[name].title + passes, ylabel=_ACCURACY, ylim=(0, 1.03))
    axes.set_xlabel("numbers of state" if what == "state" else "weights")
    axes.set_xscale("log", base=2 if what == "state" else 10)
    if what != "state":
        axes.set_xticks([30_000, 100_000, 300_000])
        axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")


_ACCURACY = "accuracy (small dots: seeds)"


def _dots(axes: Axes, place: float, values: Sequence[float], colour: str) -> None:
    axes.plot([place] * len(values), values, ".", color=colour, markersize=3, alpha=0.7)


def _guess(axes: Axes, chance: float) -> None:
    axes.axhline(chance, color="0.6", linewidth=1, linestyle=":")
    axes.text(0.99, chance, "guessing among the values shown", color="0.45", fontsize=8, ha="right", va="bottom",
              transform=axes.get_yaxis_transform())  # fmt: skip


def _by_pairs(axes: Axes, measured: Measured) -> None:
    """A line for every kind of network of about 1,024 numbers."""
    for point in SETTINGS[_BY_PAIRS[-1]].points:
        found = {name: measured[name, point.name] for name in _BY_PAIRS if (name, point.name) in measured}
        if not found:
            continue
        x = [SETTINGS[name].values["pairs"] for name in found]
        all_of = [[float(row["accuracy"]) for row in rows] for rows in found.values()]
        colour, line, marker = _look(point)
        means = [np.mean(some) for some in all_of]
        axes.plot(x, means, linestyle=line or "none", marker=marker, color=colour, label=point.kind)
        for place, some in zip(x, all_of, strict=True):
            _dots(axes, place, some, colour)
    axes.set(title="Stacked MQAR, about 1,024 numbers", xlabel="pairs", ylabel=_ACCURACY, ylim=(0, 1.03))
    axes.set_xticks([SETTINGS[name].values["pairs"] for name in _BY_PAIRS])


def _by_ratio(axes: Axes, measured: Measured) -> None:
    shades = colormaps["Blues"](np.linspace(0.35, 1, len(COPIES)))
    for colour, copies in zip(shades, COPIES, strict=True):
        name = f"associative-64-{copies}"
        there = [pairs for pairs in PAIRS if (f"copies-{pairs}", name) in measured]
        means = [np.mean([row["accuracy"] for row in measured[f"copies-{p}", name]]) for p in there]
        if there:
            axes.plot([p / copies for p in there], means, "o-", color=colour, label=f"{copies}", markersize=5)
    axes.set(title="Ours, N_h 64, stacked MQAR", xlabel="pairs / copies", ylabel="accuracy", ylim=(0, 1.03))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    if axes.lines:
        axes.legend(title="copies", fontsize=9)


def _beyond(axes: Axes, measured: Measured, tracked: list[str]) -> None:
    """Of every task of state tracking, how often networks are right beyond the lengths that were trained."""
    kinds = dict.fromkeys(point.kind for name in tracked for point in SETTINGS[name].points)
    for column, name in enumerate(tracked):
        for k, kind in enumerate(kinds):
            point = next((p for p in SETTINGS[name].points if p.kind == kind), None)
            if point is None or (name, point.name) not in measured:
                continue
            colour, line, marker = _look(point)
            place = column + 0.7 * (k / max(1, len(kinds) - 1) - 0.5)
            values = [float(row["longer"]) for row in measured[name, point.name]]
            _dots(axes, place, values, colour)
            axes.plot(
                [place],
                [np.mean(values)],
                linestyle=line or "none",
                marker=marker,
                color=colour,
                markerfacecolor="white" if kind == "Attention" else colour,
                markersize=8 if marker == "*" else 6,
                label=f"{kind} (its state grows)" if kind == "Attention" else kind,
            )
        guess = 2 ** -TASKS[SETTINGS[name].task].chance
        axes.plot([column - 0.4, column + 0.4], [guess, guess], ":", color="0.6", linewidth=1)
    axes.set_xticks(range(len(tracked)), [SETTINGS[name].title.replace(" ", "\n", 1) for name in tracked])
    axes.set(title="Beyond the lengths trained", ylabel="accuracy (dotted line: guessing)", ylim=(0, 1.03))


def draw_learning(measured: Measured) -> Figure | None:
    """What an answer of MQAR costs in training, by minibatch, a line for every seed."""
    panels = [
        (name, point)
        for name in DRAWN
        for point in SETTINGS[name].points
        if measured.get((name, point.name)) and stands_in_the_middle(point)
    ]
    if not panels:
        return None
    columns = min(5, len(panels))
    lines = -(-len(panels) // columns)
    with style():
        figure = Figure(figsize=(2.7 * columns, 2.5 * lines + 0.3), layout="constrained")
        grid = list(figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).flat)
        for axes, (name, point) in zip(grid, panels, strict=False):
            for row in measured[name, point.name]:
                axes.plot(*np.array(row["bits"]).T, color=_look(point)[0], linewidth=1.4)
            axes.axhline(2, color="0.5", linewidth=1, linestyle=":")
            title = point.kind if name == "mqar" else f"{point.kind},\nwithout the symbol before"
            axes.set_title(title, fontsize=10)
            axes.set(ylim=(0, 8.2))
        grid[0].text(0.98, 2.1, "a guess among the four", color="0.35", fontsize=9, ha="right", va="bottom",
                     transform=grid[0].get_yaxis_transform())  # fmt: skip
        for k, axes in enumerate(grid):
            axes.set_visible(k < len(panels))
            axes.tick_params(labelbottom=k + columns >= len(panels))
        figure.supxlabel("minibatches", fontsize=12)
        figure.supylabel("bits an answer, in training", fontsize=12)
        return figure
