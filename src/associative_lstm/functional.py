r"""The algebra of holographic reduced representations, as pure functions (section 2 of the paper).

A complex vector :math:`z \in \mathbb{C}^{N/2}` is stored as a *real pair* of N numbers along the last
dimension, ``[real half, imaginary half]``, because compilers and kernels know little of complex dtypes.
Leading dimensions are batch dimensions and broadcast. Everything is differentiable and computes in the dtype
it is given.
"""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils.weak import WeakIdKeyDictionary

__all__ = [
    "are_shifts",
    "bind",
    "bound",
    "bound_tanh",
    "circular_convolution",
    "circular_correlation",
    "conjugate",
    "inverse",
    "modulus",
    "permute",
    "random_key",
    "random_permutations",
    "shift_permutations",
    "similarity",
    "unbind",
]


def bind(r: Tensor, x: Tensor) -> Tensor:
    r"""Bind value x to key r: element-wise complex multiplication.

    .. math::
        r \circledast x = \begin{bmatrix}
            r_{re} \odot x_{re} - r_{im} \odot x_{im} \\
            r_{re} \odot x_{im} + r_{im} \odot x_{re} \end{bmatrix}

    Moduli multiply and phases add. Binding is commutative, and distributes over addition.

    Shapes: r and x ``(..., N)``, broadcast against each other; the result ``(..., N)``.

    >>> i = torch.tensor([0.0, 1.0])
    >>> bind(i, i)  # the square of the imaginary unit
    tensor([-1.,  0.])
    """
    r_re, r_im, x_re, x_im = *_halves("r", r), *_halves("x", x)
    _check_same_size("r", r, "x", x)
    return torch.cat([r_re * x_re - r_im * x_im, r_re * x_im + r_im * x_re], dim=-1)


def unbind(r: Tensor, y: Tensor) -> Tensor:
    r"""Recover what key r was bound to: :math:`\bar r \circledast y`, with the conjugate of the key.

    Exact if y holds one item and every modulus of r is 1; otherwise the value appears scaled by
    :math:`|r|^2`, plus noise. See `inverse` for the alternative.

    Shapes: r and y ``(..., N)``, broadcast against each other; the result ``(..., N)``.

    >>> r, x = random_key(8), torch.arange(8.0)
    >>> torch.allclose(unbind(r, bind(r, x)), x, atol=1e-5)
    True
    """
    r_re, r_im, y_re, y_im = *_halves("r", r), *_halves("y", y)
    _check_same_size("r", r, "y", y)
    return torch.cat([r_re * y_re + r_im * y_im, r_re * y_im - r_im * y_re], dim=-1)


def conjugate(r: Tensor) -> Tensor:
    r"""The complex conjugate :math:`\bar r = [r_{re}, -r_{im}]`.

    Shapes: r and the result ``(..., N)``.

    >>> conjugate(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([ 1.,  2., -3., -4.])
    """
    r_re, r_im = _halves("r", r)
    return torch.cat([r_re, -r_im], dim=-1)


def inverse(r: Tensor) -> Tensor:
    r"""The exact inverse :math:`r^{-1} = \bar r / |r|^2`: ``bind(inverse(r), bind(r, x))`` is x.

    Exact for one item only. From a trace c of several,

    .. math::
        r_k^{-1} \circledast c = x_k + \sum_{k' \ne k} r_k^{-1} \circledast r_{k'} \circledast x_{k'}

    and the noise of an element is multiplied by :math:`1/|r_k|`, without limit where the key is small: for
    Gaussian keys the expected square of that factor does not even exist. The conjugate multiplies noise by
    :math:`|r_k|` instead, which is why Plate reads with it. For unit-modulus keys the two are the same.

    An element of modulus 0 has no inverse: the result there is NaN.

    Shapes: r and the result ``(..., N)``.

    >>> inverse(torch.tensor([0.0, 2.0]))  # 1 / 2i = -i/2
    tensor([ 0.0000, -0.5000])
    """
    r_re, r_im = _halves("r", r)
    m = torch.hypot(r_re, r_im)
    # Divided twice, because m * m leaves the range of floats long before 1 / m does.
    return torch.cat([r_re / m / m, -r_im / m / m], dim=-1)


def modulus(h: Tensor) -> Tensor:
    r"""The modulus :math:`\sqrt{h_{re}^2 + h_{im}^2}` of each complex element; its gradient at 0 counts as 0.

    Shapes: h ``(..., N)``; the result ``(..., N/2)``.

    >>> modulus(torch.tensor([3.0, 0.0, 4.0, 0.0]))
    tensor([5., 0.])
    """
    h_re, h_im = _halves("h", h)
    zero = (h_re == 0) & (h_im == 0)
    # Filled before and masked after: hypot has no derivative at 0, and 0 * NaN would spoil the gradient.
    return torch.hypot(h_re.masked_fill(zero, 1), h_im).masked_fill(zero, 0)


def bound(h: Tensor) -> Tensor:
    r"""Bring every modulus into [0, 1] and leave phases alone: :math:`h \oslash \max(1, |h|)`.

    The identity inside the unit disk, the projection to the circle outside; its gradient jumps at modulus 1.

    Shapes: h and the result ``(..., N)``.

    >>> bound(torch.tensor([3.0, 0.1, 4.0, 0.2]))  # 3 + 4i has modulus 5; 0.1 + 0.2i stays
    tensor([0.6000, 0.1000, 0.8000, 0.2000])
    """
    d = modulus(h).clamp(min=1)
    return h / torch.cat([d, d], dim=-1)


def bound_tanh(h: Tensor) -> Tensor:
    r"""The smooth variant of `bound`, tanh on the modulus: :math:`h \odot \tanh(|h|) \oslash |h|`, 0 at 0.

    Shapes: h and the result ``(..., N)``.

    >>> bound_tanh(torch.tensor([0.0, 3.0, 0.0, 4.0]))  # tanh(5) is nearly 1
    tensor([0.0000, 0.5999, 0.0000, 0.7999])
    """
    m = modulus(h)
    small = m < 3e-3
    q, m_safe = m * m, m.masked_fill(small, 1)
    # tanh(m) / m cancels near 0, where its Taylor series is exact to double precision.
    scale = torch.where(small, 1 - q / 3 + 2 * q * q / 15, torch.tanh(m_safe) / m_safe)
    return h * torch.cat([scale, scale], dim=-1)


def permute(r: Tensor, permutations: Tensor) -> Tensor:
    r"""The key as each copy sees it: :math:`P_s r` for every copy s.

    ``(P_s r)[j] = r[permutations[s, j]]`` on each half, so real and imaginary parts stay together.

    Shapes: r ``(..., N)``; permutations ``(copies, N/2)``, int64; the result ``(..., copies, N)``.

    >>> permute(torch.tensor([1.0, 2.0, 10.0, 20.0]), torch.tensor([[0, 1], [1, 0]]))
    tensor([[ 1.,  2., 10., 20.],
            [ 2.,  1., 20., 10.]])
    """
    half = _half("r", r)
    if permutations.dim() != 2 or permutations.shape[-1] != half:
        raise ValueError(
            f"permutations: expected shape (copies, {half}) for r of {2 * half} numbers, "
            f"got {tuple(permutations.shape)}"
        )
    both = torch.cat([permutations, permutations + half], dim=-1)
    return r.index_select(-1, both.flatten()).unflatten(-1, both.shape)


def random_permutations(
    copies: int,
    half: int,
    *,
    generator: torch.Generator | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Draw one uniformly random permutation of ``range(half)`` per copy, independent of each other.

    They are drawn on the generator's device (the CPU by default): a seed gives the same ones everywhere.

    Shapes: the result ``(copies, half)``, int64.

    >>> random_permutations(2, 4).sort().values
    tensor([[0, 1, 2, 3],
            [0, 1, 2, 3]])
    """
    check_count("copies", copies, least=0)
    check_count("half", half, least=1)
    drawn_on = generator.device if generator is not None else "cpu"
    # 53 random bits an element: a tie, which argsort would not break at random, is out of the question.
    order = torch.rand(copies, half, generator=generator, dtype=torch.float64, device=drawn_on)
    return order.argsort(dim=-1).to(device if device is not None else drawn_on)


def shift_permutations(
    copies: int,
    half: int,
    *,
    taken: Tensor | None = None,
    generator: torch.Generator | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Draw one cyclic shift of ``range(half)`` per copy: :math:`(P_s r)_j = r_{(j + o_s) \bmod half}`.

    The offsets :math:`o_s` are distinct, so that no element of a key meets a place in two copies; if there are more
    copies than offsets, each occurs as often as any other, or once more. They are drawn at random: any distinct ones
    average noise equally well, but evenly spaced ones would repeat the same noise all along a value, and neighbouring
    ones smear it.

    Args:
        taken: permutations of other copies, ``(copies, half)``; shifts among them count as drawn before.

    Shapes: the result ``(copies, half)``, int64.

    >>> shift_permutations(5, 5).sort(dim=0).values[:, 0]  # every offset once
    tensor([0, 1, 2, 3, 4])
    """
    check_count("copies", copies, least=0)
    check_count("half", half, least=1)
    drawn_on = generator.device if generator is not None else torch.device("cpu")
    places = torch.arange(half, device=drawn_on)
    times = torch.zeros_like(places)  # how often each offset occurs
    if taken is not None:
        times = taken[are_shifts(taken), 0].bincount(minlength=half).to(drawn_on)
    offsets = places[:0]
    while len(offsets) < copies:
        order = torch.randperm(half, generator=generator, device=drawn_on)
        rarest = order[times[order] == times.min()][: copies - len(offsets)]
        times[rarest] += 1
        offsets = torch.cat([offsets, rarest])
    return ((places + offsets[:, None]) % half).to(device if device is not None else drawn_on)


def are_shifts(permutations: Tensor) -> Tensor:
    """Which permutations are cyclic shifts.

    Shapes: permutations ``(copies, half)``; the result ``(copies,)``.

    >>> are_shifts(torch.tensor([[1, 2, 0], [1, 0, 2]]))
    tensor([ True, False])
    """
    half = permutations.shape[-1]
    places = torch.arange(half, device=permutations.device)
    return (permutations == (places + permutations[:, :1]) % half).all(-1)


def random_key(
    size: int,
    *batch: int | tuple[int, ...],
    generator: torch.Generator | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Draw keys of unit modulus, :math:`e^{i\phi}` with every phase independent and uniform on the circle.

    The conjugate of such a key is its inverse, and reading with it magnifies nothing.

    Args:
        size: N, the real numbers of a key; even.
        batch: leading dimensions, as numbers or one tuple.
        generator, dtype, device: as in `torch.rand`.

    Shapes: the result ``(*batch, N)``.

    >>> random_key(6, 10).shape
    torch.Size([10, 6])
    >>> torch.allclose(modulus(random_key(6)), torch.ones(3))
    True
    """
    check_size("size", size)
    shape: Any = (*(batch[0] if len(batch) == 1 and isinstance(batch[0], tuple) else batch), size // 2)
    phase = 2 * math.pi * torch.rand(shape, generator=generator, dtype=dtype, device=device)
    return torch.cat([torch.cos(phase), torch.sin(phase)], dim=-1)


def similarity(a: Tensor, b: Tensor) -> Tensor:
    r"""Real part of the normalised complex inner product, :math:`\mathrm{Re}\, \bar a^T b / (\|a\| \|b\|)`.

    1 for the same direction, near 0 for independent random vectors (standard deviation :math:`1/\sqrt{N}`), 0
    if one of them is zero. On real pairs it is the cosine of the two real vectors: it serves both of Plate's
    forms.

    Shapes: a and b ``(..., N)``, broadcast against each other; the result ``(...)``.

    >>> similarity(torch.tensor([1.0, 0.0]), torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 0.])
    """
    _check_real("a", a)
    _check_real("b", b)
    _check_same_size("a", a, "b", b)
    return F.cosine_similarity(a, b, dim=-1, eps=torch.finfo(torch.promote_types(a.dtype, b.dtype)).tiny)


def circular_convolution(a: Tensor, b: Tensor) -> Tensor:
    r"""Bind two real vectors, Plate's first form: :math:`(a * b)_j = \sum_k a_k \, b_{(j - k) \bmod n}`.

    The discrete Fourier transform :math:`\mathcal F` turns it into the second form, `bind`:
    :math:`\mathcal F (a * b) = \mathcal F a \circledast \mathcal F b`. It is computed that way, in O(n log
    n).

    Shapes: a and b ``(..., n)``, broadcast against each other, any n; the result ``(..., n)``.

    >>> shift = torch.tensor([0.0, 1.0, 0.0])
    >>> circular_convolution(shift, torch.tensor([1.0, 2.0, 3.0])).round()
    tensor([3., 1., 2.])
    """
    _check_real("a", a)
    _check_real("b", b)
    _check_same_size("a", a, "b", b)
    return torch.fft.irfft(torch.fft.rfft(a) * torch.fft.rfft(b), n=a.shape[-1])


def circular_correlation(a: Tensor, b: Tensor) -> Tensor:
    r"""Unbind real vectors, Plate's first form: :math:`(a \star b)_j = \sum_k a_k \, b_{(k + j) \bmod n}`.

    The approximate inverse of `circular_convolution`, and under the Fourier transform the `unbind` of the
    second form: :math:`\mathcal F (a \star b) = \overline{\mathcal F a} \circledast \mathcal F b`.

    Shapes: a and b ``(..., n)``, broadcast against each other, any n; the result ``(..., n)``.

    >>> shift = torch.tensor([0.0, 1.0, 0.0])
    >>> circular_correlation(shift, torch.tensor([3.0, 1.0, 2.0])).round()  # back again
    tensor([1., 2., 3.])
    """
    _check_real("a", a)
    _check_real("b", b)
    _check_same_size("a", a, "b", b)
    return torch.fft.irfft(torch.fft.rfft(a).conj() * torch.fft.rfft(b), n=a.shape[-1])


def check_size(name: str, size: int) -> None:
    """Refuse a size that no real pair can have.

    >>> check_size("size", 3)
    Traceback (most recent call last):
    ValueError: size: expected an even number above 0 (real and imaginary halves), got 3
    """
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{name}: expected an int, got {type(size).__name__}")
    if size <= 0 or size % 2:
        raise ValueError(f"{name}: expected an even number above 0 (real and imaginary halves), got {size}")


def check_count(name: str, count: int, least: int) -> None:
    """Refuse a number that is no whole number, or too small.

    >>> check_count("num_copies", 0, least=1)
    Traceback (most recent call last):
    ValueError: num_copies: expected at least 1, got 0
    """
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"{name}: expected an int, got {type(count).__name__}")
    if count < least:
        raise ValueError(f"{name}: expected at least {least}, got {count}")


def check_permutation_kind(kind: str) -> None:
    """Refuse another kind of permutations than there are.

    >>> check_permutation_kind("reverse")
    Traceback (most recent call last):
    ValueError: permutation: expected one of 'random', 'shift', got 'reverse'
    """
    if kind not in ("random", "shift"):
        raise ValueError(f"permutation: expected one of 'random', 'shift', got {kind!r}")


def check_permutations(name: str, permutations: Tensor) -> None:
    """Refuse rows that do not have every index once: averaged whole numbers, say, or memory that was never filled.

    Nothing is looked at while a program is recorded. On another device than the CPU, which has to be waited for,
    each tensor is looked at once after every change.

    >>> check_permutations("permutation", torch.tensor([0, 2, 2]))
    Traceback (most recent call last):
    ValueError: permutation: expected every index from 0 to 2 once; to average a model, set use_buffers=False
    """
    if (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()
        or permutations.is_meta
        or isinstance(permutations, FakeTensor)
        or torch._C._functorch.is_functorch_wrapped_tensor(permutations)
    ):
        return
    size, transformed = permutations.shape[-1], torch._C._are_functorch_transforms_active()
    if permutations.is_cpu and not transformed:  # the usual case, in a third of the time
        whole = (np.sort(permutations.numpy()) == np.arange(size)).all()
    else:
        version = 0 if permutations.is_inference() else permutations._version
        if not permutations.is_cpu and _looked_at.get(permutations) == version:
            return
        whole = (permutations.sort().values == torch.arange(size, device=permutations.device)).all()
        _looked_at[permutations] = version if whole else -1
    if not whole:
        raise ValueError(
            f"{name}: expected every index from 0 to {size - 1} once; "
            "to average a model, set use_buffers=False"
        )


_looked_at = WeakIdKeyDictionary()  # permutations, and which version of them


def _check_real(name: str, h: Tensor) -> None:
    if not h.is_floating_point():
        raise TypeError(f"{name}: expected a real floating-point tensor, got {h.dtype}")
    if h.dim() == 0 or h.shape[-1] == 0:
        raise ValueError(
            f"{name}: expected at least one number along the last dimension, got shape {tuple(h.shape)}"
        )


def _check_same_size(name_a: str, a: Tensor, name_b: str, b: Tensor) -> None:
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"{name_b}: expected the last dimension of {name_a}, {a.shape[-1]}, got shape {tuple(b.shape)}"
        )


def _half(name: str, h: Tensor) -> int:
    _check_real(name, h)
    if h.shape[-1] % 2:
        raise ValueError(
            f"{name}: expected an even last dimension (real and imaginary halves), got shape {tuple(h.shape)}"
        )
    return h.shape[-1] // 2


def _halves(name: str, h: Tensor) -> tuple[Tensor, Tensor]:
    half = _half(name, h)
    return h[..., :half], h[..., half:]
