"""Pictures of learning curves: what is a relapse and what is a result."""

from pathlib import Path

import numpy as np
import pytest

from associative_lstm.lab.experiments.learning.curves import curve
from associative_lstm.lab.experiments.learning.drawing import draw_figure, draw_sweep
from associative_lstm.lab.experiments.learning.runs import CurveRuns, Run


def drawn(task):
    """What both halves of a picture show of two seeds that learn, of which the second forgets it for a while."""
    chosen = curve(task, "associative-lstm-4")
    step = 100 * np.arange(1, 31)
    cost = np.linspace(30.0, 1.0, 30)
    relapse = np.where((step > 1500) & (step <= 2500), 30.0, cost)
    runs = [
        Run(Path(), chosen.config(1e-3, seed, 3000), step, each, each, step, None)
        for seed, each in enumerate((cost, relapse))
    ]
    picture = draw_figure("title", [CurveRuns(chosen, {}, 1e-3, runs)])
    left, right = picture.axes
    return [
        [np.asarray(line.get_ydata()) for line in half.lines if len(line.get_xdata()) > 2]
        for half in (left, right)
    ]


def test_on_copy_the_median_is_of_the_lowest_costs_and_every_relapse_is_beside_it():
    [median], seeds = drawn("copy")
    assert (np.diff(median) <= 0).all()
    assert len(seeds) == 2
    assert [bool((np.diff(seed) > 0).any()) for seed in seeds] == [False, True]
    assert median[-1] == pytest.approx(np.mean([seed.min() for seed in seeds]))


@pytest.mark.parametrize("task", ["copy", "xml"])
def test_a_sweep_of_which_nothing_was_run_says_so(task):
    [axes] = draw_sweep("title", [CurveRuns(curve(task, "associative-lstm-4"), {}, None, [])]).axes
    assert "no runs yet" in [text.get_text() for text in axes.texts]


def test_elsewhere_the_median_is_of_the_costs_and_every_seed_is_behind_it():
    for median, *seeds in drawn("xml"):
        assert len(seeds) == 2
        assert median == pytest.approx(np.median(seeds, axis=0))
        assert (np.diff(median) > 0).any()
