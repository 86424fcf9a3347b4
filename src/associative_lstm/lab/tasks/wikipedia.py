"""Wikipedia: predict the next byte of the English Wikipedia (enwik8), or of any other file."""

import os
from collections.abc import Iterator

import numpy as np
from torch import Tensor

from associative_lstm.lab.tasks.base import Batch, CountingStream, Task, lanes_of, to_batch
from associative_lstm.lab.tasks.enwik8 import Progress, find_corpus


class Wikipedia(Task):
    r"""The first 96% of a file to train on and the last 4% to test: for enwik8, 96 and 4 million bytes.

    A symbol is a byte, and there are 256 of them (enwik8 has 205 different ones; 256 read any file). Every
    symbol is scored. The file is memory-mapped. Lane b of B starts at byte ``b * n // B`` of the split's n
    and reads on, round and round, in windows of 100::

        inputs   <page>\n    <title>Anarchi
        targets  page>\n    <title>Anarchis
        scored   ^^^^^^^^^^^^^^^^^^^^^^^^^^

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "text"
    >>> _ = file.write_bytes(b"the cat sat on the mat. " * 500)
    >>> task = Wikipedia(file, window=12)
    >>> batch = next(task.stream(batch_size=2, seed=0))
    >>> task.decode(batch.inputs[:, 0]), task.decode(batch.targets[:, 0])
    ('the cat sat ', 'he cat sat o')
    >>> task.length("train"), task.length("test")
    (11520, 480)
    """

    name = "wikipedia"
    description = "the next byte of enwik8, or of a file of your own"
    episodic = False
    settings = ("data", "window")
    unit = "bits per character"
    beginning = "\n"
    batch_size = 10
    test_every = 16_000  # six times in a pass over enwik8: about a tenth of the time of training
    vocabulary = "".join(map(chr, range(256)))
    input_size = output_size = 256
    chance = 8.0

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        window: int = 100,
        progress: Progress = lambda message: None,
        *,
        symbols_only: bool = False,
    ) -> None:
        """``symbols_only``: to decode what a trained network writes, where the text need not be."""
        if window < 1:
            raise ValueError(f"window must be at least 1 symbol, got {window}")
        self.window = window
        if symbols_only:
            return
        self.path = find_corpus(data, progress)
        size = self.path.stat().st_size
        if size < 50:
            raise ValueError(f"data: {str(self.path)!r} has {size} bytes, too few to train and test on")
        self._bytes = np.memmap(self.path, dtype=np.uint8, mode="r")
        self._border = size * 24 // 25

    def split(self, name: str) -> np.ndarray:
        """The bytes of ``"train"`` or ``"test"``, mapped, not read."""
        if name not in ("train", "test"):
            raise ValueError(f"split must be 'train' or 'test', got {name!r}")
        return self._bytes[: self._border] if name == "train" else self._bytes[self._border :]

    def length(self, split: str) -> int:
        """How many bytes the split has."""
        return len(self.split(split))

    def stream(
        self, batch_size: int, seed: int, *, split: str = "train", rank: int = 0, world_size: int = 1
    ) -> "ByteStream":
        lanes = lanes_of(batch_size, rank, world_size)
        return ByteStream(self.split(split), lanes, batch_size, self.window)

    def read_test(self, *, lanes: int = 64, rank: int = 0, world_size: int = 1) -> "ReadThrough":
        """The whole test split, every byte of it predicted once; ``rank`` of ``world_size`` gets its lanes."""
        return ReadThrough(self._bytes, self._border, self.window, lanes, rank, world_size)

    def encode(self, text: str) -> np.ndarray:
        """The bytes of ``text``."""
        return np.frombuffer(text.encode(), dtype=np.uint8)

    def decode(self, symbols: Tensor) -> str:
        return bytes(symbols.tolist()).decode("utf-8", "replace")


class ByteStream(CountingStream):
    """Windows of mapped bytes, one column per lane; the position is the number of symbols read."""

    counted = "read"

    def __init__(self, source: np.ndarray, lanes: range, total: int, window: int) -> None:
        self._bytes, self._window = source, window
        self._starts = np.array([len(source) * lane // total for lane in lanes])
        self._mask = np.ones((window, len(lanes)), dtype=np.bool_)

    def __next__(self) -> Batch:
        T, n = self._window, len(self._bytes)
        symbols = np.empty((T + 1, len(self._starts)), dtype=np.int64)
        for b, start in enumerate(((self._starts + self._behind) % n).tolist()):
            if start + T + 1 <= n:
                symbols[:, b] = self._bytes[start : start + T + 1]
            else:
                symbols[:, b] = self._bytes[np.arange(start, start + T + 1) % n]
        self._behind += T
        return to_batch(symbols[:-1], symbols[1:], self._mask)


class ReadThrough:
    r"""Once through the test split in windows, side by side in lanes, the state to be carried from window to window.

    Of the n bytes after the border, lane k of L predicts those from ``k * n // L`` to ``(k + 1) * n // L``. It begins
    ``warm_up`` bytes earlier, in what the lane before it predicts (the first lane: in the training text), and these
    are not scored: a lane that began at its part's first byte would predict it from nothing, and one that reads the
    whole split from end to end, L times as slow, has seen all that came before. What is lost is what a network
    remembers for longer than ``warm_up`` bytes: with an Associative LSTM of 3 x 256 after 1,500 minibatches, 32 lanes
    over 200,000 bytes cost 0.000003 bits per byte more than one lane (without a warm-up 0.002), and lanes of enwik8's
    whole test split are ten times as long. Every batch is a window; the last one is shorter::

        lane 0   ...training text|first part of the test.|
        lane 1        ...part of the test|.and the second|
        scored   . . . . . . . . ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^

    >>> text = np.frombuffer(b"to train on, to test on", dtype=np.uint8)
    >>> batches = list(ReadThrough(text, border=13, window=6, lanes=2, warm_up=4))
    >>> lanes = [[bytes(b.targets[:, k][b.mask[:, k]].tolist()) for b in batches] for k in range(2)]
    >>> lanes  # and before that, not scored, "on, " and "o te"
    [[b'to', b' te'], [b'st', b' on']]
    """

    def __init__(
        self,
        source: np.ndarray,
        border: int,
        window: int,
        lanes: int,
        rank: int = 0,
        world_size: int = 1,
        warm_up: int = 500,
    ) -> None:
        n = len(source) - border
        lanes = max(min(lanes, n), world_size)
        mine = range(rank * lanes // world_size, (rank + 1) * lanes // world_size)
        warm_up = min(warm_up, border - 1)
        self._bytes, self._window = source, window
        self._first = np.array([border + k * n // lanes for k in mine])
        self._end = np.array([border + (k + 1) * n // lanes for k in mine])
        self._start = self._first - warm_up  # of the targets; the input is the byte before
        self._length = warm_up + -(-n // lanes)  # of the longest lane of all processes, which go in step

    def __len__(self) -> int:
        """How many batches the whole pass has, the same in every process."""
        return -(-self._length // self._window)

    def __iter__(self) -> Iterator[Batch]:
        for at in range(0, self._length, self._window):
            T = min(self._window, self._length - at)
            places = self._start + at + np.arange(T)[:, None]  # (T, B)
            scored = (self._first <= places) & (places < self._end)
            places = np.minimum(places, len(self._bytes) - 1)  # lanes may differ by one byte
            inputs, targets = (self._bytes[p].astype(np.int64) for p in (places - 1, places))
            yield to_batch(inputs, targets, scored)
