r"""One step of the Associative LSTM for one item of the batch, forward and backward, in compiled code.

Everything is rows of n = N/2 numbers: a gate is one row; a key, an update, a read or a trace is two, its real half
and then its imaginary half. An item's pre-activations ``z`` are 1 + 8 heads such rows, in the order of `rows.Rows`.

A step goes over the columns a vector at a time (`simd`), and over heads and copies inside, so that what belongs to a
column stays in registers. Only a permutation mixes columns: P_s r is a gather from the row of r, and its transpose a
gather through the inverse permutation.

A step finds pre-activations in ``z``. It puts the gates' values in the gates' rows, where the backward step looks for
them, and leaves the sums in the other rows.
"""

from associative_lstm.kernels.elementary import sigmoid, tanh
from associative_lstm.kernels.runtime import inline, jit
from associative_lstm.kernels.simd import fill, gather, load, load_indices, select_greater, sqrt, store, width


@inline
def _bound_scale(z, re, im, smooth):
    """scale such that bound(re, im) = scale (re, im): 1 / max(1, m), or tanh(m) / m if ``smooth``, m the modulus."""
    one = fill(z, 1.0)
    m = sqrt(re * re + im * im)
    return (
        select_greater(m, fill(z, 0.0), tanh(m) / m, one) if smooth else one / select_greater(one, m, one, m)
    )


@inline
def _bound_slope(z, re, im, scale, d_re, d_im, smooth):
    r"""slope such that the gradient of bound is scale d + slope (re, im), d being the gradient of its result.

    That is ((re, im) \cdot d) (m' - scale) / m^2, with m' the derivative of the map of moduli: 0 beyond the unit
    circle, and inside it equal to scale; or 1 - tanh^2 if ``smooth``.
    """
    one, zero = fill(z, 1.0), fill(z, 0.0)
    q = re * re + im * im
    along = re * d_re + im * d_im
    if smooth:
        t = tanh(sqrt(q))
        slope = select_greater(q, zero, along * (one - t * t - scale) / q, zero)
    else:
        slope = select_greater(q, one, (zero - along) * scale / q, zero)
    return slope


@jit
def workspace(heads, copies):
    """Rows of working memory that a step needs."""
    return 8 * heads + 6 * heads * copies


@jit
def forward_item(z, y, c, heads, smooth, permutations, h, work):
    """z += y, then one step as in `reference.step`: c and h become the next state.

    Shapes: z ``(1 + 8 heads, n)``, y the same or without the updates, c ``(2 copies, n)``, h ``(2 heads, n)``,
    permutations ``(copies, n)``, work ``(workspace, n)``.
    """
    copies, n = permutations.shape
    g_f, g_i, g_o = 0, 1, 1 + heads
    r_i, u = 1 + 2 * heads, 1 + 6 * heads
    in_key, out_key, v = 0, 2 * heads, 4 * heads
    mean = z.dtype.type(1) / z.dtype.type(copies)

    for j in range(0, n, width(z)):
        for row in range(r_i):
            store(z, row, j, n, sigmoid(load(z, row, j, n) + load(y, row, j, n)))
        for row in range(r_i, y.shape[0]):
            store(z, row, j, n, load(z, row, j, n) + load(y, row, j, n))
        for row in range(0, 4 * heads, 2):  # the keys stand in the same order here as there
            re, im = load(z, r_i + row, j, n), load(z, r_i + row + 1, j, n)
            scale = _bound_scale(z, re, im, smooth)
            store(work, row, j, n, scale * re)
            store(work, row + 1, j, n, scale * im)
        for head in range(heads):
            re, im = load(z, u + 2 * head, j, n), load(z, u + 2 * head + 1, j, n)
            scale = load(z, g_i + head, j, n) * _bound_scale(z, re, im, smooth)
            store(work, v + 2 * head, j, n, scale * re)
            store(work, v + 2 * head + 1, j, n, scale * im)

    for j in range(0, n, width(z)):
        forget = load(z, g_f, j, n)
        for s in range(copies):
            source = load_indices(permutations, s, j, n, z)
            c_re, c_im = forget * load(c, 2 * s, j, n), forget * load(c, 2 * s + 1, j, n)
            for head in range(heads):
                k_re, k_im = (
                    gather(work, in_key + 2 * head, source),
                    gather(work, in_key + 2 * head + 1, source),
                )
                v_re, v_im = load(work, v + 2 * head, j, n), load(work, v + 2 * head + 1, j, n)
                c_re = c_re + k_re * v_re - k_im * v_im
                c_im = c_im + k_re * v_im + k_im * v_re
            store(c, 2 * s, j, n, c_re)
            store(c, 2 * s + 1, j, n, c_im)
        for head in range(heads):
            q_re, q_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(permutations, s, j, n, z)
                k_re, k_im = (
                    gather(work, out_key + 2 * head, source),
                    gather(work, out_key + 2 * head + 1, source),
                )
                c_re, c_im = load(c, 2 * s, j, n), load(c, 2 * s + 1, j, n)
                q_re = q_re + k_re * c_re - k_im * c_im
                q_im = q_im + k_re * c_im + k_im * c_re
            q_re, q_im = q_re * mean, q_im * mean
            scale = load(z, g_o + head, j, n) * _bound_scale(z, q_re, q_im, smooth)
            store(h, 2 * head, j, n, scale * q_re)
            store(h, 2 * head + 1, j, n, scale * q_im)


@jit
def backward_item(z, c_before, c, dh, dc, heads, smooth, permutations, inverses, dz, work):
    """The gradients of a step: dh and dc come in; dz goes out, and dc becomes that of the state before.

    Shapes as in `forward_item`; dz like z, c_before and dc like c, dh like h, inverses like permutations.
    """
    copies, n = permutations.shape
    g_f, g_i, g_o = 0, 1, 1 + heads
    r_i, u = 1 + 2 * heads, 1 + 6 * heads
    in_key, out_key, v, dq = 0, 2 * heads, 4 * heads, 6 * heads
    out_keys, d_keys = (
        8 * heads,
        (8 + 2 * copies) * heads,
    )  # of every copy; d_keys: 4 heads rows a copy, as the keys
    one = z.dtype.type(1)
    mean = one / z.dtype.type(copies)

    for j in range(0, n, width(z)):
        for row in range(0, 4 * heads, 2):
            re, im = load(z, r_i + row, j, n), load(z, r_i + row + 1, j, n)
            scale = _bound_scale(z, re, im, smooth)
            store(work, row, j, n, scale * re)
            store(work, row + 1, j, n, scale * im)

    for j in range(0, n, width(z)):
        for head in range(heads):
            # The read, with the keys as the copies see them kept for what follows.
            q_re, q_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(permutations, s, j, n, z)
                k_re, k_im = (
                    gather(work, out_key + 2 * head, source),
                    gather(work, out_key + 2 * head + 1, source),
                )
                key = out_keys + 2 * (s * heads + head)
                store(work, key, j, n, k_re)
                store(work, key + 1, j, n, k_im)
                c_re, c_im = load(c, 2 * s, j, n), load(c, 2 * s + 1, j, n)
                q_re = q_re + k_re * c_re - k_im * c_im
                q_im = q_im + k_re * c_im + k_im * c_re
            q_re, q_im = q_re * mean, q_im * mean
            scale = _bound_scale(z, q_re, q_im, smooth)
            gate = load(z, g_o + head, j, n)
            d_re, d_im = load(dh, 2 * head, j, n), load(dh, 2 * head + 1, j, n)
            store(dz, g_o + head, j, n, (d_re * q_re + d_im * q_im) * scale * gate * (one - gate))
            d_re, d_im = d_re * gate * mean, d_im * gate * mean
            slope = _bound_slope(z, q_re, q_im, scale, d_re, d_im, smooth)
            store(work, dq + 2 * head, j, n, scale * d_re + slope * q_re)
            store(work, dq + 2 * head + 1, j, n, scale * d_im + slope * q_im)
            # What is written: the update, gated.
            re, im = load(z, u + 2 * head, j, n), load(z, u + 2 * head + 1, j, n)
            scale = load(z, g_i + head, j, n) * _bound_scale(z, re, im, smooth)
            store(work, v + 2 * head, j, n, scale * re)
            store(work, v + 2 * head + 1, j, n, scale * im)

        d_forget = fill(z, 0.0)
        for s in range(copies):
            c_re, c_im = load(c, 2 * s, j, n), load(c, 2 * s + 1, j, n)
            dc_re, dc_im = load(dc, 2 * s, j, n), load(dc, 2 * s + 1, j, n)
            d_key = d_keys + 4 * heads * s
            for head in range(heads):
                key = out_keys + 2 * (s * heads + head)
                k_re, k_im = load(work, key, j, n), load(work, key + 1, j, n)
                dq_re, dq_im = load(work, dq + 2 * head, j, n), load(work, dq + 2 * head + 1, j, n)
                dc_re = dc_re + k_re * dq_re + k_im * dq_im
                dc_im = dc_im + k_re * dq_im - k_im * dq_re
                store(work, d_key + out_key + 2 * head, j, n, c_re * dq_re + c_im * dq_im)
                store(work, d_key + out_key + 2 * head + 1, j, n, c_re * dq_im - c_im * dq_re)
            for head in range(heads):
                v_re, v_im = load(work, v + 2 * head, j, n), load(work, v + 2 * head + 1, j, n)
                store(work, d_key + in_key + 2 * head, j, n, v_re * dc_re + v_im * dc_im)
                store(work, d_key + in_key + 2 * head + 1, j, n, v_re * dc_im - v_im * dc_re)
            d_forget = (
                d_forget + load(c_before, 2 * s, j, n) * dc_re + load(c_before, 2 * s + 1, j, n) * dc_im
            )
            store(dc, 2 * s, j, n, dc_re)
            store(dc, 2 * s + 1, j, n, dc_im)
        forget = load(z, g_f, j, n)
        store(dz, g_f, j, n, d_forget * forget * (one - forget))

        for head in range(heads):
            dv_re, dv_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(permutations, s, j, n, z)
                k_re, k_im = (
                    gather(work, in_key + 2 * head, source),
                    gather(work, in_key + 2 * head + 1, source),
                )
                dc_re, dc_im = load(dc, 2 * s, j, n), load(dc, 2 * s + 1, j, n)
                dv_re = dv_re + k_re * dc_re + k_im * dc_im
                dv_im = dv_im + k_re * dc_im - k_im * dc_re
            re, im = load(z, u + 2 * head, j, n), load(z, u + 2 * head + 1, j, n)
            scale = _bound_scale(z, re, im, smooth)
            gate = load(z, g_i + head, j, n)
            store(dz, g_i + head, j, n, (dv_re * re + dv_im * im) * scale * gate * (one - gate))
            d_re, d_im = dv_re * gate, dv_im * gate
            slope = _bound_slope(z, re, im, scale, d_re, d_im, smooth)
            store(dz, u + 2 * head, j, n, scale * d_re + slope * re)
            store(dz, u + 2 * head + 1, j, n, scale * d_im + slope * im)
        for row in range(2 * copies):
            store(dc, row, j, n, forget * load(dc, row, j, n))

    for j in range(0, n, width(z)):
        for row in range(0, 4 * heads, 2):
            d_re, d_im = fill(z, 0.0), fill(z, 0.0)
            for s in range(copies):
                source = load_indices(inverses, s, j, n, z)
                d_key = d_keys + 4 * heads * s + row
                d_re = d_re + gather(work, d_key, source)
                d_im = d_im + gather(work, d_key + 1, source)
            re, im = load(z, r_i + row, j, n), load(z, r_i + row + 1, j, n)
            scale = _bound_scale(z, re, im, smooth)
            slope = _bound_slope(z, re, im, scale, d_re, d_im, smooth)
            store(dz, r_i + row, j, n, scale * d_re + slope * re)
            store(dz, r_i + row + 1, j, n, scale * d_im + slope * im)
