"""The unitary networks' recurrence, compiled: one routine forward, one backward, over the whole sequence."""

import numpy as np
import torch
from torch import Tensor

from associative_lstm.functional import check_permutations
from associative_lstm.kernels.compiler.fourier import table
from associative_lstm.kernels.compiler.runtime import announce_compilation
from associative_lstm.kernels.compiler.threads import over_batch
from associative_lstm.kernels.derivatives import beyond_the_kernel, by_reference, wants_operator
from associative_lstm.kernels.unitary import loops, reference


def _check(
    u: Tensor, h_0: Tensor, angles: Tensor, reflections: Tensor, permutation: Tensor, bias: Tensor
) -> None:
    """Compiled code trusts its sizes and its permutation, so nothing else may reach it."""
    T, B, N = u.shape
    n = N // 2
    if N % 2 or N == 0:
        raise ValueError(f"u: expected an even width, got {N}")
    if angles.shape not in ((T, B, 3, n), (1, 1, 3, n)):
        raise ValueError(
            f"angles: expected shape {(T, B, 3, n)} or {(1, 1, 3, n)}, got {tuple(angles.shape)}"
        )
    expected = {"h_0": (h_0, (B, N)), "reflections": (reflections, (2, N)), "bias": (bias, (n,))}
    for name, (tensor, shape) in expected.items():
        if tuple(tensor.shape) != shape:
            raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")
    for name, tensor in {"h_0": h_0, "angles": angles, "reflections": reflections, "bias": bias}.items():
        if tensor.dtype != u.dtype or tensor.device != u.device:
            raise ValueError(
                f"{name}: expected {u.dtype} on {u.device}, got {tensor.dtype} on {tensor.device}"
            )
    if u.dtype not in (torch.float32, torch.float64) or u.device.type != "cpu":
        raise ValueError(f"u: expected float32 or float64 on the CPU, got {u.dtype} on {u.device}")
    if permutation.dtype != torch.int64 or permutation.device != u.device or permutation.shape != (n,):
        raise ValueError(f"permutation: expected {n} numbers of int64, got {tuple(permutation.shape)}")
    check_permutations("permutation", permutation)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.contiguous().numpy()


def _constants(angles: Tensor, reflections: Tensor, permutation: Tensor, bias: Tensor) -> loops.Constants:
    factors = 2 / reflections.square().sum(1)
    tensors = (angles.cos(), angles.sin(), reflections, factors, permutation, bias)
    circle = table(bias.shape[0], np.dtype(str(bias.dtype).removeprefix("torch.")))
    return loops.Constants(*[_array(tensor) for tensor in tensors], circle=circle)


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


_sequence_op = torch.library.custom_op("associative_lstm::unitary_sequence", _sequence, mutates_args=())


@_sequence_op.register_fake
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


_sequence_backward_op = torch.library.custom_op(
    "associative_lstm::unitary_sequence_backward", _sequence_backward, mutates_args=()
)


@_sequence_backward_op.register_fake
def _empty_gradients(grad, h_0, angles, reflections, permutation, bias, output, kept):
    return tuple(grad.new_empty(t.shape) for t in (output, h_0, angles, reflections, bias))


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:6], *output)


def _differentiate(ctx, grad, grad_kept, backward=_sequence_backward_op):
    if grad is None:
        return (None,) * 7
    u, *saved = ctx.saved_tensors
    if beyond_the_kernel([grad]):
        inputs, needed = [u, *saved[:5]], ctx.needs_input_grad[:6]
        return *by_reference(lambda *inputs: [reference.loop(*inputs)], inputs, needed, [grad]), None
    grad_u, grad_h, grad_angles, grad_reflections, grad_bias = backward(grad, *saved)
    return grad_u, grad_h, grad_angles, grad_reflections, None, grad_bias, None


_sequence_op.register_autograd(_differentiate, setup_context=_save)


class _Eager(torch.autograd.Function):
    """The same two routines without the operator's dispatch."""

    @staticmethod
    def forward(ctx, *inputs):
        output = _sequence(*inputs)
        _save(ctx, inputs, output)
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        return output

    @staticmethod
    def backward(ctx, *gradients):
        return _differentiate(ctx, *gradients, backward=_sequence_backward)


def sequence(
    u: Tensor, h_0: Tensor, angles: Tensor, reflections: Tensor, permutation: Tensor, bias: Tensor
) -> Tensor:
    """All h_t; see `unitary.sequence`."""
    differentiable = (u, h_0, angles, reflections, bias)
    keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in differentiable)
    inputs = (u, h_0, angles, reflections, permutation, bias, keep)
    if wants_operator(u):
        return _sequence_op(*inputs)[0]
    if keep:
        return _Eager.apply(*inputs)[0]
    return _sequence(*inputs)[0]
