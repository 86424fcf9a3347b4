"""Slices of a batch on OpenMP's threads: each item once, the caller's denormals, errors, and doing without them."""

import numba
import numpy as np
import pytest
import torch

from associative_lstm import AssociativeLSTM
from associative_lstm.kernels import runtime
from associative_lstm.kernels.team import addresses, in_slices

pytestmark = pytest.mark.skipif(addresses() is None, reason="this PyTorch has no GNU OpenMP")


@numba.njit(nogil=True)
def _count(start, stop, times, halves, tiny, broken):
    for k in range(start, stop):
        times[k] += 1
        halves[k] = tiny[k] / 2
    if start <= broken < stop:
        raise IndexError("a broken item")


@numba.njit(nogil=True)
def _count_in_slices(team, start, stop, *args):
    in_slices(_count, team, start, stop, args)


def count(threads, slices, batch, broken=-1):
    times, halves = np.zeros(batch, np.int64), np.full(batch, -1.0, np.float32)
    tiny = np.full(batch, np.finfo(np.float32).tiny)
    try:
        _count_in_slices((*addresses(), threads, slices), 0, batch, times, halves, tiny, broken)
    finally:
        assert times.tolist() == [1] * batch
    return halves


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("slices", [1, 2, 3, 4])
def test_every_item_once_however_many_threads_come(threads, slices):
    for batch in (1, 4, 7):
        count(threads, slices, batch)


@pytest.mark.parametrize("broken", [0, 3, 6])
def test_an_error_is_raised_when_all_have_ended(broken):
    with pytest.raises(IndexError, match="a broken item"):
        count(3, 3, 7, broken)
    count(3, 3, 7)


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="the processor cannot flush denormals")
def test_denormals_as_the_caller_takes_them():
    try:
        for flush in (False, True, False):
            torch.set_flush_denormal(flush)
            assert (count(3, 3, 6) == 0).tolist() == [flush] * 6
    finally:
        torch.set_flush_denormal(False)


def test_the_same_numbers_without_such_a_library(monkeypatch):
    torch.manual_seed(0)
    layer, x = AssociativeLSTM(5, 16, num_copies=2), torch.randn(9, 7, 5)
    before = torch.get_num_threads()
    results = []
    try:
        for threads, found in ((1, addresses), (3, addresses), (3, lambda: None)):
            torch.set_num_threads(threads)
            monkeypatch.setattr(runtime, "addresses", found)
            layer.zero_grad()
            output, state = layer(x)
            output.square().sum().backward()
            results.append([output, *state, *(p.grad for p in layer.parameters())])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
