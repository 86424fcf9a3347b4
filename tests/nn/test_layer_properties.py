"""Properties of the layer on both backends: where a sequence is cut, padded or ordered changes nothing."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence

from associative_lstm import AssociativeLSTM, AssociativeLSTMCell
from associative_lstm.kernels.associative import reference
from closeness import allowed, assert_close

INPUT = 3
each_backend = pytest.mark.parametrize("backend", ["reference", "fused"])
options = st.fixed_dictionaries(
    {
        "hidden_size": st.sampled_from([2, 6, 18, 34]),
        "num_layers": st.integers(1, 2),
        "num_heads": st.integers(1, 2),
        "num_copies": st.integers(1, 3),
        "recurrent_update": st.booleans(),
        "bias": st.booleans(),
        "activation": st.sampled_from(["bound", "tanh"]),
    }
)
few = settings(max_examples=25, deadline=None)


def make(backend, **drawn):
    torch.manual_seed(0)
    layer = AssociativeLSTM(INPUT, backend=backend, dtype=torch.float64, **drawn)
    for parameter in layer.parameters():  # moduli on both sides of 1, and rounding errors that do not grow
        limit = 1.5 if parameter.dim() == 1 else 1.5 * parameter.shape[1] ** -0.5
        nn.init.uniform_(parameter, -limit, limit)
    return layer


def state_of(layer, batch):
    sequences = layer.num_layers * (2 if layer.bidirectional else 1)
    h_0 = torch.randn(sequences, batch, layer.read_size, dtype=torch.float64)
    return h_0, torch.randn(sequences, batch, layer.num_copies, layer.hidden_size, dtype=torch.float64)


def everything(layer, x, state=None):
    """Output, final h and c, and the cells of every step."""
    output, (h_n, c_n), cells = layer(x, state, return_cells=True)
    return output, h_n, c_n, cells


@each_backend
@few
@given(drawn=options, T=st.integers(2, 7), B=st.integers(1, 4), data=st.data())
def test_a_sequence_can_be_split_anywhere(backend, drawn, T, B, data):
    layer = make(backend, **drawn)
    x, state = torch.randn(T, B, INPUT, dtype=torch.float64), state_of(layer, B)
    cuts = sorted(data.draw(st.sets(st.integers(1, T - 1), min_size=1)))
    whole, limits = everything(layer, x, state), allowed(everything, layer, x, state)
    pieces, piece_cells = [], []
    for piece in x.tensor_split(cuts):
        output, state, cells = layer(piece, state, return_cells=True)
        pieces.append(output)
        piece_cells.append(cells)
    assert_close([torch.cat(pieces), *state, torch.cat(piece_cells, 1)], whole, limits)


@each_backend
@few
@given(drawn=options, T=st.integers(1, 6), B=st.integers(1, 5), bidirectional=st.booleans(), data=st.data())
def test_padding_changes_nothing(backend, drawn, T, B, bidirectional, data):
    """A packed batch gives what its items give one by one, gradients included, in the order it was given."""
    layer = make(backend, bidirectional=bidirectional, **drawn)
    lengths = data.draw(st.lists(st.integers(1, T), min_size=B, max_size=B))
    ordered = data.draw(st.booleans())
    if ordered:
        lengths.sort(reverse=True)
    items = [torch.randn(length, INPUT, dtype=torch.float64) for length in lengths]
    state = state_of(layer, B) if data.draw(st.booleans()) else None

    def one_by_one(layer, items, state):
        """What the items give, padded with zeros, and the gradients."""
        layer.zero_grad()
        results = []
        for b, item in enumerate(items):
            own = everything(layer, item, None if state is None else (state[0][:, b], state[1][:, b]))
            own[0].square().sum().add(own[1].sum() + own[2].sum()).backward()
            results.append(own)
        outputs, h_n, c_n, cells = zip(*results, strict=True)
        cells = pad_sequence([own.transpose(0, 1) for own in cells]).permute(2, 0, 1, 3, 4)
        gradients = [parameter.grad.clone() for parameter in layer.parameters()]
        return [pad_sequence(outputs), torch.stack(h_n, 1), torch.stack(c_n, 1), cells, *gradients]

    expected = one_by_one(layer, items, state)
    layer.zero_grad()
    packed, (h_n, c_n), cells = layer(pack_sequence(items, enforce_sorted=ordered), state, return_cells=True)
    output, output_lengths = pad_packed_sequence(packed)
    assert output_lengths.tolist() == lengths
    (output.square().sum() + h_n.sum() + c_n.sum()).backward()
    gradients = [parameter.grad for parameter in layer.parameters()]
    assert_close([output, h_n, c_n, cells, *gradients], expected, allowed(one_by_one, layer, items, state))
    for b, length in enumerate(lengths):
        assert cells[:, length:, b].eq(0).all()


@each_backend
@pytest.mark.parametrize("batch_first", [False, True])
def test_what_stands_in_the_padding_is_never_read(backend, batch_first):
    layer = make(backend, hidden_size=6, bidirectional=True, batch_first=batch_first)
    lengths = torch.tensor([2, 5, 3])
    x = torch.randn(3, 5, INPUT, dtype=torch.float64)
    spoilt = x.clone()
    for b, length in enumerate(lengths):
        spoilt[b, length:] = float("nan")
    if not batch_first:
        x, spoilt = x.transpose(0, 1), spoilt.transpose(0, 1)
    results = [
        layer(pack_padded_sequence(padded, lengths, batch_first=batch_first, enforce_sorted=False))
        for padded in (x, spoilt)
    ]
    assert torch.equal(results[0][0].data, results[1][0].data)
    for clean, other in zip(results[0][1], results[1][1], strict=True):
        assert torch.equal(clean, other)


@each_backend
def test_a_packed_sequence_comes_out_as_torch_lstm_gives_it(backend):
    layer, lstm = make(backend, hidden_size=6), nn.LSTM(INPUT, 6, dtype=torch.float64)
    packed = pack_padded_sequence(
        torch.randn(4, 3, INPUT, dtype=torch.float64), torch.tensor([1, 4, 2]), enforce_sorted=False
    )
    ours, theirs = layer(packed)[0], lstm(packed)[0]
    assert ours.data.shape == theirs.data.shape
    for field in ("batch_sizes", "sorted_indices", "unsorted_indices"):
        assert torch.equal(getattr(ours, field), getattr(theirs, field))
    sorted_pack = pack_padded_sequence(torch.randn(4, 2, INPUT, dtype=torch.float64), torch.tensor([4, 2]))
    assert layer(sorted_pack)[0].sorted_indices is None


@each_backend
@few
@given(drawn=options, T=st.integers(1, 5), B=st.integers(1, 9), bidirectional=st.booleans(), data=st.data())
def test_permuting_the_batch_permutes_the_output(backend, drawn, T, B, bidirectional, data):
    layer = make(backend, bidirectional=bidirectional, **drawn)
    x, (h_0, c_0) = torch.randn(T, B, INPUT, dtype=torch.float64), state_of(layer, B)
    order = torch.tensor(data.draw(st.permutations(range(B))))
    output, h_n, c_n, cells = everything(layer, x, (h_0, c_0))
    other = everything(layer, x[:, order], (h_0[:, order], c_0[:, order]))
    expected = output[:, order], h_n[:, order], c_n[:, order], cells[:, :, order]
    assert_close(other, expected, allowed(everything, layer, x, (h_0, c_0)))


@each_backend
def test_batch_first_swaps_input_output_and_cells_but_not_states(backend):
    layer, swapped = (
        make(backend, hidden_size=6, num_layers=2, num_copies=2, batch_first=first) for first in (False, True)
    )
    swapped.load_state_dict(layer.state_dict())
    x, state = torch.randn(4, 3, INPUT, dtype=torch.float64), state_of(layer, 3)
    output, end, cells = layer(x, state, return_cells=True)
    other, other_end, other_cells = swapped(x.transpose(0, 1), state, return_cells=True)
    assert torch.equal(other.transpose(0, 1), output)
    assert torch.equal(other_cells.transpose(1, 2), cells)
    assert all(torch.equal(a, b) for a, b in zip(end, other_end, strict=True))


@each_backend
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_single_sequence_without_a_batch(backend, batch_first):
    layer = make(
        backend, hidden_size=6, num_layers=2, num_copies=2, bidirectional=True, batch_first=batch_first
    )
    x, (h_0, c_0) = torch.randn(4, INPUT, dtype=torch.float64), state_of(layer, 1)
    batch = x[None] if batch_first else x[:, None]
    expected, (h_n, c_n), cells = layer(batch, (h_0, c_0), return_cells=True)
    output, (h_one, c_one), cells_one = layer(x, (h_0[:, 0], c_0[:, 0]), return_cells=True)
    assert torch.equal(output, expected[0] if batch_first else expected[:, 0])
    assert torch.equal(h_one, h_n[:, 0])
    assert torch.equal(c_one, c_n[:, 0])
    assert torch.equal(cells_one, cells[:, 0] if batch_first else cells[:, :, 0])


@each_backend
def test_both_directions_are_two_layers_one_of_them_flipped(backend):
    both = make(backend, hidden_size=6, num_copies=2, bidirectional=True)
    forward, backward = (make(backend, hidden_size=6, num_copies=2) for _ in range(2))
    for single, suffix in [(forward, "_l0"), (backward, "_l0_reverse")]:
        names = {name.replace("_l0", suffix): name for name in single.state_dict()}
        single.load_state_dict({own: both.state_dict()[theirs] for theirs, own in names.items()})
    x, (h_0, c_0) = torch.randn(5, 3, INPUT, dtype=torch.float64), state_of(both, 3)
    ahead, h_ahead, c_ahead, cells_ahead = everything(forward, x, (h_0[:1], c_0[:1]))
    back, h_back, c_back, cells_back = everything(backward, x.flip(0), (h_0[1:], c_0[1:]))
    expected = [
        torch.cat([ahead, back.flip(0)], -1),
        torch.cat([h_ahead, h_back]),
        torch.cat([c_ahead, c_back]),
        torch.cat([cells_ahead, cells_back.flip(1)]),
    ]
    assert_close(everything(both, x, (h_0, c_0)), expected, allowed(everything, both, x, (h_0, c_0)))


@each_backend
def test_layers_read_the_output_of_the_layer_below(backend):
    stack = make(backend, hidden_size=6, num_layers=2, num_heads=2)
    first = make(backend, hidden_size=6, num_heads=2)
    second = AssociativeLSTM(12, 6, num_heads=2, backend=backend, dtype=torch.float64)
    for single, k in [(first, 0), (second, 1)]:
        single.load_state_dict(
            {name: stack.state_dict()[name.replace("l0", f"l{k}")] for name in single.state_dict()}
        )
    x = torch.randn(5, 3, INPUT, dtype=torch.float64)
    output, (h_n, c_n) = stack(x)
    middle, (h_first, c_first) = first(x)
    top, (h_second, c_second) = second(middle)
    assert torch.equal(output, top)
    assert torch.equal(h_n, torch.cat([h_first, h_second]))
    assert torch.equal(c_n, torch.cat([c_first, c_second]))


@each_backend
def test_dropout_between_layers_in_training_only(backend):
    x = torch.randn(5, 3, INPUT, dtype=torch.float64)
    layer = make(backend, hidden_size=6, num_layers=2, dropout=0.5)
    plain = make(backend, hidden_size=6, num_layers=2)
    plain.load_state_dict(layer.state_dict())
    assert torch.equal(layer.eval()(x)[0], plain(x)[0])
    layer.train()
    torch.manual_seed(1)
    output, (h_n, _) = layer(x)
    assert torch.equal(h_n[0], plain(x)[1].h[0])  # nothing is dropped on the way into the first layer
    assert not torch.equal(output, plain(x)[0])
    assert torch.equal(output[-1], h_n[1])  # nor from the output of the last
    torch.manual_seed(1)
    assert torch.equal(layer(x)[0], output)
    assert not torch.equal(layer(x)[0], output)  # drawn anew at every call
    dropped = make(backend, hidden_size=6, num_layers=2, dropout=1.0)
    without_input = dropped(torch.zeros_like(x))[1]
    assert torch.equal(dropped(x)[1].h[1], without_input.h[1])


@each_backend
def test_dropout_acts_on_what_a_layer_gives_and_not_on_what_goes_around_it(backend, monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda x, share, training: (1 - share) * x)
    layer = make(backend, hidden_size=6, num_layers=3, residual=True, dropout=0.75)
    output, (h_n, _) = layer(torch.randn(5, 3, INPUT, dtype=torch.float64))
    torch.testing.assert_close(output[-1], h_n[2] + 0.25 * h_n[1] + 0.25 * h_n[0])


@each_backend
@pytest.mark.parametrize("bidirectional", [False, True])
def test_cells_of_every_step_end_in_the_final_state(backend, bidirectional):
    layer = make(backend, hidden_size=6, num_layers=2, num_copies=3, bidirectional=bidirectional)
    x = torch.randn(5, 3, INPUT, dtype=torch.float64)
    assert len(layer(x)) == 2
    output, (_, c_n), cells = layer(x, return_cells=True)
    assert cells.shape == (layer.num_layers * (1 + bidirectional), 5, 3, 3, 6)
    assert torch.equal(output, layer(x)[0])
    ahead = slice(None, None, 1 + bidirectional)
    assert torch.equal(cells[ahead, -1], c_n[ahead])
    if bidirectional:
        assert torch.equal(cells[1::2, 0], c_n[1::2])
    limits = allowed(everything, layer, x)[3:]
    for t in range(1, 6):
        assert_close([cells[0, t - 1]], [layer(x[:t])[1].c[0]], limits)


@each_backend
@pytest.mark.parametrize("learn_initial_state", [False, True])
def test_results_without_gradients_are_the_same(backend, learn_initial_state):
    layer = make(backend, hidden_size=18, num_layers=2, num_copies=2, learn_initial_state=learn_initial_state)
    x = torch.randn(9, 3, INPUT, dtype=torch.float64)
    expected, limits = everything(layer, x), allowed(everything, layer, x)
    with torch.no_grad():
        assert_close([layer(x)[0]], expected[:1], limits[:1])
        bare = everything(layer, x)
    assert_close(bare, expected, limits)
    assert not any(result.requires_grad for result in bare)


@each_backend
def test_a_call_changes_neither_its_arguments_nor_the_layer(backend):
    layer = make(backend, hidden_size=6, num_layers=2, num_copies=2)
    x, state = torch.randn(4, 3, INPUT, dtype=torch.float64), state_of(layer, 3)
    kept = [tensor.clone() for tensor in (x, *state, *layer.state_dict().values())]
    layer(x, state)[0].sum().backward()
    for before, after in zip(kept, (x, *state, *layer.state_dict().values()), strict=True):
        assert torch.equal(before, after)


@pytest.fixture
def away_from_the_kink(monkeypatch):
    """A gradient check goes to both sides of the unit circle, and not near it, where bound has a kink."""
    moduli = []

    def watched(function):
        def call(pair):
            moduli.append(pair.detach().unflatten(-1, (2, -1)).norm(dim=-2).flatten())
            return function(pair)

        return call

    for name, function in reference.ACTIVATIONS.items():
        monkeypatch.setitem(reference.ACTIVATIONS, name, watched(function))
    yield
    seen = torch.cat(moduli)
    assert (seen < 1).any()
    assert (seen > 1).any()
    assert (seen - 1).abs().min() > 1e-4


def functional(module, names, call):
    def run(*tensors):
        parameters = dict(zip(names, tensors, strict=False))
        return call(
            lambda *args: torch.func.functional_call(module, parameters, args), *tensors[len(names) :]
        )

    return run


each_activation_and_rotation = pytest.mark.parametrize(
    ("activation", "rotation"), [("bound", 0.0), ("tanh", 0.0), ("bound", 1.0)]
)


@pytest.mark.usefixtures("away_from_the_kink")
@each_activation_and_rotation
def test_first_and_second_derivatives_of_the_cell(activation, rotation):
    torch.manual_seed(0)
    options = {"activation": activation, "rotation": rotation, "dtype": torch.float64}
    cell = AssociativeLSTMCell(2, 4, num_copies=2, num_heads=2, **options)
    names = [name for name, _ in cell.named_parameters()]
    for parameter in cell.parameters():
        nn.init.uniform_(parameter, -1.5, 1.5)
    x, h, c = torch.randn(1, 2), torch.randn(1, 8), torch.randn(1, 2, 4)
    inputs = [t.double().requires_grad_() for t in (x, h, c)]
    run = functional(cell, names, lambda step, x, h, c: tuple(step(x, (h, c))))
    assert torch.autograd.gradcheck(run, (*cell.parameters(), *inputs))
    assert torch.autograd.gradgradcheck(run, (*cell.parameters(), *inputs), fast_mode=True)


@pytest.mark.usefixtures("away_from_the_kink")
@each_activation_and_rotation
def test_first_and_second_derivatives_of_the_layer(activation, rotation):
    options = {"activation": activation, "rotation": rotation}
    layer = make("reference", hidden_size=2, num_copies=2, bidirectional=True, **options)
    names = [name for name, _ in layer.named_parameters()]
    inputs = [
        t.requires_grad_() for t in (torch.randn(2, 1, INPUT, dtype=torch.float64), *state_of(layer, 1))
    ]

    def call(run, x, h_0, c_0):
        output, state = run(x, (h_0, c_0))
        return output, *state

    run = functional(layer, names, call)
    assert torch.autograd.gradcheck(run, (*layer.parameters(), *inputs))
    assert torch.autograd.gradgradcheck(run, (*layer.parameters(), *inputs), fast_mode=True)
