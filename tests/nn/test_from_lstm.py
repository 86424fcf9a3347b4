"""Where the Associative LSTM is an LSTM: with input keys of ones."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from associative_lstm import AssociativeLSTM, AssociativeLSTMCell
from associative_lstm import functional as F
from closeness import allowed, assert_close

T, B, INPUT, WIDTH = 6, 3, 4, 5
each_backend = pytest.mark.parametrize("backend", ["reference", "fused"])


def convert(lstm, backend, num_copies=1):
    layer = AssociativeLSTM.from_lstm(lstm, num_copies)
    layer.backend = backend
    return layer


def real_parts(tensor):
    """The real halves of the directions' outputs, side by side, and the imaginary halves."""
    pairs = tensor.unflatten(-1, (-1, 2, WIDTH))
    return pairs[..., 0, :].flatten(-2), pairs[..., 1, :]


def results(lstm, *inputs):
    output, (h_n, c_n) = lstm(*inputs)
    return output, h_n, c_n


@each_backend
@pytest.mark.parametrize("num_copies", [1, 3])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_a_trained_lstm_goes_on_as_an_associative_lstm(backend, num_layers, bidirectional, bias, num_copies):
    torch.manual_seed(0)
    lstm = nn.LSTM(
        INPUT,
        WIDTH,
        num_layers,
        bias=bias,
        bidirectional=bidirectional,
        batch_first=True,
        dtype=torch.float64,
    )
    layer = convert(lstm, backend, num_copies)
    x = torch.randn(B, T, INPUT, dtype=torch.float64)
    output, (h_n, c_n) = layer(x)
    limits = allowed(results, lstm, x)
    real, imaginary = real_parts(output)
    assert imaginary.eq(0).all()
    for s in range(num_copies):
        assert_close([real, real_parts(h_n)[0], c_n[:, :, s, :WIDTH]], results(lstm, x), limits)
        assert c_n[:, :, s, WIDTH:].eq(0).all()


@each_backend
def test_states_and_packed_sequences_carry_over(backend):
    torch.manual_seed(0)
    lstm = nn.LSTM(INPUT, WIDTH, 2, dtype=torch.float64)
    layer = convert(lstm, backend, num_copies=2)
    h, c = torch.randn(2, B, WIDTH, dtype=torch.float64), torch.randn(2, B, WIDTH, dtype=torch.float64)
    zeros = torch.zeros_like(h)
    state = torch.cat([h, zeros], -1), torch.cat([c, zeros], -1).unsqueeze(2).expand(-1, -1, 2, -1)
    x = torch.randn(T, B, INPUT, dtype=torch.float64)
    packed = pack_padded_sequence(x, torch.tensor([2, 6, 4]), enforce_sorted=False)
    ours, (h_n, _) = layer(packed, state)
    theirs, (h_lstm, _) = lstm(packed, (h, c))
    limits = allowed(results, lstm, x, (h, c))[:2]
    assert_close([ours.data[:, :WIDTH], h_n[..., :WIDTH]], [theirs.data, h_lstm], limits)


@each_backend
def test_training_goes_on_from_the_same_gradients(backend):
    torch.manual_seed(0)
    lstm = nn.LSTM(INPUT, WIDTH, dtype=torch.float64)
    layer = convert(lstm, backend)
    x = torch.randn(T, B, INPUT, dtype=torch.float64)

    def gradients(module, x):
        module.zero_grad()
        module(x)[0].square().sum().backward()
        return [parameter.grad for parameter in module.parameters()]

    limits = allowed(gradients, lstm, x)[:3]  # the second bias has the gradient of the first
    gradients(lstm, x)
    gradients(layer, x)
    rows = layer.rows
    real = slice(rows.update.start, rows.update.start + WIDTH)
    for gate, block in enumerate((rows.input, rows.forget, real, rows.output)):
        theirs = slice(gate * WIDTH, (gate + 1) * WIDTH)
        ours = (
            layer.weight_ih_l0.grad[block],
            layer.weight_hh_l0.grad[block, :WIDTH],
            layer.bias_l0.grad[block],
        )
        expected = (p.grad[theirs] for p in (lstm.weight_ih_l0, lstm.weight_hh_l0, lstm.bias_ih_l0))
        assert_close(ours, expected, limits)
    assert layer.weight_ih_l0.grad.isfinite().all()


def test_dropout_mode_type_and_width_carry_over():
    lstm = nn.LSTM(INPUT, WIDTH, 2, dropout=0.25, batch_first=True, dtype=torch.float64).eval()
    layer = AssociativeLSTM.from_lstm(lstm)
    assert (layer.hidden_size, layer.dropout, layer.batch_first, layer.training) == (10, 0.25, True, False)
    assert layer.weight_ih_l0.dtype == torch.float64


def test_what_cannot_be_converted_is_named():
    with pytest.raises(ValueError, match="proj_size=2"):
        AssociativeLSTM.from_lstm(nn.LSTM(INPUT, WIDTH, proj_size=2))
    with pytest.raises(TypeError, match=r"lstm: expected a torch\.nn\.LSTM, got GRU"):
        AssociativeLSTM.from_lstm(nn.GRU(INPUT, WIDTH))
    with pytest.raises(ValueError, match="num_copies"):
        AssociativeLSTM.from_lstm(nn.LSTM(INPUT, WIDTH), num_copies=0)


@each_backend
@pytest.mark.parametrize("num_copies", [1, 4])
def test_with_input_keys_of_ones_the_cell_update_is_the_lstms(backend, num_copies):
    """c = g_f c + g_i u in every copy, with the paper's own bound, and whatever the output key is."""
    torch.manual_seed(0)
    N = 2 * WIDTH
    options = {"num_copies": num_copies, "dtype": torch.float64}
    layer = AssociativeLSTM(INPUT, N, backend=backend, **options)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -1.5, 1.5)
    rows = layer.rows
    with torch.no_grad():
        layer.weight_ih_l0[rows.input_key] = 0
        layer.weight_hh_l0[rows.input_key] = 0
        layer.bias_l0[rows.input_key] = torch.tensor([1.0, 0.0]).repeat_interleave(WIDTH).double()
    cell = AssociativeLSTMCell(INPUT, N, **options)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x = torch.randn(T, B, INPUT, dtype=torch.float64)
    output, _, cells = layer(x, return_cells=True)
    h, c = torch.zeros(B, N, dtype=torch.float64), torch.zeros(B, num_copies, N, dtype=torch.float64)
    for t in range(T):
        z = torch.nn.functional.linear(x[t], layer.weight_ih_l0, layer.bias_l0) + h @ layer.weight_hh_l0.T
        g_f, g_i = (z[:, block].sigmoid().repeat(1, 2) for block in (rows.forget, rows.input))
        u = F.bound(z[:, rows.update])
        expected = g_f[:, None] * c + (g_i * u)[:, None]
        _, limit = allowed(lambda cell, *args: cell(*args), cell, x[t], (h, c))
        assert_close([cell(x[t], (h, c)).c, cells[0, t]], [expected] * 2, [limit] * 2)
        h, c = output[t], cells[0, t]
