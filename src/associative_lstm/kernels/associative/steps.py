r"""One step of the Associative LSTM for one item of the batch, forward and backward, in compiled code.

Everything is rows of n = N/2 numbers: a gate is one row; a key, an update, a read or a trace is two, its real half
and then its imaginary half. An item's pre-activations ``z`` are 1 + 8 heads such rows, in the order of `rows.Rows`.
Arrays are flat, and rows in them are counted from 0.

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
def _load_pair(a, k, j, n):
    """The real and the imaginary half."""
    return load(a, k, j, n), load(a, k + 1, j, n)


@inline
def _store_pair(a, k, j, n, re, im):
    store(a, k, j, n, re)
    store(a, k + 1, j, n, im)


@inline
def _add_product(sum_re, sum_im, a_re, a_im, b_re, b_im):
    """sum + a b."""
    return sum_re + a_re * b_re - a_im * b_im, sum_im + a_re * b_im + a_im * b_re


@inline
def _add_conjugate_product(sum_re, sum_im, a_re, a_im, b_re, b_im):
    """sum + conj(a) b, the gradient of a product."""
    return sum_re + a_re * b_re + a_im * b_im, sum_im + a_re * b_im - a_im * b_re


@inline
def _conjugate_product(a_re, a_im, b_re, b_im):
    """conj(a) b."""
    return a_re * b_re + a_im * b_im, a_re * b_im - a_im * b_re


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
def _forward_item(z, y, c, h, permutations, n, heads, smooth, work):
    g_f, g_i, g_o, r_i, u = 0, 1, 1 + heads, 1 + 2 * heads, 1 + 6 * heads
    in_key, out_key, v = 0, 2 * heads, 4 * heads
    copies, rows_h = c.shape[0] // (2 * n), y.shape[0] // n
    mean = z.dtype.type(1) / z.dtype.type(copies)

    for j in range(0, n, width(z)):
        for row in range(r_i):
            store(z, row, j, n, sigmoid(load(z, row, j, n) + load(y, row, j, n)))
        for row in range(r_i, rows_h):
            store(z, row, j, n, load(z, row, j, n) + load(y, row, j, n))
        for row in range(0, 4 * heads, 2):  # the keys stand in the same order in z and work
            re, im = _load_pair(z, r_i + row, j, n)
            scale = _bound_scale(z, re, im, smooth)
            store_pairs(work, in_key + row, j, n, scale * re, scale * im)
        for head in range(heads):
            re, im = _load_pair(z, u + 2 * head, j, n)
            scale = load(z, g_i + head, j, n) * _bound_scale(z, re, im, smooth)
            _store_pair(work, v + 2 * head, j, n, scale * re, scale * im)

    for j in range(0, n, width(z)):
        forget = load(z, g_f, j, n)
        for s in range(copies):
            source = load_indices(permutations, s, j, n, z)
            c_re, c_im = _load_pair(c, 2 * s, j, n)
            c_re, c_im = forget * c_re, forget * c_im
            for head in range(heads):
                k_re, k_im = gather_pairs(work, in_key + 2 * head, n, source)
                v_re, v_im = _load_pair(work, v + 2 * head, j, n)
                c_re, c_im = _add_product(c_re, c_im, k_re, k_im, v_re, v_im)
            _store_pair(c, 2 * s, j, n, c_re, c_im)
        for head in range(heads):
            q_re, q_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(permutations, s, j, n, z)
                k_re, k_im = gather_pairs(work, out_key + 2 * head, n, source)
                c_re, c_im = _load_pair(c, 2 * s, j, n)
                q_re, q_im = _add_product(q_re, q_im, k_re, k_im, c_re, c_im)
            q_re, q_im = q_re * mean, q_im * mean
            scale = load(z, g_o + head, j, n) * _bound_scale(z, q_re, q_im, smooth)
            _store_pair(h, 2 * head, j, n, scale * q_re, scale * q_im)


@inline
def _backward_item(z, c_before, c, dh, dc, dz, permutations, inverses, n, heads, smooth, work):
    g_f, g_i, g_o, r_i, u = 0, 1, 1 + heads, 1 + 2 * heads, 1 + 6 * heads
    in_key, out_key, v, dq = 0, 2 * heads, 4 * heads, 6 * heads
    copies = c.shape[0] // (2 * n)
    out_keys, d_keys = 8 * heads, (8 + 2 * copies) * heads  # of all copies; d_keys both kinds for each copy
    one = z.dtype.type(1)
    mean = one / z.dtype.type(copies)

    for j in range(0, n, width(z)):
        for row in range(0, 4 * heads, 2):
            re, im = _load_pair(z, r_i + row, j, n)
            scale = _bound_scale(z, re, im, smooth)
            store_pairs(work, in_key + row, j, n, scale * re, scale * im)

    for j in range(0, n, width(z)):
        for head in range(heads):
            # The read, with the keys as the copies see them kept for what follows.
            q_re, q_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(permutations, s, j, n, z)
                k_re, k_im = gather_pairs(work, out_key + 2 * head, n, source)
                _store_pair(work, out_keys + 2 * (s * heads + head), j, n, k_re, k_im)
                c_re, c_im = _load_pair(c, 2 * s, j, n)
                q_re, q_im = _add_product(q_re, q_im, k_re, k_im, c_re, c_im)
            q_re, q_im = q_re * mean, q_im * mean
            scale = _bound_scale(z, q_re, q_im, smooth)
            gate = load(z, g_o + head, j, n)
            d_re, d_im = _load_pair(dh, 2 * head, j, n)
            d_gate = (d_re * q_re + d_im * q_im) * scale
            store(dz, g_o + head, j, n, d_gate * gate * (one - gate))
            d_re, d_im = d_re * gate * mean, d_im * gate * mean
            slope = _bound_slope(z, q_re, q_im, scale, d_re, d_im, smooth)
            _store_pair(work, dq + 2 * head, j, n, scale * d_re + slope * q_re, scale * d_im + slope * q_im)
            # What is written: the update, gated.
            re, im = _load_pair(z, u + 2 * head, j, n)
            scale = load(z, g_i + head, j, n) * _bound_scale(z, re, im, smooth)
            _store_pair(work, v + 2 * head, j, n, scale * re, scale * im)

        d_forget = fill(z, 0.0)
        for s in range(copies):
            c_re, c_im = _load_pair(c, 2 * s, j, n)
            dc_re, dc_im = _load_pair(dc, 2 * s, j, n)
            d_key = d_keys + 4 * s * heads
            for head in range(heads):
                k_re, k_im = _load_pair(work, out_keys + 2 * (s * heads + head), j, n)
                dq_re, dq_im = _load_pair(work, dq + 2 * head, j, n)
                dc_re, dc_im = _add_conjugate_product(dc_re, dc_im, k_re, k_im, dq_re, dq_im)
                d_re, d_im = _conjugate_product(c_re, c_im, dq_re, dq_im)
                store_pairs(work, d_key + out_key + 2 * head, j, n, d_re, d_im)
            for head in range(heads):
                v_re, v_im = _load_pair(work, v + 2 * head, j, n)
                d_re, d_im = _conjugate_product(v_re, v_im, dc_re, dc_im)
                store_pairs(work, d_key + in_key + 2 * head, j, n, d_re, d_im)
            b_re, b_im = _load_pair(c_before, 2 * s, j, n)
            d_forget = d_forget + b_re * dc_re + b_im * dc_im
            _store_pair(dc, 2 * s, j, n, dc_re, dc_im)
        forget = load(z, g_f, j, n)
        store(dz, g_f, j, n, d_forget * forget * (one - forget))

        for head in range(heads):
            dv_re, dv_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(permutations, s, j, n, z)
                k_re, k_im = gather_pairs(work, in_key + 2 * head, n, source)
                dc_re, dc_im = _load_pair(dc, 2 * s, j, n)
                dv_re, dv_im = _add_conjugate_product(dv_re, dv_im, k_re, k_im, dc_re, dc_im)
            re, im = _load_pair(z, u + 2 * head, j, n)
            scale = _bound_scale(z, re, im, smooth)
            gate = load(z, g_i + head, j, n)
            d_gate = (dv_re * re + dv_im * im) * scale
            store(dz, g_i + head, j, n, d_gate * gate * (one - gate))
            d_re, d_im = dv_re * gate, dv_im * gate
            slope = _bound_slope(z, re, im, scale, d_re, d_im, smooth)
            _store_pair(dz, u + 2 * head, j, n, scale * d_re + slope * re, scale * d_im + slope * im)
        for s in range(copies):
            dc_re, dc_im = _load_pair(dc, 2 * s, j, n)
            _store_pair(dc, 2 * s, j, n, forget * dc_re, forget * dc_im)

    for j in range(0, n, width(z)):
        for row in range(0, 4 * heads, 2):
            d_re, d_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(inverses, s, j, n, z)
                k_re, k_im = gather_pairs(work, d_keys + 4 * s * heads + row, n, source)
                d_re, d_im = d_re + k_re, d_im + k_im
            re, im = _load_pair(z, r_i + row, j, n)
            scale = _bound_scale(z, re, im, smooth)
            slope = _bound_slope(z, re, im, scale, d_re, d_im, smooth)
            _store_pair(dz, r_i + row, j, n, scale * d_re + slope * re, scale * d_im + slope * im)


@jit
def forward_item(z, y, c, h, permutations, n, heads, smooth, work):
    """z += y, then one step as in `reference.step`: c and h become the next state.

    Rows: z 1 + 8 heads, y the first few of these, c 2 copies, h 2 heads, permutations copies, work `workspace`.
    """
    if n == PAPER_N and heads == 1:
        _forward_item(z, y, c, h, permutations, PAPER_N, 1, smooth, work)
    else:
        _forward_item(z, y, c, h, permutations, n, heads, smooth, work)


@jit
def backward_item(z, c_before, c, dh, dc, dz, permutations, inverses, n, heads, smooth, work):
    """The gradients of a step: dh and dc come in; dz goes out, and dc becomes that of the state before.

    Rows as in `forward_item`; dz like z, c_before and dc like c, dh like h, inverses like permutations.
    """
    if n == PAPER_N and heads == 1:
        _backward_item(z, c_before, c, dh, dc, dz, permutations, inverses, PAPER_N, 1, smooth, work)
    else:
        _backward_item(z, c_before, c, dh, dc, dz, permutations, inverses, n, heads, smooth, work)
