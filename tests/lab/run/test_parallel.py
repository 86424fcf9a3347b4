"""Two processes (gloo, started by torchrun) do what one process does with the whole batch."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import associative_lstm.lab.run.folder
from associative_lstm.lab import cli
from associative_lstm.lab.files import RunError
from associative_lstm.lab.run import loop
from associative_lstm.lab.run.checkpoint import find_checkpoints, load_checkpoint
from associative_lstm.lab.run.folder import read_tests
from associative_lstm.lab.run.loop import resume
from waiting import HANGS, wait_for_lines

LAUNCHER = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SCRIPT = Path(__file__).with_name("parallel.py")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """What one process and two processes have written."""
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    text = one / "text"
    text.write_bytes(b"the cat sat on the mat. " * 500)
    for options, folder in (([], one), (LAUNCHER, two)):
        command = [sys.executable, *options, str(SCRIPT), str(folder), str(text)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS, check=False)
        assert done.returncode == 0, done.stderr
    return one, two


@pytest.mark.parametrize("task", ["assignment", "copy-variable"])
def test_the_gradients_are_those_of_the_whole_batch(folders, task):
    one, two = (torch.load(folder / f"{task}.pt", weights_only=True) for folder in folders)
    assert one.keys() == two.keys()
    for name in one:
        largest = one[name].abs().max().item()
        torch.testing.assert_close(two[name], one[name], rtol=0, atol=1e-4 * largest)  # sums in another order
        assert largest > 1e-4


@pytest.mark.parametrize("run", ["whole", "recipe"])
def test_the_curve_is_that_of_one_process(folders, run):
    """By the paper's recipe, and with gradients that are clipped, a rate that changes and weights that decay."""
    one, two = (associative_lstm.lab.run.folder.read_log(folder / run) for folder in folders)
    assert [line["step"] for line in one] == [line["step"] for line in two] == [5, 10, 12]
    for left, right in zip(one, two, strict=True):
        assert left["cost"] == pytest.approx(right["cost"], rel=1e-4)
        assert left["gradient_norm"] == pytest.approx(right["gradient_norm"], rel=1e-3)


@pytest.mark.parametrize("processes", [0, 1])
def test_resume_is_exact_with_the_same_number_of_processes(folders, processes):
    folder = folders[processes]
    whole, halves = ((folder / name / "model.safetensors").read_bytes() for name in ("whole", "halves"))
    assert whole == halves
    # A run cut in two has a line more in its log, at the cut; those before it, and the last one, are the same.
    whole, halves = ((folder / name / "log.jsonl").read_text().splitlines() for name in ("whole", "halves"))
    assert [whole[0], whole[-1]] == [halves[0], halves[-1]]


def test_a_log_that_was_changed_sends_both_processes_back_to_the_checkpoint_before(folders, tmp_path):
    folder = shutil.copytree(folders[1] / "whole", tmp_path / "run")
    log = folder / "log.jsonl"
    before = log.read_text().splitlines()
    log.write_text("\n".join([before[0], before[1].replace("10", "11", 1), before[2]]) + "\n")
    command = [sys.executable, *LAUNCHER, "-m", "associative_lstm.lab.cli", "resume", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("log.jsonl is not what was written; continuing from checkpoint-00000006") == 1
    assert log.read_text().splitlines() == before


def test_weights_and_permutations_are_the_same_in_every_process(folders):
    one, two = folders
    first, second = (torch.load(two / f"rank-{rank}.pt", weights_only=True) for rank in (0, 1))
    assert first.keys() == second.keys()
    assert any("permutations" in name for name in first)
    assert all(torch.equal(first[name], second[name]) for name in first)
    alone = torch.load(one / "rank-0.pt", weights_only=True)
    for name in first:
        torch.testing.assert_close(first[name], alone[name], rtol=1e-3, atol=1e-4)


def test_the_test_text_is_shared_out_and_costs_what_one_process_says(folders):
    one, two = (read_tests(folder / "wikipedia") for folder in folders)
    assert [line["step"] for line in one] == [line["step"] for line in two] == [4, 8]
    for left, right in zip(one, two, strict=True):
        assert left["symbols"] == right["symbols"] == 480
        assert left["cost"] == pytest.approx(right["cost"], rel=1e-4)


@pytest.mark.parametrize("processes", [0, 1])
def test_resume_is_exact_with_a_test_at_the_border(folders, processes):
    whole, halves = (folders[processes] / name for name in ("wikipedia", "wikipedia-halves"))
    for name in ("test.jsonl", "model.safetensors"):
        assert (whole / name).read_bytes() == (halves / name).read_bytes()


@pytest.mark.parametrize("processes", [1, 2])
def test_another_number_of_processes_is_refused(folders, processes):
    folder = (
        folders[2 - processes] / "whole"
    )  # what one process has made is continued by two, and the reverse
    before = (folder / "log.jsonl").read_bytes()
    if processes == 1:
        with pytest.raises(RunError, match="made by 2 processes and cannot be continued by 1"):
            resume(folder, steps=20)
    else:
        command = [sys.executable, *LAUNCHER, "-m", "associative_lstm.lab.cli", "resume", str(folder)]
        done = subprocess.run(
            [*command, "--steps", "20"], capture_output=True, text=True, timeout=HANGS, check=False
        )
        assert done.returncode == 1
        sentence = "alstm: the run was made by 1 process and cannot be continued by 2"
        assert sentence in done.stderr
    assert associative_lstm.lab.run.folder.read_config(folder).steps == 12
    assert (folder / "log.jsonl").read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_both_processes_after_the_same_step(tmp_path, number):
    """Sent as a terminal does, to the whole group, and some times more: torchrun itself passes it on."""
    settings = [
        "--model",
        "lstm",
        "--hidden-size",
        "8",
        "--window",
        "20",
        "--steps",
        "1000000",
        "--log-every",
        "50",
    ]
    command = [sys.executable, *LAUNCHER, "-m", "associative_lstm.lab.cli", "train", "assignment", *settings]
    with subprocess.Popen(
        [*command, "--checkpoint-every", "1000000", "--out", str(tmp_path / "run")],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        wait_for_lines([tmp_path / "run" / "log.jsonl"], process)
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.killpg(process.pid, number)
        for _ in range(3):
            time.sleep(0.02)
            for worker in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(worker), number)
        _, errors = process.communicate(timeout=HANGS)
    checkpoint, _ = find_checkpoints(tmp_path / "run")
    step = load_checkpoint(checkpoint)["trainer"]["step"]
    assert errors.count(f"alstm: stopped after step {step}; continue with: torchrun --nproc-per-node 2") == 2
    assert "KeyboardInterrupt" not in errors


def test_only_the_first_process_needs_the_folder(monkeypatch):
    resumed = []
    monkeypatch.setattr(loop, "resume", lambda folder, steps, **_: resumed.append((str(folder), steps)))
    monkeypatch.setenv("RANK", "1")
    assert cli.main(["resume", "on-another-machine", "--steps", "20"]) == 0
    assert resumed == [("on-another-machine", 20)]
    monkeypatch.setenv("RANK", "0")
    assert cli.main(["resume", "on-another-machine"]) == 1
    assert len(resumed) == 1


def test_several_processes_are_told_to_name_their_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["train", "assignment"]) == 1
    assert capsys.readouterr().err.startswith("alstm: --out must name the run's folder under torchrun")
    assert list(tmp_path.iterdir()) == []


def test_who_stops_several_processes_is_told_how_to_start_as_many(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    for processes, command in (
        (1, "alstm"),
        (2, "torchrun --nproc-per-node 2 -m associative_lstm.lab.cli"),
        (6, "torchrun --nnodes 3 --nproc-per-node 2 -m associative_lstm.lab.cli"),
    ):
        trainer = SimpleNamespace(fabric=SimpleNamespace(world_size=processes))
        assert loop._command(trainer) == command
