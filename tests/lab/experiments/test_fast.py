"""The study of the fast recipe: how its claims are judged, from runs that were made up."""

import pytest

import made_runs
from associative_lstm.lab.experiments.learning.curves import (
    ABLATION_TASKS,
    FAST_STEPS,
    WITHOUT,
    curve,
    smoke,
)
from associative_lstm.lab.experiments.learning.fast import FAST
from associative_lstm.lab.experiments.learning.runs import Logs, read_curve

CLAIMS = {claim.key: claim for claim in FAST.claims}
DIVERGED = {"logged": 3, "diverged": "stopped at step 301: the cost is not finite"}


def write(runs, task, network, cost, best=5e-3, ends=()):
    """All runs of a curve: those of ``best`` have the ``cost`` of step and seed, the rest of the sweep 50 bits.

    Those of the seeds in ``ends`` diverge.
    """
    planned = curve(task, network)
    best = best if best in planned.rates else planned.rates[0]
    made = {(rate, planned.swept_with) for rate in planned.rates} | {(best, seed) for seed in planned.seeds}
    for rate, seed in made:
        cost_at = (lambda step, seed=seed: cost(step, seed)) if rate == best else (lambda step: 50.0)
        end = DIVERGED if seed in ends else {}
        config = planned.config(rate, seed, planned.steps)
        made_runs.write_run(planned.folder(runs, rate, seed), config, cost_at=cost_at, **end)


def falls(at, before=29.0, after=0.01):
    """A cost that falls all at once."""
    return lambda step, seed: before if step <= at else after


def judged(key, runs):
    return CLAIMS[key].judge(Logs(runs))


@pytest.mark.parametrize(
    ("at", "verdict"), [(400, "holds"), (1000, "holds"), (1600, "fails"), (9999, "fails")]
)
def test_a_tenth_of_the_minibatches(tmp_path, at, verdict):
    """From the paper's start the cost is low from 15,000 on, and its mean over 500 minibatches 500 later."""
    write(tmp_path, "copy", "associative-lstm-4", falls(15_000), best=3e-3)
    write(tmp_path, "copy", "fast-associative-lstm-4", falls(at))
    assert judged("9a", tmp_path).verdict == verdict


def test_what_is_solved_and_lost_again_does_not_count(tmp_path):
    write(tmp_path, "copy", "associative-lstm-4", falls(15_000), best=3e-3)

    def relapses(step, seed):
        return 29.0 if step <= 400 or (seed == 23 and step > 2000) else 0.01

    write(tmp_path, "copy", "fast-associative-lstm-4", relapses)
    claim = judged("9a", tmp_path)
    assert claim.verdict == "fails"
    assert "1 of 5 relapsed" in claim.numbers["fast: solved at minibatch"]


@pytest.mark.parametrize(("level", "verdict"), [(0.13, "holds"), (0.15, "fails")])
def test_as_low_as_the_papers_start_later(tmp_path, level, verdict):
    write(tmp_path, "xml", "associative-lstm-4", lambda step, seed: 0.14, best=3e-3)
    write(tmp_path, "xml", "fast-associative-lstm-4", lambda step, seed: level)
    assert judged("9e", tmp_path).verdict == verdict


def test_one_seed_that_diverges_is_told(tmp_path):
    for task, network in CLAIMS["9j"].judged_by.needs:
        write(
            tmp_path,
            task,
            network,
            falls(100),
            ends=(21,) if (task, network) == ("xml", "fast-associative-lstm-8") else (),
        )
    claim = judged("9j", tmp_path)
    assert claim.verdict == "fails"
    assert claim.numbers["xml, Associative LSTM 128, 8 copies, fast"] == "1 diverged"


@pytest.mark.parametrize(("useless", "verdict"), [(None, "holds"), ("-beta2", "fails")])
def test_a_part_that_no_task_misses(tmp_path, useless, verdict):
    for task in ABLATION_TASKS:
        for suffix, _, _ in WITHOUT:
            worse = suffix not in ("", useless) and task == "xml"
            level = 0.2 if worse else 0.105 if suffix else 0.1  # a twentieth more is no difference
            write(tmp_path, task, f"fast-at-one-rate{suffix}", lambda step, seed, level=level: level)
    assert judged("9r", tmp_path).verdict == verdict


@pytest.mark.parametrize(("best", "verdict"), [(5e-3, "holds"), (1e-2, "fails")])
def test_the_recipes_own_rate(tmp_path, best, verdict):
    for task in FAST_STEPS:
        chosen = best if task == "arithmetic" else 5e-3
        write(tmp_path, task, "fast-associative-lstm-4", lambda step, seed: 0.1, best=chosen)
        beyond = curve(task, "fast-associative-lstm-4")
        if chosen == 1e-2:
            config = beyond.config(3e-2, beyond.swept_with, beyond.steps)
            made_runs.write_run(
                beyond.folder(tmp_path, 3e-2, beyond.swept_with), config, cost_at=lambda s: 50
            )
    claim = judged("9s", tmp_path)
    assert claim.verdict == verdict
    assert claim.numbers["arithmetic: best rate"] == best


@pytest.mark.parametrize(("shifted", "verdict"), [(0.1, "holds"), (0.08, "holds"), (0.12, "fails")])
def test_shifts_that_cost_more(tmp_path, shifted, verdict):
    for task in ("xml", "assignment"):
        write(tmp_path, task, "fast-associative-lstm-4", lambda step, seed: 0.1)
        write(tmp_path, task, "fast-shift", lambda step, seed: shifted)
    assert judged("9t", tmp_path).verdict == verdict


def test_shifts_whose_seeds_overlap(tmp_path):
    for task in ("xml", "assignment"):
        write(tmp_path, task, "fast-associative-lstm-4", lambda step, seed: 0.15 if seed == 20 else 0.1)
        write(tmp_path, task, "fast-shift", lambda step, seed: 0.14 if seed == 20 else 0.3)
    assert judged("9t", tmp_path).verdict == "undecided"


def test_a_rate_is_chosen_by_a_seed_that_is_not_judged(tmp_path):
    planned = curve("assignment", "fast-associative-lstm-4")
    needed = read_curve(tmp_path, planned).needed
    assert {job.config.seed for job in needed} == {planned.swept_with}
    write(tmp_path, "assignment", "fast-associative-lstm-4", falls(100))
    found = read_curve(tmp_path, planned)
    assert found.finished
    assert [run.config.seed for run in found.runs] == list(planned.seeds)
    assert planned.swept_with not in planned.seeds


def test_in_small_a_run_is_as_long_as_its_sweep():
    """The rate falls towards the end: a run that is made longer is another."""
    small = smoke(curve("xml", "fast-associative-lstm-4"))
    assert small.steps == small.sweep_steps
    assert small.network.values["recipe"] == "fast"
