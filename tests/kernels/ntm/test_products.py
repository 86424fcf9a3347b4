"""Products of a few rows, added to what is there: right to rounding, and each row by itself."""

import numpy as np
import pytest

from associative_lstm.kernels.ntm.products import add_products


def numbers(shape, dtype):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 2, 3, 6])
@pytest.mark.parametrize(("inner", "outer"), [(1, 1), (3, 5), (4, 16), (7, 33), (64, 100)])
def test_products_are_added_to_what_is_there(dtype, rows, inner, outer):
    x, a, start = numbers((rows, inner), dtype), numbers((inner, outer), dtype), numbers((rows, outer), dtype)
    y = start.copy()
    add_products(y, a, x)
    exact = start + x.astype(np.longdouble) @ a.astype(np.longdouble)
    bound = (inner + 1) * np.finfo(dtype).eps * (np.abs(start) + np.abs(x) @ np.abs(a))
    assert (np.abs(y - exact) <= bound).all()
    for row in range(rows):  # whichever rows stand beside it
        alone = start[row : row + 1].copy()
        add_products(alone, a, x[row : row + 1])
        np.testing.assert_array_equal(alone[0], y[row])
