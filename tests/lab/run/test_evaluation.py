"""Wikipedia's whole test text, read at intervals: every byte scored once, training undisturbed, crashes survived."""

import itertools
import math
import os
import signal

import numpy as np
import pytest
import torch

from associative_lstm.lab.files import Interrupted
from associative_lstm.lab.run import loop
from associative_lstm.lab.run.checkpoint import find_checkpoints, load_checkpoint, save_checkpoint
from associative_lstm.lab.run.config import complete, task_of
from associative_lstm.lab.run.evaluation import cost_of_reading, load_trained
from associative_lstm.lab.run.folder import read_log, read_tests
from associative_lstm.lab.run.loop import resume, train
from associative_lstm.lab.run.step import Trainer
from associative_lstm.lab.sweep.jobs import DIVERGED, Job, is_finished, make_run
from associative_lstm.lab.tasks.wikipedia import ReadThrough


@pytest.fixture
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "text"
    path.write_bytes(np.random.default_rng(0).integers(97, 123, 12_345, dtype=np.uint8).tobytes())
    return path


def config(text, **changes):
    settings = {"task": "wikipedia", "data": str(text), "model": "associative-lstm", "copies": 2}
    settings |= {"hidden_size": 8, "key_init": "conjugate", "window": 20, "log_every": 5}
    return complete(settings | {"checkpoint_every": 100, "test_every": 10, "steps": 25} | changes)


class Crash(BaseException):
    """As a kill: nothing handles it."""


@pytest.mark.parametrize(("lanes", "window", "processes"), [(1, 7, 1), (64, 100, 1), (7, 20, 2), (5, 33, 3)])
def test_every_byte_is_predicted_once_from_the_one_before(lanes, window, processes):
    border, size = 600, 1003
    source = (np.arange(size) * 37 % 251).astype(np.uint8)
    passes = [ReadThrough(source, border, window, lanes, rank, processes) for rank in range(processes)]
    assert len({len(reading) for reading in passes}) == 1
    scored = []
    for reading in passes:
        batches = list(reading)
        assert len(batches) == len(ReadThrough(source, border, window, lanes, 0, processes))
        for lane in range(batches[0].inputs.shape[1]):
            inputs, targets, mask = (
                np.concatenate([batch[part][:, lane].numpy() for batch in batches]) for part in range(3)
            )
            used = np.flatnonzero(mask)
            assert (np.diff(used) == 1).all()
            assert used[0] == 500  # the warm-up
            assert (inputs[1 : used[-1] + 1] == targets[: used[-1]]).all()
            scored.append(targets[mask])
    assert (np.concatenate(scored) == source[border:]).all()


def test_more_lanes_than_bytes_are_not_needed():
    batches = list(ReadThrough(np.arange(50, dtype=np.uint8), 48, window=100, lanes=64))
    assert sum(int(batch.mask.sum()) for batch in batches) == 2


def test_the_cost_is_that_of_the_bytes_with_the_state_carried_through(tmp_path, text):
    train(config(text), tmp_path / "run")
    trained = load_trained(tmp_path / "run")
    bits, symbols, _ = cost_of_reading(trained.model, trained.task, trained.task.read_test(lanes=1))
    source = torch.tensor(list(text.read_bytes()))
    border = 12_345 * 24 // 25
    whole = source[border - 501 :].unsqueeze(1)
    with torch.no_grad():  # in one piece: no windows
        logits = trained.model(whole[:-1])[0][500:, 0]
    nats = torch.nn.functional.cross_entropy(logits, whole[501:, 0], reduction="sum")
    assert symbols == 12_345 - border
    assert bits == pytest.approx(float(nats) / math.log(2), rel=1e-5)


def test_evaluations_are_logged_and_leave_no_trace_in_training(tmp_path, text):
    train(config(text), tmp_path / "tested")
    train(config(text, test_every=1000), tmp_path / "untested")
    tests = read_tests(tmp_path / "tested")
    assert [line["step"] for line in tests] == [10, 20]
    assert {line["symbols"] for line in tests} == {12_345 - 12_345 * 24 // 25}
    assert 4 < tests[1]["cost"] < tests[0]["cost"] < 8
    assert read_tests(tmp_path / "untested") == []
    one, other = ((tmp_path / name / "log.jsonl").read_bytes() for name in ("tested", "untested"))
    assert one == other
    left, right = (
        load_checkpoint(find_checkpoints(tmp_path / name)[0])["trainer"] for name in ("tested", "untested")
    )
    assert all(torch.equal(tensor, right["model"][name]) for name, tensor in left["model"].items())


def test_a_crash_in_an_evaluation_loses_that_evaluation_only(tmp_path, text, monkeypatch):
    train(config(text), tmp_path / "whole")

    def crash(model, task, batches, advance):
        next(iter(batches))
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(loop, "cost_of_reading", crash)
        with pytest.raises(Crash):
            train(config(text), tmp_path / "run")
    steps = []
    original = Trainer.train_step
    monkeypatch.setattr(Trainer, "train_step", lambda self: (steps.append(self.step), original(self)))
    resume(tmp_path / "run")
    assert steps == list(range(10, 25))
    for name in ("log.jsonl", "test.jsonl", "model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_crash_after_an_evaluation_does_not_lose_it(tmp_path, text, monkeypatch):
    train(config(text), tmp_path / "whole")
    original = Trainer.train_step

    def until_13(self):
        if self.step == 13:
            raise Crash
        original(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_step", until_13)
        with pytest.raises(Crash):
            train(config(text), tmp_path / "run")
    made = []
    reading = loop.cost_of_reading
    monkeypatch.setattr(loop, "cost_of_reading", lambda *a: (made.append(a), reading(*a))[1])
    resume(tmp_path / "run")
    assert len(made) == 1  # at 20: that at 10 was there
    for name in ("log.jsonl", "test.jsonl", "model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_torn_or_changed_line_is_made_again(tmp_path, text):
    train(config(text, steps=20), tmp_path / "run")
    tests = tmp_path / "run" / "test.jsonl"
    whole = tests.read_bytes()
    tests.write_bytes(whole[:-9])
    assert [line["step"] for line in read_tests(tmp_path / "run")] == [10]
    resume(tmp_path / "run")
    assert tests.read_bytes() == whole
    tests.write_bytes(whole.replace(b'"step": 10', b'"step": 11'))
    said = []
    resume(tmp_path / "run", steps=25, say=said.append)
    assert "test.jsonl is not what was written; continuing from checkpoint-00000010" in said[0]
    assert tests.read_bytes() == whole


def test_ctrl_c_in_an_evaluation_stops_it_and_the_run_goes_on_with_it(tmp_path, text, monkeypatch):
    train(config(text), tmp_path / "whole")
    reading = loop.cost_of_reading

    def interrupted(model, task, batches, advance):
        os.kill(os.getpid(), signal.SIGINT)
        return reading(model, task, batches, advance)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "cost_of_reading", interrupted)
        with pytest.raises(Interrupted, match="stopped after step 10; continue with"):
            train(config(text), tmp_path / "run")
    assert read_tests(tmp_path / "run") == []
    resume(tmp_path / "run")
    for name in ("log.jsonl", "test.jsonl"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_cost_that_is_not_finite_is_a_divergence(tmp_path, text, monkeypatch):
    monkeypatch.setattr(loop, "cost_of_reading", lambda *_: (math.nan, 10, 0))
    assert make_run(Job(config(text), tmp_path / "run")) is None
    reason = (tmp_path / "run" / DIVERGED).read_text()
    assert (
        "stopped after step 10: the cost on the test split is not finite; the last good checkpoint" in reason
    )
    assert is_finished(Job(config(text), tmp_path / "run"))


def test_a_run_is_done_when_its_last_evaluation_is(tmp_path, text, monkeypatch):
    train(config(text, steps=15), tmp_path)
    assert is_finished(Job(config(text, steps=15), tmp_path))

    def crash(*_):
        raise Crash

    monkeypatch.setattr(loop, "cost_of_reading", crash)
    with pytest.raises(Crash):
        resume(tmp_path, steps=20)
    assert read_log(tmp_path)[-1]["step"] == 20
    longer = Job(config(text, steps=20), tmp_path)
    assert not is_finished(longer)
    monkeypatch.undo()
    resume(tmp_path)
    assert is_finished(longer)
    assert [line["step"] for line in read_tests(tmp_path)] == [10, 20]


def test_a_checkpoint_from_before_there_were_evaluations_is_continued(tmp_path, text):
    train(config(text, steps=15), tmp_path)
    [newest, before] = find_checkpoints(tmp_path)
    content = load_checkpoint(newest)
    del content["positions"]["test.jsonl"]
    newest.unlink()
    save_checkpoint(tmp_path, 15, content, keep=before)
    (tmp_path / "test.jsonl").unlink()
    resume(tmp_path, steps=25)
    assert [line["step"] for line in read_tests(tmp_path)] == [20]


def test_the_clock_of_the_log_does_not_run_in_evaluations(tmp_path, text, monkeypatch):
    now = itertools.count()
    monkeypatch.setattr(loop.time, "perf_counter", lambda: 0.0)
    reading = loop.cost_of_reading

    def slow(*arguments):
        monkeypatch.setattr(loop.time, "perf_counter", lambda: 1000.0 * (1 + next(now)))
        return reading(*arguments)

    monkeypatch.setattr(loop, "cost_of_reading", slow)
    train(config(text, steps=10, log_every=10), tmp_path)
    assert [line["seconds"] for line in read_log(tmp_path)] == [0.0]


def test_the_interval_is_the_tasks_own_and_other_tasks_have_none(text):
    assert complete({"task": "wikipedia"}).test_every == 16_000
    assert complete({"task": "xml"}).test_every is None
    assert task_of(config(text)).read_test() is not None
    with pytest.raises(ValueError, match="test_every has no meaning for task 'xml'"):
        complete({"task": "xml", "test_every": 10})
    with pytest.raises(ValueError, match="test_every must be at least 1, got 0"):
        config(text, test_every=0)
