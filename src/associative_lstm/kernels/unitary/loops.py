r"""The unitary networks' recurrence for slices of the batch, compiled: all time steps forward, and back.

With :math:`D_k = \mathrm{diag}(e^{i \theta_k})` and the reflection :math:`R = I - 2 v v^\dagger / s`, s = v†v:

.. math::
    a &= F D_1 h_{t-1}, \qquad b = D_2 P R_1 a, \qquad c = F^{-1} b, \qquad z = D_3 R_2 c + u_t, \qquad h_t = f(z)

Back, gradients pass through the same matrices, conjugated and in reverse, because all are unitary. For an angle,
:math:`\partial L / \partial \theta = \mathrm{Im}(\bar y g)` with y what D is applied to and g the gradient of the
same. For a reflection y = R x, with :math:`p = v^\dagger x` and :math:`q = v^\dagger g`:

.. math::
    \partial L / \partial v = -\tfrac{2}{s} (\bar p g + \bar q x) + \tfrac{4}{s^2} \mathrm{Re}(p \bar q) v
"""

import math
from typing import NamedTuple

import numpy as np

from associative_lstm.kernels.compiler.fourier import Table, transform
from associative_lstm.kernels.compiler.runtime import inline, jit
from associative_lstm.kernels.unitary.reference import SMALLEST_MODULUS


class Constants(NamedTuple):
    """What is the same for all steps, or given for each."""

    cos: np.ndarray  # of the angles, (T, B, 3, n) or for all steps and items (1, 1, 3, n)
    sin: np.ndarray
    v: np.ndarray  # of the reflections, (2, N)
    factors: np.ndarray  # 2 / s
    permutation: np.ndarray
    bias: np.ndarray
    circle: Table  # of the transform


class Gradients(NamedTuple):
    """What is summed over steps comes in as zero, and so does ``h``, which goes out as the gradient of h_0."""

    u: np.ndarray
    h: np.ndarray
    angles: np.ndarray  # (T, B, 3, n) or (1, B, 3, n)
    v: np.ndarray  # (B, 2, N), without what comes through s
    s: np.ndarray  # (B, 2), the sum of Re(p conj(q))
    bias: np.ndarray  # (B, n)


@inline
def _turn(out, z, cos, sin, forth):
    """``out = exp(i angle) z``, or if not ``forth`` back by the same angle."""
    n = cos.shape[0]
    for j in range(n):
        re, im = z[j], z[n + j]
        s = sin[j] if forth else -sin[j]
        out[j] = cos[j] * re - s * im
        out[n + j] = s * re + cos[j] * im


@inline
def _project(v, x):
    """v† x."""
    n = v.shape[0] // 2
    re = im = v.dtype.type(0)
    for j in range(n):
        re += v[j] * x[j] + v[n + j] * x[n + j]
        im += v[j] * x[n + j] - v[n + j] * x[j]
    return re, im


@inline
def _reflect(out, x, v, factor):
    """``out = x - factor v (v† x)``; the projection v† x."""
    n = v.shape[0] // 2
    p_re, p_im = _project(v, x)
    for j in range(n):
        out[j] = x[j] - factor * (v[j] * p_re - v[n + j] * p_im)
        out[n + j] = x[n + j] - factor * (v[j] * p_im + v[n + j] * p_re)
    return p_re, p_im


@inline
def _turn_gradient(grad, y, g):
    """Add Im(conj(y) g)."""
    n = grad.shape[0]
    for j in range(n):
        grad[j] += y[j] * g[n + j] - y[n + j] * g[j]


@inline
def _reflect_gradient(grad, x, g, p_re, p_im, q_re, q_im, factor):
    """Add ``-factor (conj(p) g + conj(q) x)``."""
    n = grad.shape[0] // 2
    for j in range(n):
        re = p_re * g[j] + p_im * g[n + j] + q_re * x[j] + q_im * x[n + j]
        im = p_re * g[n + j] - p_im * g[j] + q_re * x[n + j] - q_im * x[j]
        grad[j] -= factor * re
        grad[n + j] -= factor * im


@jit
def forward(start, stop, u, h_0, constants, output, kept, work):
    """``kept`` are a, b, c and z of every step if it has room for them, and scratch space otherwise.

    ``work`` has two vectors for every item.
    """
    cos, sin, v, factors, permutation, bias, circle = constants
    T, n = u.shape[0], bias.shape[0]
    zero, smallest = bias.dtype.type(0), bias.dtype.type(SMALLEST_MODULUS)
    for b in range(start, stop):
        x, scratch = work[0, b], work[1, b]
        turn_b = b if cos.shape[1] > 1 else 0
        for t in range(T):
            turn_t = t if cos.shape[0] > 1 else 0
            keep = t if kept.shape[1] == T else 0
            angle_cos, angle_sin = cos[turn_t, turn_b], sin[turn_t, turn_b]
            _turn(x, h_0[b] if t == 0 else output[t - 1, b], angle_cos[0], angle_sin[0], True)
            transform(kept[0, keep, b], x, scratch, circle, False)
            _reflect(x, kept[0, keep, b], v[0], factors[0])
            for j in range(n):
                scratch[j], scratch[n + j] = x[permutation[j]], x[n + permutation[j]]
            _turn(kept[1, keep, b], scratch, angle_cos[1], angle_sin[1], True)
            transform(kept[2, keep, b], kept[1, keep, b], scratch, circle, True)
            _reflect(x, kept[2, keep, b], v[1], factors[1])
            z = kept[3, keep, b]
            _turn(z, x, angle_cos[2], angle_sin[2], True)
            for j in range(n):
                re, im = z[j] + u[t, b, j], z[n + j] + u[t, b, n + j]
                r = max(math.sqrt(re * re + im * im), smallest)
                scale = max(r + bias[j], zero) / r
                z[j], z[n + j] = re, im
                output[t, b, j], output[t, b, n + j] = scale * re, scale * im


@jit
def backward(start, stop, grad, h_0, constants, output, kept, work, gradients):
    """``work`` has three vectors for every item."""
    cos, sin, v, factors, permutation, bias, circle = constants
    grad_u, grad_h, grad_angles, grad_v, grad_s, grad_bias = gradients
    T, n = grad.shape[0], bias.shape[0]
    zero, smallest = bias.dtype.type(0), bias.dtype.type(SMALLEST_MODULUS)
    for b in range(start, stop):
        g, x, scratch = work[0, b], work[1, b], work[2, b]
        carry = grad_h[b]
        turn_b = b if cos.shape[1] > 1 else 0
        for t in range(T - 1, -1, -1):
            turn_t = t if cos.shape[0] > 1 else 0
            angle_cos, angle_sin, turned = cos[turn_t, turn_b], sin[turn_t, turn_b], grad_angles[turn_t, b]
            z = kept[3, t, b]
            for j in range(n):
                g_re, g_im = grad[t, b, j] + carry[j], grad[t, b, n + j] + carry[n + j]
                re, im = z[j], z[n + j]
                modulus = math.sqrt(re * re + im * im)
                r = max(modulus, smallest)
                along = (g_re * re + g_im * im) / r  # in the direction of z: what reaches the modulus
                active = r + bias[j] > 0
                scale = (r + bias[j]) / r if active else zero
                shrink = bias[j] * along / (r * r) if active and modulus > smallest else zero
                grad_u[t, b, j] = scale * g_re - shrink * re
                grad_u[t, b, n + j] = scale * g_im - shrink * im
                grad_bias[b, j] += along if active else zero
            _turn(g, grad_u[t, b], angle_cos[2], angle_sin[2], False)
            p_re, p_im = _reflect(x, kept[2, t, b], v[1], factors[1])
            _turn_gradient(turned[2], x, g)
            q_re, q_im = _reflect(x, g, v[1], factors[1])
            _reflect_gradient(grad_v[b, 1], kept[2, t, b], g, p_re, p_im, q_re, q_im, factors[1])
            grad_s[b, 1] += p_re * q_re + p_im * q_im
            transform(g, x, scratch, circle, False)
            _turn_gradient(turned[1], kept[1, t, b], g)
            _turn(x, g, angle_cos[1], angle_sin[1], False)
            for j in range(n):
                g[permutation[j]], g[n + permutation[j]] = x[j], x[n + j]
            p_re, p_im = _project(v[0], kept[0, t, b])
            q_re, q_im = _reflect(x, g, v[0], factors[0])
            _reflect_gradient(grad_v[b, 0], kept[0, t, b], g, p_re, p_im, q_re, q_im, factors[0])
            grad_s[b, 0] += p_re * q_re + p_im * q_im
            transform(g, x, scratch, circle, True)
            _turn(carry, g, angle_cos[0], angle_sin[0], False)
            _turn_gradient(turned[0], h_0[b] if t == 0 else output[t - 1, b], carry)
