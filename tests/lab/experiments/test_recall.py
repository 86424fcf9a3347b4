"""The recall comparison: a fair grid, rates chosen by held-out cost, claims that can hold and fail, the page."""

import itertools
import json
from pathlib import Path

import pytest
import torch

from associative_lstm.lab.cli import main
from associative_lstm.lab.draw.tables import save_rows
from associative_lstm.lab.experiments.learning.judging import preparation
from associative_lstm.lab.experiments.learning.runs import Logs, make_runs, read_curve
from associative_lstm.lab.experiments.recall import cost, forgetting, grid, study
from associative_lstm.lab.experiments.recall.grid import MAD, SEEDS, SETTINGS, SIZES, SWEEP_SEED
from associative_lstm.lab.experiments.recall.page import BEGIN, END, answer, block, filled, page_of
from associative_lstm.lab.experiments.recall.study import (
    CLAIMS,
    judge_all,
    measured_rows,
    read,
    write,
)
from associative_lstm.lab.sweep.local import local
from made_runs import write_lines, write_run


def made(accuracy=lambda setting, network: 0.5, settings=SETTINGS, seeds=SEEDS):
    """What the whole grid would measure if each network had the accuracy that a function tells."""
    measured = {}
    for setting in (SETTINGS[name] for name in settings):
        for point in setting.points:
            said = accuracy(setting.name, point.name)
            row = {"setting": setting.name, "network": point.name, "state": 1000, "parameters": 70_000}
            row |= {"rate": 3e-3, "accuracy": said}
            if setting.name in grid.TRACKING:
                row["longer"] = said
            if setting.name in grid.DRAWN:
                costs = (7.0, 3.0, 2.0, 1.0) if said > 0.4 else (7.0, 5.0, 2.1, 2.0)
                row["held_out_bits"] = 0.25 if said > 0.4 else 2.5
                row["bits"] = [[100 * (k + 1), cost] for k, cost in enumerate(costs)]
            measured[setting.name, point.name] = [row | {"seed": seed} for seed in seeds]
    return measured


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


def best_of(ours, others):
    """Accuracies with which ours are as good as they can be; copies buy recall by their ratio to the pairs."""

    def accuracy(setting, network):
        if setting.startswith("copies-"):
            return max(0.1, 1 - 0.05 * int(setting[7:]) / int(network.split("-")[-1]))
        if setting == "mqar-unaided":
            return 0.2
        if setting == "parity":
            return 1.0 if network.split("-")[0] in ("associative", "lstm", "gru") else 0.5
        return ours if network.startswith("associative") else others

    return accuracy


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
        if network.endswith(("shift", "60-13-4")) or network == "associative-16-16":
            return 0.1
        return 0.3 if network.startswith("associative") else 0.7

    assert set(verdicts(made(bad)).values()) == {"fails"}


def test_what_cannot_be_told_is_undecided():
    same = verdicts(made(lambda setting, network: 0.97))
    assert same["12h"] == same["12i"] == same["12j"] == "undecided"
    assert verdicts(made(lambda setting, network: 0.2))["12m"] == "undecided"


def test_the_page_has_every_number_and_says_who_should_use_what(tmp_path):
    measured = made(best_of(0.31, 0.87))
    rows = list(itertools.chain(*measured.values()))
    save_rows(tmp_path / forgetting.FILE, [reason()])
    outcome = write(tmp_path, rows, [])
    assert all(path.is_file() for path in outcome.written)
    assert tmp_path / forgetting.FILE in outcome.written
    again, costs, reasons = read(tmp_path)
    assert (costs, reasons) == ([], [reason()])
    page = (tmp_path / "README.md").read_text()
    assert page == page_of(again, outcome.claims, costs, reasons)
    assert "take mLSTM (0.87), not Associative LSTM, 16 copies (0.31)." in page
    assert all(SETTINGS[name].title in page for name in ("stacked", "mqar"))
    assert "| network | In-context recall | Fuzzy recall | " in page
    assert "| LSTM | " + " | ".join(["0.87 (0.87 to 0.87)"] * len(MAD)) in page
    guessing = (
        "Parity (guessing: 0.50) | Modular arithmetic (guessing: 0.20) | Swaps of five (guessing: 0.01)"
    )
    assert page.count(f"| network | {guessing} |") == 2
    assert (
        "| Associative LSTM, 16 copies, N_h 240 | 1,000 | 70,000 | 0.003 | 3 | 0.31 (0.31 to 0.31) |" in page
    )
    assert "| Associative LSTM, 4 copies, N_h 52 | 1 | 0.40 | 1.00 | 0.45 | 0.98 | 9.0 | 8.0 | 7.8 |" in page


def test_the_answer_is_a_table_and_advice_where_all_stand_beside_each_other():
    stacked = made(lambda s, n: 0.9 if n[:3] in ("att", "gru") else 0.5, settings=["stacked"])
    said = answer(stacked, [], [])
    assert "| network | Stacked MQAR, 32 pairs: 256 | Stacked MQAR, 32 pairs: 1,024 |" in said
    assert "| GRU | **0.90 (0.90 to 0.90)** | – | – |" in said
    assert "| Attention | – | 0.90 (0.90 to 0.90) | 0.90" in said  # what it keeps is of no fixed size
    assert "| Associative LSTM, 16 copies | 0.50 (0.50 to 0.50) | **0.50 (0.50 to 0.50)** |" in said
    assert "About 4,096 numbers: mLSTM (0.50) and Associative LSTM, 16 copies (0.50) serve alike." in said
    assert "Not yet run" not in said  # that comes after the picture
    assert "recall.png)\n\nEvery table, " in block(stacked, [], [])
    left = sum(len(setting.points) for setting in SETTINGS.values()) - len(stacked)
    assert f"README.md).\n\n{left} of {left + len(stacked)} networks by task are" in block(stacked, [], [])
    assert "still to be run" not in block(made(), [], [])
    assert "\n\nNot yet run: MQAR, 4 pairs; " in page_of(stacked, [], [], [])
    assert "Not yet run" not in page_of(made(), [], [], [reason()])[:10_000].split("## Claims")[0]
    del stacked["stacked", "deltanet-1x64"], stacked["stacked", "gru-256"]
    stacked["stacked", "mamba2-4x16"] = made(lambda s, n: 0.7)["stacked", "mamba2-4x16"]
    assert "Stacked MQAR, 32 pairs: GRU 256, DeltaNet 1 head of 64; " in page_of(stacked, [], [], [])
    said = answer(stacked, [], [])
    advice = "About 1,024 numbers: take Mamba-2 (0.70), not Associative LSTM, 16 copies (0.50). What speaks"
    assert advice in said  # of the sizes at which all are there
    assert answer({}, [], []) == answer(made(seeds=SEEDS[:2]), [], []) == "Not yet run."


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        (0.9, "take DeltaNet (0.99), not Associative LSTM, 16 copies (0.90)."),
        (0.985, "DeltaNet (0.99) and Associative LSTM, 16 copies (0.98) serve alike."),
        (1.0, "DeltaNet (0.99) and Associative LSTM, 16 copies (1.00) serve alike."),
    ],
)
def test_advice_is_by_task_and_by_16_copies_alone(ours, said):
    def accuracy(setting, network):
        if setting == "mqar":
            return 0.8 if network.startswith("associative-240-16") else 0.5
        if network.startswith("associative"):
            return ours if network == "associative-240-16" else 1.0
        return 0.99 if network.startswith("delta") else 0.7

    [advice, *_] = answer(made(accuracy), [], []).split("\n")
    assert advice.index("Stacked MQAR, 32 pairs, about 256 numbers: ") < advice.index(
        f". About 4,096 numbers: {said} Stacked MQAR, 64 pairs, about 1,024 numbers: "
    )
    serve_alike = "mLSTM (0.50) and Associative LSTM, 16 copies (0.50) serve alike."
    assert (
        f" About 1,024 numbers: {serve_alike} "
        "About 4,096 numbers: take Associative LSTM, 16 copies (0.80), not mLSTM (0.50). What speaks "
        in advice
    )


def test_advice_tells_the_weights_that_ours_takes():
    measured = made(settings=["stacked"])
    for row in measured["stacked", "associative-240-16"]:
        row["parameters"] = 7 * 70_000
    said = answer(measured, [], [])
    assert (
        "About 4,096 numbers: mLSTM (0.50) and Associative LSTM, 16 copies (0.50, 7.0 times the weights)"
        in said
    )
    assert said.count("times the weights") == 1


def test_advice_does_not_hide_that_seeds_overlap():
    measured = made(lambda s, n: 0.9 if n == "associative-60-16" else 0.8, settings=["stacked"])
    assert "About 1,024 numbers: take Associative LSTM, 16 copies (0.90), not mLSTM (0.80)." in answer(
        measured, [], []
    )
    measured["stacked", "mlstm-1x31"][1]["accuracy"] = 0.92
    said = "About 1,024 numbers: Associative LSTM, 16 copies (0.90) before mLSTM (0.84), but seeds overlap."
    assert said in answer(measured, [], [])


def test_rivals_that_do_not_learn_what_is_reported_are_named():
    measured = made(lambda s, n: 0.95)
    assert "authors report" not in answer(measured, [], [])
    for row, accuracy in zip(measured["mqar", "mamba2-4x32"], (0.2, 0.7, 0.98), strict=True):
        row["accuracy"] = accuracy
    assert "about 4,096 numbers: Mamba-2 (0.63, best seed 0.98). So" in answer(measured, [], [])


def test_better_forms_of_ours_are_named():
    better = {"associative-60-16": 0.94, "associative-60-16-shift": 0.985, "deltanet-1x32": 1.0}
    measured = made(lambda s, n: better.get(n, 0.95))
    for point in [p for p in SETTINGS["stacked"].points if p.size == "large"]:
        del measured["stacked", point.name]
    assert (
        "take DeltaNet (1.00), not Associative LSTM, 16 copies (0.94). Better forms of ours there: shifts (0.98)."
        in answer(measured, [], [])
    )
    assert "Better forms" not in answer(made(), [], [])


def test_the_best_mean_as_shown_is_bold():
    close = {"associative-60-16": 0.9951, "deltanet-1x32": 0.9902, "mamba2-4x16": 0.9949}
    said = answer(made(lambda s, n: close.get(n, 0.5), settings=["stacked"]), [], [])
    assert said.count("**1.00 (1.00 to 1.00)**") == 1
    assert "**0.99" not in said
    del close["associative-60-16"]
    said = answer(made(lambda s, n: close.get(n, 0.5), settings=["stacked"]), [], [])
    assert said.count("**0.99 (0.99 to 0.99)**") == 2


def test_seeds_that_lie_far_apart_are_each_told():
    measured = made(settings=["stacked"])
    for row, accuracy in zip(measured["stacked", "mlstm-1x31"], (0.97, 0.03, 0.64), strict=True):
        row["accuracy"] = accuracy
    assert " | **0.55 (0.03 / 0.64 / 0.97)** | " in answer(measured, [], [])


def test_who_keeps_track_is_said_where_all_stand_beside_each_other():
    def accuracy(setting, network):
        return 0.95 if setting == "parity" and network in ("lstm-128", "gru-256") else 0.5

    measured = made(accuracy)
    del measured["modular-arithmetic", "mamba2-4x16"]
    best = "Swaps of five: none, best Associative LSTM, 16 copies (0.50)"
    assert f"seeds. Parity: LSTM (0.95); GRU (0.95). {best}.\n" in answer(measured, [], [])
    del measured["s5", "gru-256"]
    assert f"{best}; not yet run: GRU.\n" in answer(measured, [], [])
    assert "lengths trained" not in answer(made(settings=["stacked"]), [], [])


def reason(network="associative-52-4", seed=30, **numbers):
    row = {"network": network, "seed": seed, "rate": 0.01, "right": 0.4, "alone": 1.0, "random_keys": 0.45}
    return row | {"match": 0.98, "interference": 9, "random_interference": 8, "expected": 7.75} | numbers


def test_the_answer_blames_what_the_numbers_blame():
    def said(seeds=SEEDS, **numbers):
        return answer(made(), [reason(seed=seed, **numbers) for seed in seeds], [])

    noise, keys = "the others drown them", ": keys as unlike as random ones would mend less than a quarter"
    assert f"{noise}{keys}. Right as they are, by what" in said()
    assert "random ones: 4 copies of N_h 52 0.40, 1.00, 0.45.\n" in said()
    assert noise in said(random_keys=0.7)
    assert keys not in said(random_keys=0.7)
    assert noise not in said(alone=0.6)
    assert "of 32 stacked ones. Right as they are, by what" in said(alone=0.6)
    assert "stacked ones" not in said(right=0.95)
    assert "stacked ones" not in said(seeds=SEEDS[:2])


def test_how_soon_answers_are_found_is_told_of_the_middle_size(tmp_path):
    measured = made(lambda s, n: 0.3 if n == "lstm-128" else 0.9, settings=["mqar"])
    its = measured["mqar", "deltanet-1x32"]
    its[0]["bits"] = [[100, 1.0]]  # the seed in the middle is told
    assert "; DeltaNet (400); " in answer(measured, [], [])
    its[1]["bits"] = [[100, 3.0], [200, 1.0]]
    said = answer(measured, [], [])
    assert "unitary RNN 256): DeltaNet (200); Associative LSTM, " in said
    assert "; Associative LSTM, 16 copies (400); " in said
    assert "; not in the time: LSTM (at the end 2.0)." in said
    its[0]["diverged"] = True
    assert "; DeltaNet (400); " in answer(measured, [], [])
    assert "| LSTM 128 | 200 | 300 | – | – | 2.50 |" in page_of(measured, [], [], [])
    write(tmp_path, list(itertools.chain(*measured.values())), [])
    assert (tmp_path / "learning.png").is_file()
    slow = made(lambda s, n: 0.3, settings=["mqar"])
    assert "unitary RNN 256): not in the time: " in answer(slow, [], [])
    del measured["mqar", "associative-60-16"]
    assert "How soon" not in answer(measured, [], [])


def test_the_price_is_told_beside_deltanet():
    costs = [
        {"network": name, "parameters": 80, "step_milliseconds": step, "token_microseconds": token}
        for name, step, token in (("associative-60-16", 60.0, 300.0), ("deltanet-1x32", 40.0, 600.0))
    ]
    said = "a multiple of DeltaNet's: weights 1.0, on one thread a training step 1.5, a token 0.5."
    assert said in answer(made(), [], costs)
    assert "DeltaNet's" not in answer(made(), [], costs[:1])
    assert {"associative-60-16", "deltanet-1x32", "associative-240-16"} <= {p.name for p in cost.points()}


def test_the_block_of_the_documentation_is_replaced_and_nothing_else():
    text = f"# Title\n\n{BEGIN}\nwhat was there\n{END}\n\nafter\n"
    once = filled(text, made(), [], [])
    assert once.startswith("# Title\n\n")
    assert once.endswith("\n\nafter\n")
    assert "what was there" not in once
    assert filled(once, made(), [], []) == once


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


def test_the_plan_counts_runs_and_hours():
    [(_, milliseconds, runs, hours)] = cost.plan("mqar-unaided", steps=1)
    assert runs == len(grid.RATES) + len(SEEDS)
    assert hours == pytest.approx(runs * SETTINGS["mqar-unaided"].minibatches * milliseconds / 3.6e6)


def test_ours_has_at_most_two_fifths_more_weights_than_rivals_of_four_times_its_state():
    setting = SETTINGS["stacked"]
    sizes = {point.name: setting.sizes(point) for point in setting.points}
    state, weights = sizes[study.OURS["medium"]]
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
