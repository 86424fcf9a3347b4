"""The recorded learning curves: verdicts and the README's table are what the logs say."""

from pathlib import Path

import pytest

from associative_lstm.lab.experiments import fig10
from associative_lstm.lab.experiments.claims import read_claims
from associative_lstm.lab.experiments.learning import figures
from associative_lstm.lab.experiments.learning.claims import statements_of
from associative_lstm.lab.experiments.learning.curves import NETWORKS, START_TASKS, curve
from associative_lstm.lab.experiments.learning.runs import read_curve
from associative_lstm.lab.experiments.verdicts import verdict_table
from associative_lstm.lab.packed import runs_below
from associative_lstm.lab.runlog import read_config

ROOT = Path(__file__).parent.parent
RESULTS, RUNS = ROOT / "results", ROOT / "results" / "runs"


@pytest.mark.parametrize("name", figures.NAMES)
def test_verdicts_come_from_the_logs(name):
    recorded = read_claims(RESULTS / name / "claims.json")
    judged = [statement.judge(RUNS) for statement in statements_of(name)]
    assert [(c.key, c.verdict, dict(c.numbers)) for c in recorded] == [
        (c.key, c.verdict, pytest.approx(dict(c.numbers))) for c in judged
    ]
    assert [c.criterion for c in recorded] == [c.criterion for c in judged]


def test_the_readme_shows_the_verdicts():
    shown = (ROOT / "README.md").read_text().split("<!-- verdicts -->\n")[1]
    assert shown.strip() == verdict_table(RESULTS, (*figures.NAMES, "fig10"))


def test_figure_10s_verdicts_and_page_come_from_the_logs(monkeypatch):
    monkeypatch.setattr(fig10, "one_pass", lambda data, smoke: 96_000)  # for which enwik8 would be needed
    found = [read_curve(RUNS, curve) for curve in fig10.curves_of(None)]
    assert read_claims(RESULTS / "fig10" / "claims.json") == fig10.judge_curves(found, RUNS, 96_000)
    assert (RESULTS / "fig10" / "README.md").read_text() == fig10.page(found, 96_000)


def test_the_readme_quotes_figure_10():
    numbers = read_claims(RESULTS / "fig10" / "claims.json")[0].numbers
    shown = (ROOT / "README.md").read_text().split("### Wikipedia\n")[1].split("\n### ")[0]
    lstm, associative = [(cost, name.split()[-1]) for name, cost in numbers.items()][:2]
    for cost, rate in (lstm, associative):
        assert f"{cost:.3f}" in shown
        assert f"(at rate {rate})" in shown.replace("\n", " ")
    assert f"{lstm[0] - associative[0]:.3f} bits" in shown


def test_the_readme_recommends_the_start_that_was_best():
    (claim,) = (c for c in read_claims(RESULTS / "starts" / "claims.json") if c.key == "8b")
    shown = (ROOT / "README.md").read_text().split("### Which start?")[1].split("\n## ")[0]
    for task in START_TASKS:
        assert f"| {task} | {claim.numbers[f'best for {task}']} |" in shown
    assert f"| nearest to the best on all three | {claim.numbers['best for all']} |" in shown


def test_every_recorded_run_has_the_configuration_that_its_folder_names():
    recorded = runs_below(RUNS)
    assert recorded
    for network in NETWORKS:
        for task in ("copy", "copy-variable", "xml", "assignment", "arithmetic"):
            for folder in (run for run in recorded if run.parent == RUNS / task / network):
                found = read_config(folder)
                planned = curve(task, network)
                assert found == planned.config(found.learning_rate, found.seed, found.steps)
                assert folder == planned.folder(RUNS, found.learning_rate, found.seed)
