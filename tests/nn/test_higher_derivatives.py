"""Derivatives beyond the first, and other ways to take them, on every network: right on every backend."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.nn.utils.rnn import pack_padded_sequence

from associative_lstm import AssociativeLSTM
from associative_lstm.nn import (
    LSTM,
    MultiplicativeUnitaryRNN,
    NeuralTuringMachine,
    PermutationRNN,
    UnitaryRNN,
)

T, B, INPUT = 3, 2, 2
NETWORKS = {
    "AssociativeLSTM": lambda **options: AssociativeLSTM(INPUT, 4, num_copies=2, num_heads=2, **options),
    "smooth": lambda **options: AssociativeLSTM(INPUT, 4, activation="tanh", bias=False, **options),
    "W_hu = 0, reverse": lambda **options: AssociativeLSTM(
        INPUT, 4, bidirectional=True, recurrent_update=False, **options
    ),
    "few states": lambda **options: AssociativeLSTM(INPUT, 4, keep_states_every=2, **options),
    "PermutationRNN": lambda **options: PermutationRNN(INPUT, 4, **options),
    "UnitaryRNN": lambda **options: UnitaryRNN(INPUT, 4, **options),
    "MultiplicativeUnitaryRNN": lambda **options: MultiplicativeUnitaryRNN(INPUT, 4, **options),
    "NeuralTuringMachine": lambda **options: NeuralTuringMachine(INPUT, 3, 2, (3, 2), **options),
}
# PyTorch's forward mode and its tracer use what PyTorch itself calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated:DeprecationWarning")
each_network = pytest.mark.parametrize("name", NETWORKS)


def make(name, backend="auto", **options):
    """Every parameter drawn, and small: moduli below 1, where `bound` is smooth, unless inputs are large."""
    torch.manual_seed(0)
    net = NETWORKS[name](dtype=torch.float64, learn_initial_state=True, backend=backend, **options)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return net


def both(name):
    return make(name), make(name, "reference")


def inputs(steps=T, batch=B):
    return torch.randn(steps, batch, INPUT, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def tensors(result):
    """Everything that a network returns, flat."""
    output, state = result
    return [output, *([state] if isinstance(state, torch.Tensor) else state)]


def same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def penalty(net, x, call=None):
    """The gradients, of the input and of every parameter, of the squared length of a gradient."""
    x = x.clone().requires_grad_()
    output, _ = (net if call is None else call)(x)
    (first,) = torch.autograd.grad(output.sum(), x, create_graph=True)
    return torch.autograd.grad(
        0 * output.sum() + first.square().sum(), [x, *net.parameters()], materialize_grads=True
    )


@each_network
def test_a_gradient_penalty(name):
    ours, theirs = (penalty(net, inputs()) for net in both(name))
    same(ours, theirs)
    assert any(gradient.abs().max() > 1e-3 for gradient in theirs)


@each_network
def test_second_derivatives_with_respect_to_everything(name):
    net, x = make(name), inputs(batch=1).requires_grad_()
    names = [key for key, _ in net.named_parameters()]

    def run(x, *values):
        result = torch.func.functional_call(net, dict(zip(names, values, strict=True)), (x,))
        return torch.cat([part.flatten() for part in tensors(result)])

    assert torch.autograd.gradgradcheck(run, (x, *net.parameters()), fast_mode=True)


@each_network
def test_second_derivatives_with_respect_to_a_state_that_is_passed_in(name):
    net, x = make(name), inputs(2, 1)
    _, state = net(x)
    single = isinstance(state, torch.Tensor)
    start = [part.detach().clone().requires_grad_() for part in ([state] if single else state)]

    def run(*start):
        return torch.cat([part.flatten() for part in tensors(net(x, start[0] if single else start))])

    assert torch.autograd.gradgradcheck(run, start, fast_mode=True)


@each_network
def test_third_derivatives(name):
    results = []
    for net in both(name):
        x = inputs().requires_grad_()
        value = net(x)[0].square().sum()
        for _ in range(2):
            (derivative,) = torch.autograd.grad(value, x, create_graph=True)
            value = derivative.square().sum()
        results.append(torch.autograd.grad(value, [x, *net.parameters()], materialize_grads=True))
    same(*results)


@each_network
def test_one_input_may_be_computed_from_another(name):
    """The gradient of each is that of its own place: what is behind it is autograd's to add."""
    results = []
    for net in both(name):
        parameter = next(net.parameters())
        x = inputs() * parameter.sum()
        (first,) = torch.autograd.grad(net(x)[0].square().sum(), parameter, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), parameter)
        results.append([first, second])
    same(*results)


@pytest.mark.parametrize("every", [1, 2])
def test_a_penalty_on_packed_sequences_and_on_cells(every):
    results = []
    for backend in ("auto", "reference"):
        torch.manual_seed(0)
        net = AssociativeLSTM(
            INPUT,
            4,
            num_copies=2,
            bidirectional=True,
            keep_states_every=every,
            backend=backend,
            dtype=torch.float64,
        )
        x = inputs(5, 3).requires_grad_()
        packed = pack_padded_sequence(x, torch.tensor([2, 5, 3]), enforce_sorted=False)
        output, state, cells = net(packed, return_cells=True)
        value = output.data.square().sum() + state.c.square().sum() + cells.sin().sum()
        (first,) = torch.autograd.grad(value, x, create_graph=True)
        results.append(torch.autograd.grad(first.square().sum(), [x, *net.parameters()]))
    same(*results)


def test_a_penalty_inside_autocast():
    ours, theirs = both("AssociativeLSTM")
    expected = penalty(theirs, inputs())
    with torch.autocast("cpu", torch.bfloat16):
        same(penalty(ours, inputs()), expected)


@each_network
def test_a_penalty_through_the_operators(name):
    """torch.compile's eager backend calls the registered operators, whose derivatives are their own."""
    net, theirs = both(name)
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    same(penalty(net, inputs(), compiled), penalty(theirs, inputs()))
    torch._dynamo.reset()


def test_a_penalty_through_what_differentiates_ahead_of_time_is_refused():
    """PyTorch says so itself, for every network."""
    net = make("AssociativeLSTM")
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        penalty(net, inputs(), compiled)
    torch._dynamo.reset()


@each_network
def test_many_gradients_at_once(name):
    net, theirs = both(name)

    def sums(net):
        return lambda x: net(x)[0].sum((1, 2))

    ours = torch.autograd.functional.jacobian(sums(net), inputs(), vectorize=True)
    same([ours], [torch.autograd.functional.jacobian(sums(theirs), inputs())])


@each_network
@pytest.mark.parametrize("trained", [True, False])
def test_forward_mode(name, trained):
    results = []
    for net in both(name):
        net.requires_grad_(trained)
        with forward_ad.dual_level():
            x = forward_ad.make_dual(inputs(), inputs().cos())
            results.append([forward_ad.unpack_dual(part).tangent for part in tensors(net(x))])
    same(*results)
    assert results[0][0].abs().max() > 1e-3


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "PermutationRNN"])
def test_forward_mode_over_reverse_mode(name):
    """The Hessian times a vector."""
    results = []
    for net in both(name):
        with forward_ad.dual_level():
            x = forward_ad.make_dual(inputs().requires_grad_(), inputs().cos())
            (first,) = torch.autograd.grad(net(x)[0].square().sum(), x)
            results.append([forward_ad.unpack_dual(first).tangent])
    same(*results)


@each_network
def test_forward_mode_that_begins_at_the_backward_pass(name):
    results = []
    for net in both(name):
        x = inputs().requires_grad_()
        output = net(x)[0]
        with forward_ad.dual_level():
            above = forward_ad.make_dual(torch.ones_like(output), output.detach().cos())
            (first,) = torch.autograd.grad(output, x, above)
            results.append([forward_ad.unpack_dual(first).tangent])
    same(*results)
    assert results[0][0].abs().max() > 1e-3


@each_network
def test_forward_mode_on_the_fused_backend_is_refused(name):
    net = make(name, "fused")
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match=r"forward-mode .* backend='reference'"):
        net(forward_ad.make_dual(inputs(), inputs()))


def loss(net):
    names = [name for name, _ in net.named_parameters()]

    def of(values, x):
        result = torch.func.functional_call(net, dict(zip(names, values, strict=True)), (x,))
        return sum(part.square().sum() for part in tensors(result))

    return of


def parameters(net):
    return tuple(parameter.detach() for parameter in net.parameters())


@each_network
def test_grad_of_torch_func(name):
    net, theirs = both(name)
    ours = torch.func.grad(loss(net))(parameters(net), inputs())
    same(ours, torch.autograd.grad(loss(theirs)(tuple(theirs.parameters()), inputs()), theirs.parameters()))


@each_network
def test_the_gradients_of_every_item_of_a_batch(name):
    net, theirs = both(name)
    items = inputs(batch=4).transpose(0, 1).unsqueeze(2)
    ours = torch.func.vmap(torch.func.grad(loss(net)), in_dims=(None, 0))(parameters(net), items)
    for k, item in enumerate(items):
        value = loss(theirs)(tuple(theirs.parameters()), item)
        same([gradient[k] for gradient in ours], torch.autograd.grad(value, theirs.parameters()))


@each_network
@pytest.mark.parametrize("transform", [torch.func.jacrev, torch.func.jacfwd, torch.func.hessian])
def test_jacobians_and_hessians_of_torch_func(name, transform):
    net, theirs = both(name)

    def value(net):
        return lambda x: net(x)[0].square().sum((1, 2))

    x = inputs(2, 1)
    expected = torch.autograd.functional.jacobian(value(theirs), x)
    if transform is torch.func.hessian:
        expected = torch.stack(
            [torch.autograd.functional.hessian(lambda x, t=t: value(theirs)(x)[t], x) for t in range(2)]
        )
    same([transform(value(net))(x)], [expected])


@each_network
def test_jvp_of_torch_func(name):
    net, theirs = both(name)
    _, ours = torch.func.jvp(lambda x: net(x)[0], (inputs(),), (inputs().cos(),))
    _, expected = torch.autograd.functional.jvp(lambda x: theirs(x)[0], inputs(), inputs().cos())
    same([ours], [expected])


@each_network
def test_models_stacked_by_vmap(name):
    """An ensemble: parameters and permutations of several models side by side."""
    nets = [make(name), make(name)]
    with torch.no_grad():
        for parameter in nets[1].parameters():
            parameter.mul_(0.5)
    for buffer in nets[1].buffers():
        buffer.copy_(buffer.flip(-1))
    values, buffers = torch.func.stack_module_state(nets)

    def run(values, buffers, x):
        return torch.func.functional_call(nets[0], (values, buffers), (x,))[0]

    outputs = torch.func.vmap(run, in_dims=(0, 0, None))(values, buffers, inputs())
    same(outputs, [net(inputs())[0] for net in nets])


@pytest.mark.parametrize("name", ["AssociativeLSTM", "PermutationRNN"])  # a loop takes long to compile
def test_torch_func_inside_torch_compile(name):
    net, theirs = both(name)
    torch._dynamo.reset()
    compiled = torch.compile(torch.func.grad(lambda x: net(x)[0].square().sum()), backend="aot_eager")
    x = inputs(1).requires_grad_()
    same([compiled(inputs(1))], torch.autograd.grad(theirs(x)[0].square().sum(), x))
    torch._dynamo.reset()


@each_network
def test_torch_func_on_the_fused_backend_is_refused(name):
    net = make(name, "fused")
    with pytest.raises(RuntimeError, match=r"torch\.func .* backend='reference'"):
        torch.func.grad(loss(net))(parameters(net), inputs())


@pytest.mark.filterwarnings(
    "ignore::torch.jit.TracerWarning"
)  # as with torch.nn.LSTM: a trace is for one shape
@each_network
def test_torch_jit_trace(name):
    net = make(name)
    traced = torch.jit.trace(net, (inputs(),))
    x = inputs().flip(0)
    same(tensors(traced(x)), tensors(net(x)))


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "NeuralTuringMachine"])
def test_what_records_operators_meets_one(name):
    """Recorded with the numbers of one input, a kernel that is no operator would leave its results as constants."""
    from torch.fx.experimental.proxy_tensor import make_fx

    net = make(name)
    recorded = make_fx(lambda x: net(x)[0])(inputs())
    x = inputs().flip(0)
    same([recorded(x)], [net(x)[0]])


def test_the_lstm_too():
    net = LSTM(INPUT, 4, dtype=torch.float64)
    same(
        torch.func.grad(loss(net))(parameters(net), inputs()),
        torch.autograd.grad(loss(net)(tuple(net.parameters()), inputs()), net.parameters()),
    )
    assert any(gradient.abs().max() > 0 for gradient in penalty(net, inputs()))
