"""A run writes into a folder of its own: nothing that was there before is lost, and no link is followed."""

import os
import shutil

import pytest

from associative_lstm.lab import cli
from associative_lstm.lab.files import RunError
from associative_lstm.lab.run.checkpoint import find_checkpoints
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.loop import resume, train
from associative_lstm.lab.sweep.jobs import Job, make_run

SETTINGS = {
    "task": "assignment",
    "model": "lstm",
    "hidden_size": 8,
    "window": 20,
    "log_every": 5,
    "checkpoint_every": 10,
}
TINY = ["--model", "lstm", "--hidden-size", "8", "--window", "20", "--steps", "5"]


def config(**changes):
    return complete(SETTINGS | changes)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(config(steps=20), folder)
    return folder


@pytest.fixture
def run(tmp_path, finished):
    """A run of 20 steps, as it was left."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def published(run):
    """The same as it is published: without its checkpoints."""
    for path in find_checkpoints(run):
        path.unlink()
    return run


@pytest.mark.parametrize("steps", [None, 40])
@pytest.mark.parametrize("weights", [True, False])
def test_a_run_without_checkpoints_is_not_begun_again_unasked(published, steps, weights):
    if not weights:
        (published / "model.safetensors").unlink()
    before = contents(published)
    with pytest.raises(RunError) as refused:
        resume(published, steps=steps)
    assert contents(published) == before
    sentence = str(refused.value)
    assert sentence.startswith(f"{published} has a log up to step 20 and no checkpoint of that")
    assert ("model.safetensors has the weights alone" in sentence) is weights
    assert "there is nothing to continue from" in sentence
    assert f"`alstm train --config {published / 'config.toml'}`" in sentence
    assert f"`alstm resume {published} --ignore-log`" in sentence


def test_the_checkpoint_of_the_beginning_does_not_begin_a_run_again(published, tmp_path):
    train(config(steps=1), tmp_path / "other")
    beginning = find_checkpoints(tmp_path / "other")[-1]
    assert beginning.name.startswith("checkpoint-00000000-")
    shutil.copy(beginning, published)
    before = contents(published)
    with pytest.raises(RunError, match="there is nothing to continue from"):
        resume(published)
    assert contents(published) == before


def test_nor_a_short_one_that_is_finished(tmp_path):
    folder = train(config(steps=3), tmp_path / "run")
    latest, beginning = find_checkpoints(folder)
    latest.unlink()
    before = contents(folder)
    with pytest.raises(RunError, match="there is nothing to continue from"):
        resume(folder)
    assert contents(folder) == before
    assert beginning.exists()


def test_begun_again_by_request_it_keeps_what_was_there(published):
    before = contents(published)
    assert cli.main(["resume", str(published), "--ignore-log", "--steps", "30"]) == 0
    after = contents(published)
    for name in ("log.jsonl", "times.jsonl", "versions.json", "model.safetensors"):
        assert after[f"{name}.1"] == before[name]
    assert after["log.jsonl"].startswith(before["log.jsonl"])  # the same run, made again and longer
    assert after["model.safetensors"] != before["model.safetensors"]


def test_a_grid_begins_a_log_without_checkpoints_again_and_keeps_it(published):
    before = contents(published)
    assert make_run(Job(config(steps=30), published)) is None
    assert (published / "log.jsonl.1").read_bytes() == before["log.jsonl"]
    assert (published / "log.jsonl").read_bytes().startswith(before["log.jsonl"])


def test_a_log_that_goes_far_beyond_the_checkpoint_is_kept(run, finished):
    """Checkpoints were lost: more comes to nothing than by a kill."""
    train(config(steps=40), run.with_name("longer"))
    shutil.copy(run.with_name("longer") / "log.jsonl", run / "log.jsonl")
    said = []
    resume(run, say=said.append)
    assert said == [f"what was there is kept in {run / 'log.jsonl.1'}"]
    assert contents(run)["log.jsonl.1"] == contents(run.with_name("longer"))["log.jsonl"]
    assert contents(run)["log.jsonl"] == contents(finished)["log.jsonl"]


def test_a_new_run_wants_an_empty_folder(tmp_path, capsys):
    own = {".notes.tmp": b"mine", "log.jsonl": b"my log", "curve.png": b"my picture"}
    for name, content in own.items():
        (tmp_path / name).write_bytes(content)
    assert cli.main(["train", "assignment", *TINY, "--out", str(tmp_path)]) == 1
    sentence = f"alstm: {tmp_path} is not empty and holds no run: choose another folder\n"
    assert capsys.readouterr().err == sentence
    assert contents(tmp_path) == own


def test_what_a_run_killed_in_its_first_moment_leaves_is_an_empty_folder(tmp_path):
    (tmp_path / "lock").touch()
    (tmp_path / ".config.toml.abcd_123.tmp").write_bytes(b"tas")
    train(config(steps=5), tmp_path)
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_run_killed_before_its_first_checkpoint_begins_again_by_itself(run, finished):
    for path in [*find_checkpoints(run), run / "model.safetensors"]:
        path.unlink()
    for name in ("log.jsonl", "times.jsonl"):
        (run / name).write_bytes(b"")
    resume(run)
    for name in ("log.jsonl", "model.safetensors"):
        assert (run / name).read_bytes() == (finished / name).read_bytes()
    assert not list(run.glob("*.1"))


def test_no_name_is_not_the_current_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for command in (["train", "assignment", *TINY], ["demo"]):
        assert cli.main([*command, "--out", ""]) == 2
        assert "a folder's name is missing" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_only_temporaries_of_the_run_itself_are_removed(run):
    own = [".config.toml.abcd_123.tmp", ".checkpoint-00000010-0123456789abcdef.pt.abcd_123.tmp"]
    others = [".notes.tmp", ".config.toml.tmp", ".eval-step-20-seed-0.json.abcd_123.tmp"]
    for name in own + others:
        (run / name).write_bytes(b"half")
    resume(run)
    assert sorted(path.name for path in run.glob(".*.tmp")) == sorted(others)


@pytest.mark.parametrize("name", ["log.jsonl", "times.jsonl", "lock", "curve.png", "versions.json"])
@pytest.mark.parametrize("kind", ["symbolic", "dangling"])
def test_links_in_a_run_are_not_written_through(run, tmp_path, name, kind):
    target = tmp_path / "mine"
    if kind == "symbolic":
        shutil.copy(run / name, target) if (run / name).exists() else target.write_bytes(b"mine")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(target)
    mine = target.read_bytes() if target.exists() else None
    before = contents(run)
    with pytest.raises(RunError, match=rf"{run / name} is a link, which is not written through"):
        resume(run, steps=30)
    assert contents(run) == before
    assert (target.read_bytes() if target.exists() else None) == mine
    assert (run / name).is_symlink()


def test_a_log_with_a_second_name_is_not_written_to(run, tmp_path):
    """As in a copy made by `cp --link`: what is appended here would be appended there."""
    os.link(run / "log.jsonl", tmp_path / "backup")
    before = (run / "log.jsonl").read_bytes()
    with pytest.raises(RunError, match="is a hard link, which is not written through"):
        resume(run, steps=30)
    assert (tmp_path / "backup").read_bytes() == before


def test_something_that_is_no_file_is_not_waited_for(run):
    (run / "log.jsonl").unlink()
    os.mkfifo(run / "log.jsonl")
    with pytest.raises(RunError, match=r"log\.jsonl is not a file"):
        resume(run, steps=30)


def test_an_evaluation_is_not_written_through_a_link(run, tmp_path, capsys):
    (tmp_path / "mine").write_bytes(b"mine")
    (run / "eval-step-20-seed-0.json").symlink_to(tmp_path / "mine")
    assert cli.main(["eval", str(run), "--lanes", "2", "--batches", "1"]) == 1
    assert "is a link, which is not written through" in capsys.readouterr().err
    assert (tmp_path / "mine").read_bytes() == b"mine"


def test_the_folder_itself_may_be_a_link(run, tmp_path):
    (tmp_path / "link").symlink_to(run)
    resume(tmp_path / "link", steps=30)
    (tmp_path / "empty").mkdir()
    (tmp_path / "new").symlink_to(tmp_path / "empty")
    train(config(steps=5), tmp_path / "new")
    assert (tmp_path / "empty" / "log.jsonl").exists()


def test_a_dangling_link_among_the_runs_does_not_block_training(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "assignment-lstm-8-seed-0").symlink_to(tmp_path / "gone")
    assert cli.main(["train", "assignment", *TINY]) == 0
    assert capsys.readouterr().out.endswith("run: runs/assignment-lstm-8-seed-0-2\n")
