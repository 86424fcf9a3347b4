"""Pictures of learning curves: what is a relapse and what is a result."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from associative_lstm.lab.experiments.learning.curves import curve
from associative_lstm.lab.experiments.learning.drawing import draw_figure, draw_sweep
from associative_lstm.lab.experiments.learning.runs import CurveRuns, Run


def drawn(task, seeds=3):
    """What both halves of a picture show of seeds that learn, all but the first of which forget it for a while."""
    chosen = curve(task, "associative-lstm-4")
    step = 100 * np.arange(1, 31)
    cost = np.linspace(30.0, 1.0, 30)
    relapse = np.where((step > 1500) & (step <= 2500), 30.0, cost)
    runs = [
        Run(Path(), chosen.config(1e-3, seed, 3000), step, each, each, step, None)
        for seed, each in enumerate((cost, relapse, relapse + 0.1)[:seeds])
    ]
    picture = draw_figure("title", [CurveRuns(chosen, {}, 1e-3, runs)])
    left, right = picture.axes
    return [
        [np.asarray(line.get_ydata()) for line in half.lines if len(line.get_xdata()) > 3]
        for half in (left, right)
    ]


def test_on_copy_the_median_is_of_the_lowest_costs_and_every_relapse_is_beside_it():
    [median], seeds = drawn("copy")
    assert (np.diff(median) <= 0).all()
    assert len(seeds) == 3
    assert [bool((np.diff(seed) > 0).any()) for seed in seeds] == [False, True, True]
    assert median[-1] == pytest.approx(np.median([seed.min() for seed in seeds]))


@pytest.mark.parametrize("task", ["copy", "xml"])
def test_a_sweep_of_which_nothing_was_run_says_so(task):
    [axes] = draw_sweep("title", [CurveRuns(curve(task, "associative-lstm-4"), {}, None, [])]).axes
    assert "no runs yet" in [text.get_text() for text in axes.texts]


def test_elsewhere_the_median_is_of_the_costs_and_every_seed_is_behind_it():
    for median, *seeds in drawn("xml"):
        assert len(seeds) == 3
        assert median == pytest.approx(np.median(seeds, axis=0))
        assert (np.diff(median) > 0).any()


def test_by_the_logarithm_of_minibatches_late_means_are_over_more_of_them_and_copy_keeps_its_own():
    step = 100 * np.arange(1, 2001)
    cost = np.where(step % 5000 == 0, 2.0, 1.0)

    def last(task, logarithmic):
        chosen = curve(task, "associative-lstm-4")
        run = Run(Path(), chosen.config(1e-3, 0, 200_000), step, cost, None, step, None)
        left, _ = draw_figure("title", [CurveRuns(chosen, {}, 1e-3, [run])], logarithmic).axes
        [shown] = [np.asarray(line.get_ydata()) for line in left.lines if len(line.get_xdata()) > 3]
        return len(shown), shown[:10].max(), shown[-50:].max()

    assert last("xml", False) == (1996, 1.0, pytest.approx(1.2))
    assert last("xml", True) == (1996, 1.0, pytest.approx(1 + 2 / 60, abs=0.002))
    assert last("copy", True) == (1996, 1.0, 1.0)  # the lowest so far


def test_of_two_seeds_both_are_drawn_and_no_median_that_none_of_them_has():
    for half in drawn("xml", seeds=2):
        assert [bool((np.diff(seed) > 0).any()) for seed in half] == [False, True]
    both, _ = drawn("copy", seeds=2)
    assert len(both) == 2
    assert all((np.diff(seed) <= 0).all() for seed in both)


def solving(seed, steps, lost=False):
    """A run on copy that solves it, and may lose it again."""
    step = 100 * np.arange(1, steps // 100 + 1)
    cost = np.where(step < steps / 2, 30.0, np.where((step > 0.8 * steps) & lost, 30.0, 0.1))
    config = curve("copy", "associative-lstm-4").config(1e-3, seed, steps)
    return Run(Path(), config, step, cost, cost, step, None)


def test_several_networks_on_copy_have_a_small_picture_each_and_names_that_tell_what_was_lost():
    chosen = [curve("copy", f"associative-lstm-{copies}") for copies in (1, 4, 8)]
    runs = [[solving(0, 4000), solving(1, 4000, lost=True)], [solving(0, 4000)], []]
    made = [CurveRuns(c, {}, 1e-3, its) for c, its in zip(chosen, runs, strict=True)]
    made[1] = dataclasses.replace(made[1], settled=False)
    left, *small = draw_figure("title", made).axes
    names = left.get_legend_handles_labels()[1]
    assert names[0].endswith(", 1 copy, rate 0.001 (1 of 2 lost it at the end)")
    assert names[1].endswith(", 4 copies, rate 0.001 so far (1 seed)")
    assert names[2].endswith(", 8 copies: no runs yet")
    assert [axes.get_title() for axes in small] == ["1 copy", "4 copies"]
    assert [len([x for x in axes.lines if len(x.get_xdata()) > 2]) for axes in small] == [2, 1]
    assert left.get_xlim()[1] >= 4000


def test_a_sweep_shows_where_rates_that_went_on_were_compared():
    chosen = curve("xml", "associative-lstm-4")

    def run(rate, steps, cost):
        step = 100 * np.arange(1, steps // 100 + 1)
        costs = np.where(step <= 20_000, 2.0, cost)
        return Run(Path(), chosen.config(rate, 0, steps), step, costs, None, step, None)

    sweep = {1e-3: run(1e-3, 60_000, 1.0), 3e-3: run(3e-3, 40_000, 0.5), 1e-2: run(1e-2, 20_000, 9.0)}
    [axes] = draw_sweep("title", [CurveRuns(chosen, sweep, None, [])]).axes
    [hollow] = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert dict(zip(*hollow.get_data(), strict=True)) == {1e-3: 1.0, 3e-3: 0.5}


@pytest.mark.parametrize("lowest", [1.2, 0.1, 0.001])
def test_a_logarithmic_axis_has_plain_labels_whatever_its_range(lowest):
    chosen = curve("arithmetic", "lstm-128")
    step = 100 * np.arange(1, 31)
    cost = np.linspace(3.0, lowest, 30)
    picture = draw_figure(
        "t",
        [
            CurveRuns(
                chosen, {}, 1e-3, [Run(Path(), chosen.config(1e-3, 0, 3000), step, cost, None, step, None)]
            )
        ],
    )
    picture.draw_without_rendering()
    axis, (low, high) = picture.axes[1].yaxis, picture.axes[1].get_ylim()
    ticks = axis.get_major_ticks() + axis.get_minor_ticks()
    shown = [tick.label1.get_text() for tick in ticks if low <= tick.get_loc() <= high]
    labels = [text for text in shown if text]
    assert len(labels) >= 3
    assert all(float(text) > 0 for text in labels)
    assert not any("e" in text or "$" in text for text in labels)
