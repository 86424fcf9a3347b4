"""The compiled time loops, called directly with sizes and permutations that do not fit: an exception, no more."""

import numpy as np
import pytest

from associative_lstm.kernels.associative import loops
from associative_lstm.kernels.compiler.matmul import pack
from associative_lstm.kernels.compiler.openmp import ALONE, Turn

T, B, N, COPIES, HEADS = 4, 3, 10, 2, 2
H, ROWS = HEADS * N, (1 + 8 * HEADS) * N // 2


def zeros(*shape):
    return np.zeros(shape, np.float32)


def common(w):
    """What both loops are given: by name, and by a name inside where several travel together."""
    permutations = np.stack([np.random.default_rng(s).permutation(N // 2) for s in range(COPIES)])
    packed = pack(w)
    return {
        "start": 0,
        "stop": B,
        "turn": ALONE,
        "sequence": loops.Sequence(
            T, False, np.full(B, T, np.int64), permutations, zeros(COPIES * N), False, True
        ),
        "first": 0,
        "product": loops.Product(packed, zeros(B, packed.filled)),
    }


def forward_arguments():
    kept = loops.Kept(zeros(T, B, ROWS), zeros(T, B, H), zeros(T, B, COPIES, N))
    return common(zeros(ROWS, H).T) | {
        "state": loops.State(zeros(B, H), zeros(B, COPIES, N)),
        "kept": kept,
    }


def backward_arguments():
    return common(zeros(ROWS, H)) | {
        "saved": loops.Saved(zeros(T, B, ROWS), zeros(T, B, COPIES, N), zeros(B, COPIES, N)),
        "above": loops.Above(zeros(T, B, H), zeros(T, B, COPIES, N)),
        "state": loops.State(zeros(B, H), zeros(B, COPIES, N)),
        "gradients": loops.Gradients(zeros(T, B, ROWS), zeros(B, ROWS)),
    }


def arrays(good):
    """Every array, by where it is: its argument and the name inside."""
    for name, value in good.items():
        for inside, array in getattr(value, "_asdict", dict)().items():
            if isinstance(array, np.ndarray):
                yield (name, inside), array


def changed(good, place, value):
    name, inside = place
    return good | {name: good[name]._replace(**{inside: value})}


LOOPS = [(loops.forward, forward_arguments), (loops.backward, backward_arguments)]
each_loop = pytest.mark.parametrize(("loop", "arguments"), LOOPS, ids=["forward", "backward"])


@each_loop
def test_arrays_one_longer_or_shorter(loop, arguments):
    good = arguments()
    loop(*good.values())
    for place, array in arrays(good):
        for axis in range(array.ndim):
            shorter = np.ascontiguousarray(np.delete(array, 0, axis))
            longer = np.concatenate([array, array.take([0], axis)], axis)
            for value in (shorter, longer):
                with pytest.raises(IndexError, match="do not fit"):
                    loop(*changed(good, place, value).values())


@each_loop
def test_weights_of_another_size(loop, arguments):
    good = arguments()
    w = good["product"].w
    for wrong in (w._replace(columns=w.columns + 1), w._replace(columns=w.columns - 1), w._replace(filled=0)):
        with pytest.raises(IndexError, match="do not fit"):
            loop(*changed(good, ("product", "w"), wrong).values())
    for depth in (w.depth + ROWS, 2**62):
        with pytest.raises(IndexError, match="do not fit"):
            loop(*changed(good, ("product", "w"), w._replace(depth=depth)).values())


@each_loop
@pytest.mark.parametrize("large", [1, 2**31, 2**62])
def test_numbers_outside_the_arrays(loop, arguments, large):
    good = arguments()
    for name in ("start", "stop", "first"):
        for value in (good[name] + large, good[name] - large):
            if (name, value) in {("start", 1), ("stop", B - 1)}:
                continue  # a part of the work
            with pytest.raises(IndexError, match="do not fit"):
                loop(*(good | {name: value}).values())
    for steps in (T - large, -large):
        with pytest.raises(IndexError, match="do not fit"):
            loop(*changed(good, ("sequence", "steps"), steps).values())


@each_loop
@pytest.mark.parametrize("turn", [(1, 1, 0), (-1, 2, 0), (0, 0, 0), (2**62, 2, 0)])
def test_turns_of_a_thread_that_is_not_there(loop, arguments, turn):
    with pytest.raises(IndexError, match="do not fit"):
        loop(*(arguments() | {"turn": Turn(*turn)}).values())


@each_loop
def test_sizes_that_are_not_the_usual_ones(loop, arguments):
    """What is compiled for one head and whole vectors is not run on anything else."""
    good = arguments()
    with pytest.raises(IndexError, match="do not fit"):
        loop(*changed(good, ("sequence", "general"), None).values())


@each_loop
def test_no_rows_at_all(loop, arguments):
    good = arguments()
    for place, array in arrays(good):
        good = changed(good, place, np.zeros((0,) * array.ndim, array.dtype))
    with pytest.raises(IndexError, match="do not fit"):
        loop(*good.values())


@each_loop
@pytest.mark.parametrize("index", [-1, N // 2, 2**31, 2**32, 2**63 - 1, -(2**63)])
def test_indices_outside_the_memory(loop, arguments, index):
    good = arguments()
    permutations = good["sequence"].permutations
    for place in np.ndindex(permutations.shape):
        wrong = permutations.copy()
        wrong[place] = index
        with pytest.raises(IndexError, match="an index outside the memory"):
            loop(*changed(good, ("sequence", "permutations"), wrong).values())


@each_loop
def test_indices_that_are_no_permutation(loop, arguments):
    good = arguments()
    wrong = good["sequence"].permutations.copy()
    wrong[1, 0] = wrong[1, 1]
    with pytest.raises(IndexError, match="an index twice in one copy"):
        loop(*changed(good, ("sequence", "permutations"), wrong).values())


@each_loop
def test_lengths_of_any_kind_stay_inside(loop, arguments):
    """Too long, none, negative, or in no order: what comes out is not said, but nothing is touched outside."""
    good = arguments()
    for lengths in ([T + 5, T, 1], [0, 0, 0], [-(2**63), 2**63 - 1, 2], [1, T, 2]):
        for reverse in (False, True):
            sequence = good["sequence"]._replace(lengths=np.array(lengths, np.int64), reverse=reverse)
            loop(*(good | {"sequence": sequence}).values())
