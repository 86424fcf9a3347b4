"""Multi-query associative recall (Arora et al., 2023): keys with their values; then keys, whose values are asked."""

import math
from types import MappingProxyType

import numpy as np
from torch import Tensor

from associative_lstm.lab.tasks.fixed import Drawn, FixedTask, letters, without_replacement

POWER = 0.01
"""A key is asked for again after i slots with probability proportional to i to the power of this less 1."""


class _Pairs(FixedTask):
    """Keys 1 to V/2 - 1 and values V/2 to V - 1, none of them twice in a sequence."""

    embedding = 64
    recurrent_update = False  # what is written is a value, and in the input
    chance = 7.0

    def __init__(self, vocabulary: int, pairs: int, sequences: int) -> None:
        super().__init__(sequences)
        if vocabulary // 2 - 1 < pairs:
            raise ValueError(
                f"vocabulary {vocabulary} has {max(vocabulary // 2 - 1, 0)} keys, too few for {pairs} pairs"
            )
        self.pairs = pairs
        self.vocabulary = letters(vocabulary)
        self.input_size = self.output_size = vocabulary
        self.chance = math.log2(vocabulary - vocabulary // 2)  # any of the values

    def draw_pairs(self, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Keys and values of so many sequences, both ``(count, pairs)``."""
        half = self.input_size // 2
        keys = 1 + without_replacement(rng, count, np.ones(half - 1), self.pairs)
        return keys, half + without_replacement(rng, count, np.ones(self.input_size - half), self.pairs)


class MQAR(_Pairs):
    r"""K keys, each followed by its value; then every key once more, somewhere, and its value is to be said there.

    With three pairs in 16 steps (capitals are values; a dot is any symbol, drawn at random)::

        inputs   a X b Y c Z b . . . c . a . . .
        targets              Y       Z   X
        scored               ^       ^   ^

    The rest of the sequence has slots of two steps. A key is asked for in the first step of one, drawn without
    replacement: the i-th with a probability proportional to :math:`a i^{a-1}`, a = 0.01.

    >>> task = MQAR(vocabulary=256, length=64, pairs=4)
    >>> batch = next(task.stream(batch_size=2, seed=0))
    >>> int(batch.mask.sum()), batch.inputs.shape[1]
    (8, 2)
    """

    name = "mqar"
    description = "keys with their values; then keys, whose values are to be said"
    options = MappingProxyType({"vocabulary": 256, "length": 64, "pairs": 4, "sequences": 10_000})

    def __init__(
        self, vocabulary: int = 256, length: int = 64, pairs: int = 4, sequences: int = 10_000
    ) -> None:
        super().__init__(vocabulary, pairs, sequences)
        if length % 2 or length < 4 * pairs:
            raise ValueError(
                f"length must be even and at least {4 * pairs} for {pairs} pairs, which are asked for in slots "
                f"of two steps after them, got {length}"
            )
        self.length = length

    def draw(self, rng: np.random.Generator, count: int, split: str) -> Drawn:
        keys, values = self.draw_pairs(rng, count)
        context, rows = 2 * self.pairs, np.arange(count)[:, None]
        inputs = rng.integers(0, self.input_size, (count, self.length))
        inputs[:, 0:context:2], inputs[:, 1:context:2] = keys, values
        after = np.arange(1, (self.length - context) // 2 + 1)
        asked = context + 2 * without_replacement(rng, count, POWER * after ** (POWER - 1), self.pairs)
        inputs[rows, asked] = keys
        targets, scored = np.zeros_like(inputs), np.zeros(inputs.shape, dtype=np.bool_)
        targets[rows, asked], scored[rows, asked] = values, True
        return Drawn(inputs, targets, scored)


class StackedMQAR(_Pairs):
    r"""The same with a key and its value in one step, and then every key once more, in any order.

    With three pairs (capitals are values, ``_`` is symbol 0)::

        inputs   a b c b c a
                 X Y Z _ _ _
        targets        Y Z X
        scored         ^ ^ ^

    >>> task = StackedMQAR(pairs=3)
    >>> batch = next(task.stream(batch_size=2, seed=0))
    >>> batch.inputs.shape, batch.targets.shape
    (torch.Size([6, 2, 2]), torch.Size([6, 2]))
    """

    name = "mqar-stacked"
    description = "each key with its value in one step; then keys, whose values are to be said"
    options = MappingProxyType({"vocabulary": 256, "pairs": 4, "sequences": 10_000})
    symbols_per_step = 2

    def __init__(self, vocabulary: int = 256, pairs: int = 4, sequences: int = 10_000) -> None:
        super().__init__(vocabulary, pairs, sequences)

    def draw(self, rng: np.random.Generator, count: int, split: str) -> Drawn:
        keys, values = self.draw_pairs(rng, count)
        order = rng.permuted(np.tile(np.arange(self.pairs), (count, 1)), axis=1)
        blank = np.zeros_like(keys)
        asked, answers = (np.take_along_axis(array, order, 1) for array in (keys, values))
        inputs = np.stack([np.hstack([keys, asked]), np.hstack([values, blank])], -1)
        scored = np.repeat([[False, True]], self.pairs, axis=1).repeat(count, axis=0)
        return Drawn(inputs, np.hstack([blank, answers]), scored)

    def decode(self, symbols: Tensor) -> str:
        """Pairs, set apart, where they are pairs."""
        if symbols.dim() == 1:
            return super().decode(symbols)
        return " ".join(map(super().decode, symbols))
