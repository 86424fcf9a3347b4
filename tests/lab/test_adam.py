"""The trainer's Adam against PyTorch's."""

import copy

import torch

from associative_lstm.lab.adam import Adam


def _steps(adam, parameters, gradients):
    for of_step in gradients:
        for parameter, gradient in zip(parameters, of_step, strict=True):
            parameter.grad = gradient
        adam.step()


def _parameters():
    torch.manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape)) for shape in ((7, 5), (300,), ())]


def _gradients(count, missing=()):
    return [
        [None if (step, k) in missing else torch.randn(p.shape) for k, p in enumerate(_parameters())]
        for step in range(count)
    ]


def test_the_same_numbers_and_state_as_pytorch():
    ours, theirs, gradients = _parameters(), _parameters(), _gradients(20, missing={(0, 1), (5, 0)})
    mine, other = Adam(ours, 0.01), torch.optim.Adam(theirs, lr=0.01, fused=True)
    _steps(mine, ours, gradients)
    _steps(other, theirs, gradients)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    torch.testing.assert_close(mine.state_dict()["state"], other.state_dict()["state"], rtol=0, atol=0)


def test_it_goes_on_from_a_saved_state():
    ours, gradients = _parameters(), _gradients(6)
    adam = Adam(ours, 0.01)
    _steps(adam, ours, gradients[:3])
    saved = copy.deepcopy((adam.state_dict(), [p.detach() for p in ours]))
    _steps(adam, ours, gradients[3:])
    again = [torch.nn.Parameter(p) for p in saved[1]]
    fresh = Adam(again, 0.01)
    fresh.load_state_dict(saved[0])
    _steps(fresh, again, gradients[3:])
    torch.testing.assert_close(again, ours, rtol=0, atol=0)
