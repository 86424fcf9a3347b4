"""Slices of a batch on OpenMP's threads: each item once, the caller's denormals, errors, and doing without them."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from associative_lstm import AssociativeLSTM
from associative_lstm.kernels.associative import fused
from associative_lstm.kernels.compiler import threads as splitting
from associative_lstm.kernels.compiler.openmp import Team, addresses, in_team, wait

pytestmark = pytest.mark.skipif(addresses() is None, reason="this PyTorch has no GNU OpenMP")


@numba.njit(nogil=True)
def _count(start, stop, turn, times, halves, tiny, broken):
    for k in range(start, stop):
        times[k] += 1
        halves[k] = tiny[k] / 2
    if start <= broken < stop:
        raise IndexError("a broken item")


@numba.njit(nogil=True)
def _count_in_slices(team, slices, batch, *args):
    in_team(_count, team, slices, batch, args)


@numba.njit(nogil=True)
def _pass_on(start, stop, turn, rounds, seen, members):
    """In every round each thread writes down the round, waits, reads what its neighbour wrote, and waits."""
    member, members[0], _ = turn
    for k in range(rounds):
        seen[member] = k
        wait(turn)
        if seen[(member + 1) % members[0]] != k or stop != 7 or start != 0:
            members[1] += 1
        wait(turn)


@numba.njit(nogil=True)
def _pass_on_together(team, batch, *args):
    in_team(_pass_on, team, 0, batch, args)


def count(threads, slices, batch, broken=-1):
    times, halves = np.zeros(batch, np.int64), np.full(batch, -1.0, np.float32)
    tiny = np.full(batch, np.finfo(np.float32).tiny)
    try:
        _count_in_slices(Team(*addresses(), threads), slices, batch, times, halves, tiny, broken)
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


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_wait_for_each_other(threads):
    seen, members = np.full(8, -1), np.zeros(2, np.int64)
    _pass_on_together(Team(*addresses(), threads), 7, 1000, seen, members)
    assert members.tolist() == [threads, 0]
    assert seen.tolist() == [999] * threads + [-1] * (8 - threads)


def results_with(threads, layer, x, lengths=None):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        layer.zero_grad()
        leaf = x.clone().requires_grad_()
        if lengths is None:
            output, state = layer(leaf)
        else:
            packed, state = layer(pack_padded_sequence(leaf, lengths, enforce_sorted=False))
            output = packed.data
        output.square().sum().backward()
        return [output, *state, leaf.grad, *(p.grad for p in layer.parameters())]
    finally:
        torch.set_num_threads(before)


def assert_same(first, second):
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.fixture
def ways(monkeypatch):
    """The numbers of slices with which kernels are run by the team, in order; 0 if its threads share the products."""
    seen = []

    def spy(kernel, find=splitting._runner):
        def counted(team, slices, *args):
            seen.append(slices)
            find(kernel)(team, slices, *args)

        return counted

    monkeypatch.setattr(splitting, "_runner", spy)
    return seen


@pytest.mark.parametrize(
    "options",
    [
        {"num_layers": 2},
        {"bidirectional": True, "keep_states_every": 4},
        {"recurrent_update": False, "dtype": torch.float64, "activation": "tanh"},
        {"learn_initial_state": True},
    ],
    ids=lambda options: "-".join(options),
)
def test_the_same_numbers_when_threads_share_the_products(options, ways, monkeypatch):
    torch.manual_seed(0)
    layer = AssociativeLSTM(5, 70, num_heads=2, num_copies=2, **options)
    monkeypatch.setattr(fused, "SEGMENT_BYTES", 1)
    for lengths in ([40], [40, 4], [1, 40, 40], None):
        x = torch.randn(40, 3 if lengths is None else len(lengths), 5, dtype=options.get("dtype"))
        for threads in (2, 5):  # PyTorch's own products may depend on the number, in the last bit
            monkeypatch.setattr(splitting, "SHARED_BYTES", 2**62)
            expected = results_with(threads, layer, x, lengths)
            assert ways == []
            monkeypatch.setattr(splitting, "SHARED_BYTES", 0)
            assert_same(results_with(threads, layer, x, lengths), expected)
            assert set(ways) == {0}
            ways.clear()


def test_an_error_of_all_threads_that_share_the_products(ways, monkeypatch):
    monkeypatch.setattr(splitting, "SHARED_BYTES", 0)
    layer, x = AssociativeLSTM(3, 8, num_copies=2), torch.randn(5, 1, 3)
    good = layer.permutations_l0.clone()
    layer.permutations_l0[1, 0] = 4
    with pytest.raises(IndexError, match="an index outside the memory"):
        results_with(2, layer, x)
    assert ways == [0]
    layer.permutations_l0.copy_(good)
    results_with(2, layer, x)


def test_several_python_threads_that_share_products(ways, monkeypatch):
    monkeypatch.setattr(splitting, "SHARED_BYTES", 0)
    torch.manual_seed(0)
    layers, x = [AssociativeLSTM(5, 16) for _ in range(3)], torch.randn(30, 1, 5)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.no_grad():
            expected = [layer(x)[0] for layer in layers]
            with ThreadPoolExecutor(3) as pool:
                for _ in range(5):
                    found = list(pool.map(lambda layer: layer(x)[0], layers))
                    assert_same(found, expected)
    finally:
        torch.set_num_threads(before)
    assert set(ways) == {0}


def test_the_same_numbers_without_such_a_library(monkeypatch):
    torch.manual_seed(0)
    layer, x = AssociativeLSTM(5, 16, num_copies=2), torch.randn(9, 7, 5)
    expected = results_with(3, layer, x)
    monkeypatch.setattr(splitting, "addresses", lambda: None)
    assert_same(results_with(3, layer, x), expected)
