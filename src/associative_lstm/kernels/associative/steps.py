r"""One step of the Associative LSTM for one item of the batch, forward and backward, in compiled code.

Everything is rows of n = N/2 numbers: a gate is one row; a key, an update, a read or a trace is two, its real half
and then its imaginary half. An item's pre-activations ``z`` are 1 + 8 heads such rows, in the order of `rows.Rows`.
Rows stand in flat arrays, named by the index at which they begin.

A step goes over the columns a vector at a time (`simd`), and over heads and copies inside, so that what belongs to a
column stays in registers. Only a permutation mixes columns: P_s r is a gather from the row of r, and its transpose a
gather through the inverse permutation; rows that are gathered from keep the two parts of a number side by side.

A step finds pre-activations in ``z``. It puts the gates' values in the gates' rows, where the backward step looks for
them, and leaves the sums in the other rows.
"""

from associative_lstm.kernels.compiler.elementary import sigmoid, tanh
from associative_lstm.kernels.compiler.runtime import inline, jit
from associative_lstm.kernels.compiler.simd import (
    fill,
    gather_pairs,
    load,
    load_indices,
    reciprocal_sqrt,
    select_greater,
    sqrt,
    store,
    store_pairs,
    width,
)

FRACTION, FAR = 2.0**-70, 1e30
PAPER_N = 64
"""The n of the paper's networks, N_h = 128: with it known to the compiler, and one head, a step takes 15 % less."""


@inline
def _load_pair(a, row, j, n):
    """The real and the imaginary half."""
    return load(a, row, j, n), load(a, row + n, j, n)


@inline
def _store_pair(a, row, j, n, re, im):
    store(a, row, j, n, re)
    store(a, row + n, j, n, im)


@inline
def _bound_scale(z, re, im, smooth):
    """scale such that bound(re, im) = scale (re, im): 1 / max(1, m), or tanh(m) / m if ``smooth``, m the modulus."""
    one = fill(z, 1.0)
    q = re * re + im * im
    if smooth:
        m = sqrt(q)
        scale = select_greater(m, fill(z, 0.0), tanh(m) / m, one)
    else:
        # Where q is near the end of the number's range or beyond it, take the square of a fraction, and only there:
        # elsewhere it would be a denormal number, which is slow.
        far = fill(z, FAR)
        a, b = select_greater(q, far, FRACTION * re, one), select_greater(q, far, FRACTION * im, one)
        scale = reciprocal_sqrt(select_greater(q, far, a * a + b * b, select_greater(one, q, one, q)))
        scale = select_greater(q, far, FRACTION * scale, scale)
    return scale


@inline
def _bound_slope(z, re, im, scale, d_re, d_im, smooth):
    r"""slope such that the gradient of bound is scale d + slope (re, im), d being the gradient of its result.

    That is ((re, im) \cdot d) (m' - scale) / m^2, with m' the derivative of the map of moduli: 0 beyond the unit
    circle, where scale is 1 / m, and inside it equal to scale; or 1 - tanh^2 if ``smooth``.
    """
    one, zero = fill(z, 1.0), fill(z, 0.0)
    q = re * re + im * im
    along = re * d_re + im * d_im
    if smooth:
        t = tanh(sqrt(q))
        slope = select_greater(q, zero, along * (one - t * t - scale) / q, zero)
    else:
        slope = select_greater(q, one, (zero - along) * scale * scale * scale, zero)
    return slope


@jit
def workspace(heads, copies):
    """Rows of working memory that a step needs."""
    return 8 * heads + 6 * heads * copies


@inline
def _forward_item(z, z_at, y, y_at, rows_h, c, c_at, h, h_at, permutations, copies, n, heads, smooth, work):
    g_f, g_i, g_o = z_at, z_at + n, z_at + (1 + heads) * n
    r_i, u = z_at + (1 + 2 * heads) * n, z_at + (1 + 6 * heads) * n
    in_key, out_key, v = 0, 2 * heads * n, 4 * heads * n
    pair = 2 * n
    mean = z.dtype.type(1) / z.dtype.type(copies)

    for j in range(0, n, width(z)):
        for row in range(0, (1 + 2 * heads) * n, n):
            store(z, z_at + row, j, n, sigmoid(load(z, z_at + row, j, n) + load(y, y_at + row, j, n)))
        for row in range((1 + 2 * heads) * n, rows_h * n, n):
            store(z, z_at + row, j, n, load(z, z_at + row, j, n) + load(y, y_at + row, j, n))
        for row in range(0, 2 * heads * pair, pair):  # the keys stand in the same order in z and work
            re, im = _load_pair(z, r_i + row, j, n)
            scale = _bound_scale(z, re, im, smooth)
            store_pairs(work, in_key + row, j, n, scale * re, scale * im)
        for head in range(heads):
            re, im = _load_pair(z, u + head * pair, j, n)
            scale = load(z, g_i + head * n, j, n) * _bound_scale(z, re, im, smooth)
            _store_pair(work, v + head * pair, j, n, scale * re, scale * im)

    for j in range(0, n, width(z)):
        forget = load(z, g_f, j, n)
        for s in range(copies):
            source = load_indices(permutations, s * n, j, n, z)
            c_re, c_im = _load_pair(c, c_at + s * pair, j, n)
            c_re, c_im = forget * c_re, forget * c_im
            for head in range(heads):
                k_re, k_im = gather_pairs(work, in_key + head * pair, source)
                v_re, v_im = _load_pair(work, v + head * pair, j, n)
                c_re = c_re + k_re * v_re - k_im * v_im
                c_im = c_im + k_re * v_im + k_im * v_re
            _store_pair(c, c_at + s * pair, j, n, c_re, c_im)
        for head in range(heads):
            q_re, q_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(permutations, s * n, j, n, z)
                k_re, k_im = gather_pairs(work, out_key + head * pair, source)
                c_re, c_im = _load_pair(c, c_at + s * pair, j, n)
                q_re = q_re + k_re * c_re - k_im * c_im
                q_im = q_im + k_re * c_im + k_im * c_re
            q_re, q_im = q_re * mean, q_im * mean
            scale = load(z, g_o + head * n, j, n) * _bound_scale(z, q_re, q_im, smooth)
            _store_pair(h, h_at + head * pair, j, n, scale * q_re, scale * q_im)


@inline
def _backward_item(
    z, z_at, c_before, c_before_at, c, c_at, dh, dh_at, dc, dc_at, dz, dz_at,
    permutations, inverses, copies, n, heads, smooth, work,
):  # fmt: skip
    g_f, g_i, g_o = 0, n, (1 + heads) * n
    r_i, u = (1 + 2 * heads) * n, (1 + 6 * heads) * n
    pair = 2 * n
    in_key, out_key, v, dq = 0, heads * pair, 2 * heads * pair, 3 * heads * pair
    out_keys, d_keys = (
        4 * heads * pair,
        (4 + copies) * heads * pair,
    )  # of all copies; d_keys both kinds for each copy
    one = z.dtype.type(1)
    mean = one / z.dtype.type(copies)

    for j in range(0, n, width(z)):
        for row in range(0, 2 * heads * pair, pair):
            re, im = _load_pair(z, z_at + r_i + row, j, n)
            scale = _bound_scale(z, re, im, smooth)
            store_pairs(work, in_key + row, j, n, scale * re, scale * im)

    for j in range(0, n, width(z)):
        for head in range(heads):
            # The read, with the keys as the copies see them kept for what follows.
            q_re, q_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(permutations, s * n, j, n, z)
                k_re, k_im = gather_pairs(work, out_key + head * pair, source)
                _store_pair(work, out_keys + (s * heads + head) * pair, j, n, k_re, k_im)
                c_re, c_im = _load_pair(c, c_at + s * pair, j, n)
                q_re = q_re + k_re * c_re - k_im * c_im
                q_im = q_im + k_re * c_im + k_im * c_re
            q_re, q_im = q_re * mean, q_im * mean
            scale = _bound_scale(z, q_re, q_im, smooth)
            gate = load(z, z_at + g_o + head * n, j, n)
            d_re, d_im = _load_pair(dh, dh_at + head * pair, j, n)
            d_gate = (d_re * q_re + d_im * q_im) * scale
            store(dz, dz_at + g_o + head * n, j, n, d_gate * gate * (one - gate))
            d_re, d_im = d_re * gate * mean, d_im * gate * mean
            slope = _bound_slope(z, q_re, q_im, scale, d_re, d_im, smooth)
            _store_pair(
                work, dq + head * pair, j, n, scale * d_re + slope * q_re, scale * d_im + slope * q_im
            )
            # What is written: the update, gated.
            re, im = _load_pair(z, z_at + u + head * pair, j, n)
            scale = load(z, z_at + g_i + head * n, j, n) * _bound_scale(z, re, im, smooth)
            _store_pair(work, v + head * pair, j, n, scale * re, scale * im)

        d_forget = fill(z, 0.0)
        for s in range(copies):
            c_re, c_im = _load_pair(c, c_at + s * pair, j, n)
            dc_re, dc_im = _load_pair(dc, dc_at + s * pair, j, n)
            d_key = d_keys + 2 * s * heads * pair
            for head in range(heads):
                k_re, k_im = _load_pair(work, out_keys + (s * heads + head) * pair, j, n)
                dq_re, dq_im = _load_pair(work, dq + head * pair, j, n)
                dc_re = dc_re + k_re * dq_re + k_im * dq_im
                dc_im = dc_im + k_re * dq_im - k_im * dq_re
                d_re, d_im = c_re * dq_re + c_im * dq_im, c_re * dq_im - c_im * dq_re
                store_pairs(work, d_key + out_key + head * pair, j, n, d_re, d_im)
            for head in range(heads):
                v_re, v_im = _load_pair(work, v + head * pair, j, n)
                d_re, d_im = v_re * dc_re + v_im * dc_im, v_re * dc_im - v_im * dc_re
                store_pairs(work, d_key + in_key + head * pair, j, n, d_re, d_im)
            b_re, b_im = _load_pair(c_before, c_before_at + s * pair, j, n)
            d_forget = d_forget + b_re * dc_re + b_im * dc_im
            _store_pair(dc, dc_at + s * pair, j, n, dc_re, dc_im)
        forget = load(z, z_at + g_f, j, n)
        store(dz, dz_at + g_f, j, n, d_forget * forget * (one - forget))

        for head in range(heads):
            dv_re, dv_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(permutations, s * n, j, n, z)
                k_re, k_im = gather_pairs(work, in_key + head * pair, source)
                dc_re, dc_im = _load_pair(dc, dc_at + s * pair, j, n)
                dv_re = dv_re + k_re * dc_re + k_im * dc_im
                dv_im = dv_im + k_re * dc_im - k_im * dc_re
            re, im = _load_pair(z, z_at + u + head * pair, j, n)
            scale = _bound_scale(z, re, im, smooth)
            gate = load(z, z_at + g_i + head * n, j, n)
            d_gate = (dv_re * re + dv_im * im) * scale
            store(dz, dz_at + g_i + head * n, j, n, d_gate * gate * (one - gate))
            d_re, d_im = dv_re * gate, dv_im * gate
            slope = _bound_slope(z, re, im, scale, d_re, d_im, smooth)
            _store_pair(
                dz, dz_at + u + head * pair, j, n, scale * d_re + slope * re, scale * d_im + slope * im
            )
        for s in range(copies):
            dc_re, dc_im = _load_pair(dc, dc_at + s * pair, j, n)
            _store_pair(dc, dc_at + s * pair, j, n, forget * dc_re, forget * dc_im)

    for j in range(0, n, width(z)):
        for row in range(0, 2 * heads * pair, pair):
            d_re, d_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(inverses, s * n, j, n, z)
                d_key = d_keys + 2 * s * heads * pair + row
                k_re, k_im = gather_pairs(work, d_key, source)
                d_re, d_im = d_re + k_re, d_im + k_im
            re, im = _load_pair(z, z_at + r_i + row, j, n)
            scale = _bound_scale(z, re, im, smooth)
            slope = _bound_slope(z, re, im, scale, d_re, d_im, smooth)
            _store_pair(dz, dz_at + r_i + row, j, n, scale * d_re + slope * re, scale * d_im + slope * im)


@jit
def forward_item(z, z_at, y, y_at, rows_h, c, c_at, h, h_at, permutations, copies, n, heads, smooth, work):
    """z += y, then one step as in `reference.step`: c and h become the next state.

    Rows: z 1 + 8 heads, y the first rows_h of these, c 2 copies, h 2 heads, permutations copies, work `workspace`.
    """
    if n == PAPER_N and heads == 1:
        _forward_item(
            z, z_at, y, y_at, rows_h, c, c_at, h, h_at, permutations, copies, PAPER_N, 1, smooth, work
        )
    else:
        _forward_item(
            z, z_at, y, y_at, rows_h, c, c_at, h, h_at, permutations, copies, n, heads, smooth, work
        )


@jit
def backward_item(
    z, z_at, c_before, c_before_at, c, c_at, dh, dh_at, dc, dc_at, dz, dz_at,
    permutations, inverses, copies, n, heads, smooth, work,
):  # fmt: skip
    """The gradients of a step: dh and dc come in; dz goes out, and dc becomes that of the state before.

    Rows as in `forward_item`; dz like z, c_before and dc like c, dh like h, inverses like permutations.
    """
    if n == PAPER_N and heads == 1:
        _backward_item(
            z, z_at, c_before, c_before_at, c, c_at, dh, dh_at, dc, dc_at, dz, dz_at,
            permutations, inverses, copies, PAPER_N, 1, smooth, work,
        )  # fmt: skip
    else:
        _backward_item(
            z, z_at, c_before, c_before_at, c, c_at, dh, dh_at, dc, dc_at, dz, dz_at,
            permutations, inverses, copies, n, heads, smooth, work,
        )  # fmt: skip
