"""Causal softmax attention (Vaswani et al., 2017), with rotary positions (Su et al., 2021)."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from associative_lstm.lab.rivals.stack import Mixer, ShortConvolution, Stack, join_heads, linear, split_heads
from associative_lstm.nn.checks import check_positive_int

_BASE = 10_000.0


def _grows(name: str) -> bool:
    return name.startswith(("keys", "values"))


class SoftmaxAttention(Mixer):
    """The mixer of :class:`Attention`."""

    def __init__(
        self, width: int, num_heads: int = 2, head_size: int = 32, convolution: int = 0, span: int = 1024
    ) -> None:
        super().__init__(num_heads, head_size)
        check_positive_int("span", span)
        if head_size % 2:
            raise ValueError(f"head_size: expected an even number, whose pairs are turned, got {head_size}")
        self.span = span
        self.project = linear(width, 3 * self.inner)
        self.convolution = ShortConvolution(3 * self.inner, convolution) if convolution else None
        self.out = linear(self.inner, width)

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        own = dict.fromkeys(("keys", "values"), (self.heads, 0, self.size))
        return own | (self.convolution.state_shapes() if self.convolution else {})

    def forward(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        keys, values, *before = parts
        x = self.project(x)
        if self.convolution is not None:
            x, before = self.convolution(x, before)
        q, k, v = (split_heads(part, self.heads) for part in x.chunk(3, -1))
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        steps, known = q.shape[2], keys.shape[2]
        # Only distances matter: the oldest that is known has position 0, and keys are kept as they came.
        turned = rotate(keys, 0)
        seen = None if steps == known <= self.span + 1 else self._seen(steps, known, x.device)
        y = F.scaled_dot_product_attention(
            rotate(q, known - steps), turned, values, seen, is_causal=seen is None
        )
        return self.out(join_heads(y)), [keys[:, :, -self.span :], values[:, :, -self.span :], *before]

    def _seen(self, steps: int, known: int, device: torch.device) -> Tensor:
        """Which of the known steps each of the last ``steps`` sees."""
        everything = torch.ones(steps, known, dtype=torch.bool, device=device)
        return everything.tril(known - steps).triu(known - steps - self.span)


def rotate(x: Tensor, first: int) -> Tensor:
    """``x``, ``(..., T, size)``, every step's pairs of numbers turned by angles in proportion to its position."""
    half = x.shape[-1] // 2
    rates = _BASE ** (-torch.arange(half, dtype=x.dtype, device=x.device) / half)
    positions = torch.arange(first, first + x.shape[-2], dtype=x.dtype, device=x.device)
    angles = positions.unsqueeze(-1) * rates
    a, b = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Attention(Stack):
    r"""Apply blocks of causal softmax attention: a state that grows by a key and a value per step.

    .. math::
        q_t, k_t, v_t &= W x_t \\
        y_t &= W_o \sum_{j \le t} \mathrm{softmax}_j\big((R_t q_t) \cdot (R_j k_j) / \sqrt d\big) v_j

    R_t turns pairs of numbers by angles that grow with t, at rates from 1 down to 1/10000, as in most of today's
    models: what is compared is keys and their distance.

    Args:
        num_heads: heads.
        head_size: d, the size of a head's keys and values, even.
        convolution: the steps of a short convolution on q, k and v; 0 is none, as published.
        span: how many steps back a step can see, the oldest that the state keeps.

    Other arguments, inputs and outputs are those of :class:`~.stack.Stack`. The state of a block is its keys and
    values, each of shape ``(B, num_heads, steps so far, head_size)``.

    >>> network = Attention(10, 64, num_heads=2, head_size=16)
    >>> output, (keys, values) = network(torch.randn(5, 2, 10))
    >>> output.shape, keys.shape
    (torch.Size([5, 2, 64]), torch.Size([2, 2, 5, 16]))
    """

    mixer = SoftmaxAttention

    def _fitted(self, shapes: dict[str, tuple[int, ...]], parts: list[Any]) -> dict[str, tuple[int, ...]]:
        """Keys and values may be of any number of steps, but all of as many."""
        growing = [p for p, name in zip(parts, shapes, strict=True) if _grows(name) and isinstance(p, Tensor)]
        steps = {p.shape[2] for p in growing if p.dim() == 4}
        if len(steps) != 1:
            raise ValueError("state: expected keys and values of as many steps in every block")
        return {
            name: (shape[0], *steps, shape[2]) if _grows(name) else shape for name, shape in shapes.items()
        }
