"""The time loops of the fused Associative LSTM, for a slice of the batch, forward and backward.

Where a batch is too small to be split, threads go through the loop together (their ``turn``): each computes some
columns of the recurrent product, and takes every so-manyth item: the same ones at every step, so that it alone
touches their state.

A loop goes through one segment of the sequence. Steps are counted by tau in the direction of reading: t = tau, or
t = steps - 1 - tau in reverse; a segment begins with step ``first``. Arrays over times hold the segment's, as they
follow each other in time. Items of the batch are ordered by length, longest first, so that those at work at time t
are the first few.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from associative_lstm.kernels.associative.steps import Sizes, backward_item, forward_item, workspace
from associative_lstm.kernels.compiler.matmul import Packed, aligned, multiply
from associative_lstm.kernels.compiler.openmp import wait
from associative_lstm.kernels.compiler.runtime import inline, jit
from associative_lstm.kernels.compiler.simd import width
from associative_lstm.kernels.compiler.target import VECTOR_BYTES


class Sequence(NamedTuple):
    """What is true of a whole sequence."""

    steps: int
    reverse: bool
    lengths: np.ndarray  # (B,)
    permutations: np.ndarray  # (copies, N/2)
    turns: np.ndarray | None  # (copies * N,); None is another type to the compiler
    smooth: bool
    general: (
        bool | None
    )  # None, which is another type to the compiler, for one head and rows of whole vectors


class Product(NamedTuple):
    """The recurrent product of a step."""

    w: Packed
    y: np.ndarray  # (B, columns of w, filled): where it goes


class State(NamedTuple):
    """What is carried from step to step in place: a state, or the gradient of one."""

    h: np.ndarray  # (B, heads * N)
    c: np.ndarray  # (B, copies, N)


class Kept(NamedTuple):
    """What the forward loop finds and leaves."""

    z: np.ndarray  # (times, B, rows): the input's part comes in, gates and sums go out
    output: np.ndarray  # (times, B, heads * N)
    cells: np.ndarray  # (times, B, copies, N), or of length 0 if they are not kept


class Saved(NamedTuple):
    """What the backward loop finds of the forward pass."""

    z: np.ndarray
    cells: np.ndarray
    before: (
        np.ndarray
    )  # (B, copies, N): the state before the segment, or of an item that begins later, before that


class Above(NamedTuple):
    """The gradients of what went out."""

    output: np.ndarray
    cells: np.ndarray  # may be of length 0


class Gradients(NamedTuple):
    """The gradients that the backward loop leaves."""

    z: np.ndarray
    first_z: np.ndarray  # (B, rows): of each item's first step


@intrinsic
def _known(typingctx, general, number, usual):
    """``number``, or where nothing is general the constant that it is then."""

    def codegen(context, builder, signature, args):
        return args[2 if general == types.none else 1]

    return types.intp(general, types.intp, types.intp), codegen


@inline
def _at_work(start, stop, lengths, t):
    count = 0
    while start + count < stop and lengths[start + count] > t:
        count += 1
    return count


@jit
def _indices(permutations):
    """The permutations and their inverses, times 4 as `load_fours` wants them, and whether all are cyclic shifts.

    Not one index may be outside the memory or there twice. Zeros follow, for a last vector that is not whole.
    """
    copies, n = permutations.shape
    shifted = True
    count = copies * n + VECTOR_BYTES // 4
    indices, inverses = np.zeros(count, np.int32), np.zeros(count, np.int32)
    for s in range(copies):
        for j in range(n):
            inverses[s * n + j] = -1
        for j in range(n):
            source = permutations[s, j]
            if source < 0 or source >= n:
                raise IndexError("permutations: an index outside the memory")
            if inverses[s * n + source] >= 0:
                raise IndexError(
                    "permutations: an index twice in one copy; to average a model, set use_buffers=False"
                )
            indices[s * n + j] = 4 * source
            inverses[s * n + source] = 4 * j
            expected = permutations[s, 0] + j
            shifted &= source == (expected if expected < n else expected - n)
    return indices, inverses, shifted


@inline
def _copy(source, target):
    """As ``target[:] = source``, which Numba compiles for seconds, with messages for shapes that differ."""
    for j in range(target.shape[0]):
        target[j] = source[j]


@inline
def _clear(target):
    for j in range(target.shape[0]):
        target[j] = 0


@inline
def _add(source, target):
    for j in range(target.shape[0]):
        target[j] += source[j]


@inline
def _are_as_many(turns, numbers):
    if turns is None:
        return True
    return turns.shape[0] == numbers


@inline
def _fits(start, stop, turn, sequence, first, product, state, z):
    """Whether what both loops are given is of one size."""
    times, batch, rows = z.shape
    _, copies, N = state.c.shape
    heads = _known(sequence.general, state.h.shape[1] // N, 1)
    return (
        N >= 2
        and rows == (1 + 8 * heads) * (N // 2)
        and N // 2 % _known(sequence.general, 1, width(z)) == 0
        and state.c.shape[0] == batch
        and state.h.shape == (batch, heads * N)
        and sequence.permutations.shape == (copies, N // 2)
        and _are_as_many(sequence.turns, copies * N)
        and sequence.lengths.shape[0] == batch
        and 0 <= start <= stop <= batch
        and 0 <= turn.member < turn.members
        and 0 <= first <= sequence.steps - times
        and product.w.columns <= product.w.filled
        and product.y.shape == (batch, product.w.filled)
    )


@jit
def forward(start, stop, turn, sequence, first, product, state, kept):
    """The steps of a segment for items start to stop - 1."""
    z, output = kept.z, kept.output
    times, batch, rows = z.shape
    (_, copies, N), H = state.c.shape, state.h.shape[1]
    keep, rows_h = kept.cells.shape[0] > 0, product.w.columns
    if not (
        _fits(start, stop, turn, sequence, first, product, state, z)
        and output.shape == (times, batch, H)
        and (not keep or kept.cells.shape == (times, batch, copies, N))
        and (rows_h == rows or rows_h == rows - H)
        and product.w.depth == H
    ):
        raise IndexError("forward: the arrays do not fit each other")
    indices, _, shifted = _indices(sequence.permutations)
    n, heads = N // 2, _known(sequence.general, H // N, 1)
    sizes = n, heads, copies, sequence.smooth, shifted
    whole, parts = Sizes(*sizes, np.bool_(True)), Sizes(*sizes, np.bool_(False))
    h, c = state.h, state.c.reshape((batch, copies * N))
    cells = kept.cells.reshape((kept.cells.shape[0], batch, copies * N))
    y_slice, h_slice = product.y[start:stop], h[start:stop]
    work = aligned(workspace(heads, copies) * n, z)
    for step in range(times):
        k = times - 1 - step if sequence.reverse else step
        t = sequence.steps - 1 - first - step if sequence.reverse else first + step
        count = _at_work(start, stop, sequence.lengths, t)
        multiply(y_slice, h_slice, count, product.w, turn)
        wait(turn)
        for b in range(start + turn.member, start + count, turn.members):
            z_b, y_b, c_b, h_b = z[k, b], product.y[b, :rows_h], c[b], h[b]
            if _known(sequence.general, n % width(z), 0) == 0:  # the same, without what tells lanes apart
                forward_item(z_b, y_b, c_b, h_b, indices, sequence.turns, whole, work)
            else:
                forward_item(z_b, y_b, c_b, h_b, indices, sequence.turns, parts, work)
            _copy(h[b], output[k, b])
            if keep:
                _copy(c[b], cells[k, b])
        for b in range(start + count + turn.member, stop, turn.members):
            _clear(output[k, b])
            if keep:
                _clear(cells[k, b])
        wait(turn)


@jit
def backward(start, stop, turn, sequence, first, product, saved, above, state, gradients):
    """The gradients of `forward`, from the segment's last step to its first. ``state`` is the gradient of one."""
    z, dz, dh = saved.z, gradients.z, state.h
    times, batch, rows = z.shape
    (_, copies, N), H = state.c.shape, dh.shape[1]
    if not (
        _fits(start, stop, turn, sequence, first, product, state, z)
        and saved.cells.shape == (times, batch, copies, N)
        and saved.before.shape == (batch, copies, N)
        and above.output.shape == (times, batch, H)
        and (above.cells.shape[0] == 0 or above.cells.shape == (times, batch, copies, N))
        and dz.shape == (times, batch, rows)
        and gradients.first_z.shape == (batch, rows)
        and product.w.columns == H
        and product.w.depth <= rows
    ):
        raise IndexError("backward: the arrays do not fit each other")
    indices, inverses, shifted = _indices(sequence.permutations)
    both = indices, inverses
    n, heads, item = N // 2, _known(sequence.general, H // N, 1), copies * N
    sizes = n, heads, copies, sequence.smooth, shifted
    whole, parts = Sizes(*sizes, np.bool_(True)), Sizes(*sizes, np.bool_(False))
    dc, before = state.c.reshape((batch, item)), saved.before.reshape((batch, item))
    cells = saved.cells.reshape((times, batch, item))
    d_cells = above.cells.reshape((above.cells.shape[0], batch, item))
    y_slice = product.y[start:stop]
    work = aligned(workspace(heads, copies) * n, z)
    for step in range(times - 1, -1, -1):
        k = times - 1 - step if sequence.reverse else step
        t = sequence.steps - 1 - first - step if sequence.reverse else first + step
        count = _at_work(start, stop, sequence.lengths, t)
        for b in range(start + turn.member, start + count, turn.members):
            _add(above.output[k, b], dh[b])
            if d_cells.shape[0] > 0:
                _add(d_cells[k, b], dc[b])
            begins = t == (sequence.lengths[b] - 1 if sequence.reverse else 0)
            previous = k + 1 if sequence.reverse else k - 1
            c_before = before[b] if begins or step == 0 else cells[previous, b]
            z_b, c_b, dh_b, dc_b, dz_b = z[k, b], cells[k, b], dh[b], dc[b], dz[k, b]
            if _known(sequence.general, n % width(z), 0) == 0:
                backward_item(z_b, c_before, c_b, dh_b, dc_b, dz_b, both, sequence.turns, whole, work)
            else:
                backward_item(z_b, c_before, c_b, dh_b, dc_b, dz_b, both, sequence.turns, parts, work)
            if begins:
                _copy(dz[k, b], gradients.first_z[b])
        wait(turn)
        multiply(y_slice, dz[k, start:stop], count, product.w, turn)
        wait(turn)
        for b in range(start + turn.member, start + count, turn.members):
            _copy(product.y[b], dh[b])
        for b in range(start + count + turn.member, stop, turn.members):
            _clear(dz[k, b])
