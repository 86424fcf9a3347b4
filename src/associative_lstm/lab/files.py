"""Errors meant for the user, and files written so that a crash leaves old content or new, never half of it."""

import contextlib
import os
import re
import signal
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO


class RunError(RuntimeError):
    """What went wrong with a run, in one sentence meant for its user."""


class Diverged(RunError):
    """The run cannot go on because its cost or its gradient is not finite."""


class Interrupted(Exception):
    """The run was asked to stop, and has stopped with everything saved: how to go on, in one sentence."""

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.code = 128 + number
        """The exit code by which shells know that a program was stopped by the signal of that number."""


@contextlib.contextmanager
def as_run_error(what: str) -> Iterator[None]:
    """What the system refuses in here is a RunError: ``what`` failed, and why."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{what}: {error.strerror or error}") from error


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
    """Write a temporary file beside ``path``, bring it to the disk, and rename it. A link is not replaced."""
    temporary: str | None = None
    if path.is_symlink():
        raise RunError(f"{path} is a link, which is not written through: put a file there, or nothing")
    if path.exists() and not path.is_file():  # a rename would put a file in the place of a device
        raise RunError(f"{path} could not be written: it is not a file")
    try:
        with as_run_error(f"{path} could not be written"):
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
            sync_folder(path.parent)
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def sync_folder(folder: Path) -> None:
    """Bring a rename inside ``folder`` to the disk; Windows has no way to ask for it."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_temporaries(folder: Path, names: str) -> None:
    """Remove what interrupted writes have left behind of files whose ``names`` match this regular expression."""
    temporary = re.compile(rf"\.(?:{names})\.[a-z0-9_]{{8}}\.tmp")
    for left in folder.glob(".*.tmp"):
        if temporary.fullmatch(left.name) and left.is_file() and not left.is_symlink():
            with contextlib.suppress(OSError):
                left.unlink()


def refuse_foreign(path: Path, *, replaced: bool = False) -> None:
    """Refuse what is at ``path`` if it is no file, or one that has another name, where writing would be felt too.

    A file that is only ever ``replaced`` may have another name: that one keeps the content.
    """
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise RunError(f"{path} is a link, which is not written through: put a copy of the file there")
    if not stat.S_ISREG(status.st_mode):
        raise RunError(f"{path} is not a file")
    if status.st_nlink > 1 and not replaced:
        raise RunError(f"{path} is a hard link, which is not written through: put a copy of the file there")


def open_own(path: Path) -> IO[bytes]:
    """Open a file to append to it; it is made if need be. What :func:`refuse_foreign` refuses is not opened."""
    if os.path.lexists(path):
        refuse_foreign(path)
    no_link = getattr(os, "O_NOFOLLOW", 0)  # Windows has none
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags | no_link, 0o644))
