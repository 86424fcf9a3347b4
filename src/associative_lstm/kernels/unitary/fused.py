"""The unitary networks' recurrence, compiled: one routine forward, one backward, over the whole sequence."""

import numpy as np
import torch
from torch import Tensor

from associative_lstm.functional import check_permutations
from associative_lstm.kernels.compiler.fourier import table
from associative_lstm.kernels.compiler.runtime import announce_compilation
from associative_lstm.kernels.compiler.threads import over_batch
from associative_lstm.kernels.fallback import beyond_the_kernel, by_reference
from associative_lstm.kernels.operators import (
    check_floating,
    check_tensors,
    differentiable,
    needs_gradient,
    operator,
)
from associative_lstm.kernels.unitary import loops, reference


def _check(
    u: Tensor, h_0: Tensor, angles: Tensor, reflections: Tensor, permutation: Tensor, bias: Tensor
) -> None:
    T, B, N = u.shape
    n = N // 2
    check_floating("u", u)
    if N % 2 or N == 0:
        raise ValueError(f"u: expected an even width, got {N}")
    of_angles = (1, 1, 3, n) if angles.shape[:2] == (1, 1) else (T, B, 3, n)
    expected = [
        ("u", u, (T, B, N)),
        ("h_0", h_0, (B, N)),
        ("angles", angles, of_angles),
        ("reflections", reflections, (2, N)),
        ("bias", bias, (n,)),
    ]
    check_tensors(expected, u.dtype)
    check_tensors([("permutation", permutation, (n,))], torch.int64)
    check_permutations("permutation", permutation)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.contiguous().numpy()


def _constants(angles: Tensor, reflections: Tensor, permutation: Tensor, bias: Tensor) -> loops.Constants:
    factors = 2 / reflections.square().sum(1)
    tensors = (angles.cos(), angles.sin(), reflections, factors, permutation, bias)
    circle = table(bias.shape[0], np.dtype(str(bias.dtype).removeprefix("torch.")))
    return loops.Constants._make([*map(_array, tensors), circle])


def _sequence(
    u: Tensor,
    h_0: Tensor,
    angles: Tensor,
    reflections: Tensor,
    permutation: Tensor,
    bias: Tensor,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    """The outputs, and what the way back needs of every step, if ``keep``."""
    _check(u, h_0, angles, reflections, permutation, bias)
    output, kept = _empty(u, h_0, angles, reflections, permutation, bias, keep)
    with announce_compilation("the unitary RNN, forward,", str(u.dtype)):
        over_batch(
            loops.forward,
            u.shape[1],
            _array(u),
            _array(h_0),
            _constants(angles, reflections, permutation, bias),
            output.numpy(),
            kept.numpy(),
            u.new_empty(2, *h_0.shape).numpy(),
        )
    return output, kept


def _empty(u, h_0, angles, reflections, permutation, bias, keep):
    T, B, N = u.shape
    return u.new_empty(T, B, N), u.new_empty(4, T if keep else 1, B, N)


def _sequence_backward(
    grad: Tensor,
    h_0: Tensor,
    angles: Tensor,
    reflections: Tensor,
    permutation: Tensor,
    bias: Tensor,
    output: Tensor,
    kept: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    T, B, N = grad.shape
    n = N // 2
    _check(grad, h_0, angles, reflections, permutation, bias)
    for name, tensor, shape in (("output", output, (T, B, N)), ("kept", kept, (4, T, B, N))):
        if tuple(tensor.shape) != shape or tensor.dtype != grad.dtype or not tensor.is_contiguous():
            raise ValueError(
                f"{name}: expected {shape} of {grad.dtype}, got {tuple(tensor.shape)} of {tensor.dtype}: "
                "was the forward pass recorded without gradients?"
            )
    grad_u, grad_h = grad.new_empty(T, B, N), grad.new_zeros(B, N)
    grad_angles = grad.new_zeros(angles.shape[0], B, 3, n)
    grad_v, grad_s, grad_bias = grad.new_zeros(B, 2, N), grad.new_zeros(B, 2), grad.new_zeros(B, n)
    with announce_compilation("the unitary RNN, backward,", str(grad.dtype)):
        over_batch(
            loops.backward,
            B,
            _array(grad),
            _array(h_0),
            _constants(angles, reflections, permutation, bias),
            output.numpy(),
            kept.numpy(),
            grad.new_empty(3, B, N).numpy(),
            loops.Gradients(*(t.numpy() for t in (grad_u, grad_h, grad_angles, grad_v, grad_s, grad_bias))),
        )
    if angles.shape[1] != B:
        grad_angles = grad_angles.sum(1, keepdim=True)
    s = reflections.square().sum(1)
    along = (4 * grad_s.sum(0) / (s * s)).unsqueeze(1) * reflections
    return grad_u, grad_h, grad_angles, grad_v.sum(0) + along, grad_bias.sum(0)


def _empty_gradients(grad, h_0, angles, reflections, permutation, bias, output, kept):
    return tuple(grad.new_empty(t.shape) for t in (output, h_0, angles, reflections, bias))


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:6], *output)
    ctx.set_materialize_grads(False)


def _differentiate(ctx, gradients, backward):
    grad, _ = gradients
    if grad is None:
        return (None,) * 7
    u, *saved = ctx.saved_tensors
    if beyond_the_kernel([grad]):
        inputs, needed = [u, *saved[:5]], ctx.needs_input_grad[:6]
        return *by_reference(lambda *inputs: [reference.sequence(*inputs)], inputs, needed, [grad]), None
    grad_u, grad_h, grad_angles, grad_reflections, grad_bias = backward(grad, *saved)
    return grad_u, grad_h, grad_angles, grad_reflections, None, grad_bias, None


_sequence_op = operator("unitary_sequence", _sequence, _empty)
_sequence_backward_op = operator("unitary_sequence_backward", _sequence_backward, _empty_gradients)
_run = differentiable(
    _sequence_op, _sequence, _save, _differentiate, (_sequence_backward_op, _sequence_backward)
)


def sequence(
    u: Tensor, h_0: Tensor, angles: Tensor, reflections: Tensor, permutation: Tensor, bias: Tensor
) -> Tensor:
    """All h_t; see `reference.sequence`."""
    keep = needs_gradient(u, h_0, angles, reflections, bias)
    return _run(keep, u, h_0, angles, reflections, permutation, bias, keep)[0]
