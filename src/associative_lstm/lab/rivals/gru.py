"""The gated recurrent unit (Cho et al., 2014)."""

from typing import Any

import torch
from torch import Tensor

from associative_lstm.nn.baseline import RecurrentNetwork
from associative_lstm.nn.checks import check_positive_int


class GRU(RecurrentNetwork):
    """Apply :class:`torch.nn.GRU`, which starts as PyTorch has it: all weights and biases uniform within
    1 / sqrt(hidden_size).

    Args:
        input_size: the number of features of ``x``.
        hidden_size: the numbers carried from step to step, per layer.
        num_layers: layers stacked, each reading the output of the one below.
        batch_first: ``x`` and ``output`` are ``(B, T, ...)``.
        learn_initial_state: h_0 is a parameter, instead of zero.

    Inputs: ``x`` of shape ``(T, B, input_size)``, and optionally the state h.

    Outputs: ``output`` of shape ``(T, B, hidden_size)`` and the state h, ``(num_layers, B, hidden_size)``.

    >>> output, h = GRU(10, 128)(torch.randn(5, 2, 10))
    >>> output.shape, h.shape
    (torch.Size([5, 2, 128]), torch.Size([1, 2, 128]))
    """

    batch_dim = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        batch_first: bool = False,
        learn_initial_state: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size, hidden_size, batch_first=batch_first)
        check_positive_int("num_layers", num_layers)
        self.num_layers = num_layers
        self.gru = torch.nn.GRU(input_size, hidden_size, num_layers)
        if learn_initial_state:
            self._learn_initial_state()
            torch.nn.init.zeros_(self.get_parameter("h_0"))

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"h": (self.num_layers, self.hidden_size)}

    def _state(self, parts: list[Tensor]) -> Any:
        return parts[0]

    def _sequence(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        output, h = self.gru(x, parts[0].contiguous())
        return output, [h]
