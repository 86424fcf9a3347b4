"""What is wrong with a run is named, not what is next to it; and there is a way to go on."""

import shutil

import pytest

from associative_lstm.lab import cli
from associative_lstm.lab.files import RunError
from associative_lstm.lab.run.checkpoint import find_checkpoints, load_checkpoint, save_checkpoint
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import read_log
from associative_lstm.lab.run.loop import resume, train

SETTINGS = {
    "task": "assignment",
    "model": "lstm",
    "hidden_size": 8,
    "window": 20,
    "log_every": 5,
    "checkpoint_every": 10,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of 20 steps, and the same of 40."""
    folder = tmp_path_factory.mktemp("runs")
    for steps in (20, 40):
        train(complete(SETTINGS | {"steps": steps}), folder / str(steps))
    return folder


@pytest.fixture
def run(tmp_path, runs):
    return shutil.copytree(runs / "20", tmp_path / "run")


def change(path, at):
    """Another digit in a number of line ``at``, and the content before."""
    before = path.read_bytes()
    lines = before.splitlines(keepends=True)
    digit = lines[at][-5:-4]
    lines[at] = lines[at][:-5] + (b"1" if digit != b"1" else b"2") + lines[at][-4:]
    path.write_bytes(b"".join(lines))
    assert path.read_bytes() != before
    return before


@pytest.mark.parametrize("damage", ["gone", "changed", "short"])
def test_training_times_do_not_stop_a_run(run, runs, damage):
    times = run / "times.jsonl"
    if damage == "gone":
        times.unlink()
    elif damage == "changed":
        change(times, 0)
    else:
        times.write_bytes(times.read_bytes()[:-3])
    damaged = times.read_bytes() if times.exists() else None
    said = []
    resume(run, steps=40, say=said.append)
    what = {"gone": "is missing", "changed": "is not what was written", "short": "bytes and should have"}
    assert said[0].startswith(f"{times} ")
    assert what[damage] in said[0]
    assert said[0].endswith("; a new one begins after step 20")
    assert said[1:] == ([] if damaged is None else [f"what was there is kept in {run / 'times.jsonl.1'}"])
    if damaged is not None:
        assert (run / "times.jsonl.1").read_bytes() == damaged
    for name in ("log.jsonl", "model.safetensors"):
        assert (run / name).read_bytes() == (runs / "40" / name).read_bytes()
    assert [line["seconds"] is None for line in read_log(run)] == [True] * 4 + [False] * 4


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("changed", "is not what was written"),
        ("torn", "is not what was written (line 1 cannot be read)"),
        ("gone", "is missing"),
        ("short", "bytes and should have"),
    ],
)
def test_a_damaged_log_is_named_and_can_be_left_behind(run, runs, capsys, damage, what):
    log, newest = run / "log.jsonl", find_checkpoints(run)[0]
    if damage == "changed":
        change(log, 0)
    elif damage == "torn":
        log.write_bytes(b"\0" + log.read_bytes()[1:])
    elif damage == "gone":
        log.unlink()
    else:
        log.write_bytes(log.read_bytes()[:10])
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert cli.main(["resume", str(run), "--steps", "40"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"alstm: {log} ")
    assert what in said
    assert "is damaged" not in said  # the checkpoint is not
    way_out = (
        f"`alstm resume {run} --ignore-log` goes on from {newest.name} and keeps what there is of it beside"
    )
    assert said.endswith(f": {way_out}\n")
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before

    assert cli.main(["resume", str(run), "--steps", "40", "--ignore-log"]) == 0
    if damage != "gone":
        assert (run / "log.jsonl.1").read_bytes() == before["log.jsonl"]
    assert (run / "model.safetensors").read_bytes() == (runs / "40" / "model.safetensors").read_bytes()
    assert log.read_bytes().splitlines() == (runs / "40" / "log.jsonl").read_bytes().splitlines()[4:]


def test_a_log_damaged_after_the_older_checkpoint_is_made_again_from_there(run, runs):
    older = find_checkpoints(run)[1]
    before = change(run / "log.jsonl", 3)
    damaged = (run / "log.jsonl").read_bytes()
    said = []
    resume(run, say=said.append)
    assert said[0] == f"{run / 'log.jsonl'} is not what was written; continuing from {older.name}"
    assert (run / "log.jsonl").read_bytes() == before
    assert (run / "log.jsonl.1").read_bytes() == damaged
    assert (run / "model.safetensors").read_bytes() == (runs / "20" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("damage", ["log", "checkpoint"])
def test_where_only_the_beginning_is_good_nothing_is_begun_again(tmp_path, damage):
    train(complete(SETTINGS | {"steps": 8}), tmp_path)
    newest, beginning = find_checkpoints(tmp_path)
    assert load_checkpoint(beginning)["trainer"]["step"] == 0
    if damage == "log":
        change(tmp_path / "log.jsonl", 0)
    else:
        newest.write_bytes(newest.read_bytes()[:-100])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(RunError) as refused:
        resume(tmp_path)
    path, what = (tmp_path / "log.jsonl", "not what was written") if damage == "log" else (newest, "damaged")
    assert f"{path} is {what}" in str(refused.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def edit(run, *changes):
    path = run / "config.toml"
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def test_another_configuration_than_the_runs_is_refused_key_by_key(run):
    edit(
        run,
        ("hidden_size = 8", "hidden_size = 16"),
        ("learning_rate = 0.003", "learning_rate = 0.01"),
        ("threads = 1", "threads = 2"),
    )
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    with pytest.raises(RunError) as refused:
        resume(run, steps=40)
    assert str(refused.value) == (
        f"{run / 'config.toml'} is not what the run was begun with: hidden_size is 16 and was 8, "
        "learning_rate is 0.01 and was 0.003, threads is 2 and was 1; put back what it was, "
        f"or begin a new run with `alstm train --config {run / 'config.toml'}`"
    )
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_fewer_steps_than_were_made_are_refused(run):
    edit(run, ("steps = 20", "steps = 5"))
    with pytest.raises(RunError, match="says 5 steps, and the run has made 20: put back what it was"):
        resume(run)


def test_what_changes_no_number_may_be_changed(run, runs):
    edit(run, ("checkpoint_every = 10", "checkpoint_every = 7"), ("steps = 20", "steps = 40"))
    resume(run)
    for name in ("log.jsonl",):
        assert (run / name).read_bytes() == (runs / "40" / name).read_bytes()


def test_a_text_may_lie_elsewhere_and_that_is_said(tmp_path):
    text, moved = tmp_path / "text", tmp_path / "moved"
    text.write_bytes(b"the cat sat on the mat. " * 500)
    config = complete(SETTINGS | {"task": "wikipedia", "data": str(text), "steps": 10})
    train(config, tmp_path / "run")
    text.rename(moved)
    edit(tmp_path / "run", (str(text), str(moved)))
    said = []
    resume(tmp_path / "run", steps=15, say=said.append)
    assert said == [f"data is {str(moved)!r} and was {str(text)!r}: only the same text continues the run"]


def test_checkpoints_that_do_not_hold_their_configuration_are_continued(run, runs):
    newest, older = find_checkpoints(run)
    content = load_checkpoint(newest)
    del content["config"]
    newest.unlink()
    save_checkpoint(run, 20, content, keep=older)
    resume(run, steps=40)
    for name in ("log.jsonl", "model.safetensors"):
        assert (run / name).read_bytes() == (runs / "40" / name).read_bytes()


def test_a_folder_that_takes_no_new_file_keeps_its_log(run, monkeypatch):
    find_checkpoints(run)[0].unlink()  # the log goes on beyond the checkpoint before
    before = (run / "log.jsonl").read_bytes()
    monkeypatch.setattr("associative_lstm.lab.run.log._Events.new_name", lambda: "no such folder/events")
    with pytest.raises(RunError, match="cannot be written"):
        resume(run)
    assert (run / "log.jsonl").read_bytes() == before
