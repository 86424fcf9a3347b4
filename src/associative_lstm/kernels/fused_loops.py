"""The time loops of the fused Associative LSTM, for a slice of the batch, forward and backward.

Where a batch is too small to be split, threads go through the loop together (their ``turn``): each computes some
columns of the recurrent product, and takes every so-manyth item: the same ones at every step, so that it alone
touches their state.

Steps are counted by tau in the direction of reading: t = tau, or t = T - 1 - tau in reverse. Items of the batch are
ordered by length, longest first, so that those at work at time t are the first few.
"""

import numpy as np

from associative_lstm.kernels.fused_steps import backward_item, forward_item, workspace
from associative_lstm.kernels.matmul import aligned, multiply
from associative_lstm.kernels.runtime import jit, run_by_team
from associative_lstm.kernels.simd import load, store, width
from associative_lstm.kernels.team import ALONE, in_slices, together, wait


@jit
def _at_work(start, stop, lengths, t):
    count = 0
    while start + count < stop and lengths[start + count] > t:
        count += 1
    return count


@jit
def _indices(permutations):
    """The permutations and their inverses as int32, and not one index outside the memory or there twice."""
    copies, n = permutations.shape
    indices, inverses = np.empty(copies * n, np.int32), np.full(copies * n, -1, np.int32)
    for s in range(copies):
        for j in range(n):
            source = permutations[s, j]
            if source < 0 or source >= n:
                raise IndexError("permutations: an index outside the memory")
            if inverses[s * n + source] >= 0:
                raise IndexError(
                    "permutations: an index twice in one copy; to average a model, set use_buffers=False"
                )
            indices[s * n + j] = source
            inverses[s * n + source] = j
    return indices, inverses


@jit
def _copy(source, source_at, target, target_at, count):
    for j in range(0, count, width(source)):
        store(target, target_at, j, count, load(source, source_at, j, count))


@jit
def _add(source, source_at, target, target_at, count):
    for j in range(0, count, width(source)):
        store(
            target, target_at, j, count, load(target, target_at, j, count) + load(source, source_at, j, count)
        )


@jit
def forward(
    start,
    stop,
    turn,
    first,
    last,
    steps,
    reverse,
    z,
    z_base,
    w_hh,
    rows_h,
    y,
    h,
    c,
    output,
    cells,
    base,
    permutations,
    lengths,
    smooth,
):
    """Steps tau = first to last - 1 for items start to stop - 1. The state h, c is updated in place.

    Shapes: z ``(times, B, rows)`` from time z_base; output ``(times, B, heads * N)`` from time base, cells
    ``(times, B, copies, N)`` too, or of length 0 if they are not kept; w_hh packed; y, to work with,
    ``(B, columns of w_hh)``; h ``(B, heads * N)``; c ``(B, copies, N)``.
    """
    _, batch, rows = z.shape
    copies, N = c.shape[1], c.shape[2]
    H = h.shape[1]
    n, heads, item = N // 2, H // N, copies * N
    keep = cells.shape[0] > 0
    t_first = steps - last if reverse else first
    t_last = steps - first if reverse else last
    fits = (
        z.shape == (z.shape[0], c.shape[0], (1 + 8 * heads) * n)
        and h.shape == (batch, heads * N)
        and output.shape == (output.shape[0], batch, H)
        and (not keep or cells.shape == (output.shape[0], batch, copies, N))
        and permutations.shape == (copies, n)
        and lengths.shape[0] == batch
        and 0 <= start <= stop <= batch
        and 0 <= turn[0] < turn[1]
        and 0 <= z_base <= t_first <= t_last <= z_base + z.shape[0]
        and 0 <= base <= t_first <= t_last <= base + output.shape[0]
        and (rows_h == rows or rows_h == rows - H)
        and N >= 2
        and w_hh[1] * w_hh[3] >= rows_h
        and y.shape == (batch, w_hh[1] * w_hh[3])
        and w_hh[2] == H
    )
    if not fits:
        raise IndexError("forward: the arrays do not fit each other")
    indices, _ = _indices(permutations)
    flat_z, flat_c, flat_h = z.reshape(-1), c.reshape(-1), h.reshape(-1)
    flat_output, flat_cells = output.reshape(-1), cells.reshape(-1)
    flat_y, y_width = y.reshape(-1), y.shape[1]
    y_slice, h_slice = y[start:stop], h[start:stop]
    member, members, _ = turn
    work = aligned(workspace(heads, copies) * n, z)
    for tau in range(first, last):
        t = steps - 1 - tau if reverse else tau
        count = _at_work(start, stop, lengths, t)
        multiply(y_slice, h_slice, count, w_hh, member, members)
        wait(turn)
        for b in range(start + member, start + count, members):
            forward_item(
                flat_z,
                ((t - z_base) * batch + b) * rows,
                flat_y,
                b * y_width,
                rows_h // n,
                flat_c,
                b * item,
                flat_h,
                b * H,
                indices,
                copies,
                n,
                heads,
                smooth,
                work,
            )
            at = (t - base) * batch + b
            _copy(flat_h, b * H, flat_output, at * H, H)
            if keep:
                _copy(flat_c, b * item, flat_cells, at * item, item)
        for b in range(start + count + member, stop, members):
            output[t - base, b] = 0
            if keep:
                cells[t - base, b] = 0
        wait(turn)


@jit
def backward(
    start,
    stop,
    turn,
    first,
    last,
    steps,
    reverse,
    z,
    cells,
    base,
    c_start,
    tau_start,
    w_hh,
    y,
    permutations,
    lengths,
    smooth,
    d_output,
    d_cells,
    dh,
    dc,
    dz,
    dz_base,
    dz_first,
):
    """The gradients of `forward`, tau = last - 1 down to first: dz goes out, dh and dc are carried on in place.

    z and cells begin at time base; c_start is the state before step tau_start, where they begin. dz, d_output and
    d_cells begin at time dz_base; d_cells may be of length 0. dz_first gets each item's dz at its first step.
    """
    _, batch, rows = z.shape
    copies, N = dc.shape[1], dc.shape[2]
    H = dh.shape[1]
    n, heads, item = N // 2, H // N, copies * N
    t_first = steps - last if reverse else first
    t_last = steps - first if reverse else last
    fits = (
        z.shape == (z.shape[0], dc.shape[0], (1 + 8 * heads) * n)
        and cells.shape == (z.shape[0], batch, copies, N)
        and c_start.shape == dc.shape
        and dh.shape == (batch, heads * N)
        and permutations.shape == (copies, n)
        and lengths.shape[0] == batch
        and d_output.shape == (dz.shape[0], batch, H)
        and (d_cells.shape[0] == 0 or d_cells.shape == (dz.shape[0], batch, copies, N))
        and dz.shape == (dz.shape[0], batch, rows)
        and dz_first.shape == (batch, rows)
        and 0 <= start <= stop <= batch
        and 0 <= turn[0] < turn[1]
        and 0 <= base <= t_first <= t_last <= base + z.shape[0]
        and 0 <= dz_base <= t_first <= t_last <= dz_base + dz.shape[0]
        and tau_start <= first
        and (tau_start == (steps - base - z.shape[0] if reverse else base))
        and N >= 2
        and w_hh[1] * w_hh[3] >= H
        and y.shape == (batch, w_hh[1] * w_hh[3])
        and w_hh[2] <= rows
    )
    if not fits:
        raise IndexError("backward: the arrays do not fit each other")
    indices, inverses = _indices(permutations)
    flat_z, flat_cells, flat_start = z.reshape(-1), cells.reshape(-1), c_start.reshape(-1)
    flat_dc, flat_dz, flat_dh = dc.reshape(-1), dz.reshape(-1), dh.reshape(-1)
    flat_d_output, flat_d_cells = d_output.reshape(-1), d_cells.reshape(-1)
    flat_y, y_width = y.reshape(-1), y.shape[1]
    y_slice = y[start:stop]
    member, members, _ = turn
    work = aligned(workspace(heads, copies) * n, z)
    for tau in range(last - 1, first - 1, -1):
        t = steps - 1 - tau if reverse else tau
        count = _at_work(start, stop, lengths, t)
        for b in range(start + member, start + count, members):
            at = (t - dz_base) * batch + b
            _add(flat_d_output, at * H, flat_dh, b * H, H)
            if d_cells.shape[0] > 0:
                _add(flat_d_cells, at * item, flat_dc, b * item, item)
            first_step = t == (lengths[b] - 1 if reverse else 0)
            now = ((t - base) * batch + b) * item
            if first_step or tau == tau_start:
                before, before_at = flat_start, b * item
            else:
                before, before_at = flat_cells, now + (batch * item if reverse else -batch * item)
            backward_item(
                flat_z,
                ((t - base) * batch + b) * rows,
                before,
                before_at,
                flat_cells,
                now,
                flat_dh,
                b * H,
                flat_dc,
                b * item,
                flat_dz,
                at * rows,
                indices,
                inverses,
                copies,
                n,
                heads,
                smooth,
                work,
            )
            if first_step:
                dz_first[b] = dz[t - dz_base, b]
        wait(turn)
        multiply(y_slice, dz[t - dz_base, start:stop], count, w_hh, member, members)
        wait(turn)
        for b in range(start + member, start + count, members):
            _copy(flat_y, b * y_width, flat_dh, b * H, H)
        for b in range(start + count + member, stop, members):
            dz[t - dz_base, b] = 0


@run_by_team(forward)
@jit
def _forward_in_team(team, slices, batch, *args):
    if slices > 0:
        in_slices(forward, team, slices, batch, (ALONE, *args))
    else:
        together(forward, team, batch, args)


@run_by_team(backward)
@jit
def _backward_in_team(team, slices, batch, *args):
    if slices > 0:
        in_slices(backward, team, slices, batch, (ALONE, *args))
    else:
        together(backward, team, batch, args)
