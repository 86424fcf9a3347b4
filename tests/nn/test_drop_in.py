"""What a program written for torch.nn.LSTM does with a layer, beyond calling it."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn

from associative_lstm import AssociativeLSTM, AssociativeLSTMCell
from associative_lstm.nn import (
    LSTM,
    MultiplicativeUnitaryRNN,
    NeuralTuringMachine,
    PermutationRNN,
    UnitaryRNN,
)

T, INPUT, N = 3, 2, 4
EVERY = {
    "AssociativeLSTM": lambda **options: AssociativeLSTM(
        INPUT, N, 2, bidirectional=True, num_copies=2, num_heads=2, **options
    ),
    "one layer": lambda **options: AssociativeLSTM(INPUT, N, keep_states_every=2, **options),
    "LSTM": lambda **options: LSTM(INPUT, N, 2, **options),
    "PermutationRNN": lambda **options: PermutationRNN(INPUT, N, **options),
    "UnitaryRNN": lambda **options: UnitaryRNN(INPUT, N, **options),
    "MultiplicativeUnitaryRNN": lambda **options: MultiplicativeUnitaryRNN(INPUT, N, **options),
    "NeuralTuringMachine": lambda **options: NeuralTuringMachine(INPUT, N, 2, (3, 2), **options),
}
each_network = pytest.mark.parametrize("name", EVERY)
LIKE_LSTM = {
    "AssociativeLSTM": lambda **options: AssociativeLSTM(INPUT, N, **options),
    "LSTM": lambda **options: LSTM(INPUT, N, **options),
}


def parts(state):
    return [state] if isinstance(state, torch.Tensor) else list(state)


@each_network
@pytest.mark.parametrize("learned", [False, True])
def test_a_batch_of_no_items(name, learned):
    """As torch.nn.LSTM: results of the same shapes without items, and gradients of zero."""
    net = EVERY[name](learn_initial_state=learned)
    x = torch.zeros(T, 0, INPUT, requires_grad=True)
    one, _ = net(torch.zeros(T, 1, INPUT))
    output, state = net(x)
    assert output.shape == (T, 0, one.shape[-1])
    again, _ = net(x, state)
    assert again.shape == output.shape
    (output.sum() + sum(part.sum() for part in parts(state))).backward()
    assert x.grad.shape == x.shape
    for parameter in net.parameters():
        assert parameter.grad is None or not parameter.grad.any()


@each_network
def test_a_batch_of_no_items_with_the_batch_first(name):
    net = EVERY[name](batch_first=True)
    assert net(torch.zeros(0, T, INPUT))[0].shape[:2] == (0, T)
    with pytest.raises(ValueError, match="at least one time step"):
        net(torch.zeros(2, 0, INPUT))


@pytest.mark.parametrize("backend", ["auto", "reference", "fused"])
def test_a_batch_of_no_items_on_every_backend(backend):
    layer = AssociativeLSTM(INPUT, N, num_copies=2, backend=backend)
    output, (h, c), cells = layer(torch.zeros(T, 0, INPUT), return_cells=True)
    assert output.shape == (T, 0, N)
    assert (h.shape, c.shape, cells.shape) == ((1, 0, N), (1, 0, 2, N), (1, T, 0, 2, N))


def test_a_batch_of_no_items_in_the_cell():
    h, c = AssociativeLSTMCell(INPUT, N, num_copies=2)(torch.zeros(0, INPUT))
    assert (h.shape, c.shape) == ((0, N), (0, 2, N))


@each_network
def test_a_state_given_as_a_list(name):
    net, x = EVERY[name](), torch.randn(T, 2, INPUT)
    _, state = net(x)
    expected, end = net(x, state)
    output, same = net(x, parts(state))
    assert torch.equal(output, expected)
    assert all(torch.equal(a, b) for a, b in zip(parts(same), parts(end), strict=True))


def test_a_state_given_as_a_list_to_a_single_sequence_and_to_the_cell():
    layer, x = AssociativeLSTM(INPUT, N), torch.randn(T, INPUT)
    _, state = layer(x)
    assert torch.equal(layer(x, list(state))[0], layer(x, state)[0])
    cell = AssociativeLSTMCell(INPUT, N)
    state = cell(x[0])
    assert torch.equal(cell(x[1], list(state)).h, cell(x[1], state).h)
    with pytest.raises(TypeError, match="got list of 1"):
        cell(x[1], [state.h])


@pytest.mark.parametrize("name", LIKE_LSTM)
def test_flatten_parameters(name):
    net = LIKE_LSTM[name]()
    before = copy.deepcopy(net.state_dict())
    assert net.flatten_parameters() is None
    for key, value in net.state_dict().items():
        assert torch.equal(value, before[key])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_weights_and_bias(bias, bidirectional):
    layer = AssociativeLSTM(INPUT, N, 2, bias=bias, bidirectional=bidirectional)
    theirs = nn.LSTM(INPUT, N, 2, bias=bias, bidirectional=bidirectional)
    assert layer.bias is theirs.bias is bias
    assert len(layer.all_weights) == len(theirs.all_weights)
    assert layer.all_weights[0][0] is layer.weight_ih_l0
    assert layer.all_weights[-1][1] is (layer.weight_hh_l1_reverse if bidirectional else layer.weight_hh_l1)
    flat = [weight for weights in layer.all_weights for weight in weights]
    assert [id(weight) for weight in flat] == [id(parameter) for parameter in layer.parameters()]


def test_weights_and_bias_of_the_lstm():
    net = LSTM(INPUT, N, 2, learn_initial_state=True)
    assert net.bias is True
    assert [[id(weight) for weight in weights] for weights in net.all_weights] == [
        [id(net.weight_ih_l0), id(net.weight_hh_l0), id(net.bias_l0)],
        [id(net.weight_ih_l1), id(net.weight_hh_l1), id(net.bias_l1)],
    ]


@pytest.mark.parametrize("bias", [False, True])
def test_a_program_that_initialises_torch_s_lstm(bias):
    """The loop that is written for orthogonal recurrent weights and a forget bias."""
    layer = AssociativeLSTM(INPUT, N, 2, bias=bias)
    for weights in layer.all_weights:
        for weight in weights:
            if weight.dim() == 2:
                nn.init.orthogonal_(weight)
            else:
                nn.init.zeros_(weight)
    layer.flatten_parameters()
    product = layer.weight_hh_l1.T @ layer.weight_hh_l1
    torch.testing.assert_close(product, torch.eye(N), rtol=0, atol=1e-5)


def test_a_pickled_layer_and_its_file_load():
    """``bias`` is no attribute of its own: what was written before there was one loads as well."""
    layer, x = AssociativeLSTM(INPUT, N, bias=False), torch.randn(T, 2, INPUT)
    assert "bias" not in vars(layer)
    again = pickle.loads(pickle.dumps(layer))
    assert again.bias is False
    assert torch.equal(again(x)[0], layer(x)[0])
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other = AssociativeLSTM(INPUT, N, bias=False)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other(x)[0], layer(x)[0])
