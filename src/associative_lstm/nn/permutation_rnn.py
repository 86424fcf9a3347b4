"""The permutation RNN: a sequence as a sum of its permuted symbols."""

from typing import Any

import torch
from torch import Tensor

from associative_lstm.nn._recurrent import RecurrentNetwork


class _Reorder(torch.autograd.Function):
    """``x[:, order]``; the gradient is ``grad[:, inverse]``, which is faster than a general scatter."""

    @staticmethod
    def forward(x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        return x.index_select(1, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1], inputs[2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        order, inverse = ctx.saved_tensors
        return _Reorder.apply(grad, inverse, order), None, None


def powers(permutation: Tensor, count: int) -> Tensor:
    """Column t - 1 is the order of P^t, for t from 1 to ``count``, found by doubling.

    >>> powers(torch.tensor([1, 2, 0]), 4)
    tensor([[1, 2, 0, 1],
            [2, 0, 1, 2],
            [0, 1, 2, 0]])
    """
    found = permutation.unsqueeze(1)
    while (done := found.shape[1]) < count:
        more = found[:, : count - done].index_select(0, found[:, -1])  # P^(t + done) h = P^t P^done h
        found = torch.cat([found, more], dim=1)
    return found


class PermutationRNN(RecurrentNetwork):
    r"""Encode a sequence by the powers of a constant random permutation.

    .. math::
        h_t = P h_{t-1} + W x_t + b

    Only W, b and, where it is learned, h_0 are parameters: P is drawn once and saved with the module. There
    is no loop over time: in coordinates that turn with the sequence, :math:`g_t = P^{-t} h_t`, the recurrence
    is the cumulative sum :math:`g_t = g_{t-1} + P^{-t} (W x_t + b)`.

    Args:
        input_size: the number n of features of ``x``.
        hidden_size: N_h.
        batch_first: ``x`` and ``output`` are ``(B, T, ...)``.
        learn_initial_state: h_0 is a parameter, instead of zero.

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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, hidden_size, batch_first=batch_first)
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight = torch.nn.Parameter(torch.empty(hidden_size, input_size, **factory))
        self.bias = torch.nn.Parameter(torch.empty(hidden_size, **factory))
        self.register_buffer("permutation", torch.randperm(hidden_size, device=device))
        if learn_initial_state:
            self._learn_initial_state(**factory)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot-uniform weights, zero bias and initial state. The permutation stays."""
        for parameter in self.parameters():
            torch.nn.init.zeros_(parameter)
        torch.nn.init.xavier_uniform_(self.weight)

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"h": (self.hidden_size,)}

    def _state(self, parts: list[Tensor]) -> Tensor:
        return parts[0]

    def _sequence(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        (h_0,) = parts
        T, B, H = len(x), x.shape[1], self.hidden_size
        steps = torch.arange(T, device=x.device)
        # h_t[j] = g_t[p_t[j]] with p_t the order of P^t, g with time last (where a cumulative sum is fast)
        forth = (powers(self.permutation, T) * T + steps).T.flatten()
        back = torch.empty_like(forth).scatter_(0, forth, torch.arange(T * H, device=x.device))
        u = torch.nn.functional.linear(x.transpose(0, 1), self.weight, self.bias)
        turned = _Reorder.apply(u.reshape(B, T * H), back, forth).view(B, H, T)
        g = turned.cumsum(2) + h_0.unsqueeze(2)
        h = _Reorder.apply(g.view(B, T * H), forth, back).view(B, T, H).transpose(0, 1)
        return h, [h[-1]]
