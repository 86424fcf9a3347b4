"""The scripts that measure, in small: that they run and say what they should, not how fast anything is."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from associative_lstm.lab.experiments.learning.curves import RATES, curve, smoke
from associative_lstm.lab.experiments.learning.wikipedia import PASS, SWEEP_STEPS

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
    assert row["log_lines"] == 2 + 10 * 5
    assert row["checkpoints"] == 10
    assert row["checkpoint_bytes"] > 1000
    assert sum(row["run_hours"]) > 10 * row["whole_run_hours"] > 0


def test_the_plan_on_the_page_is_the_one_that_was_computed():
    plan = json.loads((FOLDER.parent / "results" / "scaling" / "plan.json").read_text())
    page = (FOLDER.parent / "docs" / "scaling.md").read_text()
    passes = [row for row in plan["rows"] if row["task"] == "wikipedia"]
    minibatches = SWEEP_STEPS * (len(RATES) - 1) + PASS * plan["seeds"]
    assert {row["checkpoints"] for row in passes} == {minibatches // 1000}
    hours, chain = plan["processor_hours"], plan["longest_chain_hours"]
    idle = 1 - hours / (plan["machines"] * plan["hours_on_machines_of_one_core_at_best"])
    traffic = plan["checkpoint_traffic_gigabytes"]
    for sentence in (
        f"| {plan['runs']:,}, of {plan['curves']} networks and tasks |",
        f"| {hours:.0f} hours; {10 * sum(row['whole_run_hours'] for row in passes):.0f} of them are the 30 passes",
        f"| {chain:.1f} hours |",
        f"the processors idle for {100 * idle:.0f} % of it |",
        f"| {traffic:.0f} GB, nearly all of it checkpoints: {1e3 * traffic / chain / 3600:.0f} MB/s on average |",
        f"| {plan['storage_with_two_checkpoints_gigabytes']:.0f} GB; the logs alone",
        f"published, {plan['log_megabytes']:.0f} MB |",
        f"So {hours / chain:.0f} machines with one core would be about as fast ({hours:.0f} / {chain:.1f})",
    ):
        assert sentence in page, sentence


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("gpu", [0, 1, 2], ids=["sm_80", "sm_90", "gfx942"])
def test_the_triton_kernels_compile_for_gpus_with_all_their_barriers(gpu):
    """In a process of its own: in this one, Triton interprets."""
    program = f"""
import gpu
odd = {{"n": 50, "heads": 3, "HEADS": 4, "rows_h": 25 * 50 - 300}}  # no power of two
every = dict.fromkeys(("reverse", "smooth", "packed", "turning"), True)
for kernel, own in (gpu.loops.forward, "keep"), (gpu.loops.backward, "above_cells"):
    for items in (2, 16):
        made = gpu.compile_kernel(kernel, gpu.GPUS[{gpu}], 100, 3, items, **odd, **every, **{{own: True}})
        assert made.registers > 0 and made.barriers >= 3, made
    try:
        gpu.check_barriers(kernel, "")
    except gpu.Missing:
        continue
    raise AssertionError("a missing barrier was not missed")
assert gpu.launches_of_the_loop(2)[0] > 20
"""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join([str(FOLDER), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
