r"""The time loops of the Associative LSTM as Triton programs, forward and backward.

A program has a tile of the batch (``ITEMS``) and goes through all steps by itself: items do not depend on each other,
so no program ever waits for another. Inside a program some hundred threads share every tile of numbers, and which
thread has which number is the compiler's choice. So wherever a tile is loaded that was stored before, another thread
may have stored it, and a barrier has to stand between; in Triton's interpreter, which has one thread, a missing one
does not show. Every place is named here, with what crosses it, and marked in the code by its letter:

forward, at each step
    A   z: the input's part was loaded, the sums are stored in its place. (A number of a small tile is loaded by
        several threads and stored by one of them: the others must have it first.)
    B   z: stored by the product, loaded as gates, update and, through the permutations, keys.
        h: loaded by the product, stored after it for the next step.
    C   h and c: stored by this step, loaded by the next.
backward, at each step
    D   dq, dc_now: stored column by column, loaded through the inverse permutations.
        dc: loaded before, stored after it for the step before.
    E   dz: stored by rows, loaded by the product.
        dh: loaded before, stored by the product.
        dq, dc_now: loaded before, stored by the next round of the loop.
    F   dh and dc: stored by this step, loaded by the next round of the loop.

Everything else is only read, or only written, by one launch. The state c has two places, which change roles at every
step, so that no step stores where it loads.

Numbers stand as in `steps`: rows of n = N/2 columns, 1 + 8 heads of them for an item's pre-activations z, in the
order of `rows.Rows`. A tile of columns has all heads. z has the gates' values after the forward pass, and the sums of
the others; a key's bound is taken after its columns are gathered. Steps are counted by tau in the direction of
reading; a launch goes through one segment of the sequence, which begins with step ``first``.
"""

import triton
import triton.language as tl

FRACTION, FAR = tl.constexpr(2.0**-70), tl.constexpr(1e30)


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _tanh_ratio(m):
    """tanh(m) / m of m >= 0; from exp, because the interpreter has no tanh. Near 0, where that cancels, a series."""
    q = tl.where(m < 0.3, m * m, 0.0)
    series = 1382.0 / 155925.0
    series = 62.0 / 2835.0 - q * series
    series = 17.0 / 315.0 - q * series
    series = 2.0 / 15.0 - q * series
    series = 1.0 / 3.0 - q * series
    e = tl.exp(-2.0 * m)
    return tl.where(m < 0.3, 1.0 - q * series, (1.0 - e) / ((1.0 + e) * tl.where(m < 0.3, 1.0, m)))


@triton.jit
def _scale(re, im, smooth: tl.constexpr):
    """scale such that bound(re, im) = scale (re, im): 1 / max(1, m), or tanh(m) / m if ``smooth``, m the modulus."""
    q = re * re + im * im
    if smooth:
        scale = _tanh_ratio(tl.sqrt(q))
    else:
        # Where q is near the end of the number's range or beyond it, take the square of a fraction.
        a, b = FRACTION * re, FRACTION * im
        scale = tl.rsqrt(tl.where(q > FAR, a * a + b * b, tl.where(q < 1.0, 1.0, q)))
        scale = tl.where(q > FAR, FRACTION * scale, scale)
    return scale


@triton.jit
def _slope(re, im, scale, d_re, d_im, smooth: tl.constexpr):
    """slope such that the gradient of bound is scale d + slope (re, im), see `steps._bound_slope`."""
    q = re * re + im * im
    along = re * d_re + im * d_im
    if smooth:
        t = tl.sqrt(q) * scale
        slope = tl.where(q > 0.0, along * (1.0 - t * t - scale) / tl.where(q > 0.0, q, 1.0), 0.0)
    else:
        slope = tl.where(q > 1.0, -along * scale * scale * scale, 0.0)
    return slope


@triton.jit
def _pair(at, n: tl.constexpr, mask):
    """The real and the imaginary half."""
    return tl.load(at, mask=mask, other=0.0), tl.load(at + n, mask=mask, other=0.0)


@triton.jit
def _store_pair(at, n: tl.constexpr, re, im, mask):
    tl.store(at, re, mask=mask)
    tl.store(at + n, im, mask=mask)


@triton.jit
def _bounded(at, n: tl.constexpr, mask, smooth: tl.constexpr):
    """The bound of a pair."""
    re, im = _pair(at, n, mask)
    scale = _scale(re, im, smooth)
    return scale * re, scale * im


@triton.jit
def _multiply(a_re, a_im, b_re, b_im):
    return a_re * b_re - a_im * b_im, a_re * b_im + a_im * b_re


@triton.jit
def _unbind(a_re, a_im, b_re, b_im):
    """conj(a) b, the gradient of a product."""
    return a_re * b_re + a_im * b_im, a_re * b_im - a_im * b_re


@triton.jit
def _product(
    rows,
    real,
    w,
    columns,
    width: tl.constexpr,
    depth: tl.constexpr,
    ITEMS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Some columns of the product of ``rows``, pointers (ITEMS, 1), with w (depth, width).

    Sixteen items or more are a tile for `tl.dot`; fewer are multiplied out, because a dot would fill them up.
    """
    filled = columns < width
    if ITEMS >= 16:
        total = tl.zeros((ITEMS, COLUMNS), tl.float32)
        for k in range(0, depth, DEPTH):
            inner = k + tl.arange(0, DEPTH)
            a = tl.load(rows + inner[None, :], mask=real[:, None] & (inner < depth)[None, :], other=0.0)
            at = w + inner[:, None] * width + columns[None, :]
            b = tl.load(at, mask=(inner < depth)[:, None] & filled[None, :], other=0.0)
            total = tl.dot(a, b, total, input_precision=PRECISION)
    else:
        parts = tl.zeros((ITEMS, DEPTH, COLUMNS), tl.float32)
        for k in range(0, depth, DEPTH):
            inner = k + tl.arange(0, DEPTH)
            a = tl.load(rows + inner[None, :], mask=real[:, None] & (inner < depth)[None, :], other=0.0)
            at = w + inner[:, None] * width + columns[None, :]
            b = tl.load(at, mask=(inner < depth)[:, None] & filled[None, :], other=0.0)
            parts += a[:, :, None] * b[None, :, :]
        total = tl.sum(parts, 1)
    return total


@triton.jit(do_not_specialize=["times", "first", "steps", "batch"])
def forward(
    z,  # (times, B, rows): the input's part comes in, gates and sums go out
    w,  # (heads N, rows_h)
    h,  # (B, heads N): the state, in place
    c,  # (2, B, copies, N): at step tau the state is at tau mod 2, and the next one goes to the other
    output,  # (times, B, heads N)
    cells,  # (times, B, copies, N), if ``keep``
    permutations,  # (copies, n)
    lengths,  # (B,), if ``packed``
    turns,  # (copies, N), if ``turning``
    times,
    first,
    steps,
    batch,
    n: tl.constexpr,
    heads: tl.constexpr,
    copies: tl.constexpr,
    rows_h: tl.constexpr,
    reverse: tl.constexpr,
    smooth: tl.constexpr,
    keep: tl.constexpr,
    packed: tl.constexpr,
    turning: tl.constexpr,
    ITEMS: tl.constexpr,
    HEADS: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    DEPTH: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The steps of a segment, as in `reference.step`."""
    rows: tl.constexpr = (1 + 8 * heads) * n
    H: tl.constexpr = 2 * heads * n
    item: tl.constexpr = 2 * copies * n
    b = tl.program_id(0).to(tl.int64) * ITEMS + tl.arange(0, ITEMS)  # 64 bits: offsets may be beyond 2^31
    real = b < batch
    head = tl.arange(0, HEADS)[None, :, None]
    length = tl.load(lengths + b, mask=real, other=0) if packed else tl.zeros((ITEMS,), tl.int64)
    for step in range(times):
        k = times - 1 - step if reverse else step
        t = steps - 1 - first - step if reverse else first + step
        at_work = real & (t < length) if packed else real
        here = k * batch.to(tl.int64) + b
        now = c + ((first + step) % 2) * batch.to(tl.int64) * item + b[:, None] * item
        after = c + ((first + step + 1) % 2) * batch.to(tl.int64) * item + b[:, None] * item

        for row in range(0, rows_h, ROWS):
            r = row + tl.arange(0, ROWS)
            at = z + here[:, None] * rows + r[None, :]
            inside = real[:, None] & (r < rows_h)[None, :]
            sums = tl.load(at, mask=inside, other=0.0)
            sums += _product(h + b[:, None] * H, real, w, r, rows_h, H, ITEMS, ROWS, DEPTH, PRECISION)
            tl.debug_barrier()  # A
            tl.store(at, tl.where((r < (1 + 2 * heads) * n)[None, :], _sigmoid(sums), sums), mask=inside)
        tl.debug_barrier()  # B

        for column in range(0, n, COLUMNS):
            j = column + tl.arange(0, COLUMNS)
            inside = real[:, None] & (j < n)[None, :]
            everywhere = inside[:, None, :] & (head < heads)
            z_b = z + here[:, None, None] * rows
            forget = tl.load(z + here[:, None] * rows + j[None, :], mask=inside, other=0.0)
            g_i = tl.load(z_b + (1 + head) * n + j[None, None, :], mask=everywhere, other=0.0)
            v_re, v_im = _bounded(
                z_b + (1 + 6 * heads + 2 * head) * n + j[None, None, :], n, everywhere, smooth
            )
            v_re, v_im = g_i * v_re, g_i * v_im
            q_re = tl.zeros((ITEMS, HEADS, COLUMNS), tl.float32)
            q_im = tl.zeros((ITEMS, HEADS, COLUMNS), tl.float32)
            for s in range(copies):
                place = tl.load(permutations + s * n + j, mask=j < n, other=0)
                old_re, old_im = _pair(now + 2 * s * n + j[None, :], n, inside)
                c_re, c_im = old_re, old_im
                if turning:
                    t_re, t_im = _pair(turns + 2 * s * n + j, n, j < n)
                    c_re, c_im = _multiply(t_re[None, :], t_im[None, :], c_re, c_im)
                key = z_b + (1 + 2 * heads + 2 * head) * n + place[None, None, :]
                k_re, k_im = _bounded(key, n, everywhere, smooth)
                w_re, w_im = _multiply(k_re, k_im, v_re, v_im)
                c_re = forget * c_re + tl.sum(w_re, 1)
                c_im = forget * c_im + tl.sum(w_im, 1)
                key = z_b + (1 + 4 * heads + 2 * head) * n + place[None, None, :]
                k_re, k_im = _bounded(key, n, everywhere, smooth)
                r_re, r_im = _multiply(k_re, k_im, c_re[:, None, :], c_im[:, None, :])
                q_re += r_re
                q_im += r_im
                if packed:
                    c_re = tl.where(at_work[:, None], c_re, old_re)
                    c_im = tl.where(at_work[:, None], c_im, old_im)
                _store_pair(after + 2 * s * n + j[None, :], n, c_re, c_im, inside)
                if keep:
                    if packed:
                        c_re = tl.where(at_work[:, None], c_re, 0.0)
                        c_im = tl.where(at_work[:, None], c_im, 0.0)
                    _store_pair(cells + here[:, None] * item + 2 * s * n + j[None, :], n, c_re, c_im, inside)
            q_re, q_im = q_re / copies, q_im / copies
            g_o = tl.load(z_b + (1 + heads + head) * n + j[None, None, :], mask=everywhere, other=0.0)
            scale = g_o * _scale(q_re, q_im, smooth)
            h_re, h_im = scale * q_re, scale * q_im
            at = 2 * head * n + j[None, None, :]
            _store_pair(h + b[:, None, None] * H + at, n, h_re, h_im, everywhere & at_work[:, None, None])
            if packed:
                h_re = tl.where(at_work[:, None, None], h_re, 0.0)
                h_im = tl.where(at_work[:, None, None], h_im, 0.0)
            _store_pair(output + here[:, None, None] * H + at, n, h_re, h_im, everywhere)
        tl.debug_barrier()  # C


@triton.jit(do_not_specialize=["times", "first", "steps", "batch"])
def backward(
    z,  # (times, B, rows), from the forward pass
    w,  # (rows_h, heads N)
    cells,  # (times, B, copies, N)
    before,  # (B, copies, N): the state before the segment, or of an item that begins later, before that
    d_output,  # (times, B, heads N)
    d_cells,  # (times, B, copies, N), if ``above_cells``
    dh,  # (B, heads N): the gradient of the state, in place
    dc,  # (B, copies, N): as well
    dc_now,  # (B, copies, N): for dc of the step at hand, all of it
    dq,  # (B, heads N): for the gradient of what is read
    dz,  # (times, B, rows)
    permutations,  # (copies, n)
    inverses,  # (copies, n)
    lengths,  # (B,), if ``packed``
    turns,  # (copies, N), if ``turning``
    times,
    first,
    steps,
    batch,
    n: tl.constexpr,
    heads: tl.constexpr,
    copies: tl.constexpr,
    rows_h: tl.constexpr,
    reverse: tl.constexpr,
    smooth: tl.constexpr,
    above_cells: tl.constexpr,
    packed: tl.constexpr,
    turning: tl.constexpr,
    ITEMS: tl.constexpr,
    HEADS: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    DEPTH: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The gradients of `forward`, from the segment's last step to its first."""
    rows: tl.constexpr = (1 + 8 * heads) * n
    H: tl.constexpr = 2 * heads * n
    item: tl.constexpr = 2 * copies * n
    b = tl.program_id(0).to(tl.int64) * ITEMS + tl.arange(0, ITEMS)
    real = b < batch
    head = tl.arange(0, HEADS)[None, :, None]
    length = tl.load(lengths + b, mask=real, other=0) if packed else tl.zeros((ITEMS,), tl.int64)
    start = tl.zeros((ITEMS,), tl.int64)  # the step of the segment before which ``before`` is an item's state
    if packed and reverse:
        start = tl.maximum(steps - length - first, start)
    for back in range(times):
        step = times - 1 - back
        k = times - 1 - step if reverse else step
        t = steps - 1 - first - step if reverse else first + step
        at_work = real & (t < length) if packed else real
        begins = start == step
        here = k * batch.to(tl.int64) + b
        previous = here + batch if reverse else here - batch
        z_b = z + here[:, None, None] * rows
        dz_b = dz + here[:, None, None] * rows

        for column in range(0, n, COLUMNS):
            j = column + tl.arange(0, COLUMNS)
            inside = real[:, None] & (j < n)[None, :]
            everywhere = inside[:, None, :] & (head < heads)
            working = everywhere & at_work[:, None, None]
            # The read, and its gradient.
            q_re = tl.zeros((ITEMS, HEADS, COLUMNS), tl.float32)
            q_im = tl.zeros((ITEMS, HEADS, COLUMNS), tl.float32)
            for s in range(copies):
                place = tl.load(permutations + s * n + j, mask=j < n, other=0)
                key = z_b + (1 + 4 * heads + 2 * head) * n + place[None, None, :]
                k_re, k_im = _bounded(key, n, everywhere, smooth)
                c_re, c_im = _pair(cells + here[:, None] * item + 2 * s * n + j[None, :], n, inside)
                r_re, r_im = _multiply(k_re, k_im, c_re[:, None, :], c_im[:, None, :])
                q_re += r_re
                q_im += r_im
            q_re, q_im = q_re / copies, q_im / copies
            scale = _scale(q_re, q_im, smooth)
            at = 2 * head * n + j[None, None, :]
            d_re, d_im = _pair(dh + b[:, None, None] * H + at, n, working)
            above_re, above_im = _pair(d_output + here[:, None, None] * H + at, n, working)
            d_re, d_im = d_re + above_re, d_im + above_im
            g_o = tl.load(z_b + (1 + heads + head) * n + j[None, None, :], mask=everywhere, other=0.0)
            d_gate = (d_re * q_re + d_im * q_im) * scale * g_o * (1.0 - g_o)
            d_gate = tl.where(working, d_gate, 0.0)
            tl.store(dz_b + (1 + heads + head) * n + j[None, None, :], d_gate, mask=everywhere)
            d_re, d_im = d_re * g_o / copies, d_im * g_o / copies
            slope = _slope(q_re, q_im, scale, d_re, d_im, smooth)
            dq_re, dq_im = scale * d_re + slope * q_re, scale * d_im + slope * q_im
            _store_pair(dq + b[:, None, None] * H + at, n, dq_re, dq_im, everywhere)
            # The memory, what was forgotten of it, and what was written.
            d_forget = tl.zeros((ITEMS, COLUMNS), tl.float32)
            dv_re = tl.zeros((ITEMS, HEADS, COLUMNS), tl.float32)
            dv_im = tl.zeros((ITEMS, HEADS, COLUMNS), tl.float32)
            for s in range(copies):
                place = tl.load(permutations + s * n + j, mask=j < n, other=0)
                at_s = 2 * s * n + j[None, :]
                dc_re, dc_im = _pair(dc + b[:, None] * item + at_s, n, inside)
                if above_cells:
                    a_re, a_im = _pair(d_cells + here[:, None] * item + at_s, n, inside & at_work[:, None])
                    dc_re, dc_im = dc_re + a_re, dc_im + a_im
                key = z_b + (1 + 4 * heads + 2 * head) * n + place[None, None, :]
                k_re, k_im = _bounded(key, n, everywhere, smooth)
                r_re, r_im = _unbind(k_re, k_im, dq_re, dq_im)
                dc_re += tl.sum(r_re, 1)
                dc_im += tl.sum(r_im, 1)
                _store_pair(dc_now + b[:, None] * item + at_s, n, dc_re, dc_im, inside)
                key = z_b + (1 + 2 * heads + 2 * head) * n + place[None, None, :]
                k_re, k_im = _bounded(key, n, everywhere, smooth)
                r_re, r_im = _unbind(k_re, k_im, dc_re[:, None, :], dc_im[:, None, :])
                dv_re += r_re
                dv_im += r_im
                c_re, c_im = _pair(before + b[:, None] * item + at_s, n, inside & begins[:, None])
                a_re, a_im = _pair(
                    cells + previous[:, None] * item + at_s, n, inside & (at_work & ~begins)[:, None]
                )
                c_re, c_im = c_re + a_re, c_im + a_im  # one of them is 0
                if turning:
                    t_re, t_im = _pair(turns + 2 * s * n + j, n, j < n)
                    c_re, c_im = _multiply(t_re[None, :], t_im[None, :], c_re, c_im)
                d_forget += c_re * dc_re + c_im * dc_im
            forget = tl.load(z + here[:, None] * rows + j[None, :], mask=inside, other=0.0)
            d_forget = tl.where(at_work[:, None], d_forget * forget * (1.0 - forget), 0.0)
            tl.store(dz + here[:, None] * rows + j[None, :], d_forget, mask=inside)
            g_i = tl.load(z_b + (1 + head) * n + j[None, None, :], mask=everywhere, other=0.0)
            at = (1 + 6 * heads + 2 * head) * n + j[None, None, :]
            u_re, u_im = _pair(z_b + at, n, everywhere)
            scale = _scale(u_re, u_im, smooth)
            d_gate = (dv_re * u_re + dv_im * u_im) * scale * g_i * (1.0 - g_i)
            d_gate = tl.where(working, d_gate, 0.0)
            tl.store(dz_b + (1 + head) * n + j[None, None, :], d_gate, mask=everywhere)
            d_re, d_im = dv_re * g_i, dv_im * g_i
            slope = _slope(u_re, u_im, scale, d_re, d_im, smooth)
            d_re = tl.where(working, scale * d_re + slope * u_re, 0.0)
            d_im = tl.where(working, scale * d_im + slope * u_im, 0.0)
            _store_pair(dz_b + at, n, d_re, d_im, everywhere)
        tl.debug_barrier()  # D

        for column in range(0, n, COLUMNS):
            j = column + tl.arange(0, COLUMNS)
            inside = real[:, None] & (j < n)[None, :]
            everywhere = inside[:, None, :] & (head < heads)
            working = everywhere & at_work[:, None, None]
            forget = tl.load(z + here[:, None] * rows + j[None, :], mask=inside, other=0.0)
            in_re = tl.zeros((ITEMS, HEADS, COLUMNS), tl.float32)
            in_im = tl.zeros((ITEMS, HEADS, COLUMNS), tl.float32)
            out_re = tl.zeros((ITEMS, HEADS, COLUMNS), tl.float32)
            out_im = tl.zeros((ITEMS, HEADS, COLUMNS), tl.float32)
            for s in range(copies):
                # Where column j of a key was met by this copy: P_s transposed.
                place = tl.load(inverses + s * n + j, mask=j < n, other=0)
                there = place[None, None, :]
                g_i = tl.load(z_b + (1 + head) * n + there, mask=everywhere, other=0.0)
                v_re, v_im = _bounded(z_b + (1 + 6 * heads + 2 * head) * n + there, n, everywhere, smooth)
                at_s = 2 * s * n + place[None, :]
                dc_re, dc_im = _pair(dc_now + b[:, None] * item + at_s, n, inside)
                r_re, r_im = _unbind(g_i * v_re, g_i * v_im, dc_re[:, None, :], dc_im[:, None, :])
                in_re += r_re
                in_im += r_im
                c_re, c_im = _pair(cells + here[:, None] * item + at_s, n, inside)
                dq_re, dq_im = _pair(dq + b[:, None, None] * H + 2 * head * n + there, n, everywhere)
                r_re, r_im = _unbind(c_re[:, None, :], c_im[:, None, :], dq_re, dq_im)
                out_re += r_re
                out_im += r_im
                # The state before: at its own column.
                at_s = 2 * s * n + j[None, :]
                dc_re, dc_im = _pair(dc_now + b[:, None] * item + at_s, n, inside)
                if turning:
                    t_re, t_im = _pair(turns + 2 * s * n + j, n, j < n)
                    dc_re, dc_im = _unbind(t_re[None, :], t_im[None, :], dc_re, dc_im)
                _store_pair(
                    dc + b[:, None] * item + at_s,
                    n,
                    forget * dc_re,
                    forget * dc_im,
                    inside & at_work[:, None],
                )
            at = (1 + 2 * heads + 2 * head) * n + j[None, None, :]
            k_re, k_im = _pair(z_b + at, n, everywhere)
            scale = _scale(k_re, k_im, smooth)
            slope = _slope(k_re, k_im, scale, in_re, in_im, smooth)
            d_re = tl.where(working, scale * in_re + slope * k_re, 0.0)
            d_im = tl.where(working, scale * in_im + slope * k_im, 0.0)
            _store_pair(dz_b + at, n, d_re, d_im, everywhere)
            at = (1 + 4 * heads + 2 * head) * n + j[None, None, :]
            k_re, k_im = _pair(z_b + at, n, everywhere)
            scale = _scale(k_re, k_im, smooth)
            slope = _slope(k_re, k_im, scale, out_re, out_im, smooth)
            d_re = tl.where(working, scale * out_re + slope * k_re, 0.0)
            d_im = tl.where(working, scale * out_im + slope * k_im, 0.0)
            _store_pair(dz_b + at, n, d_re, d_im, everywhere)
        tl.debug_barrier()  # E

        for row in range(0, H, ROWS):
            r = row + tl.arange(0, ROWS)
            total = _product(dz + here[:, None] * rows, real, w, r, H, rows_h, ITEMS, ROWS, DEPTH, PRECISION)
            tl.store(dh + b[:, None] * H + r[None, :], total, mask=at_work[:, None] & (r < H)[None, :])
        tl.debug_barrier()  # F
