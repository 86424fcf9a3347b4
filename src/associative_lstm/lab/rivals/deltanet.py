"""DeltaNet (Schlag et al., 2021; Yang et al., 2024): a new value of a key takes the place of the old one."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from associative_lstm.lab.rivals import stack


def steps(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, log_decay: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    r"""One step at a time, with the decay of the gated form; DeltaNet's own is :math:`\alpha = 1`.

    .. math::
        S_t = \alpha_t (I - \beta_t k_t k_t^T) S_{t-1} + \beta_t k_t v_t^T, \quad o_t = S_t^T q_t

    ``q``, ``k``: ``(B, heads, T, d)``, k of length 1; ``v``: ``(B, heads, T, p)``; ``beta`` and ``log_decay``, the
    logarithm of α: ``(B, heads, T)``; ``state``, S: ``(B, heads, d, p)``.
    """

    def step(
        q: Tensor, k: Tensor, v: Tensor, beta: Tensor, log_decay: Tensor, S: Tensor
    ) -> tuple[Tensor, Tensor]:
        S, k, b = log_decay.exp()[..., None, None] * S, k.unsqueeze(-1), beta[..., None, None]
        S = S - b * k @ (k.mT @ S) + b * k @ v.unsqueeze(-2)
        return (q.unsqueeze(-2) @ S).squeeze(-2), S

    return stack.in_steps(step, [q, k, v, beta, log_decay], state)


def chunks(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, log_decay: Tensor, state: Tensor, size: int = stack.CHUNK
) -> tuple[Tensor, Tensor]:
    r"""The same by chunks. With :math:`g_t` the decay since the chunk began and :math:`u_t` what is really written,

    .. math::
        u_t = \beta_t \Big(v_t - g_t S_0^T k_t - \sum_{j<t} \tfrac{g_t}{g_j} (k_t \cdot k_j) u_j\Big), \quad
        S_t = g_t S_0 + \sum_{j \le t} \tfrac{g_t}{g_j} k_j u_j^T

    so that all u of a chunk are the solution of one triangular system.
    """
    return stack.in_chunks(_chunk, [q, k, v, beta, log_decay], state, size)


def _chunk(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, log_decay: Tensor, S: Tensor
) -> tuple[Tensor, Tensor]:
    before, within = (part.exp() for part in stack.decays(log_decay))
    before, beta = before.unsqueeze(-1), beta.unsqueeze(-1)
    system = beta * (k @ k.mT) * within  # its diagonal is taken as ones, what is above as zeros
    u = torch.linalg.solve_triangular(
        system.tril(-1), beta * (v - before * (k @ S)), upper=False, unitriangular=True
    )
    output = before * (q @ S) + ((q @ k.mT) * within) @ u
    left = k * within[..., -1, :].unsqueeze(-1)
    return output, before[..., -1:, :] * S + left.mT @ u


class DeltaRule(stack.Mixer):
    """The mixer of :class:`DeltaNet`."""

    def __init__(
        self,
        width: int,
        num_heads: int = 2,
        head_size: int = 32,
        convolution: int = 4,
        negative_eigenvalues: bool = False,
    ) -> None:
        super().__init__(num_heads, head_size)
        self.largest_beta = 2.0 if negative_eigenvalues else 1.0
        self.project = stack.linear(width, 3 * self.inner)
        self.convolution = stack.ShortConvolution(3 * self.inner, convolution)
        self.beta = stack.linear(width, num_heads)
        self.norm = nn.RMSNorm(head_size, stack.EPSILON)
        self.out = stack.linear(self.inner, width)

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"S": (self.heads, self.size, self.size)} | self.convolution.state_shapes()

    def forward(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        S, *before = parts
        qkv, before = self.convolution(self.project(x), before)
        q, k, v = (stack.split_heads(part, self.heads) for part in qkv.chunk(3, -1))
        beta = self.largest_beta * self.beta(x).sigmoid().permute(1, 2, 0)  # (B, heads, T)
        q, k = F.normalize(q, dim=-1, eps=stack.EPSILON), F.normalize(k, dim=-1, eps=stack.EPSILON)
        o, S = chunks(q, k, v, beta, self.log_decay(x), S)
        return self.out(self.gated(stack.join_heads(self.norm(o)), x)), [S, *before]

    def log_decay(self, x: Tensor) -> Tensor:
        """The logarithm of α, ``(B, heads, T)``: nothing decays."""
        return x.new_zeros(x.shape[1], self.heads, len(x))

    def gated(self, o: Tensor, x: Tensor) -> Tensor:
        """The output ``o`` with its gate: it has none."""
        return o


class DeltaNet(stack.Stack):
    r"""Apply blocks of DeltaNet.

    .. math::
        q_t, k_t, v_t &= \mathrm{SiLU}(\mathrm{conv}(W x))_t, \quad \text{q and k made of length 1}, \quad
        \beta_t = \sigma(W_\beta x_t) \\
        S_t &= (I - \beta_t k_t k_t^T) S_{t-1} + \beta_t k_t v_t^T \\
        y_t &= W_o \mathrm{RMSNorm}(S_t^T q_t)

    As in Yang et al. (2024); there is nothing special in its initial values.

    Args:
        num_heads: heads, each with a memory of its own.
        head_size: d, of a head's keys and values: its memory is d x d.
        convolution: the steps of the short convolution; 0 is none.
        negative_eigenvalues: twice the sigmoid, so that a step can turn the memory's sign along a key, with which
            parity can be learned (Grazzi et al., 2024).

    Other arguments, inputs and outputs are those of :class:`~.stack.Stack`. The state of a block is S and what
    its convolution still needs.

    >>> output, (S, before) = DeltaNet(10, 64, num_heads=2, head_size=16)(torch.randn(5, 2, 10))
    >>> output.shape, S.shape
    (torch.Size([5, 2, 64]), torch.Size([2, 2, 16, 16]))
    """

    mixer = DeltaRule
