"""The Neural Turing Machine's time loop, compiled, each way; `fused` makes an operator of it.

Names are those of `reference`.
"""

import math
from typing import NamedTuple

import numpy as np

from associative_lstm.kernels.compiler.elementary import exp, sigmoid, tanh
from associative_lstm.kernels.compiler.runtime import jit
from associative_lstm.kernels.ntm.products import add_products
from associative_lstm.kernels.ntm.reference import EPSILON, SMALLEST_WEIGHT, STRONGEST


class History(NamedTuple):
    """What every step keeps for the way back.

    ``cells``, ``weights`` and ``memory`` have a first entry for the initial state. Without gradients every array has
    room for one step, which the next overwrites.
    """

    gates: np.ndarray  # (T, B, 4H): the controller's gates and update, activated
    cells: np.ndarray  # (T + 1, B, H)
    p: np.ndarray
    """The heads' parameters, activated: for every place (those of writing, then those of reading) a key (W), beta,
    gate, shift (3) and gamma; then for every head the vector to erase, and for every head the one to add."""
    places: (
        np.ndarray
    )  # (T, B, 2 heads, 4, N): the cosine, and the weighting after content, interpolation and shift
    weights: np.ndarray  # (T + 1, B, 2 heads, N): after sharpening
    memory: np.ndarray  # (T + 1, B, N, W)
    lengths: np.ndarray  # (T, B, N): of the memory's locations before the step


class Carried(NamedTuple):
    """Comes in as the gradient of the final state, is carried over the steps, and goes out as the initial one's."""

    hr: np.ndarray  # (B, H + heads * W): h and the reads side by side
    c: np.ndarray
    memory: np.ndarray
    weights: np.ndarray


@jit
def _controller(z, c_before, c_after, h):
    """From pre-activations ``z``, which become the gates, to the new cells and the output h."""
    H = h.shape[0]
    i, f, u, o = z[:H], z[H : 2 * H], z[2 * H : 3 * H], z[3 * H :]
    for j in range(H):
        i[j], f[j], u[j], o[j] = sigmoid(i[j]), sigmoid(f[j]), tanh(u[j]), sigmoid(o[j])
        c_after[j] = f[j] * c_before[j] + i[j] * u[j]
        h[j] = o[j] * tanh(c_after[j])


@jit
def _strength(x, zero, one, strongest):
    """log(1 + e^x), up to ``strongest``."""
    return min(max(x, zero) + math.log(one + exp(-abs(x))), strongest)


@jit
def _softmax(out, x, scale):
    """``out = softmax(scale * x)``; ``out`` may be ``x``."""
    largest = scale * x[0]
    for i in range(x.shape[0]):
        out[i] = scale * x[i]
        largest = max(largest, out[i])
    for i in range(x.shape[0]):
        out[i] = exp(out[i] - largest)
    total = out.dtype.type(0)
    for i in range(x.shape[0]):
        total += out[i]
    for i in range(x.shape[0]):
        out[i] /= total


@jit
def _split(p, heads, width):
    """Of one step's parameters: those of the places, ``(2 heads, W + 6)``, and what to erase and to add."""
    end = 2 * heads * (width + 6)
    vectors = p[end:].reshape(2, heads, width)
    return p[:end].reshape(2 * heads, width + 6), vectors[0], vectors[1]


@jit
def _activate(p, heads, width):
    """All of one step's parameters, in place."""
    zero, one, strongest = p.dtype.type(0), p.dtype.type(1), p.dtype.type(STRONGEST)
    places, erase, add = _split(p, heads, width)
    for k in range(2 * heads):
        key, scalars = places[k, :width], places[k, width:]
        for j in range(width):
            key[j] = tanh(key[j])
        scalars[0] = _strength(scalars[0], zero, one, strongest)
        scalars[1] = sigmoid(scalars[1])
        _softmax(scalars[2:5], scalars[2:5], one)
        scalars[5] = one + _strength(scalars[5], zero, one, strongest)
    for k in range(heads):
        for j in range(width):
            erase[k, j] = sigmoid(erase[k, j])
            add[k, j] = tanh(add[k, j])


@jit
def _address(p, memory, lengths, places, w_before, w_after):
    """From one place to the next; fills ``places``."""
    N, width = memory.shape
    beta, gate, back, stay, forth, gamma = p[width:]
    cosine, content, gated, shifted = places
    zero, one, smallest = p.dtype.type(0), p.dtype.type(1), p.dtype.type(SMALLEST_WEIGHT)
    total = p.dtype.type(EPSILON)
    for j in range(width):
        total += p[j] * p[j]
    key_length = math.sqrt(total)
    for i in range(N):
        total = zero
        for j in range(width):
            total += p[j] * memory[i, j]
        cosine[i] = total / (key_length * lengths[i])
    _softmax(content, cosine, beta)
    for i in range(N):
        gated[i] = gate * content[i] + (one - gate) * w_before[i]
    shifted[0] = back * gated[1 % N] + stay * gated[0] + forth * gated[N - 1]
    for i in range(1, N - 1):
        shifted[i] = back * gated[i + 1] + stay * gated[i] + forth * gated[i - 1]
    if N > 1:
        shifted[N - 1] = back * gated[0] + stay * gated[N - 1] + forth * gated[N - 2]
    for i in range(N):
        w_after[i] = math.log(max(shifted[i], smallest))
    _softmax(w_after, w_after, gamma)


@jit
def _write_and_read(erase, add, weights, before, after, reads, kept, added):
    """``kept`` and ``added`` are scratch rows."""
    heads, (N, width) = erase.shape[0], before.shape
    one = before.dtype.type(1)
    reads[:] = 0
    for i in range(N):
        kept[:] = 1
        added[:] = 0
        for k in range(heads):
            w = weights[k, i]
            for j in range(width):
                kept[j] *= one - w * erase[k, j]
                added[j] += w * add[k, j]
        for j in range(width):
            after[i, j] = before[i, j] * kept[j] + added[j]
        for k in range(heads):
            w = weights[heads + k, i]
            for j in range(width):
                reads[k * width + j] += w * after[i, j]


@jit
def forward(start, stop, z_x, hr_0, transposed_hh, transposed_heads, bias_heads, output, history):
    gates, cells, p, places, weights, memory, lengths = history
    T, H = z_x.shape[0], cells.shape[2]
    heads, N, width = weights.shape[2] // 2, memory.shape[2], memory.shape[3]
    keep = cells.shape[0] == T + 1
    kept, added = np.empty_like(memory[0, 0, 0]), np.empty_like(memory[0, 0, 0])
    for t in range(T):
        now, then = (t, t + 1) if keep else (0, 0)  # where the step is kept, and the state that it makes
        hr = hr_0[start:stop] if t == 0 else output[t - 1, start:stop]
        z = gates[now, start:stop]
        z[:] = z_x[t, start:stop]
        add_products(z, transposed_hh, hr)
        for b in range(start, stop):
            _controller(gates[now, b], cells[now, b], cells[then, b], output[t, b, :H])
        p[now, start:stop] = bias_heads
        add_products(p[now, start:stop], transposed_heads, output[t, start:stop])
        for b in range(start, stop):
            for i in range(N):
                total = memory.dtype.type(EPSILON)
                for j in range(width):
                    total += memory[now, b, i, j] * memory[now, b, i, j]
                lengths[now, b, i] = math.sqrt(total)
            _activate(p[now, b], heads, width)
            place, erase, add = _split(p[now, b], heads, width)
            for k in range(2 * heads):
                _address(
                    place[k],
                    memory[now, b],
                    lengths[now, b],
                    places[now, b, k],
                    weights[now, b, k],
                    weights[then, b, k],
                )
            _write_and_read(
                erase, add, weights[then, b], memory[now, b], memory[then, b], output[t, b, H:], kept, added
            )


@jit
def _write_and_read_backward(
    erase, add, weights, before, after, grad_reads, grad_memory, grad_weights, grad_erase, grad_add, scratch
):
    """Adds to the gradients; turns ``grad_memory`` of the new memory into that of the old, and passes activations."""
    heads, (N, width) = erase.shape[0], before.shape
    zero, one = before.dtype.type(0), before.dtype.type(1)
    for i in range(N):
        grad, rest = grad_memory[i], scratch[heads]
        for k in range(heads):
            w, along = weights[heads + k, i], zero
            for j in range(width):
                along += after[i, j] * grad_reads[k * width + j]
                grad[j] += w * grad_reads[k * width + j]
            grad_weights[heads + k, i] += along
        for k in range(heads):
            w, along = weights[k, i], zero
            for j in range(width):
                along += grad[j] * add[k, j]
                grad_add[k, j] += w * grad[j]
            grad_weights[k, i] += along
        scratch[0] = 1
        for k in range(heads):  # scratch[k]: what the heads before k leave of the old content
            w = weights[k, i]
            for j in range(width):
                scratch[k + 1, j] = scratch[k, j] * (one - w * erase[k, j])
        for j in range(width):
            left = scratch[heads, j]
            rest[j] = grad[j] * before[i, j]
            grad[j] *= left
        for k in range(heads - 1, -1, -1):
            w, along = weights[k, i], zero
            for j in range(width):
                grad_kept = rest[j] * scratch[k, j]
                along += grad_kept * erase[k, j]
                grad_erase[k, j] -= grad_kept * w
                rest[j] *= one - w * erase[k, j]
            grad_weights[k, i] -= along
    for k in range(heads):
        for j in range(width):
            grad_erase[k, j] *= erase[k, j] * (one - erase[k, j])
            grad_add[k, j] *= one - add[k, j] * add[k, j]


@jit
def _address_backward(p, memory, lengths, places, w_before, w, grad_w, grad_memory, grad_p, carry):
    """Adds to ``grad_p`` and ``grad_memory``; ``carry`` becomes the gradient of ``w_before``.

    ``grad_w`` is used up.
    """
    N, width = memory.shape
    beta, gate, back, stay, forth, gamma = p[width:]
    cosine, content, gated, shifted = places
    zero, one, smallest = p.dtype.type(0), p.dtype.type(1), p.dtype.type(SMALLEST_WEIGHT)

    mean = zero
    for i in range(N):
        mean += w[i] * grad_w[i]
    grad_gamma = zero
    for i in range(N):
        grad = w[i] * (grad_w[i] - mean)
        grad_gamma += grad * math.log(max(shifted[i], smallest))
        grad_w[i] = gamma * grad / shifted[i] if shifted[i] > smallest else zero  # now of ``shifted``

    grad_back, grad_stay, grad_forth, grad_gate, mean = zero, zero, zero, zero, zero
    for i in range(N):
        previous, following = (i - 1) % N, (i + 1) % N
        grad_back += grad_w[i] * gated[following]
        grad_stay += grad_w[i] * gated[i]
        grad_forth += grad_w[i] * gated[previous]
        grad = back * grad_w[previous] + stay * grad_w[i] + forth * grad_w[following]
        grad_gate += grad * (content[i] - w_before[i])
        carry[i] = grad  # of ``gated``
        mean += content[i] * grad * gate

    grad_beta, key_length = zero, p.dtype.type(EPSILON)
    for j in range(width):
        key_length += p[j] * p[j]
    key_length = math.sqrt(key_length)
    along = zero
    for i in range(N):
        grad = content[i] * (gate * carry[i] - mean)
        grad_beta += grad * cosine[i]
        grad *= beta  # of the cosine
        carry[i] *= one - gate
        along += grad * cosine[i]
        to_product = grad / (key_length * lengths[i])
        to_row = grad * cosine[i] / (lengths[i] * lengths[i])
        for j in range(width):
            grad_p[j] += to_product * memory[i, j]
            grad_memory[i, j] += to_product * p[j] - to_row * memory[i, j]
    for j in range(width):
        grad_p[j] -= along * p[j] / (key_length * key_length)

    for j in range(width):  # through the activations
        grad_p[j] *= one - p[j] * p[j]
    scalars = grad_p[width:]
    strongest = p.dtype.type(STRONGEST)
    scalars[0] = grad_beta * (one - exp(-beta)) if beta < strongest else zero
    scalars[1] = grad_gate * gate * (one - gate)
    mean = grad_back * back + grad_stay * stay + grad_forth * forth
    scalars[2] = back * (grad_back - mean)
    scalars[3] = stay * (grad_stay - mean)
    scalars[4] = forth * (grad_forth - mean)
    scalars[5] = grad_gamma * (one - exp(one - gamma)) if gamma - one < strongest else zero


@jit
def _controller_backward(gates, c_before, c_after, grad_h, grad_c, grad_z):
    """``grad_c`` of the new cells becomes that of the old."""
    H = grad_h.shape[0]
    one = gates.dtype.type(1)
    for j in range(H):
        i, f, u, o = gates[j], gates[H + j], gates[2 * H + j], gates[3 * H + j]
        tanh_c = tanh(c_after[j])
        grad = grad_c[j] + grad_h[j] * o * (one - tanh_c * tanh_c)
        grad_z[j] = grad * u * i * (one - i)
        grad_z[H + j] = grad * c_before[j] * f * (one - f)
        grad_z[2 * H + j] = grad * i * (one - u * u)
        grad_z[3 * H + j] = grad_h[j] * tanh_c * o * (one - o)
        grad_c[j] = grad * f


@jit
def backward(start, stop, grad_output, weight_hh, weight_heads, history, grad_z, grad_p, carried):
    """``grad_z`` goes out; ``grad_p``, which comes in as zero, too."""
    gates, cells, p, places, weights, memory, lengths = history
    grad_hr, grad_c, grad_memory, grad_weights = carried
    T, H = gates.shape[0], cells.shape[2]
    heads, width = weights.shape[2] // 2, memory.shape[3]
    scratch = np.empty((heads + 1, width), memory.dtype)
    grad_h = np.empty((stop - start, H), memory.dtype)
    carry = np.empty_like(weights[0, 0, 0])
    for t in range(T - 1, -1, -1):
        for b in range(start, stop):
            for j in range(grad_hr.shape[1]):
                grad_hr[b, j] += grad_output[t, b, j]
            grad_h[b - start] = grad_hr[b, :H]
            place, erase, add = _split(p[t, b], heads, width)
            grad_place, grad_erase, grad_add = _split(grad_p[t, b], heads, width)
            _write_and_read_backward(
                erase,
                add,
                weights[t + 1, b],
                memory[t, b],
                memory[t + 1, b],
                grad_hr[b, H:],
                grad_memory[b],
                grad_weights[b],
                grad_erase,
                grad_add,
                scratch,
            )
            for k in range(2 * heads):
                _address_backward(
                    place[k],
                    memory[t, b],
                    lengths[t, b],
                    places[t, b, k],
                    weights[t, b, k],
                    weights[t + 1, b, k],
                    grad_weights[b, k],
                    grad_memory[b],
                    grad_place[k],
                    carry,
                )
                grad_weights[b, k] = carry
        add_products(grad_h, weight_heads, grad_p[t, start:stop])
        for b in range(start, stop):
            _controller_backward(
                gates[t, b], cells[t, b], cells[t + 1, b], grad_h[b - start], grad_c[b], grad_z[t, b]
            )
        grad_hr[start:stop] = 0
        add_products(grad_hr[start:stop], weight_hh, grad_z[t, start:stop])
