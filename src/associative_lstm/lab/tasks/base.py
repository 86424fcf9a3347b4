"""What every task is: a definition, and endless seeded streams of named batches."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor


class Batch(NamedTuple):
    r"""A minibatch, time first: what the network sees, what it should say, and where that counts.

    ::

        inputs   s ( u , v ) , q ( u ) v        time runs to the right, one row per lane
        targets  ( u , v ) , q ( u ) v .        the symbol after each input
        mask     . . . . . . . . . . ^ ^        the targets that are scored

    Shapes: ``(T, B)`` int64 symbols and a ``(T, B)`` bool mask; where a task presents several symbols in one step,
    ``inputs`` is ``(T, B, symbols_per_step)``; where its inputs are not symbols, ``inputs`` is ``(T, B, input_size)``
    and ``targets`` ``(T, B, output_size)``, both float.
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor

    def on(self, device: torch.device) -> "Batch":
        """The same on this device."""
        return self if self.mask.device == device else Batch(*(tensor.to(device) for tensor in self))


class Stream(ABC):
    """An endless iterator of batches whose position can be saved and restored exactly."""

    def __iter__(self) -> "Stream":
        return self

    @abstractmethod
    def __next__(self) -> Batch: ...

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The position, in plain numbers: a fresh stream given it continues with the same batches."""

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None: ...


class CountingStream(Stream):
    """A stream whose position is one number: of what its subclass names, so many are behind it."""

    counted: ClassVar[str] = "drawn"
    _behind = 0

    def state(self) -> dict[str, Any]:
        return {self.counted: [self._behind]}

    def load_state(self, state: dict[str, Any]) -> None:
        [self._behind] = checked_positions(state, self.counted, 1)


class Reading(Protocol):
    """Once through something: so many batches."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Batch]: ...


class Task(ABC):
    """A task by name. It holds no position: :meth:`stream` makes as many independent streams as needed."""

    name: ClassVar[str]
    description: ClassVar[str]
    episodic: ClassVar[bool]
    """Episodic: a batch is whole sequences, from a fresh state. Online: a window of endless lanes."""
    per_sequence: ClassVar[bool] = False
    """Whether the cost is that of a whole sequence, or that of a scored symbol."""
    sparse: ClassVar[bool] = False
    """Whether few steps are scored: logits are computed of these alone."""
    from_last_step: ClassVar[bool] = False
    """Whether all is said after the last step, from what the network has made of the whole sequence."""
    symbols_per_step: ClassVar[int] = 1
    embedding: ClassVar[int | None] = None
    """The size of the learned vectors that stand for symbols, if nothing else is asked for; None for one-hot ones."""
    loss: ClassVar[Literal["softmax", "sigmoid"]] = "softmax"
    batch_size: ClassVar[int] = 2
    """The paper's minibatch."""
    test_every: ClassVar[int | None] = None
    """Steps between evaluations on the whole test split, where there is one: see :meth:`read_test`."""
    settings: ClassVar[tuple[str, ...]] = ()
    """What of ``window`` and ``data``, keys of a configuration, the task is made with.

    One with ``data`` reads a file. It takes ``progress``, to be called with what takes long, and ``symbols_only``: to
    do without the file.
    """
    options: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """The other keys of a configuration that the task is made with, each with its default."""
    unit: ClassVar[str] = "bits per scored symbol"
    """What the cost counts."""
    solved_below: ClassVar[float] = 0.0
    """The cost below which the task is solved (of the answer, where there is one); 0 where none says so."""
    recurrent_update: ClassVar[bool] = True
    """Whether the paper's networks have W_hu on this task."""
    learn_initial_state: ClassVar[bool] = False
    """Whether the paper's networks learn their initial state on this task."""
    beginning: ClassVar[str] = ""
    """What a trained network writes on from, where it writes without being given a prompt."""
    vocabulary: str | None
    """Symbol ``k`` is written as ``vocabulary[k]``; None where the inputs are not symbols."""
    input_size: int
    output_size: int
    chance: float
    """Expected cost, in :attr:`unit`, of knowing the form of the task and remembering nothing
    (on tasks with an :meth:`answer`: the cost of the answer)."""

    def stream_key(self, split: str, seed: int) -> str:
        """What :func:`generator` draws a stream by: no two splits, and no two seeds, have anything in common."""
        return f"{self.name}/{split}/{seed}"

    @abstractmethod
    def stream(
        self, batch_size: int, seed: int, *, split: str = "train", rank: int = 0, world_size: int = 1
    ) -> Stream:
        """Batches of ``batch_size`` lanes, each its own stream; ``rank`` of ``world_size`` gets its share.

        Lane k is the same however the lanes are shared out. ``split`` ``"test"`` is never seen in training.
        """

    def answer(self, batch: Batch) -> Tensor | None:
        """The part of the mask that takes memory, where the cost also runs over the rest of the sequence."""
        return None

    def read_test(self, *, lanes: int = 64, rank: int = 0, world_size: int = 1) -> "Reading | None":
        """The whole test split, every symbol of it predicted once; None where the data has no end."""
        return None

    def read_longer(self, *, lanes: int = 64, rank: int = 0, world_size: int = 1) -> "Reading | None":
        """Sequences longer than those of training and test, where the task has them."""
        return None

    def encode(self, text: str) -> np.ndarray:
        """The symbols of ``text``; a character outside the vocabulary is an error that names it."""
        if self.vocabulary is None:
            raise ValueError(f"task {self.name!r} is no text that could be continued")
        codes = {character: k for k, character in enumerate(self.vocabulary)}
        if unknown := [character for character in text if character not in codes]:
            raise ValueError(f"task {self.name!r}: character {unknown[0]!r} is not in its vocabulary")
        return np.array([codes[character] for character in text], np.int64)

    def decode(self, symbols: Tensor) -> str:
        """The text of a one-dimensional tensor of symbols."""
        if self.vocabulary is None:
            raise TypeError(f"task {self.name!r} has no symbols to write as text")
        return "".join(self.vocabulary[k] for k in symbols.tolist())


def lanes_of(batch_size: int, rank: int, world_size: int) -> range:
    """The lanes of one of ``world_size`` processes, each with an equal share of the batch.

    >>> lanes_of(6, rank=1, world_size=2)
    range(3, 6)
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if batch_size % world_size:
        raise ValueError(f"batch_size {batch_size} cannot be shared equally by {world_size} processes")
    share = batch_size // world_size
    return range(rank * share, (rank + 1) * share)


def fresh(task: Task, seed: int, symbols: int, split: str = "test") -> Batch:
    """One lane of so many symbols; of an episodic task one sequence, however long."""
    stream = task.stream(1, seed, split=split)
    batches = [next(stream)]
    while not task.episodic and sum(len(batch.mask) for batch in batches) < symbols:
        batches.append(next(stream))
    most = None if task.episodic else symbols
    return Batch(*(torch.cat(parts)[:most] for parts in zip(*batches, strict=True)))


def checked_positions(state: dict[str, Any], key: str, count: int) -> list[int]:
    """``state[key]`` if it is a list of ``count`` non-negative integers, as a saved position must be."""
    value: Any = state.get(key) if isinstance(state, dict) else None
    whole = isinstance(value, list) and len(value) == count
    if whole and all(type(v) is int and 0 <= v < 2**62 for v in value):
        return value
    raise ValueError(f"stream state: {key!r} must be a list of {count} non-negative integers, got {value!r}")


def to_batch(inputs: Any, targets: Any, mask: Any) -> Batch:
    """A batch from NumPy arrays, sharing their memory."""
    return Batch(torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(mask))


def generator(key: str) -> np.random.Generator:
    """A random generator that depends on the whole text of ``key``."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key.encode()).digest(), "big")))
