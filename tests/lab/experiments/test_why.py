"""Why pairs are forgotten: networks made by hand, of which it is known whether keys or memory are wrong."""

import math

import pytest
import torch

from associative_lstm import functional as F
from associative_lstm.lab.experiments.learning.judging import preparation
from associative_lstm.lab.experiments.learning.runs import Logs, make_runs
from associative_lstm.lab.experiments.recall import why
from associative_lstm.lab.experiments.recall.grid import SETTINGS
from associative_lstm.lab.experiments.recall.page import _why, _why_table
from associative_lstm.lab.run.config import complete, task_of
from associative_lstm.lab.run.evaluation import Trained
from associative_lstm.lab.run.model import build_model
from associative_lstm.lab.sweep.local import local

VOCABULARY, PAIRS, SIZE = 64, 16, 64


def by_hand(copies, wrong_keys=False, size=SIZE):
    """A network that writes every value under its key, once, and asks with the conjugate of that key, or another."""
    given = {"task": "mqar-stacked", "vocabulary": VOCABULARY, "pairs": PAIRS, "embedding": 0}
    config = complete(given | {"model": "associative-lstm", "hidden_size": size, "copies": copies})
    task = task_of(config)
    torch.manual_seed(0)
    model = build_model(config, task)
    layer, readout = model.layers[0], model.readout
    keys, values, others = F.random_key(size, 3, VOCABULARY).unbind()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        weight, rows = layer.weight_ih_l0, layer.rows
        weight[rows.input_key, :VOCABULARY] = keys.T
        weight[rows.output_key, :VOCABULARY] = F.conjugate(others if wrong_keys else keys).T
        weight[rows.update, VOCABULARY:] = values.T
        weight[rows.input, VOCABULARY] = -2e3  # nothing is written where there is no value
        layer.bias_l0[rows.forget] = layer.bias_l0[rows.output] = layer.bias_l0[rows.input] = 1e3
        readout.weight.copy_(values)
    return Trained(config, task, model.eval(), 0)


def test_of_a_noisy_memory_the_keys_are_not_blamed():
    found = why.measure(by_hand(copies=1))
    assert found["right"] < 0.9
    assert found["alone"] == 1
    assert found["exact_key"] == found["right"]  # it is the key that it asked with
    assert found["random_keys"] == pytest.approx(found["right"], abs=0.1)
    assert found["expected"] == PAIRS - 1
    # All that was written is unit vectors: this is the mean of what random keys leave, and the median is near it.
    assert found["interference"] == pytest.approx(PAIRS - 1, rel=0.2)


def test_more_copies_are_less_noise():
    few, many = (why.measure(by_hand(copies)) for copies in (1, 8))
    assert many["right"] > few["right"] + 0.1
    assert many["interference"] < few["interference"] / 4


def test_of_wrong_keys_the_memory_is_not_blamed():
    found = why.measure(by_hand(copies=16, wrong_keys=True))
    assert found["right"] < 0.2
    assert found["exact_key"] > 0.95
    assert found["random_keys"] > 0.95


def made(network="associative-52-4", **numbers):
    row = {"network": network, "label": f"Associative LSTM, {network}", "seed": 30}
    usual = {
        "right": 0.4,
        "alone": 1.0,
        "exact_key": 0.4,
        "random_keys": 0.4,
        "interference": 9,
        "expected": 8,
    }
    return row | usual | numbers


def test_the_page_blames_what_the_numbers_blame():
    noisy = "lost in the noise of its memory, not to wrong keys"
    assert noisy in _why([made()])
    assert noisy not in _why([made(exact_key=0.9)])
    assert noisy not in _why([made(random_keys=0.9)])
    assert noisy not in _why([made(alone=0.6)])
    assert "0.40" in _why([made(alone=0.6)])
    assert _why([]) == _why([made(right=0.95)]) == ""
    assert _why_table([]) == "Not yet measured."
    assert "| 2 | 0.50 |" in _why_table([made(right=0.4), made(right=0.6)])


def test_runs_without_weights_keep_what_was_found(tmp_path):
    setting = SETTINGS["stacked"]
    curve = setting.curve(next(p for p in setting.points if p.name == "associative-16-16"))
    out = tmp_path / "out"
    why.look(out, Logs(tmp_path / "none"))
    assert why.kept(out) == []
    out.mkdir()
    kept = [made(), made("associative-16-16")]
    why.save_rows(out / why.FILE, kept)
    why.look(out, Logs(tmp_path / "none"))
    assert why.kept(out) == kept

    prepare = preparation(quick=True)
    assert make_runs(tmp_path / "runs", [prepare(curve)], local(1)) == []
    why.look(out, Logs(tmp_path / "runs", prepare))
    rows = why.kept(out)
    assert made() in rows
    [new, *_] = [row for row in rows if row["network"] == "associative-16-16"]
    assert new["label"] == "Associative LSTM, 16 copies, N_h 16"
    assert not math.isnan(new["interference"])
