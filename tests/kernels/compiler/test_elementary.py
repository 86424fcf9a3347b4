"""The vectorisable elementary functions against the C library's, at the ends and at NaN."""

import numpy as np
import pytest
import torch

from associative_lstm.kernels.compiler import elementary, simd
from associative_lstm.kernels.compiler.runtime import jit


@jit
def _apply_exp(x, y):
    for j in range(x.shape[0]):
        y[j] = elementary.exp(x[j])


@jit
def _apply_sigmoid(x, y):
    for j in range(x.shape[0]):
        y[j] = elementary.sigmoid(x[j])


@jit
def _apply_tanh(x, y):
    for j in range(x.shape[0]):
        y[j] = elementary.tanh(x[j])


@jit
def _vector_exp(x, y):
    for j in range(0, x.shape[0], simd.width(x)):
        left = x.shape[0] - j
        simd.store(y, 0, j, x.shape[0], left, elementary.exp(simd.load(x, 0, j, x.shape[0], left)))


@jit
def _vector_sigmoid(x, y):
    for j in range(0, x.shape[0], simd.width(x)):
        left = x.shape[0] - j
        simd.store(y, 0, j, x.shape[0], left, elementary.sigmoid(simd.load(x, 0, j, x.shape[0], left)))


@jit
def _vector_tanh(x, y):
    for j in range(0, x.shape[0], simd.width(x)):
        left = x.shape[0] - j
        simd.store(y, 0, j, x.shape[0], left, elementary.tanh(simd.load(x, 0, j, x.shape[0], left)))


FUNCTIONS = [
    (_apply_exp, torch.exp),
    (_apply_sigmoid, torch.sigmoid),
    (_apply_tanh, torch.tanh),
    (_vector_exp, torch.exp),
    (_vector_sigmoid, torch.sigmoid),
    (_vector_tanh, torch.tanh),
]
NAMES = ["exp", "sigmoid", "tanh", "vector exp", "vector sigmoid", "vector tanh"]


@pytest.mark.parametrize(("ours", "exact"), FUNCTIONS, ids=NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_relative_error_is_a_few_units_in_the_last_place(ours, exact, dtype):
    generator = np.random.default_rng(0)
    tiny = 10 ** generator.uniform(-30, 0, 999)
    x = np.concatenate([generator.uniform(-80, 80, 5001), generator.normal(size=5001), tiny]).astype(dtype)
    y = np.empty_like(x)
    ours(x, y)
    expected = exact(torch.from_numpy(x).double()).numpy()
    error = np.abs(y - expected) / np.abs(expected)
    assert error.max() < 5 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_overflow_at_the_ends_and_nan_stays_nan(dtype):
    x = np.array([-np.inf, -1e30, 1e30, np.inf, np.nan], dtype=dtype)
    y = np.empty_like(x)
    _apply_sigmoid(x, y)
    assert (y[:2] < 1e-30).all()
    assert (y[2:4] == 1).all()
    assert np.isnan(y[4])
    _apply_tanh(x, y)
    assert (y[:4] == [-1, -1, 1, 1]).all()
    assert np.isnan(y[4])
    _apply_exp(x, y)
    assert np.isfinite(y[:4]).all()
    assert np.isnan(y[4])
