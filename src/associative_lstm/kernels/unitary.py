r"""The recurrence of the unitary networks, over a whole sequence.

.. math::
    h_t = f(D_K A_K \cdots D_1 A_1 D_0 h_{t-1} + u_t)

on N/2 complex numbers as real pairs. The matrices A are constant over the sequence; the diagonal D are turns by
given angles, one for each time step, or absent. With one matrix and no turns this is the unitary RNN, with two
matrices and turns the multiplicative one.
"""

import torch
from torch import Tensor

from associative_lstm.kernels import choose_backend

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


def sequence(
    u: Tensor, h_0: Tensor, matrices: Tensor, angles: Tensor | None, bias: Tensor, backend: str = "auto"
) -> Tensor:
    """All h_t, by the backend that can serve.

    Shapes: u ``(T, B, N)``, h_0 ``(B, N)``, matrices ``(K, N, N)`` (each the real form of a complex matrix),
    angles ``(T, B, K + 1, N/2)`` or None, bias ``(N/2,)``; the result ``(T, B, N)``.
    """
    path, _ = choose_backend(backend, u.device, u.dtype, kernel="unitary_fused")
    if path == "fused":
        from associative_lstm.kernels.unitary_fused import sequence as fused_sequence

        return fused_sequence(u, h_0, matrices, angles, bias)
    h, outputs = h_0, []
    for t in range(u.shape[0]):
        for k, A in enumerate(matrices):
            if angles is not None:
                h = turn(h, angles[t, :, k])
            h = h @ A.T
        if angles is not None:
            h = turn(h, angles[t, :, -1])
        h = modrelu(h + u[t], bias)
        outputs.append(h)
    return torch.stack(outputs)
