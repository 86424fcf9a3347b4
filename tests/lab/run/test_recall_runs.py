"""Runs with a test split: accuracy in the log, costs of scored steps alone, the same after a resume."""

import itertools

import pytest
import torch

from associative_lstm.lab.files import Interrupted
from associative_lstm.lab.run.config import complete, task_of
from associative_lstm.lab.run.cost import cost_in_all, cost_of
from associative_lstm.lab.run.evaluation import cost_of_reading, evaluate, load_trained, predict, right_of
from associative_lstm.lab.run.folder import read_tests
from associative_lstm.lab.run.loop import resume, train
from associative_lstm.lab.run.model import build_model


def config(task="mqar-stacked", **values):
    small = {"sequences": 50, "hidden_size": 8, "batch_size": 8, "steps": 8, "test_every": 4, "log_every": 2}
    return complete({"task": task, "model": "lstm", "previous": True} | small | values)


def test_costs_and_hits_of_scored_steps_are_those_among_all_steps():
    chosen = config("mqar")
    task = task_of(chosen)
    model, batch = build_model(chosen, task), next(task.stream(8, seed=0))
    sparse, everywhere = model(batch.inputs, None, batch.mask)[0], model(batch.inputs)[0]
    assert sparse.dim() == 2
    for one, other in zip(
        cost_of(task, sparse, batch)[:2], cost_of(task, everywhere, batch)[:2], strict=True
    ):
        torch.testing.assert_close(one, other)
    in_all = cost_in_all(task, sparse, batch)
    torch.testing.assert_close(in_all.bits, cost_of(task, everywhere, batch).bits.sum())
    assert in_all.units == batch.mask.sum() == 32
    assert torch.equal(right_of(task, sparse, batch)[0], right_of(task, everywhere, batch)[0])


def test_accuracy_is_logged_and_that_of_longer_sequences(tmp_path):
    train(config("parity", length=6, longest=9), tmp_path)
    tests = read_tests(tmp_path)
    assert [line["step"] for line in tests] == [4, 8]
    trained = load_trained(tmp_path)
    for prefix, reading in ("", trained.task.read_test()), ("longer_", trained.task.read_longer()):
        bits, symbols, right = cost_of_reading(trained.model, trained.task, reading)
        assert symbols == tests[-1][f"{prefix}symbols"] == sum(int(batch.mask.sum()) for batch in reading)
        assert tests[-1][f"{prefix}accuracy"] == right / symbols
        assert tests[-1][f"{prefix}cost"] == pytest.approx(bits / symbols)
        assert 0.4 < right / symbols < 0.7


@pytest.mark.parametrize("task", ["mqar-stacked", "mad-compression", "s5"])
def test_a_resumed_run_sees_the_same_data_and_is_tested_alike(task, tmp_path):
    train(config(task), tmp_path / "whole")
    asked = itertools.chain([0] * 5, itertools.repeat(2))
    with pytest.raises(Interrupted):
        train(config(task), tmp_path / "run", asked=lambda: next(asked))
    resume(tmp_path / "run", asked=lambda: 0)
    for name in ("log.jsonl", "test.jsonl", "model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_trained_network_is_evaluated_and_shown_step_by_step(tmp_path):
    train(config("mqar"), tmp_path)
    trained = load_trained(tmp_path)
    batch, logits = predict(trained, seed=0, symbols=300)
    assert logits.shape == (*batch.inputs.shape, 256)
    reading = trained.task.read_test()
    result = evaluate(trained.model, trained.task, reading, len(reading))
    assert result.accuracy == read_tests(tmp_path)[-1]["accuracy"]
    assert result.cost == pytest.approx(read_tests(tmp_path)[-1]["cost"])
