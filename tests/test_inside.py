"""Inside a network: what is shown of it is what the layer computes, and the parts of a read are the read."""

import math

import pytest
import torch
import twin
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from associative_lstm import AssociativeLSTM, inside
from associative_lstm import functional as F
from associative_lstm.nn import LSTM

T, B, INPUT, N = 9, 3, 5, 6
EXACT = 1e-10

KINDS = [
    {},
    {"num_copies": 4},
    {"num_copies": 4, "num_heads": 3},
    {"num_copies": 2, "activation": "tanh"},
    {"num_copies": 2, "recurrent_update": False},
    {"bias": False},
    {"num_copies": 3, "num_layers": 2},
    {"num_copies": 3, "bidirectional": True},
    {"num_copies": 2, "num_heads": 2, "num_layers": 2, "bidirectional": True, "activation": "tanh"},
    {"num_copies": 2, "learn_initial_state": True},
    {"num_copies": 3, "permutation": "shift"},
    {"num_copies": 3, "num_heads": 2, "rotation": 0.7},
    {"num_copies": 2, "num_layers": 2, "bidirectional": True, "rotation": 1.0},
    {"num_copies": 2, "num_layers": 2, "dropout": 0.5},
    {"num_copies": 2, "num_layers": 3, "residual": True},
    {"num_copies": 2, "num_heads": 2, "num_layers": 2, "bidirectional": True, "residual": True},
]
every_kind = pytest.mark.parametrize("options", KINDS, ids=str)


def made(batch_first=False, **options):
    """A layer with moduli on both sides of 1, an input, and a state."""
    torch.manual_seed(0)
    layer = AssociativeLSTM(
        INPUT, N, batch_first=batch_first, dtype=torch.float64, backend="reference", **options
    )
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(T, B, INPUT, dtype=torch.float64)
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    h_0 = torch.randn(count, B, layer.num_heads * N, dtype=torch.float64)
    c_0 = torch.randn(count, B, layer.num_copies, N, dtype=torch.float64)
    return layer, x, (h_0, c_0)


def close(a, b, limit=EXACT):
    a, b = a.detach().double(), b.detach().double()
    assert a.shape == b.shape
    assert (a - b).abs().max().item() <= limit


def output_of(seen, layer):
    """The layer's output from what was seen of it."""
    directions = 2 if layer.bidirectional else 1
    h = [one.h.flatten(-2) for one in seen]
    outputs = [torch.cat(h[k : k + directions], -1) for k in range(0, len(h), directions)]
    return torch.stack(outputs).sum(0) if layer.residual else outputs[-1]


@every_kind
def test_what_is_seen_is_what_the_layer_computes(options):
    layer, x, state = made(**options)
    for given in (None, state):
        seen = inside.look(layer, x, given)
        output, _, cells = layer.eval()(x, given, return_cells=True)
        close(output_of(seen, layer), output)
        close(torch.stack([one.c for one in seen]), cells)
        for one in seen:
            bound = F.bound_tanh if layer.activation == "tanh" else F.bound
            close(one.h, one.g_o.repeat(1, 1, 1, 2) * bound(one.q))


def test_the_letters_are_those_of_the_equations():
    """One step by the independent twin, which shares no code, from what was seen of the step before."""
    layer, x, (h_0, c_0) = made(num_copies=4, num_heads=3)
    [seen] = inside.look(layer, x, (h_0, c_0))
    t, b = 4, 1
    h, c = seen.h[t - 1, b].flatten(), twin.to_complex(seen.c[t - 1, b])
    z = layer.weight_ih_l0 @ x[t, b] + layer.weight_hh_l0 @ h + layer.bias_l0
    rows = layer.rows
    per_head = {"g_i": rows.input, "g_o": rows.output}
    for name, block in per_head.items():
        close(getattr(seen, name)[t, b], torch.sigmoid(z[block]).view(3, N // 2))
    close(seen.g_f[t, b], torch.sigmoid(z[rows.forget]))
    for name, block in {"r_i": rows.input_key, "r_o": rows.output_key, "u": rows.update}.items():
        theirs = twin.to_pair(twin.bound(twin.to_complex(z[block].detach().view(3, N))))
        close(getattr(seen, name)[t, b], torch.from_numpy(theirs))
    arrays = {name[:-3]: value.detach().numpy() for name, value in layer.named_parameters()}
    h_t, c_t = twin.associative_lstm_step(
        arrays, x[t, b].numpy(), h.numpy(), c, layer.permutations_l0.numpy(), 3, True, "bound"
    )
    close(seen.h[t, b].flatten(), torch.from_numpy(h_t))
    close(seen.c[t, b], torch.from_numpy(twin.to_pair(c_t)))


def parts_by_definition(layer, seen, c_0, t, b):
    """The parts of one read as the sum over copies says it, in plain loops of complex numbers."""
    permutations = layer.permutations_l0.numpy()
    g_f = seen.g_f[:, b].numpy()
    r_i, r_o, u, start = (
        twin.to_complex(tensor) for tensor in (seen.r_i[:, b], seen.r_o[:, b], seen.u[:, b], c_0[b])
    )
    g_i = seen.g_i[:, b].numpy()
    parts, initial = {}, {}
    for head in range(layer.num_heads):
        keys = [twin.permute(P_s, r_o[t, head]) for P_s in permutations]
        initial[head] = sum(key * g_f[: t + 1].prod(0) * c for key, c in zip(keys, start, strict=True))
        initial[head] = initial[head] / len(keys)
        for k in range(t + 1):
            for writer in range(layer.num_heads):
                written = g_f[k + 1 : t + 1].prod(0) * g_i[k, writer] * u[k, writer]
                both = [
                    key * twin.permute(P_s, r_i[k, writer])
                    for key, P_s in zip(keys, permutations, strict=True)
                ]
                parts[head, k, writer] = sum(both) / len(both) * written
    return parts, initial


@pytest.mark.parametrize("options", [{}, {"num_copies": 4, "num_heads": 3}], ids=str)
def test_every_share_is_the_projection_of_its_part(options):
    layer, x, state = made(**options)
    [seen] = inside.look(layer, x, state)
    [shares] = inside.recall(layer, x, state)
    for t, b in [(0, 0), (5, 2), (T - 1, 1)]:
        parts, initial = parts_by_definition(layer, seen, state[1][0], t, b)
        for head in range(layer.num_heads):
            q = twin.to_complex(seen.q[t, b, head])
            of_read = [part for (reader, _, _), part in parts.items() if reader == head]
            assert abs(sum(of_read) + initial[head] - q).max() < EXACT
            square = (abs(q) ** 2).sum()
            close(shares.initial[t, b, head], torch.tensor((q.conj() * initial[head]).sum().real / square))
            for k in range(T):
                for writer in range(layer.num_heads):
                    part = parts.get((head, k, writer), 0 * q)
                    expected = (q.conj() * part).sum().real / square
                    close(shares.writes[t, b, head, k, writer], torch.tensor(expected))


@every_kind
def test_the_shares_of_a_read_add_up_to_one(options):
    layer, x, state = made(**options)
    for given in (None, state):
        for shares in inside.recall(layer, x, given):
            total = shares.writes.sum((-2, -1)) + shares.initial
            close(total, torch.ones_like(total))


def test_nothing_is_recalled_from_later_steps():
    layer, x, _ = made(num_copies=3, bidirectional=True)
    forward, backward = inside.recall(layer, x)
    for t in range(T):
        assert (forward.writes[t, :, :, t + 1 :] == 0).all()
        assert (forward.writes[t, :, :, : t + 1] != 0).all()
        assert (backward.writes[t, :, :, :t] == 0).all()
        assert (backward.writes[t, :, :, t:] != 0).all()


class Model(nn.Module):
    """What `attribute` asks for: layers and a readout."""

    def __init__(self, *layers, symbols=4, residual=False):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.residual = residual
        width = layers[-1].num_heads * N * (2 if layers[-1].bidirectional else 1)
        self.readout = nn.Linear(width, symbols).double()

    def forward(self, x, state=None):
        for k, layer in enumerate(self.layers):
            y, _ = layer(x, None if state is None else state[k])
            x = x + y if self.residual and k else y
        return self.readout(x)


@every_kind
def test_the_parts_of_a_logit_add_up_to_it(options):
    layer, x, state = made(**options)
    model = Model(layer).eval()
    for given in (None, (state,)):
        logits = model(x, given) / math.log(2)
        for symbol in range(3):
            close(inside.attribute(model, x, symbol, given).total, logits[..., symbol])
        said = logits.argmax(-1)
        close(inside.attribute(model, x, said, given).total, logits.max(-1).values)
        odds = inside.attribute(model, x, 1, given, against=2).total
        close(odds, logits[..., 1] - logits[..., 2])
        above = inside.attribute(model, x, 1, given, against="mean").total
        close(above, logits[..., 1] - logits.mean(-1))


def test_a_logits_part_is_what_the_readout_makes_of_the_reads_part():
    layer, x, _ = made(num_copies=4, num_heads=2)
    model = Model(layer)
    [seen] = inside.look(layer, x)
    t, b, symbol = 6, 1, 2
    parts, _ = parts_by_definition(layer, seen, torch.zeros(B, 4, N), t, b)
    attributed = inside.attribute(model, x, symbol)
    rows = twin.to_complex(model.readout.weight[symbol].detach().view(2, N))
    for (head, k, writer), part in parts.items():
        q = twin.to_complex(seen.q[t, b, head])
        h = seen.g_o[t, b, head].numpy() * part / abs(q).clip(1)
        expected = (rows[head].real * h.real + rows[head].imag * h.imag).sum() / math.log(2)
        close(attributed.writes[t, b, head, k, writer], torch.tensor(expected))


def test_other_networks_may_stand_below_and_symbols_are_one_hot():
    top, _, _ = made(num_copies=2)
    model = Model(LSTM(4, INPUT).double(), top)
    symbols = torch.randint(4, (T, B))
    logits = model(nn.functional.one_hot(symbols, 4).double()) / math.log(2)
    close(inside.attribute(model, symbols, 3).total, logits[..., 3])
    close(inside.attribute(model, symbols[:, :1], 3).total, logits[:, :1, 3])
    states = (
        (torch.randn(1, B, INPUT).double(), torch.randn(1, B, INPUT).double()),
        (torch.randn(1, B, N).double(), torch.randn(1, B, 2, N).double()),
    )
    logits = model(nn.functional.one_hot(symbols, 4).double(), states) / math.log(2)
    close(inside.attribute(model, symbols, 3, states).total, logits[..., 3])


@pytest.mark.parametrize("residual", [False, True])
def test_a_logit_takes_what_comes_around_the_last_layer(residual):
    layers = [AssociativeLSTM(INPUT if k == 0 else N, N, 2, residual=residual).double() for k in range(3)]
    model = Model(*layers, residual=True)
    x = torch.randn(T, B, INPUT, dtype=torch.float64)
    logits = model(x) / math.log(2)
    close(inside.attribute(model, x, 2).total, logits[..., 2])
    odds = inside.attribute(model, x, 2, reads=[5, 3], against="mean").total
    close(odds, (logits[..., 2] - logits.mean(-1))[[5, 3]])
    packed = pack_padded_sequence(x[:, :2], torch.tensor([4, T]), enforce_sorted=False)
    close(inside.attribute(model, packed, 2).total[:4, 0], logits[:4, 0, 2])


@pytest.mark.parametrize("bidirectional", [False, True])
def test_signal_and_interference_add_up_to_the_read(bidirectional):
    layer, x, state = made(num_copies=4, num_heads=2, bidirectional=bidirectional)
    meant = torch.randint(T, (T, B))
    seen, splits = inside.look(layer, x, state), inside.separate(layer, x, meant, state)
    shares = inside.recall(layer, x, state)
    for one, split, share in zip(seen, splits, shares, strict=True):
        close(split.signal + split.interference, one.q)
        projected = (split.signal * one.q).sum(-1) / one.q.square().sum(-1)
        index = meant[:, :, None, None, None].expand(T, B, 2, 1, 2)
        close(projected, share.writes.gather(3, index).sum((-2, -1)))


@pytest.mark.parametrize("options", [{"num_copies": 2}, {"num_heads": 2, "bidirectional": True}], ids=str)
def test_a_packed_item_is_as_if_it_were_alone(options):
    layer, x, state = made(num_layers=2, **options)
    lengths = torch.tensor([4, T, 6])
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    model = Model(layer)
    seen, shares = inside.look(layer, packed, state), inside.recall(layer, packed, state)
    attributed = inside.attribute(model, packed, 1, (state,))
    close(output_of(seen, layer), pad_packed_sequence(layer(packed, state)[0])[0])
    for b, length in enumerate(lengths.tolist()):
        alone, start = x[:length, b], (state[0][:, b], state[1][:, b])
        for all_of, own in zip(seen, inside.look(layer, alone, start), strict=True):
            for tensor, expected in zip(all_of, own, strict=True):
                close(tensor[:length, b], expected)
                assert (tensor[length:, b] == 0).all()
        for all_of, own in zip(shares, inside.recall(layer, alone, start), strict=True):
            close(all_of.writes[:length, b, :, :length], own.writes)
            close(all_of.initial[:length, b], own.initial)
            assert (all_of.writes[length:, b] == 0).all()
            assert (all_of.writes[:, b, :, length:] == 0).all()
        own = inside.attribute(model, alone, 1, (start,))
        close(attributed.writes[:length, b, :, :length], own.writes)
        close(attributed.total[:length, b], own.total)


def test_time_and_batch_stand_where_they_stand_in_the_output():
    layer, x, state = made(num_copies=2, num_heads=2)
    first, _, _ = made(batch_first=True, num_copies=2, num_heads=2)
    [shares], [other] = inside.recall(layer, x, state), inside.recall(first, x.transpose(0, 1), state)
    close(shares.writes.transpose(0, 1), other.writes)
    [seen], [other] = inside.look(layer, x, state), inside.look(first, x.transpose(0, 1), state)
    close(seen.g_f.transpose(0, 1), other.g_f)
    symbols = torch.randint(4, (2, B))
    parts = inside.attribute(Model(layer), x, symbols, reads=[3, 5])
    torch.manual_seed(1)
    model, same = Model(layer), Model(first)
    same.readout = model.readout
    parts = inside.attribute(model, x, symbols, reads=[3, 5])
    close(parts.total.T, inside.attribute(same, x.transpose(0, 1), symbols.T, reads=[3, 5]).total)
    [single] = inside.recall(layer, x[:, 0], (state[0][:, 0], state[1][:, 0]))
    close(single.writes, shares.writes[:, 0])


def test_only_the_reads_that_are_asked_for():
    layer, x, state = made(num_copies=2, bidirectional=True)
    everything = inside.recall(layer, x, state)
    for reads, steps in [([7, 2, -1, 2], [7, 2, T - 1, 2]), (slice(3, 6), [3, 4, 5]), (4, [4]), ([], [])]:
        for some, all_of in zip(inside.recall(layer, x, state, reads), everything, strict=True):
            assert torch.equal(some.writes, all_of.writes[steps])
            assert torch.equal(some.initial, all_of.initial[steps])
    meant = torch.tensor([[0, 1, 2], [3, 4, 5]])
    for some in inside.separate(layer, x, meant, state, reads=[6, 8]):
        assert some.signal.shape == (2, B, 1, N)


def test_a_layer_of_single_precision_is_looked_at_in_double():
    layer, x, _ = made(num_copies=4)
    layer, x = layer.float(), x.float()
    [shares] = inside.recall(layer, x)
    assert shares.writes.dtype == torch.float64
    close(shares.writes.sum((-2, -1)), torch.ones(T, B, 1), 1e-12)
    [seen] = inside.look(layer, x)
    close(seen.h.flatten(2), layer(x)[0], 1e-4)  # as far as single precision goes
    assert not any(tensor.requires_grad for tensor in seen)


def test_a_memory_that_was_wiped_recalls_nothing_from_before():
    """A forget gate of exactly 0 or 1 is no trouble, nor is a read of nothing."""
    layer, x, state = made(num_copies=2)
    with torch.no_grad():
        layer.weight_ih_l0[layer.rows.forget] = 0
        layer.weight_hh_l0[layer.rows.forget] = 0
        layer.bias_l0[layer.rows.forget] = -1e4
    [shares] = inside.recall(layer, x, state)
    close(shares.writes[torch.arange(T), :, 0, torch.arange(T), 0], torch.ones(T, B))
    assert (shares.initial == 0).all()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
    [shares] = inside.recall(layer, x)
    assert (shares.writes == 0).all()
    assert (inside.attribute(Model(layer), x, 0).writes == 0).all()


def test_a_thousand_steps():
    """What is at work at a time is one read's parts, not those of all."""
    torch.manual_seed(0)
    layer = AssociativeLSTM(10, 128, num_copies=4)
    [shares] = inside.recall(layer, torch.randn(1000, 10))
    close(shares.writes.sum((-2, -1)), torch.ones(1000, 1))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda layer, x: inside.look(nn.LSTM(5, 6), x),
            TypeError,
            "layer: expected an AssociativeLSTM, got LSTM",
        ),
        (
            lambda layer, x: inside.look(layer, [1.0]),
            TypeError,
            "x: expected a tensor or a PackedSequence, got list",
        ),
        (lambda layer, x: inside.look(layer, x[0, 0]), ValueError, "x: expected 3 dimensions"),
        (
            lambda layer, x: inside.look(layer, x[..., :2]),
            ValueError,
            "x: expected a last dimension of input_size=5",
        ),
        (lambda layer, x: inside.look(layer, x[:0]), ValueError, "x: expected at least one time step"),
        (lambda layer, x: inside.look(layer, x, (x, x)), ValueError, "h_0: expected shape"),
        (
            lambda layer, x: inside.recall(layer, x, reads=[T]),
            ValueError,
            f"reads: expected steps of a sequence of {T}",
        ),
        (
            lambda layer, x: inside.attribute(layer, x, 0),
            TypeError,
            "model: expected `layers` and a linear `readout`",
        ),
        (
            lambda layer, x: inside.attribute(Model(layer), x, 4),
            ValueError,
            "symbol: expected numbers from 0 to 3",
        ),
        (
            lambda layer, x: inside.attribute(Model(layer), x, -1),
            ValueError,
            "symbol: expected numbers from 0 to 3",
        ),
        (
            lambda layer, x: inside.attribute(Model(layer), x, 0, against=9),
            ValueError,
            "symbol: expected numbers",
        ),
        (
            lambda layer, x: inside.attribute(Model(layer), x, 0, against="all"),
            ValueError,
            "against: expected a symbol",
        ),
        (
            lambda layer, x: inside.attribute(Model(layer), x, torch.zeros(2, 2).long()),
            ValueError,
            "expected whole numbers of shape",
        ),
        (
            lambda layer, x: inside.separate(layer, x, torch.full((T, B), T)),
            ValueError,
            f"meant: expected steps from 0 to {T - 1}",
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence(call, error, sentence):
    layer, x, _ = made()
    with pytest.raises(error) as raised:
        call(layer, x)
    assert sentence in str(raised.value)
