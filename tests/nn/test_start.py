"""The numbers that layer, cell and LSTM start from: the paper's, the fast ones, and each ingredient by itself."""

import copy
import math
import pickle

import pytest
import torch
from scipy import stats
from torch import nn

from associative_lstm import AssociativeLSTM, AssociativeLSTMCell
from associative_lstm import functional as F
from associative_lstm.nn import LSTM
from associative_lstm.nn.options import UPDATE_MODULUS
from associative_lstm.nn.start import context

FAST = {"key_init": "matched", "forget_bias": "mixed", "update_init": UPDATE_MODULUS}
PAPER = {"key_init": "glorot", "forget_bias": 0.0, "update_init": "glorot"}
each_kind = pytest.mark.parametrize("kind", [AssociativeLSTM, AssociativeLSTMCell])


def seeded(kind, *sizes, seed=0, **options):
    torch.manual_seed(seed)
    return kind(*sizes, **options)


def same_numbers(one, other):
    return all(map(torch.equal, one.state_dict().values(), other.state_dict().values()))


@pytest.mark.parametrize(("key_init", "forget_bias"), [("glorot", 0.0), ("conjugate", 1.0)])
def test_from_the_papers_start_a_seed_gives_these_numbers_in_this_order(key_init, forget_bias):
    """As since the first recorded run: a seed means the same layer for ever."""
    heads, N, half = 2, 8, 4
    layer = seeded(
        AssociativeLSTM, 3, N, 2, num_heads=heads, num_copies=3, recurrent_update=False,
        start="paper", key_init=key_init, forget_bias=forget_bias,
    )  # fmt: skip
    torch.manual_seed(0)
    for k in range(2):
        assert torch.equal(layer.get_buffer(f"permutations_l{k}"), F.random_permutations(3, half))
    blocks = [half] * (1 + 2 * heads) + [N] * 3 * heads
    for k, inputs in enumerate([3, heads * N]):
        weights = [[], []]
        for block, size in enumerate(blocks):
            weights[0].append(nn.init.xavier_uniform_(torch.empty(size, inputs)))
            if block < len(blocks) - heads:  # no update is recurrent here
                weights[1].append(nn.init.xavier_uniform_(torch.empty(size, heads * N)))
        assert torch.equal(layer.get_parameter(f"weight_ih_l{k}"), torch.cat(weights[0]))
        assert torch.equal(layer.get_parameter(f"weight_hh_l{k}"), torch.cat(weights[1]))
        gates = [torch.full((half,), forget_bias), torch.zeros(2 * heads * half)]
        keys = [torch.zeros(heads * N)] * 2
        if key_init == "conjugate":
            r = F.random_key(N, heads)
            keys = [r.flatten(), F.conjugate(r).flatten()]
        expected = torch.cat([*gates, *keys, torch.zeros(heads * N)])
        assert torch.equal(layer.get_parameter(f"bias_l{k}"), expected)


@each_kind
def test_a_start_is_its_ingredients_and_each_can_be_chosen_otherwise(kind):
    assert same_numbers(seeded(kind, 3, 8), seeded(kind, 3, 8, start="paper", **FAST))
    assert same_numbers(seeded(kind, 3, 8, start="paper"), seeded(kind, 3, 8, **PAPER))
    for start, choices, others in (("fast", FAST, PAPER), ("paper", PAPER, FAST)):
        for name, other in others.items():
            module = seeded(kind, 3, 8, start=start, **{name: other})
            assert same_numbers(module, seeded(kind, 3, 8, start="paper", **(choices | {name: other})))
            assert getattr(module, name) == other
            assert not same_numbers(module, seeded(kind, 3, 8, start=start))


@each_kind
def test_a_start_changes_no_equation_and_no_name(kind):
    fast, paper = kind(3, 8, num_copies=2), kind(3, 8, num_copies=2, start="paper")
    fast.load_state_dict(paper.state_dict())
    x = torch.randn(*((5, 2, 3) if kind is AssociativeLSTM else (2, 3)))
    assert torch.equal(fast(x)[0], paper(x)[0])
    assert all(map(torch.equal, fast(x)[1], paper(x)[1]))


@each_kind
def test_it_says_what_it_started_from(kind):
    name = kind.__name__
    assert repr(kind(3, 4)) == f"{name}(3, 4)"
    assert repr(kind(3, 4, **FAST)) == f"{name}(3, 4)"
    assert repr(kind(3, 4, bias=False)) == f"{name}(3, 4, bias=False)"
    assert repr(kind(3, 4, start="paper", **PAPER)) == f"{name}(3, 4, start='paper')"
    module = kind(3, 4, key_init="glorot", forget_bias=1.0, update_init=0.5, horizon=30)
    text = "3, 4, key_init='glorot', forget_bias=1.0, update_init=0.5, horizon=30"
    for same in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert repr(same) == f"{name}({text})"
        assert (same.start, same.key_init, same.forget_bias) == ("fast", "glorot", 1.0)
        assert (same.update_init, same.horizon) == (0.5, 30)


@each_kind
def test_matched_keys_write_and_read_alike_after_the_same_history(kind):
    size, heads = 8, 3
    module = seeded(kind, 3, size, num_heads=heads, start="paper", key_init="matched", dtype=torch.float64)
    end = "_l0" if kind is AssociativeLSTM else ""
    weight, bias = module.get_parameter(f"weight_hh{end}"), module.get_parameter(f"bias{end}")
    h = torch.randn(heads * size, dtype=torch.float64)

    def key(rows):
        return (weight[rows] @ h + bias[rows]).unflatten(0, (heads, size))

    written, read = key(module.rows.input_key), key(module.rows.output_key)
    torch.testing.assert_close(read, F.conjugate(written))
    plain = seeded(kind, 3, size, num_heads=heads, start="paper", key_init="conjugate", dtype=torch.float64)
    other = plain.get_parameter(f"weight_hh{end}")
    rows = module.rows.input_key
    torch.testing.assert_close(weight[rows], context(1, heads) * other[rows])
    assert torch.equal(weight[: rows.start], other[: rows.start])
    assert [context(1, 1), context(4, 1), context(4, 3)] == [1.5, 2.0, 1.0]


def log_uniform_p(logarithms, horizon):
    """The probability of numbers as far off or farther, if they are logarithms of uniform times from 1 to horizon."""
    times = logarithms.detach().exp().flatten().numpy()
    return stats.kstest(times, stats.uniform(1, horizon - 1).cdf).pvalue


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("horizon", [2, 120])
def test_forget_gates_keep_for_times_up_to_the_horizon(heads, horizon):
    options = {"num_heads": heads, "horizon": horizon, "start": "paper", "dtype": torch.float64}
    for forget_bias in ("mixed", "chrono"):
        layer = seeded(AssociativeLSTM, 3, 800, bidirectional=True, forget_bias=forget_bias, **options)
        biases = torch.stack([layer.bias_l0, layer.bias_l0_reverse])
        forget, inputs = biases[:, layer.rows.forget], biases[:, layer.rows.input]
        if forget_bias == "mixed":
            assert forget[:, :200].eq(1).all()
            assert inputs.eq(0).all()
            forget = forget[:, 200:]
        else:
            assert torch.equal(inputs, -forget.repeat(1, heads))
        assert log_uniform_p(forget, horizon) > 0.01
        assert log_uniform_p(forget, 1.2 * horizon) < 1e-3  # so it would tell
        assert not torch.equal(forget[0], forget[1])
        assert biases[:, layer.rows.output.start :].eq(0).all()


@pytest.mark.parametrize("heads", [1, 2])
def test_a_one_hot_input_is_written_as_a_random_code(heads):
    layer = seeded(AssociativeLSTM, 10, 128, num_heads=heads, update_init=0.3, dtype=torch.float64)
    codes = layer.weight_ih_l0[layer.rows.update].T.reshape(10, heads, 128).detach()
    torch.testing.assert_close(F.modulus(codes), torch.full((10, heads, 64), 0.3, dtype=torch.float64))
    phases = torch.atan2(codes[..., 64:], codes[..., :64]).flatten().numpy()
    assert stats.kstest(phases, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 0.01


@pytest.mark.parametrize(("bidirectional", "gain"), [(False, 4.0), (True, 2.0)])
def test_an_upper_layers_update_is_what_it_reads(bidirectional, gain):
    """The mean of both directions, times 4; in a stack, and in a layer by itself that is told so."""
    options = {"num_heads": 3, "bidirectional": bidirectional}
    stack = AssociativeLSTM(10, 8, 2, **options)
    above = AssociativeLSTM(stack.output_size, 8, update_init="pass", **options)
    expected = gain * torch.eye(24).repeat(1, 2 if bidirectional else 1)
    assert torch.equal(stack.weight_ih_l1[stack.rows.update], expected)
    assert torch.equal(above.weight_ih_l0[above.rows.update], expected)
    assert stack.bias_l1[stack.rows.forget].eq(0).all()  # "mixed" is for the first


def test_an_upper_layer_passes_on_what_it_reads():
    """As long as nothing is cut by the bound: u is at most 1/10 here."""
    options = {"num_copies": 2, "dtype": torch.float64}
    stack = seeded(AssociativeLSTM, 10, 16, 3, update_init=0.1, **options)
    first = AssociativeLSTM(10, 16, **options)
    with torch.no_grad():
        for k in (1, 2):  # but for the gates and keys, which have weights of their own
            stack.get_parameter(f"weight_ih_l{k}")[: stack.rows.update.start] = 0
    first.load_state_dict({name: value for name, value in stack.state_dict().items() if name.endswith("_l0")})
    x = torch.eye(10, dtype=torch.float64)[:1]  # the first step of a sequence: nothing is kept from before
    torch.testing.assert_close(stack(x)[0], first(x)[0])


def signal_and_gradients(layer, x):
    """The deviation of what the last layer gives, and how long the gradients of each layer's weights are."""
    output, _ = layer(x)
    (output * torch.randn_like(output)).mean().backward()
    lengths = [
        layer.get_parameter(f"{name}_l{k}").grad.norm().item()
        for k in range(layer.num_layers)
        for name in ("weight_ih", "weight_hh", "bias")
    ]
    return output.std().item(), lengths


@pytest.mark.parametrize("update_init", [None, 0.3, "glorot"])
@pytest.mark.parametrize("copies", [1, 4])
def test_in_a_stack_of_four_neither_signal_nor_gradient_fades(copies, update_init):
    x = torch.eye(80)[torch.randint(80, (50, 4))]
    layer = seeded(AssociativeLSTM, 80, 128, 4, num_copies=copies, update_init=update_init)
    deviation, lengths = signal_and_gradients(layer, x)
    assert 0.01 < deviation < 0.7
    assert max(lengths) < 100 * min(lengths)
    deviation, lengths = signal_and_gradients(AssociativeLSTM(80, 128, 4, start="paper"), x)
    assert deviation == max(lengths) == 0  # so it would tell


@pytest.mark.parametrize("options", [{}, {"num_heads": 3}, {"recurrent_update": False}])
@pytest.mark.parametrize("width", [1, 10, 300])
def test_dense_inputs_start_with_a_signal_and_gradients_everywhere(width, options):
    layer = seeded(AssociativeLSTM, width, 64, **options)
    x = torch.randn(50, 4, width)
    deviation, lengths = signal_and_gradients(layer, x)
    assert 0.05 < deviation < 0.7
    assert max(lengths) < 100 * min(lengths)
    for block in layer.rows:
        assert layer.weight_ih_l0.grad[block].abs().max() > 1e-6


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("recurrent_update", [False, True])
@pytest.mark.parametrize(
    ("heads", "copies"), [(1, 1), (1, 2), (1, 4), (1, 16), (2, 4), (3, 1), (3, 4), (3, 8)]
)
def test_small_differences_do_not_grow_from_step_to_step(heads, copies, recurrent_update, dense):
    """Twice as much of h in matched keys, and with three heads and one copy they grow ten thousandfold."""
    options = {"num_heads": heads, "num_copies": copies, "recurrent_update": recurrent_update}
    layer = seeded(AssociativeLSTM, 80, 128, **options)
    x = torch.randn(100, 4, 80) if dense else torch.eye(80)[torch.randint(80, (100, 4))]
    state = torch.zeros(1, 4, layer.read_size), torch.zeros(1, 4, copies, 128)
    nearly = state[0] + 1e-4 * torch.randn_like(state[0]), state[1]
    with torch.no_grad():
        difference = (layer(x, nearly)[0] - layer(x, state)[0]).flatten(1).norm(dim=1)
    assert 0 < difference[-1] < 20 * difference[0]


@each_kind
def test_without_biases_the_fast_start_leaves_out_what_needs_them(kind):
    module = seeded(kind, 3, 8, bias=False)
    assert (module.key_init, module.forget_bias, module.update_init) == ("glorot", 0.0, UPDATE_MODULUS)
    weight = dict(module.named_parameters())["weight_ih" if kind is AssociativeLSTMCell else "weight_ih_l0"]
    modulus = F.modulus(weight[module.rows.update].T.detach())
    torch.testing.assert_close(modulus, torch.full_like(modulus, UPDATE_MODULUS))


def test_the_lstms_chrono_biases():
    net = seeded(LSTM, 3, 500, 2, forget_bias="chrono", horizon=50, dtype=torch.float64)
    for bias in (net.bias_l0, net.bias_l1):
        i, f, u, o = bias.chunk(4)
        assert log_uniform_p(f, 50) > 0.01
        assert log_uniform_p(f, 60) < 1e-3
        assert torch.equal(i, -f)
        assert u.eq(0).all()
        assert o.eq(0).all()
    assert same_numbers(seeded(LSTM, 3, 5), seeded(LSTM, 3, 5, horizon=7))
