"""How the claims about learning curves are judged: each can hold and fail."""

import json
import shutil
from pathlib import Path

import pytest

from associative_lstm.lab.experiments.claim import BEFORE, FAST, FAST_BEFORE, SHORT, read_claims, write_claims
from associative_lstm.lab.experiments.learning import measures
from associative_lstm.lab.experiments.learning.curves import (
    START_COPIES,
    START_TASKS,
    curve,
    fast_curve,
    start_curves,
)
from associative_lstm.lab.experiments.learning.figures import FIGURES
from associative_lstm.lab.experiments.learning.runs import Logs, read_curve
from associative_lstm.lab.sweep.jobs import DIVERGED
from associative_lstm.lab.tasks import TASKS
from made_curves import (
    CLAIMS,
    IN_ALL,
    cut_short,
    judged,
    lengthen,
    write_curve,
    write_run,
    write_solving,
    write_whole,
)


@pytest.mark.parametrize(
    ("costs", "verdict"),
    [
        (((0.8,), (0.4,), (0.2,)), "holds"),
        (((0.8,), (0.4,), (0.6,)), "fails"),
        (((0.8,), (0.4,), (0.39,)), "undecided"),
        (((0.8,), (0.3, 0.4, 0.5), (0.2, 0.2, 0.35)), "undecided"),
    ],
)
def test_the_cost_falls_with_the_copies(tmp_path, costs, verdict):
    for copies, seeds in zip((1, 4, 8), costs, strict=True):
        write_curve(tmp_path, "xml", f"associative-lstm-{copies}", *seeds)
    claim = judged("3a", tmp_path)
    assert claim.verdict == verdict
    assert len(claim.runs) == 9


def test_a_claim_is_undecided_while_runs_are_missing(tmp_path):
    write_curve(tmp_path, "xml", "associative-lstm-1", 0.1)
    claim = judged("3c", tmp_path)
    assert claim.verdict == "undecided"
    assert "xml/lstm-128" in claim.measured


def test_by_far_is_more_than_lower(tmp_path):
    write_curve(tmp_path, "xml", "associative-lstm-1", 0.8)
    for bias in ("", "-forget-1"):
        write_curve(tmp_path, "xml", f"lstm-128{bias}", 1.0)
    assert judged("3c", tmp_path).verdict == "fails"


def test_unsolved_but_falling_is_undecided(tmp_path):
    for copies in (4, 8):
        write_curve(tmp_path, "assignment", f"associative-lstm-{copies}", 0.5)
    assert judged("4a", tmp_path).verdict == "fails"
    falling = curve("assignment", "associative-lstm-8")
    path = falling.folder(tmp_path, 1e-3, 0) / "log.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(x | {"cost": 5000 / (x["step"] + 1)}) + "\n" for x in lines))
    for copies in (4, 8):
        c = curve("assignment", f"associative-lstm-{copies}")
        for seed in c.seeds:
            target = c.folder(tmp_path, 1e-3, seed) / "log.jsonl"
            target.write_text(path.read_text())
    assert judged("4a", tmp_path).verdict == "undecided"


@pytest.mark.parametrize(
    ("one", "four", "verdict"),
    [
        ((10_000,), (11_000,), "holds"),
        ((10_000,), (4000,), "fails"),
        ((10_000,), (16_000,), "fails"),
        ((5000, 10_000, 15_000), (4000,), "undecided"),
        ((10_000,), (99_000,), "undecided"),
    ],
)
def test_whether_copies_help_or_harm(tmp_path, one, four, verdict):
    for copies, solved in ((1, one), (4, four), (8, (10_000,))):
        write_solving(tmp_path, "copy", f"associative-lstm-{copies}", *solved)
    assert judged("1d", tmp_path).verdict == verdict


@pytest.mark.parametrize(
    ("four", "eight", "best", "verdict"),
    [
        (5000, [5000], 1e-3, "holds"),
        (5000, [30_000], 1e-3, "fails"),
        (30_000, [5000], 1e-3, "fails"),
        (5000, [5000, 30_000, 5000], 1e-3, "undecided"),
        (5000, [5000], 3e-3, "undecided"),
    ],
)
def test_copies_are_compared_at_one_rate(tmp_path, four, eight, best, verdict):
    write_solving(tmp_path, "copy", "associative-lstm-1", 20_000, best=best)
    write_solving(tmp_path, "copy", "associative-lstm-4-at-one-rate", four)
    write_solving(tmp_path, "copy", "associative-lstm-8-at-one-rate", *eight)
    claim = judged("7g", tmp_path)
    assert claim.verdict == verdict
    assert claim.numbers.get("reason", "").endswith("0.003") == (best == 3e-3)


@pytest.mark.parametrize(("ours", "verdict"), [(2900, "holds"), (6000, "fails"), (99_000, "fails")])
def test_somewhat_later_has_a_limit(tmp_path, ours, verdict):
    for network in ("permutation-rnn-256", "unitary-rnn-256"):
        write_solving(tmp_path, "copy", network, 1000)
    write_solving(tmp_path, "copy", "associative-lstm-1", ours)
    assert judged("1e", tmp_path).verdict == verdict


def test_a_seed_that_diverged_is_named_and_decides_nothing(tmp_path):
    write_solving(tmp_path, "copy", "associative-lstm-1", 30_000)
    write_solving(tmp_path, "copy-variable", "associative-lstm-1", 30_000)
    (curve("copy-variable", "associative-lstm-1").folder(tmp_path, 1e-3, 2) / DIVERGED).write_text(
        "stopped\n"
    )
    claim = judged("2b", tmp_path)
    assert claim.verdict == "undecided"
    assert "1 of 3 diverged" in claim.measured


@pytest.mark.parametrize(("lines", "verdict", "times"), [(110, "undecided", 1.06), (350, "fails", 3.37)])
def test_a_seed_that_diverged_counts_for_as_long_as_it_went(tmp_path, lines, verdict, times):
    write_solving(tmp_path, "copy", "associative-lstm-1", 10_000)  # that is, at 10,400
    write_solving(tmp_path, "copy-variable", "associative-lstm-1", 99_000)
    variable = curve("copy-variable", "associative-lstm-1")
    for seed in variable.seeds:
        cut_short(variable, tmp_path, 1e-3, seed, lines)
    for rate in (3e-4, 3e-3, 1e-2):  # no other lasts, either
        cut_short(variable, tmp_path, rate, 0, 5)
    claim = judged("2b", tmp_path)
    assert claim.verdict == verdict
    assert claim.numbers["Associative LSTM 128, 1 copy: times as long"] == f"at least {times}"


def test_an_lstm_that_diverges_early_is_not_slower(tmp_path):
    write_solving(tmp_path, "copy", "associative-lstm-1", 10_000)
    for lstm in ("lstm-128", "lstm-128-forget-1"):
        write_solving(tmp_path, "copy", lstm, 99_000)
    assert judged("1b", tmp_path).verdict == "holds"
    cut_short(curve("copy", "lstm-128"), tmp_path, 1e-3, 1, 150)
    assert judged("1b", tmp_path).verdict == "undecided"


def test_an_lstm_that_solves_the_task_and_diverges_later_is_not_slower(tmp_path):
    write_solving(tmp_path, "copy", "associative-lstm-1", 10_000)
    write_solving(tmp_path, "copy", "lstm-128", 99_000, 5000, 99_000)
    write_solving(tmp_path, "copy", "lstm-128-forget-1", 99_000)
    cut_short(curve("copy", "lstm-128"), tmp_path, 1e-3, 1, 400)
    assert judged("1b", tmp_path).verdict == "undecided"


def test_whether_a_task_is_solved_is_open_if_a_seed_diverged(tmp_path):
    for copies in (4, 8):
        write_curve(tmp_path, "assignment", f"associative-lstm-{copies}", 0.05)
    assert judged("4a", tmp_path).verdict == "holds"
    cut_short(curve("assignment", "associative-lstm-8"), tmp_path, 1e-3, 2, 50)
    assert judged("4a", tmp_path).verdict == "undecided"


OURS = dict.fromkeys(("xml", "assignment", "arithmetic"), "associative-lstm-3-heads-4-batch-1-whu")


@pytest.mark.parametrize(
    ("ours", "ntm", "verdict"),
    [
        ((4.0, 1.0, 0.5), (4.0, 1.0, 2.0), "holds"),
        ((4.0, 1.0, 2.0), (4.0, 1.0, 0.5), "fails"),
        ((4.0, 1.0, 2.0), (4.0, 1.0, 2.0), "undecided"),
        ((4.0, 0.5, 0.9), (4.0, 2.0, 1.0), "undecided"),  # a rise below what the other has reached
        ((4.0, 1.0, 0.5), (4.0, 4.5, 3.0), "undecided"),  # a rise, of one that has not learned
    ],
)
def test_who_learns_more_steadily(tmp_path, ours, ntm, verdict):
    for network, costs in ((OURS["xml"], ours), ("ntm", ntm)):
        planned = curve("xml", network)
        write_curve(tmp_path, "xml", network, 1.0)
        third = planned.steps // 3
        for seed in planned.seeds:
            shutil.rmtree(planned.folder(tmp_path, 1e-3, seed))
            write_run(planned, tmp_path, 1e-3, seed, lambda s, third=third, v=costs: v[min(2, s // third)])
    assert judged("6c", tmp_path).verdict == verdict


def test_one_that_is_there_at_once_has_had_no_time_to_be_unsteady(tmp_path):
    for network, at in ((OURS["xml"], 4000), ("ntm", 40_000)):
        planned = curve("xml", network)
        write_curve(tmp_path, "xml", network, 1.0)
        for seed in planned.seeds:
            shutil.rmtree(planned.folder(tmp_path, 1e-3, seed))
            write_run(planned, tmp_path, 1e-3, seed, lambda s, at=at: 4.0 + (s > at / 2) if s <= at else 1.0)
    claim = judged("6c", tmp_path)
    assert claim.verdict == "undecided"
    assert "is there after 4,000 minibatches" in claim.numbers["reason"]


@pytest.mark.parametrize(("key", "task"), [("6a", "xml"), ("6d", "assignment"), ("6g", "arithmetic")])
@pytest.mark.parametrize(("share", "verdict"), [(0.24, "holds"), (0.26, "undecided"), (0.28, "fails")])
def test_each_task_of_the_ntm_is_judged_by_itself(tmp_path, key, task, share, verdict):
    write_curve(tmp_path, task, OURS[task], share * TASKS[task].chance)
    assert judged(key, tmp_path).verdict == verdict
    figure = {"xml": "fig11", "assignment": "fig12", "arithmetic": "fig13"}[task]
    assert CLAIMS[key] in IN_ALL[figure].claims


def test_figures_11_to_13_have_one_architecture(tmp_path):
    for task, network in OURS.items():
        assert curve(task, network).config(1e-3, 0, 1).recurrent_update


def test_what_is_shorter_than_planned_has_not_failed(tmp_path):
    planned = curve("assignment", OURS["assignment"])
    write_curve(tmp_path, "assignment", OURS["assignment"], 1.0)
    assert judged("6d", tmp_path).verdict == "fails"
    for seed in planned.seeds:
        shutil.rmtree(planned.folder(tmp_path, 1e-3, seed))
        write_run(planned, tmp_path, 1e-3, seed, lambda s: 1.0, planned.steps // 2)
    claim = judged("6d", tmp_path)
    assert claim.verdict == "undecided"
    assert claim.lacks == (f"assignment/{OURS['assignment']}: 20,000 of 40,000 minibatches",)


@pytest.mark.parametrize(
    ("key", "task", "better", "worse"),
    [
        ("3b", "xml", ("associative-lstm-4",), ("lstm-512",)),
        (
            "3d",
            "xml",
            ("lstm-128",),
            tuple(f"{m}unitary-rnn-{n}" for m in ("", "multiplicative-") for n in (256, 1024)),
        ),
        ("1c", "copy", ("lstm-128-forget-1",), ("lstm-128",)),
        ("4b", "assignment", ("associative-lstm-4", "associative-lstm-8"), ("lstm-512",)),
        ("4c", "assignment", ("associative-lstm-1",), ("lstm-128", "lstm-128-forget-1")),
        ("5a", "arithmetic", ("associative-lstm-1",), ("associative-lstm-4", "associative-lstm-8")),
        (
            "5c",
            "arithmetic",
            ("associative-lstm-3-heads-4", "associative-lstm-3-heads-8"),
            ("associative-lstm-4", "associative-lstm-8"),
        ),
    ],
)
@pytest.mark.parametrize(("cost", "verdict"), [(0.5, "holds"), (1.0, "undecided"), (2.0, "fails")])
def test_which_network_is_better(tmp_path, key, task, better, worse, cost, verdict):
    for names, value in ((better, cost), (worse, 1.0)):
        for name in names:
            write_curve(tmp_path, task, name, value)
    assert judged(key, tmp_path).verdict == verdict


def test_one_network_that_is_late_makes_the_claim_about_several_fail(tmp_path):
    """The permutation RNN is fast and the unitary one slow; the LSTM without bias never solves it, the other does."""

    for network, solved in (
        ("permutation-rnn-256", 1000),
        ("unitary-rnn-256", 15_000),
        ("associative-lstm-1", 8000),
        ("lstm-128", 99_000),
        ("lstm-128-forget-1", 2000),
    ):
        write_solving(tmp_path, "copy", network, solved)
    assert judged("1a", tmp_path).verdict == "fails"
    assert judged("1b", tmp_path).verdict == "fails"
    assert judged("1c", tmp_path).read(BEFORE).verdict == "holds"


@pytest.mark.parametrize(
    ("costs", "verdict"), [((0.2, 1.4), "holds"), ((0.2, 0.21), "undecided"), ((1.4, 0.2), "fails")]
)
def test_the_gap_to_a_tuned_lstm(tmp_path, costs, verdict):
    ours, lstm = costs
    write_curve(tmp_path, "xml", "associative-lstm-4", ours)
    write_curve(tmp_path, "xml", "lstm-128", lstm)
    write_curve(tmp_path, "xml", "lstm-128-forget-1", lstm)
    assert judged("7a", tmp_path).verdict == verdict


def test_a_large_lstm_is_judged_by_the_rate_that_is_best_in_the_end(tmp_path):
    write_curve(tmp_path, "xml", "associative-lstm-4", 0.5)
    write_curve(tmp_path, "xml", "lstm-512", 1.0)
    assert judged("7d", tmp_path).verdict == "holds"
    planned = curve("xml", "lstm-512")
    lengthen(planned, tmp_path, 1e-2, lambda s: 5.0 if s <= planned.sweep_steps else 0.2, planned.steps)
    assert read_curve(tmp_path, planned).rate == 1e-2
    claim = judged("7d", tmp_path)
    assert claim.verdict == "fails"
    assert claim.numbers["LSTM 512"] == "0.2 at rate 0.01"
    assert claim.lacks == ("xml/lstm-512: 1 of 2 seeds",)
    assert "xml/lstm-512/lr0.01-seed0" in claim.runs


@pytest.mark.parametrize(
    ("tanh", "verdict"), [((0.5,), "fails"), ((1.01,), "holds"), ((0.9, 1.1, 1.1), "undecided")]
)
def test_slightly_better_is_better_in_every_seed(tmp_path, tanh, verdict):
    for task in ("xml", "assignment"):
        write_curve(tmp_path, task, "associative-lstm-4", 1.0)
        write_curve(tmp_path, task, "associative-lstm-4-tanh", *tanh)
    assert judged("13b", tmp_path).verdict == verdict
    assert "xml, Associative LSTM 128, 4 copies" in judged("13b", tmp_path).numbers


@pytest.mark.parametrize(("falls_at", "verdict"), [(10_000, "holds"), (5000, "holds"), (2000, "fails")])
def test_other_minibatches_by_either_count(tmp_path, falls_at, verdict):
    """With minibatches of 1 the cost falls after 10,000; with 2, after as many minibatches or as many sequences."""
    pairs = zip(*[iter(CLAIMS["13c"].judged_by.needs)] * 2, strict=True)
    for (task, alone), (_, together) in pairs:
        for network, at in ((alone, 10_000), (together, falls_at)):
            planned = curve(task, network)
            write_curve(tmp_path, task, network, 1.0)
            for seed in planned.seeds:
                shutil.rmtree(planned.folder(tmp_path, 1e-3, seed))
                write_run(planned, tmp_path, 1e-3, seed, lambda s, at=at: 2.0 if s <= at else 1.0)
    assert judged("13c", tmp_path).verdict == verdict
    far = curve("xml", "lstm-512-batch-1")
    shutil.rmtree(far.folder(tmp_path, 1e-3, 1))
    write_run(far, tmp_path, 1e-3, 1, lambda s: 1.0)  # the other ends at 2
    claim = judged("13c", tmp_path)
    assert claim.verdict == ("fails" if verdict == "fails" else "undecided")
    assert claim.numbers["xml, reason"] == "seeds of one network are as far from their mean"
    shutil.rmtree(far.folder(tmp_path, 1e-3, 1))
    write_run(far, tmp_path, 1e-3, 1, lambda s: 2.0, diverged=True)
    claim = judged("13c", tmp_path)
    assert claim.numbers["xml, reason"] == "a run diverged"
    assert read_claims(write_claims(tmp_path / "claims.json", [claim])) == [claim]


def test_consistently_takes_two_seeds(tmp_path):
    for copies in (4, 8):
        write_curve(tmp_path, "arithmetic", f"associative-lstm-3-heads-{copies}", 0.05)
    assert judged("5e", tmp_path).verdict == "holds"
    shutil.rmtree(curve("arithmetic", "associative-lstm-3-heads-8").folder(tmp_path, 1e-3, 1))
    assert judged("5b", tmp_path).verdict == "holds"
    assert judged("5e", tmp_path).verdict == "undecided"


def test_that_three_heads_solve_it_takes_one_seed_of_each(tmp_path):
    for copies, costs in ((4, (0.05, 1.0)), (8, (1.0, 0.05))):
        write_curve(tmp_path, "arithmetic", f"associative-lstm-3-heads-{copies}", *costs)
    assert [judged(key, tmp_path).verdict for key in ("5b", "5e")] == ["holds", "fails"]
    shutil.rmtree(tmp_path / "arithmetic" / "associative-lstm-3-heads-8")
    write_curve(tmp_path, "arithmetic", "associative-lstm-3-heads-8", 1.0)
    assert judged("5b", tmp_path).verdict == "fails"
    cut_short(curve("arithmetic", "associative-lstm-3-heads-8"), tmp_path, 1e-3, 1, 50)
    assert len(read_curve(tmp_path, curve("arithmetic", "associative-lstm-3-heads-8")).runs) == 2
    assert judged("5b", tmp_path).verdict == "undecided"  # the one that diverged might have
    assert judged("5e", tmp_path).verdict == "fails"  # the other has not


def test_what_is_steadier_so_far_may_be_lost_later(tmp_path):
    for network in (OURS["xml"], "ntm"):
        planned = curve("xml", network)
        write_curve(tmp_path, "xml", network, 1.0)
        for seed in planned.seeds:
            shutil.rmtree(planned.folder(tmp_path, 1e-3, seed))
            rises = [4.0, 1.0, 2.0] if network == "ntm" else [4.0, 1.0, 1.0]
            steps = planned.steps - 20_000 * (network == "ntm")
            write_run(
                planned, tmp_path, 1e-3, seed, lambda s, v=rises: v[s // 20_000 if s < 60_000 else 2], steps
            )
    claim = judged("6c", tmp_path)
    assert claim.verdict == "undecided"
    assert claim.numbers["reason"] == "shorter than planned: NTM has 60,000 of 80,000 minibatches"


def test_a_run_that_has_lost_what_it_had_learned_is_told(tmp_path):
    planned = curve("xml", OURS["xml"])
    write_curve(tmp_path, "xml", OURS["xml"], 1.0)
    for seed in planned.seeds:
        shutil.rmtree(planned.folder(tmp_path, 1e-3, seed))
        lost = 2.5 if seed else 1.0
        write_run(planned, tmp_path, 1e-3, seed, lambda s, lost=lost: 1.0 if s < 70_000 else lost)
    [told] = [text for name, text in judged("6a", tmp_path).numbers.items() if name.endswith("final cost")]
    assert told == "1.75 (1 to 2.5), 1 of 2 had been lower: 1"


def test_an_early_lead_on_arithmetic_decides_nothing(tmp_path):
    for copies in (1, 4, 8):
        planned, cost = curve("arithmetic", f"associative-lstm-{copies}"), 1.0 if copies == 1 else 1.2
        write_curve(tmp_path, "arithmetic", planned.network.name, cost)
        write_whole(tmp_path, "arithmetic", planned.network.name, 1.4 if copies == 1 else 1.2)
    claim = judged("5a", tmp_path)
    assert (claim.verdict, claim.read(FAST).verdict) == ("holds", "fails")  # each as long as it is planned
    for seed in planned.seeds:
        shutil.rmtree(planned.folder(tmp_path, 1e-3, seed))
        write_run(planned, tmp_path, 1e-3, seed, lambda s: 1.2, 40_000)
    claim = judged("5a", tmp_path)
    assert (claim.verdict, claim.numbers["reason"]) == ("undecided", "after 40,000 of 300,000 minibatches")


def test_another_reading_says_what_it_lacks(tmp_path):
    write_curve(tmp_path, "assignment", "associative-lstm-3-heads-4-batch-1", 0.1)
    shutil.rmtree(curve("assignment", "associative-lstm-3-heads-4-batch-1").folder(tmp_path, 1e-3, 1))
    reading = judged("6d", tmp_path).read("without W_hu")
    assert reading.lacks == ("assignment/associative-lstm-3-heads-4-batch-1: 1 of 2 seeds",)


@pytest.mark.parametrize(
    ("eight", "verdict"), [([5000], "holds"), ([5000, 30_000, 5000], "undecided"), ([39_000], "fails")]
)
def test_with_variable_lengths_several_copies_are_before_the_unitary_rnns(tmp_path, eight, verdict):
    for network in ("unitary-rnn-256", "multiplicative-unitary-rnn-256"):
        write_solving(tmp_path, "copy-variable", network, 20_000)
    write_solving(tmp_path, "copy-variable", "associative-lstm-4", 5000)
    write_solving(tmp_path, "copy-variable", "associative-lstm-8", *eight)
    assert judged("2e", tmp_path).verdict == verdict


def test_the_criterion_before_is_asked_of_the_fast_recipe_too(tmp_path):
    """1 copy, lower over the whole run, and level in the end."""
    lstms = dict.fromkeys(("lstm-128", "lstm-128-forget-1"), "fast-lstm-128")
    for network in ("associative-lstm-1", *lstms):
        write_curve(tmp_path, "assignment", network, 0.5)
    for network in {"fast-associative-lstm-1", *lstms.values()}:
        write_curve(tmp_path, "assignment", network, 0.5, best=5e-3)
    assert judged("4c", tmp_path).read(FAST_BEFORE).verdict == "undecided"
    assert judged("3a", tmp_path).read(FAST_BEFORE) is None


def test_a_claim_is_judged_a_second_time_by_the_fast_recipe(tmp_path):
    for copies, cost in ((1, 1.0), (4, 0.5), (8, 0.8)):
        write_curve(tmp_path, "xml", f"associative-lstm-{copies}", cost)
    fast = judged("3a", tmp_path).read(FAST)
    assert fast.verdict == "undecided"
    assert "xml/fast-associative-lstm-8" in fast.numbers["not_yet_run"]
    for copies, cost in ((1, 0.4), (4, 0.2), (8, 0.1)):
        write_curve(tmp_path, "xml", f"fast-associative-lstm-{copies}", cost, best=5e-3)
    claim = judged("3a", tmp_path)
    assert (claim.verdict, claim.read(FAST).verdict) == ("fails", "holds")
    assert len(claim.read(FAST).runs) == 15
    assert claim.read(FAST).short  # 5,000 minibatches in the place of 20,000
    assert not any("fast" in run for run in claim.runs)


def test_short_runs_of_the_fast_recipe_do_not_tell_what_whole_ones_are_asked_for(tmp_path):
    """10,000 minibatches in the place of 300,000 as the paper trained."""
    write_curve(tmp_path, "arithmetic", "associative-lstm-1", 2.0)
    write_curve(tmp_path, "arithmetic", "fast-associative-lstm-1", 0.5, best=5e-3)
    claim = judged("5d", tmp_path)
    assert (claim.verdict, claim.read(FAST).verdict) == ("fails", "undecided")
    whole = "arithmetic/fast-associative-lstm-1 for 300,000 minibatches"
    assert claim.read(FAST).numbers == {"not_yet_run": whole}
    assert claim.read(SHORT).verdict == "holds"  # what the short ones would have said
    for cost, verdict in ((2.0, "fails"), (0.5, "holds")):
        shutil.rmtree(tmp_path / "arithmetic" / "fast-associative-lstm-1")
        write_whole(tmp_path, "arithmetic", "associative-lstm-1", cost)
        claim = judged("5d", tmp_path)
        assert (claim.read(FAST).verdict, claim.read(SHORT), claim.read(FAST).short) == (verdict, None, False)
    planned = fast_curve("arithmetic", "associative-lstm-1", 300_000)
    cut_off = planned.folder(tmp_path, 5e-3, 30)
    (cut_off / "log.jsonl").write_text(
        "".join((cut_off / "log.jsonl").read_text().splitlines(keepends=True)[:-1])
    )
    assert judged("5d", tmp_path).read(FAST).verdict == "undecided"  # its rate has not come down to the end


@pytest.mark.parametrize(
    ("costs", "verdict"), [((1.0, 1.0, 1.0), "holds"), ((1.0, 1.0, 0.7), "fails"), ((0.7, 0.7, 0.7), "fails")]
)
def test_not_doing_well_can_hold_and_fail(tmp_path, costs, verdict):
    """On arithmetic a quarter of what remembering nothing costs is 0.79 bits."""
    write_curve(tmp_path, "arithmetic", "associative-lstm-4", 2.0)
    write_curve(tmp_path, "arithmetic", "associative-lstm-8", *costs)
    assert judged("5f", tmp_path).verdict == verdict
    falling = curve("arithmetic", "associative-lstm-4")
    shutil.rmtree(falling.folder(tmp_path, 1e-3, 0))
    write_run(falling, tmp_path, 1e-3, 0, lambda s: 2.0 - s / falling.steps)
    assert judged("5f", tmp_path).verdict == ("undecided" if verdict == "holds" else "fails")


def test_a_lead_that_is_too_small_fails_however_small_it_is():
    assert [measures.beats([1.0], [b], factor=1.5) for b in (1.05, 1.3, 1.6, 0.9)] == [
        False,
        False,
        True,
        False,
    ]
    assert measures.beats([1.0, 1.2], [1.1, 1.15], factor=1.5) is False  # no two seeds differ as much
    assert measures.beats([1.0, 1.2], [1.1, 1.6], factor=1.5) is None
    assert [measures.beats([1.0], [b]) for b in (1.05, 1.3, 0.95, 0.5)] == [None, True, None, False]


def test_every_claim_of_the_paper_has_a_second_verdict(tmp_path):
    for figure in FIGURES:
        for claim in figure.claims:
            assert (claim.judge(Logs(tmp_path)).read(FAST) is not None) == (
                figure.name not in ("starts", "fast")
            )


def test_what_is_compared_by_the_fast_recipe_has_one_length(tmp_path):
    """Rates fall towards the end of a run, so that others are elsewhere in theirs; such claims say so."""
    for claim in CLAIMS.values():
        lengths = {(c.task, c.steps) for c in claim.needed_fast}
        assert len(lengths) == len({task for task, _ in lengths}), claim.key
    for key in ("5c", "13c"):
        told = CLAIMS[key].judge(Logs(tmp_path)).read(FAST)
        assert told.verdict == "undecided"
        assert f"{curve('arithmetic', 'fast-3-heads-4').steps:,} minibatches" in told.numbers["reason"]


def test_claims_that_ask_for_whole_runs_by_the_fast_recipe_share_them():
    """Seeds of their own, none of which is asked for with two lengths; and as long as the others are planned."""
    folders = {}
    for c in {c for claim in CLAIMS.values() for c in claim.needed_fast}:
        for seed, steps in [*((seed, c.steps) for seed in c.seeds), (c.swept_with, c.sweep_steps)]:
            folders.setdefault(c.folder(Path(), c.rates[0], seed), set()).add(steps)
    assert all(len(lengths) == 1 for lengths in folders.values())
    whole = {(c.task, c.network.name): c.steps for c in CLAIMS["1b"].needed_fast}
    assert whole == {("copy", "fast-associative-lstm-1"): 40_000, ("copy", "fast-lstm-128"): 40_000}
    (heads,) = CLAIMS["6d"].needed_fast
    assert (heads.steps, heads.sweep_steps, heads.seeds) == (40_000, 5_400, (30, 31))


def write_starts(runs, costs):
    for task in START_TASKS:
        for copies in START_COPIES:
            for c, cost in zip(start_curves(task, copies), costs, strict=True):
                write_curve(runs, task, c.network.name, cost)


def test_starts_that_differ_and_one_that_serves_all(tmp_path):
    write_starts(tmp_path, (2.0, 1.9, 1.0, 1.1))
    assert judged("8a", tmp_path).verdict == "holds"
    claim = judged("8b", tmp_path)
    assert claim.verdict == "holds"
    assert claim.numbers["best for all"] == "conjugate keys, forget bias 0"


def test_no_start_serves_all_where_each_fails_on_some_task(tmp_path):
    for task, costs in zip(START_TASKS, ((1.0, 2.0), (2.0, 1.0), (1.0, 2.0)), strict=True):
        for copies in START_COPIES:
            for c, cost in zip(start_curves(task, copies), costs * 2, strict=True):
                write_curve(tmp_path, task, c.network.name, cost)
    assert judged("8b", tmp_path).verdict == "fails"


def test_starts_with_a_seed_that_diverged_are_written(tmp_path):
    write_starts(tmp_path / "runs", (2.0, 1.9, 1.0, 1.1))
    cut_short(curve("xml", "associative-lstm-1"), tmp_path / "runs", 1e-3, 2, 50)
    IN_ALL["starts"].draw(tmp_path / "out", Logs(tmp_path / "runs"))
    claims = read_claims(tmp_path / "out" / "claims.json")
    assert claims[1].numbers["Glorot keys, forget bias 0: at worst over the best"] == "diverged"


def test_slower_than_ever_seen_is_slow(tmp_path):
    """A unitary RNN that solves the fixed and never the variable task within the run has slowed down enough."""
    for network in ("unitary-rnn-256", "multiplicative-unitary-rnn-256"):
        write_curve(tmp_path, "copy", network, 0.1)
        write_curve(tmp_path, "copy-variable", network, 4.0)
    assert judged("2a", tmp_path).verdict == "holds"
    write_curve(tmp_path, "copy", "associative-lstm-1", 0.1)
    write_curve(tmp_path, "copy-variable", "associative-lstm-1", 4.0)
    assert judged("2b", tmp_path).verdict == "fails"
