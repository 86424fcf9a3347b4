"""The layer and the cell against the independent complex NumPy implementation, in float64."""

import pytest
import torch
import twin
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from associative_lstm import AssociativeLSTM, AssociativeLSTMCell
from closeness import allowed, assert_close

T, B, INPUT, N = 7, 3, 5, 6  # N/2 = 3: the smallest size where a permutation can differ from its inverse


def results(layer, x, state=None, lengths=None):
    fed = x if lengths is None else pack_padded_sequence(x, lengths, enforce_sorted=False)
    output, (h_n, c_n) = layer(fed, state)
    return (output if lengths is None else pad_packed_sequence(output)[0]), h_n, c_n


def agree(layer, x, state=None, lengths=None):
    theirs = run_twin(layer, x, *(state or (None, None)), lengths)
    assert_close(results(layer, x, state, lengths), theirs, allowed(results, layer, x, state, lengths))


def layer_and_state(backend="reference", **options):
    torch.manual_seed(0)
    layer = AssociativeLSTM(INPUT, N, dtype=torch.float64, backend=backend, **options)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)  # so that many moduli are above 1
    sequences = layer.num_layers * (2 if layer.bidirectional else 1)
    h_0 = torch.randn(sequences, B, layer.num_heads * N, dtype=torch.float64)
    c_0 = torch.randn(sequences, B, layer.num_copies, N, dtype=torch.float64)
    return layer, h_0, c_0, torch.randn(T, B, INPUT, dtype=torch.float64)


def run_twin(layer, x, h_0=None, c_0=None, lengths=None):
    arrays = {name: value.detach().numpy() for name, value in layer.state_dict().items()}
    return twin.associative_lstm(
        arrays,
        x.numpy(),
        layer.num_layers,
        layer.bidirectional,
        layer.num_heads,
        layer.hidden_size,
        layer.recurrent_update,
        layer.activation,
        None if h_0 is None else h_0.numpy(),
        None if c_0 is None else c_0.numpy(),
        None if lengths is None else lengths.numpy(),
        layer.residual,
    )


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("activation", ["bound", "tanh"])
@pytest.mark.parametrize("recurrent_update", [True, False])
@pytest.mark.parametrize("num_copies", [1, 4, 8])
@pytest.mark.parametrize("num_heads", [1, 3])
def test_every_kind_of_step(num_heads, num_copies, recurrent_update, activation, backend):
    layer, h_0, c_0, x = layer_and_state(
        backend,
        num_heads=num_heads,
        num_copies=num_copies,
        recurrent_update=recurrent_update,
        activation=activation,
    )
    agree(layer, x, (h_0, c_0))


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize(("num_heads", "num_copies", "bias"), [(1, 4, True), (3, 1, False), (3, 8, True)])
def test_layers_and_directions(num_heads, num_copies, bias, num_layers, bidirectional, backend):
    layer, h_0, c_0, x = layer_and_state(
        backend,
        num_heads=num_heads,
        num_copies=num_copies,
        num_layers=num_layers,
        bidirectional=bidirectional,
        bias=bias,
    )
    agree(layer, x, (h_0, c_0))


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("learn_initial_state", [False, True])
def test_initial_state_when_none_is_given(learn_initial_state, backend):
    layer, _, _, x = layer_and_state(
        backend,
        num_heads=2,
        num_copies=3,
        num_layers=2,
        bidirectional=True,
        learn_initial_state=learn_initial_state,
    )
    agree(layer, x)


@pytest.mark.parametrize("backend", ["reference", "fused"])
def test_packed_sequence(backend):
    layer, h_0, c_0, x = layer_and_state(backend, num_heads=2, num_copies=3, num_layers=2, bidirectional=True)
    agree(layer, x, (h_0, c_0), torch.tensor([3, 7, 5]))


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_layers_that_add_what_they_read(bidirectional, backend):
    options = {"num_heads": 2, "num_copies": 3, "num_layers": 3, "bidirectional": bidirectional}
    layer, h_0, c_0, x = layer_and_state(backend, residual=True, **options)
    agree(layer, x, (h_0, c_0))
    agree(layer, x, (h_0, c_0), torch.tensor([3, 7, 5]))


@pytest.mark.parametrize("rotation", [0.5, 1.0])
@pytest.mark.parametrize("permutation", ["random", "shift"])
@pytest.mark.parametrize("backend", ["reference", "fused"])
def test_a_memory_that_turns(backend, permutation, rotation):
    options = {"num_heads": 2, "num_copies": 3, "num_layers": 2, "bidirectional": True}
    layer, h_0, c_0, x = layer_and_state(backend, rotation=rotation, permutation=permutation, **options)
    agree(layer, x, (h_0, c_0))
    agree(layer, x, (h_0, c_0), torch.tensor([3, 7, 5]))


@pytest.mark.parametrize("rotation", [0.0, 0.5])
@pytest.mark.parametrize("recurrent_update", [True, False])
def test_cell(recurrent_update, rotation):
    torch.manual_seed(0)
    options = {"recurrent_update": recurrent_update, "rotation": rotation, "dtype": torch.float64}
    cell = AssociativeLSTMCell(INPUT, N, num_copies=4, num_heads=2, **options)
    for parameter in cell.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(B, INPUT, dtype=torch.float64)
    h_0, c_0 = torch.randn(B, 2 * N, dtype=torch.float64), torch.randn(B, 4, N, dtype=torch.float64)
    ours, limits = cell(x, (h_0, c_0)), allowed(lambda cell, *args: cell(*args), cell, x, (h_0, c_0))
    parameters = {name: value.detach().numpy() for name, value in cell.state_dict().items()}
    for b in range(B):
        state = h_0[b].numpy(), twin.to_complex(c_0[b].numpy())
        theirs_h, theirs_c = twin.associative_lstm_step(
            parameters, x[b].numpy(), *state, cell.permutations.numpy(), 2, recurrent_update, "bound"
        )
        assert_close([part[b] for part in ours], [theirs_h, twin.to_pair(theirs_c)], limits)
