r"""The permutation RNN's recurrence, compiled. A step is a permuted addition, so one pass over the data is all.

The gradient is the same recurrence backwards in time with the inverse permutation,
:math:`\partial u_t = P^{-1} \partial u_{t+1} + \partial h_t`, so that it can be differentiated again.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from associative_lstm.kernels.runtime import announce_compilation, jit, over_batch


@jit
def _run(start, stop, u, h_0, order, backwards, output):
    T, H = u.shape[0], u.shape[2]
    for s in range(T):
        t = T - 1 - s if backwards else s
        before = t + 1 if backwards else t - 1
        for b in range(start, stop):
            h = h_0[b] if s == 0 else output[before, b]
            u_t, h_t = u[t, b], output[t, b]
            for j in range(H):
                h_t[j] = h[order[j]] + u_t[j]


# Defined and differentiated by hand: with `custom_op` and its autograd, as much time would go into the call as into
# everything else.
torch.library.define(
    "associative_lstm::permuted_sums", "(Tensor u, Tensor h_0, Tensor permutation, bool backwards) -> Tensor"
)


@torch.library.impl("associative_lstm::permuted_sums", "cpu")
def _operator(u: Tensor, h_0: Tensor, permutation: Tensor, backwards: bool) -> Tensor:
    _, B, H = u.shape
    if u.dtype not in (torch.float32, torch.float64) or u.device.type != "cpu":
        raise ValueError(f"u: expected float32 or float64 on the CPU, got {u.dtype} on {u.device}")
    if tuple(h_0.shape) != (B, H) or h_0.dtype != u.dtype or h_0.device != u.device:
        raise ValueError(
            f"h_0: expected {(B, H)}, {u.dtype}, got {tuple(h_0.shape)}, {h_0.dtype} on {h_0.device}"
        )
    if tuple(permutation.shape) != (H,) or permutation.dtype != torch.int64:
        raise ValueError(
            f"permutation: expected {H} int64, got {tuple(permutation.shape)} {permutation.dtype}"
        )
    least, most = torch.aminmax(permutation)
    if least < 0 or most >= H:
        raise ValueError(f"permutation: expected the numbers 0 to {H - 1}, got others")
    output = torch.empty(u.shape, dtype=u.dtype)
    order = permutation.contiguous().numpy().view(np.uint64)  # without a sign, none is looked for in the loop
    with announce_compilation("permutation RNN", str(u.dtype)):
        over_batch(
            _run, B, u.contiguous().numpy(), h_0.contiguous().numpy(), order, backwards, output.numpy()
        )
    return output


@torch.library.register_fake("associative_lstm::permuted_sums")
def _(u, h_0, permutation, backwards):
    return u.new_empty(u.shape)


class _PermutedSums(torch.autograd.Function):
    @staticmethod
    def forward(u: Tensor, h_0: Tensor, permutation: Tensor, backwards: bool) -> Tensor:
        return torch.ops.associative_lstm.permuted_sums.default(u, h_0, permutation, backwards)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[2])
        ctx.backwards = inputs[3]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        (permutation,) = ctx.saved_tensors
        inverse = torch.empty_like(permutation)
        inverse[permutation] = torch.arange(len(permutation), device=permutation.device)
        grad_u = _PermutedSums.apply(grad, torch.zeros_like(grad[0]), inverse, not ctx.backwards)
        if not ctx.needs_input_grad[1]:
            return grad_u, None, None, None
        return grad_u, grad_u[-1 if ctx.backwards else 0].index_select(1, inverse), None, None


def permuted_sums(u: Tensor, h_0: Tensor, permutation: Tensor, backwards: bool = False) -> Tensor:
    """h_t from h_{t-1}, or if ``backwards`` from h_{t+1}, for all t; see `permuted_sums.sequence`."""
    return _PermutedSums.apply(u, h_0, permutation, backwards)
