"""Hostile and broken configurations, run folders and checkpoints: one sentence, no code run, no run damaged.

Broken data files are in test_tasks.py.
"""

import contextlib
import io
import shutil

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from associative_lstm.lab import cli
from associative_lstm.lab.run.checkpoint import (
    DamagedCheckpoint,
    find_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from associative_lstm.lab.run.config import Config, complete, read_toml, tomllib
from associative_lstm.lab.run.loop import train
from associative_lstm.lab.tasks import enwik8
from torture.hostile import hostile_files, leaves, replaced, with_digest

FUZZ = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}
TINY = {
    "task": "assignment",
    "model": "lstm",
    "hidden_size": 8,
    "window": 20,
    "log_every": 2,
    "checkpoint_every": 4,
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A small run, to be copied and broken."""
    folder = tmp_path_factory.mktemp("original") / "run"
    train(complete(TINY | {"steps": 8}), folder)
    return folder


@pytest.fixture(scope="module")
def recalling(tmp_path_factory):
    """An Associative LSTM, to be shown beside others."""
    folder = tmp_path_factory.mktemp("recalling") / "run"
    train(complete(TINY | {"model": "associative-lstm", "steps": 2}), folder)
    return folder


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    def refuse(*arguments):
        raise ValueError("data: no network")

    monkeypatch.setattr(enwik8, "_download", refuse)


def alstm(*arguments):
    """Run the command: it may refuse, with one sentence, and nothing else."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([str(argument) for argument in arguments])
    assert code in (0, 1, 2)
    if code:
        lines = err.getvalue().strip().splitlines()
        assert lines[-1].startswith("alstm: ")
        assert "Traceback" not in err.getvalue()
    return code


def contents(folder, skip=()):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in skip and not path.name.startswith("events.")
    }


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
keys = st.sampled_from(sorted(Config.__dataclass_fields__)) | st.text(max_size=12)


@settings(max_examples=300, **FUZZ)
@given(st.dictionaries(keys, values, max_size=6), st.booleans())
def test_any_values_are_a_configuration_or_one_sentence(settings_, with_task):
    if with_task:
        settings_ = settings_ | {"task": "assignment"}
    try:
        config = complete(settings_)
    except ValueError as error:
        message = str(error)
    else:
        message = ""
        assert complete(read_back(config)) == config
    assert "\n" not in message.replace("\\n", "")


def read_back(config):
    return tomllib.loads(config.to_toml())


@settings(max_examples=200, **FUZZ)
@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(str.encode)
    | st.dictionaries(keys, st.integers() | st.text(max_size=5), max_size=4).map(
        lambda d: "".join(f"{k} = {v!r}\n" for k, v in d.items()).encode("utf-8", "ignore")
    )
)
def test_any_file_is_a_configuration_or_one_sentence(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("config")
    file = folder / "settings.toml"
    file.write_bytes(content)
    # The task is misspelt, so that even a good file does not start a training run.
    assert alstm("train", "assigment", "--config", file, "--out", folder / "run") != 0
    assert not (folder / "run").exists()
    with contextlib.suppress(ValueError):
        read_toml(file)


def broken(draw, content):
    """One way or another to break a file."""
    way = draw(st.sampled_from(["flip", "cut", "replace", "insert", "empty"]))
    at = draw(st.integers(0, max(len(content) - 1, 0)))
    if way == "flip" and content:
        return content[:at] + bytes([content[at] ^ draw(st.integers(1, 255))]) + content[at + 1 :]
    if way == "cut":
        return content[:at]
    if way == "replace":
        return draw(st.binary(max_size=100))
    if way == "insert":
        return content[:at] + draw(st.binary(min_size=1, max_size=20)) + content[at:]
    return b""


@settings(max_examples=150, **FUZZ)
@given(st.data())
def test_a_broken_run_folder_is_refused_or_resumed_and_nothing_else_is_lost(
    tmp_path_factory, original, recalling, data
):
    run = tmp_path_factory.mktemp("broken") / "run"
    shutil.copytree(original, run)
    names = sorted(path.name for path in run.iterdir() if not path.name.startswith("events."))
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)):
        file = run / name
        way = data.draw(st.sampled_from(["content", "content", "content", "gone", "folder"]))
        if way == "content":
            file.write_bytes(broken(data.draw, file.read_bytes()))
        else:
            file.unlink()
            if way == "folder" and name != "model.safetensors":  # a run that ends there has lost nothing else
                file.mkdir()
    before = contents(run)
    command = data.draw(st.sampled_from(["resume", "eval", "sample", "compare", "inside"]))
    extra = {
        "resume": ["--steps", 10],
        "eval": ["--lanes", 2, "--batches", 1],
        "sample": ["--length", 20],
        "compare": ["--out", run.parent / "curves.png"],
        "inside": [recalling, "--out", run.parent / "inside.html"],
    }[command]
    code = alstm(command, run, *extra)
    after = contents(run)
    if code and command != "resume":
        assert after == before
    elif code:
        # A refused resume may have made a lock file; all that was there is as it was.
        assert {name: after.get(name) for name in before} == before
    shutil.rmtree(run.parent)


@pytest.mark.parametrize("kind", range(12))
def test_a_checkpoint_never_runs_code(tmp_path, original, kind):
    marker = tmp_path / "code-was-run"
    content = hostile_files(marker)[kind]
    with pytest.raises(DamagedCheckpoint):
        load_checkpoint(with_digest(tmp_path, content))
    run = tmp_path / "run"
    shutil.copytree(original, run)
    for path in find_checkpoints(run):
        path.unlink()
    with_digest(run, content)
    for command in ("resume", "eval", "sample", "inside"):
        assert alstm(command, run) == 1
    assert not marker.exists()


@settings(max_examples=150, **FUZZ)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_with_a_right_digest_are_refused(tmp_path_factory, original, content, prefixed):
    folder = tmp_path_factory.mktemp("bytes")
    if prefixed:
        good = find_checkpoints(original)[0].read_bytes()
        content = good[: len(good) // 2] + content + good[len(good) // 2 :]
    path = with_digest(folder, content)
    with contextlib.suppress(DamagedCheckpoint):
        assert isinstance(load_checkpoint(path), dict)


@settings(max_examples=150, **FUZZ)
@given(st.data())
def test_a_checkpoint_with_any_wrong_value_is_refused_or_harmless(tmp_path_factory, original, data):
    run = tmp_path_factory.mktemp("values") / "run"
    shutil.copytree(original, run)
    [newest, older] = find_checkpoints(run)
    content = load_checkpoint(newest)
    # The list of 625 integers of Python's random generator would otherwise take most of the draws.
    paths = [path for path in leaves(content) if not ("python" in path and len(path) > 5)]
    path = data.draw(st.sampled_from(paths))
    new = data.draw(scalars | st.just([]) | st.just({}) | st.just(torch.zeros(2)))
    newest.unlink()
    older.unlink()
    save_checkpoint(run, 8, replaced(content, path, new))
    before = contents(run)
    code = alstm("resume", run, "--steps", 10)
    if code:
        assert contents(run) == before
    assert alstm("eval", run, "--lanes", 2, "--batches", 1) in (0, 1)
    shutil.rmtree(run.parent)
