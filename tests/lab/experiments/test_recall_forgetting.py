"""Why pairs are forgotten: networks made by hand, of which it is known what is wrong with them."""

import pytest
import torch

from associative_lstm import functional as F
from associative_lstm.lab.draw.tables import save_rows
from associative_lstm.lab.experiments.learning.judging import preparation
from associative_lstm.lab.experiments.learning.runs import Logs, make_runs
from associative_lstm.lab.experiments.recall import forgetting
from associative_lstm.lab.experiments.recall.grid import SETTINGS
from associative_lstm.lab.run.config import complete, task_of
from associative_lstm.lab.run.evaluation import Trained
from associative_lstm.lab.run.model import build_model
from associative_lstm.lab.sweep.local import local

VOCABULARY, PAIRS, SIZE = 64, 16, 64


def by_hand(copies, *, wrong_keys=False, alike=0.0):
    """A network that writes every value under its key, once, and asks with the conjugate of that key, or another.

    ``alike``: how much of every key's phases is common to all.
    """
    given = {"task": "mqar-stacked", "vocabulary": VOCABULARY, "pairs": PAIRS, "embedding": 0}
    config = complete(given | {"model": "associative-lstm", "hidden_size": SIZE, "copies": copies})
    task = task_of(config)
    torch.manual_seed(0)
    model = build_model(config, task)
    layer = model.layers[0]
    keys, values, others = F.random_key(SIZE, 3, VOCABULARY).unbind()
    keys = (1 - alike) * keys + alike * keys[:1]
    keys = keys / F.modulus(keys).repeat(1, 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        weight, rows = layer.weight_ih_l0, layer.rows
        weight[rows.input_key, :VOCABULARY] = keys.T
        weight[rows.output_key, :VOCABULARY] = F.conjugate(others if wrong_keys else keys).T
        weight[rows.update, VOCABULARY:] = values.T
        weight[rows.input, VOCABULARY] = -2e3  # nothing is written where there is no value
        for gate in (rows.forget, rows.input, rows.output):
            layer.bias_l0[gate] = 1e3
        model.readout.weight.copy_(values)
    return Trained(config, task, model.eval(), 0)


def test_of_a_noisy_memory_the_keys_are_not_blamed():
    found = forgetting.measure(by_hand(copies=1))
    assert found["right"] < 0.5
    assert found["alone"] == 1
    assert found["match"] == pytest.approx(1)
    assert found["random_keys"] == pytest.approx(found["right"], abs=0.1)
    assert found["expected"] == PAIRS - 1
    # All that was written is unit vectors: this is the mean of what random keys leave, and the median is near it.
    assert found["interference"] == pytest.approx(PAIRS - 1, rel=0.2)
    assert found["random_interference"] == pytest.approx(PAIRS - 1, rel=0.2)


def test_more_copies_are_less_noise():
    few, many = (forgetting.measure(by_hand(copies)) for copies in (1, 8))
    assert many["right"] > few["right"] + 0.1
    assert many["interference"] < few["interference"] / 4
    assert many["random_interference"] < few["random_interference"] / 4


def test_of_keys_that_do_not_match_the_memory_is_not_blamed():
    found = forgetting.measure(by_hand(copies=16, wrong_keys=True))
    assert found["right"] < 0.2
    assert found["alone"] < 0.6
    assert found["random_keys"] < 0.2
    assert abs(found["match"]) < 0.2


def test_keys_that_are_alike_are_mended_by_random_ones():
    found = forgetting.measure(by_hand(copies=8, alike=0.6))
    assert found["match"] == pytest.approx(1)
    assert found["random_keys"] > found["right"] + 0.3
    assert found["interference"] > 2 * found["random_interference"]


def row(network, rate=0.01, **numbers):
    usual = {"right": 0.4, "alone": 1.0, "random_keys": 0.4, "match": 0.9}
    known = {"network": network, "seed": 30, "rate": rate}
    return known | usual | {"interference": 9, "random_interference": 9, "expected": 8} | numbers


def test_runs_without_weights_keep_what_was_found_of_them(tmp_path):
    setting, out, runs = SETTINGS["stacked"], tmp_path / "out", tmp_path / "runs"
    point = next(p for p in setting.points if p.name == "associative-16-16")
    forgetting.look(out, Logs(runs))
    assert forgetting.kept(out) == []
    prepare = preparation(quick=True)
    assert make_runs(runs, [prepare(setting.curve(point))], local(1)) == []
    forgetting.look(out, Logs(runs, prepare))
    found = forgetting.kept(out)
    assert found
    assert all(one.keys() == row(point.name).keys() and 0 <= one["right"] <= 1 for one in found)
    for checkpoint in runs.rglob("checkpoint-*"):
        checkpoint.write_bytes(b"")
    forgetting.look(out, Logs(runs, prepare))
    assert forgetting.kept(out) == found
    for checkpoint in runs.rglob("checkpoint-*"):
        checkpoint.unlink()
    of_another_rate = dict(found[0]) | {"rate": 9.0}
    save_rows(out / forgetting.FILE, [row("one-of-old"), of_another_rate, *found[1:]])
    forgetting.look(out, Logs(runs, prepare))
    assert forgetting.kept(out) == found[1:]
