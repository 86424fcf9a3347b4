"""The recorded comparison with today's networks: verdicts, page and documentation are what its numbers say."""

from pathlib import Path

import pytest

from associative_lstm.lab.experiments.claim import read_claims
from associative_lstm.lab.experiments.recall.page import filled, page_of
from associative_lstm.lab.experiments.recall.study import judge_all, read

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "results" / "recall", ROOT / "docs" / "recall.md"
there = pytest.mark.skipif(not RESULTS.is_dir(), reason="the comparison has not been recorded")


@there
def test_verdicts_and_page_come_from_the_numbers():
    measured, costs, reasons = read(RESULTS)
    recorded, judged = read_claims(RESULTS / "claims.json"), judge_all(measured)
    assert [(c.key, c.sentence, c.criterion, c.verdict) for c in recorded] == [
        (c.key, c.sentence, c.criterion, c.verdict) for c in judged
    ]
    assert (RESULTS / "README.md").read_text() == page_of(measured, recorded, costs, reasons)


def test_the_documentation_says_what_was_measured():
    measured, costs, reasons = read(RESULTS) if RESULTS.is_dir() else ({}, [], [])
    assert filled(PAGE.read_text(), measured, reasons, costs) == PAGE.read_text()
