"""The recurrence of the Neural Turing Machine over a whole sequence: controller, addressing, memory."""

from typing import NamedTuple

import torch
from torch import Tensor

EPSILON = 1e-8  # added to squared lengths, so that a vector of zeros is similar to nothing
STRONGEST = 50.0  # the largest beta, and gamma less 1: a weighting is one place long before
SMALLEST_WEIGHT = 1e-30  # weights below it count as this much in sharpening, for a finite logarithm


class NTMState(NamedTuple):
    """What a Neural Turing Machine carries from step to step; the batch is the first dimension of every part.

    >>> B, H, heads, N, W = 2, 8, 1, 16, 4
    >>> controller, weights = torch.zeros(B, H), torch.full((B, 2 * heads, N), 1 / N)
    >>> state = NTMState(controller, controller, torch.zeros(B, heads, W), torch.zeros(B, N, W), weights)
    >>> state.memory.shape
    torch.Size([2, 16, 4])
    """

    h: Tensor  #: the controller's output, ``(B, H)``
    c: Tensor  #: the controller's cells, ``(B, H)``
    reads: Tensor  #: what each head read, ``(B, heads, W)``
    memory: Tensor  #: ``(B, N, W)``
    weights: Tensor  #: where each head writes, then where each reads, ``(B, 2 * heads, N)``; each has sum 1


def address(
    weights: Tensor, memory: Tensor, key: Tensor, beta: Tensor, gate: Tensor, shift: Tensor, gamma: Tensor
) -> Tensor:
    r"""The next places to write and read at: content, interpolation, shift and sharpening.

    .. math::
        w^c &= \mathrm{softmax}_i(\beta \cos(k, M_i)) \\
        w^g &= g w^c + (1 - g) w_{t-1} \\
        \tilde w(i) &= s_{-1} w^g(i+1) + s_0 w^g(i) + s_{+1} w^g(i-1) \\
        w(i) &= \tilde w(i)^\gamma / \sum_j \tilde w(j)^\gamma

    with locations in a circle.

    Shapes: weights ``(B, places, N)``, memory ``(B, N, W)``, key ``(B, places, W)``, beta, gate and gamma
    ``(B, places, 1)``, shift ``(B, places, 3)``; the result ``(B, places, N)``.
    """
    length = (memory.square().sum(-1) + EPSILON).sqrt().unsqueeze(-2)  # (B, 1, N)
    key_length = (key.square().sum(-1, keepdim=True) + EPSILON).sqrt()  # (B, places, 1)
    similarity = key @ memory.mT / (key_length * length)
    content = torch.softmax(beta * similarity, dim=-1)
    gated = gate * content + (1 - gate) * weights
    back, stay, forth = shift.split(1, dim=-1)
    shifted = back * gated.roll(-1, -1) + stay * gated + forth * gated.roll(1, -1)
    # The power as a softmax of logarithms: neither overflows nor divides 0 by 0, however large gamma is.
    return torch.softmax(gamma * shifted.clamp(min=SMALLEST_WEIGHT).log(), dim=-1)


def strength(x: Tensor) -> Tensor:
    """A positive number that cannot overflow: softplus, up to `STRONGEST`."""
    return torch.nn.functional.softplus(x.clamp(max=STRONGEST))


def step(
    z_x: Tensor, state: NTMState, weight_hh: Tensor, weight_heads: Tensor, bias_heads: Tensor
) -> tuple[Tensor, NTMState]:
    """One time step from the input's share ``z_x``, ``(B, 4H)``, of the controller's pre-activations."""
    heads, width = state.reads.shape[1:]
    z = z_x + torch.cat([state.h, state.reads.flatten(1)], dim=-1) @ weight_hh.T
    i, f, u, o = z.chunk(4, dim=-1)
    c = torch.sigmoid(f) * state.c + torch.sigmoid(i) * torch.tanh(u)
    h = torch.sigmoid(o) * torch.tanh(c)

    p = torch.nn.functional.linear(h, weight_heads, bias_heads)
    places, vectors = p.split([2 * heads * (width + 6), 2 * heads * width], dim=-1)
    key, beta, gate, shift, gamma = places.unflatten(-1, (2 * heads, -1)).split([width, 1, 1, 3, 1], dim=-1)
    erase, add = vectors.unflatten(-1, (2, heads, -1)).unbind(1)  # (B, heads, W)
    w = address(
        state.weights,
        state.memory,
        torch.tanh(key),
        strength(beta),
        torch.sigmoid(gate),
        torch.softmax(shift, dim=-1),
        1 + strength(gamma),
    )
    writing, reading = w.split(heads, dim=1)  # (B, heads, N)
    kept = 1 - writing.unsqueeze(-1) * torch.sigmoid(erase).unsqueeze(-2)  # (B, heads, N, W)
    memory = state.memory * kept.prod(1) + writing.mT @ torch.tanh(add)
    reads = reading @ memory
    return torch.cat([h, reads.flatten(1)], dim=-1), NTMState(h, c, reads, memory, w)


def sequence(
    z_x: Tensor, state: NTMState, weight_hh: Tensor, weight_heads: Tensor, bias_heads: Tensor
) -> tuple[Tensor, NTMState]:
    """All outputs, h and reads side by side, and the state after the last step.

    Shapes: z_x ``(T, B, 4H)``, weight_hh ``(4H, H + heads * W)``, weight_heads ``(heads * (4W + 12), H)``,
    bias_heads ``(heads * (4W + 12),)``; the output ``(T, B, H + heads * W)``.
    """
    outputs = []
    for z_t in z_x:
        output, state = step(z_t, state, weight_hh, weight_heads, bias_heads)
        outputs.append(output)
    return torch.stack(outputs), state
