import pytest
import torch

from associative_lstm.kernels.permutation import fused
from associative_lstm.kernels.permutation.fused import sequence as permuted_sums
from associative_lstm.kernels.permutation.reference import powers
from associative_lstm.nn import PermutationRNN
from closeness import allowed, assert_close
from threads import with_any_number_of_threads

BACKENDS = pytest.mark.parametrize("backend", ["reference", "fused"])


def loop(net, x, h):
    steps = []
    for x_t in x:
        h = h[:, net.permutation] + torch.nn.functional.linear(x_t, net.weight, net.bias)
        steps.append(h)
    return torch.stack(steps)


@BACKENDS
@pytest.mark.parametrize("T", [1, 2, 3, 7, 64, 65, 2000])
def test_equals_the_loop(backend, T):
    torch.manual_seed(0)
    net = PermutationRNN(4, 9, backend=backend, dtype=torch.float64)
    torch.nn.init.normal_(net.bias)
    x, h_0 = torch.randn(T, 3, 4, dtype=torch.float64), torch.randn(3, 9, dtype=torch.float64)
    output, h = net(x, h_0)
    expected = loop(net, x, h_0)
    assert torch.equal(h, output[-1])
    single, _ = net.float()(x.float(), h_0.float())
    # Nothing is forgotten: of T sums and a product with 4 inputs, each is rounded by half a unit of the largest.
    for result in (output, single):
        allowed = (T + 8) * torch.finfo(result.dtype).eps * expected.abs().max()
        assert (result - expected).abs().max() <= allowed


@BACKENDS
def test_gradients_equal_the_loop(backend):
    torch.manual_seed(1)
    net = PermutationRNN(4, 9, backend=backend, dtype=torch.float64)
    x, h_0 = torch.randn(20, 3, 4, dtype=torch.float64), torch.randn(3, 9, dtype=torch.float64)
    weight = torch.randn(20, 3, 9, dtype=torch.float64)

    def gradients(net, x, h_0, weight, run=loop):
        inputs = (x.requires_grad_(), h_0.requires_grad_(), net.weight, net.bias)
        return torch.autograd.grad((run(net, x, h_0) * weight).sum(), inputs)

    ours = gradients(net, x, h_0, weight, lambda net, x, h_0: net(x, h_0)[0])
    limits = allowed(gradients, net, x, h_0, weight)
    assert_close(ours, gradients(net, x, h_0, weight), limits)


def test_powers_undo_each_other():
    permutation = torch.randperm(11, generator=torch.Generator().manual_seed(0))
    forth, back = powers(permutation, 37), powers(permutation.argsort(), 37)
    assert torch.equal(forth.gather(0, back), torch.arange(11).unsqueeze(1).expand(11, 37))


def test_the_permutation_is_saved_and_is_no_parameter():
    net = PermutationRNN(4, 9)
    assert "permutation" in net.state_dict()
    assert "permutation" not in dict(net.named_parameters())
    assert net.permutation.sort().values.tolist() == list(range(9))


def test_fused_gradients_to_the_second_order():
    torch.manual_seed(2)
    u = torch.randn(5, 3, 4, dtype=torch.float64, requires_grad=True)
    h_0 = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    permutation = torch.randperm(4)
    for backwards in (False, True):
        assert torch.autograd.gradcheck(permuted_sums, (u, h_0, permutation, backwards))
        assert torch.autograd.gradgradcheck(permuted_sums, (u, h_0, permutation, backwards))


def test_the_kernel_does_not_depend_on_the_number_of_threads(monkeypatch):
    net = PermutationRNN(4, 9, backend="fused")
    calls = with_any_number_of_threads(monkeypatch, fused, "over_batch")
    net(torch.randn(6, 5, 4))[0].sum().backward()
    assert calls == [fused._loop] * 2


@BACKENDS
@pytest.mark.parametrize("bad", [-1, 9, 2**40])
def test_a_broken_permutation_is_refused(backend, bad):
    net = PermutationRNN(4, 9, backend=backend)
    net.permutation[3] = bad
    with pytest.raises((ValueError, IndexError, RuntimeError)):
        net(torch.zeros(3, 2, 4))
