import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from associative_lstm.kernels.ntm import fused, loops
from associative_lstm.nn import NeuralTuringMachine, NTMState
from closeness import allowed, assert_close
from threads import with_any_number_of_threads


def make(*sizes, seed=0, scale=0.5, **options):
    torch.manual_seed(seed)
    net = NeuralTuringMachine(*sizes, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(scale * torch.randn_like(parameter))
    return net


def draw_state(net, B):
    shapes = net._state_shapes()
    *parts, weights = (torch.randn(B, *shape, dtype=torch.float64) for shape in shapes.values())
    return NTMState(*parts, torch.softmax(weights, dim=-1))


def numpy_sequence(net, x, state):
    """One sequence, one head and one location at a time, with powers as powers and a loop over the shifts."""
    value = {name: tensor.detach().numpy() for name, tensor in net.state_dict().items()}
    heads, (N, W) = net.num_heads, net.memory_size
    h, c, reads, M, w = (part.numpy().copy() for part in state)

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    def softmax(v):
        return np.exp(v) / np.exp(v).sum()

    outputs = []
    for x_t in x:
        recurrent = np.concatenate([h, reads.ravel()])
        i, f, u, o = np.split(value["weight_ih"] @ x_t + value["weight_hh"] @ recurrent + value["bias"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(u)
        h = sigmoid(o) * np.tanh(c)
        p = value["weight_heads"] @ h + value["bias_heads"]
        places, vectors = np.split(p, [2 * heads * (W + 6)])
        places, (erase, add) = places.reshape(2 * heads, W + 6), vectors.reshape(2, heads, W)
        new_w, new_M = np.empty_like(w), M.copy()
        for k in range(2 * heads):
            key, beta, gate = (
                np.tanh(places[k, :W]),
                np.log1p(np.exp(places[k, W])),
                sigmoid(places[k, W + 1]),
            )
            shift, gamma = softmax(places[k, W + 2 : W + 5]), 1 + np.log1p(np.exp(places[k, W + 5]))
            lengths = np.sqrt((M**2).sum(1) + 1e-8)
            content = softmax(beta * (M @ key) / (lengths * np.sqrt(key @ key + 1e-8)))
            gated = gate * content + (1 - gate) * w[k]
            shifted = np.zeros(N)
            for i in range(N):
                for j in (-1, 0, 1):
                    shifted[i] += shift[j + 1] * gated[(i - j) % N]
            new_w[k] = shifted**gamma / (shifted**gamma).sum()
        for k in range(heads):
            new_M *= 1 - np.outer(new_w[k], sigmoid(erase[k]))
        for k in range(heads):
            new_M += np.outer(new_w[k], np.tanh(add[k]))
        w, M = new_w, new_M
        reads = w[heads:] @ M
        outputs.append(np.concatenate([h, reads.ravel()]))
    return np.stack(outputs), (h, c, reads, M, w)


def output_and_state(net, x, start):
    output, end = net(x, start)
    return [output, *end]


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("sizes", [(3, 4, 1, (1, 1)), (3, 4, 1, (2, 5)), (5, 6, 3, (9, 4))])
def test_agrees_with_numpy(backend, sizes):
    net = make(*sizes, backend=backend)
    x = torch.randn(8, 2, net.input_size, dtype=torch.float64)
    start = draw_state(net, 2)
    output, end = net(x, start)
    limits = allowed(output_and_state, net, x, start)
    for b in range(2):
        expected, state = numpy_sequence(net, x[:, b].numpy(), [part[b] for part in start])
        assert_close([output[:, b], *(part[b] for part in end)], [expected, *state], limits)


def run(net, x, start):
    """Output, state and all gradients, of a cost that uses every one of them."""
    x, *start = (tensor.clone().requires_grad_() for tensor in (x, *start))
    results = output_and_state(net, x, NTMState(*start))
    cost = sum((r * torch.cos(torch.arange(r.numel(), dtype=r.dtype)).view_as(r)).sum() for r in results)
    return [*results, *torch.autograd.grad(cost, [x, *start, *net.parameters()])]


@settings(max_examples=25, deadline=None)
@given(
    T=st.integers(1, 12),
    B=st.integers(1, 4),
    hidden_size=st.integers(1, 9),
    heads=st.integers(1, 4),
    memory_size=st.tuples(st.integers(1, 11), st.integers(1, 9)),
    seed=st.integers(0, 99),
)
def test_fused_equals_reference(T, B, hidden_size, heads, memory_size, seed):
    net = make(3, hidden_size, heads, memory_size, seed=seed)
    x, start = torch.randn(T, B, 3, dtype=torch.float64), draw_state(net, B)
    for dtype in (torch.float64, torch.float32):
        net, x, start = net.to(dtype), x.to(dtype), NTMState(*(part.to(dtype) for part in start))
        net.backend = "reference"
        expected, limits = run(net, x, start), allowed(run, net, x, start)
        net.backend = "fused"
        assert_close(run(net, x, start), expected, limits)


def test_kernels_do_not_depend_on_the_number_of_threads(monkeypatch):
    net = make(5, 10, 2, (8, 6), backend="fused")
    calls = with_any_number_of_threads(monkeypatch, fused, "over_batch")
    run(net, torch.randn(8, 5, 5, dtype=torch.float64), draw_state(net, 5))
    assert calls == [loops.forward, loops.backward]


def test_fused_without_gradients_gives_the_same_numbers():
    net = make(5, 10, 2, (8, 6), backend="fused")
    x = torch.randn(8, 3, 5, dtype=torch.float64)
    output, state = net(x)
    with torch.no_grad():
        same, end = net(x)
    assert torch.equal(same, output)
    assert all(torch.equal(a, b) for a, b in zip(state, end, strict=True))


def test_weightings_stay_weightings():
    net = make(5, 10, 3, (16, 4), scale=3.0)
    _, state = net(torch.randn(200, 2, 5, dtype=torch.float64))
    assert (state.weights >= 0).all()
    torch.testing.assert_close(state.weights.sum(-1), torch.ones(2, 6, dtype=torch.float64))


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_large_weights_give_finite_gradients(backend, scale):
    torch.manual_seed(0)
    net = NeuralTuringMachine(5, 10, 3, (16, 4), backend=backend)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(scale * torch.randn_like(parameter))
    output, state = net(torch.randn(5, 2, 5))
    (output.sum() + state.memory.sum()).backward()
    assert output.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


@pytest.mark.parametrize("backend", ["reference", "fused"])
@pytest.mark.parametrize("value", [100.0, 1e30, -1e30])
def test_strength_and_sharpening_cannot_overflow(backend, value):
    torch.manual_seed(0)
    net = NeuralTuringMachine(5, 10, 3, (16, 4), backend=backend)
    with torch.no_grad():
        places = net.bias_heads[: 2 * 3 * (4 + 6)].unflatten(0, (6, -1))
        places[:, 4] = places[:, 9] = value
    output, state = net(torch.randn(50, 2, 5))
    (output.sum() + state.memory.sum()).backward()
    assert output.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


def test_heads_start_apart_on_an_empty_memory():
    state = NeuralTuringMachine(5, 6, 4, (128, 20)).initial_state(2)
    assert state.weights.argmax(-1).tolist() == [[0, 32, 64, 96] * 2] * 2
    assert (state.weights.sum(-1) == 1).all()
    assert not any(part.any() for part in state[:-1])


def test_a_learned_initial_state_starts_there_too():
    state = NeuralTuringMachine(5, 6, 4, (128, 20), learn_initial_state=True).initial_state(1)
    assert state.weights.argmax(-1).tolist() == [[0, 32, 64, 96] * 2]
    assert (state.weights.max(-1).values > 0.99).all()


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="num_heads"):
        NeuralTuringMachine(4, 8, 0)
    with pytest.raises(ValueError, match=r"memory_size\[1\]"):
        NeuralTuringMachine(4, 8, 1, (16, 0))
    with pytest.raises(TypeError, match="memory_size: expected two ints"):
        NeuralTuringMachine(4, 8, 1, 128)
    with pytest.raises(ValueError, match="backend"):
        NeuralTuringMachine(4, 8, backend="fast")
