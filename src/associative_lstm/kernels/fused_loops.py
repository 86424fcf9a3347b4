"""The time loops of the fused Associative LSTM, for a slice of the batch, forward and backward.

Steps are counted by tau in the direction of reading: t = tau, or t = T - 1 - tau in reverse. Items of the batch are
ordered by length, longest first, so that those at work at time t are the first few.
"""

import numpy as np

from associative_lstm.kernels.fused_steps import backward_item, forward_item, workspace
from associative_lstm.kernels.matmul import multiply
from associative_lstm.kernels.runtime import jit


@jit
def _at_work(start, stop, lengths, t):
    count = 0
    while start + count < stop and lengths[start + count] > t:
        count += 1
    return count


@jit
def forward(
    start,
    stop,
    first,
    last,
    steps,
    reverse,
    z,
    z_base,
    w_hh,
    rows_h,
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
    ``(times, B, copies, N)`` too, or of length 0 if they are not kept; w_hh packed; h ``(B, heads * N)``; c
    ``(B, copies, N)``.
    """
    _, batch, rows = z.shape
    copies, N = c.shape[1], c.shape[2]
    H = h.shape[1]
    n, heads, item = N // 2, H // N, copies * N
    flat_z, flat_c, flat_h = z.reshape(-1), c.reshape(-1), h.reshape(-1)
    flat_output, flat_cells = output.reshape(-1), cells.reshape(-1)
    keep = cells.shape[0] > 0
    y = np.empty((stop - start, w_hh.shape[0] * w_hh.shape[2]), z.dtype)
    work = np.empty(workspace(heads, copies, n), z.dtype)
    for tau in range(first, last):
        t = steps - 1 - tau if reverse else tau
        count = _at_work(start, stop, lengths, t)
        multiply(y, h[start:stop], count, w_hh)
        for k in range(count):
            b = start + k
            z_at, h_at, c_at = ((t - z_base) * batch + b) * rows, b * H, b * item
            forward_item(
                flat_z,
                z_at,
                y[k],
                rows_h,
                flat_c,
                c_at,
                copies,
                n,
                heads,
                smooth,
                permutations,
                flat_h,
                h_at,
                work,
            )
            at = (t - base) * batch + b
            for j in range(H):
                flat_output[at * H + j] = flat_h[h_at + j]
            if keep:
                for j in range(item):
                    flat_cells[at * item + j] = flat_c[c_at + j]
        for b in range(start + count, stop):
            output[t - base, b] = 0
            if keep:
                cells[t - base, b] = 0


@jit
def backward(
    start,
    stop,
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

    z and cells begin at time base; c_start is the state before step tau_start, where they begin. dz begins at time
    dz_base. dz_first gets each item's dz at its first step. d_cells may be of length 0.
    """
    _, batch, rows = z.shape
    copies, N = dc.shape[1], dc.shape[2]
    H = dh.shape[1]
    n, heads, item = N // 2, H // N, copies * N
    flat_z, flat_cells, flat_start = z.reshape(-1), cells.reshape(-1), c_start.reshape(-1)
    flat_dc, flat_dz = dc.reshape(-1), dz.reshape(-1)
    y = np.empty((stop - start, w_hh.shape[0] * w_hh.shape[2]), z.dtype)
    work = np.empty(workspace(heads, copies, n), z.dtype)
    for tau in range(last - 1, first - 1, -1):
        t = steps - 1 - tau if reverse else tau
        count = _at_work(start, stop, lengths, t)
        for k in range(count):
            b = start + k
            for j in range(H):
                dh[b, j] += d_output[t, b, j]
            if d_cells.shape[0] > 0:
                dc[b] += d_cells[t, b]
            now = ((t - base) * batch + b) * item
            first_step = t == (lengths[b] - 1 if reverse else 0)
            if first_step or tau == tau_start:
                before, before_at = flat_start, b * item
            else:
                before, before_at = flat_cells, now + (batch * item if reverse else -batch * item)
            z_at, dz_at = ((t - base) * batch + b) * rows, ((t - dz_base) * batch + b) * rows
            backward_item(
                flat_z,
                z_at,
                before,
                before_at,
                flat_cells,
                now,
                dh[b],
                flat_dc,
                b * item,
                copies,
                n,
                heads,
                smooth,
                permutations,
                flat_dz,
                dz_at,
                work,
            )
            if first_step:
                dz_first[b] = dz[t - dz_base, b]
        multiply(y, dz[t - dz_base, start:stop], count, w_hh)
        for k in range(count):
            for j in range(H):
                dh[start + k, j] = y[k, j]
        for b in range(start + count, stop):
            dz[t - dz_base, b] = 0
