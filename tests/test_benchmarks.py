"""The scripts that measure, in small: that they run and say what they should, not how fast anything is."""

import importlib.util
from pathlib import Path

import pytest

from associative_lstm.lab.experiments.learning.curves import curve, smoke

FOLDER = Path(__file__).parent.parent / "benchmarks"


def script(name):
    specification = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the measurement reads /proc")
def test_the_corpus_is_mapped_and_not_copied(tmp_path):
    text = tmp_path / "text"
    text.write_bytes(bytes(range(256)) * 4 * 2**15)  # 32 MiB
    measured = script("wikipedia").start(str(text))
    assert measured["corpus_mib"] == 32
    assert measured["private_mib_when_opened"] < 4
    assert measured["private_mib_after_5000_minibatches"] < 4


def test_the_plan_adds_up_runs_of_a_curve():
    row = script("scaling")._row(smoke(curve("assignment", "associative-lstm-4")))
    assert len(row["run_hours"]) == 1 + 10  # two rates of which one goes on, ten seeds
    assert row["checkpoints"] == row["log_lines"] == 2 + 10 * 5
    assert row["checkpoint_bytes"] > 1000
    assert sum(row["run_hours"]) > 10 * row["whole_run_hours"] > 0
