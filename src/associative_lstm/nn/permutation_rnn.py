"""The permutation RNN: a sequence as a sum of its permuted symbols."""

from typing import Any

import torch
from torch import Tensor

from associative_lstm.kernels import BACKENDS
from associative_lstm.kernels import permutation as permuted_sums
from associative_lstm.nn.baseline import RecurrentNetwork, draw_permutation
from associative_lstm.nn.checks import check_choice


class PermutationRNN(RecurrentNetwork):
    r"""Encode a sequence by the powers of a constant random permutation.

    .. math::
        h_t = P h_{t-1} + W x_t + b

    Only W, b and, where it is learned, h_0 are parameters: P is drawn once and saved with the module. Nothing
    in the recurrence is multiplied. In coordinates that turn with the sequence, :math:`g_t = P^{-t} h_t`, it is
    the cumulative sum :math:`g_t = g_{t-1} + P^{-t} (W x_t + b)`, which the reference computes without a loop
    over time.

    Args:
        input_size: the number n of features of ``x``.
        hidden_size: N_h.
        batch_first: ``x`` and ``output`` are ``(B, T, ...)``.
        learn_initial_state: h_0 is a parameter, instead of zero.
        backend: ``"fused"`` (compiled, CPU), ``"reference"``, or ``"auto"``. The numbers are the same.

    Inputs: ``x`` of shape ``(T, B, input_size)``, and optionally the state ``h``, ``(B, hidden_size)``.

    Outputs: ``output`` of shape ``(T, B, hidden_size)`` and the state ``h``, which is the last output.

    Attributes:
        permutation: ``(hidden_size,)``, int64, with ``(P h)[j] = h[permutation[j]]``.

    Example:
        >>> net = PermutationRNN(10, 256)
        >>> x = torch.randn(7, 2, 10)
        >>> output, h = net(x)
        >>> output.shape, h.shape
        (torch.Size([7, 2, 256]), torch.Size([2, 256]))
        >>> torch.allclose(net(x[4:], net(x[:4])[1])[1], h, atol=1e-6)
        True
    """

    permutation: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        batch_first: bool = False,
        learn_initial_state: bool = False,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, hidden_size, batch_first=batch_first)
        check_choice("backend", backend, BACKENDS)
        self.backend = backend
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight = torch.nn.Parameter(torch.empty(hidden_size, input_size, **factory))
        self.bias = torch.nn.Parameter(torch.empty(hidden_size, **factory))
        self.register_buffer("permutation", torch.empty(hidden_size, dtype=torch.int64, device=device))
        if learn_initial_state:
            self._learn_initial_state(**factory)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot-uniform weights, zero bias and initial state, and a new permutation."""
        draw_permutation(self.permutation)
        for parameter in self.parameters():
            torch.nn.init.zeros_(parameter)
        torch.nn.init.xavier_uniform_(self.weight)

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"h": (self.hidden_size,)}

    def _state(self, parts: list[Tensor]) -> Tensor:
        return parts[0]

    def _sequence(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        u = torch.nn.functional.linear(x, self.weight, self.bias)
        output = permuted_sums.sequence(u, parts[0], self.permutation, self.backend)
        return output, [output[-1]]
