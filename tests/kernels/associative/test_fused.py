"""The fused kernel against the reference loop: outputs, final states and every gradient."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from associative_lstm import AssociativeLSTM
from associative_lstm.kernels.associative import fused as kernel
from associative_lstm.kernels.associative import loops
from associative_lstm.kernels.compiler import threads as splitting
from closeness import allowed, assert_close
from threads import with_any_number_of_threads

sizes = st.fixed_dictionaries(
    {
        "steps": st.integers(1, 9),
        "batch": st.integers(1, 9),
        "inputs": st.integers(1, 6),
        "half": st.integers(1, 40) | st.sampled_from([16, 32, 64]),  # whole vectors: compiled on their own
        "num_heads": st.integers(1, 3),
        "num_copies": st.integers(1, 5),
        "num_layers": st.integers(1, 2),
        "bidirectional": st.booleans(),
        "recurrent_update": st.booleans(),
        "bias": st.booleans(),
        "activation": st.sampled_from(["bound", "tanh"]),
        "keep_states_every": st.integers(1, 4),
        "dtype": st.sampled_from([torch.float32, torch.float64]),
        "shifts": st.sampled_from(["no", "all", "but one"]),
        "rotation": st.sampled_from([0.0, 0.5]),
    }
)


def pair(steps, batch, inputs, half, dtype, keep_states_every=1, shifts="no", **options):
    """The same layer twice, reference and fused, and inputs x, h_0, c_0 for it.

    Some layers have cyclic shifts for permutations: where all copies do, nothing is gathered.
    """
    N = 2 * half
    layers = [
        AssociativeLSTM(inputs, N, dtype=dtype, backend=backend, keep_states_every=keep, **options)
        for backend, keep in [("reference", 1), ("fused", keep_states_every)]
    ]
    for parameter in layers[
        0
    ].parameters():  # weights that do not make rounding errors grow, biases beyond the bound
        limit = 1.5 if parameter.dim() == 1 else parameter.shape[1] ** -0.5
        torch.nn.init.uniform_(parameter, -limit, limit)
    for name, permutations in layers[0].named_buffers():
        if name.startswith("permutations") and shifts != "no":
            offsets = torch.randint(half, (len(permutations) - (shifts == "but one"), 1))
            permutations[: len(offsets)] = (torch.arange(half) + offsets) % half
    layers[1].load_state_dict(layers[0].state_dict())
    sequences = layers[0].num_layers * (2 if layers[0].bidirectional else 1)
    x = torch.randn(steps, batch, inputs, dtype=dtype)
    h_0 = torch.randn(sequences, batch, layers[0].read_size, dtype=dtype)
    c_0 = torch.randn(sequences, batch, layers[0].num_copies, N, dtype=dtype)
    return layers, (x, h_0, c_0)


def results_and_gradients(layer, tensors, lengths=None, cells=False):
    x, h_0, c_0 = (tensor.clone().requires_grad_() for tensor in tensors)
    layer.zero_grad()
    fed = x if lengths is None else pack_padded_sequence(x, lengths, enforce_sorted=False)
    output, (h_n, c_n), *more = layer(fed, (h_0, c_0), return_cells=cells)
    if lengths is not None:
        output, _ = pad_packed_sequence(output)
    results = [output, h_n, c_n, *more]
    weights = [torch.cos(torch.arange(r.numel(), dtype=r.dtype)).view_as(r) for r in results]
    sum((w * r).sum() for w, r in zip(weights, results, strict=True)).backward()
    names = ["output", "h_n", "c_n", "cells"][: len(results)]
    everything = dict(zip(names, results, strict=True)) | {
        "d x": x.grad,
        "d h_0": h_0.grad,
        "d c_0": c_0.grad,
    }
    return everything | {f"d {name}": parameter.grad for name, parameter in layer.named_parameters()}


def agree(layers, tensors, **how):
    def run(layer, tensors):
        return results_and_gradients(layer, tensors, **how).values()

    expected, got = (list(run(layer, tensors)) for layer in layers)
    assert_close(got, expected, allowed(run, layers[0], tensors))


@given(sizes)
@settings(max_examples=50, deadline=None)
def test_equals_the_reference(drawn):
    torch.manual_seed(0)
    layers, tensors = pair(**drawn)
    agree(layers, tensors)


@pytest.mark.parametrize("shifts", ["no", "all"])
@pytest.mark.parametrize("num_heads", [1, 2])
@pytest.mark.parametrize("half", [3, 16, 33, 64])
def test_vectors_whole_and_in_part(half, num_heads, shifts):
    """In float32; also as on CPUs with narrower vectors, see tests/kernels/test_narrower_targets.py."""
    torch.manual_seed(0)
    layers, tensors = pair(5, 3, 4, half, torch.float32, shifts=shifts, num_heads=num_heads, num_copies=3)
    agree(layers, tensors)


@given(sizes, st.data())
@settings(max_examples=40, deadline=None)
def test_equals_the_reference_on_packed_sequences(drawn, data):
    torch.manual_seed(0)
    layers, tensors = pair(**drawn)
    lengths = data.draw(
        st.lists(st.integers(1, drawn["steps"]), min_size=drawn["batch"], max_size=drawn["batch"])
    )
    lengths[0] = drawn["steps"]
    agree(layers, tensors, lengths=torch.tensor(lengths))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_cells_of_every_step_and_their_gradients(bidirectional):
    torch.manual_seed(0)
    layers, tensors = pair(6, 3, 4, 9, torch.float64, num_copies=3, num_heads=2, bidirectional=bidirectional)
    agree(layers, tensors, cells=True)


@pytest.mark.parametrize("steps", [1, 7, 300])
def test_backward_in_several_segments(steps, monkeypatch):
    """A long sequence is worked on in segments: here of 16 steps."""
    monkeypatch.setattr(kernel, "SEGMENT_BYTES", 1)
    torch.manual_seed(0)
    for bidirectional in (False, True):
        layers, tensors = pair(steps, 3, 4, 5, torch.float64, num_copies=2, bidirectional=bidirectional)
        agree(layers, tensors)


@pytest.mark.parametrize("batch", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("shared", [True, False])
def test_kernels_do_not_depend_on_the_number_of_threads(batch, shared, monkeypatch):
    torch.manual_seed(0)
    (_, fused), tensors = pair(9, batch, 5, 24, torch.float32, num_copies=3, num_heads=2, num_layers=2)
    monkeypatch.setattr(splitting, "SHARED_BYTES", 0 if shared else 2**62)
    calls = with_any_number_of_threads(monkeypatch, kernel, "by_team")
    results_and_gradients(fused, tensors)
    assert calls == [loops.forward] * 2 + [loops.backward] * 2


@pytest.mark.parametrize("batch", [1, 20])
@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_equals_the_reference_with_any_number_of_threads(batch, threads):
    """PyTorch's own products may depend on that number, in the last bit."""
    torch.manual_seed(0)
    layers, tensors = pair(9, batch, 5, 24, torch.float32, num_copies=3, num_heads=2, num_layers=2)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        agree(layers, tensors)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("frozen", ["weight_ih_l0", "weight_hh_l0", "bias_l0"])
def test_gradients_of_a_subset(frozen):
    torch.manual_seed(0)
    layers, (x, h_0, c_0) = pair(5, 2, 3, 4, torch.float64, num_copies=2)

    def gradients(layer, x, state):
        layer.zero_grad()
        layer.get_parameter(frozen).requires_grad_(False)
        layer(x, state)[0].square().sum().backward()
        assert layer.get_parameter(frozen).grad is None
        return [parameter.grad for name, parameter in layer.named_parameters() if name != frozen]

    expected, ours = (gradients(layer, x, (h_0, c_0)) for layer in layers)
    assert_close(ours, expected, allowed(gradients, layers[0], x, (h_0, c_0)))


def test_inputs_that_are_not_contiguous():
    torch.manual_seed(0)
    layers, (x, h_0, c_0) = pair(6, 4, 5, 7, torch.float64, num_copies=2)
    x = x.transpose(0, 1).contiguous().transpose(0, 1)
    h_0, c_0 = h_0.expand(3, -1, -1, -1)[1], c_0.transpose(-1, -2).contiguous().transpose(-1, -2)
    assert not x.is_contiguous()
    assert not c_0.is_contiguous()
    agree(layers, (x, h_0, c_0))


def test_backward_twice_over_a_retained_graph():
    torch.manual_seed(0)
    (_, fused), (x, h_0, c_0) = pair(6, 2, 5, 7, torch.float64, num_copies=2)
    output, _ = fused(x, (h_0, c_0))
    loss = output.square().sum()
    first = torch.autograd.grad(loss, fused.weight_hh_l0, retain_graph=True)[0]
    second = torch.autograd.grad(loss, fused.weight_hh_l0)[0]
    assert torch.equal(first, second)


def test_nan_reaches_the_output():
    layer = AssociativeLSTM(3, 4, backend="fused")
    x = torch.randn(4, 2, 3)
    x[1, 1, 0] = float("nan")
    output, _ = layer(x)
    assert not output[1:, 1].isfinite().any()
    assert output[:, 0].isfinite().all()


def test_gradcheck():
    torch.manual_seed(0)
    (_, fused), (x, h_0, c_0) = pair(4, 2, 3, 3, torch.float64, num_copies=2, num_heads=2)
    names = [name for name, _ in fused.named_parameters()]
    tensors = [t.detach().clone().requires_grad_() for t in (x, h_0, c_0, *fused.parameters())]

    def run(x, h_0, c_0, *parameters):
        output, state = torch.func.functional_call(
            fused, dict(zip(names, parameters, strict=True)), (x, (h_0, c_0))
        )
        return output, *state

    assert torch.autograd.gradcheck(run, tensors)


def test_inference_keeps_no_history():
    (_, fused), (x, h_0, c_0) = pair(50, 2, 3, 8, torch.float32, num_copies=4)
    arguments = (
        x,
        h_0[0],
        c_0[0],
        fused.weight_ih_l0,
        fused.weight_hh_l0,
        fused.bias_l0,
        fused.permutations_l0,
        None,
        None,
    )
    with torch.no_grad():
        _, _, _, z, cells = kernel._sequence(*arguments, False, False, 0)
    assert z.numel() == 0
    assert cells.numel() == 0


@pytest.mark.parametrize("size", [1e14, 1e19, 1e25, 1e35])
def test_pre_activations_whose_squares_overflow(size):
    torch.manual_seed(0)
    layers, (x, h_0, c_0) = pair(3, 2, 4, 9, torch.float32, num_copies=2)

    def run(layer, x, state):
        return layer(x, state)[:1]

    expected, ours = (run(layer, x * size, (h_0, c_0)) for layer in layers)
    assert expected[0].isfinite().all()
    assert_close(ours, expected, allowed(run, layers[0], x * size, (h_0, c_0)))


def test_a_permutation_with_an_index_twice_is_refused():
    layer = AssociativeLSTM(3, 8, num_copies=2, backend="fused")
    layer.permutations_l0[1] = torch.tensor([0, 1, 1, 3])
    with pytest.raises(IndexError, match="permutations: an index twice"):
        layer(torch.randn(2, 1, 3))


def test_nothing_outside_the_arrays_is_read_or_written():
    """Every array lies between margins of NaN: what is read there shows in the results, what is written in them."""
    from associative_lstm.kernels.compiler.matmul import pack
    from associative_lstm.kernels.compiler.openmp import ALONE

    generator = np.random.default_rng(0)
    margins = []

    def between_margins(*shape):
        size = int(np.prod(shape))
        whole = np.full(size + 256, np.nan, np.float32)
        whole[128 : 128 + size] = generator.normal(size=size)
        margins.append((whole[:128], whole[128 + size :]))
        return whole[128 : 128 + size].reshape(shape)

    for (n, heads, copies, batch), shifted in itertools.product(
        [(1, 1, 1, 1), (5, 2, 3, 7), (16, 1, 2, 3), (33, 3, 1, 2), (48, 3, 2, 2)], (False, True)
    ):
        steps, N, rows = 4, 2 * n, (1 + 8 * heads) * n
        H = heads * N
        z, w = between_margins(steps, batch, rows), between_margins(rows, H) * np.float32(0.1)
        h, c = between_margins(batch, H), between_margins(batch, copies, N)
        output, cells = between_margins(steps, batch, H), between_margins(steps, batch, copies, N)
        permutations = np.stack([generator.permutation(n) for _ in range(copies)])
        if shifted:
            permutations = (np.arange(n) + permutations[:, :1]) % n
        lengths = np.full(batch, steps)
        start = c.copy()
        usual = heads == 1 and n == 16
        whole = loops.Sequence(steps, False, lengths, permutations, None, False, None if usual else True)

        def product(w):
            packed = pack(w)
            return loops.Product(packed, between_margins(batch, packed.filled))  # noqa: B023 (called in its turn)

        loops.forward(
            0, batch, ALONE, whole, 0, product(w.T), loops.State(h, c), loops.Kept(z, output, cells)
        )
        d_output, d_cells = between_margins(steps, batch, H), between_margins(steps, batch, copies, N)
        dh, dc = between_margins(batch, H), between_margins(batch, copies, N)
        dz, dz_first = between_margins(steps, batch, rows), between_margins(batch, rows)
        loops.backward(
            0,
            batch,
            ALONE,
            whole,
            0,
            product(w),
            loops.Saved(z, cells, start),
            loops.Above(d_output, d_cells),
            loops.State(dh, dc),
            loops.Gradients(dz, dz_first),
        )
        for result in (z, h, c, output, cells, dh, dc, dz, dz_first):
            assert np.isfinite(result).all()
        for before, after in margins:
            assert np.isnan(before).all()
            assert np.isnan(after).all()
