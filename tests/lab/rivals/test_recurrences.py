"""The recurrences: in chunks the same as step by step, and step by step the published formula."""

import pytest
import torch

from associative_lstm.lab.rivals import deltanet, mamba2, mlstm

T, B, HEADS, SIZE = 10, 2, 3, 4


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def vectors():
    return draw(B, HEADS, T, SIZE)


def gates():
    return 2 * draw(B, HEADS, T)


def of_length_one(x):
    return torch.nn.functional.normalize(x, dim=-1)


def mlstm_inputs():
    memory = draw(B, HEADS, SIZE, SIZE), draw(B, HEADS, SIZE), draw(B, HEADS)
    return [vectors(), vectors(), vectors(), gates(), gates()], memory


def mamba2_inputs():
    both = draw(B, 1, T, SIZE), draw(B, 1, T, SIZE)  # shared by the heads
    return [*both, vectors(), -gates().abs()], draw(B, HEADS, SIZE, SIZE)


def deltanet_inputs():
    beta = gates().sigmoid()
    inputs = [vectors(), of_length_one(vectors()), vectors(), beta, torch.zeros(B, HEADS, T).double()]
    return inputs, draw(B, HEADS, SIZE, SIZE)


def gated_inputs():
    (q, k, v, beta, _), memory = deltanet_inputs()
    return [q, k, v, 2 * beta, -gates().abs()], memory


KINDS = {
    "mlstm": (mlstm, mlstm_inputs),
    "mamba2": (mamba2, mamba2_inputs),
    "deltanet": (deltanet, deltanet_inputs),
    "gated-deltanet": (deltanet, gated_inputs),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def results(run, inputs, state, weights, **how):
    """Output, last state, and the gradient of every input and of the state that was there before."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    state = torch.utils._pytree.tree_map(lambda x: x.clone().requires_grad_(), state)
    output, last = run(*inputs, state, **how)
    # What a sequence goes on to read is among it. The stabiliser's own history is cut, as nothing read depends on it.
    parts = torch.utils._pytree.tree_leaves(last)
    if len(parts) == 3:
        scale = parts[2].exp()
        parts = [parts[0] * scale[..., None, None], parts[1] * scale[..., None]]
    leaves = [x for x in [*inputs, *torch.utils._pytree.tree_leaves(state)] if x.dim() > 2]
    loss = (output * weights).sum() + sum((part**2).sum() for part in parts)
    return [output, *parts, *torch.autograd.grad(loss, leaves)]


@each_kind
@pytest.mark.parametrize("size", [1, 3, 5, 10, 64])
def test_chunks_of_any_size_are_the_steps_one_by_one(kind, size):
    torch.manual_seed(0)
    module, inputs = KINDS[kind]
    sequences, state = inputs()
    weights = vectors()
    slow = results(module.steps, sequences, state, weights)
    fast = results(module.chunks, sequences, state, weights, size=size)
    for a, b in zip(fast, slow, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@each_kind
def test_a_sequence_can_be_cut(kind):
    torch.manual_seed(1)
    module, inputs = KINDS[kind]
    sequences, state = inputs()
    whole, last = module.chunks(*sequences, state, size=4)
    first, between = module.chunks(*(x[:, :, :3] for x in sequences), state, size=4)
    second, end = module.chunks(*(x[:, :, 3:] for x in sequences), between, size=4)
    torch.testing.assert_close(torch.cat([first, second], 2), whole)
    torch.testing.assert_close(end, last)


def test_mlstm_is_its_formula_without_the_stabiliser():
    torch.manual_seed(2)
    (q, k, v, i, f), _ = mlstm_inputs()
    zero = torch.zeros(B, HEADS, SIZE, SIZE).double(), torch.zeros(B, HEADS, SIZE).double()
    C, n = zero
    expected = []
    for t in range(T):
        write, keep = i[:, :, t].exp(), f[:, :, t].sigmoid()
        C = keep[..., None, None] * C + write[..., None, None] * torch.einsum(
            "bhk,bhv->bhkv", k[:, :, t], v[:, :, t]
        )
        n = keep[..., None] * n + write[..., None] * k[:, :, t]
        size = (n * q[:, :, t]).sum(-1).abs().clamp(min=1)
        expected.append(torch.einsum("bhkv,bhk->bhv", C, q[:, :, t]) / size[..., None])
    output, _ = mlstm.steps(q, k, v, i, f, (*zero, torch.zeros(B, HEADS).double()))
    torch.testing.assert_close(output, torch.stack(expected, 2))


@pytest.mark.parametrize("gate", [-100.0, 100.0])
def test_mlstm_bears_gates_that_overflow_an_exponential(gate):
    torch.manual_seed(3)
    (q, k, v, i, f), state = mlstm_inputs()
    inputs = [x.float() for x in (q, k, v, i + gate, f)]
    outputs = results(mlstm.chunks, inputs, tuple(x.float() * 0 for x in state), vectors().float(), size=4)
    torch.testing.assert_close(
        outputs[0].double(), mlstm.steps(q, k, v, i + gate, f, tuple(x * 0 for x in state))[0],
        rtol=1e-3, atol=1e-4,
    )  # fmt: skip


def test_the_delta_rule_replaces_a_value():
    """Written with beta 1, a key recalls the last of its values, and another key, at a right angle, its own."""
    keys = torch.eye(SIZE).double()[[0, 1, 0]]
    q, k = keys.expand(1, 1, 3, SIZE), keys.expand(1, 1, 3, SIZE)
    v = draw(1, 1, 3, SIZE)
    whole, none = torch.ones(1, 1, 3).double(), torch.zeros(1, 1, 3).double()
    output, S = deltanet.chunks(q, k, v, whole, none, torch.zeros(1, 1, SIZE, SIZE).double())
    torch.testing.assert_close(output, v)
    torch.testing.assert_close(S[0, 0, :2], v[0, 0, [2, 1]])


def test_decay_in_mamba2_is_a_geometric_sum():
    ones = torch.ones(1, 1, 5, 1).double()
    log_decay = torch.full((1, 1, 5), 0.5).double().log()
    output, _ = mamba2.chunks(ones, ones, ones, log_decay, torch.zeros(1, 1, 1, 1).double(), size=2)
    torch.testing.assert_close(output.flatten(), 2 - 0.5 ** torch.arange(5).double())
