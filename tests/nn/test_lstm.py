import pytest
import torch

from associative_lstm.nn import LSTM
from closeness import allowed, assert_close


def draw(net):
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(0.3 * torch.randn_like(parameter))


def test_equals_torch_nn_lstm_with_the_same_weights():
    torch.manual_seed(0)
    ours, theirs = LSTM(5, 7, num_layers=3), torch.nn.LSTM(5, 7, num_layers=3)
    draw(ours)
    with torch.no_grad():
        for k in range(3):
            getattr(theirs, f"weight_ih_l{k}").copy_(getattr(ours, f"weight_ih_l{k}"))
            getattr(theirs, f"weight_hh_l{k}").copy_(getattr(ours, f"weight_hh_l{k}"))
            getattr(theirs, f"bias_ih_l{k}").copy_(getattr(ours, f"bias_l{k}"))
            getattr(theirs, f"bias_hh_l{k}").zero_()
    x, start = torch.randn(9, 4, 5), (torch.randn(3, 4, 7), torch.randn(3, 4, 7))
    output, (h, c) = ours(x, start)
    expected, (h_n, c_n) = theirs(x, start)
    assert torch.equal(output, expected)
    assert torch.equal(h, h_n)
    assert torch.equal(c, c_n)
    output.square().sum().backward()
    expected.square().sum().backward()
    for k in range(3):
        assert torch.equal(getattr(ours, f"weight_ih_l{k}").grad, getattr(theirs, f"weight_ih_l{k}").grad)
        assert torch.equal(getattr(ours, f"weight_hh_l{k}").grad, getattr(theirs, f"weight_hh_l{k}").grad)
        assert torch.equal(getattr(ours, f"bias_l{k}").grad, getattr(theirs, f"bias_ih_l{k}").grad)


def test_equals_the_equations_step_by_step():
    torch.manual_seed(1)
    net = LSTM(5, 7, dtype=torch.float64)
    draw(net)
    x = torch.randn(9, 4, 5, dtype=torch.float64)

    def step_by_step(net, x):
        h = c = torch.zeros(4, 7, dtype=torch.float64)
        steps = []
        for x_t in x:
            i, f, u, o = (x_t @ net.weight_ih_l0.T + h @ net.weight_hh_l0.T + net.bias_l0).chunk(4, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * u.tanh()
            h = o.sigmoid() * c.tanh()
            steps.append(h)
        return torch.stack(steps), h, c

    output, (h_n, c_n) = net(x)
    assert_close([output, h_n[0], c_n[0]], step_by_step(net, x), allowed(step_by_step, net, x))


def test_forget_bias_is_where_the_forget_gate_starts():
    net = LSTM(5, 7, num_layers=2, forget_bias=1.5)
    for bias in (net.bias_l0, net.bias_l1):
        assert bias.tolist() == [0.0] * 7 + [1.5] * 7 + [0.0] * 14


def test_a_forget_bias_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="forget_bias: expected a finite number, got nan"):
        LSTM(5, 7, forget_bias=float("nan"))
    with pytest.raises(ValueError, match="forget_bias: expected a number or 'chrono', got 'mixed'"):
        LSTM(5, 7, forget_bias="mixed")


def test_every_gate_is_glorot_uniform():
    torch.manual_seed(2)
    net = LSTM(30, 50)
    limit = (6 / (30 + 50)) ** 0.5
    assert 0.95 * limit < net.weight_ih_l0.abs().max() <= limit
