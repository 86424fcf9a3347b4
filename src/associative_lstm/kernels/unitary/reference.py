r"""The recurrence of the unitary networks, over a whole sequence.

.. math::
    h_t = f(D_3 R_2 F^{-1} D_2 P R_1 F D_1 h_{t-1} + u_t)

on N/2 complex numbers as real pairs. The diagonal D are turns by given angles, one for each time step and item or one
for all; R are reflections, P is a permutation, F the unitary Fourier transform.
"""

import math

import torch
from torch import Tensor

SMALLEST_MODULUS = 1e-5  # below it the direction z / |z| of modrelu is replaced by z / SMALLEST_MODULUS


def modrelu(z: Tensor, bias: Tensor) -> Tensor:
    r"""Rectify the modulus of each complex number, biased, and leave its phase: :math:`(|z| + b)_+ z / |z|`.

    :math:`|z|` is not taken smaller than 1e-5, so that value and gradient are finite and continuous at 0.

    Shapes: z ``(..., N)``, real pairs; bias ``(N/2,)``; the result ``(..., N)``.

    >>> modrelu(torch.tensor([3.0, 0.3, 4.0, 0.4]), torch.tensor([-1.0, -1.0]))  # moduli 5 and 0.5
    tensor([2.4000, 0.0000, 3.2000, 0.0000])
    """
    re, im = z.chunk(2, dim=-1)
    r = (re * re + im * im).clamp(min=SMALLEST_MODULUS**2).sqrt()
    scale = torch.relu(r + bias) / r
    return z * torch.cat([scale, scale], dim=-1)


def turn(z: Tensor, angles: Tensor) -> Tensor:
    """Multiply each complex number by ``exp(i angle)``: z ``(..., N)``, angles ``(..., N/2)``."""
    cos, sin = angles.cos(), angles.sin()
    re, im = z.chunk(2, dim=-1)
    return torch.cat([cos * re - sin * im, sin * re + cos * im], dim=-1)


def real_form(X: Tensor) -> Tensor:
    """The real (2m, 2n) matrix that acts on real pairs as the complex matrix of the pair X, (2m, n), does."""
    re, im = X.chunk(2)
    return torch.cat([X, torch.cat([-im, re])], dim=1)


def _fourier(n: int, sign: int, like: Tensor) -> Tensor:
    r"""The unitary matrix :math:`e^{\pm 2 \pi i j k / n} / \sqrt n`, as a real pair along the first dimension."""
    k = torch.arange(n, device=like.device)
    angles = (k.outer(k) % n).double() * (sign * 2 * math.pi / n)
    return (torch.cat([angles.cos(), angles.sin()]) / math.sqrt(n)).to(like.dtype)


def _reflect(v: Tensor, X: Tensor) -> Tensor:
    r"""R X, with R the reflection :math:`I - 2 v v^\dagger / |v|^2`."""
    V = real_form(v.unsqueeze(1))
    return torch.addmm(X, V * (-2 / v.dot(v)), V.T @ X)


def constant_parts(reflections: Tensor, permutation: Tensor) -> tuple[Tensor, Tensor]:
    """P R_1 F and R_2 F^-1, what stands between two diagonals: real matrices ``(N, N)`` that act on real pairs.

    Shapes: reflections ``(2, N)``, permutation ``(N/2,)``.
    """
    n = len(permutation)
    v_1, v_2 = reflections
    rows = torch.cat([permutation, n + permutation])
    inner = _reflect(v_1, _fourier(n, -1, reflections)).index_select(0, rows)
    return real_form(inner), real_form(_reflect(v_2, _fourier(n, 1, reflections)))


def sequence(
    u: Tensor, h_0: Tensor, angles: Tensor, reflections: Tensor, permutation: Tensor, bias: Tensor
) -> Tensor:
    """All h_t, step by step.

    Shapes: u ``(T, B, N)``, h_0 ``(B, N)``, angles ``(T, B, 3, N/2)`` or for all steps and items ``(1, 1, 3, N/2)``,
    reflections ``(2, N)``, permutation ``(N/2,)`` int64, bias ``(N/2,)``; the result ``(T, B, N)``.
    """
    inner, outer = constant_parts(reflections, permutation)
    h, outputs = h_0, []
    for u_t, (d_1, d_2, d_3) in zip(u, angles.expand(len(u), -1, -1, -1).transpose(1, 2), strict=True):
        h = turn(turn(h, d_1) @ inner.T, d_2)
        h = modrelu(turn(h @ outer.T, d_3) + u_t, bias)
        outputs.append(h)
    return torch.stack(outputs)
