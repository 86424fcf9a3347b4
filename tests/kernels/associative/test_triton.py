"""The Triton kernels against the reference loop: outputs, final states and every gradient.

On the CPU, in Triton's interpreter. What has the mark ``gpu`` runs on one: ``pytest -m gpu``.
"""

import copy
import importlib.util

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence

from associative_lstm import AssociativeLSTM, kernels
from associative_lstm.kernels import backends
from associative_lstm.kernels.associative import Inputs, reference, sequence

if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed: `make test-gpu` installs it", allow_module_level=True)

from associative_lstm.kernels.associative import triton as kernel

# the interpreter computes with NumPy, which warns of what a GPU does without a word
pytestmark = pytest.mark.filterwarnings(
    "ignore:(overflow|invalid value|divide by zero) encountered:RuntimeWarning"
)
interpreted = pytest.mark.skipif(not kernel.INTERPRETED, reason="TRITON_INTERPRET is not set")
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

sizes = st.fixed_dictionaries(
    {
        "steps": st.integers(1, 4),
        "batch": st.integers(1, 5),
        "half": st.integers(1, 7),
        "heads": st.integers(1, 3),
        "copies": st.integers(1, 3),
        "recurrent_update": st.booleans(),
        "bias": st.booleans(),
        "turning": st.booleans(),
        "shifted": st.booleans(),
    }
)
options = st.fixed_dictionaries(
    {
        "activation": st.sampled_from(["bound", "tanh"]),
        "reverse": st.booleans(),
        "keep_states_every": st.integers(1, 3),
        "return_cells": st.booleans(),
    }
)
tiles = st.fixed_dictionaries(
    {
        "ITEMS": st.sampled_from([1, 4, 16]),
        "COLUMNS": st.sampled_from([4, 8]),
        "ROWS": st.sampled_from([64, 256]),
        "DEPTH": st.sampled_from([16, 64]),
    }
)


def made(steps, batch, half, heads, copies, recurrent_update, bias, turning, shifted, lengths=None):
    """What a layer computes from; weights that do not make rounding errors grow, biases beyond the bound."""
    N, H, rows = 2 * half, 2 * half * heads, (1 + 8 * heads) * half
    offsets = torch.randint(half, (copies, 1))
    permutations = (torch.arange(half) + offsets) % half
    if not shifted:
        permutations = torch.stack([torch.randperm(half) for _ in range(copies)])
    return Inputs(
        torch.randn(steps, batch, 3),
        torch.randn(batch, H),
        torch.randn(batch, copies, N),
        torch.randn(rows, 3) / 2,
        torch.randn(rows if recurrent_update else rows - H, H) / H**0.5,
        torch.randn(rows) if bias else None,
        permutations,
        lengths,
        reference.turns_of(torch.randn(half), permutations) if turning else None,
    )


def results_and_gradients(inputs, heads, **how):
    leaves = [t if t is None else t.detach().clone().requires_grad_() for t in inputs[:6]]
    results = sequence(Inputs(*leaves, *inputs[6:]), num_heads=heads, **how)
    results = [result for result in results if result is not None]
    weights = [torch.cos(torch.arange(r.numel(), device=r.device)).view_as(r) for r in results]
    sum((w * r).sum() for w, r in zip(weights, results, strict=True)).backward()
    return results + [leaf.grad for leaf in leaves if leaf is not None]


def agree(inputs, heads, **how):
    expected = results_and_gradients(inputs, heads, backend="reference", **how)
    found = results_and_gradients(inputs, heads, backend="triton", **how)
    for ours, theirs in zip(found, expected, strict=True):
        limit = 1e-5 * max(1.0, theirs.abs().max().item())
        torch.testing.assert_close(ours, theirs, rtol=0, atol=limit)


@interpreted
@given(sizes, options, tiles, st.data())
@settings(max_examples=20)
def test_equals_the_reference(drawn, how, tile, data):
    torch.manual_seed(0)
    lengths = None
    if data.draw(st.booleans()):
        few = {"min_size": drawn["batch"], "max_size": drawn["batch"]}
        lengths = sorted(data.draw(st.lists(st.integers(1, drawn["steps"]), **few)), reverse=True)
        lengths = torch.tensor(lengths)
    inputs = made(**drawn, lengths=lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "sizes_of", lambda *sizes: sizes_of(*sizes) | tile)
        agree(inputs, drawn["heads"], **how)


sizes_of = kernel.sizes_of
USUAL = {
    "steps": 4,
    "batch": 3,
    "half": 5,
    "heads": 2,
    "copies": 2,
    "recurrent_update": True,
    "bias": True,
    "turning": False,
    "shifted": False,
}
HOW = {"activation": "bound", "reverse": False, "keep_states_every": 1, "return_cells": False}


@interpreted
@pytest.mark.parametrize("batch", [2, 20])
def test_tiles_as_they_are_chosen(batch):
    """Items of a program as for one processor, so that 20 are two programs and a product for matrix units."""
    torch.manual_seed(0)
    agree(made(**USUAL | {"batch": batch, "half": 33}), 2, **HOW)


@interpreted
@pytest.mark.parametrize("keep", [1, 2])
def test_a_long_sequence_goes_through_several_launches(keep, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(kernel, "SEGMENT_BYTES", 1)
    inputs = made(**USUAL | {"steps": 17, "half": 3})
    agree(inputs, 2, **HOW | {"keep_states_every": keep})
    with torch.no_grad():
        ours, theirs = (sequence(inputs, num_heads=2, backend=b, **HOW)[0] for b in ("triton", "reference"))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@interpreted
@pytest.mark.parametrize("size", [1e14, 1e25, 1e35])
def test_pre_activations_whose_squares_overflow(size):
    torch.manual_seed(0)
    inputs = made(**USUAL)
    inputs = inputs._replace(x=inputs.x * size)
    ours, theirs = (sequence(inputs, num_heads=2, backend=b, **HOW)[0] for b in ("triton", "reference"))
    assert theirs.isfinite().all()
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@interpreted
def test_nan_reaches_the_output():
    layer, x = AssociativeLSTM(3, 4, backend="triton"), torch.randn(4, 2, 3)
    x[1, 1, 0] = float("nan")
    output, _ = layer(x)
    assert not output[1:, 1].isfinite().any()
    assert output[:, 0].isfinite().all()


@interpreted
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_is_the_float32_reference_rounded(kind):
    torch.manual_seed(0)
    layer = AssociativeLSTM(3, 8, num_copies=2, backend="triton", dtype=kind)
    wide = copy.deepcopy(layer).float()
    wide.backend = "reference"
    x = torch.randn(4, 2, 3, dtype=kind)
    output, expected = layer(x)[0], wide(x.float())[0]
    output.float().square().sum().backward()
    expected.square().sum().backward()
    eps = torch.finfo(kind).eps
    torch.testing.assert_close(output.float(), expected, rtol=eps, atol=eps / 10)
    for ours, theirs in zip(layer.parameters(), wide.parameters(), strict=True):
        assert ours.grad.dtype == kind
        torch.testing.assert_close(
            ours.grad.float(), theirs.grad, rtol=4 * eps, atol=4 * eps * theirs.grad.abs().max().item()
        )


def second_derivative(layer, x):
    (first,) = torch.autograd.grad(layer(x)[0].square().sum(), x, create_graph=True)
    return torch.autograd.grad(first.square().sum(), layer.weight_hh_l0)[0]


@interpreted
def test_second_derivatives_and_packs_as_with_any_backend():
    torch.manual_seed(0)
    layer = AssociativeLSTM(3, 8, 2, bidirectional=True, num_copies=2, rotation=0.5, backend="triton")
    other = copy.deepcopy(layer)
    other.backend = "reference"
    x = torch.randn(4, 2, 3, requires_grad=True)
    torch.testing.assert_close(second_derivative(layer, x), second_derivative(other, x))
    pack = pack_sequence([torch.randn(k, 3) for k in (2, 4, 1)], enforce_sorted=False)
    ours, theirs = layer(pack), other(pack)
    torch.testing.assert_close(ours[0].data, theirs[0].data)
    torch.testing.assert_close(ours[1], theirs[1])


@interpreted
def test_it_is_an_operator_to_torch_compile():
    torch.manual_seed(0)
    layer, x = AssociativeLSTM(3, 8, num_copies=2, backend="triton"), torch.randn(4, 2, 3)
    seen = []

    def backend(graph, _):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    compiled = torch.compile(layer, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(x)[0], layer(x)[0])
    assert "associative_lstm.triton_sequence.default" in seen
    inputs = made(**USUAL)
    torch.library.opcheck(kernel._sequence_op, (*inputs, False, False, 1))


@interpreted
def test_distributed_data_parallel_sees_its_gradients(tmp_path):
    torch.manual_seed(0)
    layer, x = AssociativeLSTM(3, 4, num_copies=2, backend="triton"), torch.randn(3, 2, 3)
    alone = copy.deepcopy(layer)
    alone(x)[0].sum().backward()
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        parallel = torch.nn.parallel.DistributedDataParallel(layer)
        parallel(x)[0].sum().backward()
    finally:
        torch.distributed.destroy_process_group()
    for ours, expected in zip(layer.parameters(), alone.parameters(), strict=True):
        assert torch.equal(ours.grad, expected.grad)


@interpreted
def test_autocast_leaves_it_in_float32():
    torch.manual_seed(0)
    layer, x = AssociativeLSTM(3, 8, backend="triton"), torch.randn(4, 2, 3)
    with torch.autocast("cpu"):
        output, _ = layer(x)
        output.sum().backward()
    torch.testing.assert_close(output, layer(x)[0])


@interpreted
@pytest.mark.parametrize("name", ["x", "h_0", "c_0", "weight_ih", "weight_hh", "bias", "permutations"])
def test_the_operator_refuses_what_does_not_fit(name):
    inputs = made(**USUAL)
    spoilt = getattr(inputs, name)[..., :-1]
    with pytest.raises(ValueError, match="expected"):
        kernel._sequence_op(*inputs._replace(**{name: spoilt}), False, False, 1)


def test_which_path_is_taken_and_why(monkeypatch):
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    assert kernels.choose_backend("auto", cuda, torch.float16) == (
        "triton",
        "a GPU and a floating-point type it knows",
    )
    assert kernels.choose_backend("auto", cuda, torch.float64)[1] == (
        "the Triton kernel takes 16 and 32 bits of floating point, not torch.float64"
    )
    assert kernels.choose_backend("auto", cuda, torch.float32, "ntm.fused")[0] == "reference"
    assert kernels.choose_backend("auto", cpu, torch.float32)[0] == "fused"
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(RuntimeError, match="the Triton kernel runs on a GPU, not on cpu"):
        kernels.choose_backend("triton", cpu, torch.float32)
    monkeypatch.setattr(backends, "fused_unavailable", lambda kernel: "No module named 'triton'")
    with pytest.warns(RuntimeWarning, match="slow reference loop: Triton cannot be used here"):
        assert kernels.choose_backend("auto", cuda, torch.float32)[0] == "reference"


def test_items_of_a_program():
    assert [kernel.items_of(batch, 108) for batch in (1, 108, 109, 500, 10_000)] == [1, 1, 2, 8, 16]


@pytest.mark.gpu
@gpu
@pytest.mark.parametrize("batch", [1, 2, 300, 3000])
@pytest.mark.parametrize("activation", ["bound", "tanh"])
@pytest.mark.parametrize("reverse", [False, True])
def test_equals_the_reference_on_a_gpu(batch, activation, reverse):
    torch.manual_seed(0)
    for half, heads, copies in [(5, 1, 1), (64, 1, 4), (100, 3, 2)]:
        drawn = USUAL | {"steps": 50, "batch": batch, "half": half, "heads": heads, "copies": copies}
        inputs = made(**drawn, lengths=torch.randint(1, 51, (batch,)).sort(descending=True).values)
        inputs = Inputs(*(t if t is None or k == 7 else t.cuda() for k, t in enumerate(inputs)))
        for keep in (1, 7):
            how = {"activation": activation, "reverse": reverse, "keep_states_every": keep}
            agree(inputs, heads, return_cells=False, **how)


@pytest.mark.gpu
@gpu
def test_a_gpu_gives_the_same_bits_every_time():
    """What a missing barrier lets happen does not happen twice in the same way."""
    torch.manual_seed(0)
    inputs = made(**USUAL | {"steps": 100, "batch": 400, "half": 128, "copies": 4})
    inputs = Inputs(*(t if t is None else t.cuda() for t in inputs))
    first = results_and_gradients(inputs, 2, backend="triton", **HOW)
    for _ in range(20):
        again = results_and_gradients(inputs, 2, backend="triton", **HOW)
        for a, b in zip(first[:3], again[:3], strict=True):
            assert torch.equal(a, b)
