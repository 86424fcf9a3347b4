r"""One step of the Associative LSTM for one item of the batch, forward and backward, in compiled code.

Everything is rows of n = N/2 numbers: a gate is one row; a key, an update, a read or a trace is two, its real half
and then its imaginary half. An item's pre-activations ``z`` are 1 + 8 heads such rows, in the order of `rows.Rows`.
Arrays are flat, and rows in them are counted from 0.

A step goes over the columns a vector at a time (`simd`), and over heads and copies inside, so that what belongs to a
column stays in registers.

Only a permutation mixes columns. The input and the output key of a head go through the same ones, so the four numbers
of a column, two complex ones, stand side by side, and one load fetches them; the transpose is fetched through the
inverse permutation. Where every permutation is a cyclic shift, a row stands there twice instead, and P_s r is what
begins some columns later.

A step finds pre-activations in ``z``. It puts the gates' values in the gates' rows, where the backward step looks for
them, and leaves the sums in the other rows.
"""

from typing import NamedTuple

from associative_lstm.kernels.compiler.elementary import sigmoid, tanh
from associative_lstm.kernels.compiler.runtime import inline
from associative_lstm.kernels.compiler.simd import (
    fill,
    load,
    load_fours,
    reciprocal_sqrt,
    select_greater,
    sqrt,
    store,
    store_fours,
    width,
)

FRACTION, FAR = 2.0**-70, 1e30


@inline
def _load_pair(a, k, j, n, left):
    """The real and the imaginary half."""
    return load(a, k, j, n, left), load(a, k + 1, j, n, left)


@inline
def _store_pair(a, k, j, n, left, re, im):
    store(a, k, j, n, left, re)
    store(a, k + 1, j, n, left, im)


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


class Sizes(NamedTuple):
    """What is the same for all items and steps."""

    n: int
    heads: int
    copies: int
    smooth: bool
    shifted: bool  # every permutation is a cyclic shift
    whole: bool  # n is a multiple of a vector's width


@inline
def workspace(heads, copies):
    """Rows of working memory that a step needs."""
    return 12 * heads + 12 * heads * copies


@inline
def _span(sizes):
    """Rows that `_put` takes."""
    return 8 if sizes.shifted else 4


@inline
def _put(work, row, j, left, sizes, i_re, i_im, o_re, o_im):
    """Store both keys of a head for `_permuted`: side by side in four rows, or if shifted each part twice."""
    n = sizes.n
    if sizes.shifted:
        for k in range(2):
            store(work, row + k, j, n, left, i_re)
            store(work, row + 2 + k, j, n, left, i_im)
            store(work, row + 4 + k, j, n, left, o_re)
            store(work, row + 6 + k, j, n, left, o_im)
    else:
        store_fours(work, row, j, n, left, i_re, i_im, o_re, o_im)


@inline
def _permuted(work, row, permutations, s, j, left, sizes):
    """Columns j, j + 1, ... of P_s of what was `_put` there."""
    n = sizes.n
    if sizes.shifted:
        j += permutations[s * n] // 4
        i_re, i_im = load(work, row, j, n, left), load(work, row + 2, j, n, left)
        o_re, o_im = load(work, row + 4, j, n, left), load(work, row + 6, j, n, left)
    else:
        i_re, i_im, o_re, o_im = load_fours(work, row, n, permutations, s * n + j)
    return i_re, i_im, o_re, o_im


@inline
def _turned(turns, c, s, j, n, left):
    """Columns of a copy as the next step finds it."""
    re, im = _load_pair(c, 2 * s, j, n, left)
    if turns is not None:
        t_re, t_im = _load_pair(turns, 2 * s, j, n, left)
        re, im = t_re * re - t_im * im, t_re * im + t_im * re
    return re, im


@inline
def _turned_back(turns, dc, s, j, n, left):
    """The gradient of `_turned`."""
    re, im = _load_pair(dc, 2 * s, j, n, left)
    if turns is not None:
        t_re, t_im = _load_pair(turns, 2 * s, j, n, left)
        re, im = _conjugate_product(t_re, t_im, re, im)
    return re, im


@inline
def _bound_keys(z, sizes, work):
    """The keys' values, where `_permuted` finds them."""
    n, heads, r_i = sizes.n, sizes.heads, 1 + 2 * sizes.heads
    for j in range(0, n, width(z)):
        left = width(z) if sizes.whole else n - j
        for head in range(heads):
            i_re, i_im = _load_pair(z, r_i + 2 * head, j, n, left)
            o_re, o_im = _load_pair(z, r_i + 2 * (heads + head), j, n, left)
            a, b = _bound_scale(z, i_re, i_im, sizes.smooth), _bound_scale(z, o_re, o_im, sizes.smooth)
            _put(work, _span(sizes) * head, j, left, sizes, a * i_re, a * i_im, b * o_re, b * o_im)


@inline
def forward_item(z, y, c, h, permutations, turns, sizes, work):
    """z += y, then one step as in `reference.step`: c and h become the next state.

    Rows: z 1 + 8 heads, y the first few of these, c 2 copies, turns as many or None, h 2 heads, permutations copies,
    work `workspace`.
    """
    n, heads, copies, span = sizes.n, sizes.heads, sizes.copies, _span(sizes)
    g_f, g_i, g_o, r_i, u = 0, 1, 1 + heads, 1 + 2 * heads, 1 + 6 * heads
    v, out_keys = span * heads, (span + 2) * heads  # out_keys: of all copies
    mean = z.dtype.type(1) / z.dtype.type(copies)

    for j in range(0, n, width(z)):
        left = width(z) if sizes.whole else n - j
        for row in range(r_i):
            store(z, row, j, n, left, sigmoid(load(z, row, j, n, left) + load(y, row, j, n, left)))
        for row in range(r_i, y.shape[0] // n):
            store(z, row, j, n, left, load(z, row, j, n, left) + load(y, row, j, n, left))
        for head in range(heads):
            re, im = _load_pair(z, u + 2 * head, j, n, left)
            scale = load(z, g_i + head, j, n, left) * _bound_scale(z, re, im, sizes.smooth)
            _store_pair(work, v + 2 * head, j, n, left, scale * re, scale * im)
    _bound_keys(z, sizes, work)

    for j in range(0, n, width(z)):
        left = width(z) if sizes.whole else n - j
        forget = load(z, g_f, j, n, left)
        for s in range(copies):
            c_re, c_im = _turned(turns, c, s, j, n, left)
            c_re, c_im = forget * c_re, forget * c_im
            for head in range(heads):
                k_re, k_im, o_re, o_im = _permuted(work, span * head, permutations, s, j, left, sizes)
                if not sizes.shifted:  # else it is loaded again, which is as cheap
                    _store_pair(work, out_keys + 2 * (s * heads + head), j, n, left, o_re, o_im)
                v_re, v_im = _load_pair(work, v + 2 * head, j, n, left)
                c_re, c_im = _add_product(c_re, c_im, k_re, k_im, v_re, v_im)
            _store_pair(c, 2 * s, j, n, left, c_re, c_im)
        for head in range(heads):
            q_re, q_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                if sizes.shifted:
                    _, _, k_re, k_im = _permuted(work, span * head, permutations, s, j, left, sizes)
                else:
                    k_re, k_im = _load_pair(work, out_keys + 2 * (s * heads + head), j, n, left)
                c_re, c_im = _load_pair(c, 2 * s, j, n, left)
                q_re, q_im = _add_product(q_re, q_im, k_re, k_im, c_re, c_im)
            q_re, q_im = q_re * mean, q_im * mean
            scale = load(z, g_o + head, j, n, left) * _bound_scale(z, q_re, q_im, sizes.smooth)
            _store_pair(h, 2 * head, j, n, left, scale * q_re, scale * q_im)


@inline
def _unbound(z, dz, row, j, left, sizes, d_re, d_im):
    """The gradient of what stands in row and the next before it is bound, from that after it."""
    re, im = _load_pair(z, row, j, sizes.n, left)
    scale = _bound_scale(z, re, im, sizes.smooth)
    slope = _bound_slope(z, re, im, scale, d_re, d_im, sizes.smooth)
    _store_pair(dz, row, j, sizes.n, left, scale * d_re + slope * re, scale * d_im + slope * im)


@inline
def backward_item(z, c_before, c, dh, dc, dz, both, turns, sizes, work):
    """The gradients of a step: dh and dc come in; dz goes out, and dc becomes that of the state before.

    Rows as in `forward_item`; dz like z, c_before and dc like c, dh like h, ``both`` permutations and their inverses.
    """
    permutations, inverses = both
    n, heads, copies, span = sizes.n, sizes.heads, sizes.copies, _span(sizes)
    g_f, g_i, g_o, r_i, u = 0, 1, 1 + heads, 1 + 2 * heads, 1 + 6 * heads
    v, dq, in_keys = span * heads, (span + 2) * heads, (span + 4) * heads
    out_keys = in_keys + 2 * copies * heads  # these and in_keys of all copies
    d_keys = out_keys + 2 * copies * heads  # both kinds for each copy
    one = z.dtype.type(1)
    mean = one / z.dtype.type(copies)
    _bound_keys(z, sizes, work)

    for j in range(0, n, width(z)):
        left = width(z) if sizes.whole else n - j
        for head in range(heads):
            # The read, with the keys as the copies see them kept for what follows.
            q_re, q_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                i_re, i_im, k_re, k_im = _permuted(work, span * head, permutations, s, j, left, sizes)
                _store_pair(work, in_keys + 2 * (s * heads + head), j, n, left, i_re, i_im)
                _store_pair(work, out_keys + 2 * (s * heads + head), j, n, left, k_re, k_im)
                c_re, c_im = _load_pair(c, 2 * s, j, n, left)
                q_re, q_im = _add_product(q_re, q_im, k_re, k_im, c_re, c_im)
            q_re, q_im = q_re * mean, q_im * mean
            scale = _bound_scale(z, q_re, q_im, sizes.smooth)
            gate = load(z, g_o + head, j, n, left)
            d_re, d_im = _load_pair(dh, 2 * head, j, n, left)
            d_gate = (d_re * q_re + d_im * q_im) * scale
            store(dz, g_o + head, j, n, left, d_gate * gate * (one - gate))
            d_re, d_im = d_re * gate * mean, d_im * gate * mean
            slope = _bound_slope(z, q_re, q_im, scale, d_re, d_im, sizes.smooth)
            d_re, d_im = scale * d_re + slope * q_re, scale * d_im + slope * q_im
            _store_pair(work, dq + 2 * head, j, n, left, d_re, d_im)
            # What is written: the update, gated.
            re, im = _load_pair(z, u + 2 * head, j, n, left)
            scale = load(z, g_i + head, j, n, left) * _bound_scale(z, re, im, sizes.smooth)
            _store_pair(work, v + 2 * head, j, n, left, scale * re, scale * im)

        d_forget = fill(z, 0.0)
        for s in range(copies):
            c_re, c_im = _load_pair(c, 2 * s, j, n, left)
            dc_re, dc_im = _load_pair(dc, 2 * s, j, n, left)
            for head in range(heads):
                k_re, k_im = _load_pair(work, out_keys + 2 * (s * heads + head), j, n, left)
                dq_re, dq_im = _load_pair(work, dq + 2 * head, j, n, left)
                dc_re, dc_im = _add_conjugate_product(dc_re, dc_im, k_re, k_im, dq_re, dq_im)
            for head in range(heads):
                v_re, v_im = _load_pair(work, v + 2 * head, j, n, left)
                dq_re, dq_im = _load_pair(work, dq + 2 * head, j, n, left)
                i_re, i_im = _conjugate_product(v_re, v_im, dc_re, dc_im)
                o_re, o_im = _conjugate_product(c_re, c_im, dq_re, dq_im)
                _put(work, d_keys + span * (s * heads + head), j, left, sizes, i_re, i_im, o_re, o_im)
            b_re, b_im = _turned(turns, c_before, s, j, n, left)
            d_forget = d_forget + b_re * dc_re + b_im * dc_im
            _store_pair(dc, 2 * s, j, n, left, dc_re, dc_im)
        forget = load(z, g_f, j, n, left)
        store(dz, g_f, j, n, left, d_forget * forget * (one - forget))

        for head in range(heads):
            dv_re, dv_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                k_re, k_im = _load_pair(work, in_keys + 2 * (s * heads + head), j, n, left)
                dc_re, dc_im = _load_pair(dc, 2 * s, j, n, left)
                dv_re, dv_im = _add_conjugate_product(dv_re, dv_im, k_re, k_im, dc_re, dc_im)
            re, im = _load_pair(z, u + 2 * head, j, n, left)
            scale = _bound_scale(z, re, im, sizes.smooth)
            gate = load(z, g_i + head, j, n, left)
            d_gate = (dv_re * re + dv_im * im) * scale
            store(dz, g_i + head, j, n, left, d_gate * gate * (one - gate))
            d_re, d_im = dv_re * gate, dv_im * gate
            slope = _bound_slope(z, re, im, scale, d_re, d_im, sizes.smooth)
            _store_pair(dz, u + 2 * head, j, n, left, scale * d_re + slope * re, scale * d_im + slope * im)
        for s in range(copies):
            dc_re, dc_im = _turned_back(turns, dc, s, j, n, left)
            _store_pair(dc, 2 * s, j, n, left, forget * dc_re, forget * dc_im)

    for j in range(0, n, width(z)):
        left = width(z) if sizes.whole else n - j
        for head in range(heads):
            di_re, di_im, do_re, do_im = fill(z, 0.0), fill(z, 0.0), fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                i_re, i_im, o_re, o_im = _permuted(
                    work, d_keys + span * (s * heads + head), inverses, s, j, left, sizes
                )
                di_re, di_im, do_re, do_im = di_re + i_re, di_im + i_im, do_re + o_re, do_im + o_im
            _unbound(z, dz, r_i + 2 * head, j, left, sizes, di_re, di_im)
            _unbound(z, dz, r_i + 2 * (heads + head), j, left, sizes, do_re, do_im)
