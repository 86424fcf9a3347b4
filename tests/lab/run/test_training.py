"""Training: what is minimised, what is logged, and what happens when things go wrong."""

import errno
import itertools
import json
import math
import os
import re

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from associative_lstm.lab import files, tasks
from associative_lstm.lab.files import RunError
from associative_lstm.lab.run import folder
from associative_lstm.lab.run.checkpoint import find_checkpoints, load_checkpoint
from associative_lstm.lab.run.config import complete, task_of
from associative_lstm.lab.run.cost import cost_of
from associative_lstm.lab.run.evaluation import evaluate, load_trained
from associative_lstm.lab.run.loop import resume, train
from associative_lstm.lab.run.model import build_model
from associative_lstm.lab.run.step import Trainer, make_fabric
from associative_lstm.lab.tasks import Copy, NTMCopy, OnlineTask, mark, register

SETTINGS = {
    "task": "assignment",
    "model": "lstm",
    "hidden_size": 8,
    "window": 20,
    "log_every": 5,
    "checkpoint_every": 10,
    "steps": 20,
}


def config(**changes):
    values = SETTINGS | changes
    if values["task"] in ("copy", "copy-variable", "ntm-copy"):
        values.pop("window")
    return complete(values)


def test_the_cost_is_bits_per_sequence_or_per_scored_symbol():
    task = Copy()
    batch = next(task.stream(3, seed=0))
    logits = torch.zeros(121, 3, 10)
    logits[..., 8:] = -1e9  # a uniform guess among the eight characters, also where a blank is right
    logits[:111, :, 8] = 1e9  # certain of the blanks
    cost = cost_of(task, logits, batch)
    assert cost.units.tolist() == [1, 1, 1]
    torch.testing.assert_close(cost.bits, torch.full((3,), 30.0))
    torch.testing.assert_close(cost.answer, torch.full((3,), 30.0))

    online = task_of(config())
    window = next(online.stream(3, seed=0))
    cost = cost_of(online, torch.zeros(20, 3, 80), window)
    assert cost.answer is None
    torch.testing.assert_close(cost.units, window.mask.sum(0).float())
    torch.testing.assert_close(cost.bits, math.log2(80) * window.mask.sum(0))

    bits = NTMCopy()
    batch = next(bits.stream(2, seed=0))
    cost = cost_of(bits, torch.zeros(*batch.mask.shape, 8), batch)
    torch.testing.assert_close(cost.bits, 8.0 * batch.mask.sum(0))


def test_unscored_steps_have_no_gradient():
    task = task_of(config())
    batch = next(task.stream(2, seed=0))
    logits = torch.randn(20, 2, 80, requires_grad=True)
    cost_of(task, logits, batch).bits.sum().backward()
    scored = logits.grad.abs().sum(-1) > 0
    assert torch.equal(scored, batch.mask)


def test_the_state_is_carried_online_and_fresh_in_episodes():
    trainer = Trainer(config(), make_fabric())
    trainer.train_step()
    carried = trainer.state
    assert not carried[0][0].requires_grad
    trainer.train_step()
    assert not torch.equal(trainer.state[0][0], carried[0][0])
    episodic = Trainer(config(task="copy"), make_fabric())
    episodic.train_step()
    assert episodic.state is None


def test_a_step_is_the_gradient_of_the_cost_and_adam():
    trainer = Trainer(config(), make_fabric())
    torch.manual_seed(0)
    model = build_model(config(), trainer.task)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    stream = trainer.task.stream(2, seed=0)
    state = None
    for _ in range(3):
        trainer.train_step()
        batch = next(stream)
        logits, state = model(batch.inputs, state)
        state = tuple((h.detach(), c.detach()) for h, c in state)
        nats = torch.nn.functional.cross_entropy(logits[batch.mask], batch.targets[batch.mask])
        optimizer.zero_grad()
        (nats / math.log(2)).backward()
        optimizer.step()
    # Adam's step is the learning rate times the sign of a gradient, however small: a hundredth of it is rounding.
    for ours, theirs in zip(trainer.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=3e-5)


@pytest.mark.parametrize("task", ["assignment", "xml", "arithmetic", "copy", "copy-variable", "ntm-copy"])
def test_every_task_trains_and_logs(tmp_path, task):
    train(config(task=task), tmp_path)
    log = folder.read_log(tmp_path)
    assert [line["step"] for line in log] == [5, 10, 15, 20]
    assert all(math.isfinite(line["cost"]) and line["gradient_norm"] > 0 for line in log)
    assert ("answer" in log[0]) is (task in ("copy", "copy-variable"))


def test_the_cost_of_a_small_network_falls_below_that_of_guessing(tmp_path):
    train(config(steps=300, window=50, hidden_size=16, learning_rate=1e-2), tmp_path)
    log = folder.read_log(tmp_path)
    assert log[0]["cost"] > 5.5  # of log2(80) = 6.3
    assert log[-1]["cost"] < 2.8  # the full stop is certain, and values are letters


def test_a_run_holds_its_configuration_versions_and_weights(tmp_path):
    train(config(), tmp_path)
    assert folder.read_config(tmp_path) == config()
    versions = json.loads((tmp_path / "versions.json").read_text())
    assert versions["torch"] == torch.__version__
    assert versions["processes"] == 1
    trained = load_trained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as exported:
        described = json.loads(exported.metadata()["run"])
    weights = load_file(tmp_path / "model.safetensors")
    assert described["step"] == 20
    assert complete(described["config"]) == config()
    trained.model.load_state_dict(weights)
    for path in find_checkpoints(tmp_path):
        torch.load(path, weights_only=True)


def test_tensorboard_reads_the_events_and_forgets_repeated_steps(tmp_path):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    train(config(steps=20), tmp_path)
    whole, newest = folder.read_log(tmp_path), find_checkpoints(tmp_path)[0]
    newest.unlink()  # so that the last ten steps are made again
    resume(tmp_path)
    events = event_accumulator.EventAccumulator(str(tmp_path)).Reload()
    scalars = events.Scalars("cost")
    assert [event.step for event in scalars] == [5, 10, 15, 20]
    assert [event.value for event in scalars] == pytest.approx([line["cost"] for line in whole])


def test_a_cost_that_is_not_finite_stops_the_run_before_the_weights_are_touched(tmp_path, monkeypatch):
    train(config(steps=10), tmp_path)
    good = load_checkpoint(find_checkpoints(tmp_path)[0])["trainer"]["model"]
    original = Trainer.backpropagate

    def broken(self):
        sums, symbols, state = original(self)
        if self.step == 12:
            self.model.readout.weight.grad.fill_(math.nan)
        return sums, symbols, state

    monkeypatch.setattr(Trainer, "backpropagate", broken)
    with pytest.raises(RunError) as stopped:
        resume(tmp_path, steps=30)
    sentence = str(stopped.value)
    assert "stopped at step 13: the gradient is not finite" in sentence
    assert "likely cause: " in sentence
    assert f"the last good checkpoint is {find_checkpoints(tmp_path)[0]}" in sentence
    kept = load_checkpoint(find_checkpoints(tmp_path)[0])["trainer"]["model"]
    assert all(torch.equal(good[name], kept[name]) for name in good)


def test_a_learning_rate_far_too_high_is_named_as_the_cause(tmp_path):
    with pytest.raises(RunError, match=r"learning_rate 1e\+30"):
        train(config(model="permutation-rnn", learning_rate=1e30), tmp_path)


def test_denormal_numbers_are_flushed_in_training_and_not_elsewhere(tmp_path, monkeypatch):
    def denormal():
        return float(torch.full((), 1e-38) / 10)

    seen = []
    original = Trainer.train_step
    monkeypatch.setattr(Trainer, "train_step", lambda self: (seen.append(denormal()), original(self)))
    train(config(steps=2), tmp_path)
    assert seen == [0.0, 0.0]
    assert denormal() != 0.0


class FullDisk:
    """Fails the n-th call of a function of ``os`` the way a full disk does."""

    def __init__(self, function, left):
        self.function, self.left = function, left

    def __call__(self, *arguments):
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.function(*arguments)


def test_a_full_disk_stops_the_run_and_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    train(config(steps=10), tmp_path)
    good = find_checkpoints(tmp_path)
    monkeypatch.setattr(
        files.os, "replace", FullDisk(os.replace, left=1)
    )  # the configuration's, then no more
    with pytest.raises(
        RunError, match=r"stopped after step 20: .*No space left on device; the last good checkpoint is"
    ):
        resume(tmp_path, steps=40)
    monkeypatch.undo()
    assert find_checkpoints(tmp_path) == good
    assert not list(tmp_path.glob(".*.tmp"))
    resume(tmp_path)
    train(config(steps=40), tmp_path / "whole")
    assert (tmp_path / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_a_full_disk_under_the_log_is_one_sentence_too(tmp_path, monkeypatch):
    monkeypatch.setattr(folder.os, "fsync", FullDisk(os.fsync, left=10))
    with pytest.raises(RunError, match="No space left on device"):
        train(config(steps=100), tmp_path)


def test_a_task_of_ones_own_is_one_small_class(tmp_path):
    class Echo(OnlineTask):
        name = "echo"
        description = "say the letter again"
        chance = math.log2(26) / 2

        def sequence(self, rng):
            letter = self.letter(rng)
            return f"{letter}={letter}."

        def marks(self, text):
            return mark(re.compile(r"(?<==)[a-z]\."), text)

    register(Echo)
    try:
        train(config(task="echo"), tmp_path / "whole")
        train(config(task="echo", steps=10), tmp_path / "halves")
        resume(tmp_path / "halves", steps=20)
        left, right = (tmp_path / name / "model.safetensors" for name in ("whole", "halves"))
        assert left.read_bytes() == right.read_bytes()
    finally:
        del tasks.TASKS["echo"]


def test_an_evaluation_is_the_cost_with_an_interval_that_holds_it(tmp_path):
    train(config(), tmp_path)
    trained = load_trained(tmp_path)
    intervals = []
    for seed in range(20):
        stream = trained.task.stream(32, seed, split="test")
        result = evaluate(trained.model, trained.task, stream, 10)
        low, high = result.interval
        assert low < result.cost < high
        assert result.symbols == 32 * 10 * 20
        intervals.append((low, high, result.cost))
    mean = sum(cost for *_, cost in intervals) / 20
    assert sum(low < mean < high for low, high, _ in intervals) >= 17  # 19 expected of 20


def test_the_interval_comes_from_the_spread_between_lanes():
    torch.manual_seed(0)
    task, lanes = task_of(config()), 3
    model = build_model(config(), task).eval()
    result = evaluate(model, task, task.stream(lanes, seed=0), 2)
    bits, units, state = torch.zeros(lanes), torch.zeros(lanes), None
    for batch in itertools.islice(task.stream(lanes, seed=0), 2):
        with torch.no_grad():
            logits, state = model(batch.inputs, state)
        cost = cost_of(task, logits, batch)
        bits, units = bits + cost.bits, units + cost.units
    assert result.cost == pytest.approx(float(bits.sum() / units.sum()), rel=1e-5)
    error = math.sqrt(lanes) * float((bits - result.cost * units).std() / units.sum())
    assert result.interval == pytest.approx(
        (result.cost - 1.96 * error, result.cost + 1.96 * error), rel=1e-5
    )


def test_a_line_of_the_log_has_the_means_of_its_minibatches(tmp_path):
    for every in (1, 5):
        train(config(task="copy", log_every=every, steps=10), tmp_path / str(every))
    each, five = (folder.read_log(tmp_path / str(every)) for every in (1, 5))
    assert [line["step"] for line in five] == [5, 10]
    for k, line in enumerate(five):
        for name in ("cost", "answer", "gradient_norm"):
            values = [own[name] for own in each[5 * k : 5 * k + 5]]
            assert line[name] == pytest.approx(sum(values) / 5)
            assert len(set(values)) == 5


def test_accuracy_counts_the_most_probable_symbols():
    task = task_of(config())
    batch = next(task.stream(4, seed=0))

    class Knowing(torch.nn.Module):
        def forward(self, inputs, state=None):
            right = torch.nn.functional.one_hot(batch.targets, 80).float()
            right[batch.mask.nonzero()[0, 0]] = 0  # one step without an opinion: symbol 0, an "a"
            return right * 50, state

    result = evaluate(Knowing(), task, iter([batch]), 1)
    step = batch.mask.nonzero()[0, 0]
    missed = int((batch.mask[step] & (batch.targets[step] != 0)).sum())
    assert result.accuracy == pytest.approx(1 - missed / int(batch.mask.sum()))
    assert missed
