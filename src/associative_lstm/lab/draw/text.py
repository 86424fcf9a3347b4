"""Sequences as coloured text: what is scored, and what a network says about it."""

from collections.abc import Iterator

import torch
from rich.text import Text
from torch import Tensor

from associative_lstm.lab.tasks.base import Batch, Task

_WIDTH = 96
_VISIBLE = str.maketrans({"\n": "↵", "\r": "↵", "\t": "→"})


def _characters(task: Task, symbols: Tensor) -> str:
    """One visible character per symbol."""
    text = task.decode(symbols)
    if len(text) != len(symbols):  # bytes of a longer code
        text = "".join(chr(k) if 32 <= k < 127 or k == 10 else "·" for k in symbols.tolist())
    return text.translate(_VISIBLE)


def _text_and_mask(task: Task, batch: Batch) -> tuple[str, list[bool]]:
    """The targets, after the first symbol of an online stream (which is nobody's target), and what is scored."""
    answer = task.answer(batch)
    mask = (batch.mask if answer is None else answer)[:, 0].tolist()
    targets = batch.targets[:, 0]
    if task.episodic:
        return _characters(task, targets), mask
    return _characters(task, torch.cat([batch.inputs[:1, 0], targets])), [False, *mask]


def scored_lines(task: Task, batch: Batch, logits: Tensor | None = None) -> Iterator[Text]:
    """The text of the first lane in lines, scored symbols in colour and marked from below.

    With the ``logits`` of a network, they are red where it is wrong, and below is what it said.
    """
    text, mask = _text_and_mask(task, batch)
    said = text if logits is None else _characters(task, logits[:, 0].argmax(-1)).rjust(len(text))
    for start in range(0, len(text), _WIDTH):
        line, below = Text(), Text()
        for k in range(start, min(start + _WIDTH, len(text))):
            right = said[k] == text[k]
            colour, good = "green" if right else "red", "^" if logits is None else "✓"
            line.append(text[k], style=f"bold {colour}" if mask[k] else "dim")
            below.append((good if right else said[k]) if mask[k] else " ", style=colour)
        below.rstrip()
        yield line
        yield below


def bit_rows(task: Task, batch: Batch, logits: Tensor) -> Iterator[Text]:
    """Scored bit vectors of the first lane as columns, one row per bit; a bit that the network has wrong is red."""
    steps = batch.mask[:, 0].nonzero().flatten().tolist()
    for bit in range(task.output_size):
        line = Text()
        for t in steps:
            target, said = bool(batch.targets[t, 0, bit] > 0.5), bool(logits[t, 0, bit] > 0)
            line.append("█" if target else "·", style="green" if target == said else "bold red")
            line.append(" " if target == said else "✗", style="red")
        yield line
