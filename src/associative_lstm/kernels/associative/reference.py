"""The recurrence as an obvious loop of PyTorch operations: what the fused kernel is held against.

Differentiable any number of times, on any device and floating-point type.
"""

import torch
from torch import Tensor

from associative_lstm import functional as F
from associative_lstm.kernels.associative.inputs import Inputs
from associative_lstm.kernels.associative.rows import Rows

ACTIVATIONS = {"bound": F.bound, "tanh": F.bound_tanh}


def step(
    z: Tensor, c: Tensor, permutations: Tensor, num_heads: int, activation: str, turns: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""One time step from the pre-activations :math:`z = W_x x_t + W_h h_{t-1} + b`.

    .. math::
        g_f, g_i, g_o &= \sigma(\hat g_f), \sigma(\hat g_i), \sigma(\hat g_o) \\
        u, r_i, r_o &= \mathrm{bound}(\hat u), \mathrm{bound}(\hat r_i), \mathrm{bound}(\hat r_o) \\
        c_{s,t} &= g_f \odot c_{s,t-1} + \sum_{heads} (P_s r_i) \circledast (g_i \odot u) \\
        h_t &= g_o \odot \mathrm{bound}\Big(\frac{1}{N_{copies}} \sum_s (P_s r_o) \circledast c_{s,t}\Big)

    With ``turns``, see `turns_of`, :math:`c_{s,t-1}` is multiplied by them as well.

    Shapes: z ``(B, rows)``, c ``(B, copies, N)``, turns ``(copies, N)``, permutations ``(copies, N/2)``; returns h
    ``(B, heads * N)`` and c.
    """
    bound = ACTIVATIONS[activation]
    hidden_size = c.shape[-1]
    rows = Rows.of(hidden_size, num_heads)

    def per_head(block: slice) -> Tensor:
        return z[:, block].unflatten(-1, (num_heads, -1))

    def gate(block: slice) -> Tensor:
        return torch.sigmoid(per_head(block)).repeat(1, 1, 2)  # one gate for the real and the imaginary half

    g_f = torch.sigmoid(z[:, rows.forget]).repeat(1, 2).unsqueeze(-2)  # (B, 1, N)
    g_i, g_o = gate(rows.input), gate(rows.output)  # (B, heads, N)
    r_i, r_o = bound(per_head(rows.input_key)), bound(per_head(rows.output_key))
    u = bound(per_head(rows.update))

    r_is, r_os = F.permute(r_i, permutations), F.permute(r_o, permutations)  # (B, heads, copies, N)
    c = g_f * (c if turns is None else F.bind(turns, c)) + F.bind(r_is, (g_i * u).unsqueeze(-2)).sum(1)
    h = g_o * bound(F.bind(r_os, c.unsqueeze(1)).mean(-2))
    return h.flatten(1), c


def turns_of(angles: Tensor | None, permutations: Tensor) -> Tensor | None:
    r"""By what the copies turn at each step, ``(copies, N)``: :math:`P_s e^{i \theta}`, permuted like a key.

    So one output key can undo the turns of all copies at once. Angles: ``(N/2,)``.
    """
    return None if angles is None else F.permute(torch.cat([angles.cos(), angles.sin()]), permutations)


def recurrent(h: Tensor, weight_hh: Tensor, rows: int) -> Tensor:
    """W_h h, with zeros in the rows of the update if ``weight_hh`` has none (W_hu = 0)."""
    z = h @ weight_hh.T
    return torch.nn.functional.pad(z, (0, rows - z.shape[-1]))


def sequence(
    inputs: Inputs, num_heads: int, activation: str, reverse: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One layer in one direction over a whole sequence.

    An item is read from the last of its steps to the first if ``reverse``; outputs and cells beyond are zero.

    Returns output ``(T, B, heads * N)``, h_n and c_n like h_0 and c_0, and all cells ``(T, B, copies, N)``.
    """
    x, h, c, weight_ih, weight_hh, bias, permutations, lengths, turns = inputs
    lengths = None if lengths is None else lengths.to(x.device)  # those of a pack are on the CPU always
    z_x = torch.nn.functional.linear(x, weight_ih, bias)
    outputs, cells = [], []
    steps = range(x.shape[0])
    for t in reversed(steps) if reverse else steps:
        z = z_x[t] + recurrent(h, weight_hh, z_x.shape[-1])
        h_t, c_t = step(z, c, permutations, num_heads, activation, turns)
        if lengths is None:
            h, c = h_t, c_t
        else:
            active = (t < lengths)[:, None]
            h, c = torch.where(active, h_t, h), torch.where(active[..., None], c_t, c)
            h_t, c_t = h_t * active, c_t * active[..., None]
        outputs.append(h_t)
        cells.append(c_t)
    if reverse:
        outputs.reverse()
        cells.reverse()
    return torch.stack(outputs), h, c, torch.stack(cells)
