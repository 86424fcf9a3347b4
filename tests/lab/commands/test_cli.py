"""The command: every subcommand on a tiny run, its help, and what it says about bad input."""

import io
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import torch
from rich.console import Console

import associative_lstm
from associative_lstm.lab import cli
from associative_lstm.lab.commands import common
from associative_lstm.lab.commands.common import completing
from associative_lstm.lab.commands.train import _show
from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.run.checkpoint import find_checkpoints
from associative_lstm.lab.run.folder import WEIGHTS
from associative_lstm.lab.run.loop import resume
from associative_lstm.lab.run.model import SequenceModel
from associative_lstm.lab.run.progress import Progress
from associative_lstm.lab.run.recipes import PRESETS
from associative_lstm.lab.tasks import TASKS
from waiting import HANGS

TINY = ["--model", "lstm", "--hidden-size", "8", "--window", "20", "--steps", "20", "--log-every", "5"]
TINY += ["--schedule", "constant"]  # so that a run can be made longer
COMMANDS = [
    "train",
    "resume",
    "eval",
    "sample",
    "inside",
    "compare",
    "show",
    "info",
    "bench",
    "demo",
    "capacity",
    "report",
]


@pytest.fixture
def alstm(capsys):
    """Run the command in this process: exit code, stdout, stderr."""

    def run(*arguments):
        code = cli.main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def run(alstm, tmp_path):
    """The folder of a small finished run."""
    code, out, _ = alstm("train", "assignment", *TINY, "--out", tmp_path / "run")
    assert code == 0
    assert out.endswith(f"run: {tmp_path / 'run'}\n")
    return tmp_path / "run"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_subcommand_has_help_with_an_example_and_a_seed(alstm, command):
    code, out, _ = alstm(command, "--help")
    assert code == 0
    assert f"Example: alstm {command}" in out
    assert "--seed" in out


def test_train_writes_a_learning_curve_and_refuses_to_do_it_twice(alstm, run):
    assert (run / "curve.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = alstm("train", "assignment", *TINY, "--out", run)
    assert code == 1
    assert err == (
        f"alstm: {run} already holds a run: continue it with `alstm resume {run}`, or choose another folder\n"
    )


def test_train_reads_toml_a_preset_and_flags_and_flags_win(alstm, tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text('task = "assignment"\nsteps = 10\nhidden_size = 16\nlog_every = 5\nwindow = 20\n')
    code, _, err = alstm(
        "train", "--config", settings, "--preset", "lstm-128", "--hidden-size", 8, "--out", tmp_path / "run"
    )
    assert code == 0, err
    written = (tmp_path / "run" / "config.toml").read_text()
    assert 'model = "lstm"' in written
    assert "hidden_size = 8" in written
    assert "steps = 10" in written
    code, _, _ = alstm("train", "--config", tmp_path / "run" / "config.toml", "--out", tmp_path / "again")
    assert code == 0
    assert (tmp_path / "again" / "log.jsonl").read_bytes() == (tmp_path / "run" / "log.jsonl").read_bytes()


def test_without_out_runs_get_new_folders(alstm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert alstm("train", "assignment", *TINY)[0] == 0
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["assignment-lstm-8-seed-0", "assignment-lstm-8-seed-0-2"]


def test_resume_makes_a_run_longer(alstm, run):
    code, out, _ = alstm("resume", run, "--steps", 40)
    assert code == 0
    assert "after 40 steps" in out
    code, _, err = alstm("resume", run, "--seed", 3)
    assert (code, err) == (1, "alstm: seed cannot be changed: the run has 0, got 3\n")


def test_eval_gives_an_interval_and_writes_it(alstm, run):
    code, out, _ = alstm("eval", run, "--lanes", 8, "--batches", 3)
    assert code == 0
    cost, low, high = map(float, re.search(r"([\d.]+) bits .*95%: ([\d.]+) to ([\d.]+)", out).groups())
    assert low < cost < high
    path = run / "eval-step-20-seed-0.json"
    assert out.endswith(f"written: {path}\n")
    assert json.loads(path.read_text())["cost"] == pytest.approx(cost, abs=1e-4)


def test_exported_weights_are_evaluated_as_the_run_is(alstm, run):
    costs = [alstm("eval", path, "--batches", 3)[1].splitlines()[0] for path in (run, run / WEIGHTS)]
    assert costs[0] == costs[1]
    assert (run / "eval-step-20-seed-0.json").is_file()


def test_weights_are_not_blamed_for_a_text_that_is_gone(alstm, tmp_path):
    file = tmp_path / "text"
    file.write_text("the cat sat on the mat. " * 400)
    assert alstm("train", "wikipedia", "--data", file, *TINY, "--out", tmp_path / "run")[0] == 0
    file.unlink()
    code, _, err = alstm("eval", tmp_path / "run" / WEIGHTS)
    assert (code, err) == (1, f"alstm: data: '{file}' is not a file\n")


def test_sample_marks_every_scored_symbol(alstm, run):
    code, out, _ = alstm("sample", run, "--length", 50)
    assert code == 0
    assert re.search(r"right: \d+ of \d+\n", out)
    assert sum(len(line) for line in out.splitlines()[:-1:2]) == 1 + 50  # the first symbol is not predicted
    text, below = out.splitlines()[:2]
    value = text.index(")", text.index("q(")) + 1
    assert below[value : value + 2].strip()
    assert not below[:value].strip()


@pytest.mark.parametrize("task", ["copy", "ntm-copy"])
def test_sample_and_show_episodic_tasks(alstm, tmp_path, task):
    tiny = ["--model", "lstm", "--hidden-size", "8", "--steps", "3"]
    assert alstm("train", task, *tiny, "--out", tmp_path / "run")[0] == 0
    for command in ("sample", "eval"):
        code, _, err = alstm(command, tmp_path / "run")
        assert code == 0, err  # a slow machine shows how far it is
    assert alstm("show", task)[0] == 0


def test_wikipedia_writes_text(alstm, tmp_path):
    file = tmp_path / "text"
    file.write_text("the cat sat on the mat. " * 400)
    assert alstm("train", "wikipedia", "--data", file, *TINY, "--out", tmp_path / "run")[0] == 0
    code, out, _ = alstm("sample", tmp_path / "run", "--length", 40, "--prompt", "the cat")
    assert code == 0
    assert out.startswith("the cat")
    code, out, _ = alstm("eval", tmp_path / "run", "--lanes", 2)
    assert code == 0
    assert alstm("show", "wikipedia", "--data", file)[0] == 0


def test_compare_draws_one_picture_and_one_table(alstm, run, tmp_path):
    other = tmp_path / "other"
    assert alstm("train", "assignment", *TINY, "--seed", 1, "--out", other)[0] == 0
    code, out, _ = alstm("compare", run, other, "--out", tmp_path / "both.png")
    assert code == 0
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")
    assert out.strip().endswith(f"written: {tmp_path / 'both.png'}")
    assert "seed 0" in out
    assert "seed 1" in out
    code, _, err = alstm("compare", run, other, "--seed", 7)
    assert (code, err) == (1, "alstm: none of these runs has seed 7\n")
    again = shutil.copytree(run, tmp_path / "again")
    code, out, _ = alstm("compare", run, again, "--out", tmp_path / "both.png")
    assert code == 0
    assert "again" in out  # nothing but the folder tells them apart
    assert alstm("train", "assignment", *TINY, "--window", 30, "--out", tmp_path / "wide[r]")[0] == 0
    code, out, _ = alstm("compare", run, tmp_path / "wide[r]", "--out", tmp_path / "wide[r].png")
    assert "window 20" in out
    assert "window 30" in out
    assert out.strip().endswith(f"written: {tmp_path / 'wide[r].png'}")
    assert alstm("train", "xml", *TINY, "--out", tmp_path / "xml")[0] == 0
    code, _, err = alstm("compare", run, tmp_path / "xml", "--out", tmp_path / "no.png")
    assert (code, err) == (1, "alstm: runs of different tasks: assignment, xml\n")
    assert not (tmp_path / "no.png").exists()


@pytest.mark.parametrize("task", sorted(set(TASKS) - {"wikipedia"}))
def test_show_prints_a_sample(alstm, task):
    code, out, _ = alstm("show", task)
    assert code == 0
    assert "remembering nothing costs" in out
    assert TASKS[task].description in out


def test_show_lists_the_tasks_and_info_the_machine(alstm):
    code, out, _ = alstm("show")
    assert code == 0
    assert all(name in out for name in TASKS)
    code, out, _ = alstm("info")
    assert code == 0
    assert "torch: " in out
    assert re.search(r"associative-lstm +128 +114,320 +256 +float32, float64,\s+bfloat16:\s+fused", out)


def test_info_for_programs_is_one_object(alstm):
    code, out, _ = alstm("info", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["versions"]["torch"] == torch.__version__
    assert found["versions"]["associative-lstm"] == associative_lstm.__version__
    assert set(found["networks"]) == set(NETWORKS)
    assert found["networks"]["associative-lstm"]["paths"]["float32"]["path"] == "fused"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["trian"], 2, "No such command 'trian'. Did you mean 'train'? (see --help)"),
        (["train", "asignment"], 1, "unknown task 'asignment', did you mean 'assignment'?"),
        (["train"], 1, "the configuration names no task: there are copy, copy-variable, xml, "),
        (["train", "xml", "--preset", "lstm512"], 1, "unknown preset 'lstm512', did you mean 'lstm-512'?"),
        (
            ["train", "xml", "--config", "nowhere.toml"],
            1,
            "configuration 'nowhere.toml' cannot be read: No such file",
        ),
        (["train", "xml", "--copies", "many"], 2, "Invalid value for '--copies'"),
        (["train", "xml", "--colour", "red"], 2, "No such option"),
        (["resume", "nowhere"], 1, "nowhere is not a run: it has no config.toml"),
        (["eval", "nowhere"], 1, "nowhere is not a run: it has no config.toml"),
        (["sample", "nowhere"], 1, "nowhere is not a run: it has no config.toml"),
        (["compare", "nowhere"], 1, "nowhere is not a run: it has no config.toml"),
        (
            ["show", "xml", "--data", "text"],
            1,
            "data cannot be used with task 'xml', which makes its own data",
        ),
        (["reproduce", "all", "--cluster", "slurm"], 1, "--cluster must be ray, got 'slurm'"),
        (["reproduce", "fig10", "--smoke", "--data", "text"], 1, "--smoke has a text of its own: leave out"),
        (
            ["reproduce", "fig10", "--smoke", "--out", "results"],
            1,
            "--smoke makes no results: choose folders",
        ),
        (["show", "xlm"], 1, "unknown task 'xlm', did you mean 'xml'?"),
        (["train", "wikipedia", "--data", "nowhere", "--out", "new"], 1, "data: 'nowhere' is not a file"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing_behind(
    alstm, tmp_path, monkeypatch, arguments, code, sentence
):
    monkeypatch.chdir(tmp_path)
    given, out, err = alstm(*arguments)
    assert given == code
    assert out == ""
    assert err.startswith(f"alstm: {sentence}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_sentence(alstm, tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")
    code, out, err = alstm("train", "xml", "--out", file / "run")
    assert (code, out, err) == (1, "", f"alstm: {file / 'run'} cannot be written: Not a directory\n")
    assert file.read_text() == "kept"


def test_a_benchmark_that_could_not_be_written_is_not_begun(alstm, tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")
    code, out, err = alstm("bench", "--part", "start", "--out", file)
    assert (code, out) == (1, "")
    assert "File exists" in err


def test_without_the_lab_there_is_one_sentence():
    program = (
        "import sys; sys.modules['typer'] = None; from associative_lstm.lab.cli import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("alstm: the lab is not installed: pip install 'associative-lstm[lab]'")
    assert done.stderr.count("\n") == 1


def test_training_leaves_the_process_as_it_was(run):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        resume(run, steps=25)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_what_does_not_fit_in_memory_is_one_sentence(alstm, run, monkeypatch):
    monkeypatch.setattr(SequenceModel, "forward", lambda *_: torch.empty(10**15))
    lack = "too little memory (4,000,000,000,000,000 bytes were asked for): try a smaller batch, window or network"
    for command in ("eval", "sample"):
        assert alstm(command, run) == (1, "", f"alstm: {lack}\n")
    new = run.with_name("new")
    code, _, err = alstm("train", "copy", "--model", "lstm", "--out", new)
    kept = f"the last good checkpoint is {find_checkpoints(new)[0]}"
    assert (code, err) == (1, f"alstm: stopped at step 1: {lack}; {kept}\n")


def test_another_error_is_one_sentence_and_can_be_seen(alstm, run, monkeypatch):
    monkeypatch.setattr(SequenceModel, "forward", lambda *_: torch.ones(2) @ torch.ones(3))
    sentence = "alstm: unexpected error, which is a fault of alstm: RuntimeError: inconsistent tensor size"
    for number, command in enumerate((["eval"], ["train", "copy", "--model", "lstm", "--out"])):
        monkeypatch.delenv("ALSTM_DEBUG", raising=False)
        code, out, err = alstm(*command, run if not number else run.with_name("new"))
        assert (code, out, err.count("\n")) == (70, "", 1)
        assert err.startswith(sentence)
        assert "ALSTM_DEBUG=1" in err
        monkeypatch.setenv("ALSTM_DEBUG", "1")
        command.append(run if not number else run.with_name("newer"))
        with pytest.raises(RuntimeError, match="inconsistent tensor size"):
            alstm(*command)


def test_names_are_completed_in_the_shell():
    assert completing(TASKS)("a") == ["assignment", "arithmetic"]
    assert completing(NETWORKS)("multi") == ["multiplicative-unitary-rnn"]
    assert "lstm-512" in completing(PRESETS)("lstm")
    environment = os.environ | {
        "_ALSTM_COMPLETE": "complete_bash",
        "COMP_WORDS": "alstm train assig",
        "COMP_CWORD": "2",
    }
    program = "from associative_lstm.lab.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert "assignment" in done.stdout


def test_a_terminal_gets_a_live_line(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(common, "errors", Console(file=screen, force_terminal=True, width=120))
    with common.live_line("xml") as line:
        for step, cost in ((1, float("nan")), (1000, 1.2345)):
            _show(line, Progress(step, 4000, cost, 20_000.0, 3.0))
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert "step 1,000/4,000, cost 1.234 bits, 20,000 symbols/s, 3 s left" in text
    with common.progress_bar("evaluating", 3) as advance:
        advance()
