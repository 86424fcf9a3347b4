"""The mLSTM of xLSTM (Beck et al., 2024): a matrix memory with exponential gates."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from associative_lstm.lab.rivals import stack

State = tuple[Tensor, Tensor, Tensor]
"""C ``(B, heads, d, d)``, n ``(B, heads, d)`` and m ``(B, heads)``."""


def steps(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor, state: State) -> tuple[Tensor, State]:
    r"""One step at a time, with the stabiliser m, which the result does not depend on.

    .. math::
        m_t &= \max(\log \sigma(f_t) + m_{t-1}, i_t) \\
        i'_t &= \exp(i_t - m_t), \quad f'_t = \exp(\log \sigma(f_t) + m_{t-1} - m_t) \\
        C_t &= f'_t C_{t-1} + i'_t k_t v_t^T, \quad n_t = f'_t n_{t-1} + i'_t k_t \\
        h_t &= C_t^T q_t / \max(|n_t \cdot q_t|, \exp(-m_t))

    ``q``, ``k``, ``v``: ``(B, heads, T, d)``, k divided by :math:`\sqrt d` before; ``i``, ``f``: ``(B, heads, T)``.
    """

    def step(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor, state: State) -> tuple[Tensor, State]:
        C, n, m = state
        log_f = F.logsigmoid(f)
        new_m = torch.maximum(log_f + m, i).detach()
        keep, write = torch.exp(log_f + m - new_m), torch.exp(i - new_m)
        C = keep[..., None, None] * C + write[..., None, None] * k.unsqueeze(-1) * v.unsqueeze(-2)
        n = keep.unsqueeze(-1) * n + write.unsqueeze(-1) * k
        size = torch.maximum((n * q).sum(-1).abs(), torch.exp(-new_m))
        return (q.unsqueeze(-2) @ C).squeeze(-2) / size.unsqueeze(-1), (C, n, new_m)

    return stack.in_steps(step, [q, k, v, i, f], state)


def chunks(
    q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor, state: State, size: int = stack.CHUNK
) -> tuple[Tensor, State]:
    """The same by chunks: inside, a matrix of how much of every write is left at every read."""
    return stack.in_chunks(_chunk, [q, k, v, i, f], state, size)


def _chunk(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor, state: State) -> tuple[Tensor, State]:
    C, n, m = state
    before, within = stack.decays(F.logsigmoid(f))
    before, within = before + m.unsqueeze(-1), within + i.unsqueeze(-2)
    new_m = torch.maximum(before, within.amax(-1)).detach()
    before, within = torch.exp(before - new_m), torch.exp(within - new_m.unsqueeze(-1))
    scores = (q @ k.mT) * within
    old = q * before.unsqueeze(-1)
    size = torch.maximum((scores.sum(-1) + (old @ n.unsqueeze(-1)).squeeze(-1)).abs(), torch.exp(-new_m))
    output = (scores @ v + old @ C) / size.unsqueeze(-1)
    left = k * within[..., -1, :].unsqueeze(-1)
    keep = before[..., -1]
    C = keep[..., None, None] * C + left.mT @ v
    return output, (C, keep.unsqueeze(-1) * n + left.sum(-2), new_m[..., -1])


class MatrixMemory(stack.Mixer):
    """The mixer of :class:`MLSTM`."""

    def __init__(self, width: int, num_heads: int = 2, head_size: int = 32, convolution: int = 4) -> None:
        super().__init__(num_heads, head_size)
        self.convolution = stack.ShortConvolution(width, convolution, bias=True) if convolution else None
        small = math.sqrt(2 / (5 * width))
        self.project_qk = stack.linear(width, 2 * self.inner, small)
        self.project_vz = stack.linear(width, 2 * self.inner, small)
        self.gates = nn.Linear(3 * self.inner, 2 * num_heads)
        self.norm = nn.Parameter(torch.ones(self.inner))
        self.out = stack.linear(self.inner, width, 2 / math.sqrt(width))
        nn.init.zeros_(self.gates.weight)
        with torch.no_grad():
            i, f = self.gates.bias.chunk(2)
            i.normal_(0, 0.1)
            f.copy_(torch.linspace(3, 6, num_heads) if num_heads > 1 else torch.tensor([6.0]))

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        own = {"C": (self.heads, self.size, self.size), "n": (self.heads, self.size), "m": (self.heads,)}
        return own | (self.convolution.state_shapes() if self.convolution else {})

    def forward(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        C, n, m, *before = parts
        seen = x
        if self.convolution is not None:
            seen, before = self.convolution(x, before)
        qk, (v, z) = self.project_qk(seen), self.project_vz(x).chunk(2, -1)
        i, f = self.gates(torch.cat([qk, v], -1)).permute(1, 2, 0).chunk(2, 1)  # (B, heads, T)
        q, k, v = (stack.split_heads(part, self.heads) for part in (*qk.chunk(2, -1), v))
        h, (C, n, m) = chunks(q, k * self.size**-0.5, v, i, f, (C, n, m))
        h = stack.join_heads(F.layer_norm(h, (self.size,), eps=stack.EPSILON)) * self.norm
        return self.out(F.silu(z) * h), [C, n, m, *before]


class MLSTM(stack.Stack):
    r"""Apply blocks of mLSTM: keys and values in a matrix that decays, by gates that depend on the input alone.

    .. math::
        q_t, k_t &= W \mathrm{SiLU}(\mathrm{conv}(x))_t, \quad v_t = W x_t, \quad
        i_t, f_t = W [q_t, k_t, v_t] + b \\
        y_t &= W_o \big(\mathrm{SiLU}(W_z x_t) \odot \mathrm{LayerNorm}(h_t)\big)

    with :math:`h_t` of :func:`steps`. As published, but for its block of twice the width (here that of
    :class:`~.stack.Stack`), its skip around the memory, and maps in blocks. Initial values are those of the authors'
    package ``xlstm``: input gates at biases of N(0, 0.1²), forget gates at biases from 3 to 6 over the heads (of a
    single one, unlike there, at 6, so that it keeps what it reads), the weights of both at zero; maps normal with
    standard deviation :math:`\sqrt{2 / 5w}` for a width w, the last one with :math:`2 / \sqrt w`.

    Args:
        num_heads: heads, each with a memory of its own.
        head_size: d, of a head's keys and values: its memory is d x d.
        convolution: the steps of the short convolution; 0 is none.

    Other arguments, inputs and outputs are those of :class:`~.stack.Stack`. The state of a block is C, n, m and what
    its convolution still needs.

    >>> output, (C, n, m, before) = MLSTM(10, 64, num_heads=2, head_size=16)(torch.randn(5, 2, 10))
    >>> output.shape, C.shape
    (torch.Size([5, 2, 64]), torch.Size([2, 2, 16, 16]))
    """

    mixer = MatrixMemory
