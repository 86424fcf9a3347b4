"""The recall comparison: a fair grid, rates chosen by held-out cost, claims that can hold and fail."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from associative_lstm.lab.cli import main
from associative_lstm.lab.experiments.learning.curves import FURTHER
from associative_lstm.lab.experiments.learning.judging import preparation
from associative_lstm.lab.experiments.learning.runs import Logs, make_runs, read_curve
from associative_lstm.lab.experiments.recall import cost, grid, study
from associative_lstm.lab.experiments.recall.grid import SEEDS, SETTINGS, SIZES, SWEEP_SEED
from associative_lstm.lab.experiments.recall.study import CLAIMS, judge_all, measured_rows
from associative_lstm.lab.sweep.local import local
from made_runs import write_lines, write_run
from recall_rows import best_of, made


def verdicts(measured):
    return {claim.key: claim.verdict for claim in judge_all(measured)}


def test_every_configuration_of_the_grid_is_a_whole_one():
    for curves in grid.needed().values():
        assert all(curve.config(1e-3, 30, 10) for curve in curves)
        folders = [curve.folder(Path("runs"), 1e-3, 30) for curve in curves]
        assert len(set(folders)) == len(folders)
    with pytest.raises(ValueError, match=r"only must be one of stacked, mqar, .*, got 'stackd'"):
        grid.needed(["stackd"])


@pytest.mark.parametrize("name", ["stacked", "mqar"])
def test_states_that_are_compared_are_about_equal(name):
    setting = SETTINGS[name]
    for point in setting.points:
        state, _ = setting.sizes(point)
        assert state == pytest.approx(SIZES[point.size], rel=0.07), point.label
    assert {p.size for p in setting.points if p.kind == grid.OURS} == set(SIZES)


def test_all_networks_of_a_setting_are_trained_alike():
    for setting in SETTINGS.values():
        curves = [setting.curve(point) for point in setting.points]
        assert len({(c.steps, c.sweep_steps, c.rates, c.seeds, c.sweep_seed) for c in curves}) == 1
        assert SWEEP_SEED not in SEEDS
        assert all(c.swept_with == SWEEP_SEED for c in curves if len(c.rates) > 1)
        own = {"model", "hidden_size", "copies", "heads", "head_size", "permutation", "convolution"}
        own |= {"negative_eigenvalues"}
        rest = [{k: v for k, v in c.network.values.items() if k not in own} for c in curves]
        assert all(values == rest[0] for values in rest)


def test_a_rate_is_chosen_by_the_cost_on_the_test_split(tmp_path):
    curve = SETTINGS["parity"].curve(SETTINGS["parity"].points[1])
    for rate, trained, tested in ((3e-4, 0.9, 0.8), (1e-3, 0.9, 0.2), (3e-3, 0.1, 0.9), (1e-2, 0.5, 0.5)):
        run = write_run(
            curve.folder(tmp_path, rate, SWEEP_SEED),
            curve.config(rate, SWEEP_SEED, curve.steps),
            level=trained,
        )
        write_lines(run / "test.jsonl", [{"step": curve.steps, "cost": tested, "accuracy": 0.5}])
    found = read_curve(tmp_path, curve)
    assert found.rate == 1e-3
    assert [job.config.seed for job in found.needed] == list(SEEDS)
    assert all(job.config.learning_rate == 1e-3 for job in found.needed)


@pytest.mark.parametrize(
    ("costs", "accuracy", "asked"),
    [
        ({}, 0.5, 3e-2),  # the last of the sweep is best
        ({3e-2: 0.3}, 0.5, 1e-1),  # and the one beyond it, too
        ({3e-2: 0.3}, 0.98, None),  # which solves the task
        ({3e-2: 0.9}, 0.5, None),
        ({3e-2: 0.3, 1e-1: 0.2}, 0.5, None),  # no further than that
        ({3e-4: 0.3}, 0.5, 1e-4),
        ({3e-4: 0.3, 1e-4: 0.2}, 0.5, 3e-5),
    ],
)
def test_where_the_highest_or_the_lowest_rate_is_best_those_beyond_are_tried(
    tmp_path, costs, accuracy, asked
):
    curve = SETTINGS["parity"].curve(SETTINGS["parity"].points[1])
    for rate, bits in ({3e-4: 0.9, 1e-3: 0.8, 3e-3: 0.7, 1e-2: 0.6} | costs).items():
        config = curve.config(rate, SWEEP_SEED, curve.steps)
        run = write_run(curve.folder(tmp_path, rate, SWEEP_SEED), config)
        write_lines(run / "test.jsonl", [{"step": curve.steps, "cost": bits, "accuracy": accuracy}])
    found = read_curve(tmp_path, curve)
    assert (found.rate is None) == (asked is not None)
    if asked is not None:
        assert [job.config.learning_rate for job in found.needed][-1] == asked
    by_training = read_curve(tmp_path, dataclasses.replace(curve, by_test=False))
    assert all(job.config.learning_rate not in FURTHER.values() for job in by_training.needed)


@pytest.mark.parametrize(
    ("right", "chosen"),
    [
        ((0.5, 0.97, 0.9, 0.4), 1e-2),  # none of them solves it: the cheapest
        ((0.5, 0.99, 1.0, 0.99), 3e-3),
        ((1.0, 1.0, 0.9, 0.98), 1e-3),
        ((0.9, 0.99, 0.9, 0.4), 1e-3),
        ((0.9, 0.9, 0.99, 1.0), 3e-3),  # of two the lower
    ],
)
def test_of_rates_that_solve_a_task_the_middle_one_is_chosen(tmp_path, right, chosen):
    curve = SETTINGS["parity"].curve(SETTINGS["parity"].points[1])
    for k, (rate, accuracy) in enumerate(zip((*curve.rates, 3e-2), (*right, 0.1), strict=True)):
        config = curve.config(rate, SWEEP_SEED, curve.steps)
        run = write_run(curve.folder(tmp_path, rate, SWEEP_SEED), config)
        cost = 9.0 if rate == 3e-2 else 1.0 - 0.1 * k  # the last of the sweep costs least
        write_lines(run / "test.jsonl", [{"step": curve.steps, "cost": cost, "accuracy": accuracy}])
    assert read_curve(tmp_path, curve).rate == chosen


def test_a_run_that_diverged_is_measured_and_no_proof_against_a_rival(tmp_path):
    setting = SETTINGS["parity"]
    names = [point.name for point in setting.points]
    for name, point in zip(names, setting.points, strict=True):
        curve = setting.curve(point)
        for rate in curve.rates:
            config = curve.config(rate, SWEEP_SEED, curve.steps)
            run = write_run(curve.folder(tmp_path, rate, SWEEP_SEED), config, level=rate)
            tested = {"cost": abs(rate - 1e-3), "accuracy": 0.9, "longer_accuracy": 0.9}
            write_lines(run / "test.jsonl", [{"step": curve.steps} | tested])
        for seed in SEEDS:
            config = curve.config(1e-3, seed, curve.steps)
            diverged = "too high" if name == "deltanet-1x32" and seed == SEEDS[0] else ""
            run = write_run(curve.folder(tmp_path, 1e-3, seed), config, diverged=diverged)
            if diverged:
                continue
            longer = 0.5 if name in study.MODERN["medium"] else 0.95
            tested = {"cost": 0.1, "accuracy": 0.95, "longer_accuracy": longer}
            write_lines(run / "test.jsonl", [{"step": curve.steps} | tested])
    rows = measured_rows(Logs(tmp_path))
    measured = {name: [row for row in rows if row["network"] == name] for name in names}
    assert [row["longer"] for row in measured["deltanet-1x32"]] == [0.0, 0.5, 0.5]
    found = {("parity", name): kept for name, kept in measured.items()}
    assert verdicts(found)["12o"] == "undecided"
    for row in measured["deltanet-1x32"]:
        row.pop("diverged", None)
    assert verdicts(found)["12o"] == "holds"


def test_a_claim_is_undecided_while_a_seed_is_missing():
    assert set(verdicts({}).values()) == {"undecided"}
    assert set(verdicts(made(seeds=SEEDS[:2])).values()) == {"undecided"}


def test_every_claim_can_hold_and_fail():
    good = best_of(0.95, 0.95)
    good_ones = made(lambda s, n: 0.5 if s == "stacked" and n in ("lstm-128", "gru-256") else good(s, n))
    held = verdicts(good_ones)
    assert set(held.values()) == {"holds"}, held

    def bad(setting, network):
        if setting.startswith("copies-"):
            return {"1": 0.9, "2": 0.1}.get(network.split("-")[-1], 0.9)
        if setting == "mqar-unaided":
            return 0.9
        if setting == "mqar" and network == "associative-60-16":
            return 0.6
        if network.endswith(("shift", "60-13-4", "negative")) or network == "associative-16-16":
            return 0.1
        if setting == "stacked" and network.startswith("deltanet"):
            return 0.95
        if setting == "parity" and "open" in network:
            return 0.7
        return 0.3 if network.startswith("associative") else 0.7

    assert set(verdicts(made(bad)).values()) == {"fails"}


@pytest.mark.parametrize("setting", ["stacked", "mqar"])
@pytest.mark.parametrize("rule", ["deltanet-1x32", "gated-deltanet-1x32"])
def test_a_delta_rule_that_recalls_less_with_other_eigenvalues_is_seen(setting, rule):
    def verdict(plain, negative):
        changed = {(setting, rule): plain, (setting, f"{rule}-negative"): negative}
        return verdicts(made(lambda s, n: changed.get((s, n), 0.95)))["12t"]

    assert verdict(0.95, 0.94) == "holds"
    assert verdict(0.95, 0.9) == "fails"
    assert verdict(0.8, 0.5) == "holds"  # one that does not recall without them either tells nothing
    assert verdicts(made(lambda s, n: 0.8))["12t"] == "undecided"


def test_shifts_must_serve_on_all_that_they_are_judged_by():
    def verdict(**shifts):
        return verdicts(made(lambda s, n: shifts.get(s, 0.95) if n.endswith("shift") else 0.95))["12v"]

    assert verdict() == verdict(mqar=0.94) == verdict(parity=0.91) == verdict(s5=0.1) == "holds"
    assert verdict(mqar=0.9) == verdict(parity=0.8) == verdict(**{"modular-aided": 0.8}) == "fails"
    assert (
        verdicts(made(lambda s, n: 0.85))["12v"] == "undecided"
    )  # random permutations do not keep track either


@pytest.mark.parametrize(
    ("network", "right", "verdict"),
    [
        ("associative-60-16", 0.85, "fails"),
        ("deltanet-1x32-negative", 0.7, "fails"),
        ("mlstm-1x31", 0.55, "holds"),
    ],
)
def test_on_modular_arithmetic_ours_must_stay_right_and_every_linear_network_not(network, right, verdict):
    good = best_of(0.95, 0.95)
    changed = {("modular-aided", network): right}
    assert verdicts(made(lambda s, n: changed.get((s, n), good(s, n))))["12u"] == verdict


def test_one_seed_that_keeps_track_is_enough_against_a_claim_that_none_does():
    measured = made(best_of(0.95, 0.95))
    network = "associative-64-16-open-associative-lstm"
    assert verdicts(measured)["12w"] == "holds"
    measured["parity", network][0] |= {"longer": 0.0, "diverged": True}
    assert verdicts(measured)["12w"] == "undecided"
    measured["parity", network][1]["longer"] = 0.9
    assert verdicts(measured)["12w"] == "fails"
    measured["modular-aided", "mamba2-4x16"][2]["longer"] = 0.7
    assert verdicts(measured)["12u"] == "fails"


def test_rivals_that_diverged_prove_nothing():
    measured = made()
    for row in measured["stacked", "deltanet-1x32"]:
        row |= {"accuracy": 0.0, "diverged": True}
    assert (verdicts(made())["12c"], verdicts(measured)["12c"]) == ("holds", "undecided")
    measured["stacked", "mlstm-1x31"] = made(lambda s, n: 0.9)["stacked", "mlstm-1x31"]
    assert verdicts(measured)["12c"] == "undecided"


def test_what_cannot_be_told_is_undecided():
    same = verdicts(made(lambda setting, network: 0.97))
    assert same["12h"] == same["12i"] == same["12j"] == "undecided"
    assert verdicts(made(lambda setting, network: 0.2))["12m"] == "undecided"


def test_a_setting_is_trained_drawn_and_judged_from_its_logs(tmp_path, monkeypatch):
    """Tiny networks: the sweep and one seed, by the same code as the whole."""
    some = {name: SETTINGS[name] for name in ("mqar-unaided", "parity")}
    some["parity"] = type(some["parity"])(
        **{k: v for k, v in vars(some["parity"]).items() if k != "points"},
        points=some["parity"].points[1:4:2],
    )
    for module in (grid, study):
        monkeypatch.setattr(module, "SETTINGS", some)
    monkeypatch.setattr(cost, "points", lambda: [SETTINGS["mqar"].points[2], SETTINGS["mqar"].points[-1]])
    prepare = preparation(quick=True)
    curves = [prepare(c) for its in grid.needed().values() for c in its]
    assert make_runs(tmp_path / "runs", curves, local(1)) == []
    logs = Logs(tmp_path / "runs", prepare)
    rows = measured_rows(logs)
    assert {(row["setting"], row["network"]) for row in rows} == {
        ("mqar-unaided", "associative-60-16"),
        ("parity", "lstm-128"),
        ("parity", "mlstm-1x31"),
    }
    assert all(0 <= row["accuracy"] <= 1 for row in rows)
    assert all("longer" in row for row in rows if row["setting"] == "parity")
    [unaided] = [row["bits"] for row in rows if row["setting"] == "mqar-unaided"]
    assert unaided[-1][0] == curves[0].steps
    assert all(0 < cost < 16 for _, cost in unaided)
    costs = cost.measure(0.01)
    assert all(row["disagreement"] < cost.TOLERANCE and row["peak_bytes"] > 0 for row in costs)
    assert len(costs) == 2
    json.dumps(costs)


def test_a_network_that_differs_token_by_token_is_not_timed():
    setting, point = cost.SETTING, cost.SETTING.points[2]
    config = setting.curve(point).config(1e-3, 30, 10)
    model = cost.build_model(config, cost.task_of(config))
    x = torch.randint(256, (12, 1))
    assert cost.disagreement(model, x) < cost.TOLERANCE
    model.previous, forgetful = True, type(model)._present
    model._present = lambda inputs: forgetful(model, inputs) * (2 if len(inputs) == 1 else 1)
    assert cost.disagreement(model, x) > cost.TOLERANCE


def test_the_plan_counts_runs_and_hours(monkeypatch):
    flushed = []

    def step(trainer, train=cost.Trainer.train_step):
        flushed.append(float(torch.full((), 1e-38) / 10) == 0.0)
        return train(trainer)

    monkeypatch.setattr(cost.Trainer, "train_step", step)
    before = float(torch.full((), 1e-38) / 10)
    [(_, milliseconds, runs, hours)] = cost.plan("mqar-unaided", steps=1)
    assert runs == len(grid.RATES) + len(SEEDS)
    assert hours == pytest.approx(runs * SETTINGS["mqar-unaided"].minibatches * milliseconds / 3.6e6)
    assert flushed == [True] * 3  # as in a run, or gradients that vanish would slow it down
    assert float(torch.full((), 1e-38) / 10) == before


def test_ours_has_at_most_two_fifths_more_weights_than_rivals_of_four_times_its_state():
    setting = SETTINGS["stacked"]
    sizes = {point.name: setting.sizes(point) for point in setting.points}
    state, weights = sizes[study.SIXTEEN["medium"]]
    for rival in study.MODERN["large"]:
        assert weights <= 1.4 * sizes[rival][1]
        assert sizes[rival][0] == pytest.approx(4 * state, rel=0.05)


def test_claims_need_what_the_grid_has():
    for _, _, needs, _ in CLAIMS.values():
        for setting, network in needs:
            assert network in [point.name for point in SETTINGS[setting].points]


def test_the_command_says_what_it_cannot_do_in_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "recall", "--only", "stackd"]) == 1
    assert capsys.readouterr().err.startswith("alstm: only must be one of stacked, mqar, ")
    assert main(["reproduce", "recall", "--smoke", "--runs", "results/mine"]) == 1
    assert "--smoke makes no results" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
