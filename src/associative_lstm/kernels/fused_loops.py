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
def _indices(permutations, copies, n):
    """The permutations and their inverses as int32, and not one index outside a row of n."""
    if permutations.shape != (copies, n):
        raise IndexError("permutations: another shape than the memory's")
    indices, inverses = np.empty((copies, n), np.int32), np.zeros((copies, n), np.int32)
    for s in range(copies):
        for j in range(n):
            source = permutations[s, j]
            if source < 0 or source >= n:
                raise IndexError("permutations: an index outside the memory")
            indices[s, j] = source
            inverses[s, source] = j
    return indices, inverses


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
    copies, N = c.shape[1], c.shape[2]
    n, heads = N // 2, h.shape[1] // N
    batch = c.shape[0]
    z_rows = z.reshape(z.shape[0], batch, 1 + 8 * heads, n)
    c_rows, h_rows = c.reshape(batch, 2 * copies, n), h.reshape(batch, 2 * heads, n)
    output_rows = output.reshape(output.shape[0], batch, 2 * heads, n)
    cells_rows = cells.reshape(cells.shape[0], batch, 2 * copies, n)
    keep = cells.shape[0] > 0
    y = np.empty((stop - start, w_hh.shape[0] * w_hh.shape[2]), z.dtype)
    work = np.empty((workspace(heads, copies), n), z.dtype)
    indices, _ = _indices(permutations, copies, n)
    for tau in range(first, last):
        t = steps - 1 - tau if reverse else tau
        count = _at_work(start, stop, lengths, t)
        multiply(y, h[start:stop], count, w_hh)
        for k in range(count):
            b = start + k
            y_rows = y[k, :rows_h].reshape(rows_h // n, n)
            forward_item(z_rows[t - z_base, b], y_rows, c_rows[b], heads, smooth, indices, h_rows[b], work)
            output_rows[t - base, b] = h_rows[b]
            if keep:
                cells_rows[t - base, b] = c_rows[b]
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
    copies, N = dc.shape[1], dc.shape[2]
    n, heads = N // 2, dh.shape[1] // N
    batch = dc.shape[0]
    z_rows, dz_rows = (
        z.reshape(z.shape[0], batch, 1 + 8 * heads, n),
        dz.reshape(dz.shape[0], batch, 1 + 8 * heads, n),
    )
    cells_rows = cells.reshape(cells.shape[0], batch, 2 * copies, n)
    start_rows, dc_rows = c_start.reshape(batch, 2 * copies, n), dc.reshape(batch, 2 * copies, n)
    d_cells_rows = d_cells.reshape(d_cells.shape[0], batch, 2 * copies, n)
    dh_rows, d_output_rows = dh.reshape(batch, 2 * heads, n), d_output.reshape(steps, batch, 2 * heads, n)
    y = np.empty((stop - start, w_hh.shape[0] * w_hh.shape[2]), z.dtype)
    work = np.empty((workspace(heads, copies), n), z.dtype)
    indices, inverses = _indices(permutations, copies, n)
    for tau in range(last - 1, first - 1, -1):
        t = steps - 1 - tau if reverse else tau
        count = _at_work(start, stop, lengths, t)
        for k in range(count):
            b = start + k
            dh_rows[b] += d_output_rows[t, b]
            if d_cells.shape[0] > 0:
                dc_rows[b] += d_cells_rows[t, b]
            first_step = t == (lengths[b] - 1 if reverse else 0)
            if first_step or tau == tau_start:
                before = start_rows[b]
            else:
                before = cells_rows[t - base + (1 if reverse else -1), b]
            backward_item(
                z_rows[t - base, b],
                before,
                cells_rows[t - base, b],
                dh_rows[b],
                dc_rows[b],
                heads,
                smooth,
                indices,
                inverses,
                dz_rows[t - dz_base, b],
                work,
            )
            if first_step:
                dz_first[b] = dz[t - dz_base, b]
        multiply(y, dz[t - dz_base, start:stop], count, w_hh)
        for k in range(count):
            dh[start + k] = y[k, : dh.shape[1]]
        for b in range(start + count, stop):
            dz[t - dz_base, b] = 0
