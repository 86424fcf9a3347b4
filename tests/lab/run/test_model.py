"""The model: the parameter counts of the paper's tables, depth, and states of every form."""

import pytest
import torch

from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.run.config import complete, task_of
from associative_lstm.lab.run.model import (
    SequenceModel,
    build_model,
    clone_like,
    count_parameters,
    detach_state,
    flatten_state,
)
from associative_lstm.lab.run.recipes import PRESETS
from associative_lstm.nn import LSTM, AssociativeLSTM


def model_of(**settings):
    torch.manual_seed(0)
    config = complete(settings)
    return build_model(config, task_of(config))


# The paper's numbers; LSTM-like networks have 2(H + n) + 3 more there, H the width of the output and n the
# vocabulary, which no sentence of the paper explains.
@pytest.mark.parametrize(
    ("settings", "ours", "papers", "width"),
    [
        ({"task": "copy", "model": "permutation-rnn"}, 5_642, 5_642, None),
        ({"task": "copy", "model": "unitary-rnn"}, 6_666, 6_666, None),
        ({"task": "copy", "model": "multiplicative-unitary-rnn"}, 10_506, 10_506, None),
        ({"task": "copy", "model": "lstm"}, 72_714, 72_993, 128),
        ({"task": "copy", "model": "lstm", "hidden_size": 512}, 1_077_258, 1_078_305, 512),
        ({"task": "copy", "model": "associative-lstm", "copies": 4}, 65_226, 65_505, 128),
        ({"task": "arithmetic", "model": "lstm"}, 117_328, 117_747, 128),
        ({"task": "arithmetic", "model": "lstm", "hidden_size": 512}, 1_255_504, 1_256_691, 512),
        ({"task": "arithmetic", "model": "associative-lstm"}, 130_704, 131_123, 128),
        ({"task": "arithmetic", "model": "associative-lstm", "heads": 3}, 774_800, 775_731, 384),
    ],
)
def test_the_parameter_counts_of_the_papers_tables(settings, ours, papers, width):
    model = model_of(**settings)
    assert count_parameters(model) == ours
    vocabulary = 10 if settings["task"] == "copy" else 80
    assert papers - ours == (0 if width is None else 2 * (width + vocabulary) + 3)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_is_a_model(name):
    config = complete({"task": "assignment"} | PRESETS[name])
    model = build_model(config, task_of(config))
    assert len(model.layers) == config.layers
    assert model.readout.out_features == 80


def test_three_layers_learn_with_the_presets_keys():
    for preset, learns in (
        (PRESETS["wikipedia-associative-lstm-4"], True),
        ({"layers": 3, "copies": 4}, False),
    ):
        model = model_of(task="assignment", **(preset | {"hidden_size": 64}))
        model(torch.randint(80, (20, 2)))[0].logsumexp(-1).sum().backward()
        largest = model.layers[0].weight_ih_l0.grad.abs().max()
        assert bool(largest > 1e-8) is learns


def test_a_seed_means_the_network_that_recorded_runs_began_with():
    layer = model_of(task="xml", copies=2, hidden_size=8, key_init="glorot", forget_bias=0.0).layers[0]
    torch.manual_seed(0)
    expected = AssociativeLSTM(80, 8, num_copies=2, recurrent_update=False, start="paper").state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in layer.state_dict().items())


SMALL = {"associative-lstm": {"copies": 2}, "ntm": {"heads": 2}}


@pytest.mark.parametrize("name", sorted(NETWORKS))
@pytest.mark.parametrize("layers", [1, 2])
def test_a_sequence_can_be_cut_anywhere_with_any_network_and_depth(name, layers):
    model = model_of(
        task="assignment", model=name, hidden_size=8, layers=layers, **SMALL.get(name, {})
    ).double()
    x = torch.randint(80, (9, 3))
    whole, last = model(x)
    first, state = model(x[:4])
    second, end = model(x[4:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
    for left, right in zip(flatten_state(end), flatten_state(last), strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_a_state_is_cut_from_its_history_and_rebuilt_in_its_own_form(name):
    model = model_of(task="assignment", model=name, hidden_size=8, **SMALL.get(name, {}))
    _, state = model(torch.randint(80, (2, 3)))
    cut = detach_state(state)
    assert type(cut[0]) is type(state[0])
    assert not any(t.requires_grad for t in flatten_state(cut))
    rebuilt = clone_like(state, [t.detach().clone() for t in flatten_state(state)])
    assert all(torch.equal(a, b) for a, b in zip(flatten_state(rebuilt), flatten_state(state), strict=True))
    assert type(rebuilt[0]) is type(state[0])
    with pytest.raises(ValueError, match="another form"):
        clone_like(state, [t[..., :1] for t in flatten_state(cut)])


def test_vectors_are_presented_as_they_are():
    model = model_of(task="ntm-copy", model="lstm", hidden_size=8)
    logits, _ = model(torch.randn(5, 2, 9))
    assert logits.shape == (5, 2, 8)


def test_the_model_is_the_sum_of_its_parts():
    model = model_of(task="xml", model="lstm", hidden_size=8)
    x = torch.randint(80, (5, 2))
    layer = model.layers[0]
    assert isinstance(layer, LSTM)
    output, _ = layer(torch.eye(80)[x])
    torch.testing.assert_close(model(x)[0], output @ model.readout.weight.T + model.readout.bias)


def test_the_input_before_is_presented_beside_the_current_one():
    model = model_of(task="xml", model="lstm", hidden_size=8, previous=True)
    x = torch.randint(80, (5, 2))
    codes = torch.eye(80)[x]
    before = torch.cat([torch.zeros(1, 2, 80), codes[:-1]])
    output, _ = model.layers[0](torch.cat([codes, before], -1))
    torch.testing.assert_close(model(x)[0], model.readout(output))
    first, state = model(x[:2])
    torch.testing.assert_close(torch.cat([first, model(x[2:], state)[0]]), model(x)[0])


@pytest.mark.parametrize("name", sorted(name for name, network in NETWORKS.items() if not network.stacked))
def test_a_residual_stack_adds_what_its_upper_networks_read(name):
    settings = {"model": name, "hidden_size": 8, "layers": 3, **SMALL.get(name, {})}
    model = model_of(task="assignment", residual=True, **settings)
    x = torch.randint(80, (5, 2))
    h = model.layers[0](torch.eye(80)[x])[0]
    for layer in model.layers[1:]:
        h = layer(h)[0] + h
    torch.testing.assert_close(model(x)[0], model.readout(h))
    with pytest.raises(RuntimeError, match="residual: a network that gives as many numbers as it reads"):
        SequenceModel([LSTM(10, 8), LSTM(8, 1)], 10, residual=True)


@pytest.mark.parametrize("task", ["xml", "mqar-stacked"])
def test_symbols_become_learned_vectors_side_by_side(task):
    model = model_of(task=task, model="lstm", hidden_size=8, embedding=6)
    several = (2,) if task == "mqar-stacked" else ()
    x = torch.randint(80, (5, 3, *several))
    vectors = model.embedding.weight[x].flatten(2)
    assert model.layers[0].input_size == vectors.shape[-1] == 6 * (several or (1,))[0]
    torch.testing.assert_close(model(x)[0], model.readout(model.layers[0](vectors)[0]))
    assert 0.5 < float(model.embedding.weight.detach().norm(dim=-1).mean()) < 1.5


def test_logits_of_scored_steps_are_those_of_all_steps():
    model = model_of(task="mqar", model="lstm", hidden_size=8)
    x, scored = torch.randint(256, (6, 3)), torch.rand(6, 3) < 0.4
    torch.testing.assert_close(model(x, None, scored)[0], model(x)[0][scored])


def test_compression_is_read_from_the_last_step_alone():
    model = model_of(task="mad-compression", model="lstm", hidden_size=8)
    x = torch.randint(16, (32, 2))
    last = model.layers[0](model.embedding.weight[x])[0][-1]
    logits = model(x)[0]
    assert logits.shape == (32, 2, 16)
    torch.testing.assert_close(logits, model.readout(model.decoder.hidden(last + model.decoder.positions)))
    assert len({tuple(row) for row in logits[:, 0].tolist()}) == 32
