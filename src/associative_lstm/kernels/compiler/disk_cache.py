"""Compiled kernels on disk: what is damaged there is compiled again, and what cannot be kept is used without.

They are where Numba keeps its own: in ``NUMBA_CACHE_DIR``, beside the package, or in the user's cache folder. Where
none of these can be written, as in a container that runs as nobody, a folder for temporary files serves.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    NullCache,
)
from numba.core.serialize import dumps


def _sources() -> bytes:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


_SOURCES = _sources()
_told: set[str] = set()


def kept() -> bool:
    """Whether, as far as is known, what is compiled in this process will be there for the next."""
    return not _told


def _tell(error: Exception) -> None:
    if kept():
        words = str(error).splitlines()[0]
        _told.add(words)
        _say(f"cannot be kept on disk ({words}), so that every start compiles them again")


def _say(what: str) -> None:
    with contextlib.suppress(OSError):  # nobody may be there to read it
        print(
            f"associative-lstm: compiled kernels {what}; NUMBA_CACHE_DIR can name another folder for them",
            file=sys.stderr,
            flush=True,
        )


def _seal(data: bytes) -> bytes:
    return hashlib.sha256(_SOURCES + data).digest()


@functools.cache
def _temporary_folder() -> Path:
    """A folder of this user's alone: what lies there is run."""
    user = getattr(os, "getuid", int)()
    folder = Path(tempfile.gettempdir()) / f"associative-lstm-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if (
        not stat.S_ISDIR(found.st_mode)
        or found.st_uid != user
        or (os.name == "posix" and found.st_mode & 0o077)
    ):
        raise PermissionError(f"others can write to {folder}")
    _say(f"are kept in {folder}, since neither the package's folder nor the user's cache can be written")
    return folder


class _TemporaryLocator(InTreeCacheLocator):
    """The last place to look for."""

    def __init__(self, function: Callable, path: str) -> None:
        super().__init__(function, path)
        self._cache_path = str(_temporary_folder() / self.get_suitable_cache_subpath(path))


class _Places(CompileResultCacheImpl):
    """Numba's folders for kernels, and one more."""

    _locator_classes = (*CompileResultCacheImpl._locator_classes, _TemporaryLocator)


class _Sealed(IndexDataCacheFile):
    """Numba's files of a kernel, with a seal: other bytes, or other sources, and it is not loaded.

    Nor is a kernel for other types or another CPU: two processes that add one each at the same time may both take the
    name that is free, so that what stands in the file is not what the index says.
    """

    def save(self, key: Any, data: Any) -> None:
        written = dumps((key, data))
        super().save(key, (_seal(written), written))

    def load(self, key: Any) -> Any:
        if (found := super().load(key)) is None:
            return None
        seal, written = found
        if seal != _seal(written):
            raise ValueError("not what was written")
        its_key, data = pickle.loads(written)
        return data if its_key == key else None


class _KernelCache(FunctionCache):
    """Numba's cache, but nothing that stands in its files, or cannot be written to them, is an error."""

    _impl_class = _Places

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        # Numba looks only at a function's own file when it decides whether what it kept is stale. A kernel is also
        # made of those it calls, in other files here.
        self._cache_file = _Sealed(
            cache_path=self.cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(self._impl.locator.get_source_stamp(), _SOURCES),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a pickle that is cut short or overwritten can raise anything
            return None  # compile; what comes out replaces it

    def save_overload(self, sig: Any, compiled: Any) -> None:
        try:
            try:
                super().save_overload(sig, compiled)
            except OSError:
                raise
            except Exception:  # the index is damaged, and would have to be read to be added to
                self.flush()
                super().save_overload(sig, compiled)
        except Exception as error:  # a full disk, a folder that has become read-only
            _tell(error)


def cache_of(function: Callable) -> Any:
    """Where the kernel made of this function is kept; nowhere if no folder can be written."""
    try:
        return _KernelCache(function)
    except (RuntimeError, OSError) as error:
        _tell(error)
        return NullCache()
