"""The compiled time loops, called directly with sizes and permutations that do not fit: an exception, no more."""

import numpy as np
import pytest
import torch

from associative_lstm.kernels.associative import loops
from associative_lstm.kernels.associative.fused import _packed
from associative_lstm.kernels.compiler.team import ALONE

T, B, N, COPIES, HEADS = 4, 3, 10, 2, 2
H, ROWS = HEADS * N, (1 + 8 * HEADS) * N // 2


def zeros(*shape):
    return np.zeros(shape, np.float32)


def product(w):
    _, panels, _, width, _, _ = _packed(w)
    return zeros(B, panels * width)


def common():
    permutations = np.stack([np.random.default_rng(s).permutation(N // 2) for s in range(COPIES)])
    weight = torch.zeros(ROWS, H)
    return permutations, np.full(B, T, np.int64), weight


def forward_arguments():
    permutations, lengths, weight = common()
    return {
        "start": 0,
        "stop": B,
        "turn": ALONE,
        "first": 0,
        "last": T,
        "steps": T,
        "reverse": False,
        "z": zeros(T, B, ROWS),
        "z_base": 0,
        "w_hh": _packed(weight.T),
        "rows_h": ROWS,
        "y": product(weight.T),
        "h": zeros(B, H),
        "c": zeros(B, COPIES, N),
        "output": zeros(T, B, H),
        "cells": zeros(T, B, COPIES, N),
        "base": 0,
        "permutations": permutations,
        "lengths": lengths,
        "smooth": False,
    }


def backward_arguments():
    permutations, lengths, weight = common()
    return {
        "start": 0,
        "stop": B,
        "turn": ALONE,
        "first": 0,
        "last": T,
        "steps": T,
        "reverse": False,
        "z": zeros(T, B, ROWS),
        "cells": zeros(T, B, COPIES, N),
        "base": 0,
        "c_start": zeros(B, COPIES, N),
        "tau_start": 0,
        "w_hh": _packed(weight),
        "y": product(weight),
        "permutations": permutations,
        "lengths": lengths,
        "smooth": False,
        "d_output": zeros(T, B, H),
        "d_cells": zeros(T, B, COPIES, N),
        "dh": zeros(B, H),
        "dc": zeros(B, COPIES, N),
        "dz": zeros(T, B, ROWS),
        "dz_base": 0,
        "dz_first": zeros(B, ROWS),
    }


LOOPS = [(loops.forward, forward_arguments), (loops.backward, backward_arguments)]
each_loop = pytest.mark.parametrize(("loop", "arguments"), LOOPS, ids=["forward", "backward"])


@each_loop
def test_arrays_one_longer_or_shorter(loop, arguments):
    good = arguments()
    loop(*good.values())
    for name, array in good.items():
        if not isinstance(array, np.ndarray):
            continue
        for axis in range(array.ndim):
            if axis == 0 and name in ("z", "output", "cells", "dz"):
                wrong = [array[:-1]]  # these may begin earlier and end later than the steps
            else:
                wrong = [
                    np.ascontiguousarray(np.delete(array, 0, axis)),
                    np.concatenate([array, array.take([0], axis)], axis),
                ]
            for value in wrong:
                with pytest.raises(IndexError, match="do not fit"):
                    loop(*(good | {name: value}).values())


@each_loop
@pytest.mark.parametrize("large", [1, 2**31, 2**62])
def test_numbers_outside_the_arrays(loop, arguments, large):
    good = arguments()
    names = {"start", "stop", "first", "last", "base", "z_base", "dz_base", "tau_start", "rows_h"} & set(good)
    for name in names:
        for value in (good[name] + large, good[name] - large):
            if (name, value) in {("start", 1), ("stop", B - 1), ("first", 1), ("last", T - 1)}:
                continue  # a part of the work
            with pytest.raises(IndexError, match="do not fit"):
                loop(*(good | {name: value}).values())


@each_loop
@pytest.mark.parametrize("turn", [(1, 1, 0), (-1, 2, 0), (0, 0, 0), (2**62, 2, 0)])
def test_turns_of_a_thread_that_is_not_there(loop, arguments, turn):
    with pytest.raises(IndexError, match="do not fit"):
        loop(*(arguments() | {"turn": turn}).values())


@each_loop
def test_no_rows_at_all(loop, arguments):
    good = arguments()
    empty = {name: np.zeros((0,) * v.ndim, v.dtype) for name, v in good.items() if isinstance(v, np.ndarray)}
    with pytest.raises(IndexError, match="do not fit"):
        loop(*(good | empty).values())


@each_loop
@pytest.mark.parametrize("index", [-1, N // 2, 2**31, 2**32, 2**63 - 1, -(2**63)])
def test_indices_outside_the_memory(loop, arguments, index):
    good = arguments()
    for place in np.ndindex(good["permutations"].shape):
        wrong = good["permutations"].copy()
        wrong[place] = index
        with pytest.raises(IndexError, match="an index outside the memory"):
            loop(*(good | {"permutations": wrong}).values())


@each_loop
def test_indices_that_are_no_permutation(loop, arguments):
    good = arguments()
    wrong = good["permutations"].copy()
    wrong[1, 0] = wrong[1, 1]
    with pytest.raises(IndexError, match="an index twice in one copy"):
        loop(*(good | {"permutations": wrong}).values())


@each_loop
def test_lengths_of_any_kind_stay_inside(loop, arguments):
    """Too long, none, negative, or in no order: what comes out is not said, but nothing is touched outside."""
    good = arguments()
    for lengths in ([T + 5, T, 1], [0, 0, 0], [-(2**63), 2**63 - 1, 2], [1, T, 2]):
        for reverse in (False, True):
            loop(*(good | {"lengths": np.array(lengths, np.int64), "reverse": reverse}).values())
