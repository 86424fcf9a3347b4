"""What every compiled kernel needs: the compiler's settings, and a word at first use."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba.core import event

from associative_lstm.kernels.compiler.disk_cache import cache_of, kept


def jit(function: Callable) -> Any:
    """Compile a kernel on first use and keep it on disk.

    "contract" lets the compiler fuse a multiplication and an addition, and nothing else: sums keep their order, so
    that an item's result does not depend on which other items share its slice of the batch.
    """
    kernel = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})(function)
    kernel._cache = cache_of(function)  # as cache=True would, with a cache of Numba's own
    return kernel


inline = numba.njit(
    forceinline=True,
    error_model="numpy",
    fastmath={"contract"},
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)
"""For a part of a kernel, put into it by LLVM: to have Numba do it takes half as long again to compile."""

_announced: set[tuple[object, ...]] = set()
_PATIENCE = 1.0  # seconds of compilation before it is announced


class _WhenCompiling(event.Listener):
    """Prints a message a second after Numba has begun to compile: not when it finds everything on disk."""

    def __init__(self, message: str) -> None:
        self.timer = threading.Timer(_PATIENCE, lambda: print(message, file=sys.stderr, flush=True))
        self.timer.daemon = True
        self.begun = False

    def on_start(self, event: event.Event) -> None:
        if not self.begun:
            self.begun = True
            self.timer.start()

    def on_end(self, event: event.Event) -> None:
        pass


def announce_compilation(*what: object) -> contextlib.AbstractContextManager:
    """Around a call of a kernel: if it is the first and takes a second to compile, say what is happening."""
    return _ANNOUNCED_BEFORE if what in _announced else _first_call(what)


_ANNOUNCED_BEFORE: contextlib.AbstractContextManager = contextlib.nullcontext()


@contextlib.contextmanager
def _first_call(what: tuple[object, ...]) -> Iterator[None]:
    name = " ".join(map(str, what))
    later = "once; later runs load it from disk" if kept() else "at every start"
    listener = _WhenCompiling(f"associative-lstm: compiling {name} for this machine ({later})")
    try:
        with event.install_listener("numba:compile", listener):
            yield
    finally:
        listener.timer.cancel()
    _announced.add(what)
