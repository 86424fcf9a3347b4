"""The copy task of the Neural Turing Machine: repeat a sequence of random bit vectors."""

import numpy as np

from associative_lstm.lab.tasks.base import Batch, to_batch
from associative_lstm.lab.tasks.episodic import EpisodicTask


class NTMCopy(EpisodicTask):
    r"""One to twenty random vectors of eight bits, a delimiter on a ninth channel; then they are to be said.

    With three vectors (every column is one step, ``x`` eight random bits, ``0`` eight zeros)::

        bits       x1 x2 x3 0  0  0  0
        delimiter  0  0  0  1  0  0  0
        targets    0  0  0  0  x1 x2 x3
        scored                 ^  ^  ^

    Every target bit has its own logit; the cost is the sum of the bits' cross-entropies.

    >>> task = NTMCopy()
    >>> batch = next(task.stream(batch_size=1, seed=0))
    >>> batch.inputs.shape, batch.targets.shape, int(batch.mask.sum())
    (torch.Size([27, 1, 9]), torch.Size([27, 1, 8]), 13)
    """

    name = "ntm-copy"
    description = "1 to 20 bit vectors, to be repeated at once"
    loss = "sigmoid"
    batch_size = 1
    vocabulary = None
    bits = 8
    input_size, output_size = 9, 8
    longest = 20
    chance = 8 * 10.5
    solved_below = 0.1

    def draw(self, rng: np.random.Generator, count: int) -> list[np.ndarray]:
        lengths = rng.integers(1, self.longest + 1, size=count)
        vectors = rng.integers(0, 2, size=(count, self.longest, self.bits)).astype(np.float32)
        return [rows[:length] for rows, length in zip(vectors, lengths, strict=True)]

    def lay_out(self, contents: list[np.ndarray]) -> Batch:
        steps, lanes = 2 * max(map(len, contents)) + 1, len(contents)
        inputs = np.zeros((steps, lanes, self.input_size), dtype=np.float32)
        targets = np.zeros((steps, lanes, self.output_size), dtype=np.float32)
        mask = np.zeros((steps, lanes), dtype=np.bool_)
        for b, vectors in enumerate(contents):
            k = len(vectors)
            inputs[:k, b, : self.bits] = vectors
            inputs[k, b, self.bits] = 1.0
            targets[k + 1 : 2 * k + 1, b] = vectors
            mask[k + 1 : 2 * k + 1, b] = True
        return to_batch(inputs, targets, mask)
