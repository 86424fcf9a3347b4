"""The contract of the layer and the cell: names, shapes, order of rows, counts, initialisation, saving."""

import copy
import inspect

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from associative_lstm import AssociativeLSTM, AssociativeLSTMCell
from associative_lstm import functional as F
from closeness import allowed, assert_close

T, B, INPUT, N = 5, 3, 4, 6
each_backend = pytest.mark.parametrize("backend", ["reference", "fused"])


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


def drawn(module):
    """The module with all its parameters drawn anew, so that no zero hides a mistake."""
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -1, 1)
    return module


def results(layer, *inputs):
    output, (h_n, c_n) = layer(*inputs)
    return output, h_n, c_n


def test_signature():
    arguments = list(inspect.signature(AssociativeLSTM).parameters.values())
    like_lstm = {
        "input_size": inspect.Parameter.empty,
        "hidden_size": inspect.Parameter.empty,
        "num_layers": 1,
        "bias": True,
        "batch_first": False,
        "dropout": 0.0,
        "bidirectional": False,
    }
    keywords = {
        "residual": False,
        "num_copies": 1,
        "num_heads": 1,
        "recurrent_update": True,
        "activation": "bound",
        "start": "fast",
        "key_init": None,
        "forget_bias": None,
        "update_init": None,
        "horizon": 120,
        "permutation": "random",
        "rotation": 0.0,
        "backend": "auto",
        "device": None,
        "dtype": None,
    }
    positional = [a for a in arguments if a.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert {a.name: a.default for a in positional} == like_lstm
    assert [a.name for a in positional] == list(like_lstm)
    keyword_only = {a.name: a.default for a in arguments if a.kind is inspect.Parameter.KEYWORD_ONLY}
    assert keywords.items() <= keyword_only.items()


@each_backend
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize(("num_heads", "num_copies"), [(1, 1), (3, 4)])
def test_shapes_of_results(backend, bidirectional, num_layers, num_heads, num_copies):
    D = 2 if bidirectional else 1
    layer = AssociativeLSTM(
        INPUT,
        N,
        num_layers,
        bidirectional=bidirectional,
        num_heads=num_heads,
        num_copies=num_copies,
        backend=backend,
    )
    output, (h_n, c_n) = layer(torch.randn(T, B, INPUT))
    assert output.shape == (T, B, D * num_heads * N)
    assert h_n.shape == (D * num_layers, B, num_heads * N)
    assert c_n.shape == (D * num_layers, B, num_copies, N)
    assert layer.output_size == output.shape[-1]
    assert {tensor.dtype for tensor in (output, h_n, c_n)} == {torch.float32}


@pytest.mark.parametrize("recurrent_update", [True, False])
@pytest.mark.parametrize("num_heads", [1, 3])
def test_names_and_shapes_of_parameters_and_buffers(recurrent_update, num_heads):
    layer = AssociativeLSTM(
        INPUT,
        N,
        2,
        bidirectional=True,
        num_copies=5,
        num_heads=num_heads,
        recurrent_update=recurrent_update,
    )
    H, half = num_heads * N, N // 2
    rows = half + 2 * num_heads * half + 3 * num_heads * N
    rows_h = rows if recurrent_update else rows - num_heads * N
    expected = {}
    for k, inputs in enumerate([INPUT, 2 * H]):
        for direction in ("", "_reverse"):
            expected[f"weight_ih_l{k}{direction}"] = (rows, inputs)
            expected[f"weight_hh_l{k}{direction}"] = (rows_h, H)
            expected[f"bias_l{k}{direction}"] = (rows,)
    assert {name: tuple(p.shape) for name, p in layer.named_parameters()} == expected
    buffers = dict(layer.named_buffers())
    assert set(buffers) == {f"permutations_l{k}{d}" for k in range(2) for d in ("", "_reverse")}
    for permutations in buffers.values():
        assert permutations.dtype == torch.int64
        assert permutations.shape == (5, half)
        assert torch.equal(permutations.sort(-1).values, torch.arange(half).expand(5, half))


def test_no_bias_is_no_parameter():
    layer = AssociativeLSTM(INPUT, N, bias=False)
    assert {name for name, _ in layer.named_parameters()} == {"weight_ih_l0", "weight_hh_l0"}
    assert {name for name, _ in AssociativeLSTMCell(INPUT, N, bias=False).named_parameters()} == {
        "weight_ih",
        "weight_hh",
    }


@each_backend
def test_order_of_rows_and_what_each_block_does(backend):
    """The equations written out from the blocks of rows of the contract, for two heads and two copies."""
    torch.manual_seed(0)
    heads, half = 2, N // 2
    layer = drawn(
        AssociativeLSTM(
            INPUT,
            N,
            num_heads=heads,
            num_copies=2,
            recurrent_update=False,
            backend=backend,
            dtype=torch.float64,
        )
    )
    x = torch.randn(1, 1, INPUT, dtype=torch.float64)
    h_0 = torch.randn(1, 1, heads * N, dtype=torch.float64)
    c_0 = torch.randn(1, 1, 2, N, dtype=torch.float64)
    z = layer.weight_ih_l0 @ x[0, 0] + layer.bias_l0
    z = z + torch.cat([layer.weight_hh_l0 @ h_0[0, 0], torch.zeros(heads * N, dtype=torch.float64)])
    g_f, g_i, g_o, r_i, r_o, u = z.split([half, heads * half, heads * half, heads * N, heads * N, heads * N])
    g_f = g_f.sigmoid()
    g_i, g_o = g_i.sigmoid().view(heads, half), g_o.sigmoid().view(heads, half)

    def bounded(block):
        pair = block.view(heads, 2, half)  # [real half, imaginary half] per head
        number = torch.complex(pair[:, 0], pair[:, 1])
        return number / number.abs().clamp(min=1)

    r_i, r_o, u = bounded(r_i), bounded(r_o), bounded(u)
    traces, reads = [], torch.zeros(heads, half, dtype=torch.complex128)
    for s, permutation in enumerate(layer.permutations_l0):
        c = g_f * torch.complex(c_0[0, 0, s, :half], c_0[0, 0, s, half:])
        c = c + (r_i[:, permutation] * g_i * u).sum(0)
        reads = reads + r_o[:, permutation] * c / 2
        traces.append(torch.cat([c.real, c.imag]))
    h = g_o * reads / reads.abs().clamp(min=1)
    expected_h = torch.stack([h.real, h.imag], 1).flatten()
    output, (h_n, c_n) = layer(x, (h_0, c_0))
    expected = expected_h, expected_h, torch.stack(traces)
    assert_close([output[0, 0], h_n[0, 0], c_n[0, 0]], expected, allowed(results, layer, x, (h_0, c_0)))


def test_parameter_counts_of_the_tables():
    """Ours, and the paper's with the 2 (H + n) + 3 that nothing in it explains; H the width of the output."""
    copy_task = AssociativeLSTM(10, 128, recurrent_update=False, learn_initial_state=True)
    assert count(copy_task) + count(nn.Linear(128, 10)) == 65_226 == 65_505 - (2 * (128 + 10) + 3)
    arithmetic = AssociativeLSTM(80, 128)
    assert count(arithmetic) + count(nn.Linear(128, 80)) == 130_704 == 131_123 - (2 * (128 + 80) + 3)
    three_heads = AssociativeLSTM(80, 128, num_heads=3)
    assert count(three_heads) + count(nn.Linear(384, 80)) == 774_800 == 775_731 - (2 * (384 + 80) + 3)


@pytest.mark.parametrize("learn_initial_state", [False, True])
def test_copies_change_no_parameter_count(learn_initial_state):
    counts = {
        count(AssociativeLSTM(7, 10, 2, num_copies=copies, learn_initial_state=learn_initial_state))
        for copies in (1, 2, 8, 31)
    }
    assert len(counts) == 1


def test_cell_is_one_step_of_the_layer():
    torch.manual_seed(0)
    options = {"num_copies": 3, "num_heads": 2, "dtype": torch.float64}
    layer = drawn(AssociativeLSTM(INPUT, N, **options))
    cell = AssociativeLSTMCell(INPUT, N, **options)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x = torch.randn(T, B, INPUT, dtype=torch.float64)
    output, (h_n, c_n) = layer(x)
    limits = allowed(results, layer, torch.cat([x, x[:1]]))
    state = None
    for t in range(T):
        state = cell(x[t], state)
        assert_close([state.h], [output[t]], limits[:1])
    assert_close(state, [h_n[0], c_n[0]], limits[1:])
    single = cell(x[0, 1], (state.h[1], state.c[1]))
    together = cell(x[0], state)
    assert_close(single, [together.h[1], together.c[1]], limits[1:])


def test_weights_start_glorot_uniform_block_by_block_and_biases_at_zero():
    torch.manual_seed(0)
    heads, hidden = 2, 64
    layer = AssociativeLSTM(50, hidden, num_heads=heads, start="paper")
    half = hidden // 2
    blocks = [half] * (1 + 2 * heads) + [hidden] * 3 * heads
    for weight, fan_in in [(layer.weight_ih_l0, 50), (layer.weight_hh_l0, heads * hidden)]:
        for block in weight.split(blocks):
            limit = (6 / (fan_in + len(block))) ** 0.5
            assert block.abs().max() <= limit
            assert block.abs().max() > 0.99 * limit
            assert block.mean().abs() < 0.05 * limit
    assert layer.bias_l0.eq(0).all()


def test_forget_bias_is_where_the_forget_gate_starts_and_nothing_else():
    layer = AssociativeLSTM(INPUT, N, 2, bidirectional=True, start="paper", forget_bias=1.5)
    for suffix in ("l0", "l0_reverse", "l1", "l1_reverse"):
        bias = layer.get_parameter(f"bias_{suffix}")
        assert bias[: N // 2].eq(1.5).all()
        assert bias[N // 2 :].eq(0).all()


@pytest.mark.parametrize("num_heads", [1, 3])
def test_conjugate_keys_start_on_the_unit_circle(num_heads):
    torch.manual_seed(0)
    options = {"start": "paper", "key_init": "conjugate", "dtype": torch.float64}
    layer = AssociativeLSTM(INPUT, 64, num_heads=num_heads, **options)
    rows = layer.rows
    r_i, r_o = (layer.bias_l0[block].view(num_heads, 64) for block in (rows.input_key, rows.output_key))
    modulus = r_i.unflatten(-1, (2, -1)).norm(dim=-2)
    torch.testing.assert_close(modulus, torch.ones_like(modulus))
    assert torch.equal(r_o, F.conjugate(r_i))
    assert r_i.std() > 0.6  # phases all round the circle: the standard deviation of a cosine is 0.71
    others = torch.cat([layer.bias_l0[: rows.input_key.start], layer.bias_l0[rows.update]])
    assert others.eq(0).all()


@each_backend
@pytest.mark.parametrize("num_copies", [1, 4])
def test_conjugate_keys_make_the_layer_start_as_a_gated_sum(backend, num_copies):
    r"""Without weights but those of the update, :math:`h_t = g_o bound(\sum_k g_f^{t-k} g_i u_k)`: gates are 1/2."""
    torch.manual_seed(0)
    options = {"start": "paper", "key_init": "conjugate", "dtype": torch.float64}
    layer = AssociativeLSTM(INPUT, N, num_copies=num_copies, backend=backend, **options)
    with torch.no_grad():
        layer.weight_hh_l0.zero_()
        layer.weight_ih_l0[: layer.rows.update.start] = 0
    x = torch.randn(T, B, INPUT, dtype=torch.float64)
    output, limits = layer(x)[0], allowed(results, layer, x)[:1]
    u = F.bound(x @ layer.weight_ih_l0[layer.rows.update].T)
    total = torch.zeros(B, N, dtype=torch.float64)
    for t in range(T):
        total = 0.5 * total + 0.5 * u[t]
        assert_close([output[t]], [0.5 * F.bound(total)], limits)


def test_reset_parameters_draws_weights_and_permutations():
    layer = AssociativeLSTM(INPUT, 32, num_copies=3, learn_initial_state=True)
    weight, permutations = layer.weight_hh_l0.detach().clone(), layer.permutations_l0.clone()
    layer.reset_parameters()
    assert not torch.equal(layer.weight_hh_l0, weight)
    assert not torch.equal(layer.permutations_l0, permutations)


@each_backend
def test_learned_initial_state(backend):
    torch.manual_seed(0)
    layer = AssociativeLSTM(
        INPUT, N, 2, num_copies=3, learn_initial_state=True, backend=backend, dtype=torch.float64
    )
    x = torch.randn(T, B, INPUT, dtype=torch.float64)
    zeros = torch.zeros(2, B, N, dtype=torch.float64), torch.zeros(2, B, 3, N, dtype=torch.float64)
    assert torch.equal(layer(x)[0], layer(x, zeros)[0])  # where learning starts
    drawn(layer)
    h_0 = torch.stack([layer.h_0_l0, layer.h_0_l1])[:, None].expand(2, B, N)
    c_0 = torch.stack([layer.c_0_l0, layer.c_0_l1])[:, None, None].expand(2, B, 3, N)  # shared by the copies
    output, state = layer(x)
    explicit, explicit_state = layer(x, (h_0, c_0))
    assert torch.equal(output, explicit)
    assert all(torch.equal(a, b) for a, b in zip(state, explicit_state, strict=True))
    output.square().sum().backward()
    for name in ("h_0_l0", "h_0_l1", "c_0_l0", "c_0_l1"):
        assert layer.get_parameter(name).grad.abs().min() > 0


@each_backend
def test_permutations_are_saved_and_loaded_and_never_trained(backend, tmp_path):
    torch.manual_seed(0)
    options = {"num_copies": 4, "num_layers": 2, "backend": backend}
    one, other = AssociativeLSTM(INPUT, 16, **options), AssociativeLSTM(INPUT, 16, **options)
    x = torch.randn(T, B, INPUT)
    expected = one(x)[0]
    assert not torch.equal(one.permutations_l0, other.permutations_l0)
    torch.save(one.state_dict(), tmp_path / "layer.pt")
    other.load_state_dict(torch.load(tmp_path / "layer.pt", weights_only=True))
    assert torch.equal(one.permutations_l0, other.permutations_l0)
    assert torch.equal(one.permutations_l1, other.permutations_l1)
    assert torch.equal(other(x)[0], expected)
    assert "permutations_l0" not in dict(other.named_parameters())


@each_backend
def test_deepcopy(backend):
    layer = AssociativeLSTM(INPUT, N, num_copies=3, backend=backend)
    x = torch.randn(T, B, INPUT)
    twin = copy.deepcopy(layer)
    assert torch.equal(twin(x)[0], layer(x)[0])
    with torch.no_grad():
        twin.weight_ih_l0.zero_()
    assert not torch.equal(twin(x)[0], layer(x)[0])


@each_backend
def test_moving_to_another_type_keeps_permutations(backend):
    layer = AssociativeLSTM(INPUT, 16, num_copies=3, backend=backend)
    permutations = layer.permutations_l0.clone()
    x = torch.randn(T, B, INPUT)
    single, limits = layer(x)[0], allowed(results, layer, x)[:1]
    layer.to(torch.float64)
    assert layer.permutations_l0.dtype == torch.int64
    assert torch.equal(layer.permutations_l0, permutations)
    double = layer(x.double())[0]
    assert double.dtype == torch.float64
    assert_close([double], [single], limits)
    assert torch.equal(layer.float()(x)[0], single)


def test_half_precision_by_the_reference():
    layer = AssociativeLSTM(INPUT, N, num_copies=2, dtype=torch.bfloat16)
    output, (_, c_n) = layer(torch.randn(T, B, INPUT, dtype=torch.bfloat16))
    assert output.dtype == c_n.dtype == torch.bfloat16


def test_moves_through_the_meta_device():
    layer = AssociativeLSTM(INPUT, N, num_copies=2, device="meta")
    output, (h_n, c_n) = layer(torch.empty(T, B, INPUT, device="meta"))
    assert output.is_meta
    assert output.shape == (T, B, N)
    assert (h_n.shape, c_n.shape) == ((1, B, N), (1, B, 2, N))
    x = torch.empty(T, B, INPUT, device="meta")
    packed, _ = layer(PackedSequence(x.flatten(0, 1), torch.full((T,), B)))  # whose lengths are on the CPU
    assert packed.data.is_meta
    source = AssociativeLSTM(INPUT, N, num_copies=2)
    layer = layer.to_empty(device="cpu")
    layer.load_state_dict(source.state_dict())
    x = torch.randn(T, B, INPUT)
    assert torch.equal(layer(x)[0], source(x)[0])


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(AssociativeLSTM(3, 4)) == "AssociativeLSTM(3, 4)"
    text = repr(AssociativeLSTM(3, 4, 2, bias=False, num_copies=8, backend="reference"))
    assert text == "AssociativeLSTM(3, 4, num_layers=2, bias=False, num_copies=8, backend='reference')"
