"""Wikipedia: predict the next byte of the English Wikipedia (enwik8), or of any other file."""

import os
from typing import Any

import numpy as np
from torch import Tensor

from associative_lstm.lab.tasks.base import Batch, Stream, Task, checked_positions, lanes_of, to_batch
from associative_lstm.lab.tasks.corpus import Progress, find_corpus


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
    batch_size = 10
    vocabulary = "".join(map(chr, range(256)))
    input_size = output_size = 256
    chance = 8.0

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        window: int = 100,
        progress: Progress = lambda message: None,
    ) -> None:
        if window < 1:
            raise ValueError(f"window must be at least 1 symbol, got {window}")
        self.window = window
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

    def decode(self, symbols: Tensor) -> str:
        return bytes(symbols.tolist()).decode("utf-8", "replace")


class ByteStream(Stream):
    """Windows of mapped bytes, one column per lane; the position is the number of symbols read."""

    def __init__(self, source: np.ndarray, lanes: range, total: int, window: int) -> None:
        self._bytes, self._window, self._read = source, window, 0
        self._starts = np.array([len(source) * lane // total for lane in lanes])
        self._mask = np.ones((window, len(lanes)), dtype=np.bool_)

    def __next__(self) -> Batch:
        T, n = self._window, len(self._bytes)
        symbols = np.empty((T + 1, len(self._starts)), dtype=np.int64)
        for b, start in enumerate(((self._starts + self._read) % n).tolist()):
            if start + T + 1 <= n:
                symbols[:, b] = self._bytes[start : start + T + 1]
            else:
                symbols[:, b] = self._bytes[np.arange(start, start + T + 1) % n]
        self._read += T
        return to_batch(symbols[:-1], symbols[1:], self._mask)

    def state(self) -> dict[str, Any]:
        return {"read": [self._read]}

    def load_state(self, state: dict[str, Any]) -> None:
        [self._read] = checked_positions(state, "read", 1)
