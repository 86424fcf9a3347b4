"""The algebra against complex dtypes, finite differences and its laws."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from associative_lstm import functional as hf

DTYPES = [torch.float32, torch.float64]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pairs(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=dtype)


def as_complex(h: torch.Tensor) -> torch.Tensor:
    return torch.complex(*h.chunk(2, dim=-1))


def as_pair(z: torch.Tensor) -> torch.Tensor:
    return torch.cat([z.real, z.imag], dim=-1)


UNARY = {
    "conjugate": (hf.conjugate, lambda z: z.conj()),
    "inverse": (hf.inverse, lambda z: 1 / z),
    "bound": (hf.bound, lambda z: z / z.abs().clamp(min=1)),
    "bound_tanh": (hf.bound_tanh, lambda z: torch.polar(torch.tanh(z.abs()), z.angle())),
}
BINARY = {"bind": (hf.bind, lambda r, x: r * x), "unbind": (hf.unbind, lambda r, y: r.conj() * y)}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary_against_complex_numbers(name: str, dtype: torch.dtype) -> None:
    ours, theirs = UNARY[name]
    h = pairs(3, 5, 14, dtype=dtype)
    result = ours(h)
    assert result.dtype == dtype
    torch.testing.assert_close(result, as_pair(theirs(as_complex(h))))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary_against_complex_numbers_with_broadcasting(name: str, dtype: torch.dtype) -> None:
    ours, theirs = BINARY[name]
    r, x = pairs(3, 1, 14, dtype=dtype), pairs(5, 14, seed=1, dtype=dtype)
    result = ours(r, x)
    assert result.shape == (3, 5, 14)
    torch.testing.assert_close(result, as_pair(theirs(as_complex(r), as_complex(x))))


def test_similarity_against_complex_numbers() -> None:
    a, b = pairs(3, 1, 14), pairs(5, 14, seed=1)
    u, v = as_complex(a), as_complex(b)
    expected = (u.conj() * v).sum(-1).real / (u.norm(dim=-1) * v.norm(dim=-1))
    torch.testing.assert_close(hf.similarity(a, b), expected)
    assert hf.similarity(a, torch.zeros_like(a)).eq(0).all()
    torch.testing.assert_close(hf.similarity(a * 1e-100, a), torch.ones(3, 1, dtype=a.dtype))


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_circular_convolution_and_correlation_against_their_sums(n: int) -> None:
    a, b = pairs(3, n), pairs(3, n, seed=1)
    j, k = np.mgrid[:n, :n]
    convolution = torch.einsum("bk,bjk->bj", a, b[:, (j - k) % n])
    correlation = torch.einsum("bk,bjk->bj", a, b[:, (k + j) % n])
    torch.testing.assert_close(hf.circular_convolution(a, b), convolution)
    torch.testing.assert_close(hf.circular_correlation(a, b), correlation)


@pytest.mark.parametrize("n", [7, 16])
def test_fourier_transform_relates_the_two_forms(n: int) -> None:
    def spectrum(a: torch.Tensor) -> torch.Tensor:
        return as_pair(torch.fft.fft(a))

    a, b = pairs(4, n), pairs(4, n, seed=1)
    torch.testing.assert_close(spectrum(hf.circular_convolution(a, b)), hf.bind(spectrum(a), spectrum(b)))
    torch.testing.assert_close(spectrum(hf.circular_correlation(a, b)), hf.unbind(spectrum(a), spectrum(b)))
    # Parseval: similarity is the same on either side
    torch.testing.assert_close(hf.similarity(spectrum(a), spectrum(b)), hf.similarity(a, b))


DIFFERENTIABLE = {
    "bind": (hf.bind, 2),
    "unbind": (hf.unbind, 2),
    "conjugate": (hf.conjugate, 1),
    "inverse": (hf.inverse, 1),
    "modulus": (hf.modulus, 1),
    "bound": (hf.bound, 1),
    "bound_tanh": (hf.bound_tanh, 1),
    "permute": (lambda r: hf.permute(r, torch.tensor([[2, 0, 1], [0, 1, 2]])), 1),
    "similarity": (hf.similarity, 2),
    "circular_convolution": (hf.circular_convolution, 2),
    "circular_correlation": (hf.circular_correlation, 2),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_first_and_second_order(name: str) -> None:
    function, arity = DIFFERENTIABLE[name]
    modulus = torch.tensor([0.3, 0.8, 1.7], dtype=torch.float64)  # away from the kink of `bound` at 1
    inputs = [
        (
            hf.random_key(6, 2, generator=generator(seed), dtype=torch.float64) * modulus.repeat(2)
        ).requires_grad_()
        for seed in range(arity)
    ]
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("function", [hf.bound, hf.bound_tanh])
def test_bounds_are_smooth_at_zero_to_second_order(function) -> None:
    h = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(function, [h])
    assert gradgradcheck(function, [h])
    torch.testing.assert_close(torch.autograd.functional.jacobian(function, h), torch.eye(4, dtype=h.dtype))


def test_gradient_of_modulus_at_zero_is_zero() -> None:
    h = torch.zeros(4, requires_grad=True)
    hf.modulus(h).sum().backward()
    assert h.grad is not None
    assert h.grad.eq(0).all()


def test_tanh_bound_is_accurate_where_its_series_meets_the_formula() -> None:
    m = torch.logspace(-12, 1, 400, dtype=torch.float64)
    h = torch.cat([m * math.cos(1), m * math.sin(1)]).requires_grad_()
    units = 10 * torch.finfo(h.dtype).eps  # about as many roundings on the way
    torch.testing.assert_close(hf.modulus(hf.bound_tanh(h)).detach(), torch.tanh(m), rtol=units, atol=0)
    # the derivative along the radius is 1 - tanh²
    (g,) = torch.autograd.grad(hf.modulus(hf.bound_tanh(h)).sum(), h)
    radial = g[:400] * math.cos(1) + g[400:] * math.sin(1)
    torch.testing.assert_close(radial, 1 - torch.tanh(m) ** 2, rtol=1e-12, atol=1e-12)


def test_extreme_moduli_neither_overflow_nor_vanish() -> None:
    h = torch.tensor([3e30, 3e-30, 4e30, 4e-30])
    torch.testing.assert_close(hf.modulus(h), torch.tensor([5e30, 5e-30]))
    torch.testing.assert_close(hf.bound(h), torch.tensor([0.6, 3e-30, 0.8, 4e-30]))
    torch.testing.assert_close(
        hf.inverse(h), torch.tensor([0.12e-30, 0.12e30, -0.16e-30, -0.16e30]), atol=0, rtol=1e-6
    )


def test_inverse_of_zero_is_not_a_number() -> None:
    assert hf.inverse(torch.tensor([0.0, 1.0, 0.0, 0.0])).isnan().tolist() == [True, False, True, False]


def test_inverse_magnifies_noise_and_the_conjugate_does_not() -> None:
    r, x, noise = pairs(20_000), pairs(20_000, seed=1), pairs(20_000, seed=2)
    y = hf.bind(r, x) + noise
    after_inverse = hf.bind(hf.inverse(r), y) - x
    after_conjugate = hf.unbind(r, y) - hf.unbind(r, hf.bind(r, x))
    # mean |r|² is 2 for these keys; the mean of 1/|r|² diverges logarithmically with the number of elements
    assert after_conjugate.square().mean().item() == pytest.approx(2 * noise.square().mean().item(), rel=0.05)
    assert after_inverse.square().mean() > 3 * noise.square().mean()


even = st.integers(1, 20).map(lambda half: 2 * half)
seeds = st.integers(0, 2**31)


@settings(max_examples=50, deadline=None)
@given(size=even, seed=seeds)
def test_unit_keys_round_trip(size: int, seed: int) -> None:
    r = hf.random_key(size, generator=generator(seed), dtype=torch.float64)
    x = pairs(3, size, seed=seed)
    torch.testing.assert_close(hf.unbind(r, hf.bind(r, x)), x, rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(hf.inverse(r), hf.conjugate(r), rtol=1e-14, atol=1e-14)


@settings(max_examples=50, deadline=None)
@given(size=even, copies=st.integers(1, 5), seed=seeds)
def test_permuting_commutes_with_binding_and_follows_the_contract(size: int, copies: int, seed: int) -> None:
    r, x = pairs(2, 3, size, seed=seed), pairs(3, size, seed=seed + 1)
    permutations = hf.random_permutations(copies, size // 2, generator=generator(seed))
    permuted = hf.permute(r, permutations)
    assert permuted.shape == (2, 3, copies, size)
    for s in range(copies):
        for half in (slice(None, size // 2), slice(size // 2, None)):
            assert permuted[..., s, half].equal(r[..., half][..., permutations[s]])
    assert hf.bind(permuted, hf.permute(x, permutations)).equal(hf.permute(hf.bind(r, x), permutations))


@settings(max_examples=50, deadline=None)
@given(scale=st.floats(1e-3, 1e3), seed=seeds)
def test_bounds_keep_phases_and_limit_moduli(scale: float, seed: int) -> None:
    h = scale * pairs(20, seed=seed)
    for function in (hf.bound, hf.bound_tanh):
        bounded = function(h)
        assert hf.modulus(bounded).max() <= 1 + 1e-15
        torch.testing.assert_close(as_complex(bounded).angle(), as_complex(h).angle())


def test_random_keys_are_reproducible_uniform_and_of_unit_modulus() -> None:
    key = hf.random_key(10_000, 2, 3, generator=generator(5), dtype=torch.float64)
    assert key.shape == (2, 3, 10_000)
    assert key.equal(hf.random_key(10_000, (2, 3), generator=generator(5), dtype=torch.float64))
    torch.testing.assert_close(hf.modulus(key), torch.ones(2, 3, 5000, dtype=torch.float64))
    for harmonic in (1, 2):  # the moments of a uniform phase vanish: 30,000 of them, 4 standard deviations
        assert (as_complex(key) ** harmonic).mean().abs() < 4 / math.sqrt(30_000)


def test_random_permutations_are_uniform() -> None:
    drawn = hf.random_permutations(6000, 3, generator=generator(1))
    _, counts = drawn.unique(dim=0, return_counts=True)
    assert len(counts) == 6
    chi_square = ((counts - 1000) ** 2 / 1000).sum()
    assert chi_square < 20.5  # 5 degrees of freedom, p = 0.001


@pytest.mark.parametrize("copies", [0, 1, 4, 5, 8, 13])
def test_shifts_have_offsets_that_are_distinct_or_as_even_as_can_be(copies: int) -> None:
    shifts = hf.shift_permutations(copies, 5, generator=generator(1))
    assert shifts.shape == (copies, 5)
    r = pairs(1, 10, seed=1)[0]
    for s, permuted in zip(shifts, hf.permute(r, shifts), strict=True):
        expected = [half.roll(-int(s[0])) for half in r.chunk(2)]  # (P_s r)[j] = r[(j + o_s) mod n]
        assert torch.equal(permuted, torch.cat(expected))
    counts = shifts[:, 0].bincount(minlength=5)
    assert counts.max() - counts.min() <= 1


def test_shifts_are_drawn_uniformly_and_away_from_those_taken() -> None:
    g = generator(1)
    drawn = torch.stack([hf.shift_permutations(2, 4, generator=g)[:, 0] for _ in range(6000)])
    _, counts = drawn.unique(dim=0, return_counts=True)
    assert len(counts) == 12  # ordered pairs of distinct offsets
    assert ((counts - 500) ** 2 / 500).sum() < 31.3  # 11 degrees of freedom, p = 0.001
    taken = torch.cat([hf.shift_permutations(3, 6, generator=g), torch.tensor([[1, 0, 2, 3, 4, 5]])])
    others = hf.shift_permutations(3, 6, taken=taken, generator=g)  # one of those taken is no shift
    assert torch.cat([taken[:3, 0], others[:, 0]]).sort().values.tolist() == [0, 1, 2, 3, 4, 5]
    assert hf.are_shifts(taken).tolist() == [True, True, True, False]


@pytest.mark.parametrize("name", [*DIFFERENTIABLE])
def test_compiles_without_breaks_to_the_same_numbers(name: str) -> None:
    function, arity = DIFFERENTIABLE[name]
    inputs = [pairs(2, 6, seed=seed) for seed in range(arity)]
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*inputs), function(*inputs))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: hf.bind(torch.ones(3), torch.ones(3)), ValueError, "r: expected an even last dimension"),
        (lambda: hf.bind(torch.ones(4), torch.ones(2)), ValueError, "x: expected the last dimension of r, 4"),
        (
            lambda: hf.unbind(torch.ones(4), torch.ones(6)),
            ValueError,
            "y: expected the last dimension of r, 4",
        ),
        (
            lambda: hf.bind(torch.ones(2, dtype=torch.complex64), torch.ones(2)),
            TypeError,
            "r: expected a real",
        ),
        (lambda: hf.bound(torch.ones(2, dtype=torch.long)), TypeError, "h: expected a real"),
        (lambda: hf.bound(torch.tensor(1.0)), ValueError, "h: expected at least one number"),
        (
            lambda: hf.permute(torch.ones(4), torch.zeros(2, 4).long()),
            ValueError,
            r"permutations: expected .*\(copies, 2",
        ),
        (lambda: hf.random_key(5), ValueError, "size: expected an even number"),
        (lambda: hf.random_key(0), ValueError, "size: expected an even number"),
        (lambda: hf.random_key(4.0), TypeError, "size: expected an int"),
        (lambda: hf.random_permutations(-1, 4), ValueError, "copies: expected at least 0"),
        (lambda: hf.shift_permutations(-1, 4), ValueError, "copies: expected at least 0"),
        (lambda: hf.shift_permutations(2, 0), ValueError, "half: expected at least 1"),
        (
            lambda: hf.circular_convolution(torch.ones(4), torch.ones(1)),
            ValueError,
            "b: expected the last dimension",
        ),
    ],
)
def test_bad_input_is_named(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
