"""The pictures of the learning curves: a figure of the paper, and the whole sweep behind it."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator

from associative_lstm.lab.draw.pictures import style
from associative_lstm.lab.experiments.learning.curves import Network
from associative_lstm.lab.experiments.learning.measures import answer_cost, final_cost, smoothed, window_of
from associative_lstm.lab.experiments.learning.runs import CurveRuns
from associative_lstm.lab.networks import NETWORKS, Look
from associative_lstm.lab.tasks import TASKS


def look_of(network: Network) -> Look:
    """How a network is drawn, the same in every figure."""
    return network.look or NETWORKS[network.values["model"]].look(network.values)


def draw_figure(title: str, curves: Sequence[CurveRuns], logarithmic: bool = False) -> Picture:
    """The median of the seeds, averaged over 500 minibatches, and thinly every seed; linear beside logarithmic.

    On the copy tasks, where seeds relapse and would drag a median up and down, it is that of the lowest costs so far,
    beside every seed as it is. From chance downwards: some networks leap far above it for a moment.
    ``logarithmic``: the minibatches too.
    """
    task = TASKS[curves[0].curve.task]
    relapses = task.episodic
    chance, upwards = task.chance, "bits on the answer" if task.episodic else task.unit
    with style():
        picture = Picture((10.5, 5.6), layout="constrained")
        left, right = picture.subplots(1, 2)
        for axes in (left, right):
            for c in curves:
                _draw_curve(axes, c, ("lowest" if axes is left else "seeds") if relapses else "median")
            axes.axhline(chance, color="0.6", linewidth=1, linestyle=":")
            axes.set(xlabel="minibatches", ylabel=upwards)
            if logarithmic:
                axes.set_xscale("log")
            else:
                axes.set_xlim(0, None)
                axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.xaxis.set_major_formatter("{x:,.0f}")
        left.text(0.99, chance, "remembering nothing", color="0.45", fontsize=9, ha="right", va="bottom",
                  transform=left.get_yaxis_transform())  # fmt: skip
        left.set_ylim(0, 1.2 * chance)
        right.set_yscale("log")
        _label_plainly(right.yaxis)
        lowest, _ = right.get_ylim()
        right.set_ylim(max(lowest, (3e-3 if relapses else 1e-4) * chance), 1.2 * chance)
        _legend(picture, left, loc="outside lower left", ncols=2)
        picture.suptitle(title, x=0.01, ha="left", fontsize=14)
        most = max((len(c.runs) for c in curves), default=0)
        swept = any(len(c.curve.rates) > 1 for c in curves)
        rates = "every network at its best rate" if swept else "all at the same rate"
        seeds = f"up to {most} seeds" if most > 1 else "one seed"
        if relapses:
            shown = f"lowest so far, {'median of ' * (most > 1)}{seeds}", "every seed as it was, logarithmic"
        else:
            shown = f"median of {seeds}, and each" if most > 1 else seeds, f"the same, logarithmic; {rates}"
        for axes, said in zip((left, right), shown, strict=True):
            axes.set_title(said, loc="left", fontsize=11, color="0.35")
    return picture


def _label_plainly(axis: Axis) -> None:
    """A logarithmic axis says 0.6, and not 6 times a power of ten."""

    def between(x: float, _: float) -> str:
        lowest, highest = axis.get_view_interval()
        return (
            f"{x:g}" if highest < 30 * lowest and f"{x:e}"[0] in "246" else ""
        )  # else powers of ten are enough

    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(between)


def _legend(picture: Picture, axes: Axes, **where: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        # Two columns of the longest are as wide as the picture.
        size = min(10.0, 58 * picture.get_figwidth() / max(map(len, labels)))
        picture.legend(handles, labels, fontsize=size, **where)
    else:
        axes.text(0.5, 0.5, "no runs yet", transform=axes.transAxes, ha="center", color="0.35")


def _draw_curve(axes: Axes, c: CurveRuns, shown: Literal["median", "lowest", "seeds"]) -> None:
    """The median of the seeds and thinly each, the median of their lowest costs so far, or every seed alone."""
    colour, line = look_of(c.curve.network)
    runs = [run for run in c.runs if run.steps]
    if not runs:
        return
    whole = [run for run in runs if not run.diverged] or runs
    length = min(len(run.step) for run in whole)  # what all the seeds have, some of which may still go on
    runs = [run for run in runs if len(run.step) >= length]
    lines = min(window_of(runs[0]), length)
    values = np.stack([smoothed(answer_cost(run)[:length], lines) for run in runs])
    step = runs[0].step[lines - 1 : length]
    if shown == "seeds":
        axes.plot(step, values.T, linestyle=line, color=colour, alpha=0.6, linewidth=0.9)
        axes.plot([step[-1]] * len(values), values[:, -1], "o", color=colour, markersize=3)
        return
    rate = f", rate {c.rate:g}" if c.rate is not None else ""
    lost = sum(run.diverged is not None for run in c.runs)
    diverged = f", {lost} of {len(c.runs)} seeds diverged" if lost else ""
    label = f"{c.label}{rate}{diverged}"
    median = np.median(np.minimum.accumulate(values, axis=1) if shown == "lowest" else values, axis=0)
    axes.plot(step, median, linestyle=line, color=colour, label=label)
    axes.plot(step[-1:], median[-1:], "o", color=colour, markersize=4)  # where it ends
    if shown == "median" and len(runs) > 1:
        axes.plot(step, values.T, color=colour, alpha=0.35, linewidth=0.6)


def draw_sweep(title: str, curves: Sequence[CurveRuns]) -> Picture:
    """The cost at the end of the sweep against the learning rate, and the final costs of the seeds at the best."""
    with style():
        picture = Picture((8.5, 5.6), layout="constrained")
        axes = picture.subplots()
        for c in curves:
            colour, line = look_of(c.curve.network)
            rates = sorted(c.sweep)
            costs = [c.sweep_cost(rate) for rate in rates]
            shown = [(rate, cost) for rate, cost in zip(rates, costs, strict=True) if np.isfinite(cost)]
            if shown:
                x, y = zip(*shown, strict=True)
                label = f"{c.label}, after {c.curve.sweep_steps:,}"
                axes.plot(x, y, linestyle=line, marker="o", color=colour, label=label)
            ends = [final_cost(run, c.length) for run in c.runs]
            if c.rate is not None:
                axes.plot([c.rate] * len(ends), ends, "x", color=colour, markersize=7)
        task = TASKS[curves[0].curve.task]
        if not task.episodic:  # there the cost is that of the whole sequence
            axes.axhline(task.chance, color="0.6", linewidth=1, linestyle=":")
            axes.text(0.99, task.chance, "remembering nothing", color="0.45", fontsize=9, ha="right", va="bottom",
                      transform=axes.get_yaxis_transform())  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="learning rate", ylabel=task.unit)
        axes.set_xticks(sorted({rate for c in curves for rate in c.sweep} or {1e-3}))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        _label_plainly(axes.yaxis)
        _legend(picture, axes, loc="outside lower left", ncols=2)
        title = f"{title}: the sweep of learning rates"
        picture.suptitle(title, x=0.01, ha="left", fontsize=min(14.0, 1000 / len(title)))
        note = "dots: after so many minibatches, first seed; crosses: end of the run, every seed, best rate"
        axes.set_title(note, loc="left", fontsize=11, color="0.35")
    return picture
