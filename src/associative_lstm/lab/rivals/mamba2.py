"""Mamba-2 (Dao and Gu, 2024): a state space with one decay per head, chosen by the input."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from associative_lstm.lab.rivals import stack


def steps(c: Tensor, b: Tensor, x: Tensor, log_decay: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    r"""One step at a time.

    .. math::
        S_t = \exp(a_t) S_{t-1} + b_t x_t^T, \quad y_t = S_t^T c_t

    ``c``, ``b``: ``(B, 1 or heads, T, n)``; ``x``: ``(B, heads, T, p)``; ``log_decay``, a: ``(B, heads, T)``, not
    positive; ``state``, S: ``(B, heads, n, p)``.
    """

    def step(c: Tensor, b: Tensor, x: Tensor, a: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.exp(a)[..., None, None] * state + b.unsqueeze(-1) * x.unsqueeze(-2)
        return (c.unsqueeze(-2) @ state).squeeze(-2), state

    return stack.in_steps(step, [c, b, x, log_decay], state)


def chunks(
    c: Tensor, b: Tensor, x: Tensor, log_decay: Tensor, state: Tensor, size: int = stack.CHUNK
) -> tuple[Tensor, Tensor]:
    """The same by chunks, the "state space duality": inside, attention with a mask that decays."""
    return stack.in_chunks(_chunk, [c, b, x, log_decay], state, size)


def _chunk(c: Tensor, b: Tensor, x: Tensor, log_decay: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    before, within = (part.exp() for part in stack.decays(log_decay))
    output = ((c @ b.mT) * within) @ x + before.unsqueeze(-1) * (c @ state)
    left = x * within[..., -1, :].unsqueeze(-1)
    return output, before[..., -1, None, None] * state + b.mT @ left


class StateSpace(stack.Mixer):
    """The mixer of :class:`Mamba2`."""

    def __init__(self, width: int, num_heads: int = 4, head_size: int = 32, convolution: int = 4) -> None:
        super().__init__(num_heads, head_size)
        wide = 2 * self.inner + 2 * head_size + num_heads  # z, x, B, C, time step
        self.project = nn.Linear(width, wide, bias=False)
        self.convolution = stack.ShortConvolution(self.inner + 2 * head_size, convolution, bias=True)
        self.time_step = nn.Parameter(torch.empty(num_heads))
        self.log_rate = nn.Parameter(torch.empty(num_heads))
        self.skip = nn.Parameter(torch.ones(num_heads))
        self.norm = nn.RMSNorm(self.inner, stack.EPSILON)
        self.out = nn.Linear(self.inner, width, bias=False)
        stack.draw_time_steps(self.time_step)
        stack.draw_decay_rates(self.log_rate, 1, 16)

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"S": (self.heads, self.size, self.size)} | self.convolution.state_shapes()

    def forward(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        S, *before = parts
        z, xbc, time = self.project(x).split([self.inner, self.inner + 2 * self.size, self.heads], -1)
        xbc, before = self.convolution(xbc, before)
        x, b, c = xbc.split([self.inner, self.size, self.size], -1)
        x, b, c = stack.split_heads(x, self.heads), stack.split_heads(b, 1), stack.split_heads(c, 1)
        time = F.softplus(time + self.time_step).permute(1, 2, 0)  # (B, heads, T)
        log_decay = -time * self.log_rate.exp().unsqueeze(-1)
        y, S = chunks(c, b, x * time.unsqueeze(-1), log_decay, S)
        y = y + self.skip[:, None, None] * x
        return self.out(self.norm(stack.join_heads(y) * F.silu(z))), [S, *before]


class Mamba2(stack.Stack):
    r"""Apply blocks of Mamba-2.

    .. math::
        x_t, B_t, C_t &= \mathrm{SiLU}(\mathrm{conv}(W u))_t, \quad
        \Delta_t = \mathrm{softplus}(W_\Delta u_t + b_\Delta) \\
        S_t &= \exp(-\Delta_t e^{A}) S_{t-1} + B_t (\Delta_t x_t)^T \\
        y_t &= W_o \mathrm{RMSNorm}\big((S_t^T C_t + D x_t) \odot \mathrm{SiLU}(W_z u_t)\big)

    B and C are the same for all heads; :math:`\Delta`, A and D are one number per head. Initial values are those of
    the authors' package ``mamba_ssm``: :math:`e^A` uniform from 1 to 16, :math:`\Delta` from 0.001 to 0.1, D one, its
    maps as PyTorch has them. (Smaller ones, normal with standard deviation 0.02, made it learn MQAR far worse.)

    Args:
        num_heads: heads. As published, ``num_heads * head_size`` is twice ``hidden_size``.
        head_size: the size of B and C, and of a head's x: its state is head_size x head_size.
        convolution: the steps of the short convolution; 0 is none.

    Other arguments, inputs and outputs are those of :class:`~.stack.Stack`. The state of a block is S and what
    its convolution still needs.

    >>> output, (S, before) = Mamba2(10, 64, num_heads=4, head_size=32)(torch.randn(5, 2, 10))
    >>> output.shape, S.shape
    (torch.Size([5, 2, 64]), torch.Size([2, 4, 32, 32]))
    """

    mixer = StateSpace
