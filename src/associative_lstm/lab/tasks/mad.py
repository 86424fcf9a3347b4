"""Five tasks of Mechanistic Architecture Design (Poli et al., 2024): three of recall, copying and compression.

On the tasks of recall every next symbol is trained, as in the publication, and the answers alone are tested.
"""

import math
import random
from types import MappingProxyType

import numpy as np

from associative_lstm.lab.tasks.fixed import Drawn, FixedTask, letters


class _Mad(FixedTask):
    tested = 1280
    embedding = 64
    recurrent_update = False  # what is written is in the input
    special = 0
    """How many symbols, the last, have a meaning of their own."""

    def __init__(self, vocabulary: int, length: int, sequences: int) -> None:
        super().__init__(sequences)
        if vocabulary < self.special + 2:
            raise ValueError(
                f"vocabulary must be at least {self.special + 2} for task {self.name!r}, got {vocabulary}"
            )
        self.vocabulary = letters(vocabulary)
        self.input_size = self.output_size = vocabulary
        self.length = length


class InContextRecall(_Mad):
    r"""Keys and values in turn; a key has the same value as the last time, which is to be said from then on.

    With keys ``a b c`` and values ``X Y Z``::

        inputs   a Y c Y a Y b X c
        targets          Y       Y
        scored           ^       ^

    Half of the symbols are keys, half values. The last key has always come before.

    >>> task = InContextRecall()
    >>> next(task.stream(batch_size=2, seed=0, split="test")).inputs.shape
    torch.Size([127, 2])
    """

    name = "mad-recall"
    description = "keys and values in turn: a key that has come before, and its value is to be said"
    options = MappingProxyType({"vocabulary": 16, "length": 128, "sequences": 12_800})
    chance = 3.0
    noise = 0.0
    """The share of pairs that are noise."""

    def __init__(self, vocabulary: int = 16, length: int = 128, sequences: int = 12_800) -> None:
        super().__init__(vocabulary, length, sequences)
        if length % 2 or length < 4:
            raise ValueError(f"length must be even and at least 4 for task {self.name!r}, got {length}")
        self.chance = math.log2(self.symbols - self.symbols // 2)

    @property
    def symbols(self) -> int:
        """Keys and values together; what is above is noise."""
        return self.input_size - self.special

    def draw(self, rng: np.random.Generator, count: int, split: str) -> Drawn:
        pairs, keys = self.length // 2, self.symbols // 2
        key = rng.integers(0, keys, (count, pairs))
        noise = rng.random((count, pairs)) < self.noise
        noise[np.arange(count), rng.integers(0, pairs - 1, count)] = False  # one at least is a pair
        noise[:, -1] = False
        before = np.where(noise, -1, key)[:, :-1]
        come = (before[:, :, None] == np.arange(keys)).any(1)
        key[:, -1] = np.where(come, rng.random((count, keys)), -1.0).argmax(1)  # any of those that have come
        values = rng.integers(keys, self.symbols, (count, keys))
        inputs = np.stack([key, np.take_along_axis(values, key, 1)], -1)
        if noise.any():
            inputs[noise] = rng.integers(self.symbols, self.input_size, inputs[noise].shape)
        known = np.where(noise, -1, key)
        again = np.array([(known[:, :t] == key[:, t, None]).any(1) for t in range(pairs)]).T & ~noise
        scored = np.stack([again, np.zeros_like(again)], -1).reshape(
            count, -1
        )  # where the value is to be said
        symbols = inputs.reshape(count, -1)
        if split == "train":
            scored = np.ones_like(scored)
        return Drawn(symbols[:, :-1], symbols[:, 1:], scored[:, :-1])


class NoisyRecall(InContextRecall):
    r"""The same with noise: a fifth of the pairs are two symbols of the 16 that are neither keys nor values.

    >>> task = NoisyRecall()
    >>> task.symbols, task.input_size
    (16, 32)
    """

    name = "mad-noisy"
    description = "keys and values in turn, and noise in between"
    options = MappingProxyType({"vocabulary": 32, "length": 128, "noise": 0.2, "sequences": 12_800})
    special = 16

    def __init__(
        self, vocabulary: int = 32, length: int = 128, noise: float = 0.2, sequences: int = 12_800
    ) -> None:
        if not 0 <= noise < 1:
            raise ValueError(f"noise must be at least 0 and below 1, got {noise}")
        super().__init__(vocabulary, length, sequences)
        self.noise = noise


class FuzzyRecall(_Mad):
    r"""The same with keys and values of one to three symbols each, none of them twice in one.

    With keys of ``a b c`` and values of ``X Y Z``, and ``_`` to fill up the beginning::

        inputs   _ _ b a Y a X Z c Y Z X b a
        targets                            Y
        scored                             ^

    In tests all keys have three symbols. The last key has always come before.

    >>> task = FuzzyRecall()
    >>> next(task.stream(batch_size=2, seed=0, split="test")).inputs.shape
    torch.Size([128, 2])
    """

    name = "mad-fuzzy"
    description = (
        "keys and values of one to three symbols: one that has come before, and its value is to be said"
    )
    options = MappingProxyType({"vocabulary": 16, "length": 128, "sequences": 12_800})
    special = 1
    chance = 3.0
    longest_key = longest_value = 3

    def __init__(self, vocabulary: int = 16, length: int = 128, sequences: int = 12_800) -> None:
        super().__init__(vocabulary, length, sequences)
        keys = (vocabulary - self.special) // 2
        if keys < self.longest_key:
            raise ValueError(f"vocabulary must be at least 7 for task {self.name!r}, got {vocabulary}")
        least = 4 * (self.longest_key + self.longest_value)
        if length < least:
            raise ValueError(f"length must be at least {least} for task {self.name!r}, got {length}")
        self.chance = math.log2(vocabulary - self.special - keys)
        self._keys, self._values = range(keys), range(keys, vocabulary - self.special)

    def draw(self, rng: np.random.Generator, count: int, split: str) -> Drawn:
        width = self.length + 1
        inputs = np.full((count, width), self.input_size - 1)
        scored = np.zeros((count, width), dtype=np.bool_)
        source = random.Random(int(rng.integers(2**62)))  # faster where few numbers are drawn at a time
        for row in range(count):
            symbols, marks = self._sequence(source, split == "train")
            inputs[row, width - len(symbols) :] = symbols
            scored[row, width - len(symbols) :] = marks
        if split == "train":
            scored = np.ones_like(scored)
        return Drawn(inputs[:, :-1], inputs[:, 1:], scored[:, 1:])

    def _sequence(self, source: random.Random, training: bool) -> tuple[list[int], list[bool]]:
        """The symbols of a sequence, and which of them belong to the value of a key that has come before."""
        shortest = 1 if training else self.longest_key

        def any_key() -> tuple[int, ...]:
            return tuple(source.sample(self._keys, source.randint(shortest, self.longest_key)))

        def any_value() -> tuple[int, ...]:
            return tuple(source.sample(self._values, source.randint(1, self.longest_value)))

        asked, answer = any_key(), any_value()
        probe = len(asked) + len(answer)
        longest = self.longest_key + self.longest_value
        end = self.length - probe - longest
        place = source.randint(0, end - longest)  # from there on the last key is to come for the first time
        known = {asked: answer}
        come: set[tuple[int, ...]] = set()
        symbols: list[int] = []
        marks: list[bool] = []

        def add(key: tuple[int, ...]) -> None:
            if key not in known:
                known[key] = any_value()
            symbols.extend(key + known[key])
            marks.extend([False] * len(key) + [key in come] * len(known[key]))
            come.add(key)

        while len(symbols) < end:
            add(asked if asked not in come and len(symbols) >= place else any_key())
        add(asked)
        return symbols, marks


class SelectiveCopying(_Mad):
    r"""Symbols with blanks between them, which are to be said in their order when they are asked for.

    With three symbols in 12 steps (``_`` is the blank, ``:`` asks)::

        inputs   _ a _ _ b c : _ _ _
        targets                a b c
        scored                 ^ ^ ^

    >>> task = SelectiveCopying()
    >>> batch = next(task.stream(batch_size=2, seed=0))
    >>> batch.inputs.shape, int(batch.mask.sum())
    (torch.Size([256, 2]), 32)
    """

    name = "mad-copying"
    description = "symbols with blanks between them, to be repeated in their order"
    options = MappingProxyType({"vocabulary": 16, "length": 256, "copied": 16, "sequences": 12_800})
    special = 2
    chance = math.log2(14)

    def __init__(
        self, vocabulary: int = 16, length: int = 256, copied: int = 16, sequences: int = 12_800
    ) -> None:
        super().__init__(vocabulary, length, sequences)
        if length < 2 * copied + 2:
            raise ValueError(f"length must be at least {2 * copied + 2} to copy {copied}, got {length}")
        self.copied = copied
        self.chance = math.log2(vocabulary - 2)

    def draw(self, rng: np.random.Generator, count: int, split: str) -> Drawn:
        blank, ask, copied = self.input_size - 2, self.input_size - 1, self.copied
        symbols = rng.integers(0, blank, (count, copied))
        read = self.length - copied - 1  # steps before they are asked for, of which the last is a symbol
        # A blank is inserted before any of the symbols, one as likely as the other.
        before = np.sort(rng.integers(0, copied, (count, read - copied)), axis=1)
        blanks = np.array([np.bincount(row, minlength=copied) for row in before])
        places = np.cumsum(blanks + 1, axis=1) - 1
        inputs = np.full((count, self.length), blank)
        np.put_along_axis(inputs, places, symbols, axis=1)
        inputs[:, read] = ask
        targets, scored = np.zeros_like(inputs), np.zeros(inputs.shape, dtype=np.bool_)
        targets[:, read + 1 :], scored[:, read + 1 :] = symbols, True
        return Drawn(inputs, targets, scored)


class Compression(_Mad):
    r"""Random symbols and a last one that means the end; from what the network has made of them all are to be said.

    With five symbols::

        inputs   a c a b :
        targets  a c a b :        all of them after the last step, from its h alone
        scored   ^ ^ ^ ^ ^

    >>> task = Compression()
    >>> batch = next(task.stream(batch_size=2, seed=0))
    >>> bool((batch.inputs == batch.targets).all()), task.from_last_step
    (True, True)
    """

    name = "mad-compression"
    description = "random symbols, all to be said from what is left of them at the end"
    options = MappingProxyType({"vocabulary": 16, "length": 32, "sequences": 12_800})
    from_last_step = True
    special = 1
    chance = math.log2(15)

    def __init__(self, vocabulary: int = 16, length: int = 32, sequences: int = 12_800) -> None:
        super().__init__(vocabulary, length, sequences)
        self.chance = math.log2(vocabulary - 1)

    def draw(self, rng: np.random.Generator, count: int, split: str) -> Drawn:
        symbols = rng.integers(0, self.input_size - 1, (count, self.length))
        symbols[:, -1] = self.input_size - 1
        return Drawn(symbols, symbols, np.ones(symbols.shape, dtype=np.bool_))
