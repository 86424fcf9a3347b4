"""What a prediction costs, in bits."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from associative_lstm.lab.tasks.base import Batch, Task


class Cost(NamedTuple):
    """Bits of a batch and what they are counted per; ``bits`` carries the gradient."""

    bits: Tensor
    """Bits of all that is scored in each lane, ``(B,)``."""
    units: Tensor
    """Sequences (ones), or scored symbols, in each lane, ``(B,)``: see :attr:`Task.per_sequence`."""
    answer: Tensor | None
    """Bits of the answer in each lane, where the task has one beside the rest."""


class Sums(NamedTuple):
    """A :class:`Cost` summed over the lanes; ``bits`` carries the gradient."""

    bits: Tensor
    units: float
    answer: float


def step_bits(task: Task, logits: Tensor, targets: Tensor) -> Tensor:
    r"""Bits of every step, ``(T, B)``: :math:`-\log_2 p(\mathrm{target})`.

    >>> import torch
    >>> from associative_lstm.lab.tasks import Copy
    >>> step_bits(Copy(), torch.zeros(1, 1, 8), torch.tensor([[5]]))
    tensor([[3.]])
    """
    return _nats(task, logits, targets).view(targets.shape[:2]) / math.log(2)


def of_every_step(values: Tensor, mask: Tensor) -> Tensor:
    """``(T, B)`` values from those of the scored steps alone, in a row, with zeros elsewhere.

    >>> of_every_step(torch.tensor([5, 7]), torch.tensor([[True, False], [False, True]]))
    tensor([[5, 0],
            [0, 7]])
    """
    return values.new_zeros(mask.shape).masked_scatter(mask, values)


def _nats(task: Task, logits: Tensor, targets: Tensor) -> Tensor:
    """The same in nats, of all steps and lanes in a row, ``(T * B,)``."""
    if task.loss == "sigmoid":
        return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(-1).flatten()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")


def cost_of(task: Task, logits: Tensor, batch: Batch) -> Cost:
    """The cost of a batch, lane by lane; ``logits`` are of every step, ``(T, B, output_size)``, or of the scored."""
    if logits.dim() == 2:
        scored = step_bits(task, logits[:, None], batch.targets[batch.mask][:, None])
        bits = of_every_step(scored, batch.mask)
    else:
        bits = step_bits(task, logits, batch.targets)
    answer = task.answer(batch)
    units = batch.mask.any(0) if task.per_sequence else batch.mask.sum(0)
    return Cost(
        (bits * batch.mask).sum(0),
        units.to(bits.dtype),
        None if answer is None else (bits.detach() * answer).sum(0),
    )


def cost_in_all(task: Task, logits: Tensor, batch: Batch) -> Sums:
    """The cost of a batch, summed over its lanes, for training: :func:`cost_of` in fewer operations."""
    if logits.dim() == 2:
        bits = step_bits(task, logits[:, None], batch.targets[batch.mask][:, None]).sum()
        return Sums(bits, float(batch.mask.sum()), 0.0)
    nats = _nats(task, logits, batch.targets)
    answer = task.answer(batch)
    units = batch.mask.any(0) if task.per_sequence else batch.mask
    return Sums(
        _bits_where(nats, batch.mask),
        float(units.sum()),
        0.0 if answer is None else float(_bits_where(nats.detach(), answer)),
    )


def _bits_where(nats: Tensor, mask: Tensor) -> Tensor:
    return torch.dot(nats, mask.flatten().to(nats.dtype).div_(math.log(2)))
