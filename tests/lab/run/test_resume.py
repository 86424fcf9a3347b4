"""Resume is exact: killed at any moment, a run ends with the same bits as one never interrupted."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from associative_lstm.kernels.compiler import threads
from associative_lstm.lab.files import RunError
from associative_lstm.lab.run.checkpoint import find_checkpoints, load_checkpoint
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import read_log
from associative_lstm.lab.run.loop import resume, train
from waiting import HANGS, wait_for_lines

SETTINGS = {
    "task": "assignment",
    "model": "lstm",
    "hidden_size": 8,
    "window": 20,
    "log_every": 5,
    "checkpoint_every": 10,
}


def config(**changes):
    return complete(SETTINGS | changes)


def flatten(value, name=""):
    """Every tensor and number of a checkpoint, by its path."""
    if isinstance(value, dict):
        return {k: v for key in value for k, v in flatten(value[key], f"{name}/{key}").items()}
    if isinstance(value, list | tuple):
        return {k: v for i, item in enumerate(value) for k, v in flatten(item, f"{name}/{i}").items()}
    return {name: value}


def assert_same_run(one, other):
    assert (one / "log.jsonl").read_bytes() == (other / "log.jsonl").read_bytes()
    tests = [run / "test.jsonl" for run in (one, other)]
    assert [path.exists() for path in tests] in ([False, False], [True, True])
    assert len({path.read_bytes() for path in tests if path.exists()}) <= 1
    assert (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()
    left, right = (flatten(load_checkpoint(find_checkpoints(run)[0])["trainer"]) for run in (one, other))
    assert left.keys() == right.keys()
    for name, value in left.items():
        same = torch.equal(value, right[name]) if isinstance(value, torch.Tensor) else value == right[name]
        assert same, name


@pytest.mark.parametrize(
    ("task", "seed", "kills"), [("assignment", 1, 14), ("copy", 2, 6), ("wikipedia", 3, 8)]
)
def test_a_run_killed_at_random_moments_ends_like_one_never_killed(tmp_path, task, seed, kills):
    script = Path(__file__).with_name("killing.py")
    command = [sys.executable, str(script), str(tmp_path / "killed"), str(tmp_path / "whole"), task]
    done = subprocess.run(
        [*command, str(seed), str(kills)], capture_output=True, text=True, timeout=HANGS, check=False
    )
    assert done.returncode == 0, done.stderr
    assert_same_run(tmp_path / "killed", tmp_path / "whole")
    assert not list((tmp_path / "killed").glob(".*.tmp"))
    assert not list((tmp_path / "killed").glob("*.1"))  # a kill loses nothing that does not come again


@pytest.mark.parametrize("model", ["associative-lstm", "permutation-rnn", "unitary-rnn", "ntm"])
def test_every_networks_state_is_carried_through_a_checkpoint(tmp_path, model):
    extra = {"copies": 2} if model == "associative-lstm" else {}
    train(config(model=model, steps=15, **extra), tmp_path / "whole")
    train(config(model=model, steps=5, **extra), tmp_path / "halves")
    resume(tmp_path / "halves", steps=15)
    left, right = (find_checkpoints(tmp_path / name)[0] for name in ("whole", "halves"))
    left, right = (flatten(load_checkpoint(path)["trainer"]["model"]) for path in (left, right))
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_resume_is_exact_with_threads_that_are_started_anew(tmp_path, monkeypatch):
    """Through three layers gradients vanish into denormals, which every thread must take alike."""
    before = torch.get_num_threads()
    model = {"model": "associative-lstm", "copies": 2, "layers": 3}
    model |= {"window": 100, "batch_size": 4, "threads": 2}
    try:
        for name, parts in (("whole", [20]), ("halves", [10, 20])):
            for steps in parts:
                monkeypatch.setattr(threads, "_pool", None)  # as in a new process
                if steps == parts[0]:
                    train(config(steps=steps, **model), tmp_path / name)
                else:
                    resume(tmp_path / name, steps=steps)
    finally:
        torch.set_num_threads(before)
    assert_same_run(tmp_path / "whole", tmp_path / "halves")


def test_two_checkpoints_are_kept_and_a_damaged_one_is_named_and_passed_over(tmp_path):
    train(config(steps=40), tmp_path / "whole")
    run = tmp_path / "run"
    train(config(steps=30), run)
    newest, before = find_checkpoints(run)
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    said, log = [], (run / "log.jsonl").read_bytes()
    resume(run, steps=40, say=said.append)
    assert said == [
        f"{newest} is damaged (its content is not what was written); continuing from {before.name}",
        f"what was there is kept in {run / 'log.jsonl.1'}, {run / 'times.jsonl.1'}",
    ]
    assert (run / "log.jsonl.1").read_bytes() == log
    assert_same_run(run, tmp_path / "whole")
    assert len(find_checkpoints(run)) == 2
    assert newest not in find_checkpoints(run)


def test_without_a_usable_checkpoint_nothing_is_started_over(tmp_path):
    train(config(steps=20), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.jsonl")}
    for path in find_checkpoints(tmp_path):
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RunError, match=r"no checkpoint can be used: .* is damaged"):
        resume(tmp_path, steps=30)
    assert {path: path.read_bytes() for path in before} == before


def test_a_log_shorter_than_its_checkpoint_says_is_a_damaged_run(tmp_path):
    train(config(steps=20), tmp_path)
    (tmp_path / "log.jsonl").write_bytes(b"")
    with pytest.raises(RunError, match=r"log.jsonl has 0 bytes and should have"):
        resume(tmp_path, steps=30)


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    train(config(steps=10), tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in ("log.jsonl", "model.safetensors")}
    resume(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    with pytest.raises(RunError, match="steps can be raised, not lowered: the run has 10, got 5"):
        resume(tmp_path, steps=5)


def test_two_processes_on_one_run_are_refused_until_one_is_killed(tmp_path):
    train(config(steps=10), tmp_path)
    holder = (
        "import pathlib, sys; from associative_lstm.lab.run.folder import hold; "
        "held = hold(pathlib.Path(sys.argv[1])); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(RunError, match="in use by another process"):
            resume(tmp_path, steps=20)
        with pytest.raises(RunError, match="in use by another process"):
            train(config(steps=10), tmp_path)
        process.kill()
    resume(tmp_path, steps=20)


def test_an_existing_run_is_not_trained_over(tmp_path):
    train(config(steps=10), tmp_path)
    with pytest.raises(RunError, match="already holds a run: continue it with `alstm resume"):
        train(config(steps=10), tmp_path)


def test_ctrl_c_finishes_the_step_saves_and_says_how_to_go_on(tmp_path):
    settings = (
        "--model lstm --hidden-size 8 --window 20 --steps 100000 --log-every 5 --checkpoint-every 100000"
    )
    command = [sys.executable, "-m", "associative_lstm.lab.cli", "train", "assignment", *settings.split()]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / "run")], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        log = tmp_path / "run" / "log.jsonl"
        wait_for_lines([log], process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANGS)
    assert process.returncode == 130
    checkpoint, beginning = find_checkpoints(tmp_path / "run")
    assert load_checkpoint(beginning)["trainer"]["step"] == 0
    step = load_checkpoint(checkpoint)["trainer"]["step"]
    assert f"stopped after step {step}; continue with: alstm resume {tmp_path / 'run'}" in errors
    assert "Traceback" not in errors
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(5, step + 1, 5))


def test_the_log_can_be_read_while_it_is_written_and_after_a_crash(tmp_path):
    train(config(steps=20), tmp_path)
    whole = read_log(tmp_path)
    assert [line["step"] for line in whole] == [5, 10, 15, 20]
    assert all(line["seconds"] >= 0 for line in whole)
    log = (tmp_path / "log.jsonl").read_bytes()
    (tmp_path / "log.jsonl").write_bytes(log[:-9])
    assert read_log(tmp_path) == whole[:3]
    shutil.copytree(tmp_path, tmp_path / "copy")
    (tmp_path / "copy" / "times.jsonl").unlink()
    assert [line["seconds"] for line in read_log(tmp_path / "copy")] == [None] * 3
