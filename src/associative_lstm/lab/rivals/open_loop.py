"""Ours without feedback: an Associative LSTM whose gates and keys see the input alone."""

from typing import Any

import torch
from torch import Tensor, nn

from associative_lstm.nn import AssociativeLSTM


class OpenAssociativeLSTM(nn.Module):
    r"""Apply an Associative LSTM with :math:`W_{h\cdot} = 0`: h is what is said, and nothing depends on it.

    .. math::
        c_{s,t} = g_{f,t} \odot c_{s,t-1} + (P_s r_{i,t}) \circledast (g_{i,t} \odot u_t)

    is then linear in c, as in today's linear recurrences, so that it could be trained in parallel over time (here it
    is computed step by step, by the same kernel). The state is c alone.

    Args:
        input_size: the number of features of ``x``.
        hidden_size: N_h, the real numbers of one copy.
        num_copies, num_heads, permutation, key_init, forget_bias, update_init, horizon: as in
            :class:`~associative_lstm.AssociativeLSTM`.

    Inputs: ``x`` of shape ``(T, B, input_size)``, and optionally the state.

    Outputs: ``output`` of shape ``(T, B, num_heads * hidden_size)`` and the state, ``(c,)``.

    >>> output, (c,) = OpenAssociativeLSTM(10, 64, num_copies=4)(torch.randn(5, 2, 10))
    >>> output.shape, c.shape
    (torch.Size([5, 2, 64]), torch.Size([1, 2, 4, 64]))
    """

    def __init__(self, input_size: int, hidden_size: int, **options: Any) -> None:
        super().__init__()
        self.layer = AssociativeLSTM(input_size, hidden_size, recurrent_update=False, **options)
        self.input_size, self.output_size = input_size, self.layer.output_size
        weight = self.layer.get_parameter("weight_hh_l0").detach()
        del self.layer.weight_hh_l0
        nn.Module.register_buffer(self.layer, "weight_hh_l0", torch.zeros_like(weight), persistent=False)

    def forward(self, x: Tensor, state: tuple[Tensor] | None = None) -> tuple[Tensor, tuple[Tensor]]:
        given = None
        if state is not None:
            given = x.new_zeros(1, x.shape[1], self.output_size), state[0]
        output, (_, c) = self.layer(x, given)
        return output, (c,)
