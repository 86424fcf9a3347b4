"""Odd numbers, odd files and diverged networks: one sentence that says what is really wrong."""

import os

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from associative_lstm.lab import cli
from associative_lstm.lab.experiments.memory.capacity import plan
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.loop import train
from associative_lstm.lab.run.model import build_model
from associative_lstm.lab.run.packed import read_bytes
from associative_lstm.lab.tasks import make_task

TINY = {"task": "xml", "model": "lstm", "hidden_size": 8, "window": 20, "log_every": 1, "steps": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(complete(TINY), tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def alstm(capsys):
    def call(*arguments):
        code = cli.main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize("command", [["sample"], ["sample", "--prompt", "<a>"], ["eval", "--batches", "2"]])
def test_a_network_that_has_diverged_is_an_error(alstm, run, tmp_path, command):
    path = tmp_path / "model.safetensors"
    with safe_open(run / "model.safetensors", "pt") as file:
        weights = {name: torch.full_like(file.get_tensor(name), torch.nan) for name in file.keys()}  # noqa: SIM118 (no dict)
        save_file(weights, path, metadata=file.metadata())
    code, out, err = alstm(*command, path)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "not finite" in err
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("ending", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml"), ("PDF", b"%PDF")]
)
def test_a_picture_is_what_its_name_says(alstm, run, tmp_path, ending, begins):
    path = tmp_path / f"curves.{ending}"
    assert alstm("compare", run, "--out", path)[0] == 0
    assert path.read_bytes().startswith(begins)


@pytest.mark.parametrize("name", ["curves.gif", "curves", ".png"])
def test_a_picture_of_no_known_kind_is_not_written(alstm, run, tmp_path, name):
    code, out, err = alstm("compare", run, "--out", tmp_path / name)
    assert (code, out) == (1, "")
    assert err.startswith(f"alstm: {tmp_path / name} must end in .png, .pdf or .svg")
    assert os.listdir(tmp_path) == []


def test_nothing_takes_the_place_of_what_is_no_file(alstm, run, tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    for path in (tmp_path / "pipe.png", tmp_path / "folder.png"):
        code, _, err = alstm("compare", run, "--out", path)
        assert (code, err) == (1, f"alstm: {path} could not be written: it is not a file\n")
    assert (tmp_path / "pipe.png").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["folder.png", "pipe.png"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "xml", "--forget-bias", "1e39"], "forget_bias must be at most 3.4e+38, got 1e+39"),
        (["train", "xml", "--forget-bias", "1e400"], "forget_bias must be a finite number, got inf"),
        (["train", "xml", "--lr", "1e39"], "learning_rate must be at most 3.4e+38, got 1e+39"),
        (
            ["train", "xml", "--config", "/dev/zero"],
            "configuration '/dev/zero' cannot be read: it is not a file",
        ),
        (["sample", "RUN", "--temperature", "inf"], "--temperature must be a finite number, got inf"),
        (["bench", "--seconds", "inf", "--out", "new"], "--seconds must be a finite number, got inf"),
        (["demo", "--steps", 10**20, "--out", "new"], "steps must be at most 2147483647, got 1000000000"),
        (["eval", "RUN", "--lanes", 10**8], "Invalid value for '--lanes'"),
        (["eval", "RUN", "--seed", 2**64], "Invalid value for '--seed'"),
        (["sample", "RUN", "--seed", 2**64], "Invalid value for '--seed'"),
        (["show", "xml", "--seed", 2**64], "Invalid value for '--seed'"),
        (["info", "--seed", 2**64], "Invalid value for '--seed'"),
        (["capacity", "--items", 10**26, "--size", 100, "--error", 1], "items: expected at most 1,000,000,0"),
        (["capacity", "--items", 9, "--size", 10**16, "--error", 1], "Invalid value for '--size'"),
        (
            ["capacity", "--items", 9, "--size", 100, "--error", "1e-320"],
            "error: expected a number from 1e-30",
        ),
        (
            ["capacity", "--items", 9, "--size", 100, "--error", "nan"],
            "error: expected a number from 1e-30 to",
        ),
        (
            ["capacity", "--items", 9, "--size", 100, "--error", 1, "--power", "1e308"],
            "power: expected a number from 1e-30 to 1e30, got 1e+308",
        ),
        (
            ["capacity", "--items", 9, "--size", 100, "--error", 1, "--limit", "inf"],
            "--limit must be a finite number, got inf",
        ),
    ],
)
def test_odd_numbers_are_one_sentence(alstm, run, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    code, out, err = alstm(*[run if a == "RUN" else a for a in arguments])
    assert (code in (1, 2), out, err.count("\n")) == (True, "", 1)
    assert err.startswith(f"alstm: {sentence}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("items", [1, 10**15])
@pytest.mark.parametrize("error", [1e-30, 1e30])
@pytest.mark.parametrize("power", [1e-30, 1e30])
@pytest.mark.parametrize("size", [2, 10**15])
def test_the_ends_of_what_can_be_planned_can_be(items, size, error, power, alstm):
    assert plan(items, size, error, power).copies >= 1
    assert alstm(
        *["capacity", "--items", items, "--size", size, "--error", error, "--power", power, "--limit", 0]
    )[0] == (0)


def test_one_is_singular(alstm, run, tmp_path):
    out = alstm("capacity", "--items", 1, "--size", 2, "--error", 0.1)[1]
    assert "1 copy keeps the error of 1 item at 0.1 or below" in out
    out = alstm("capacity", "--items", 9, "--size", 2, "--error", 0.1)[1]
    assert "a key has only 1 element to permute" in out
    assert "what 1 copy gives here" in out
    out = alstm(
        "train", "xml", *["--model", "lstm", "--hidden-size", 8, "--steps", 1, "--out", tmp_path / "run"]
    )[1]
    assert "bits after 1 step\n" in out


@pytest.mark.parametrize("size", [2**31 - 2, 2**30])
def test_a_network_that_fits_nowhere_is_said_to_be_too_large(size):
    config = complete(TINY | {"hidden_size": size})
    with pytest.raises(RuntimeError, match=r"^the network cannot be made: too (little memory|large for any)"):
        build_model(config, make_task("xml"))


def test_another_fault_of_a_network_is_not_its_size(monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("something else")

    monkeypatch.setattr("associative_lstm.nn.LSTM", fails)
    with pytest.raises(RuntimeError, match=r"^the network cannot be made: something else$"):
        build_model(complete(TINY), make_task("xml"))


def test_what_stands_in_a_demos_way_is_said_before_it_shows_anything(alstm, tmp_path):
    (dangling := tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    code, out, err = alstm("demo", "--out", dangling)
    assert (code, out, err) == (1, "", f"alstm: {dangling}: File exists\n")


@pytest.mark.parametrize("name", ["log.jsonl", "versions.json", "config.toml"])
def test_a_pipe_in_a_run_folder_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="not a file"):
        read_bytes(tmp_path / name)


def test_more_processes_than_any_machine_has_are_refused(alstm):
    code, _, err = alstm("reproduce", "fig6", "--jobs", 10**26)
    assert code == 2
    assert "--jobs" in err
