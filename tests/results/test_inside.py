"""What was found inside trained networks: verdicts and pages are what the recorded numbers say."""

import re
import runpy
from pathlib import Path

import pytest

from associative_lstm.lab.experiments.claim import read_claims
from associative_lstm.lab.experiments.inside.study import judge_all, page_of, read

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "results" / "inside", ROOT / "docs" / "inside.md"


def test_verdicts_and_page_come_from_the_numbers():
    measured, recorded = read(RESULTS), read_claims(RESULTS / "claims.json")
    judged = judge_all(measured)
    assert [(c.key, c.sentence, c.criterion, c.verdict) for c in recorded] == [
        (c.key, c.sentence, c.criterion, c.verdict) for c in judged
    ]
    for ours, theirs in zip(judged, recorded, strict=True):
        assert dict(theirs.numbers) == pytest.approx(dict(ours.numbers))
    assert (RESULTS / "README.md").read_text() == page_of(measured, recorded)


def test_the_section_of_the_documentation_is_that_page():
    script = runpy.run_path(str(ROOT / "benchmarks" / "inside.py"))
    assert script["with_study"](PAGE.read_text()) == PAGE.read_text()


def test_every_page_that_is_linked_is_there_and_small():
    pages = re.findall(r"\]\((inside/\w+\.html)\)", PAGE.read_text())
    assert pages
    assert sorted(pages) == sorted(f"inside/{path.name}" for path in (ROOT / "docs" / "inside").iterdir())
    assert all((ROOT / "docs" / page).stat().st_size < 1e6 for page in pages)
