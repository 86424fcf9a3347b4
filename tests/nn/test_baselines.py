"""What holds for every network that the paper compares with."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from associative_lstm.nn import (
    LSTM,
    MultiplicativeUnitaryRNN,
    NeuralTuringMachine,
    PermutationRNN,
    UnitaryRNN,
)
from closeness import allowed, assert_close

NETWORKS = {
    "LSTM": lambda **options: LSTM(5, 6, num_layers=2, **options),
    "PermutationRNN": lambda **options: PermutationRNN(5, 6, **options),
    "UnitaryRNN": lambda **options: UnitaryRNN(5, 6, **options),
    "MultiplicativeUnitaryRNN": lambda **options: MultiplicativeUnitaryRNN(5, 6, **options),
    "NeuralTuringMachine": lambda **options: NeuralTuringMachine(5, 6, 2, (7, 3), **options),
}
each_network = pytest.mark.parametrize("name", NETWORKS)


def make(name, *, dtype=torch.float64, seed=0, **options):
    """The network with every parameter drawn, so that no zero bias hides a mistake."""
    torch.manual_seed(seed)
    net = NETWORKS[name](dtype=dtype, **options)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return net


def parts(state):
    return [state] if isinstance(state, torch.Tensor) else list(state)


def run(net, x):
    output, state = net(x)
    return [output, *parts(state)]


@each_network
@settings(max_examples=10, deadline=None)
@given(T=st.integers(2, 9), B=st.integers(1, 3), data=st.data())
def test_a_sequence_can_be_split_anywhere(name, T, B, data):
    net = make(name, learn_initial_state=True)
    x = torch.randn(T, B, 5, dtype=torch.float64)
    cut = data.draw(st.integers(1, T - 1))
    first, middle = net(x[:cut])
    second, end = net(x[cut:], middle)
    assert_close([torch.cat([first, second]), *parts(end)], run(net, x), allowed(run, net, x))


@each_network
def test_shapes_without_numbers(name):
    output, state = make(name, device="meta", dtype=torch.float32)(torch.empty(4, 2, 5, device="meta"))
    assert output.is_meta
    assert output.shape[:2] == (4, 2)
    assert all(part.is_meta for part in parts(state))


@each_network
def test_shapes_and_attributes(name):
    net = make(name)
    output, _ = net(torch.randn(4, 3, 5, dtype=torch.float64))
    assert output.shape == (4, 3, net.output_size)
    assert (net.input_size, net.hidden_size) == (5, 6)


@each_network
def test_batch_first_only_swaps_input_and_output(name):
    net, twin = make(name), make(name, batch_first=True)
    x = torch.randn(4, 3, 5, dtype=torch.float64)
    output, state = net(x)
    swapped, same = twin(x.transpose(0, 1))
    assert torch.equal(swapped.transpose(0, 1), output)
    assert all(torch.equal(a, b) for a, b in zip(parts(state), parts(same), strict=True))


@each_network
def test_sequences_of_a_batch_do_not_touch(name):
    net = make(name, learn_initial_state=True)
    x = torch.randn(6, 4, 5, dtype=torch.float64)
    output, limits = net(x)[0], allowed(run, net, x)[:1]
    for b in range(4):
        assert_close([net(x[:, b : b + 1])[0][:, 0]], [output[:, b]], limits)


@each_network
def test_a_learned_initial_state_is_used_and_only_when_no_state_is_passed(name):
    net = make(name, learn_initial_state=True)
    x = torch.randn(3, 2, 5, dtype=torch.float64)
    output, _ = net(x)
    explicit, _ = net(x, net.initial_state(2))
    assert torch.equal(output, explicit)
    other, _ = net(x, make(name, seed=1, learn_initial_state=True).initial_state(2))
    assert not torch.allclose(output, other)


@each_network
def test_gradients_with_respect_to_everything(name):
    net = make(name, learn_initial_state=True)
    x = torch.randn(4, 2, 5, dtype=torch.float64, requires_grad=True)
    names = [key for key, _ in net.named_parameters()]

    def call(x, *values):
        output, state = torch.func.functional_call(net, dict(zip(names, values, strict=True)), (x,))
        return output, *parts(state)

    assert torch.autograd.gradcheck(call, (x, *net.parameters()))


@each_network
def test_gradients_flow_through_a_state_that_is_passed_in(name):
    net = make(name)
    x = torch.randn(3, 2, 5, dtype=torch.float64)
    _, state = net(x)
    start = [part.detach().clone().requires_grad_() for part in parts(state)]

    def call(*start):
        output, end = net(x, net._state(list(start)))
        return output, *parts(end)

    assert torch.autograd.gradcheck(call, start)


@each_network
def test_a_copy_and_a_loaded_state_dict_give_the_same_numbers(name):
    net = make(name, learn_initial_state=True)
    other = make(name, seed=1, learn_initial_state=True)
    x = torch.randn(4, 2, 5, dtype=torch.float64)
    assert not torch.allclose(other(x)[0], net(x)[0])
    other.load_state_dict(net.state_dict())
    assert torch.equal(other(x)[0], net(x)[0])
    assert torch.equal(copy.deepcopy(net)(x)[0], net(x)[0])


@each_network
def test_moves_to_another_dtype(name):
    net = make(name, learn_initial_state=True)
    x = torch.randn(4, 2, 5, dtype=torch.float64)
    expected = run(net, x)
    single = net.float()
    assert_close(run(single, x.float()), expected, allowed(run, single, x.float()))


@each_network
def test_autocast_computes_in_the_type_of_the_weights(name):
    net = make(name, dtype=torch.float32)
    x = torch.randn(4, 2, 5)
    _, state = net(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low, _ = net(x.bfloat16())
        same, end = net(x, state)
    assert torch.equal(same, net(x, state)[0])
    assert all(part.dtype == torch.float32 for part in (low, same, *parts(end)))
    torch.testing.assert_close(low, net(x.bfloat16().float())[0])


@each_network
def test_compiles(name):
    net = make(name, learn_initial_state=True)
    x = torch.randn(4, 2, 5, dtype=torch.float64)
    torch._dynamo.reset()
    # torch.compile leaves torch.nn.LSTM alone, and so the network that stands on it.
    compiled = torch.compile(net, backend="aot_eager", fullgraph=name != "LSTM")

    def with_gradients(net, x):
        output, _ = net(x)
        return [output, *torch.autograd.grad(output.square().sum(), list(net.parameters()))]

    assert_close(with_gradients(compiled, x), with_gradients(net, x), allowed(with_gradients, net, x))


@each_network
def test_exports(name):
    net = make(name).eval()
    x = torch.randn(4, 2, 5, dtype=torch.float64)
    exported = torch.export.export(net, (x,)).module()
    with torch.no_grad():
        assert_close(run(exported, x), run(net, x), allowed(run, net, x))


@pytest.mark.parametrize("name", ["UnitaryRNN", "MultiplicativeUnitaryRNN", "NeuralTuringMachine"])
def test_what_was_exported_without_gradients_refuses_to_give_some(name):
    """What the way back reads was not kept."""
    net = make(name)
    x = torch.randn(4, 2, 5, dtype=torch.float64)
    with torch.no_grad():
        exported = torch.export.export(net, (x,)).module()
    output = exported(x)[0]
    if output.requires_grad:
        with pytest.raises(ValueError, match="without gradients"):
            output.sum().backward()


@each_network
@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        ([[1.0]], TypeError, "tensor"),
        (torch.zeros(3, 5), ValueError, r"\(time, batch, input_size\)"),
        (torch.zeros(3, 2, 4), ValueError, "input_size=5, got 4"),
        (torch.zeros(0, 2, 5), ValueError, "at least one"),
        (torch.zeros(3, 2, 5, dtype=torch.float64), ValueError, "float32"),
    ],
)
def test_bad_input_is_named(name, x, error, words):
    with pytest.raises(error, match=words):
        NETWORKS[name]()(x)


@each_network
def test_a_bad_state_is_named(name):
    net = NETWORKS[name]()
    x = torch.zeros(3, 2, 5)
    good = parts(net.initial_state(2))
    with pytest.raises(ValueError, match="parts"):
        net(x, (*good, good[0]))
    with pytest.raises(TypeError, match="tensor"):
        net(x, ("nonsense", *good[1:]))
    with pytest.raises(ValueError, match="shape"):
        net(x, (*good[:-1], good[-1][..., :-1]))
    with pytest.raises(ValueError, match="float32"):
        net(x, (good[0].double(), *good[1:]))


@pytest.mark.parametrize(
    "kind", [LSTM, PermutationRNN, UnitaryRNN, MultiplicativeUnitaryRNN, NeuralTuringMachine]
)
def test_bad_sizes_are_named(kind):
    with pytest.raises(ValueError, match="input_size"):
        kind(0, 8)
    with pytest.raises(ValueError, match="hidden_size"):
        kind(4, 0)
    with pytest.raises(TypeError, match="hidden_size"):
        kind(4, 8.0)


def count(net, readout=True):
    """Parameters of the network, with a readout of its output to its own input's symbols."""
    rows = net.input_size if readout else 0
    return sum(p.numel() for p in net.parameters()) + rows * (net.output_size + 1)


def test_parameter_counts_of_the_copy_task():
    assert count(PermutationRNN(10, 256, learn_initial_state=True)) == 5_642
    assert count(UnitaryRNN(10, 256, learn_initial_state=True)) == 6_666
    assert count(MultiplicativeUnitaryRNN(10, 256, learn_initial_state=True)) == 10_506
    assert count(LSTM(10, 128, learn_initial_state=True)) == 72_714 == 72_993 - (2 * (128 + 10) + 3)
    assert count(LSTM(10, 512, learn_initial_state=True)) == 1_077_258 == 1_078_305 - (2 * (512 + 10) + 3)


def test_parameter_counts_of_the_arithmetic_task():
    assert count(LSTM(80, 128)) == 117_328 == 117_747 - (2 * (128 + 80) + 3)
    assert count(NeuralTuringMachine(80, 384, 4, (128, 20))) == 1_016_000 == 1_097_340 - 81_340
    assert count(LSTM(80, 512)) == 1_255_504 == 1_256_691 - (2 * (512 + 80) + 3)
