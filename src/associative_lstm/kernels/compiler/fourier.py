r"""The unitary discrete Fourier transform of one vector, for use inside compiled kernels.

.. math::
    y_k = \frac{1}{\sqrt n} \sum_j e^{-2 \pi i j k / n} x_j

of n complex numbers as real pairs. If n is a power of two it takes log n passes, and otherwise a product with the
matrix.

All passes have the same geometry (Pease, 1968): elements i and i + n/2 are read, 2 i and 2 i + 1 written. So all of
them read and write vectors, where those of other orders have strides of 1, 2, 4 numbers. The result comes with the
bits of its index reversed.
"""

import functools
import math

import numpy as np

from associative_lstm.kernels.compiler.runtime import inline
from associative_lstm.kernels.compiler.simd import load, store_pairs, width

Table = tuple[np.ndarray, np.ndarray, np.ndarray]


@functools.cache
def table(n: int, dtype: np.dtype) -> Table:
    """What :func:`transform` needs to know of n: cosines, sines, and the reversed indices.

    The angles are those of the passes, one after the other, or without reversed indices those of the matrix.
    """
    k = np.arange(n)
    passes = n.bit_length() - 1
    if n != 2**passes:
        angles, reverse = (np.outer(k, k) % n).ravel(), k[:0]
    else:
        half = k[: n // 2]
        angles = np.concatenate([half >> p << p for p in range(passes)] or [half])
        reverse = sum(((k >> p & 1) << (passes - 1 - p) for p in range(passes)), start=np.zeros_like(k))
    turns = (2 * np.pi / n) * angles
    return np.cos(turns).astype(dtype), np.sin(turns).astype(dtype), reverse


@inline
def transform(y, x, scratch, circle, inverse):
    """``y`` becomes the transform of ``x``, or the ``inverse`` one; all ``(2n,)``. ``x`` is left as it is.

    The inverse is the transform with the parts exchanged before and after.
    """
    cos, sin, reverse = circle
    n = x.shape[0] // 2
    re = n if inverse else 0
    im = n - re
    scale = x.dtype.type(1 / math.sqrt(n))
    if reverse.shape[0] == n:
        source = _passes(y, x, scratch, cos, sin, 2 if inverse else 0, 0 if inverse else 2)
        for k in range(n):
            y[k] = scale * source[reverse[k]]
            y[n + k] = scale * source[n + reverse[k]]
        return
    y[:] = 0
    for j in range(n):
        a_re, a_im = scale * x[re + j], scale * x[im + j]
        for k in range(n):
            c, s = cos[n * j + k], sin[n * j + k]
            y[re + k] += c * a_re + s * a_im
            y[im + k] += c * a_im - s * a_re


@inline
def _passes(y, x, scratch, cos, sin, re, im):
    """Where the transform is, its bits reversed and not scaled: ``scratch``, or if n is 1 ``x``.

    Rows are of n/2 numbers; ``re`` and ``im`` are those where the two parts begin.
    """
    half = x.shape[0] // 4
    source, passes = x, 0
    while half >> passes > 0:
        passes += 1
    for p in range(passes):
        target = scratch if (passes - p) % 2 == 1 else y  # so that the last one is scratch
        for j in range(0, half, width(x)):
            a_re, a_im = load(source, re, j, half, half - j), load(source, im, j, half, half - j)
            b_re, b_im = load(source, re + 1, j, half, half - j), load(source, im + 1, j, half, half - j)
            c, s = load(cos, p, j, half, half - j), load(sin, p, j, half, half - j)
            d_re, d_im = a_re - b_re, a_im - b_im
            store_pairs(target, re, j, half, half - j, a_re + b_re, c * d_re + s * d_im)
            store_pairs(target, im, j, half, half - j, a_im + b_im, c * d_im - s * d_re)
        source = target
    return source
