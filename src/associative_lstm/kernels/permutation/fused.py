r"""The permutation RNN's recurrence, compiled. A step is a permuted addition, so one pass over the data is all.

The gradient is the same recurrence backwards in time with the inverse permutation,
:math:`\partial u_t = P^{-1} \partial u_{t+1} + \partial h_t`, so that it can be differentiated again.
"""

import numpy as np
import torch
from torch import Tensor

from associative_lstm.functional import check_permutations
from associative_lstm.kernels.compiler.runtime import announce_compilation, jit
from associative_lstm.kernels.compiler.threads import over_batch
from associative_lstm.kernels.derivatives import is_batched, wants_operator
from associative_lstm.kernels.permutation.reference import cumulative


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


def _sums(u: Tensor, h_0: Tensor, permutation: Tensor, backwards: bool) -> Tensor:
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
    check_permutations("permutation", permutation)
    output = torch.empty(u.shape, dtype=u.dtype)
    order = permutation.contiguous().numpy().view(np.uint64)  # without a sign, none is looked for in the loop
    with announce_compilation("the permutation RNN,", str(u.dtype)):
        over_batch(
            _run, B, u.contiguous().numpy(), h_0.contiguous().numpy(), order, backwards, output.numpy()
        )
    return output


_sums_op = torch.library.custom_op("associative_lstm::permuted_sums", _sums, mutates_args=())


@_sums_op.register_fake
def _(u, h_0, permutation, backwards):
    return u.new_empty(u.shape)


def _save(ctx, inputs, output):
    ctx.save_for_backward(inputs[2])
    ctx.backwards = inputs[3]


def _differentiate(ctx, grad, again=_sums_op):
    (permutation,) = ctx.saved_tensors
    inverse = permutation.argsort()
    if is_batched([grad]):
        again = _by_reference
    grad_u = again(grad, torch.zeros_like(grad[0]), inverse, not ctx.backwards)
    if not ctx.needs_input_grad[1]:
        return grad_u, None, None, None
    return grad_u, grad_u[-1 if ctx.backwards else 0].index_select(1, inverse), None, None


def _by_reference(u, h_0, permutation, backwards):
    return cumulative(u.flip(0), h_0, permutation).flip(0) if backwards else cumulative(u, h_0, permutation)


_sums_op.register_autograd(_differentiate, setup_context=_save)


class _Eager(torch.autograd.Function):
    """The same without the operator's dispatch, which takes as much time as everything else in a small step."""

    @staticmethod
    def forward(ctx, *inputs):
        output = _sums(*inputs)
        _save(ctx, inputs, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        return _differentiate(ctx, grad, again=permuted_sums)


def permuted_sums(u: Tensor, h_0: Tensor, permutation: Tensor, backwards: bool = False) -> Tensor:
    """h_t from h_{t-1}, or if ``backwards`` from h_{t+1}, for all t; see `permuted_sums.sequence`."""
    if wants_operator(u):
        return _sums_op(u, h_0, permutation, backwards)
    return _Eager.apply(u, h_0, permutation, backwards)
