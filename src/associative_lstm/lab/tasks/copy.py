"""Episodic copy: repeat random characters after a long time."""

import numpy as np
from torch import Tensor

from associative_lstm.lab.tasks.base import Batch, to_batch
from associative_lstm.lab.tasks.episodic import EpisodicTask

_BLANK, _DELIMITER = 8, 9


class Copy(EpisodicTask):
    r"""Ten characters out of eight, a hundred blanks, a delimiter; then the ten characters are to be said.

    With three characters and five blanks (``_`` is the blank, ``:`` the delimiter)::

        inputs   c a h _ _ _ _ _ : _ _ _
        targets  _ _ _ _ _ _ _ _ _ c a h
        scored   ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^
        answer                     ^ ^ ^

    The cost runs over the whole sequence, blanks included: with the cost on the answer alone networks do not
    leave chance. The cost of the answer is reported beside it; remembering nothing, it is 3 bits a character.

    >>> task = Copy()
    >>> batch = next(task.stream(batch_size=2, seed=0))
    >>> batch.inputs.shape, int(task.answer(batch).sum())
    (torch.Size([121, 2]), 20)
    >>> task.decode(batch.inputs[:12, 0]), task.decode(batch.inputs[-12:, 0])
    ('dghcfafgea__', '_:__________')
    >>> task.decode(batch.targets[-12:, 0])
    '__dghcfafgea'
    """

    name = "copy"
    description = "ten characters, to be repeated after a hundred blanks"
    vocabulary = "abcdefgh_:"
    input_size = output_size = 10
    blanks = 100
    shortest = longest = 10
    chance = 3.0 * 10  # three bits for a character
    solved_below = 3.0  # a tenth of that
    recurrent_update = False  # "W_hu is set to zero", section 5
    learn_initial_state = True  # the parameter counts of the paper's first table

    def draw(self, rng: np.random.Generator, count: int) -> list[np.ndarray]:
        lengths = rng.integers(self.shortest, self.longest + 1, size=count)
        characters = rng.integers(0, _BLANK, size=(count, self.longest))
        return [row[:length] for row, length in zip(characters, lengths, strict=True)]

    def lay_out(self, contents: list[np.ndarray]) -> Batch:
        shape = (2 * max(map(len, contents)) + self.blanks + 1, len(contents))
        inputs = np.full(shape, _BLANK, dtype=np.int64)
        targets = np.full(shape, _BLANK, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.bool_)
        for b, characters in enumerate(contents):
            k = len(characters)
            start = k + self.blanks + 1
            inputs[:k, b] = characters
            inputs[start - 1, b] = _DELIMITER
            targets[start : start + k, b] = characters
            mask[: start + k, b] = True
        return to_batch(inputs, targets, mask)

    def answer(self, batch: Batch) -> Tensor:
        return batch.mask & (batch.targets != _BLANK)


class VariableCopy(Copy):
    r"""The copy task with 1 to 10 characters, drawn uniformly for every sequence.

    The characters are followed by the same hundred blanks, so that the delay between a character and its
    repetition varies with the length; a network of fixed dynamics cannot rely on it. Lanes are padded to the
    longest of their batch with blanks that are not scored.

    >>> batch = next(VariableCopy().stream(batch_size=2, seed=0))
    >>> batch.mask.sum(0).tolist()
    [109, 121]
    """

    name = "copy-variable"
    description = "one to ten characters, to be repeated after a hundred blanks"
    shortest = 1
    chance = 3.0 * 5.5
    solved_below = 1.65
