"""One step of an Associative LSTM."""

import torch
from torch import Tensor, nn

from associative_lstm.functional import check_permutations
from associative_lstm.kernels.associative import reference
from associative_lstm.nn.associative_base import AssociativeBase, AssociativeLSTMState
from associative_lstm.nn.checks import check_input, check_pair, check_state, float_precision
from associative_lstm.nn.options import Options


class AssociativeLSTMCell(AssociativeBase):
    r"""Compute one step of an Associative LSTM.

    .. math::
        \hat g_f, \hat g_i, \hat g_o, \hat r_i, \hat r_o &= W_{xh} x_t + W_{hh} h_{t-1} + b_h \\
        \hat u &= W_{xu} x_t + W_{hu} h_{t-1} + b_u \\
        g_f, g_i, g_o &= \sigma(\hat g_f), \sigma(\hat g_i), \sigma(\hat g_o) \\
        u, r_i, r_o &= \mathrm{bound}(\hat u), \mathrm{bound}(\hat r_i), \mathrm{bound}(\hat r_o) \\
        c_{s,t} &= g_f \odot c_{s,t-1} + \sum_{heads} (P_s r_i) \circledast (g_i \odot u) \\
        h_t &= g_o \odot \mathrm{bound}\Big(\frac{1}{N_{copies}} \sum_{s} (P_s r_o) \circledast c_{s,t}\Big)

    The arguments are those of `AssociativeLSTM`, which is the one to use for sequences.

    Inputs: x ``(B, input_size)`` or ``(input_size,)``; optionally the state (h, c), h
    ``(B, num_heads * hidden_size)``, c ``(B, num_copies, hidden_size)``; zeros if not given.

    Outputs: the next state, `AssociativeLSTMState` (h, c) of these shapes.

    >>> cell = AssociativeLSTMCell(10, 32, num_copies=4)
    >>> h, c = cell(torch.randn(2, 10))
    >>> h, c = cell(torch.randn(2, 10), (h, c))
    >>> h.shape, c.shape
    (torch.Size([2, 32]), torch.Size([2, 4, 32]))
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None
    permutations: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        num_copies: int = 1,
        num_heads: int = 1,
        recurrent_update: bool = True,
        activation: str = "bound",
        start: str = "fast",
        key_init: str | None = None,
        forget_bias: float | str | None = None,
        update_init: float | str | None = None,
        horizon: int = 120,
        permutation: str = "random",
        rotation: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        options = Options(
            input_size, hidden_size, bias, num_copies, num_heads, recurrent_update, activation,
            start, key_init, forget_bias, update_init, horizon, permutation, rotation,
        )  # fmt: skip
        super().__init__(options, dtype)
        self._add_direction("", input_size, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the permutations, then the weights, then angles anew (see `AssociativeLSTM`)."""
        self._draw_permutations("")
        self._reset_direction("")
        self._draw_angles("")

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> AssociativeLSTMState:
        if not isinstance(x, Tensor):
            raise TypeError(f"x: expected a tensor, got {type(x).__name__}")
        if x.dim() not in (1, 2):
            raise ValueError(f"x: expected (B, input_size) or (input_size,), got shape {tuple(x.shape)}")
        check_input(x, self.input_size, self.weight_ih)
        shapes = (*x.shape[:-1], self.read_size), (*x.shape[:-1], self.num_copies, self.hidden_size)
        if state is None:
            h, c = (self.weight_ih.new_zeros(shape) for shape in shapes)
        else:
            check_pair(("h", "c"), state)
            h, c = state
            check_state("h", h, shapes[0], self.weight_ih)
            check_state("c", c, shapes[1], self.weight_ih)
        batched = x.dim() == 2
        if not batched:
            x, h, c = x.unsqueeze(0), h.unsqueeze(0), c.unsqueeze(0)
        with float_precision(x):
            x = x.to(self.weight_ih.dtype)
            z = nn.functional.linear(x, self.weight_ih, self.bias)
            z = z + reference.recurrent(h, self.weight_hh, self.rows.total)
            check_permutations("permutations", self.permutations)
            turns = reference.turns_of(getattr(self, "angles", None), self.permutations)
            h, c = reference.step(z, c, self.permutations, self.num_heads, self.activation, turns)
        return AssociativeLSTMState(h, c) if batched else AssociativeLSTMState(h[0], c[0])
