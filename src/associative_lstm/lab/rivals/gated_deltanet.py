"""Gated DeltaNet (Yang, Kautz and Hatamizadeh, 2024): the delta rule, and a decay chosen by the input."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from associative_lstm.lab.rivals.deltanet import DeltaRule
from associative_lstm.lab.rivals.stack import Mixer, Stack, draw_decay_rates, draw_time_steps, linear


class GatedDeltaNet(Stack):
    r"""Apply blocks of Gated DeltaNet: as :class:`~.deltanet.DeltaNet`, with decay and an output gate.

    .. math::
        \alpha_t &= \exp(-e^A \, \mathrm{softplus}(W_\alpha x_t + b_\alpha)) \\
        S_t &= \alpha_t (I - \beta_t k_t k_t^T) S_{t-1} + \beta_t k_t v_t^T \\
        y_t &= W_o \big(\mathrm{RMSNorm}(S_t^T q_t) \odot \mathrm{SiLU}(W_z x_t)\big)

    Initial values are those of the authors, which are Mamba-2's: :math:`e^A` uniform up to 16, the softplus from
    0.001 to 0.1. Values are as large as keys; published models often have them twice as large.

    Arguments, inputs and outputs are those of :class:`~.deltanet.DeltaNet`.

    >>> output, (S, before) = GatedDeltaNet(10, 64, num_heads=2, head_size=16)(torch.randn(5, 2, 10))
    >>> output.shape, S.shape
    (torch.Size([5, 2, 64]), torch.Size([2, 2, 16, 16]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        num_heads: int = 2,
        head_size: int = 32,
        convolution: int = 4,
        negative_eigenvalues: bool = False,
        mlp: int = 0,
        batch_first: bool = False,
    ) -> None:
        def mixer() -> Mixer:
            return GatedDeltaRule(hidden_size, num_heads, head_size, convolution, negative_eigenvalues)

        super().__init__(mixer, input_size, hidden_size, num_layers, mlp=mlp, batch_first=batch_first)


class GatedDeltaRule(DeltaRule):
    """The mixer of :class:`GatedDeltaNet`."""

    def __init__(
        self, width: int, heads: int, size: int, convolution: int, negative_eigenvalues: bool
    ) -> None:
        super().__init__(width, heads, size, convolution, negative_eigenvalues)
        self.alpha = linear(width, heads)
        self.time_step = nn.Parameter(torch.empty(heads))
        self.log_rate = nn.Parameter(torch.empty(heads))
        self.gate = linear(width, heads * size)
        draw_time_steps(self.time_step)
        draw_decay_rates(
            self.log_rate, 1e-3, 16
        )  # the authors' lower end is 0, of which there is no logarithm

    def log_decay(self, x: Tensor) -> Tensor:
        time = F.softplus(self.alpha(x) + self.time_step)
        return (-self.log_rate.exp() * time).permute(1, 2, 0)

    def gated(self, o: Tensor, x: Tensor) -> Tensor:
        return o * F.silu(self.gate(x))
