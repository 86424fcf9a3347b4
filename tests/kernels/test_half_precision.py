"""bfloat16 and float16 on the fused path: computed in float32, and rounded once."""

import copy

import pytest
import torch

from associative_lstm import AssociativeLSTM, kernels
from associative_lstm.nn import NeuralTuringMachine, PermutationRNN, UnitaryRNN

KINDS = [torch.bfloat16, torch.float16]
each_kind = pytest.mark.parametrize("kind", KINDS)


def as_float32(network):
    """The same weights, in float32 and by the reference."""
    other = copy.deepcopy(network).float()
    other.backend = "reference"
    return other


@each_kind
@pytest.mark.parametrize("options", [{}, {"num_heads": 2, "num_copies": 3, "bidirectional": True}])
def test_a_layer_is_the_float32_reference_rounded(kind, options):
    torch.manual_seed(0)
    layer = AssociativeLSTM(5, 32, backend="fused", dtype=kind, **options)
    wide = as_float32(layer)
    x = torch.randn(7, 3, 5, dtype=kind)
    output, (h_n, c_n), cells = layer(x, return_cells=True)
    expected, (expected_h, expected_c), expected_cells = wide(x.float(), return_cells=True)
    assert "float32" not in str({output.dtype, h_n.dtype, c_n.dtype, cells.dtype})
    found = [output, h_n, c_n, cells]
    for ours, theirs in zip(found, [expected, expected_h, expected_c, expected_cells], strict=True):
        assert within_a_rounding(ours, theirs)
    above = torch.randn_like(output)
    output.backward(above)
    expected.backward(above.float())
    for ours, theirs in zip(layer.parameters(), wide.parameters(), strict=True):
        assert ours.grad.dtype == kind
        assert within_a_rounding(ours.grad, theirs.grad)


def within_a_rounding(rounded, exact):
    """Whether it is one of the two neighbours of the exact number: float32's own error may tip the scales."""
    eps, tiny = torch.finfo(rounded.dtype).eps, torch.finfo(rounded.dtype).tiny
    scale = exact.abs().max() * 1e-5  # as float32's sums differ among themselves
    return ((rounded.float() - exact).abs() <= eps / 2 * exact.abs() + scale + tiny).all()


@each_kind
def test_several_layers_round_between_each_other_only(kind):
    torch.manual_seed(0)
    layer = AssociativeLSTM(5, 32, 2, dtype=kind)
    first, second = (AssociativeLSTM(inputs, 32, dtype=kind) for inputs in (5, 32))
    for k, single in enumerate((first, second)):
        names = ("weight_ih", "weight_hh", "bias", "permutations")
        single.load_state_dict({f"{name}_l0": getattr(layer, f"{name}_l{k}") for name in names})
    x = torch.randn(7, 3, 5, dtype=kind)
    assert torch.equal(layer(x)[0], second(first(x)[0])[0])


@each_kind
@pytest.mark.parametrize(
    "make",
    [
        lambda **how: UnitaryRNN(4, 16, **how),
        lambda **how: PermutationRNN(4, 16, **how),
        lambda **how: NeuralTuringMachine(4, 16, num_heads=2, **how),
    ],
    ids=["unitary", "permutation", "ntm"],
)
def test_the_other_networks_take_it_too(make, kind):
    torch.manual_seed(0)
    network = make(backend="fused").to(kind)
    output, _ = network(torch.randn(5, 2, 4, dtype=kind))
    output.float().sum().backward()
    assert output.dtype == kind
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


def test_half_precision_is_served_by_the_fused_kernel():
    for kind in KINDS:
        assert kernels.choose_backend("auto", torch.device("cpu"), kind)[0] == "fused"
