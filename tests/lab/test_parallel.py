"""Two processes (gloo, started by torchrun) do what one process does with the whole batch."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import associative_lstm.lab.runlog
from associative_lstm.lab import cli, training
from associative_lstm.lab.files import RunError
from associative_lstm.lab.training import resume

SCRIPT = Path(__file__).with_name("parallel.py")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """What one process and two processes have written."""
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    for options, folder in (([], one), (launcher, two)):
        command = [sys.executable, *options, str(SCRIPT), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    return one, two


@pytest.mark.parametrize("task", ["assignment", "copy-variable"])
def test_the_gradients_are_those_of_the_whole_batch(folders, task):
    one, two = (torch.load(folder / f"{task}.pt", weights_only=True) for folder in folders)
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-6)
        assert one[name].abs().max() > 1e-4


def test_the_curve_is_that_of_one_process(folders):
    one, two = (associative_lstm.lab.runlog.read_log(folder / "whole") for folder in folders)
    assert [line["step"] for line in one] == [line["step"] for line in two] == [5, 10, 12]
    for left, right in zip(one, two, strict=True):
        assert left["cost"] == pytest.approx(right["cost"], rel=1e-4)


@pytest.mark.parametrize("processes", [0, 1])
def test_resume_is_exact_with_the_same_number_of_processes(folders, processes):
    folder = folders[processes]
    whole, halves = ((folder / name / "model.safetensors").read_bytes() for name in ("whole", "halves"))
    assert whole == halves
    # A run cut in two has a line more in its log, at the cut; the others are the same.
    whole, halves = ((folder / name / "log.jsonl").read_text().splitlines() for name in ("whole", "halves"))
    assert whole[0] == halves[0]


def test_another_number_of_processes_is_refused(folders):
    _, two = folders
    with pytest.raises(RunError, match="made by 2 processes and cannot be continued by 1"):
        resume(two / "whole", steps=20)
    assert associative_lstm.lab.runlog.read_config(two / "whole").steps == 12


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
        assert training._command(trainer) == command
