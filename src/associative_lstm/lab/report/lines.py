"""What is drawn: few points and few digits of each run, and the plots that share them.

The page holds one JSON object ``{"lines": {id: line}, "plots": {id: plot}}``, which its scripts draw. A line has
columns ``x`` and ``y`` by name (a regular column is ``{"from": a, "by": b}``); a plot names the columns that can be
chosen and has series, each with a colour, a dash pattern and the ids of its lines in every view.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from associative_lstm.lab.experiments.experiment import Points
from associative_lstm.lab.experiments.learning.measures import WINDOW, means
from associative_lstm.lab.experiments.learning.runs import Run
from associative_lstm.lab.palette import BLUE, NAMED, VERMILION
from associative_lstm.lab.tasks import TASKS

POINTS = 200
"""Points of a line at most; a longer log is averaged over as many lines as it takes."""

_NAMES = {value: name for name, value in NAMED.items()}  # the page's style may show black as white
_DASHES = {"-": "", "--": "7 4", "-.": "9 3 2 3", ":": "2 3"}

Json = dict[str, Any]


def digits(values: Iterable[float]) -> list[float | int | None]:
    """Numbers as the page has them: four significant digits, whole ones without a point, None where there is none.

    >>> digits([0.284762, 4.29863816, 12345.678, 0.0, float("nan")])
    [0.2848, 4.299, 12350, 0, None]
    """

    def short(value: float) -> float | int | None:
        if not math.isfinite(value):
            return None
        rounded = float(f"{value:.4g}")
        return int(rounded) if rounded.is_integer() else rounded

    return [short(float(value)) for value in values]


def steps(values: np.ndarray) -> Any:
    """A column of minibatches; a regular one in two numbers.

    >>> steps(np.array([100, 200, 300])), steps(np.array([100, 200, 250]))
    ({'from': 100, 'by': 100}, [100, 200, 250])
    """
    apart = np.diff(values)
    if len(apart) and (apart == apart[0]).all():
        return {"from": int(values[0]), "by": int(apart[0])}
    return [int(value) for value in values]


def line_of(run: Run) -> Json:
    """The learning curve of a run: at most ``POINTS`` points, each the mean of the minibatches since the last.

    How many lines of its log make a point depends on how long the run is to be, so that seeds share their points.
    """
    every = max(1, -(-max(len(run.step), run.config.steps // run.config.log_every) // POINTS))
    starts = np.arange(0, len(run.step), every)
    ends = np.minimum(starts + every, len(run.step)) - 1

    answer = {} if run.answer is None else {"answer": digits(means(run.answer, starts))}
    y = {"cost": digits(means(run.cost, starts))} | answer
    return _line(run, run.step[ends], run.seconds[ends], y, max(1, WINDOW // (run.config.log_every * every)))


def test_line_of(run: Run) -> Json:
    """The cost of the test text, wherever in the run it was measured."""
    step = np.array(list(run.tests))
    seconds = np.interp(step, run.step, run.seconds)
    return _line(run, step, seconds, {"cost": digits(run.tests.values())}, window=1)


def _line(run: Run, step: np.ndarray, seconds: np.ndarray, y: Json, window: int) -> Json:
    return {
        "name": f"rate {run.config.learning_rate:g}, seed {run.config.seed}",
        "rate": run.config.learning_rate,
        "x": {"minibatches": steps(step), "seconds": digits(seconds)},
        "y": y,
        "window": window,
        "diverged": run.diverged is not None,
    }


def series(
    name: str,
    look: tuple[str, str],
    views: Mapping[str, Sequence[str]],
    rate: float | None = None,
    note: str = "",
) -> Json:
    """One entry of a legend: how it is drawn, its lines in every view, and its best rate."""
    colour, dash = look
    return {
        "name": name,
        "label": name if rate is None else f"{name}, rate {rate:g}",
        "colour": _NAMES[colour],
        "dash": _DASHES[dash],
        "views": {view: list(ids) for view, ids in views.items()},
        "note": note,
    }


def unit_of(task: str) -> str:
    """What the cost of a task is counted in."""
    return "bits per whole sequence" if TASKS[task].per_sequence else TASKS[task].unit


def learning_plot(title: str, task: str, entries: Sequence[Json], caption: str = "") -> Json:
    """Learning curves on a task: bits against minibatches or seconds, at the best rate or in the whole sweep."""
    of = TASKS[task]
    marks: list[Json] = [{"value": of.chance, "label": "remembering nothing"}]
    if of.solved_below:
        marks.append({"value": of.solved_below, "label": "solved", "side": "left"})
    quantities: list[Json]
    if of.episodic:
        quantities = [
            {"key": "answer", "name": "answer", "label": "bits on the answer, per sequence", "marks": marks},
            {"key": "cost", "name": "whole sequence", "label": unit_of(task), "marks": []},
        ]
    else:
        quantities = [{"key": "cost", "name": "cost", "label": unit_of(task), "marks": marks}]
    return {
        "title": title,
        "caption": caption,
        "x": [
            {"key": "minibatches", "name": "minibatches", "label": "minibatches"},
            {"key": "seconds", "name": "seconds", "label": "wall-clock seconds of training"},
        ],
        "y": [
            quantity | {"unit": "bits", "top": 1.3 * of.chance, "bottom": of.chance / 1000}
            for quantity in quantities
        ],
        "views": [{"key": "best", "name": "best rate"}, {"key": "sweep", "name": "whole sweep"}],
        "of": "seeds",
        "series": list(entries),
    }


def points_plot(name: str, title: str, points: Points, lines: dict[str, Json]) -> Json:
    """A panel of measured points, whose lines are added to ``lines``; of a series of several, the mean is drawn."""
    entries = []
    for (series_name, its), look in zip(
        points.series.items(), ((BLUE, "-"), (VERMILION, "--")), strict=False
    ):
        ids = [f"{name}/{series_name.split(':')[0]}/{k}" for k in range(len(its))]
        for k, (identifier, values) in enumerate(zip(ids, its, strict=True)):
            label = f"draw {k}" if len(its) > 1 else ""
            x, y = {"n": list(points.n)}, {"value": digits(values)}
            lines[identifier] = {"name": label, "x": x, "y": y, "window": 1}
        entries.append(series(series_name, look, {"best": ids}))
    return {
        "title": f"{title}, {points.title}",
        "caption": points.title,
        "x": [{"key": "n", "name": "n", "label": points.x}],
        "y": [{"key": "value", "name": "value", "label": points.y}],
        "views": [{"key": "best", "name": "draws"}],
        "of": "draws",
        "series": entries,
    }
