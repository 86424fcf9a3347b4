"""What is measured of a run: when it is solved, lost, falling, how rough it is."""

import dataclasses

import numpy as np
import pytest

from associative_lstm.lab.experiments.learning import measures
from made_curves import run_of


def test_what_diverges_is_neither_solved_nor_steady():
    falling = run_of([1.0] * 5 + [0.01] * 10)
    assert np.isfinite(measures.solved_at(falling))
    diverged = dataclasses.replace(falling, diverged="stopped")
    assert measures.solved_at(diverged) == measures.roughness(diverged, 1500) == np.inf
    assert measures.progress(diverged, 1500) == 0


def test_a_relapse_is_noticed():
    assert measures.has_relapsed(run_of([1.0] * 5 + [0.01] * 10 + [1.0] * 10))
    assert measures.has_relapsed(
        run_of([1.0] * 5 + [0.01] * 10 + [1.0] * 10 + [0.01] * 10)
    )  # and learned it again
    assert not measures.has_relapsed(run_of([1.0] * 5 + [0.01] * 10))
    assert not measures.has_relapsed(run_of([1.0] * 20))
    solved = [1.0] * 5 + [0.01] * 10
    assert [measures.has_relapsed(run_of([*solved, *[cost] * 10])) for cost in (0.19, 0.21)] == [False, True]


def test_what_is_lost_for_good_is_told_from_a_relapse():
    learned = [1.0] * 5 + [0.01] * 30
    assert [
        measures.has_lost_it(run_of([*learned, *after]))
        for after in ([1.0] * 10, [1.0] * 10 + [0.01] * 20, [0.01] * 10, [0.01] * 10 + [9.0])
    ] == [True, False, False, False]
    assert not measures.has_lost_it(run_of([1.0] * 20))  # it never had it


def test_a_run_is_falling_if_its_last_tenth_is_below_the_tenth_before():
    assert measures.is_falling(run_of([9.0] * 80 + [1.0] * 10 + [0.97] * 10), 10_000)
    assert not measures.is_falling(run_of([9.0] * 80 + [1.0] * 10 + [0.99] * 10), 10_000)
    assert not measures.is_falling(run_of([9.0] * 80 + [1.0] * 10 + [0.97] * 10), 10_000, by=0.05)
    assert measures.is_falling(run_of([0.0] * 80 + [1.3] + [1.0] * 9 + [0.99] * 10), 10_000)  # all of the ten


def test_solved_is_when_the_mean_of_500_minibatches_is_below():
    run = run_of([1.0] * 10 + [0.0] * 10)
    assert measures.solved_at(run) == 1500  # the first five intervals without a one
    assert measures.solved_at(run_of([1.0] * 20)) == np.inf
    flicker = run_of([1.0] * 10 + [0.0] * 3 + [1.0] * 7)
    assert measures.solved_at(flicker) == np.inf


def test_roughness_counts_rises():
    falling = run_of(2.0 ** -np.arange(50))
    assert measures.roughness(falling, 5000) == 0
    relapse = run_of([4.0] * 5 + [1.0] * 5 + [2.0] * 5 + [0.5] * 5)
    assert measures.roughness(relapse, 2000) == pytest.approx(1 / 3)  # one octave up, three down in all
    assert measures.roughness(relapse, 1000) == 0
    assert measures.progress(relapse, 1000) == pytest.approx(2)
    assert measures.roughness(relapse, 2000, floor=2.0) == 0  # it has come down to 2 without a rise
    assert measures.roughness(run_of([1.0] * 20), 2000) == np.inf


def test_final_cost_is_of_the_last_tenth_up_to_where_curves_are_compared():
    run = run_of(np.arange(1, 101))
    assert measures.final_cost(run, 10_000) == pytest.approx(95.5)
    assert measures.final_cost(run, 1000) == pytest.approx(10)
    assert measures.final_cost(run, 20_000) == np.inf
    assert measures.lowest_cost(run_of([3.0] * 50 + [1.0] * 10 + [2.0] * 40), 10_000) == pytest.approx(1)
    assert (
        measures.lowest_cost(run_of([3.0, 2.0, 1.0]), 300) == 1
    )  # tenths without a line of the log do not count
