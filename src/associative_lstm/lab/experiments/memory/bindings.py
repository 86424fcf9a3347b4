"""Redundant memories with other keys, other bindings and other reads than `HolographicMemory`, for comparison."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from associative_lstm.functional import (
    bind,
    circular_convolution,
    circular_correlation,
    inverse,
    permute,
    random_key,
    random_permutations,
    unbind,
)


class Binding(NamedTuple):
    """How keys are drawn, bound to values, and used to read."""

    key: Callable[[int, torch.Generator], Tensor]
    bind: Callable[[Tensor, Tensor], Tensor]
    read: Callable[[Tensor, Tensor], Tensor]


def gaussian_pair(size: int, generator: torch.Generator) -> Tensor:
    """A key of complex Gaussian elements with a mean square modulus of 1."""
    return torch.randn(size, generator=generator) / math.sqrt(2)


def gaussian_real(size: int, generator: torch.Generator) -> Tensor:
    """Plate's real key: Gaussian elements of variance 1/n, so that its length is about 1."""
    return torch.randn(size, generator=generator) / math.sqrt(size)


def unitary_real(size: int, generator: torch.Generator) -> Tensor:
    """A real key whose spectrum has unit modulus: correlation undoes convolution exactly."""
    phase = torch.rand(size // 2 + 1, generator=generator) * 2 * math.pi
    spectrum = torch.polar(torch.ones_like(phase), phase)
    for real in (0, *([-1] if size % 2 == 0 else [])):  # the mean and the highest frequency have no phase
        spectrum[real] = 1 if phase[real] < math.pi else -1
    return torch.fft.irfft(spectrum, n=size)


BINDINGS = {
    "unit keys, conjugate": Binding(lambda n, g: random_key(n, generator=g), bind, unbind),
    "Gaussian keys, conjugate": Binding(gaussian_pair, bind, unbind),
    "Gaussian keys, exact inverse": Binding(gaussian_pair, bind, lambda r, y: bind(inverse(r), y)),
    "circular convolution, unitary keys": Binding(unitary_real, circular_convolution, circular_correlation),
    "circular convolution, Gaussian keys": Binding(gaussian_real, circular_convolution, circular_correlation),
}


def retrieve(name: str, x: Tensor, copies: int, generator: torch.Generator) -> Tensor:
    """The first of the values x as it comes back from ``copies`` traces that hold all of them."""
    binding = BINDINGS[name]
    items, size = x.shape
    real_pair = binding.bind is bind
    permutations = random_permutations(copies, size // 2 if real_pair else size, generator=generator)
    r = torch.stack([binding.key(size, generator) for _ in range(items)])
    read = torch.zeros_like(x[0])
    for s in range(copies):
        r_s = permute(r, permutations[s : s + 1]).squeeze(-2) if real_pair else r[:, permutations[s]]
        if binding.key is unitary_real:
            # a permutation in space would break the unit spectrum, so each copy has its own key instead
            r_s = torch.stack([unitary_real(size, generator) for _ in range(items)])
        trace = binding.bind(r_s, x).sum(0)
        read += binding.read(r_s[0], trace) / copies
    return read
