"""Errors meant for the user, and files written so that a crash leaves old content or new, never half of it."""

import contextlib
import os
import re
import tempfile
from pathlib import Path


class RunError(RuntimeError):
    """What went wrong with a run, in one sentence meant for its user."""


class Diverged(RunError):
    """The run cannot go on because its cost or its gradient is not finite."""


class Interrupted(Exception):
    """The run was asked to stop, and has stopped with everything saved: how to go on, in one sentence."""


def memory_lacked(error: BaseException) -> str | None:
    """What to tell the user if ``error`` is that something did not fit in memory; None if it is another.

    >>> import torch
    >>> try:
    ...     torch.empty(10**15)
    ... except RuntimeError as error:
    ...     print(memory_lacked(error))
    too little memory (4,000,000,000,000,000 bytes were asked for): try a smaller batch, window or network
    """
    text = str(error)
    # PyTorch has no exception of its own for this; these are the words of its allocator, the latter on Windows.
    lacked = ("can't allocate memory", "not enough memory")
    if not isinstance(error, MemoryError) and not (
        isinstance(error, RuntimeError) and any(words in text for words in lacked)
    ):
        return None
    asked = re.search(r"tried to allocate (\d+) bytes", text)
    size = f" ({int(asked[1]):,} bytes were asked for)" if asked else ""
    return f"too little memory{size}: try a smaller batch, window or network"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a temporary file beside ``path``, bring it to the disk, and rename it."""
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def sync_folder(folder: Path) -> None:
    """Bring a rename inside ``folder`` to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_temporaries(folder: Path) -> None:
    """Remove what interrupted writes have left behind."""
    for left in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            left.unlink()
