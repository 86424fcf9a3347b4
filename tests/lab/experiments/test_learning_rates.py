"""How the best rate of a curve is chosen, and what is trained for that."""

import csv
import shutil

import numpy as np
import pytest

from associative_lstm.lab.experiments.claim import FAST
from associative_lstm.lab.experiments.learning.curves import FAST_RATES, RATES, curve, fast_curve
from associative_lstm.lab.experiments.learning.drawing import draw_figure
from associative_lstm.lab.experiments.learning.runs import Logs, has_lost_all, make_runs, read_curve
from associative_lstm.lab.sweep.jobs import DIVERGED
from associative_lstm.lab.sweep.local import local
from made_curves import IN_ALL, judged, lengthen, run_of, write_run, write_solving, write_whole


def test_the_best_rate_has_the_lowest_cost_at_the_end_of_the_sweep(tmp_path):
    planned = curve("xml", "lstm-128")
    ends = {3e-4: 2.0, 1e-3: 1.0, 3e-3: 0.5, 1e-2: 0.1}
    for rate, end in ends.items():
        write_run(
            planned,
            tmp_path,
            rate,
            0,
            lambda s, end=end: 9.0 if s <= 4000 else end,
            planned.sweep_steps,
            diverged=rate == 1e-2,
        )
    found = read_curve(tmp_path, planned)
    assert found.rate == 3e-3
    assert found.sweep_cost(1e-2) == np.inf
    assert not found.finished
    assert [job.config.learning_rate for job in found.needed] == [3e-3] * 3
    assert [job.config.steps for job in found.needed] == [planned.steps] * 3


def test_where_the_last_rate_is_best_the_next_one_is_tried(tmp_path):
    planned = curve("xml", "lstm-128")
    for rate in RATES:
        write_run(planned, tmp_path, rate, 0, lambda s, rate=rate: 0.01 / rate, planned.sweep_steps)
    assert read_curve(tmp_path, planned).rate is None
    *_, job = read_curve(tmp_path, planned).needed
    assert job.config.learning_rate == 3e-2
    write_run(planned, tmp_path, 3e-2, 0, lambda s: 2.0, planned.sweep_steps)
    assert read_curve(tmp_path, planned).rate == 1e-2
    assert len(read_curve(tmp_path, planned).sweep) == 5


def test_rates_too_close_to_call_are_trained_longer_until_one_is_best(tmp_path):
    planned = curve("xml", "lstm-512")
    plateau = {3e-4: 3.1, 1e-3: 2.9, 3e-3: 2.0, 1e-2: 2.5}
    for rate, cost in plateau.items():
        write_run(planned, tmp_path, rate, 0, lambda s, cost=cost: cost, planned.sweep_steps)
    for steps in (10_000, 20_000):
        assert not read_curve(tmp_path, planned).settled
        jobs = read_curve(tmp_path, planned).needed
        assert {job.config.learning_rate for job in jobs} == {3e-3, 1e-3, 1e-2}
        assert {job.config.steps for job in jobs} == {steps}
        for rate in (3e-3, 1e-3, 1e-2):
            falls = rate == 1e-3 and steps == 20_000
            lengthen(planned, tmp_path, rate, lambda s, falls=falls: 0.5 if falls else 2.0, steps)
    found = read_curve(tmp_path, planned)
    assert found.rate == 1e-3
    assert found.settled
    assert not found.finished  # the second seed is to come, and a verdict can do without it
    assert found.can_be_judged
    assert [(job.config.learning_rate, job.config.steps) for job in found.needed] == [
        (1e-3, planned.steps)
    ] * 2


def test_past_the_length_of_the_other_networks_the_two_best_rates_go_on(tmp_path):
    planned = curve("arithmetic", "associative-lstm-1")
    assert planned.sweep_steps < planned.two_from < planned.steps
    assert curve("copy", "lstm-128").two_from is None  # no more than twice as long as the others
    costs = dict(zip(RATES, (1.3, 1.1, 1.0, 1.2), strict=True))
    for steps, left in ((20_000, RATES), (40_000, (1e-3, 3e-3)), (80_000, (1e-3, 3e-3))):
        for rate, cost in costs.items():
            lengthen(planned, tmp_path, rate, lambda s, cost=cost: cost, steps)
        found = read_curve(tmp_path, planned)
        assert not found.settled
        assert {job.config.learning_rate for job in found.needed} == set(left)
        assert {job.config.steps for job in found.needed} == {2 * steps}


def test_a_rate_that_diverges_past_that_length_leaves_its_place_to_the_next(tmp_path):
    planned = curve("arithmetic", "associative-lstm-4")
    for rate, cost in zip(RATES, (2.0, 1.2, 1.0, 1.1), strict=True):
        lengthen(planned, tmp_path, rate, lambda s, cost=cost: cost, planned.two_from)
    (planned.folder(tmp_path, 1e-2, planned.seeds[0]) / DIVERGED).write_text("the cost is not finite\n")
    left = {job.config.learning_rate for job in read_curve(tmp_path, planned).needed}
    assert left == {1e-3, 3e-3}


def test_a_rate_that_diverges_however_late_is_out_and_the_others_are_compared_without_it(tmp_path):
    planned = curve("arithmetic", "associative-lstm-3-heads-8")
    for rate, cost in zip(RATES, (4.0, 2.0, 2.1, 1.0), strict=True):
        lengthen(planned, tmp_path, rate, lambda s, cost=cost: cost, planned.sweep_steps)
    lengthen(planned, tmp_path, 3e-2, lambda s: 4.0, planned.sweep_steps)
    assert read_curve(tmp_path, planned).rate == 1e-2
    lengthen(planned, tmp_path, 1e-2, lambda s: 1.0, 50_000)
    (planned.folder(tmp_path, 1e-2, 0) / DIVERGED).write_text("the cost is not finite\n")
    found = read_curve(tmp_path, planned)
    assert {job.config.learning_rate for job in found.needed} == {1e-3, 3e-3}
    assert "arithmetic/associative-lstm-3-heads-8" in judged("5b", tmp_path).numbers["not_yet_run"]
    lengthen(planned, tmp_path, 1e-3, lambda s: 2.0, planned.steps)
    lengthen(planned, tmp_path, 3e-3, lambda s: 4.0, 2 * planned.sweep_steps)
    found = read_curve(tmp_path, planned)
    assert (found.rate, list(found.given_up), found.settled) == (1e-3, [1e-2], True)
    label = "Associative LSTM 128, 3 heads, 8 copies"
    write_solving(tmp_path, "arithmetic", "associative-lstm-3-heads-4", 1000)
    assert judged("5b", tmp_path).numbers[f"{label}: rate 0.01 given up for 0.001"] == "1 of 1 diverged"


def test_what_a_rate_that_diverges_had_left_behind_is_compared_again(tmp_path):
    planned = curve("arithmetic", "associative-lstm-3-heads-8")
    for rate, cost in zip((*RATES, 3e-2), (4.0, 2.0, 4.0, 1.4, 1.0), strict=True):
        lengthen(planned, tmp_path, rate, lambda s, cost=cost: cost, planned.sweep_steps)
    lengthen(planned, tmp_path, 1e-2, lambda s: 1.4, 2 * planned.sweep_steps)
    assert {job.config.learning_rate for job in read_curve(tmp_path, planned).needed} == {1e-2, 3e-2}
    (planned.folder(tmp_path, 3e-2, 0) / DIVERGED).write_text("the cost is not finite\n")
    assert {job.config.learning_rate for job in read_curve(tmp_path, planned).needed} == {1e-2, 1e-3}


def test_a_rate_that_loses_all_it_has_learned_is_out_too(tmp_path):
    planned = curve("assignment", "lstm-512")
    for rate, cost in zip(RATES, (2.3, 2.3, 2.2, 0.7), strict=True):
        lengthen(planned, tmp_path, rate, lambda s, cost=cost: cost, planned.sweep_steps)
    lengthen(planned, tmp_path, 3e-2, lambda s: 2.3, planned.sweep_steps)
    assert read_curve(tmp_path, planned).rate == 1e-2
    lengthen(planned, tmp_path, 1e-2, lambda s: 0.7 if s <= 10_000 else 3.1, 20_000)
    left = {job.config.learning_rate for job in read_curve(tmp_path, planned).needed}
    assert left == {3e-4, 1e-3, 3e-3, 3e-2}
    lengthen(planned, tmp_path, 3e-3, lambda s: 1.2 if s <= 5000 else 0.05, planned.steps)
    found = read_curve(tmp_path, planned)
    assert (found.rate, list(found.given_up), found.settled) == (3e-3, [1e-2], True)
    told = judged("4d", tmp_path).numbers["LSTM 512: rate 0.01 given up for 0.003"]
    assert told == "it lost what it had learned"
    left, _ = draw_figure("title", [found]).axes
    assert left.get_legend_handles_labels()[1] == ["LSTM 512, rate 0.003 (0.01 lost it)"]


@pytest.mark.parametrize(
    ("cost", "lost"),
    [
        (lambda s: 2.4, False),  # never learned, and above chance, 2.35, by noise
        (lambda s: 1.3 if s < 5000 else 2.4, False),  # had learned little
        (lambda s: 0.6 if s < 5000 else 2.2, False),  # keeps some of it
        (lambda s: 2.4 if 3000 < s < 6000 else 0.6, False),  # has it again
        (lambda s: 0.6 if s < 5000 else 2.4, True),
    ],
)
def test_all_is_lost_if_much_was_learned_and_remembering_nothing_costs_less(cost, lost):
    assert has_lost_all(run_of([cost(s) for s in range(100, 10_001, 100)], "assignment")) == lost


def test_where_no_rate_lasts_the_one_that_led_stands(tmp_path):
    planned = curve("arithmetic", "associative-lstm-3-heads-8")
    for rate, cost in zip((*RATES, 3e-2), (4.0, 2.0, 1.2, 1.0, 4.0), strict=True):
        lengthen(planned, tmp_path, rate, lambda s, cost=cost: cost, planned.sweep_steps)
        (planned.folder(tmp_path, rate, 0) / DIVERGED).write_text("the cost is not finite\n")
    found = read_curve(tmp_path, planned)
    assert (found.rate, found.given_up) == (1e-2, {})


def test_until_the_rates_are_settled_the_longest_runs_stand(tmp_path):
    planned = curve("xml", "lstm-512")
    for rate in RATES:
        write_run(
            planned, tmp_path, rate, 0, lambda s, rate=rate: 2.0 + (rate != 3e-3) / 10, planned.sweep_steps
        )
    assert not read_curve(tmp_path, planned).can_be_judged  # a sweep is too short
    lengthen(planned, tmp_path, 1e-3, lambda s: 2.1, 15_000)
    lengthen(planned, tmp_path, 3e-3, lambda s: 2.0, 10_000)
    found = read_curve(tmp_path, planned)
    assert (found.rate, found.length, found.settled, found.finished) == (1e-3, 15_000, False, False)
    assert found.can_be_judged
    assert found.lacks == (
        "rate 0.001, chosen before 0.0003, 0.01 had 10,000 minibatches, 15,000 of 20,000 minibatches, 1 of 2 seeds"
    )
    assert {job.config.learning_rate for job in found.needed} == set(RATES)  # all go on


def test_of_small_networks_every_seed_is_needed(tmp_path):
    planned = curve("assignment", "lstm-128")
    for rate in RATES:
        write_run(
            planned, tmp_path, rate, 0, lambda s, rate=rate: 2.0 + (rate != 3e-3) / 10, planned.sweep_steps
        )
    for seed in (1, 2):
        assert not read_curve(tmp_path, planned).can_be_judged
        write_run(planned, tmp_path, 1e-3, seed, lambda s: 1.0, planned.sweep_steps)
    found = read_curve(tmp_path, planned)
    assert (found.rate, found.length, found.settled) == (1e-3, 20_000, False)
    assert found.can_be_judged


def test_a_rate_that_diverges_in_the_contest_has_lost(tmp_path):
    planned = curve("xml", "lstm-512")
    for rate in RATES:
        write_run(
            planned, tmp_path, rate, 0, lambda s, rate=rate: 2.0 + 2 * (rate < 3e-3), planned.sweep_steps
        )
    write_run(planned, tmp_path, 3e-2, 0, lambda s: 4.0, planned.sweep_steps)
    lengthen(planned, tmp_path, 3e-3, lambda s: 2.0, 10_000)
    (planned.folder(tmp_path, 1e-2, 0) / DIVERGED).write_text(
        "stopped at step 5301: the cost is not finite\n"
    )
    assert read_curve(tmp_path, planned).rate == 3e-3


def test_no_best_rate_before_the_sweep_is_whole(tmp_path):
    planned = curve("xml", "lstm-128")
    for rate in RATES[:3]:
        write_run(planned, tmp_path, rate, 0, lambda s: 1.0, planned.sweep_steps)
    write_run(planned, tmp_path, RATES[3], 0, lambda s: 0.1, planned.sweep_steps - 100)
    assert read_curve(tmp_path, planned).rate is None
    assert len(read_curve(tmp_path, planned).needed) == 4


def test_runs_that_two_curves_ask_for_are_made_once(tmp_path):
    """Short and long runs by the fast recipe have the same sweep."""
    planned = [fast_curve("copy", "lstm-128", steps) for steps in (None, 40_000)]
    made = []

    def execute(jobs):
        made.extend(jobs)
        return [None] * len(jobs)

    make_runs(tmp_path, planned, execute)
    assert [(job.config.learning_rate, job.config.seed) for job in made] == [(r, 19) for r in FAST_RATES]


def test_a_network_that_always_diverges_has_no_curve_and_stops_nothing(tmp_path):
    planned = curve("xml", "lstm-128")
    for rate in RATES:
        write_run(planned, tmp_path, rate, 0, lambda s: 1.0, planned.sweep_steps, diverged=True)
    assert read_curve(tmp_path, planned).needed == []
    assert make_runs(tmp_path, [planned], local(1)) == []


def test_a_long_run_that_diverges_gives_its_rate_up_for_the_next_lower_one(tmp_path):
    """Of whole runs by the fast recipe, whose rates are compared in short ones; and the claim says so."""
    planned = fast_curve("assignment", "associative-lstm-4", 40_000)
    for rate, cost in zip(FAST_RATES, (0.3, 0.2, 0.1), strict=True):
        write_run(planned, tmp_path, rate, planned.swept_with, lambda s, cost=cost: cost, planned.sweep_steps)
    write_run(planned, tmp_path, 3e-2, planned.swept_with, lambda s: 0.5, planned.sweep_steps)
    write_run(planned, tmp_path, 1e-2, 31, lambda s: 0.01, diverged=True)
    assert read_curve(tmp_path, planned).rate == 1e-2  # until all of its seeds are told
    for seed in (30, 32):
        write_run(planned, tmp_path, 1e-2, seed, lambda s: 0.01)
    found = read_curve(tmp_path, planned)
    assert (found.rate, found.runs, found.finished) == (5e-3, [], False)
    assert [(job.config.learning_rate, job.config.seed) for job in found.needed] == [
        (5e-3, seed) for seed in planned.seeds
    ]
    for seed in planned.seeds:
        write_run(planned, tmp_path, 5e-3, seed, lambda s: 0.02)
    write_whole(tmp_path, "assignment", "associative-lstm-8", 0.02)
    again = judged("4a", tmp_path).read(FAST)
    assert again.verdict == "holds"
    given_up = "Associative LSTM 128, 4 copies, fast, 40,000 minibatches: rate 0.01 given up for 0.005"
    assert again.numbers[given_up] == "1 of 3 diverged"
    assert "assignment/fast-associative-lstm-4/lr0.01-seed31" in again.runs
    IN_ALL["fig7"].draw(tmp_path / "fig7", Logs(tmp_path))
    assert (tmp_path / "fig7" / "fig7-assignment-fast.png").is_file()
    rows = list(csv.DictReader((tmp_path / "fig7" / "fig7.csv").read_text().splitlines()))
    told = [row for row in rows if row["network"] == "fast-associative-lstm-4" and row["seed"] in "303132"]
    assert [(row["rate"], row["diverged"]) for row in told] == [
        *(("0.01", str(seed == 31)) for seed in planned.seeds),
        *[("0.005", "False")] * 3,
    ]
    for rate in (5e-3, 2e-3):
        for seed in planned.seeds:
            shutil.rmtree(planned.folder(tmp_path, rate, seed), ignore_errors=True)
            write_run(planned, tmp_path, rate, seed, lambda s: 0.02, diverged=seed == 30)
    found = read_curve(tmp_path, planned)
    assert (found.rate, sorted(found.given_up), found.finished) == (2e-3, [5e-3, 1e-2], True)
