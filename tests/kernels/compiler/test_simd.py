"""Vectors in compiled code against NumPy, in rows that are no multiple of a vector, and with margins around them."""

import os
import subprocess
import sys

import numpy as np
import pytest

from associative_lstm.kernels.compiler import simd, target
from associative_lstm.kernels.compiler.runtime import jit

COUNTS = [1, 2, 3, 4, 7, 8, 15, 16, 17, 40]
each_count = pytest.mark.parametrize("count", COUNTS)
each_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@jit
def _lanes(a):
    return simd.width(a)


@jit
def _arithmetic(a, b, y, k, count):
    """Row k of y: ((a + b) * (a - b) / b) and, where a > b, 2 a - 0.5 instead."""
    for j in range(0, count, simd.width(a)):
        p, q = simd.load(a, k, j, count, count - j), simd.load(b, k, j, count, count - j)
        result = simd.select_greater(p, q, 2.0 * p - 0.5, (p + q) * (p - q) / q)
        simd.store(y, k, j, count, count - j, result)


@jit
def _roots(a, y, count):
    for j in range(0, count, simd.width(a)):
        p, left = simd.load(a, 0, j, count, count - j), count - j
        simd.store(y, 0, j, count, left, simd.sqrt(p))
        simd.store(y, 1, j, count, left, simd.reciprocal(p))
        simd.store(y, 2, j, count, left, simd.reciprocal_sqrt(p))
        simd.store(y, 3, j, count, left, simd.fill(a, 3.0) + simd.spread(1.0, p))


@jit
def _permute(rows, indices, fours, y, k, count):
    """The four rows of y: those of ``rows``, permuted by the k-th permutation; ``fours`` holds them at row 4 k."""
    for j in range(0, count, simd.width(rows)):
        left = count - j
        p, q = simd.load(rows, 0, j, count, left), simd.load(rows, 1, j, count, left)
        r, s = simd.load(rows, 2, j, count, left), simd.load(rows, 3, j, count, left)
        simd.store_fours(fours, 4 * k, j, count, left, p, q, r, s)
    for j in range(0, count, simd.width(rows)):
        p, q, r, s = simd.load_fours(fours, 4 * k, count, indices, k * count + j)
        simd.store(y, 0, j, count, count - j, p)
        simd.store(y, 1, j, count, count - j, q)
        simd.store(y, 2, j, count, count - j, r)
        simd.store(y, 3, j, count, count - j, s)


@jit
def _transpose(source, target, rows, count):
    simd.transpose(source, 0, source.shape[0] // rows, rows, count, target, 0, simd.width(source))


def numbers(count, dtype, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 2, count).astype(dtype)


@each_type
@each_count
@pytest.mark.parametrize("k", [0, 1, 2])
def test_arithmetic_on_a_row_and_on_nothing_beside_it(dtype, count, k):
    a, b, y = numbers(3 * count, dtype), numbers(3 * count, dtype, 1), np.full(3 * count, np.nan, dtype)
    _arithmetic(a, b, y, k, count)
    p, q = (x[k * count : (k + 1) * count].astype(float) for x in (a, b))
    expected = np.where(p > q, 2 * p - 0.5, (p + q) * (p - q) / q)
    # Four roundings of numbers below 12.
    np.testing.assert_allclose(
        y[k * count : (k + 1) * count], expected, rtol=0, atol=48 * np.finfo(dtype).eps
    )
    beside = np.delete(y, slice(k * count, (k + 1) * count))
    assert np.isnan(beside).all()


@each_type
@each_count
def test_roots_and_reciprocals(dtype, count):
    a, y = numbers(count, dtype), np.empty(4 * count, dtype)
    _roots(a, y, count)
    root, inverse, inverse_root, four = y.reshape(4, count)
    x = a.astype(float)
    np.testing.assert_array_equal(root, np.sqrt(a))  # correctly rounded, as IEEE 754 has it
    few = 4 * np.finfo(dtype).eps  # an estimate and Newton's step: all but the last bit or two
    np.testing.assert_allclose(inverse, 1 / x, rtol=few, atol=0)
    np.testing.assert_allclose(inverse_root, 1 / np.sqrt(x), rtol=few, atol=0)
    assert (four == 4).all()


def test_a_nan_is_not_greater():
    a, b, y = np.array([np.nan, 1, 3]), np.array([1.0, np.nan, 2]), np.empty(3)
    _arithmetic(a, b, y, 0, 3)
    assert np.isnan(y[:2]).all()
    assert y[2] == 5.5


@each_type
@each_count
@pytest.mark.parametrize("k", [0, 1])
def test_four_numbers_of_a_column_are_fetched_through_a_permutation(dtype, count, k):
    generator, spare = np.random.default_rng(2), np.zeros(target.VECTOR_BYTES // 4, int)
    permutations = [generator.permutation(count) for _ in range(2)]
    indices = np.concatenate([*permutations, spare]).astype(np.int32)
    rows, fours, y = numbers(4 * count, dtype), np.full(12 * count, np.nan, dtype), np.empty(4 * count, dtype)
    _permute(rows, 4 * indices, fours, y, k, count)
    np.testing.assert_array_equal(y.reshape(4, count), rows.reshape(4, count)[:, permutations[k]])
    assert np.isnan(np.delete(fours, slice(4 * k * count, 4 * (k + 1) * count))).all()


@each_type
def test_a_block_is_transposed_and_filled_up_with_zeros(dtype):
    lanes = _lanes(np.empty(0, dtype))
    for rows in range(1, lanes + 1):
        for count in (1, lanes // 2, lanes):
            source = numbers(rows * count, dtype)
            y = np.full((lanes, lanes), np.nan, dtype)
            _transpose(source, y.reshape(-1), rows, count)
            np.testing.assert_array_equal(y[:count, :rows], source.reshape(rows, count).T)
            assert not y[:count, rows:].any()
            assert np.isnan(y[count:]).all()


@each_type
def test_a_vector_is_a_register_of_the_target(dtype):
    assert _lanes(np.empty(0, dtype)) * np.dtype(dtype).itemsize == target.VECTOR_BYTES


@pytest.mark.parametrize(
    ("assembly", "expected"),
    [
        ("vaddps %zmm1, %zmm0, %zmm0", (64, 32)),
        ("vaddps %ymm2, %ymm0, %ymm0", (32, 16)),
        ("addps %xmm4, %xmm0", (16, 16)),
        ("fadd v0.4s, v0.4s, v4.4s", (16, 32)),
    ],
)
def test_the_registers_say_what_the_target_is(assembly, expected):
    assert target._describe(assembly) == expected


@pytest.mark.skipif("x86" not in target._triple(), reason="these are names of CPUs of the x86-64 family")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"NUMBA_CPU_NAME": "skylake-avx512", "NUMBA_CPU_FEATURES": ""}, "64 32"),
        ({"NUMBA_CPU_NAME": "haswell"}, "32 16"),
        ({"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}, "32 16"),
        ({"NUMBA_CPU_NAME": "generic"}, "16 16"),
        ({"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+avx2"}, "32 16"),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else None,
)
def test_numbas_settings_hold(settings, expected):
    program = (  # the file alone, which does not wait for PyTorch
        f"import runpy; found = runpy.run_path({target.__file__!r});"
        "print(found['VECTOR_BYTES'], found['VECTOR_REGISTERS'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | settings, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == expected
