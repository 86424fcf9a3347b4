"""What the recall comparison says, in words and tables: of what was measured, and only of that."""

import itertools

import pytest

from associative_lstm.lab.draw.tables import save_rows
from associative_lstm.lab.experiments.recall import cost, forgetting
from associative_lstm.lab.experiments.recall.answer import advice, by_size, findings
from associative_lstm.lab.experiments.recall.grid import MAD, SEEDS, SETTINGS
from associative_lstm.lab.experiments.recall.page import BEGIN, END, block, filled, page_of
from associative_lstm.lab.experiments.recall.study import read, write
from recall_rows import best_of, made, reason


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
    take = "mLSTM or Mamba-2 or DeltaNet or Gated DeltaNet"
    assert f"| 0.31 (0.31 to 0.31) | – | mLSTM 0.87 (0.87 to 0.87) | 1.0 | {take} |" in page
    assert "| H3 | 2,000 | 0.19 |" in page
    assert all(SETTINGS[name].title in page for name in ("stacked", "mqar"))
    assert (
        "| network | weights | In-context recall (guessing: 0.12) | Fuzzy recall (guessing: 0.12) | " in page
    )
    assert "| LSTM | 70,000 | " + " | ".join(["0.87 (0.87 to 0.87)"] * len(MAD)) in page
    guessing = (
        "Parity (guessing: 0.50) | Modular arithmetic (guessing: 0.20) | Swaps of five (guessing: 0.01) | "
        "Modular arithmetic, without the symbol before (guessing: 0.20)"
    )
    assert page.count(f"| network | weights | {guessing} |") == 2
    assert (
        "| Associative LSTM, 16 copies, N_h 240 | 1,000 | 70,000 | 0.003 | 3 | 0.31 (0.31 to 0.31) |" in page
    )
    assert "| Associative LSTM, 4 copies, N_h 52 | 1 | 0.40 | 1.00 | 0.45 | 0.98 | 9.0 | 8.0 | 7.8 |" in page


def test_the_answer_is_a_table_where_several_stand_beside_each_other():
    stacked = made(lambda s, n: 0.9 if n[:3] in ("att", "gru") else 0.5, settings=["stacked"])
    said = by_size(stacked)
    assert "| network | Stacked MQAR, 32 pairs: 256 | Stacked MQAR, 32 pairs: 1,024 |" in said
    assert "| GRU | **0.90 (0.90 to 0.90)** | – | – |" in said
    assert "| Attention | – | 0.90 (0.90 to 0.90) | 0.90" in said  # what it keeps is of no fixed size
    assert "| Associative LSTM, 16 copies | 0.50 (0.50 to 0.50) | **0.50 (0.50 to 0.50)** |" in said
    assert by_size({}) == by_size(made(seeds=SEEDS[:2])) == ""


def test_what_is_not_yet_run_comes_last():
    stacked = made(settings=["stacked"])
    said = block(stacked, [], [])
    left = sum(len(setting.points) for setting in SETTINGS.values()) - len(stacked)
    assert f"README.md).\n\n{left} of {left + len(stacked)} networks by task are" in said
    assert said.index("Who should use what") < said.index("| task |") < said.index("recall.png)")
    assert "still to be run" not in block(made(), [], [])
    assert block({}, [], []) == f"{BEGIN}\n\nNot yet run.\n\n{END}"
    assert "\n\nNot yet run: MQAR, 4 pairs; " in page_of(stacked, [], [], [])
    assert "Not yet run" not in page_of(made(), [], [], [reason()]).split("## Claims")[0]
    del stacked["stacked", "deltanet-1x64"], stacked["stacked", "gru-256"]
    assert "Stacked MQAR, 32 pairs: GRU 256, DeltaNet 1 head of 64; " in page_of(stacked, [], [], [])


def advised(measured, task="Stacked MQAR, 32 pairs", numbers="1,024"):
    """What the table of advice says of a task and a size of state: ours, better forms, others, weights, take."""
    rows = [line.strip("| ").split(" | ") for line in advice(measured).splitlines() if line.startswith("| ")]
    [found] = [row[2:] for row in rows if row[:2] == [task, numbers]] or [None]
    return found


def test_advice_is_where_all_stand_beside_each_other():
    stacked = made(settings=["stacked"])
    stacked["stacked", "mamba2-4x16"] = made(lambda s, n: 0.7)["stacked", "mamba2-4x16"]
    even = "0.50 (0.50 to 0.50)"
    assert advised(stacked) == [even, "–", "Mamba-2 0.70 (0.70 to 0.70)", "1.0", "Mamba-2"]
    assert advised(stacked, numbers="4,096") == [even, "–", f"mLSTM {even}", "1.0", "either"]
    counts = "is ahead of the best of the others in 0, as good in 2, behind in 1; in 0 seeds overlap."
    said = (
        "To recall, Mamba-2.\n\n"
        f"In 3 comparisons at equal state, the Associative LSTM with 16 copies {counts}"
    )
    assert advice(stacked).startswith(f"**Who should use what.** {said}\n\nRecall at equal state, ")
    del stacked["stacked", "deltanet-1x64"]
    assert advised(stacked, numbers="4,096") is None
    assert advice({}) == advice(made(seeds=SEEDS[:2])) == ""


@pytest.mark.parametrize(
    ("ours", "take"), [(0.9, "DeltaNet"), (0.985, "either"), (1.0, "either"), (0.9699, "DeltaNet")]
)
def test_advice_is_by_task_and_by_16_copies_alone(ours, take):
    def accuracy(setting, network):
        if setting == "mqar":
            return 0.8 if network.startswith("associative-240-16") else 0.5
        if network.startswith("associative"):
            return ours if network == "associative-240-16" else 1.0
        return 0.99 if network.startswith("delta") else 0.7

    measured = made(accuracy)
    assert advised(measured, numbers="4,096")[-1] == take
    assert advised(measured, "MQAR, 4 pairs")[-1] == "either"
    assert advised(measured, "MQAR, 4 pairs", "4,096")[-1] == "Associative LSTM, 16 copies"


@pytest.mark.parametrize(
    ("better", "who", "counts"),
    [
        ({}, "neither before the other", "in 0, as good in 6, behind in 0"),
        ({"stacked": ["ours"], "mqar": ["ours"]}, "the Associative LSTM", "in 2, as good in 4, behind in 0"),
        (
            {"stacked": ["ours"], "mqar": ["deltanet"]},
            "neither before the other",
            "in 1, as good in 4, behind in 1",
        ),
        (
            {"stacked": ["mamba2"], "mqar": ["deltanet"]},
            "Mamba-2 or DeltaNet",
            "in 0, as good in 4, behind in 2",
        ),
        ({"mqar": ["deltanet", "mamba2"]}, "Mamba-2 or DeltaNet", "in 0, as good in 5, behind in 1"),
    ],
)
def test_advice_counts_who_is_ahead(better, who, counts):
    names = {"ours": "associative-60-16", "deltanet": "deltanet-1x32", "mamba2": "mamba2-4x16"}
    best = {(setting, names[name]) for setting, some in better.items() for name in some}
    said = advice(made(lambda s, n: 0.9 if (s, n) in best else 0.5, settings=["stacked", "mqar"]))
    assert f"To recall, {who}.\n\nIn 6 comparisons" in said
    assert f"ahead of the best of the others {counts};" in said


def test_advice_counts_ours_against_several():
    best = {("stacked", "associative-60-16"), ("mqar", "associative-60-16"), ("mqar", "deltanet-1x64")}
    said = advice(made(lambda s, n: 0.9 if (s, n) in best else 0.5, settings=["stacked", "mqar"]))
    assert "To recall, the Associative LSTM.\n\nIn 6 " in said
    assert "in 2, as good in 3, behind in 1;" in said


def test_ours_stands_beside_networks_of_as_many_weights():
    means = {"associative-60-16": 0.8, "deltanet-1x64": 0.9, "mamba2-4x32": 0.7}
    measured = made(lambda s, n: means.get(n, 0.5), settings=["stacked", "mqar"])
    for name, weights in {"associative-60-16": 79_000, "deltanet-1x64": 58_000}.items():
        for row in measured["stacked", name] + measured["mqar", name]:
            row["parameters"] = weights
    ranked = "DeltaNet 0.90, Associative LSTM, 16 copies 0.80, Mamba-2 0.70, mLSTM 0.50, Gated DeltaNet 0.50"
    weights = "ours (79,000 weights, about 1,024 numbers) beside theirs (4,096 numbers)"
    more = "With a quarter of their state and 1.1 to 1.4 times their weights"
    said = f"- **{more}**, {weights}. Stacked MQAR, 32 pairs: {ranked}."
    assert f"{said} MQAR, 4 pairs: {ranked}.\n" in findings(measured, [], [])
    del measured["mqar", "mlstm-1x63"]
    assert f"{said}\n" in findings(measured, [], [])
    del measured["stacked", "associative-60-16"]
    assert "times their weights" not in findings(measured, [], [])


def test_advice_tells_the_weights_that_ours_takes():
    measured = made(settings=["stacked"])
    for row in measured["stacked", "associative-240-16"]:
        row["parameters"] = 7 * 70_000
    assert [advised(measured, numbers=numbers)[3] for numbers in ("1,024", "4,096")] == ["1.0", "7.0"]


def test_advice_does_not_hide_that_seeds_overlap():
    measured = made(lambda s, n: 0.9 if n == "associative-60-16" else 0.8, settings=["stacked"])
    assert advised(measured)[-1] == "Associative LSTM, 16 copies"
    measured["stacked", "mlstm-1x31"][1]["accuracy"] = 0.92
    assert advised(measured)[2:] == ["mLSTM 0.84 (0.80 to 0.92)", "1.0", "seeds overlap"]


def test_better_forms_of_ours_are_named():
    better = {"associative-60-16": 0.94, "associative-60-16-shift": 0.985, "deltanet-1x32": 1.0}
    assert advised(made(lambda s, n: better.get(n, 0.95)))[1] == "shifts 0.98"
    assert advised(made())[1] == "–"


def test_where_both_recall_nearly_all_is_said():
    alike = "as good in 7 (where both recall nearly all),"
    assert alike in advice(made(lambda s, n: 0.98))
    assert alike not in advice(made(lambda s, n: 0.5 if s == "stacked" else 0.98))


def test_shifts_are_advised_where_they_recall_more_and_nowhere_less():
    def measured(**shifts):
        return made(lambda s, n: shifts.get(s, 0.7) if n.endswith("shift") else 0.7)

    with_shifts = 'Other forms of it recall more:\n\n- about 1,024 numbers, `permutation="shift"`: '
    more = "0.90 instead of 0.70 of Stacked MQAR, 32 pairs"
    assert f"{with_shifts}{more}.\n" in advice(measured(stacked=0.9))
    less = measured(stacked=0.9, parity=0.6)
    told = "; but it keeps less track of a state: 0.60 instead of 0.70 of Parity"
    assert f"{more}{told}.\n" in advice(less)
    less["parity", "associative-60-16-shift"][0]["longer"] = 0.71
    assert f"{more}.\n" in advice(less)  # seeds overlap
    assert "recall more" not in advice(measured())
    assert "recall more" not in advice(measured(stacked=0.9, mqar=0.6))


def test_few_copies_are_advised_for_a_small_state_where_they_recall_more():
    def said(few):
        measured = made(lambda s, n: few if (s, n) == ("mqar", "associative-52-4") else 0.7)
        for row in measured["stacked", "associative-52-4"]:
            row["parameters"] = 2.5 * 70_000
        return advice(measured)

    weights = "with 2.5 times the weights, 2.5 times DeltaNet's; it was not run on state tracking"
    assert f"\n- about 256 numbers, 4 copies: 0.90 instead of 0.70 of MQAR, 4 pairs, {weights}.\n" in said(
        0.9
    )
    assert "4 copies:" not in said(0.71)


def kept(measured, network):
    """What the table says of a network: 32 stacked pairs, MQAR, parity, modular arithmetic, swaps of five."""
    [table] = [part for part in advice(measured).split("\n\n") if part.startswith("| network | Stacked")]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    [found] = [row[1:] for row in rows if row[0] == network] or [None]
    return found


def recalls_and_tracks(setting, network):
    if setting == "s5":
        return 0.97 if network == "gated-deltanet-1x32-negative" else 0.3
    if setting in ("parity", "modular-aided"):
        return 0.98 if network == "associative-60-16" else 0.5
    return 0.8 if network == "mlstm-1x31" else 0.95


def test_advice_says_who_recalls_and_keeps_track():
    measured = made(recalls_and_tracks)
    assert kept(measured, "Associative LSTM, 16 copies") == [*["**0.95**"] * 2, *["**0.98**"] * 2, "0.30"]
    assert kept(measured, "mLSTM") == ["0.80", "0.80", "0.50", "0.50", "0.30"]
    assert kept(measured, "Gated DeltaNet, eigenvalues from -1")[-1] == "**0.97**"
    assert kept(measured, "Attention") is kept(measured, "Associative LSTM, 4 heads") is None
    assert "numbers (LSTM and GRU: 256), means" in advice(measured)
    short = made(lambda s, n: 0.5 if (s, n) == ("mqar", "mamba2-4x16") else recalls_and_tracks(s, n))
    assert kept(short, "Mamba-2")[1] == "**0.95**†"  # of MQAR the better training counts
    short = made(lambda s, n: 0.5 if s == "mqar-long" else recalls_and_tracks(s, n))
    assert kept(short, "Mamba-2")[1] == "**0.95**"
    assert "such a DeltaNet is published with 0.97 of modular arithmetic" in advice(short)
    both = "To recall and to keep track of a state as well, "
    assert f"{both}Associative LSTM, 16 copies (all tasks below but Swaps of five).\n" in advice(short)
    all_of = advice(made(lambda s, n: 0.95))
    assert f"{both}Associative LSTM, 16 copies (all tasks below) or Associative LSTM, shifts (all " in all_of
    assert both not in advice(made(lambda s, n: 0.5))
    assert kept(made(lambda s, n: 0.896), "DeltaNet")[0] == "**0.90**"  # what is shown as 0.9 counts as that
    measured["s5", "associative-60-16"].pop()
    assert kept(measured, "Associative LSTM, 16 copies")[-1] == "–"
    for row, longer in zip(measured["s5", "deltanet-1x32-negative"], (0.03, 0.04, 0.99), strict=True):
        row["longer"] = longer
    assert kept(measured, "DeltaNet, eigenvalues from -1")[-1] == "0.35 (best 0.99)"
    assert "lengths trained" not in advice(made(settings=["stacked", "mqar"]))


def test_rivals_that_do_not_learn_what_is_reported_are_named():
    measured = made(lambda s, n: 0.95)
    assert "reliably learn" not in findings(measured, [], [])
    for row, accuracy in zip(measured["mqar", "mamba2-4x32"], (0.2, 0.7, 0.98), strict=True):
        row["accuracy"] = accuracy
    for row in measured["mqar", "mlstm-1x31"]:
        row["accuracy"] = 0.8
    longer = "With about 1,024 numbers, in 13 and in 32 passes: mLSTM 0.80 and 0.95 (best seed 0.95); "
    assert f"about 4,096 numbers: Mamba-2 0.63 (best seed 0.98). {longer}" in findings(measured, [], [])
    measured = {where: rows for where, rows in measured.items() if where[0] != "mqar-long"}
    assert "Mamba-2 0.63 (best seed 0.98). They are published" in findings(measured, [], [])


def test_the_mean_over_mads_tasks_is_told_of_those_that_were_run_on_all():
    measured = made(lambda s, n: {"mad-fuzzy": 0.1}.get(s, 0.6) if n == "associative-60-16" else 0.4)
    del measured["mad-noisy", "mamba2-4x16"]
    others = "LSTM 0.40; mLSTM 0.40; DeltaNet 0.40; Gated DeltaNet 0.40; Attention 0.40"
    said = findings(measured, [], [])
    alone = (
        "n this time selective copying is learned by Associative LSTM, 16 copies (0.60) alone. Without it: "
    )
    assert f"far fewer than published): Associative LSTM, 16 copies 0.50; {others}. I{alone}" in said
    assert f"{alone}Associative LSTM, 16 copies 0.47; {others}." in said
    for row in measured["mad-copying", "lstm-128"]:
        row["accuracy"] = 1.0
    assert f"It is decided by one of them: i{alone.replace('by', 'by LSTM (1.00) and')}" in findings(
        measured, [], []
    )


def test_the_best_mean_and_those_that_are_close_to_it_are_bold():
    close = {"associative-60-16": 0.99, "deltanet-1x32": 0.971, "mamba2-4x16": 0.969, "attention-1x8": 1.0}
    said = by_size(made(lambda s, n: close.get(n, 0.5), settings=["stacked"]))
    assert "**0.99 (0.99 to 0.99)**" in said
    assert said.count("**0.97 (0.97 to 0.97)**") == 1
    assert "**1.00" not in said  # what it keeps is of no fixed size


def test_seeds_that_lie_far_apart_are_each_told():
    measured = made(settings=["stacked"])
    for row, accuracy in zip(measured["stacked", "mlstm-1x31"], (0.97, 0.03, 0.64), strict=True):
        row["accuracy"] = accuracy
    assert " | **0.55 (0.03 / 0.64 / 0.97)** | " in by_size(measured)


def test_what_ours_recalls_without_the_symbol_before_is_said():
    said = "Without it ours recalls 0.42; the others"
    assert said in findings(made(lambda s, n: 0.42 if s == "mqar-unaided" else 0.9), [], [])
    assert "ours recalls" not in findings(made(settings=["mqar"]), [], [])


def test_copies_answer_whether_binding_must_fail():
    def said(best, one=0.2):
        copies = {"16": best, "1": one}
        return findings(made(lambda s, n: copies.get(n.split("-")[-1], 0.3)), [], [])

    assert "(arXiv 2604.05030)? No, if it has copies. Of" in said(0.95)
    assert "(arXiv 2604.05030)? No. Of" in said(0.95, 0.9)
    assert "(arXiv 2604.05030)? Of" in said(0.5)
    some = "1 copy (1,000 numbers) 0.20, 4 copies (1,000 numbers) 0.30, 16 copies (1,000 numbers) 0.95."
    alike = "1 copy 0.20, 2 copies 0.30, 4 copies 0.30, 8 copies 0.30."
    assert f"it recalls: {some} Of four pairs for every copy: {alike}" in said(0.95)


def test_the_answer_blames_what_the_numbers_blame():
    def said(seeds=SEEDS, **numbers):
        return findings(made(), [reason(seed=seed, **numbers) for seed in seeds], [])

    noise, keys = "the other pairs drown them", "; random keys would mend less than a quarter"
    assert f"{noise}{keys}. Right as trained / without" in said()
    assert "on 32 sequences: 4 copies of N_h 52 0.40 / 1.00 / 0.45 (N_h: " in said()
    assert noise in said(random_keys=0.7)
    assert keys not in said(random_keys=0.7)
    assert noise not in said(alone=0.6)
    assert "of 32 stacked ones. Right as trained / without" in said(alone=0.6)
    assert "stacked ones" not in said(right=0.95)
    assert "stacked ones" not in said(seeds=SEEDS[:2])


def test_how_soon_answers_are_found_is_told_of_the_middle_size(tmp_path):
    measured = made(lambda s, n: 0.3 if n == "lstm-128" else 0.9, settings=["mqar"])
    its = measured["mqar", "deltanet-1x32"]
    its[0]["bits"] = [[100, 1.0]]  # the seed in the middle is told
    assert "; DeltaNet 400; " in findings(measured, [], [])
    its[1]["bits"] = [[100, 3.0], [200, 1.0]]
    said = findings(measured, [], [])
    assert "(median of the seeds; about 1,024 numbers, LSTM 256): DeltaNet 200; Associative LSTM, " in said
    assert "; Associative LSTM, 16 copies 400; " in said
    assert "; not in the time, with most seeds: LSTM." in said
    its[0]["diverged"] = True
    assert "; DeltaNet 400; " in findings(measured, [], [])
    assert "| LSTM 128 | 200 | 300 | – | – | 2.50 |" in page_of(measured, [], [], [])
    write(tmp_path, list(itertools.chain(*measured.values())), [])
    assert (tmp_path / "learning.png").is_file()
    slow = made(lambda s, n: 0.3, settings=["mqar"])
    assert "LSTM 256): not in the time, " in findings(slow, [], [])
    del measured["mqar", "associative-60-16"]
    assert "How soon" not in findings(measured, [], [])


def test_the_price_is_told_beside_deltanet():
    costs = [
        {"network": name, "parameters": 80, "step_milliseconds": step, "token_microseconds": token}
        | {"peak_bytes": 30}
        for name, step, token in (("associative-60-16", 60.0, 300.0), ("deltanet-1x32", 40.0, 600.0))
    ]
    numbers = "weights 1.0, a training step 1.5, its memory 1.0, a token 0.5"
    said = f"operations): with about 1,024 numbers {numbers}. That is on a CPU."
    assert said in findings(made(), [], costs)
    assert "DeltaNet's" not in findings(made(), [], costs[:1])
    priced = {"associative-60-16", "deltanet-1x32", "associative-240-16", "gru-256", "unitary-rnn-256"}
    assert priced <= {p.name for p in cost.points()}


def test_the_block_of_the_documentation_is_replaced_and_nothing_else():
    text = f"# Title\n\n{BEGIN}\nwhat was there\n{END}\n\nafter\n"
    once = filled(text, made(), [], [])
    assert once.startswith("# Title\n\n")
    assert once.endswith("\n\nafter\n")
    assert "what was there" not in once
    assert filled(once, made(), [], []) == once
