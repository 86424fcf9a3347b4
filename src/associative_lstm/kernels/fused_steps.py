r"""One step of the Associative LSTM for one item of the batch, forward and backward, as compiled loops.

Arrays are flat and start at the offsets given, since that is what the compiler handles best; a vector of N = 2n real
numbers is its real half followed by its imaginary half. Every inner loop writes one range of one array only: with
more, the compiler cannot prove that they do not overlap and gives up vectorising.

``z`` holds an item's pre-activations when a step begins. The step puts the gates' values in the gates' places, where
the backward step looks for them, and leaves the other rows as they are.
"""

import math

from associative_lstm.kernels.elementary import sigmoid, tanh
from associative_lstm.kernels.runtime import jit


@jit
def _moduli_scale(z, at, n, smooth, scale):
    """scale[j] such that bound(z)[j] = scale[j] z[j]: 1 / max(1, |z|), or tanh(|z|) / |z| if ``smooth``."""
    one, zero = z.dtype.type(1), z.dtype.type(0)
    if smooth:
        for j in range(n):
            m = math.sqrt(z[at + j] * z[at + j] + z[at + n + j] * z[at + n + j])
            scale[j] = one if m == zero else tanh(m) / m
    else:
        for j in range(n):
            m = math.sqrt(z[at + j] * z[at + j] + z[at + n + j] * z[at + n + j])
            scale[j] = one / m if m > one else one


@jit
def _bound(z, at, n, smooth, scale, r, r_at):
    """r = bound(z)."""
    _moduli_scale(z, at, n, smooth, scale)
    for j in range(n):
        r[r_at + j] = z[at + j] * scale[j]
    for j in range(n):
        r[r_at + n + j] = z[at + n + j] * scale[j]


@jit
def _bound_backward(z, at, n, smooth, scale, d, d_at, dz, dz_at):
    r"""dz = (d bound / d z)^T d.

    With e = z / |z|: scale d + e (e \cdot d) (m' - scale), where m' is the derivative of the modulus' map: 0 beyond
    the unit circle and nothing to add inside it, 1 - tanh^2 if ``smooth``.
    """
    one, zero = z.dtype.type(1), z.dtype.type(0)
    slope = scale[n:]
    if smooth:
        for j in range(n):
            a, b = z[at + j], z[at + n + j]
            q = a * a + b * b
            t = tanh(math.sqrt(q))
            along = a * d[d_at + j] + b * d[d_at + n + j]
            slope[j] = zero if q == zero else along * (one - t * t - scale[j]) / q
    else:
        for j in range(n):
            a, b = z[at + j], z[at + n + j]
            q = a * a + b * b
            along = a * d[d_at + j] + b * d[d_at + n + j]
            slope[j] = -along * scale[j] / q if q > one else zero
    for j in range(n):
        dz[dz_at + j] = scale[j] * d[d_at + j] + slope[j] * z[at + j]
    for j in range(n):
        dz[dz_at + n + j] = scale[j] * d[d_at + n + j] + slope[j] * z[at + n + j]


@jit
def _gather(r, at, n, permutations, s, key, key_at):
    """key = P_s r, both halves."""
    for j in range(n):
        source = at + permutations[s, j]
        key[key_at + j] = r[source]
        key[key_at + n + j] = r[source + n]


@jit
def _scatter_add(d, n, permutations, s, total, at):
    """total += P_s^T d, both halves."""
    for j in range(n):
        target = at + permutations[s, j]
        total[target] += d[j]
        total[target + n] += d[n + j]


@jit
def _bind_add(k, k_at, x, x_at, n, y, y_at):
    """y += k (*) x, element-wise complex product."""
    for j in range(n):
        y[y_at + j] += k[k_at + j] * x[x_at + j] - k[k_at + n + j] * x[x_at + n + j]
    for j in range(n):
        y[y_at + n + j] += k[k_at + j] * x[x_at + n + j] + k[k_at + n + j] * x[x_at + j]


@jit
def _unbind_add(k, k_at, x, x_at, n, y, y_at):
    """y += conj(k) (*) x: the gradient of `_bind_add` with respect to either factor."""
    for j in range(n):
        y[y_at + j] += k[k_at + j] * x[x_at + j] + k[k_at + n + j] * x[x_at + n + j]
    for j in range(n):
        y[y_at + n + j] += k[k_at + j] * x[x_at + n + j] - k[k_at + n + j] * x[x_at + j]


@jit
def _unbind(k, k_at, x, x_at, n, y):
    """y = conj(k) (*) x."""
    for j in range(n):
        y[j] = k[k_at + j] * x[x_at + j] + k[k_at + n + j] * x[x_at + n + j]
    for j in range(n):
        y[n + j] = k[k_at + j] * x[x_at + n + j] - k[k_at + n + j] * x[x_at + j]


@jit
def workspace(heads, copies, n):
    """Numbers of working memory that a step needs."""
    return n * (2 + 12 * heads + 4 * heads * copies + 2)


@jit
def forward_item(z, z_at, y, rows_h, c, c_at, copies, n, heads, smooth, permutations, h, h_at, work):
    """z += y, then one step: c and h are overwritten with the next state; see `reference.step` for the equations."""
    N = 2 * n
    g_f, g_i = z_at, z_at + n
    g_o = g_i + heads * n
    r_i = g_o + heads * n
    r_o = r_i + heads * N
    u = r_o + heads * N
    scale, keys = work[:N], work[N:]
    in_key, out_key, v, q = 0, heads * N, 2 * heads * N, 3 * heads * N
    key = 4 * heads * N

    for j in range(n + 2 * heads * n):
        z[z_at + j] = sigmoid(z[z_at + j] + y[j])
    for j in range(n + 2 * heads * n, rows_h):
        z[z_at + j] += y[j]
    for head in range(heads):
        at = head * N
        _bound(z, r_i + at, n, smooth, scale, keys, in_key + at)
        _bound(z, r_o + at, n, smooth, scale, keys, out_key + at)
        _bound(z, u + at, n, smooth, scale, keys, v + at)
        gate = g_i + head * n
        for j in range(n):
            keys[v + at + j] *= z[gate + j]
        for j in range(n):
            keys[v + at + n + j] *= z[gate + j]
    keys[q : q + heads * N] = 0

    for s in range(copies):
        trace = c_at + s * N
        for j in range(n):
            c[trace + j] *= z[g_f + j]
        for j in range(n):
            c[trace + n + j] *= z[g_f + j]
        for head in range(heads):
            at = head * N
            _gather(keys, in_key + at, n, permutations, s, keys, key)
            _bind_add(keys, key, keys, v + at, n, c, trace)
        for head in range(heads):
            at = head * N
            _gather(keys, out_key + at, n, permutations, s, keys, key)
            _bind_add(keys, key, c, trace, n, keys, q + at)

    mean = z.dtype.type(1) / z.dtype.type(copies)
    for j in range(heads * N):
        keys[q + j] *= mean
    for head in range(heads):
        at = head * N
        _bound(keys, q + at, n, smooth, scale, h, h_at + at)
        gate = g_o + head * n
        for j in range(n):
            h[h_at + at + j] *= z[gate + j]
        for j in range(n):
            h[h_at + at + n + j] *= z[gate + j]


@jit
def backward_item(
    z,
    z_at,
    c_prev,
    c_prev_at,
    c,
    c_at,
    dh,
    dc,
    dc_at,
    copies,
    n,
    heads,
    smooth,
    permutations,
    dz,
    dz_at,
    work,
):
    """The gradients of one step: dh and dc come in, dz (all rows) goes out, and dc becomes that of the state before."""
    N = 2 * n
    g_f, g_i = 0, n
    g_o = g_i + heads * n
    r_i = g_o + heads * n
    r_o = r_i + heads * N
    u = r_o + heads * N
    one, zero = z.dtype.type(1), z.dtype.type(0)
    size = heads * N
    scale, rest = work[:N], work[N:]
    in_key, out_key, v, q = (
        rest[:size],
        rest[size : 2 * size],
        rest[2 * size : 3 * size],
        rest[3 * size : 4 * size],
    )
    d_in, d_out = rest[4 * size : 5 * size], rest[5 * size : 6 * size]
    in_keys = rest[6 * size : 6 * size + copies * size]
    out_keys = rest[6 * size + copies * size : 6 * size + 2 * copies * size]
    d_key = rest[6 * size + 2 * copies * size :]
    mean = one / z.dtype.type(copies)

    for head in range(heads):
        at = head * N
        _bound(z, z_at + r_i + at, n, smooth, scale, in_key, at)
        _bound(z, z_at + r_o + at, n, smooth, scale, out_key, at)
        _bound(z, z_at + u + at, n, smooth, scale, v, at)
        gate = z_at + g_i + head * n
        for j in range(n):
            v[at + j] *= z[gate + j]
        for j in range(n):
            v[at + n + j] *= z[gate + j]
    q[:] = zero
    for s in range(copies):
        for head in range(heads):
            at, key = head * N, (s * heads + head) * N
            _gather(in_key, at, n, permutations, s, in_keys, key)
            _gather(out_key, at, n, permutations, s, out_keys, key)
            _bind_add(out_keys, key, c, c_at + s * N, n, q, at)

    # The read: q becomes dq, the gradient of the mean over the copies.
    for j in range(size):
        q[j] *= mean
    for head in range(heads):
        at = head * N
        gate = z_at + g_o + head * n
        d_gate = dz_at + g_o + head * n
        _moduli_scale(q, at, n, smooth, scale)
        for j in range(n):
            dz[d_gate + j] = (dh[at + j] * q[at + j] + dh[at + n + j] * q[at + n + j]) * scale[j]
        for j in range(n):
            dz[d_gate + j] *= z[gate + j] * (one - z[gate + j])
        for j in range(n):
            dh[at + j] *= z[gate + j] * mean
        for j in range(n):
            dh[at + n + j] *= z[gate + j] * mean
        _bound_backward(q, at, n, smooth, scale, dh, at, d_key, 0)
        q[at : at + N] = d_key[:N]

    d_in[:] = zero
    d_out[:] = zero
    for j in range(size):
        dz[dz_at + u + j] = zero  # gathers dv first
    for j in range(n):
        dz[dz_at + g_f + j] = zero
    for s in range(copies):
        trace, before, d_trace = c_at + s * N, c_prev_at + s * N, dc_at + s * N
        for head in range(heads):
            at, key = head * N, (s * heads + head) * N
            _unbind_add(out_keys, key, q, at, n, dc, d_trace)
            _unbind(c, trace, q, at, n, d_key)
            _scatter_add(d_key, n, permutations, s, d_out, at)
        for head in range(heads):
            at, key = head * N, (s * heads + head) * N
            _unbind_add(in_keys, key, dc, d_trace, n, dz, dz_at + u + at)
            _unbind(v, at, dc, d_trace, n, d_key)
            _scatter_add(d_key, n, permutations, s, d_in, at)
        for j in range(n):
            dz[dz_at + g_f + j] += (
                c_prev[before + j] * dc[d_trace + j] + c_prev[before + n + j] * dc[d_trace + n + j]
            )
        for j in range(n):
            dc[d_trace + j] *= z[z_at + g_f + j]
        for j in range(n):
            dc[d_trace + n + j] *= z[z_at + g_f + j]
    for j in range(n):
        g = z[z_at + g_f + j]
        dz[dz_at + g_f + j] *= g * (one - g)

    for head in range(heads):
        at = head * N
        gate, d_gate = z_at + g_i + head * n, dz_at + g_i + head * n
        dv = dz_at + u + at
        _moduli_scale(z, z_at + u + at, n, smooth, scale)
        for j in range(n):
            d_key[j] = (
                dz[dv + j] * z[z_at + u + at + j] + dz[dv + n + j] * z[z_at + u + at + n + j]
            ) * scale[j]
        for j in range(n):
            g = z[gate + j]
            dz[d_gate + j] = d_key[j] * g * (one - g)
        for j in range(n):
            d_key[j] = dz[dv + j] * z[gate + j]
        for j in range(n):
            d_key[n + j] = dz[dv + n + j] * z[gate + j]
        _bound_backward(z, z_at + u + at, n, smooth, scale, d_key, 0, dz, dv)
        _moduli_scale(z, z_at + r_i + at, n, smooth, scale)
        _bound_backward(z, z_at + r_i + at, n, smooth, scale, d_in, at, dz, dz_at + r_i + at)
        _moduli_scale(z, z_at + r_o + at, n, smooth, scale)
        _bound_backward(z, z_at + r_o + at, n, smooth, scale, d_out, at, dz, dz_at + r_o + at)
