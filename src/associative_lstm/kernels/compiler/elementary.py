r"""``exp``, ``sigmoid`` and ``tanh`` from plain arithmetic, so that loops over them can be vectorised.

The C library's ``exp`` is a call per number, and was the largest part of a step. Here

.. math:: e^x = 2^n e^r, \qquad n = \mathrm{round}(x / \ln 2), \quad r = x - n \ln 2, \quad |r| \le (\ln 2) / 2

with a Taylor polynomial for :math:`e^r - 1` (its error is below the last place) and :math:`2^n` put together
from its bits. A number's result does not depend on its neighbours. NaN gives NaN.

These functions run inside compiled code only, on a ``float32`` or ``float64`` or a `simd.Vector` of them.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from associative_lstm.kernels.compiler.simd import Vector, reciprocal, select_greater, spread

_OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy"}


def _element(x: types.Type) -> types.Type:
    return x.element if isinstance(x, Vector) else x


@intrinsic
def _power_of_two(typingctx, shifted):
    """2^n of ``shifted`` = n + 1.5 * 2^mantissa_bits, whose lowest bits are those of the integer n."""
    mantissa, bias = (23, 127) if _element(shifted) == types.float32 else (52, 1023)

    def codegen(context, builder, signature, args):
        integer = ir.IntType(32 if mantissa == 23 else 64)
        if not isinstance(shifted, Vector):
            shift, one = integer(mantissa), integer(bias << mantissa)
        else:
            kind, lanes = ir.VectorType(integer, shifted.lanes), shifted.lanes
            shift = ir.Constant(kind, [integer(mantissa)] * lanes)
            one = ir.Constant(kind, [integer(bias << mantissa)] * lanes)
        n = builder.bitcast(args[0], shift.type)
        return builder.bitcast(builder.add(builder.shl(n, shift), one), args[0].type)

    return shifted(shifted), codegen


def _clamp(x, limit):
    raise NotImplementedError("runs inside compiled code only")


@overload(_clamp, jit_options=_OPTIONS)
def _clamp_overload(x, limit):
    if isinstance(x, Vector):

        def clamp(x, limit):
            high = spread(limit, x)
            low = spread(-limit, x)
            return select_greater(low, x, low, select_greater(x, high, high, x))

        return clamp
    return lambda x, limit: -limit if x < -limit else (limit if x > limit else x)


def _constants(x: types.Type) -> tuple:
    """The largest argument, round-to-integer shift, 1 / ln 2, ln 2 in two parts, and Taylor coefficients."""
    real: type[np.floating]
    if _element(x) == types.float32:
        real, largest, mantissa, degree, high = np.float32, 87.0, 23, 7, 0.693359375
    else:
        real, largest, mantissa, degree, high = np.float64, 708.0, 52, 13, float.fromhex("0x1.62e42feep-1")
    low = float(np.longdouble("0.693147180559945309417232121458176568") - np.longdouble(high))
    taylor = tuple(real(1 / math.factorial(k)) for k in range(degree, 0, -1))
    return real(largest), real(1.5 * 2**mantissa), real(1 / math.log(2)), real(high), real(low), taylor


def _scaled(x):
    """2^n and e^r - 1 of the decomposition above."""
    raise NotImplementedError("runs inside compiled code only")


@overload(_scaled, jit_options=_OPTIONS)
def _scaled_overload(x):
    largest, shift, per_ln2, high, low, taylor = _constants(x)

    if _element(x) == types.float32:
        a7, a6, a5, a4, a3, a2, a1 = taylor

        def scaled32(x):
            x = _clamp(x, largest)
            shifted = x * per_ln2 + shift
            n = shifted - shift
            r = (x - n * high) - n * low
            return _power_of_two(shifted), r * (
                a1 + r * (a2 + r * (a3 + r * (a4 + r * (a5 + r * (a6 + r * a7)))))
            )

        return scaled32

    b13, b12, b11, b10, b9, b8, b7, b6, b5, b4, b3, b2, b1 = taylor

    def scaled64(x):
        x = _clamp(x, largest)
        shifted = x * per_ln2 + shift
        n = shifted - shift
        r = (x - n * high) - n * low
        upper = b7 + r * (b8 + r * (b9 + r * (b10 + r * (b11 + r * (b12 + r * b13)))))
        return _power_of_two(shifted), r * (
            b1 + r * (b2 + r * (b3 + r * (b4 + r * (b5 + r * (b6 + r * upper)))))
        )

    return scaled64


def exp(x):
    """e^x, saturating at the ends of the number's range."""
    raise NotImplementedError("runs inside compiled code only")


@overload(exp, jit_options=_OPTIONS)
def _exp_overload(x):
    def implementation(x):
        scale, less_one = _scaled(x)
        return scale + scale * less_one

    return implementation


def sigmoid(x):
    """1 / (1 + e^-x)."""
    raise NotImplementedError("runs inside compiled code only")


@overload(sigmoid, jit_options=_OPTIONS)
def _sigmoid_overload(x):
    zero, one = (
        (np.float32(0), np.float32(1)) if _element(x) == types.float32 else (np.float64(0), np.float64(1))
    )

    if isinstance(x, Vector):
        return lambda x: reciprocal(one + exp(zero - x))
    return lambda x: one / (one + exp(zero - x))


def tanh(x):
    """(e^2x - 1) / (e^2x + 1), to full relative accuracy also near 0."""
    raise NotImplementedError("runs inside compiled code only")


@overload(tanh, jit_options=_OPTIONS)
def _tanh_overload(x):
    if _element(x) == types.float32:
        one, two, largest = np.float32(1), np.float32(2), np.float32(10)
    else:
        one, two, largest = np.float64(1), np.float64(2), np.float64(20)

    def implementation(x):
        scale, less_one = _scaled(two * _clamp(x, largest))
        e2x_less_one = scale * less_one + (scale - one)
        return e2x_less_one / (e2x_less_one + two)

    return implementation
