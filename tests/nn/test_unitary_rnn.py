import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from associative_lstm.kernels import unitary
from associative_lstm.kernels.compiler.fourier import table, transform
from associative_lstm.kernels.unitary import fused, loops
from associative_lstm.kernels.unitary.reference import constant_parts, modrelu
from associative_lstm.nn import MultiplicativeUnitaryRNN, UnitaryRNN
from closeness import allowed, assert_close
from threads import with_any_number_of_threads

BOTH = pytest.mark.parametrize("kind", [UnitaryRNN, MultiplicativeUnitaryRNN])
BACKENDS = pytest.mark.parametrize("backend", ["reference", "fused"])


def make(kind, n, hidden_size, *, seed=0, dtype=torch.float64, **options):
    torch.manual_seed(seed)
    net = kind(n, hidden_size, dtype=dtype, **options)
    with torch.no_grad():
        net.bias.normal_()
        net.modulus_bias.normal_().mul_(0.3)
    return net


def numpy_sequence(net, x, h):
    """The equations on complex128, with np.fft and one sequence at a time."""
    value = {name: tensor.detach().numpy() for name, tensor in net.state_dict().items()}
    half = net.hidden_size // 2

    def pair(v):
        return v[:half] + 1j * v[half:]

    def reflect(v, z):
        return z - 2 * v * (v.conj() @ z) / (v.conj() @ v)

    v_1, v_2 = (pair(v) for v in value["reflections"])
    h = pair(h)
    outputs = []
    for x_t in x:
        if "phases" in value:
            phases = value["phases"]
        else:
            phases = (value["phase_weight"] @ x_t + value["phase_bias"]).reshape(3, half)
        d_1, d_2, d_3 = np.exp(1j * phases)
        z = np.fft.fft(d_1 * h, norm="ortho")
        z = reflect(v_1, z)[value["permutation"]]
        z = d_3 * reflect(v_2, np.fft.ifft(d_2 * z, norm="ortho"))
        z = z + pair(value["weight"] @ x_t + value["bias"])
        h = np.maximum(np.abs(z) + value["modulus_bias"], 0) * z / np.abs(z)
        outputs.append(np.concatenate([h.real, h.imag]))
    return np.stack(outputs)


def outputs(net, *inputs):
    return net(*inputs)[:1]


@BOTH
@BACKENDS
@pytest.mark.parametrize("hidden_size", [2, 10, 16, 34])
def test_agrees_with_complex_numpy_and_its_fft(kind, backend, hidden_size):
    net = make(kind, 5, hidden_size, backend=backend)
    x = torch.randn(12, 3, 5, dtype=torch.float64)
    h_0 = torch.randn(3, hidden_size, dtype=torch.float64)
    output, limits = net(x, h_0)[0], allowed(outputs, net, x, h_0)
    for b in range(3):
        expected = numpy_sequence(net, x[:, b].numpy(), h_0[b].numpy())
        assert_close([output[:, b]], [expected], limits)


ROUNDING = 64 * 10 * np.finfo(float).eps
"""In a product of two of these matrices: sums of 64 terms of at most 1, each after some ten operations."""


def unitary_error(A):
    return (A.T @ A - torch.eye(len(A), dtype=A.dtype)).abs().max().item()


def train(net, steps=30):
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    x = torch.randn(9, 4, net.input_size, dtype=torch.float64)
    target = torch.randn(9, 4, net.hidden_size, dtype=torch.float64)
    before = [parameter.detach().clone() for parameter in net.parameters()]
    for _ in range(steps):
        optimiser.zero_grad()
        (net(x)[0] - target).square().mean().backward()
        optimiser.step()
    assert all(not torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))


def test_the_recurrent_matrix_stays_unitary_while_it_learns():
    net = make(UnitaryRNN, 5, 64)
    assert unitary_error(net.recurrent_matrix()) < ROUNDING
    train(net)
    W = net.recurrent_matrix()
    assert unitary_error(W) < ROUNDING
    top, bottom = W.chunk(2)  # the real form of a complex matrix: [[Re, -Im], [Im, Re]]
    torch.testing.assert_close(top[:, :32], bottom[:, 32:], rtol=0, atol=ROUNDING)
    torch.testing.assert_close(top[:, 32:], -bottom[:, :32], rtol=0, atol=ROUNDING)


def test_what_stands_between_the_diagonals_stays_unitary_while_it_learns():
    net = make(MultiplicativeUnitaryRNN, 5, 64)
    train(net)
    for part in constant_parts(net.reflections, net.permutation):
        assert unitary_error(part) < ROUNDING


def test_the_multiplicative_network_without_input_weights_is_the_unitary_one():
    plain, multiplicative = make(UnitaryRNN, 5, 16), make(MultiplicativeUnitaryRNN, 5, 16)
    with torch.no_grad():
        for name in ("weight", "bias", "reflections", "modulus_bias", "permutation"):
            getattr(multiplicative, name).copy_(getattr(plain, name))
        multiplicative.phase_weight.zero_()
        multiplicative.phase_bias.copy_(plain.phases.flatten())
    x = torch.randn(12, 3, 5, dtype=torch.float64)
    assert_close(outputs(multiplicative, x), outputs(plain, x), allowed(outputs, multiplicative, x))


def gradients(net, x, h_0, weight):
    x, h_0 = x.detach().requires_grad_(), h_0.detach().requires_grad_()
    output, h = net(x, h_0)
    inputs = (x, h_0, *net.parameters())
    loss = (output * weight).sum() + h.square().sum()
    return [output, h, *torch.autograd.grad(loss, inputs)]


@BOTH
@settings(max_examples=10, deadline=None)
@given(T=st.integers(1, 20), B=st.integers(1, 5), half=st.integers(2, 19), seed=st.integers(0, 99))
def test_fused_equals_reference(kind, T, B, half, seed):
    nets = [make(kind, 3, 2 * half, seed=seed, backend=name) for name in ("reference", "fused")]
    x, h_0 = torch.randn(T, B, 3, dtype=torch.float64), torch.randn(B, 2 * half, dtype=torch.float64)
    weight = torch.randn(T, B, 2 * half, dtype=torch.float64)
    expected, ours = (gradients(net, x, h_0, weight) for net in nets)
    assert_close(ours, expected, allowed(gradients, nets[0], x, h_0, weight))


@pytest.mark.parametrize("turning", [False, True])
@settings(max_examples=25, deadline=None)
@given(
    T=st.integers(1, 20),
    B=st.integers(1, 5),
    # The reflection of one complex number is -1 whatever v is: its gradient is 0, and rounding errors have no scale.
    half=st.integers(2, 19) | st.sampled_from([32, 64]),
    seed=st.integers(0, 99),
)
def test_fused_kernel_equals_reference_loop(turning, T, B, half, seed):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    angles = draw(T, B, 3, half) if turning else draw(1, 1, 3, half)
    values = [draw(T, B, 2 * half), draw(B, 2 * half), angles, draw(2, 2 * half), 0.2 * draw(half)]
    permutation = torch.randperm(half, generator=generator)
    weight = draw(T, B, 2 * half)

    def run(*inputs, backend="reference"):
        *others, bias = inputs = [tensor.clone().requires_grad_() for tensor in inputs]
        output = unitary.sequence(*others, permutation, bias, backend=backend)
        return [output, *torch.autograd.grad((output * weight.to(output)).sum(), inputs)]

    for dtype in (torch.float64, torch.float32):
        inputs = [tensor.to(dtype) for tensor in values]
        assert_close(run(*inputs, backend="fused"), run(*inputs), allowed(run, *inputs))


@BOTH
def test_kernels_do_not_depend_on_the_number_of_threads(kind, monkeypatch):
    net = make(kind, 5, 30, backend="fused", dtype=torch.float32)
    calls = with_any_number_of_threads(monkeypatch, fused, "over_batch")
    gradients(net, torch.randn(8, 5, 5), torch.randn(5, 30), torch.randn(8, 5, 30))
    assert calls == [loops.forward, loops.backward]


@BOTH
def test_fused_without_gradients_keeps_no_history_and_gives_the_same_numbers(kind):
    net = make(kind, 5, 12, backend="fused")
    x = torch.randn(8, 3, 5, dtype=torch.float64)
    with_gradient = net(x)[0]
    with torch.no_grad():
        assert torch.equal(net(x)[0], with_gradient)


def test_modrelu_is_finite_at_zero():
    z = torch.zeros(2, 6, requires_grad=True)
    bias = torch.tensor([-0.1, 0.0, 0.1], requires_grad=True)
    h = modrelu(z, bias)
    assert torch.equal(h, torch.zeros(2, 6))
    h.sum().backward()
    assert z.grad.isfinite().all()
    assert bias.grad.isfinite().all()


@BACKENDS
def test_a_state_and_input_of_zero_give_finite_gradients(backend):
    net = UnitaryRNN(3, 8, backend=backend)
    net(torch.zeros(4, 2, 3))[0].sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


def test_modrelu_gradient():
    torch.manual_seed(0)
    z = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    bias = (0.2 * torch.randn(4, dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(modrelu, (z, bias))
    assert torch.autograd.gradgradcheck(modrelu, (z, bias))


@BOTH
def test_bad_options_are_named(kind):
    with pytest.raises(ValueError, match="hidden_size: expected an even"):
        kind(4, 7)
    with pytest.raises(ValueError, match="backend"):
        kind(4, 8, backend="fast")


@BOTH
def test_initialisation(kind):
    torch.manual_seed(0)
    net = kind(10, 256, learn_initial_state=True)
    phases = net.phases if kind is UnitaryRNN else net.phase_bias
    assert 3.0 < phases.abs().max() <= torch.pi
    assert 0.98 < net.reflections.abs().max() <= 1
    assert net.modulus_bias.abs().max() == net.bias.abs().max() == 0
    assert 0.8 < net.h_0.norm() < 1.2


@pytest.mark.parametrize("permutation", [[0, 1, 2, 4], [0, 0, 1, 2], [-1, 0, 1, 2], [3, 2, 1]])
def test_what_is_no_permutation_never_reaches_compiled_code(permutation):
    net = make(UnitaryRNN, 3, 8, backend="fused")
    net.permutation = torch.tensor(permutation)
    with pytest.raises(ValueError, match="permutation"):
        net(torch.zeros(2, 1, 3, dtype=torch.float64))


def test_wrong_shapes_never_reach_compiled_code():
    u, h_0, angles, v = torch.zeros(4, 2, 8), torch.zeros(2, 8), torch.zeros(1, 1, 3, 4), torch.ones(2, 8)
    permutation, bias = torch.arange(4), torch.zeros(4)
    assert unitary.sequence(u, h_0, angles, v, permutation, bias, "fused").shape == (4, 2, 8)
    wrong = [
        (u[..., :7], h_0, angles, v, permutation, bias),
        (u, h_0[:1], angles, v, permutation, bias),
        (u, h_0, angles.expand(4, 1, 3, 4), v, permutation, bias),
        (u, h_0, angles, v[:, :6], permutation, bias),
        (u, h_0, angles, v.double(), permutation, bias),
        (u, h_0, angles, v, permutation, bias[:3]),
    ]
    for inputs in wrong:
        with pytest.raises(ValueError, match=r"u:|h_0:|angles:|reflections:|bias:"):
            unitary.sequence(*inputs, "fused")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 12, 16, 64, 100, 512])
def test_transform_is_numpys(n, dtype):
    x = np.random.default_rng(n).normal(size=2 * n).astype(dtype)
    y, scratch = np.empty_like(x), np.empty_like(x)
    for inverse, expected in ((False, np.fft.fft), (True, np.fft.ifft)):
        before = x.copy()
        transformed(y, x, scratch, table(n, np.dtype(dtype)), inverse)
        assert np.array_equal(x, before)
        exact = expected(x[:n].astype(float) + 1j * x[n:], norm="ortho")
        error = np.abs(y[:n] + 1j * y[n:] - exact).max() / np.abs(exact).max()
        assert error < 20 * np.finfo(dtype).eps


@numba.njit
def transformed(y, x, scratch, circle, inverse):
    transform(y, x, scratch, circle, inverse)
