r"""Small matrix products for use inside compiled time loops.

:math:`Y = H W` for a few rows of H at a time, with W packed into panels as wide as four vector registers. A tile,
some rows of Y times one panel, is kept in registers while the products are summed. Sums run over the depth in
order, each by fused multiply-adds, so a row's result does not depend on the rows that it shares a tile with.

The tile is written with explicit vectors because the compiler does not hold a block of sums in registers by itself.
"""

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from associative_lstm.kernels.compiler.runtime import jit, run_by_team
from associative_lstm.kernels.compiler.simd import VECTOR_BYTES, lanes_of, transpose
from associative_lstm.kernels.compiler.simd import width as vector_width
from associative_lstm.kernels.compiler.team import ALONE, in_slices, together, wait

VECTORS = 4
MOST_ROWS = 6  # rows of a tile: 6 x 4 sums, 4 vectors of W; 32 registers suffice


_TORCH = {4: torch.float32, 8: torch.float64}  # by bytes

Packed = tuple[np.ndarray, int, int, int, int, int]
"""Numbers, panels, depth, width of a panel, and how far apart panels and a panel's rows are."""


@intrinsic
def panel_width(typingctx, array):
    """Columns of a panel: those of four vector registers."""
    columns = VECTORS * lanes_of(array.dtype)
    return types.intp(array), lambda context, builder, signature, args: context.get_constant(
        types.intp, columns
    )


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
    """W ``(depth, columns)`` in panels: as it is if it consists of whole ones, else a copy filled up with zeros.

    Panels begin at addresses where a vector does not cross a line of the cache: else a product takes half as long
    again.
    """
    depth, columns = w.shape
    width = VECTORS * VECTOR_BYTES // w.itemsize
    panels = -(-columns // width)
    if panels * width == columns and w.flags.c_contiguous and w.ctypes.data % VECTOR_BYTES == 0:
        return w.reshape(-1), panels, depth, width, width, columns
    packed = torch.empty(
        panels, depth, width, dtype=_TORCH[w.itemsize]
    ).numpy()  # PyTorch's memory is aligned
    if w.flags.f_contiguous:
        _transpose_panels(w.T, packed)
    else:
        _copy_panels(np.ascontiguousarray(w), packed)
    return packed.reshape(-1), panels, depth, width, depth * width, width


def _tile(rows: int, panels: int = 1):
    """For each row r: y[y_at + r * y_stride + j] = sum_k h[h_at + r * h_stride + k] w[w_at + k * w_stride + j].

    Of two panels, the other one's w begins panel_stride later.
    """
    vectors = panels * VECTORS

    @intrinsic
    def tile(typingctx, y, y_at, y_stride, h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth):
        signature = types.void(y, y_at, y_stride, h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth)
        number = y.dtype

        def codegen(context, builder, signature, args):
            scalar = context.get_value_type(number)
            lanes = VECTOR_BYTES // (4 if number == types.float32 else 8)
            vector = ir.VectorType(scalar, lanes)
            size = scalar.get_abi_size(context.target_data)
            integer = context.get_value_type(types.intp)

            def pointer(k):
                array = context.make_array(signature.args[k])(context, builder, args[k])
                return builder.gep(array.data, [args[k + 1]])

            y_pointer, h_pointer, w_pointer = pointer(0), pointer(3), pointer(6)
            y_step, h_step = args[2], args[5]
            name = f"llvm.fmuladd.v{lanes}f{8 * size}"
            fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
            zero = ir.Constant(vector, None)
            sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(vectors)] for _ in range(rows)]

            def vector_at(base, offset):
                return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

            with cgutils.for_range(builder, args[10], intp=integer) as loop:
                k = loop.index
                panel_rows = [
                    builder.add(builder.mul(k, args[8]), builder.mul(args[9], integer(p)))
                    for p in range(panels)
                ]
                w_k = [
                    builder.load(vector_at(w_pointer, builder.add(row, integer(v * lanes))), align=size)
                    for row in panel_rows
                    for v in range(VECTORS)
                ]
                for r in range(rows):
                    at = builder.add(builder.mul(h_step, integer(r)), k)
                    h_k = builder.load(builder.gep(h_pointer, [at]))
                    one = builder.insert_element(ir.Constant(vector, ir.Undefined), h_k, ir.IntType(32)(0))
                    lanes_of_zero = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
                    h_all = builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), lanes_of_zero)
                    for v in range(vectors):
                        builder.store(
                            builder.call(fma, [w_k[v], h_all, builder.load(sums[r][v])]), sums[r][v]
                        )
            for r in range(rows):
                for v in range(vectors):
                    at = builder.add(builder.mul(y_step, integer(r)), integer(v * lanes))
                    builder.store(builder.load(sums[r][v]), vector_at(y_pointer, at), align=size)
            return context.get_dummy_value()

        return signature, codegen

    return tile


_tile1, _tile2, _tile3, _tile4, _tile5, _tile6 = (_tile(rows) for rows in range(1, MOST_ROWS + 1))
_wide1, _wide2, _wide3 = (_tile(rows, panels=2) for rows in range(1, 4))


@jit
def multiply(y, h, rows, packed, member, members):
    """y[r, :] = h[r, :] W for the first ``rows`` rows, W as `pack` gives it: a member's share of the columns.

    Shapes: y ``(>= rows, >= columns)`` of W filled up to whole panels, h ``(>= rows, >= depth)``, contiguous.
    """
    w, panels, depth, width, panel_stride, w_stride = packed
    if (
        rows > y.shape[0]
        or rows > h.shape[0]
        or depth > h.shape[1]
        or panels * width > y.shape[1]
        or width != panel_width(w)
        or not 0 <= member < members
        or w.shape[0] < (panels - 1) * panel_stride + (depth - 1) * w_stride + width
    ):
        raise IndexError("multiply: an array is smaller than the product")
    flat_y, flat_h = y.reshape(-1), h.reshape(-1)
    y_stride, h_stride = y.shape[1], h.shape[1]
    start = 0
    while start < rows:
        count = min(MOST_ROWS, rows - start)
        h_at = start * h_stride
        p, end = member * panels // members, (member + 1) * panels // members
        while p < end:
            y_at = start * y_stride + p * width
            w_at = p * panel_stride
            wide = count <= 3 and p + 1 < end  # a few sums at a time would wait for each other
            p += 2 if wide else 1
            if wide and count == 1:
                _wide1(flat_y, y_at, y_stride, flat_h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth)
            elif wide and count == 2:
                _wide2(flat_y, y_at, y_stride, flat_h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth)
            elif wide:
                _wide3(flat_y, y_at, y_stride, flat_h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth)
            elif count == 1:
                _tile1(flat_y, y_at, y_stride, flat_h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth)
            elif count == 2:
                _tile2(flat_y, y_at, y_stride, flat_h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth)
            elif count == 3:
                _tile3(flat_y, y_at, y_stride, flat_h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth)
            elif count == 4:
                _tile4(flat_y, y_at, y_stride, flat_h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth)
            elif count == 5:
                _tile5(flat_y, y_at, y_stride, flat_h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth)
            else:
                _tile6(flat_y, y_at, y_stride, flat_h, h_at, h_stride, w, w_at, w_stride, panel_stride, depth)
        start += count


@jit
def multiply_repeatedly(start, stop, turn, y, h, packed, times):
    """The products of a time loop without the rest of it, for items start to stop - 1: what a loop, which waits
    twice, cannot beat.
    """
    member, members, _ = turn
    for _ in range(times):
        multiply(y[start:stop], h[start:stop], stop - start, packed, member, members)
        wait(turn)


@run_by_team(multiply_repeatedly)
@jit
def _multiply_in_team(team, slices, batch, *args):
    if slices > 0:
        in_slices(multiply_repeatedly, team, slices, batch, (ALONE, *args))
    else:
        together(multiply_repeatedly, team, batch, args)
