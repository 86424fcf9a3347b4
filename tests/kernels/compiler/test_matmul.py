"""Matrix products and their packing, for sizes that are and are not whole panels, rows and vectors."""

import numpy as np
import pytest

from associative_lstm.kernels.compiler.matmul import MOST_ROWS, VECTORS, multiply, pack
from associative_lstm.kernels.compiler.openmp import ALONE, Turn
from associative_lstm.kernels.compiler.target import VECTOR_BYTES

TYPES = [np.float32, np.float64]
SIZES = [(1, 1), (13, 77), (64, 128), (37, 200), (3, 1025)]
each_type = pytest.mark.parametrize("dtype", TYPES)
each_size = pytest.mark.parametrize(("depth", "columns"), SIZES)


def numbers(shape, dtype):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def unpacked(packed, dtype):
    """W again, with what it was filled up with."""
    width = VECTORS * VECTOR_BYTES // np.dtype(dtype).itemsize
    w = np.empty((packed.depth, packed.filled), dtype)
    for column in range(packed.filled):
        panel, lane = divmod(column, width)
        start = panel * packed.panel_stride + lane
        w[:, column] = packed.numbers[start :: packed.row_stride][: packed.depth]
    return w


@each_type
@each_size
@pytest.mark.parametrize("order", ["rows", "columns", "every other"])
def test_packing_keeps_every_number_and_fills_up_with_zeros(dtype, depth, columns, order):
    w = numbers((depth, columns), dtype)
    if order == "columns":
        w = np.asfortranarray(w)
    elif order == "every other":
        w = np.repeat(w, 2, axis=1)[:, ::2]
    packed = pack(w)
    assert (packed.depth, packed.columns) == (depth, columns)
    whole = unpacked(packed, dtype)
    np.testing.assert_array_equal(whole[:, :columns], w)
    assert not whole[:, columns:].any()


@each_type
@each_size
def test_product_is_the_product_and_no_row_depends_on_another(dtype, depth, columns):
    """Rows that share a tile, or not, give the same bits, and so do columns shared out among threads."""
    h, w = numbers((2 * MOST_ROWS + 5, depth), dtype), numbers((depth, columns), dtype)
    packed = pack(w)
    y = np.empty((len(h), packed.filled), dtype)
    multiply(y, h, len(h), packed, ALONE)
    # Every sum rounds at most once per product, and no partial sum is larger than the sum of moduli.
    error = np.abs(y[:, :columns] - h.astype(np.longdouble) @ w.astype(np.longdouble))
    assert (error <= (depth + 1) * np.finfo(dtype).eps * (np.abs(h) @ np.abs(w))).all()
    for rows in range(1, MOST_ROWS + 2):
        part = np.empty((rows, packed.filled), dtype)
        for members in (1, 2, 5):
            part[:] = np.nan
            for member in range(members):
                multiply(part, h[:rows], rows, packed, Turn(member, members, 0))
            np.testing.assert_array_equal(part[:, :columns], y[:rows, :columns])


@each_type
def test_product_writes_its_rows_only_and_none_for_no_rows(dtype):
    packed = pack(numbers((5, 7), dtype))
    y, h = np.full((4, packed.filled), np.nan, dtype), numbers((4, 5), dtype)
    multiply(y, h, 0, packed, ALONE)
    assert np.isnan(y).all()
    multiply(y, h, 3, packed, ALONE)
    assert np.isfinite(y[:3]).all()
    assert np.isnan(y[3]).all()


def test_arrays_smaller_than_the_product_are_refused():
    packed = pack(numbers((5, 7), np.float32))
    y, h = np.empty((2, packed.filled), np.float32), numbers((2, 5), np.float32)
    multiply(y, h, 2, packed, ALONE)
    wrong = [
        (y, h, 3, packed, ALONE),
        (y[:, :-1].copy(), h, 2, packed, ALONE),
        (y, h[:, :-1].copy(), 2, packed, ALONE),
        (y, h, 2, packed._replace(filled=packed.filled - 1), ALONE),
        (y, h, 2, packed._replace(numbers=packed.numbers[:-1]), ALONE),
        (y, h, 2, packed, Turn(1, 1, 0)),
    ]
    for arguments in wrong:
        with pytest.raises(IndexError, match="smaller than the product"):
            multiply(*arguments)
