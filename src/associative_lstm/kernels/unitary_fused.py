"""The unitary networks' recurrence, compiled: one routine forward, one backward, over the whole sequence."""

import math

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.function import once_differentiable

from associative_lstm.kernels.products import add_products
from associative_lstm.kernels.runtime import announce_compilation, inline, jit, over_batch
from associative_lstm.kernels.unitary import SMALLEST_MODULUS


@inline
def _turn(out, z, cos, sin, forth):
    """``out = exp(i angle) z``, or if not ``forth`` back by the same angle."""
    half = cos.shape[0]
    for j in range(half):
        re, im = z[j], z[half + j]
        s = sin[j] if forth else -sin[j]
        out[j] = cos[j] * re - s * im
        out[half + j] = s * re + cos[j] * im


@jit
def _forward(start, stop, u, h_0, transposed, cos, sin, bias, smallest, output, z, a):
    """``z`` and ``a`` keep every step if they have room for them, and are scratch space otherwise.

    a[k] is D_k applied, and ``transposed[k]`` is A_{k+1} with its columns as rows.
    """
    T, K, half = u.shape[0], transposed.shape[0], bias.shape[0]
    turning = cos.shape[0] > 0
    zero = bias.dtype.type(0)
    for t in range(T):
        keep = t if z.shape[0] == T else 0
        h = h_0[start:stop] if t == 0 else output[t - 1, start:stop]
        product = z[keep, start:stop]
        for k in range(K):
            turned = h
            if turning:
                turned = a[k, keep, start:stop]
                for b in range(start, stop):
                    _turn(turned[b - start], h[b - start], cos[t, b, k], sin[t, b, k], True)
            product[:] = 0
            add_products(product, transposed[k], turned)
            h = product
        for b in range(start, stop):
            if turning:
                _turn(a[K, keep, b], product[b - start], cos[t, b, K], sin[t, b, K], True)
                product[b - start, :] = a[K, keep, b]
            for j in range(half):
                re = product[b - start, j] + u[t, b, j]
                im = product[b - start, half + j] + u[t, b, half + j]
                r = max(math.sqrt(re * re + im * im), smallest)
                scale = max(r + bias[j], zero) / r
                product[b - start, j], product[b - start, half + j] = re, im
                output[t, b, j], output[t, b, half + j] = scale * re, scale * im


@jit
def _backward(
    start,
    stop,
    grad,
    matrices,
    cos,
    sin,
    bias,
    smallest,
    z,
    a,
    grad_u,
    grad_products,
    grad_angles,
    grad_bias,
    carry,
):
    """``carry`` comes in as zero, holds the gradient of h_{t-1} between steps, and goes out as that of h_0."""
    T, K, half = z.shape[0], matrices.shape[0], bias.shape[0]
    turning = cos.shape[0] > 0
    zero = bias.dtype.type(0)
    for t in range(T - 1, -1, -1):
        for b in range(start, stop):
            for j in range(half):
                g_re, g_im = grad[t, b, j] + carry[b, j], grad[t, b, half + j] + carry[b, half + j]
                re, im = z[t, b, j], z[t, b, half + j]
                modulus = math.sqrt(re * re + im * im)
                r = max(modulus, smallest)
                along = (g_re * re + g_im * im) / r  # in the direction of z: what reaches the modulus
                active = r + bias[j] > 0
                scale = (r + bias[j]) / r if active else zero
                shrink = bias[j] * along / (r * r) if active and modulus > smallest else zero
                grad_u[t, b, j] = scale * g_re - shrink * re
                grad_u[t, b, half + j] = scale * g_im - shrink * im
                grad_bias[b, j] += along if active else zero
        grad_z = grad_u[t]
        if turning:
            for b in range(start, stop):
                for j in range(half):
                    grad_angles[t, b, K, j] = (
                        grad_z[b, half + j] * a[K, t, b, j] - grad_z[b, j] * a[K, t, b, half + j]
                    )
                _turn(grad_products[K - 1, t, b], grad_z[b], cos[t, b, K], sin[t, b, K], False)
        else:
            grad_products[K - 1, t, start:stop] = grad_z[start:stop]
        for k in range(K - 1, -1, -1):
            carry[start:stop] = 0
            add_products(carry[start:stop], matrices[k], grad_products[k, t, start:stop])
            if turning:
                for b in range(start, stop):
                    for j in range(half):
                        grad_angles[t, b, k, j] = (
                            carry[b, half + j] * a[k, t, b, j] - carry[b, j] * a[k, t, b, half + j]
                        )
                    _turn(carry[b], carry[b], cos[t, b, k], sin[t, b, k], False)
            if k > 0:
                grad_products[k - 1, t, start:stop] = carry[start:stop]


def _check(u: Tensor, h_0: Tensor, matrices: Tensor, angles: Tensor | None, bias: Tensor) -> None:
    """Compiled code trusts its sizes, so nothing else may reach it."""
    T, B, N = u.shape
    K = matrices.shape[0]
    expected = {"h_0": (h_0, (B, N)), "matrices": (matrices, (K, N, N)), "bias": (bias, (N // 2,))}
    if angles is not None:
        expected["angles"] = (angles, (T, B, K + 1, N // 2))
    if N % 2 or K < 1 or (K > 1 and angles is None):
        raise ValueError(f"u: expected an even width and at least one matrix, got {N} and {K}")
    for name, (tensor, shape) in expected.items():
        if tuple(tensor.shape) != shape:
            raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")
        if tensor.dtype != u.dtype or tensor.device != u.device:
            raise ValueError(
                f"{name}: expected {u.dtype} on {u.device}, got {tensor.dtype} on {tensor.device}"
            )
    if u.dtype not in (torch.float32, torch.float64) or u.device.type != "cpu":
        raise ValueError(f"u: expected float32 or float64 on the CPU, got {u.dtype} on {u.device}")


def _turns(u: Tensor, angles: Tensor | None) -> tuple[np.ndarray, np.ndarray]:
    if angles is None:
        angles = u.new_empty(0, 0, 0, 0)
    return _array(angles.cos()), _array(angles.sin())


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.contiguous().numpy()


def _smallest(u: Tensor) -> np.floating:
    return np.float32(SMALLEST_MODULUS) if u.dtype == torch.float32 else np.float64(SMALLEST_MODULUS)


def _sequence(
    u: Tensor, h_0: Tensor, matrices: Tensor, angles: Tensor | None, bias: Tensor, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs, and what the way back needs: z and the turned vectors of every step, if ``keep``."""
    _check(u, h_0, matrices, angles, bias)
    output, z, a = _empty(u, h_0, matrices, angles, bias, keep)
    with announce_compilation("the unitary RNN, forward,", str(u.dtype)):
        over_batch(
            _forward,
            u.shape[1],
            _array(u),
            _array(h_0),
            _array(matrices.transpose(1, 2)),
            *_turns(u, angles),
            _array(bias),
            _smallest(u),
            output.numpy(),
            z.numpy(),
            a.numpy(),
        )
    return output, z, a


_sequence_op = torch.library.custom_op("associative_lstm::unitary_sequence", _sequence, mutates_args=())


@_sequence_op.register_fake
def _empty(
    u: Tensor, h_0: Tensor, matrices: Tensor, angles: Tensor | None, bias: Tensor, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    T, B, N = u.shape
    steps, vectors = (T if keep else 1), (0 if angles is None else matrices.shape[0] + 1)
    return u.new_empty(T, B, N), u.new_empty(steps, B, N), u.new_empty(vectors, steps, B, N)


def _sequence_backward(
    grad: Tensor,
    h_0: Tensor,
    matrices: Tensor,
    angles: Tensor | None,
    bias: Tensor,
    output: Tensor,
    z: Tensor,
    a: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    T, B, N = grad.shape
    K = matrices.shape[0]
    grad_u, carry = torch.empty_like(z), torch.zeros_like(h_0, memory_format=torch.contiguous_format)
    grad_products = grad.new_empty(K, T, B, N)
    grad_angles = grad.new_empty(0, 0, 0, 0) if angles is None else grad.new_empty(angles.shape)
    grad_bias = grad.new_zeros(B, N // 2)
    with announce_compilation("the unitary RNN, backward,", str(grad.dtype)):
        over_batch(
            _backward,
            B,
            _array(grad),
            _array(matrices),
            *_turns(grad, angles),
            _array(bias),
            _smallest(grad),
            z.numpy(),
            a.numpy(),
            grad_u.numpy(),
            grad_products.numpy(),
            grad_angles.numpy(),
            grad_bias.numpy(),
            carry.numpy(),
        )
    entering = torch.cat([h_0.unsqueeze(0), output[:-1]]).unsqueeze(0) if angles is None else a[:K]
    pairs = zip(grad_products.flatten(1, 2), entering.flatten(1, 2), strict=True)
    grad_matrices = torch.stack([g.T @ v for g, v in pairs])  # a batched product takes three times as long
    return grad_u, carry, grad_matrices, grad_angles, grad_bias.sum(0)


_sequence_backward_op = torch.library.custom_op(
    "associative_lstm::unitary_sequence_backward", _sequence_backward, mutates_args=()
)


@_sequence_backward_op.register_fake
def _empty_gradients(grad, h_0, matrices, angles, bias, output, z, a):
    grad_angles = grad.new_empty(0, 0, 0, 0) if angles is None else grad.new_empty(angles.shape)
    return (
        torch.empty_like(z),
        h_0.new_empty(h_0.shape),
        matrices.new_empty(matrices.shape),
        grad_angles,
        bias.new_empty(bias.shape),
    )


def _save(ctx, inputs, output):
    _, h_0, matrices, angles, bias, _ = inputs
    ctx.turning = angles is not None
    ctx.save_for_backward(h_0, matrices, angles, bias, *output)


def _differentiate(ctx, grad, grad_z, grad_a, backward=_sequence_backward_op):
    if grad is None:
        return (None,) * 6
    grad_u, grad_h_0, grad_matrices, grad_angles, grad_bias = backward(grad, *ctx.saved_tensors)
    return grad_u, grad_h_0, grad_matrices, grad_angles if ctx.turning else None, grad_bias, None


_sequence_op.register_autograd(_differentiate, setup_context=_save)


class _Eager(torch.autograd.Function):
    """The same two routines without the operator's dispatch."""

    @staticmethod
    def forward(ctx, *inputs):
        output = _sequence(*inputs)
        _save(ctx, inputs, output)
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients):
        return _differentiate(ctx, *gradients, backward=_sequence_backward)


def sequence(u: Tensor, h_0: Tensor, matrices: Tensor, angles: Tensor | None, bias: Tensor) -> Tensor:
    """All h_t; see `unitary.sequence`."""
    inputs = [tensor for tensor in (u, h_0, matrices, angles, bias) if tensor is not None]
    keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)
    if torch.compiler.is_compiling() or isinstance(u, FakeTensor):
        return _sequence_op(u, h_0, matrices, angles, bias, keep)[0]
    if keep:
        return _Eager.apply(u, h_0, matrices, angles, bias, keep)[0]
    return _sequence(u, h_0, matrices, angles, bias, keep)[0]
