r"""One step of the Associative LSTM for one item of the batch, forward and backward, as compiled loops.

All vectors are rows of n = N/2 numbers: a gate is one row; a key, an update or a trace is two, its real half and then
its imaginary half. An item's pre-activations ``z`` are 1 + 8 heads such rows, in the order of `rows.Rows`.

The loops are written for the compiler's vectoriser: the inner index runs from 0, and a loop writes one row only. With
two, the compiler would have to prove too much about which rows overlap, and gives up.

A step finds pre-activations in ``z``. It puts the gates' values in the gates' rows, where the backward step looks for
them, and leaves the other rows as they are.
"""

import math

from associative_lstm.kernels.elementary import sigmoid, tanh
from associative_lstm.kernels.runtime import jit


@jit
def _bound_scale(z, a, smooth, scale):
    """scale such that bound(z) = scale z: 1 / max(1, |z|), or tanh(|z|) / |z| if ``smooth``."""
    one, zero = z.dtype.type(1), z.dtype.type(0)
    if smooth:
        for j in range(z.shape[1]):
            m = math.sqrt(z[a, j] * z[a, j] + z[a + 1, j] * z[a + 1, j])
            scale[0, j] = one if m == zero else tanh(m) / m
    else:
        for j in range(z.shape[1]):
            m = math.sqrt(z[a, j] * z[a, j] + z[a + 1, j] * z[a + 1, j])
            scale[0, j] = one / max(one, m)


@jit
def _bound_gated(z, a, g, smooth, scale, r, b):
    """r = z[g] bound(z), the gate for both halves; g = -1 for no gate."""
    _bound_scale(z, a, smooth, scale)
    if g >= 0:
        for j in range(z.shape[1]):
            scale[0, j] *= z[g, j]
    for j in range(z.shape[1]):
        r[b, j] = z[a, j] * scale[0, j]
    for j in range(z.shape[1]):
        r[b + 1, j] = z[a + 1, j] * scale[0, j]


@jit
def _bound_backward(z, a, smooth, scale, d, b, dz, e):
    r"""dz = (d bound / dz)^T d.

    That is scale d + z (z \cdot d) (m' - scale) / |z|^2, with m' the derivative of the map of moduli: beyond the unit
    circle 0, inside it equal to scale; or 1 - tanh^2 if ``smooth``.
    """
    one, zero = z.dtype.type(1), z.dtype.type(0)
    _bound_scale(z, a, smooth, scale)
    if smooth:
        for j in range(z.shape[1]):
            q = z[a, j] * z[a, j] + z[a + 1, j] * z[a + 1, j]
            t = tanh(math.sqrt(q))
            along = z[a, j] * d[b, j] + z[a + 1, j] * d[b + 1, j]
            scale[1, j] = zero if q == zero else along * (one - t * t - scale[0, j]) / q
    else:
        for j in range(z.shape[1]):
            q = z[a, j] * z[a, j] + z[a + 1, j] * z[a + 1, j]
            along = z[a, j] * d[b, j] + z[a + 1, j] * d[b + 1, j]
            scale[1, j] = (zero - along) * scale[0, j] / max(one, q) if q > one else zero
    for j in range(z.shape[1]):
        dz[e, j] = scale[0, j] * d[b, j] + scale[1, j] * z[a, j]
    for j in range(z.shape[1]):
        dz[e + 1, j] = scale[0, j] * d[b + 1, j] + scale[1, j] * z[a + 1, j]


@jit
def _permute(r, a, permutation, key, b):
    """key = P_s r, both halves."""
    for j in range(permutation.shape[0]):
        source = permutation[j]
        key[b, j] = r[a, source]
        key[b + 1, j] = r[a + 1, source]


@jit
def _unpermute_add(d, a, permutation, total, b):
    """total += P_s^T d, both halves."""
    for j in range(permutation.shape[0]):
        target = permutation[j]
        total[b, target] += d[a, j]
        total[b + 1, target] += d[a + 1, j]


@jit
def _scale_rows(x, a, g, b):
    """x *= z[g], both halves of x."""
    for j in range(x.shape[1]):
        x[a, j] *= g[b, j]
    for j in range(x.shape[1]):
        x[a + 1, j] *= g[b, j]


@jit
def _bind_add(k, a, x, b, y, e):
    """y += k (*) x, the element-wise complex product."""
    for j in range(y.shape[1]):
        y[e, j] += k[a, j] * x[b, j] - k[a + 1, j] * x[b + 1, j]
    for j in range(y.shape[1]):
        y[e + 1, j] += k[a, j] * x[b + 1, j] + k[a + 1, j] * x[b, j]


@jit
def _unbind_add(k, a, x, b, y, e):
    """y += conj(k) (*) x: the gradient of `_bind_add` with respect to either factor."""
    for j in range(y.shape[1]):
        y[e, j] += k[a, j] * x[b, j] + k[a + 1, j] * x[b + 1, j]
    for j in range(y.shape[1]):
        y[e + 1, j] += k[a, j] * x[b + 1, j] - k[a + 1, j] * x[b, j]


@jit
def _unbind(k, a, x, b, y):
    """y = conj(k) (*) x."""
    for j in range(y.shape[1]):
        y[0, j] = k[a, j] * x[b, j] + k[a + 1, j] * x[b + 1, j]
    for j in range(y.shape[1]):
        y[1, j] = k[a, j] * x[b + 1, j] - k[a + 1, j] * x[b, j]


@jit
def workspace(heads, copies):
    """Rows of working memory that a step needs."""
    return 4 + 12 * heads + 4 * heads * copies


@jit
def forward_item(z, y, c, heads, smooth, permutations, h, work):
    """z += y, then one step as in `reference.step`: c and h become the next state.

    Shapes: z ``(1 + 8 heads, n)``, y the same but perhaps without the updates, c ``(copies, 2, n)`` with the halves
    as rows ``(2 copies, n)``, h ``(2 heads, n)``, permutations ``(copies, n)``, work ``(workspace, n)``.
    """
    copies, n = permutations.shape
    g_f, g_i, g_o = 0, 1, 1 + heads
    r_i, r_o, u = 1 + 2 * heads, 1 + 4 * heads, 1 + 6 * heads
    scale, keys, key = work[:2], work[2:], 8 * heads
    in_key, out_key, v, q = 0, 2 * heads, 4 * heads, 6 * heads

    for row in range(1 + 2 * heads):
        for j in range(n):
            z[row, j] = sigmoid(z[row, j] + y[row, j])
    for row in range(1 + 2 * heads, y.shape[0]):
        for j in range(n):
            z[row, j] += y[row, j]
    for head in range(heads):
        a = 2 * head
        _bound_gated(z, r_i + a, -1, smooth, scale, keys, in_key + a)
        _bound_gated(z, r_o + a, -1, smooth, scale, keys, out_key + a)
        _bound_gated(z, u + a, g_i + head, smooth, scale, keys, v + a)
    keys[q : q + 2 * heads] = 0

    for s in range(copies):
        _scale_rows(c, 2 * s, z, g_f)
        for head in range(heads):
            _permute(keys, in_key + 2 * head, permutations[s], keys, key)
            _bind_add(keys, key, keys, v + 2 * head, c, 2 * s)
        for head in range(heads):
            _permute(keys, out_key + 2 * head, permutations[s], keys, key)
            _bind_add(keys, key, c, 2 * s, keys, q + 2 * head)

    mean = z.dtype.type(1) / z.dtype.type(copies)
    for row in range(q, q + 2 * heads):
        for j in range(n):
            keys[row, j] *= mean
    for head in range(heads):
        _bound_gated(keys, q + 2 * head, -1, smooth, scale, h, 2 * head)
        _scale_rows(h, 2 * head, z, g_o + head)


@jit
def backward_item(z, c_before, c, dh, dc, heads, smooth, permutations, dz, work):
    """The gradients of a step: dh and dc come in; dz goes out, and dc becomes that of the state before.

    Shapes as in `forward_item`; dz like z, dc and c_before like c, dh like h (and used up).
    """
    copies, n = permutations.shape
    g_f, g_i, g_o = 0, 1, 1 + heads
    r_i, r_o, u = 1 + 2 * heads, 1 + 4 * heads, 1 + 6 * heads
    size = 2 * heads
    scale, d_key, rest = work[:2], work[2:4], work[4:]
    in_key, out_key, v, q = rest[:size], rest[size : 2 * size], rest[2 * size : 3 * size], rest[3 * size : 4 * size]
    d_in, d_out = rest[4 * size : 5 * size], rest[5 * size : 6 * size]
    in_keys, out_keys = rest[6 * size : (6 + copies) * size], rest[(6 + copies) * size : (6 + 2 * copies) * size]
    one, zero = z.dtype.type(1), z.dtype.type(0)
    mean = one / z.dtype.type(copies)

    for head in range(heads):
        a = 2 * head
        _bound_gated(z, r_i + a, -1, smooth, scale, in_key, a)
        _bound_gated(z, r_o + a, -1, smooth, scale, out_key, a)
        _bound_gated(z, u + a, g_i + head, smooth, scale, v, a)
    q[:] = zero
    for s in range(copies):
        for head in range(heads):
            a, key = 2 * head, 2 * (s * heads + head)
            _permute(in_key, a, permutations[s], in_keys, key)
            _permute(out_key, a, permutations[s], out_keys, key)
            _bind_add(out_keys, key, c, 2 * s, q, a)

    # The read: q, the mean over the copies, becomes dq.
    for row in range(size):
        for j in range(n):
            q[row, j] *= mean
    for head in range(heads):
        a = 2 * head
        _bound_scale(q, a, smooth, scale)
        for j in range(n):
            g = z[g_o + head, j]
            d_gate = (dh[a, j] * q[a, j] + dh[a + 1, j] * q[a + 1, j]) * scale[0, j]
            dz[g_o + head, j] = d_gate * g * (one - g)
        _scale_rows(dh, a, z, g_o + head)
        _bound_backward(q, a, smooth, scale, dh, a, d_key, 0)
        for j in range(n):
            q[a, j] = d_key[0, j] * mean
        for j in range(n):
            q[a + 1, j] = d_key[1, j] * mean

    d_in[:] = zero
    d_out[:] = zero
    dz[u:] = zero  # gathers dv first
    dz[g_f] = zero
    for s in range(copies):
        for head in range(heads):
            _unbind_add(out_keys, 2 * (s * heads + head), q, 2 * head, dc, 2 * s)
            _unbind(c, 2 * s, q, 2 * head, d_key)
            _unpermute_add(d_key, 0, permutations[s], d_out, 2 * head)
        for head in range(heads):
            _unbind_add(in_keys, 2 * (s * heads + head), dc, 2 * s, dz, u + 2 * head)
            _unbind(v, 2 * head, dc, 2 * s, d_key)
            _unpermute_add(d_key, 0, permutations[s], d_in, 2 * head)
        for j in range(n):
            dz[g_f, j] += c_before[2 * s, j] * dc[2 * s, j] + c_before[2 * s + 1, j] * dc[2 * s + 1, j]
        _scale_rows(dc, 2 * s, z, g_f)
    for j in range(n):
        g = z[g_f, j]
        dz[g_f, j] *= g * (one - g)

    for head in range(heads):
        a = 2 * head
        dv = u + a
        _bound_scale(z, dv, smooth, scale)
        for j in range(n):
            g = z[g_i + head, j]
            d_gate = (dz[dv, j] * z[dv, j] + dz[dv + 1, j] * z[dv + 1, j]) * scale[0, j]
            dz[g_i + head, j] = d_gate * g * (one - g)
        _scale_rows(dz, dv, z, g_i + head)
        _bound_backward(z, dv, smooth, scale, dz, dv, d_key, 0)
        dz[dv : dv + 2] = d_key
        _bound_backward(z, r_i + a, smooth, scale, d_in, a, dz, r_i + a)
        _bound_backward(z, r_o + a, smooth, scale, d_out, a, dz, r_o + a)
