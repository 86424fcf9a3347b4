"""A user's own task and network, registered in a file of theirs, go through the command like ours."""

import json
import sys

import pytest

from associative_lstm.lab import cli, from_file
from associative_lstm.lab.networks import NETWORKS, register
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import read_log
from associative_lstm.lab.tasks import TASKS

MINE = """
import re
from dataclasses import dataclass

import torch
from associative_lstm.lab import networks
from associative_lstm.lab.tasks import OnlineTask, mark, register


@dataclass
class Odd:  # looks for its module
    number: "int" = 0


@register
class Echo(OnlineTask):
    name = "echo"
    description = "say the letter again"
    chance = 4.7

    def sequence(self, rng):
        letter = self.letter(rng)
        return f"{letter}={letter}."

    def marks(self, text):
        return mark(re.compile("(?<==)[a-z]"), text)


@networks.register("elman", hidden_size=12, label="Elman network", options={"forget_bias": 0.5})
class Elman(torch.nn.Module):
    def __init__(self, input_size, hidden_size, forget_bias):
        super().__init__()
        self.input_size, self.output_size, self.forget_bias = input_size, hidden_size, forget_bias
        self.rnn = torch.nn.RNN(input_size, hidden_size)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, state=None):
        self.calls += 1
        output, h = self.rnn(x, None if state is None else state[0])
        return output, (h,)
"""
TINY = ["--window", "20", "--log-every", "5", "--steps", "10", "--schedule", "constant"]


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    yield path
    from_file.forget()


def alstm(capsys, *arguments):
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_they_are_trained_resumed_and_evaluated(mine, tmp_path, capsys):
    whole, run, known = tmp_path / "whole", tmp_path / "run", ["--from", mine]
    train = ["train", "echo", "--model", "elman", *TINY]
    assert alstm(capsys, *train, "--steps", 20, "--out", whole, *known)[0] == 0
    from_file.forget()
    assert alstm(capsys, *train, "--out", run, *known)[0] == 0
    from_file.forget()
    assert alstm(capsys, "resume", run, "--steps", 20, *known)[0] == 0
    assert [line["cost"] for line in read_log(run)] == [line["cost"] for line in read_log(whole)]
    assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    code, out, _ = alstm(capsys, "eval", run, "--lanes", 4, "--batches", 2, *known)
    assert code == 0
    assert "bits per scored symbol" in out
    assert json.loads((run / "eval-step-20-seed-0.json").read_text())["step"] == 20
    assert alstm(capsys, "sample", run, "--length", 20, *known)[0] == 0
    code, out, _ = alstm(capsys, "compare", run, whole, "--out", tmp_path / "both.png", *known)
    assert code == 0
    assert "Elman network 12" in out
    assert "say the letter again" in alstm(capsys, "show", *known)[1]
    assert "forget_bias = 0.5\n" in (run / "config.toml").read_text()
    assert "mine" not in (run / "config.toml").read_text()


def test_two_files_may_have_one_name(mine, tmp_path):
    other = tmp_path / "other" / "mine.py"
    other.parent.mkdir()
    other.write_text(MINE.replace('"echo"', '"echo-2"').replace('"elman"', '"elman-2"'))
    from_file.load([mine, other])
    for name in ("echo", "echo-2"):
        assert sys.modules[TASKS[name].__module__].Echo is TASKS[name]


def test_a_run_alone_makes_nobody_run_a_file(mine, tmp_path, capsys):
    run = tmp_path / "run"
    assert alstm(capsys, "train", "echo", *TINY, "--model", "lstm", "--out", run, "--from", mine)[0] == 0
    assert alstm(capsys, "train", "xml", *TINY, "--model", "elman", "--out", tmp_path / "other")[0] == 0
    from_file.forget()
    hint = "(one of your own is made known by --from FILE)\n"
    for command in ("resume", "eval", "sample", "compare"):
        code, out, err = alstm(capsys, command, run)
        assert (code, out) == (1, "")
        assert err.startswith("alstm: unknown task 'echo', ")
        assert err.endswith(hint)
        assert err.count("\n") == 1
    code, _, err = alstm(capsys, "resume", tmp_path / "other")
    assert code == 1
    assert err.startswith("alstm: unknown model 'elman', ")
    assert err.endswith(hint)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def f(:\n", ", line 1: invalid syntax"),
        ("\nx = \0", ""),
        ("\n1 / 0\n", ", line 2: ZeroDivisionError: division by zero"),
        ("raise SystemExit\n", ", line 1: SystemExit"),
        ("import nothing_of_that_name\n", ", line 1: ModuleNotFoundError: No module named"),
        ("open('/nowhere/else')", ", line 1: FileNotFoundError: "),
        (MINE + "\nregister(type('A', (OnlineTask,), {'name': 'a'}))", ": task 'a' has no description"),
        (MINE.replace("chance = ", "chances = "), ": task 'echo' has no chance"),
        (MINE.replace("def marks", "def mark"), ": task 'echo' has no marks"),
        ("x = 1\n", " registers no task and no network"),
        (
            MINE + "\nregister(type('A', (OnlineTask,), {'name': 'xml'}))",
            ": a task named 'xml' exists already",
        ),
        (MINE + "\nnetworks.register('lstm')(Elman)", ": a network named 'lstm' exists already"),
        (MINE + "\nnetworks.register('a', options={'size': 1})(Elman)", ": network 'a': 'size' is no option"),
        (MINE + "\nnetworks.register('a', sizes=1)(Elman)", ": TypeError: "),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path, capsys, text, sentence):
    before, path = (list(TASKS), list(NETWORKS)), tmp_path / "broken.py"
    path.write_bytes(text.encode())
    code, out, err = alstm(capsys, "train", "echo", *TINY, "--out", tmp_path / "run", "--from", path)
    assert (code, out) == (1, "")
    assert err.startswith(f"alstm: --from {path}")
    assert sentence in err
    assert err.count("\n") == 1
    assert (list(TASKS), list(NETWORKS)) == before
    assert not (tmp_path / "run").exists()


def test_no_file_is_one_sentence(tmp_path, capsys):
    for path in (tmp_path, tmp_path / "nothing.py"):
        code, _, err = alstm(capsys, "train", "xml", "--from", path)
        assert (code, err) == (1, f"alstm: --from {path} is not a file\n")


@pytest.mark.parametrize(
    ("text", "instead", "sentence"),
    [
        (
            "return output, (h,)",
            "return output, {'h': h}",
            "a network's state must be tensors in tuples, got dict",
        ),
        ("self.calls += 1", "self.cals += 1", "line 38: AttributeError: "),
        ("hidden_size, forget_bias)", "hidden_size)", "the network cannot be made: "),
        ("self.input_size, self.output_size", "self.input_size, self.size", "the network cannot be made: "),
        ("letter = self.letter(rng)", "letter = int('x')", "line 22: ValueError: invalid literal"),
    ],
)
def test_a_fault_in_it_is_told_with_its_line(mine, tmp_path, capsys, monkeypatch, text, instead, sentence):
    monkeypatch.delenv("ALSTM_DEBUG", raising=False)
    assert text in MINE
    mine.write_text(MINE.replace(text, instead))
    train = ["train", "echo", "--model", "elman", *TINY, "--out", tmp_path / "run"]
    code, _, err = alstm(capsys, *train, "--from", mine)
    assert code == 1
    assert sentence in err
    assert "a fault of alstm" not in err
    assert err.count("\n") == 1


def test_an_option_that_it_does_not_have_is_refused(mine, capsys):
    refused = ["train", "copy", "--model", "elman", "--from", mine, "--learn-initial-state"]
    code, _, err = alstm(capsys, *refused)
    assert (code, err) == (1, "alstm: learn_initial_state has no meaning for model 'elman'\n")
    assert complete({"task": "copy", "model": "elman"}).learn_initial_state is None  # the task asks in vain


def test_the_way_to_go_on_names_the_file(mine):
    assert from_file.flags() == ""
    from_file.load([mine])
    assert from_file.flags() == f" --from {mine}"


def test_one_network_may_be_registered_twice():
    class Again: ...

    try:
        assert register("again")(Again) is Again
        register("again", hidden_size=3)(Again)
        assert NETWORKS["again"].hidden_size == 3
        with pytest.raises(ValueError, match="a network named 'again' exists already"):
            register("again")(type("Other", (), {}))
    finally:
        del NETWORKS["again"]
