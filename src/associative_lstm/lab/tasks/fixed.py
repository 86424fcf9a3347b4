"""Tasks with so many sequences to train on and others to test on, drawn once, as benchmarks of recall have them."""

import unicodedata
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from associative_lstm.lab.tasks.base import Batch, CountingStream, Task, generator, lanes_of, to_batch

_CHUNK = 500  # sequences drawn at a time


class Drawn(NamedTuple):
    """Sequences as they are drawn, one a row: symbols ``(n, T)`` (or ``(n, T, k)``), targets and what is scored."""

    inputs: np.ndarray
    targets: np.ndarray
    scored: np.ndarray


class FixedTask(Task):
    """A task of one method: draw so many sequences of a split.

    ``sequences`` are drawn once from the seed and trained on again and again, in another order each time. ``test``
    has ``tested`` others, the same whatever the seed; so has ``longer``, where there is such a split. Steps after the
    last one that is scored in a minibatch are left out: they change nothing.
    """

    episodic = sparse = True
    batch_size = 64
    test_every = 1000
    tested: ClassVar[int] = 1000
    splits: ClassVar[tuple[str, ...]] = ("train", "test")

    def __init__(self, sequences: int) -> None:
        if sequences < 1:
            raise ValueError(f"sequences must be at least 1, got {sequences}")
        self.sequences = sequences
        self._sets: dict[str, _Set] = {}

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int, split: str) -> Drawn:
        """So many independent sequences, padded with unscored steps to the longest that the split can have."""

    def stream(
        self, batch_size: int, seed: int, *, split: str = "train", rank: int = 0, world_size: int = 1
    ) -> "FixedStream":
        return FixedStream(self._set(split, seed), lanes_of(batch_size, rank, world_size), batch_size)

    def read_test(self, *, lanes: int = 64, rank: int = 0, world_size: int = 1) -> "FixedReading":
        return FixedReading(self._set("test", 0), lanes, rank, world_size)

    def read_longer(self, *, lanes: int = 64, rank: int = 0, world_size: int = 1) -> "FixedReading | None":
        if "longer" not in self.splits:
            return None
        return FixedReading(self._set("longer", 0), lanes, rank, world_size)

    def _set(self, split: str, seed: int) -> "_Set":
        if split not in self.splits:
            raise ValueError(f"split must be {' or '.join(map(repr, self.splits))}, got {split!r}")
        key = self.stream_key(split, seed)
        if key not in self._sets:
            self._sets[key] = _Set(self, key, split, self.sequences if split == "train" else self.tested)
        return self._sets[key]


class _Set:
    """The sequences of a split: chunk n depends on the key and n alone, and is drawn when it is asked for."""

    def __init__(self, task: FixedTask, key: str, split: str, count: int) -> None:
        self.key, self.count = key, count
        self._task, self._split = task, split
        self._arrays: Drawn | None = None
        self._known = np.zeros(-(-count // _CHUNK), dtype=np.bool_)

    def take(self, rows: np.ndarray, real: np.ndarray | None = None) -> Batch:
        """These sequences side by side; of those that are not ``real``, nothing is scored."""
        for chunk in np.unique(rows // _CHUNK).tolist():
            if not self._known[chunk]:
                self._draw(chunk)
        assert self._arrays is not None
        inputs, targets, scored = (np.moveaxis(array[rows], 0, 1) for array in self._arrays)
        if real is not None:
            scored = scored & real
        steps = 1 + int(np.flatnonzero(scored.any(1)).max(initial=0))
        parts = inputs[:steps].astype(np.int64), targets[:steps].astype(np.int64), scored[:steps]
        return to_batch(*map(np.ascontiguousarray, parts))

    def _draw(self, chunk: int) -> None:
        start = chunk * _CHUNK
        drawn = self._task.draw(generator(f"{self.key}/{chunk}"), _CHUNK, self._split)
        if self._arrays is None:
            kinds = (np.int32, np.int32, np.bool_)
            empty = (np.empty((self.count, *a.shape[1:]), k) for a, k in zip(drawn, kinds, strict=True))
            self._arrays = Drawn(*empty)
        for whole, part in zip(self._arrays, drawn, strict=True):
            whole[start : start + _CHUNK] = part[: self.count - start]
        self._known[chunk] = True


class FixedStream(CountingStream):
    """Round and round through a set, in an order of its own each time; the position is the minibatches drawn."""

    def __init__(self, source: _Set, lanes: range, batch_size: int) -> None:
        self._set, self._lanes, self._batch_size = source, lanes, batch_size
        self._orders: dict[int, np.ndarray] = {}

    def __next__(self) -> Batch:
        places = [divmod(self._behind * self._batch_size + lane, self._set.count) for lane in self._lanes]
        rounds = {number for number, _ in places}
        known = {number: order for number, order in self._orders.items() if number in rounds}
        self._orders = known | {number: self._order(number) for number in rounds - known.keys()}
        self._behind += 1
        return self._set.take(np.array([self._orders[number][place] for number, place in places]))

    def _order(self, number: int) -> np.ndarray:
        return generator(f"{self._set.key}/order/{number}").permutation(self._set.count)


class FixedReading:
    """Once through a set, ``lanes`` sequences at a time, of which each of several processes has its share.

    The last batch is filled up with sequences of which nothing is scored.
    """

    def __init__(self, source: _Set, lanes: int, rank: int = 0, world_size: int = 1) -> None:
        share = -(-min(lanes, source.count) // world_size)
        self._set, self._share, self._step = source, share, share * world_size
        self._offset = rank * share

    def __len__(self) -> int:
        return -(-self._set.count // self._step)

    def __iter__(self) -> Iterator[Batch]:
        for start in range(self._offset, self._offset + self._set.count, self._step):
            rows = start + np.arange(self._share)
            yield self._set.take(np.minimum(rows, self._set.count - 1), rows < self._set.count)


def without_replacement(
    rng: np.random.Generator, rows: int, weights: Sequence[float] | np.ndarray, count: int
) -> np.ndarray:
    """``count`` different numbers below ``len(weights)`` in each of so many rows, each drawn with these weights.

    The first ``count`` arrivals of a race in which each runs at the speed of its weight.

    >>> without_replacement(np.random.default_rng(0), 3, np.ones(5), 2).tolist()
    [[3, 2], [1, 2], [1, 3]]
    """
    found = np.empty((rows, count), dtype=np.int64)
    some = max(1, 2**21 // len(weights))  # rows at a time, for the memory that it takes
    for start in range(0, rows, some):
        times = rng.standard_exponential((min(some, rows - start), len(weights))) / np.asarray(weights)
        first = np.argpartition(times, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(times, first, 1), axis=1)
        found[start : start + some] = np.take_along_axis(first, order, 1)
    return found


def letters(count: int) -> str:
    """So many different characters that can be printed, from left to right, each in one place.

    >>> letters(16), len(set(letters(8192)))
    ('0123456789ABCDEF', 8192)
    """
    printable = (
        c
        for c in map(chr, range(0x30, 0xD000))
        if c.isalnum() and unicodedata.bidirectional(c) in ("L", "EN") and not unicodedata.combining(c)
    )
    return "".join(c for c, _ in zip(printable, range(count), strict=False))
