"""The recorded learning curves: verdicts, pages and what the README says of them are what the logs say."""

from pathlib import Path

import pytest

from associative_lstm.lab.experiments.claim import FAST, read_claims
from associative_lstm.lab.experiments.learning.curves import NETWORKS, START_TASKS, curve
from associative_lstm.lab.experiments.learning.figures import FIGURES
from associative_lstm.lab.experiments.learning.runs import Logs
from associative_lstm.lab.experiments.learning.wikipedia import FIG10
from associative_lstm.lab.report.page import write_report
from associative_lstm.lab.report.summary import SENTENCES, counts_in_words, sentences
from associative_lstm.lab.run.folder import read_config
from associative_lstm.lab.run.packed import read_bytes, runs_below

ROOT = Path(__file__).parents[2]
RESULTS, RUNS = ROOT / "results", ROOT / "results" / "runs"
PAGE = ROOT / "docs" / "reproduction.md"


@pytest.fixture(scope="module")
def logs():
    return Logs(RUNS)


def test_every_recorded_configuration_is_read_as_it_was_written():
    """Keys that came later, and what they choose by default, change none of them."""
    for run in runs_below(RUNS):
        text = read_bytes(run / "config.toml").decode()
        assert read_config(run).to_toml() == text, run


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_verdicts_come_from_the_logs(figure, logs):
    recorded = read_claims(RESULTS / figure.name / "claims.json")
    judged = [claim.judge(logs) for claim in figure.claims]
    assert [(c.key, c.verdict, dict(c.numbers)) for c in recorded] == [
        (c.key, c.verdict, pytest.approx(dict(c.numbers))) for c in judged
    ]
    assert [(c.sentence, c.criterion) for c in recorded] == [(c.sentence, c.criterion) for c in judged]
    assert [sorted(c.runs) for c in recorded] == [sorted(c.runs) for c in judged]


def test_the_page_of_verdicts_and_the_readme_come_from_the_logs(tmp_path):
    page = write_report(RUNS, RESULTS, tmp_path / "README.md")
    assert (RESULTS / "README.md").read_text() == (tmp_path / "README.md").read_text()
    assert sentences(page.claims) == [text for _, text in SENTENCES]
    assert page.claims["claim-9a"].numbers["share"] < 0.12  # the third of them says about a tenth
    again, first = page.claims["claim-1d"].read(FAST).numbers, page.claims["claim-1d"].numbers
    long, paper = (
        each["4 copies: solved at minibatch"].split()[0].replace(",", "") for each in (again, first)
    )
    assert 0.2 < int(long) / int(paper) < 0.3  # and a quarter in long runs
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert counts_in_words(page.sections) in readme


def test_figure_10s_page_comes_from_the_logs(logs):
    assert (RESULTS / "fig10" / "README.md").read_text() == FIG10.text_of_page(FIG10.passes(logs))


def test_the_page_quotes_figure_10():
    numbers = read_claims(RESULTS / "fig10" / "claims.json")[0].numbers
    shown = PAGE.read_text().split("## Wikipedia\n")[1].split("\n## ")[0]
    lstm, associative = [(cost, name.split()[-1]) for name, cost in numbers.items()][:2]
    for cost, rate in (lstm, associative):
        assert f"{cost:.3f}" in shown
        assert f"(at rate {rate})" in shown.replace("\n", " ")
    assert f"{lstm[0] - associative[0]:.3f} bits" in shown


def test_the_page_recommends_the_start_that_was_best():
    (claim,) = (c for c in read_claims(RESULTS / "starts" / "claims.json") if c.key == "8b")
    shown = PAGE.read_text().split("## Which start?")[1]
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
