"""The pictures of the learning curves: a figure of the paper, and the whole sweep behind it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import MaxNLocator, NullLocator

from associative_lstm.lab.draw.pictures import style
from associative_lstm.lab.experiments.learning.curves import Network
from associative_lstm.lab.experiments.learning.measures import (
    answer_cost,
    final_cost,
    has_lost_it,
    smoothed,
    window_of,
)
from associative_lstm.lab.experiments.learning.runs import SHARE, CurveRuns
from associative_lstm.lab.networks import NETWORKS, Look
from associative_lstm.lab.tasks import TASKS
from associative_lstm.lab.words import counted


def look_of(network: Network) -> Look:
    """How a network is drawn, the same in every figure."""
    return network.look or NETWORKS[network.values["model"]].look(network.values)


def draw_figure(title: str, curves: Sequence[CurveRuns], logarithmic: bool = False) -> Picture:
    """The median of the seeds, averaged over 500 minibatches, and thinly every seed; linear beside logarithmic.

    By the logarithm of minibatches over the last 3 % of them, where these are more: 500 are soon narrower than a
    line.
    Two seeds have no median: both are drawn. On the copy tasks, where seeds relapse and would drag a median up and
    down, it is that of the lowest costs so far, beside every seed as it was, network by network. From chance
    downwards: some networks leap far above it for a moment. ``logarithmic``: the minibatches too.
    """
    task = TASKS[curves[0].curve.task]
    relapses, chance = task.episodic, task.chance
    upwards = "bits on the answer" if relapses else task.unit
    most = max((len(c.runs) for c in curves), default=0)
    beside = [[c] for c in curves if c.runs] if relapses else [curves]  # what each picture on the right shows
    columns = max(1, -(-len(beside) // 3))
    with style():
        picture = Picture((10.5, 5.6), layout="constrained")
        halves: Any = picture.subfigures(1, 2)
        left: Axes = halves[0].subplots()
        grid = halves[1].subplots(
            -(-len(beside) // columns) or 1, columns, sharex=True, sharey=True, squeeze=False
        )
        right: list[Axes] = list(grid.flat)
        for axes in (left, *right):
            _remembering_nothing(axes, chance)
            axes.set_xscale("log" if logarithmic else "linear")
            if not logarithmic:
                axes.xaxis.set_major_locator(MaxNLocator(2 if axes is not left and columns > 1 else 5))
            axes.xaxis.set_major_formatter("{x:,.0f}")
        right[0].set_yscale("log")
        floor = (3e-3 if relapses else 1e-4) * chance
        for c in curves:
            _draw_curve(left, c, "lowest" if relapses else "median", most)
        for c in curves if most else ():
            if not any(run.steps for run in c.runs):
                colour, line = look_of(c.curve.network)
                none = "no whole runs yet" if c.sweep or c.given_up else "no runs yet"
                left.plot([], [], linestyle=line, color=colour, label=f"{c.label}: {none}")
        for axes, its in zip(right, beside, strict=False):
            for c in its:
                _draw_curve(axes, c, "seeds" if relapses else "median", most, floor)
            if len(beside) > 1:
                name = its[0].label.removeprefix("Associative LSTM 128, ")
                axes.set_title(_in_two_lines(name), fontsize=8)
        for k, axes in enumerate(right):
            axes.set_visible(k < max(1, len(beside)))
            axes.tick_params(labelbottom=k + columns >= len(beside))
        for axes in (left, right[0]):
            if not logarithmic:
                axes.set_xlim(0, None)
        lowest, _ = right[0].get_ylim()
        right[0].set_ylim(max(lowest, floor), 1.2 * chance)
        _label_plainly(right[0].yaxis)
        left.set(xlabel="minibatches", ylabel=upwards, ylim=(0, 1.2 * chance))
        if len(beside) == 1:
            right[0].set(xlabel="minibatches", ylabel=upwards)
        _legend(picture, left, loc="outside lower left", ncols=2)
        picture.suptitle(title, x=0.01, ha="left", fontsize=14)
        swept = any(len(c.curve.rates) > 1 for c in curves)
        rates = "every network at its best rate" if swept else "all at the same rate"
        seeds = {0: "no seeds", 1: "one seed", 2: "every seed"}.get(most, f"median of up to {most} seeds")
        if relapses:
            shown = f"lowest so far, {seeds}", "every seed as it was: bits (logarithmic) by minibatch"
        else:
            each = ", and each" if most > 2 else ""
            means = f", over 500 minibatches or {100 * _SHARE:g} %" if logarithmic else ""
            shown = f"{seeds}{each}{means}", f"the same, logarithmic; {rates}"
        for half, said in zip(halves, shown, strict=True):
            half.suptitle(said, x=0.02, ha="left", fontsize=11, color="0.35")
    return picture


def _in_two_lines(label: str) -> str:
    """A network's name, broken at a comma in its middle."""
    places = [k for k in range(len(label)) if label.startswith(", ", k)]
    if not places:
        return label
    middle = min(places, key=lambda k: abs(k - len(label) / 2))
    return f"{label[: middle + 1]}\n{label[middle + 2 :]}"


def _remembering_nothing(axes: Axes, chance: float) -> None:
    """The line at what remembering nothing costs."""
    axes.axhline(chance, color="0.6", linewidth=1, linestyle=":")


def _label_plainly(axis: Axis) -> None:
    """A logarithmic axis says 0.6, and not 6 times a power of ten; its limits are to be set before."""
    lowest, highest = axis.get_view_interval()
    if highest < 8 * lowest:  # a power of ten or none: even steps, as on a linear axis
        axis.set_major_locator(MaxNLocator(6))
        axis.set_minor_locator(NullLocator())
    between = "25" if highest < 100 * lowest else ""  # beyond, powers of ten are enough
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in between else "")


def _legend(picture: Picture, axes: Axes, **where: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        nothing = axes.plot([], [], color="0.6", linewidth=1, linestyle=":")
        handles, labels = [*handles, *nothing], [*labels, "remembering nothing"]
        # Two columns, each as wide as the longest in it with its line before it, are as wide as the picture.
        half = -(-len(labels) // 2)
        letters = sum(max(map(len, column)) for column in (labels[:half], labels[half:]) if column)
        size = min(10.0, 72 * picture.get_figwidth() / (0.58 * letters + 10))
        picture.legend(handles, labels, fontsize=size, **where)
    else:
        axes.text(0.5, 0.5, "no runs yet", transform=axes.transAxes, ha="center", color="0.35")
        for its in picture.axes:
            its.set(xticks=[], yticks=[])


def _draw_curve(
    axes: Axes, c: CurveRuns, shown: Literal["median", "lowest", "seeds"], most: int, floor: float = 0.0
) -> None:
    """The median of the seeds and thinly each, the median of their lowest costs so far, or every seed alone.

    Its name says what the line does not show: seeds that are fewer than the ``most``, diverged, or lost it again.
    What is below the ``floor`` is drawn there.
    """
    colour, line = look_of(c.curve.network)
    runs = [run for run in c.runs if run.steps]
    if not runs:
        return
    whole = [run for run in runs if not run.diverged] or runs
    length = min(len(run.step) for run in whole)  # what all the seeds have, some of which may still go on
    runs = [run for run in runs if len(run.step) >= length]
    lines = min(window_of(runs[0]), length)
    share = _SHARE if shown == "median" and axes.get_xscale() == "log" else 0.0
    values = np.maximum([_averaged(answer_cost(run)[:length], lines, share) for run in runs], floor)
    step = runs[0].step[lines - 1 : length]
    if shown == "seeds":
        axes.plot(step, values.T, linestyle=line, color=colour, alpha=0.6, linewidth=0.9)
        axes.plot([step[-1]] * len(values), values[:, -1], "o", color=colour, markersize=3)
        return
    rate = f", rate {c.rate:g}{'' if c.settled else ' so far'}" if c.rate is not None else ""
    for given_up, its in c.given_up.items():
        rate += f" ({given_up:g} {'diverged' if any(run.diverged for run in its) else 'lost it'})"
    said = [counted(len(c.runs), "seed")] if len(c.runs) < most else []
    said += [
        f"{count} of {len(c.runs)} {what}"
        for what, count in {
            "diverged": sum(run.diverged is not None for run in c.runs),
            "lost it at the end": sum(map(has_lost_it, c.runs)) if shown == "lowest" else 0,
        }.items()
        if count
    ]
    label = f"{c.label}{rate}" + (f" ({', '.join(said)})" if said else "")
    if shown == "lowest":
        values = np.minimum.accumulate(values, axis=1)
    thick = values if len(values) < 3 else np.median(values, axis=0, keepdims=True)
    for k, its in enumerate(thick):
        axes.plot(step, its, linestyle=line, color=colour, label=label if k == 0 else None)
        axes.plot(step[-1:], its[-1:], "o", color=colour, markersize=4)  # where it ends
    if shown == "median" and len(values) > 2:
        axes.plot(step, values.T, color=colour, alpha=0.35, linewidth=0.6)


_SHARE = 0.03


def _averaged(values: np.ndarray, lines: int, share: float) -> np.ndarray:
    """The mean over the last so many ``lines`` of a log before each, or over a ``share`` of all, if that is more.

    >>> _averaged(np.array([4.0, 2.0, 0.0, 4.0]), 1, 0.5)
    array([4., 2., 0., 2.])
    """
    if not share:
        return smoothed(values, lines)
    ends = np.arange(lines, len(values) + 1)
    starts = ends - np.maximum(lines, (share * ends).astype(int))
    sums = np.cumsum([0.0, *values])
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def draw_sweep(title: str, curves: Sequence[CurveRuns]) -> Picture:
    """The cost at the end of the sweep against the learning rate, and the final costs of the seeds at the best.

    Also, of rates that were trained longer, where the last of them were compared.
    """
    task = TASKS[curves[0].curve.task]
    floor = 1e-3 * task.chance

    with style():
        picture = Picture((8.5, 5.6), layout="constrained")
        axes = picture.subplots()

        def points(costs: Mapping[float, float], **how: Any) -> None:
            shown = {rate: max(cost, floor) for rate, cost in sorted(costs.items()) if np.isfinite(cost)}
            if shown:
                axes.plot(list(shown), list(shown.values()), **how)

        for c in curves:
            colour, line = look_of(c.curve.network)
            label = f"{c.label}, after {c.curve.sweep_steps:,}"
            first = {rate: c.sweep_cost(rate) for rate in c.sweep}
            points(first, linestyle=line, marker="o", color=colour, label=label)
            points(_longest_compared(c), linestyle="none", marker="o", color=colour, markerfacecolor="white")
            if c.rate is not None:
                ends = np.maximum([final_cost(run, c.length) for run in c.runs], floor)
                axes.plot([c.rate] * len(ends), ends, "x" if line == "-" else "+", color=colour, markersize=8)
        _remembering_nothing(axes, task.chance)
        axes.set(xscale="log", yscale="log", xlabel="learning rate", ylabel=task.unit)
        axes.set_xticks(sorted({rate for c in curves for rate in c.sweep} or {1e-3}))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        _label_plainly(axes.yaxis)
        _legend(picture, axes, loc="outside lower left", ncols=2)
        title = f"{title}: the sweep of learning rates"
        picture.suptitle(title, x=0.01, ha="left", fontsize=min(14.0, 1000 / len(title)))
        note = (
            "first seed, dots: after so many minibatches; hollow: those trained longer, as far as two went;\n"
        )
        note += "crosses: end of the run, every seed, best rate"
        axes.set_title(note, loc="left", fontsize=10, color="0.35")
    return picture


def _longest_compared(c: CurveRuns) -> dict[float, float]:
    """The costs of the rates that were trained beyond the first sweep, where the last two of them were compared."""
    lengths = sorted((run.steps for run in c.sweep.values() if not run.diverged), reverse=True)
    if len(lengths) < 2 or lengths[1] <= c.curve.sweep_steps:
        return {}
    until = lengths[1]
    return {rate: run.last(SHARE, until=until) for rate, run in c.sweep.items() if run.steps >= until}
