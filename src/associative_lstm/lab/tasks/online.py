"""Online tasks written as text: endless lanes of random sequences, cut into windows."""

import random
import re
import string
from abc import abstractmethod
from typing import Any

import numpy as np

from associative_lstm.lab.tasks.base import Batch, Stream, Task, checked_positions, lanes_of, to_batch

ONLINE_VOCABULARY = string.ascii_lowercase + string.ascii_uppercase + string.digits + "()<>[]{}+-*/=.,:; "
"""The 80 symbols that all online tasks share (as in the paper, whose networks are the same on each of them).

The tasks use 47 of them: lower-case letters, digits and ``( ) < > ] + - / = . ,``. The rest, upper-case
letters, ``[ { } * : ;`` and the space, fill the vocabulary to the paper's size, free for tasks of your own.
"""

_BLOCK = 4096  # symbols written at a time: seeding and scoring a block costs as much as a few hundred symbols


class OnlineTask(Task):
    """A task defined by two small methods: write a random sequence, and mark its scored characters.

    The stream of a lane is sequence after sequence without end. It is cut into windows of ``window`` symbols;
    the target of a symbol is the one after it, also across the border of two windows. For example:

    >>> class Echo(OnlineTask):
    ...     name = "echo"
    ...     description = "say the letter again"
    ...     chance = 4.7  # log2(26)
    ...     def sequence(self, rng):
    ...         letter = self.letter(rng)
    ...         return f"{letter}={letter}."
    ...     def marks(self, text):
    ...         return mark(re.compile("(?<==)[a-z]"), text)
    >>> task = Echo(window=12)
    >>> batch = next(task.stream(batch_size=2, seed=0))
    >>> batch.inputs.shape
    torch.Size([12, 2])
    >>> print(task.decode(batch.inputs[:, 0]))
    l=l.z=z.y=y.
    >>> print("".join(".^"[scored] for scored in batch.mask[:, 0].tolist()))
    .^...^...^..
    """

    episodic = False
    settings = ("window",)
    solved_below = 0.1  # every scored symbol can be predicted
    vocabulary: str = ONLINE_VOCABULARY

    def __init__(self, window: int = 100) -> None:
        if window < 1:
            raise ValueError(f"window must be at least 1 symbol, got {window}")
        self.window = window
        self.input_size = self.output_size = len(self.vocabulary)
        if strange := [character for character in self.vocabulary if ord(character) > 255]:
            raise ValueError(f"vocabulary: {strange[0]!r} is beyond Latin-1, which an online task can use")
        self._code = np.full(256, 255, dtype=np.uint8)
        for k, character in enumerate(self.vocabulary):
            self._code[ord(character)] = k

    @abstractmethod
    def sequence(self, rng: random.Random) -> str:
        """One random sequence, drawn from ``rng`` alone."""

    @abstractmethod
    def marks(self, text: str) -> str:
        """A line as long as ``text`` with a ``^`` under every scored character and spaces elsewhere."""

    @staticmethod
    def letter(rng: random.Random) -> str:
        """A random lower-case letter."""
        return string.ascii_lowercase[int(rng.random() * 26)]

    @staticmethod
    def name_of(rng: random.Random, longest: int) -> str:
        """A random name of 1 to ``longest`` lower-case letters, the length drawn uniformly."""
        uniform, letters = rng.random, string.ascii_lowercase
        return "".join([letters[int(uniform() * 26)] for _ in range(1 + int(uniform() * longest))])

    def encode(self, text: str) -> np.ndarray:
        """The same as uint8, by a table: blocks are long."""
        try:
            codes = self._code[np.frombuffer(text.encode("latin-1"), dtype=np.uint8)]
        except UnicodeEncodeError:
            return super().encode(text)
        return codes if codes.max(initial=0) < 255 else super().encode(text)

    def block(self, key: str) -> tuple[np.ndarray, np.ndarray]:
        """Symbols and marks of whole sequences, at least ``_BLOCK`` symbols; ``key`` decides all of it."""
        rng = random.Random(key)
        pieces, length = [], 0
        while length < _BLOCK:
            pieces.append(self.sequence(rng))
            length += len(pieces[-1])
        text = "".join(pieces)
        marks = self.marks(text)
        if len(marks) != len(text):
            raise ValueError(
                f"task {self.name!r}: marks() returned {len(marks)} characters for {len(text)} of text"
            )
        return self.encode(text), np.frombuffer(marks.encode("ascii"), dtype=np.uint8) == ord("^")

    def stream(
        self, batch_size: int, seed: int, *, split: str = "train", rank: int = 0, world_size: int = 1
    ) -> "OnlineStream":
        return OnlineStream(self, lanes_of(batch_size, rank, world_size), self.stream_key(split, seed))


class _Lane:
    """One endless text. Block n of it depends on the key and n alone, so a position is two integers."""

    def __init__(self, task: OnlineTask, key: str) -> None:
        self.task, self.key = task, key
        self.seek(0, 0)

    def seek(self, block: int, offset: int) -> None:
        self.block, self.offset = block, offset
        self.symbols, self.scored = self._read(block)
        self._lengths = [len(self.symbols)]  # of the blocks that the buffer holds

    def _read(self, block: int) -> tuple[np.ndarray, np.ndarray]:
        return self.task.block(f"{self.key}/{block}")

    def reach(self, length: int) -> None:
        """Make ``length`` symbols from the current position available, and drop blocks that lie behind it."""
        while self.offset >= self._lengths[0] and len(self._lengths) > 1:
            gone = self._lengths.pop(0)
            self.symbols, self.scored = self.symbols[gone:], self.scored[gone:]
            self.block += 1
            self.offset -= gone
        while self.offset + length > len(self.symbols):
            symbols, scored = self._read(self.block + len(self._lengths))
            self.symbols = np.concatenate([self.symbols, symbols])
            self.scored = np.concatenate([self.scored, scored])
            self._lengths.append(len(symbols))


class OnlineStream(Stream):
    """Windows of an :class:`OnlineTask`, one column per lane."""

    def __init__(self, task: OnlineTask, lanes: range, key: str) -> None:
        self._window = task.window
        self._lanes = [_Lane(task, f"{key}/{lane}") for lane in lanes]

    def __next__(self) -> Batch:
        T = self._window
        symbols = np.empty((T + 1, len(self._lanes)), dtype=np.int64)
        mask = np.empty((T, len(self._lanes)), dtype=np.bool_)
        for b, lane in enumerate(self._lanes):
            lane.reach(T + 1)
            start = lane.offset
            symbols[:, b] = lane.symbols[start : start + T + 1]
            mask[:, b] = lane.scored[start + 1 : start + T + 1]
            lane.offset += T
        return to_batch(symbols[:-1], symbols[1:], mask)

    def state(self) -> dict[str, Any]:
        return {
            "block": [lane.block for lane in self._lanes],
            "offset": [lane.offset for lane in self._lanes],
        }

    def load_state(self, state: dict[str, Any]) -> None:
        count = len(self._lanes)
        blocks, offsets = checked_positions(state, "block", count), checked_positions(state, "offset", count)
        if max(offsets) > 64 * (_BLOCK + self._window):
            raise ValueError(f"stream state: offset {max(offsets)} lies far outside its block")
        for lane, block, offset in zip(self._lanes, blocks, offsets, strict=True):
            lane.seek(block, offset)


def mark(pattern: re.Pattern[str], text: str) -> str:
    """A ``^`` under every character that ``pattern`` matches.

    >>> print("-981+1721=047]", mark(re.compile(r"(?<==)[-0-9]+]?"), "-981+1721=047]"), sep="\\n")
    -981+1721=047]
              ^^^^
    """
    line = bytearray(b" " * len(text))
    for match in pattern.finditer(text):
        start, stop = match.span()
        line[start:stop] = b"^" * (stop - start)
    return line.decode("ascii")
