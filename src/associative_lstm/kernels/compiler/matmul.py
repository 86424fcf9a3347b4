r"""Small matrix products for use inside compiled time loops.

:math:`Y = H W` for a few rows of H at a time, with W packed into panels a few vector registers wide. A tile, some
rows of Y times one panel, is kept in registers while the products are summed. Sums run over the depth in order, each
by fused multiply-adds, so a row's result does not depend on the rows that it shares a tile with.

The tile is written with explicit vectors because the compiler does not hold a block of sums in registers by itself.
"""

from typing import NamedTuple

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from associative_lstm.kernels.compiler.openmp import wait
from associative_lstm.kernels.compiler.runtime import jit
from associative_lstm.kernels.compiler.simd import address, call, lanes_of, splat, suffix, transpose
from associative_lstm.kernels.compiler.simd import width as vector_width
from associative_lstm.kernels.compiler.target import VECTOR_BYTES, VECTOR_REGISTERS

MOST_ROWS = 6
VECTORS = VECTOR_REGISTERS // 8
"""Of a panel, so that the sums of a tile take three quarters of the registers, and the rest are for W and H."""
WIDE_ROWS = MOST_ROWS // 2
"""Up to so many rows a tile is two panels wide: a few sums at a time would wait for each other."""

WIDE_PANEL = 256
"""Bytes of a panel's row from which it is read as fast out of the matrix as it is out of a copy."""

_TORCH = {4: torch.float32, 8: torch.float64}  # by bytes


class Packed(NamedTuple):
    """W ``(depth, columns)`` in panels."""

    numbers: np.ndarray
    depth: int
    columns: int
    filled: int  # the columns of whole panels: beyond ``columns`` there are zeros
    panel_stride: int  # from a panel to the next
    row_stride: int  # from a panel's row to the next


@intrinsic
def _panel_width(typingctx, array):
    """Columns of a panel."""
    columns = VECTORS * lanes_of(array.dtype)
    return types.intp(array), lambda context, *_: context.get_constant(types.intp, columns)


@jit
def aligned(count, like):
    """An array of ``count`` numbers like those of ``like``, not initialised, a vector of it within one cache line."""
    spare = VECTOR_BYTES // like.itemsize
    numbers = np.empty(count + spare, like.dtype)
    skip = -(numbers.ctypes.data // like.itemsize) % spare
    return numbers[skip : skip + count]


@jit
def _copy_panels(w, packed):
    panels, depth, width = packed.shape
    for p in range(panels):
        filled = min(width, w.shape[1] - p * width)
        for k in range(depth):
            for lane in range(filled):
                packed[p, k, lane] = w[k, p * width + lane]
            packed[p, k, filled:] = 0


@jit
def _transpose_panels(w, packed):
    """The same of the transpose of w ``(columns, depth)``."""
    panels, depth, width = packed.shape
    columns, lanes = w.shape[0], vector_width(w)
    if w.shape[1] != depth or columns > panels * width or width % lanes != 0:
        raise IndexError("pack: the panels do not fit the matrix")
    source, target = w.reshape(-1), packed.reshape(-1)
    for column in range(0, panels * width, lanes):
        to = column // width * depth * width + column % width
        for k in range(0, depth, lanes):
            transpose(
                source, column * depth + k, depth, columns - column, depth - k, target, to + k * width, width
            )


def pack(w: np.ndarray) -> Packed:
    """W ``(depth, columns)`` in panels: as it is if it has whole and wide ones, else a copy filled up with zeros.

    Panels begin at addresses where a vector does not cross a line of the cache: else a product takes half as long
    again.
    """
    depth, columns = w.shape
    width = VECTORS * VECTOR_BYTES // w.itemsize
    panels = -(-columns // width)
    filled = panels * width
    whole = filled == columns and width * w.itemsize >= WIDE_PANEL
    if whole and w.flags.c_contiguous and w.ctypes.data % VECTOR_BYTES == 0:
        return Packed(w.reshape(-1), depth, columns, filled, width, columns)
    packed = torch.empty(
        panels, depth, width, dtype=_TORCH[w.itemsize]
    ).numpy()  # PyTorch's memory is aligned
    if w.flags.f_contiguous:
        _transpose_panels(w.T, packed)
    else:
        _copy_panels(np.ascontiguousarray(w), packed)
    return Packed(packed.reshape(-1), depth, columns, filled, depth * width, width)


@intrinsic
def _tile(typingctx, rows, panels, y, y_at, y_stride, h, h_at, h_stride, w, w_at, packed):
    """For each row r: y[y_at + r * y_stride + j] = sum_k h[h_at + r * h_stride + k] w[w_at + k * row_stride + j].

    Of two panels, the other one's w begins panel_stride later. Every number of rows, and of panels, is written out
    on its own, because only then are the sums in registers.
    """
    lanes = lanes_of(y.dtype)
    size = y.dtype.bitwidth // 8

    def codegen(context, builder, signature, args):
        rows, panels, y_value, y_at, y_step, h_value, h_at, h_step, w_value, w_at, packed_value = args
        vector = ir.VectorType(context.get_value_type(y.dtype), lanes)
        integer = context.get_value_type(types.intp)
        fields = dict(zip(Packed._fields, cgutils.unpack_tuple(builder, packed_value), strict=True))
        depth, panel_stride, row_stride = (fields[k] for k in ("depth", "panel_stride", "row_stride"))
        y_pointer = address(context, builder, y, y_value, y_at)
        h_pointer = address(context, builder, h, h_value, h_at)
        w_pointer = address(context, builder, w, w_value, w_at)

        def vector_at(base, *offsets):
            for offset in offsets:
                base = builder.gep(base, [offset])
            return builder.bitcast(base, vector.as_pointer())

        def write_out(rows, panels):
            zero = ir.Constant(vector, None)
            columns = [(p, v) for p in range(panels) for v in range(VECTORS)]
            sums = {
                (r, column): cgutils.alloca_once_value(builder, zero)
                for r in range(rows)
                for column in columns
            }
            with cgutils.for_range(builder, depth, intp=integer) as loop:
                k = loop.index

                def w_k(column):
                    p, v = column
                    panel = builder.mul(panel_stride, integer(p))
                    at = vector_at(w_pointer, builder.mul(k, row_stride), panel, integer(v * lanes))
                    return builder.load(at, align=size)

                def h_k(r):
                    at = builder.add(builder.mul(h_step, integer(r)), k)
                    return splat(builder, builder.load(builder.gep(h_pointer, [at])), lanes)

                def add(r, column, w, h):
                    total = sums[r, column]
                    args = w, h, builder.load(total)
                    builder.store(call(builder, f"llvm.fmuladd.{suffix(vector)}", vector, *args), total)

                # The fewer of the two stay in registers, while the others come one after the other.
                if rows < len(columns):
                    numbers = [h_k(r) for r in range(rows)]
                    for column in columns:
                        w = w_k(column)
                        for r in range(rows):
                            add(r, column, w, numbers[r])
                else:
                    row = [w_k(column) for column in columns]
                    for r in range(rows):
                        h = h_k(r)
                        for column, w in zip(columns, row, strict=True):
                            add(r, column, w, h)
            for (r, (p, v)), total in sums.items():
                offset = integer((p * VECTORS + v) * lanes)
                at = vector_at(y_pointer, builder.mul(y_step, integer(r)), offset)
                builder.store(builder.load(total), at, align=size)

        end = builder.append_basic_block("end")
        for p, most in ((1, MOST_ROWS), (2, WIDE_ROWS)):
            for r in range(1, most + 1):
                this = builder.and_(
                    builder.icmp_signed("==", rows, integer(r)), builder.icmp_signed("==", panels, integer(p))
                )
                with builder.if_then(this):
                    write_out(r, p)
                    builder.branch(end)
        builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    kind = types.intp
    return types.void(kind, kind, y, kind, kind, h, kind, kind, w, kind, packed), codegen


@jit
def multiply(y, h, rows, w, turn):
    """y[r, :] = h[r, :] W for the first ``rows`` rows: a thread's share of the columns.

    Shapes: y ``(>= rows, >= filled)``, h ``(>= rows, >= depth)``, contiguous.
    """
    width = _panel_width(w.numbers)
    panels = w.filled // width
    if (
        rows > y.shape[0]
        or rows > h.shape[0]
        or w.depth > h.shape[1]
        or w.filled > y.shape[1]
        or w.filled % width != 0
        or not 0 <= turn.member < turn.members
        or w.numbers.shape[0] < (panels - 1) * w.panel_stride + (w.depth - 1) * w.row_stride + width
    ):
        raise IndexError("multiply: an array is smaller than the product")
    flat_y, flat_h = y.reshape(-1), h.reshape(-1)
    y_stride, h_stride = y.shape[1], h.shape[1]
    tiles = max(1, -(-rows // MOST_ROWS))
    most = max(1, -(-rows // tiles))  # of about the same height: a low one takes hardly less time
    p, end = turn.member * panels // turn.members, (turn.member + 1) * panels // turn.members
    while p < end:  # a panel is in the cache for all tiles
        at_once = 2 if most <= WIDE_ROWS and p + 1 < end else 1
        for start in range(0, rows, most):
            _tile(
                min(most, rows - start),
                at_once,
                flat_y,
                start * y_stride + p * width,
                y_stride,
                flat_h,
                start * h_stride,
                h_stride,
                w.numbers,
                p * w.panel_stride,
                w,
            )
        p += at_once


@jit
def multiply_repeatedly(start, stop, turn, y, h, w, times):
    """The products of a time loop without the rest of it, for items start to stop - 1: what a loop, which waits
    twice, cannot beat.
    """
    for _ in range(times):
        multiply(y[start:stop], h[start:stop], stop - start, w, turn)
        wait(turn)
