"""The recorded runs of the baselines: the page is what the logs say, and the logs say what is claimed."""

import json
import runpy
from pathlib import Path

import pytest

from associative_lstm.lab.run.folder import read_config, read_log

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "baselines"


def test_the_page_is_made_from_the_logs():
    script = runpy.run_path(str(ROOT / "benchmarks" / "baselines_learn.py"))
    assert (RESULTS / "README.md").read_text() == script["page"]()


@pytest.mark.parametrize("name", ["permutation-rnn-lr1e-3", "permutation-rnn-lr3e-3", "unitary-rnn-lr1e-3"])
def test_permutation_and_unitary_rnn_solve_the_copy_task(name):
    config = read_config(RESULTS / name)
    assert (config.task, config.batch_size, config.hidden_size) == ("copy", 2, 256)
    assert read_log(RESULTS / name)[-1]["answer"] < 1


def test_the_ntm_solves_its_copy_task_and_goes_on_to_twice_the_length():
    folder = RESULTS / "ntm-copy-lr1e-3"
    config, log = read_config(folder), read_log(folder)
    assert (config.task, config.batch_size) == ("ntm-copy", 1)
    assert log[-1]["step"] <= 40_000
    assert log[-1]["cost"] / (8 * 10.5) < 0.01
    lengths = json.loads((folder / "lengths.json").read_text())
    assert lengths["length 20"] < 0.01
    assert lengths["length 40"] < 0.01


@pytest.mark.parametrize("task", ["xml", "assignment", "arithmetic"])
def test_the_ntm_stays_finite_on_the_online_tasks(task):
    config, log = read_config(RESULTS / f"ntm-{task}"), read_log(RESULTS / f"ntm-{task}")
    assert (config.hidden_size, config.heads, config.batch_size) == (384, 4, 1)
    assert log[-1]["step"] == 20_000  # a number that is not finite ends the reading of a log
