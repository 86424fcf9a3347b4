r"""``exp``, ``sigmoid`` and ``tanh`` from plain arithmetic, so that loops over them can be vectorised.

The C library's ``exp`` is a call per number, and was the largest part of a step. Here

.. math:: e^x = 2^n e^r, \qquad n = \mathrm{round}(x / \ln 2), \quad r = x - n \ln 2, \quad |r| \le (\ln 2) / 2

with a Taylor polynomial for :math:`e^r - 1` (its error is below the last place) and :math:`2^n` put together
from its bits. A number's result does not depend on its neighbours. NaN gives NaN.

These functions run inside compiled code, on a ``float32`` or ``float64`` or a `simd.Vector` of them.
"""

import math
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from associative_lstm.kernels.compiler.runtime import inline
from associative_lstm.kernels.compiler.simd import (
    Vector,
    element_of,
    reciprocal,
    select_greater,
    splat,
    spread,
)


class _Format(NamedTuple):
    """A floating-point format, and how e^x is computed in it."""

    real: type[np.floating]
    mantissa: int  # bits
    bias: int  # of the exponent
    largest: float  # argument of exp
    saturated: float  # argument of tanh beyond which it is 1
    ln2_high: float  # the first bits of ln 2, so few that n of them are exact
    degree: int  # of the Taylor polynomial


_SINGLE = _Format(np.float32, 23, 127, 87.0, 10.0, 0.693359375, 7)
_DOUBLE = _Format(np.float64, 52, 1023, 708.0, 20.0, float.fromhex("0x1.62e42feep-1"), 13)


def _format(x: types.Type) -> _Format:
    return _SINGLE if element_of(x) == types.float32 else _DOUBLE


def _constants(x):
    """The largest arguments of exp and tanh, what added rounds to an integer, 1 / ln 2, and ln 2 in two parts."""
    raise NotImplementedError("runs inside compiled code only")


@overload(_constants)
def _constants_overload(x):
    kind = _format(x)
    low = float(np.longdouble("0.693147180559945309417232121458176568") - np.longdouble(kind.ln2_high))
    shift = 1.5 * 2**kind.mantissa
    values = (kind.largest, kind.saturated, shift, 1 / math.log(2), kind.ln2_high, low)
    numbers = tuple(kind.real(value) for value in values)
    return lambda x: numbers


@intrinsic
def _power_of_two(typingctx, shifted):
    """2^n of ``shifted`` = n + 1.5 * 2^mantissa, whose lowest bits are those of the integer n."""
    kind = _format(shifted)

    def codegen(context, builder, signature, args):
        integer = ir.IntType(np.dtype(kind.real).itemsize * 8)
        shift, one = integer(kind.mantissa), integer(kind.bias << kind.mantissa)
        if isinstance(shifted, Vector):
            shift, one = (splat(builder, number, shifted.lanes) for number in (shift, one))
        n = builder.bitcast(args[0], shift.type)
        return builder.bitcast(builder.add(builder.shl(n, shift), one), args[0].type)

    return shifted(shifted), codegen


@intrinsic
def _exp_less_one(typingctx, r):
    """r + r^2 / 2 + r^3 / 6 + ..."""
    kind = _format(r)

    def codegen(context, builder, signature, args):
        def coefficient(k):
            number = context.get_constant(element_of(r), kind.real(1 / math.factorial(k)))
            return splat(builder, number, r.lanes) if isinstance(r, Vector) else number

        (x,), flags = args, ["contract"]
        total = coefficient(kind.degree)
        for k in range(kind.degree - 1, 0, -1):
            total = builder.fadd(coefficient(k), builder.fmul(x, total, flags=flags), flags=flags)
        return builder.fmul(x, total, flags=flags)

    return r(r), codegen


@inline
def _clamp(x, limit):
    high, low = spread(limit, x), spread(-limit, x)
    return select_greater(low, x, low, select_greater(x, high, high, x))


@inline
def _scaled(x):
    """2^n and e^r - 1 of the decomposition above."""
    largest, _, shift, per_ln2, high, low = _constants(x)
    x = _clamp(x, largest)
    shifted = x * per_ln2 + shift
    n = shifted - shift
    return _power_of_two(shifted), _exp_less_one((x - n * high) - n * low)


@inline
def exp(x):
    """e^x, saturating at the ends of the number's range."""
    scale, less_one = _scaled(x)
    return scale + scale * less_one


@inline
def sigmoid(x):
    """1 / (1 + e^-x)."""
    return reciprocal(spread(1.0, x) + exp(spread(0.0, x) - x))


@inline
def tanh(x):
    """(e^2x - 1) / (e^2x + 1), to full relative accuracy also near 0."""
    _, saturated, _, _, _, _ = _constants(x)
    one, two = spread(1.0, x), spread(2.0, x)
    scale, less_one = _scaled(two * _clamp(x, saturated))
    e2x_less_one = scale * less_one + (scale - one)
    return e2x_less_one / (e2x_less_one + two)
