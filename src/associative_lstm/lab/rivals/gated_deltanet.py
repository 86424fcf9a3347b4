"""Gated DeltaNet (Yang, Kautz and Hatamizadeh, 2024): the delta rule, and a decay chosen by the input."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from associative_lstm.lab.rivals.deltanet import DeltaRule
from associative_lstm.lab.rivals.stack import Stack, draw_decay_rates, draw_time_steps, linear


class GatedDeltaRule(DeltaRule):
    """The mixer of :class:`GatedDeltaNet`."""

    def __init__(self, width: int, **options: Any) -> None:
        super().__init__(width, **options)
        self.alpha = linear(width, self.heads)
        self.time_step = nn.Parameter(torch.empty(self.heads))
        self.log_rate = nn.Parameter(torch.empty(self.heads))
        self.gate = linear(width, self.inner)
        draw_time_steps(self.time_step)
        draw_decay_rates(
            self.log_rate, 1e-3, 16
        )  # the authors' lower end is 0, of which there is no logarithm

    def log_decay(self, x: Tensor) -> Tensor:
        time = F.softplus(self.alpha(x) + self.time_step)
        return (-self.log_rate.exp() * time).permute(1, 2, 0)

    def gated(self, o: Tensor, x: Tensor) -> Tensor:
        return o * F.silu(self.gate(x))


class GatedDeltaNet(Stack):
    r"""Apply blocks of Gated DeltaNet: as :class:`~.deltanet.DeltaNet`, with decay and an output gate.

    .. math::
        \alpha_t &= \exp(-e^A \, \mathrm{softplus}(W_\alpha x_t + b_\alpha)) \\
        S_t &= \alpha_t (I - \beta_t k_t k_t^T) S_{t-1} + \beta_t k_t v_t^T \\
        y_t &= W_o \big(\mathrm{RMSNorm}(S_t^T q_t) \odot \mathrm{SiLU}(W_z x_t)\big)

    Initial values are those of the authors, which are Mamba-2's: :math:`e^A` uniform up to 16, the softplus from
    0.001 to 0.1 (of a single head 0.001, so that it keeps what it reads). Values are as large as keys; published
    models often have them twice as large.

    Arguments, inputs and outputs are those of :class:`~.deltanet.DeltaNet`.

    >>> output, (S, before) = GatedDeltaNet(10, 64, num_heads=2, head_size=16)(torch.randn(5, 2, 10))
    >>> output.shape, S.shape
    (torch.Size([5, 2, 64]), torch.Size([2, 2, 16, 16]))
    """

    mixer = GatedDeltaRule
