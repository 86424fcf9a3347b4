"""The memory and the network of the paper, written a second time: complex numbers, plain loops, no PyTorch.

The library computes on real pairs, batched and fused. This file computes the same numbers from the equations
of "Associative Long Short-Term Memory" (Danihelka et al., 2016) with NumPy's ``complex128``, one batch item,
one copy and one head at a time, so that a test can compare two things that share no code.

Letters are the paper's: r is a key, u an update, g a gate, c the memory traces, P_s copy s's permutation.
A vector of N_h real numbers ``[real half, imaginary half]`` is here a complex vector of N_h/2.
"""

import numpy as np

# ---------------------------------------------------------------------------------------------------------
# Complex vectors
# ---------------------------------------------------------------------------------------------------------


def to_complex(pair):
    """z = h_real + i h_imaginary, where the last axis of ``pair`` is [h_real, h_imaginary]."""
    pair = np.asarray(pair, dtype=np.float64)
    h_real, h_imaginary = np.split(pair, 2, axis=-1)
    return h_real + 1j * h_imaginary


def to_pair(z):
    """The last axis becomes [Re z, Im z]: the inverse of `to_complex`."""
    return np.concatenate([np.real(z), np.imag(z)], axis=-1)


def sigmoid(x):
    """σ(x) = 1 / (1 + exp(-x)), written exp(-log(1 + exp(-x))) so that no x overflows."""
    return np.exp(-np.logaddexp(0.0, -x))


def bound(z):
    """bound(z) = z / max(1, |z|)."""
    return z / np.maximum(1.0, np.abs(z))


def tanh_of_modulus(z):
    """tanh(|z|) exp(i arg z): the alternative to bound that the paper mentions."""
    return np.tanh(np.abs(z)) * np.exp(1j * np.angle(z))


ACTIVATIONS = {"bound": bound, "tanh": tanh_of_modulus}


def permute(P_s, r):
    """P_s r: (P_s r)[j] = r[permutation[j]], where ``P_s`` is given as the row ``permutation`` of indices."""
    return np.array([r[source] for source in P_s])


# ---------------------------------------------------------------------------------------------------------
# Section 3: the redundant associative memory. It reads with the conjugate key.
# ---------------------------------------------------------------------------------------------------------


def memory_write(traces, permutations, key, value):
    """The traces after one more item: c_s + (P_s r) ⊛ x for every copy s.

    ``traces``: complex (copies, N_h/2), not changed; ``permutations``: int (copies, N_h/2);
    ``key`` r and ``value`` x: complex (N_h/2,).
    """
    return np.array([c_s + permute(P_s, key) * value for c_s, P_s in zip(traces, permutations, strict=True)])


def memory_read(traces, permutations, key):
    """The retrieved item: x̃ = 1/N_copies Σ_s conj(P_s r) ⊛ c_s, complex (N_h/2,)."""
    restored = [np.conj(permute(P_s, key)) * c_s for c_s, P_s in zip(traces, permutations, strict=True)]
    return sum(restored) / len(restored)


# ---------------------------------------------------------------------------------------------------------
# Section 5: the network. It reads with the plain output key.
# ---------------------------------------------------------------------------------------------------------


def associative_lstm_step(parameters, x, h, c, permutations, num_heads, recurrent_update, activation):
    """One time step of one batch item: (h_t, c_t) from x_t, h_{t-1}, c_{t-1}.

    With k = 1 ... N_heads (the paper's equations are those of one head)::

        ĝ_f, ĝ_i^k, ĝ_o^k, r̂_i^k, r̂_o^k = W_xh x_t + W_hh h_{t-1} + b_h
        û^k   = W_xu x_t + W_hu h_{t-1} + b_u                      (W_hu = 0 without the recurrent update)
        g_f   = σ(ĝ_f),   g_i^k = σ(ĝ_i^k),   g_o^k = σ(ĝ_o^k)     (real, the same for both parts)
        u^k   = bound(û^k),   r_i^k = bound(r̂_i^k),   r_o^k = bound(r̂_o^k)
        c_s,t = g_f ⊙ exp(i P_s θ) ⊛ c_s,t-1 + Σ_k (P_s r_i^k) ⊛ (g_i^k ⊙ u^k)    for every copy s
        h_t^k = g_o^k ⊙ bound(1/N_copies Σ_s (P_s r_o^k) ⊛ c_s,t)
        h_t   = [h_t^1, ..., h_t^N_heads]

    ``parameters`` is a dict: ``weight_ih`` (rows, input) holds W_xh over W_xu, ``weight_hh`` (rows_h,
    N_heads N_h) holds W_hh over W_hu (W_hh alone without the recurrent update), ``bias`` (rows,) holds b_h
    over b_u and may be None or missing. Rows: forget gate (N_h/2), input gates (N_heads x N_h/2), output
    gates (N_heads x N_h/2), input keys, output keys, updates (N_heads x N_h each, real half and imaginary
    half per head). ``angles`` (N_h/2,) is θ: not the paper's, and 0 if None or missing.

    ``x``: real (input,); ``h``: real (N_heads N_h,), real half and imaginary half per head; ``c``: complex
    (copies, N_h/2); ``permutations``: int (copies, N_h/2); ``activation``: "bound", or "tanh" for the tanh
    of the modulus wherever bound stands above. Returns ``h`` and ``c`` in the same shapes.
    """
    f = ACTIVATIONS[activation]
    num_copies, half = c.shape  # half = N_h/2
    N_h = 2 * half
    num_rows_h = half + num_heads * (2 * half + 2 * N_h)  # all gates and all keys
    num_rows_u = num_heads * N_h  # all updates

    weight_ih = np.asarray(parameters["weight_ih"], dtype=np.float64)
    weight_hh = np.asarray(parameters["weight_hh"], dtype=np.float64)
    bias = parameters.get("bias")
    bias = np.zeros(num_rows_h + num_rows_u) if bias is None else np.asarray(bias, dtype=np.float64)

    angles = parameters.get("angles")
    angles = np.zeros(half) if angles is None else np.asarray(angles, dtype=np.float64)

    W_xh, W_xu = weight_ih[:num_rows_h], weight_ih[num_rows_h:]
    b_h, b_u = bias[:num_rows_h], bias[num_rows_h:]
    if recurrent_update:
        W_hh, W_hu = weight_hh[:num_rows_h], weight_hh[num_rows_h:]
    else:
        W_hh, W_hu = weight_hh, np.zeros((num_rows_u, num_heads * N_h))

    assert W_xh.shape == (num_rows_h, len(x))
    assert W_xu.shape == (num_rows_u, len(x))
    assert W_hh.shape == (num_rows_h, num_heads * N_h)
    assert W_hu.shape == (num_rows_u, num_heads * N_h)
    assert b_h.shape == (num_rows_h,)
    assert b_u.shape == (num_rows_u,)
    assert h.shape == (num_heads * N_h,)
    assert permutations.shape == (num_copies, half)

    gates_and_keys = W_xh @ x + W_hh @ h + b_h
    updates = W_xu @ x + W_hu @ h + b_u

    # Cut the gates and keys into their blocks, in the order of the rows, then each block into its heads.
    widths = [half, num_heads * half, num_heads * half, num_heads * N_h, num_heads * N_h]
    g_f, g_i, g_o, r_i, r_o = np.split(gates_and_keys, np.cumsum(widths)[:-1])
    g_f = sigmoid(g_f)
    g_i = [sigmoid(g_hat) for g_hat in np.split(g_i, num_heads)]
    g_o = [sigmoid(g_hat) for g_hat in np.split(g_o, num_heads)]
    r_i = [f(to_complex(r_hat)) for r_hat in np.split(r_i, num_heads)]
    r_o = [f(to_complex(r_hat)) for r_hat in np.split(r_o, num_heads)]
    u = [f(to_complex(u_hat)) for u_hat in np.split(updates, num_heads)]

    c_t = np.zeros((num_copies, half), dtype=np.complex128)
    for s in range(num_copies):
        c_t[s] = g_f * np.exp(1j * permute(permutations[s], angles)) * c[s]
        for k in range(num_heads):
            c_t[s] += permute(permutations[s], r_i[k]) * (g_i[k] * u[k])

    h_t = []
    for k in range(num_heads):
        read = np.zeros(half, dtype=np.complex128)
        for s in range(num_copies):
            read += permute(permutations[s], r_o[k]) * c_t[s] / num_copies
        h_t.append(to_pair(g_o[k] * f(read)))
    return np.concatenate(h_t), c_t


def associative_lstm(
    state_dict,
    x,
    num_layers,
    bidirectional,
    num_heads,
    hidden_size,
    recurrent_update,
    activation,
    h_0=None,
    c_0=None,
    lengths=None,
    residual=False,
):
    """The whole network, layers and directions ordered as in ``torch.nn.LSTM``, without dropout.

    ``state_dict``: arrays ``weight_ih_l{k}``, ``weight_hh_l{k}``, ``bias_l{k}`` (may be missing) and
    ``permutations_l{k}`` (copies, N_h/2) for every layer k, and the same with ``_reverse`` appended for the
    backward direction. Learned initial states may be among them: ``h_0_l{k}`` (N_heads N_h,) and ``c_0_l{k}``
    (N_h,), shared by the copies; each serves when its argument is not given, and zeros serve without either.

    ``x``: (T, B, input); ``h_0``: (D num_layers, B, N_heads N_h); ``c_0``: (D num_layers, B, copies, N_h),
    with D = 2 directions if ``bidirectional``, else 1; ``hidden_size`` is N_h. With ``lengths`` (B,), item b
    is the sequence x[:lengths[b], b]: its final states are those after its own last step, the backward
    direction starts at its own last element, and outputs beyond it are 0. With ``residual`` every layer but the
    lowest adds its input to its output.

    Returns ``output`` (T, B, D N_heads N_h), the last layer's h_t, forward then backward; and ``h_n``,
    ``c_n`` in the shapes of ``h_0``, ``c_0``. All are float64, complex ones as [real half, imaginary half].
    """
    layer_input = np.asarray(x, dtype=np.float64)
    T, B, _ = layer_input.shape
    lengths = [T] * B if lengths is None else [int(length) for length in lengths]
    suffixes = ["", "_reverse"] if bidirectional else [""]

    h_n, c_n = [], []
    for layer in range(num_layers):
        outputs = []
        for suffix in suffixes:
            index = len(h_n)  # layer 0 forward, layer 0 backward, layer 1 forward, ...
            name = f"l{layer}{suffix}"
            parameters = {
                "weight_ih": state_dict[f"weight_ih_{name}"],
                "weight_hh": state_dict[f"weight_hh_{name}"],
                "bias": state_dict.get(f"bias_{name}"),
                "angles": state_dict.get(f"angles_{name}"),
            }
            permutations = np.asarray(state_dict[f"permutations_{name}"])
            num_copies = len(permutations)

            output = np.zeros((T, B, num_heads * hidden_size))
            last_h = np.zeros((B, num_heads * hidden_size))
            last_c = np.zeros((B, num_copies, hidden_size))
            for b in range(B):
                if h_0 is not None:
                    h = np.asarray(h_0[index][b], dtype=np.float64)
                elif f"h_0_{name}" in state_dict:
                    h = np.asarray(state_dict[f"h_0_{name}"], dtype=np.float64)
                else:
                    h = np.zeros(num_heads * hidden_size)

                if c_0 is not None:
                    c = to_complex(c_0[index][b])
                elif f"c_0_{name}" in state_dict:
                    c = np.array([to_complex(state_dict[f"c_0_{name}"])] * num_copies)
                else:
                    c = np.zeros((num_copies, hidden_size // 2), dtype=np.complex128)

                times = range(lengths[b])
                if suffix == "_reverse":
                    times = reversed(times)
                for t in times:
                    h, c = associative_lstm_step(
                        parameters,
                        layer_input[t, b],
                        h,
                        c,
                        permutations,
                        num_heads,
                        recurrent_update,
                        activation,
                    )
                    output[t, b] = h
                last_h[b] = h
                last_c[b] = to_pair(c)

            outputs.append(output)
            h_n.append(last_h)
            c_n.append(last_c)
        given = np.concatenate(outputs, axis=-1)
        layer_input = given + layer_input if residual and layer > 0 else given

    return layer_input, np.array(h_n), np.array(c_n)
