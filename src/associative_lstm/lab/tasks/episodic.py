"""Streams of whole sequences, for tasks that start from a fresh state every time."""

from abc import abstractmethod

import numpy as np

from associative_lstm.lab.tasks.base import Batch, CountingStream, Task, generator, lanes_of

_CHUNK = 128  # sequences of a lane drawn at a time


class EpisodicTask(Task):
    """A task of two methods: draw the contents of many sequences, and lay a minibatch of them out in time."""

    episodic = per_sequence = True
    unit = "bits per sequence"

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> list[np.ndarray]:
        """The contents of ``count`` independent sequences: one array each, first dimension its length."""

    @abstractmethod
    def lay_out(self, contents: list[np.ndarray]) -> Batch:
        """The batch with these contents, one per lane, padded to the longest with unscored steps."""

    def stream(
        self, batch_size: int, seed: int, *, split: str = "train", rank: int = 0, world_size: int = 1
    ) -> "EpisodicStream":
        return EpisodicStream(self, lanes_of(batch_size, rank, world_size), self.stream_key(split, seed))


class EpisodicStream(CountingStream):
    """Chunk n of a lane depends on the key, the lane and n alone, so the position is one integer."""

    def __init__(self, task: EpisodicTask, lanes: range, key: str) -> None:
        self._task, self._lanes, self._key = task, lanes, key
        self._chunks: list[list[np.ndarray]] = []
        self._chunk = -1

    def __next__(self) -> Batch:
        chunk, row = divmod(self._behind, _CHUNK)
        if chunk != self._chunk:
            self._chunks = [
                self._task.draw(generator(f"{self._key}/{lane}/{chunk}"), _CHUNK) for lane in self._lanes
            ]
            self._chunk = chunk
        self._behind += 1
        return self._task.lay_out([contents[row] for contents in self._chunks])
