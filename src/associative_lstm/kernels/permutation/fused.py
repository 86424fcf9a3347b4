r"""The permutation RNN's recurrence, compiled. A step is a permuted addition, so one pass over the data is all.

The gradient is the same recurrence backwards in time with the inverse permutation,
:math:`\partial u_t = P^{-1} \partial u_{t+1} + \partial h_t`, so that it can be differentiated again.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from associative_lstm.functional import check_permutations
from associative_lstm.kernels.compiler.runtime import announce_compilation, jit
from associative_lstm.kernels.compiler.threads import over_batch
from associative_lstm.kernels.fallback import in_forward_mode, is_batched
from associative_lstm.kernels.operators import check_floating, check_tensors, differentiable, operator
from associative_lstm.kernels.permutation import reference


@jit
def _loop(start, stop, u, h_0, order, backwards, output):
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
    check_floating("u", u)
    check_tensors([("u", u, u.shape), ("h_0", h_0, (B, H))], u.dtype)
    check_tensors([("permutation", permutation, (H,))], torch.int64)
    check_permutations("permutation", permutation)
    output = torch.empty(u.shape, dtype=u.dtype)
    order = permutation.contiguous().numpy().view(np.uint64)  # without a sign, none is looked for in the loop
    with announce_compilation("the permutation RNN,", str(u.dtype)):
        over_batch(
            _loop, B, u.contiguous().numpy(), h_0.contiguous().numpy(), order, backwards, output.numpy()
        )
    return output


def _save(ctx, inputs, output):
    ctx.save_for_backward(inputs[2])
    ctx.backwards = inputs[3]


def _differentiate(ctx, gradients, again):
    (grad,), (permutation,) = gradients, ctx.saved_tensors
    inverse = permutation.argsort()
    if in_forward_mode() or is_batched([grad]):
        again = _by_reference
    grad_u = again(grad, torch.zeros_like(grad[0]), inverse, not ctx.backwards)
    if not ctx.needs_input_grad[1]:
        return grad_u, None, None, None
    return grad_u, grad_u[-1 if ctx.backwards else 0].index_select(1, inverse), None, None


def _by_reference(u, h_0, permutation, backwards):
    sequence = reference.sequence
    return sequence(u.flip(0), h_0, permutation).flip(0) if backwards else sequence(u, h_0, permutation)


_sums_op = operator("permuted_sums", _sums, lambda u, *_: u.new_empty(u.shape))
_run: Callable = differentiable(
    _sums_op, _sums, _save, _differentiate, (_sums_op, lambda *inputs: _run(True, *inputs))
)


def sequence(u: Tensor, h_0: Tensor, permutation: Tensor, backwards: bool = False) -> Tensor:
    """h_t from h_{t-1}, or if ``backwards`` from h_{t+1}, for all t; see `reference.sequence`."""
    return _run(True, u, h_0, permutation, backwards)
