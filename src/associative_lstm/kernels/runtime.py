"""What every compiled kernel needs: the compiler's settings, threads over the batch, a word at first use."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import torch
from numba.core import event

from associative_lstm.kernels.kept import cache_of, kept
from associative_lstm.kernels.team import ALONE, addresses


def jit(function: Callable) -> Any:
    """Compile a kernel on first use and keep it on disk.

    "contract" lets the compiler fuse a multiplication and an addition, and nothing else: sums keep their order, so
    that an item's result does not depend on which other items share its slice of the batch.
    """
    kernel = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})(function)
    kernel._cache = cache_of(function)  # as cache=True would, with a cache of Numba's own
    return kernel


inline = numba.njit(inline="always", error_model="numpy", fastmath={"contract"})

_pool: ThreadPoolExecutor | None = None
_forked = False
_in_team: dict[object, Callable[..., None]] = {}  # by kernel, what runs it on OpenMP's threads
_announced: set[tuple[object, ...]] = set()
_SMALLEST = sys.float_info.min  # a variable, so that Python divides when it runs, not when it compiles
SHARED_BYTES = 2**20
"""Weights that several threads read faster than one, although they wait for each other twice a step."""
_PATIENCE = 1.0  # seconds of compilation before it is announced


def _forget_threads() -> None:
    global _pool, _forked
    _pool, _forked = None, True  # threads do not survive a fork: the child makes its own, and OpenMP cannot


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def run_by_team(kernel: Any) -> Callable[[Any], Any]:
    """Mark ``f(team, slices, batch, *args)`` as the way to run a kernel: `in_slices`; with 0 slices, `together`."""

    def mark(function: Any) -> Any:
        _in_team[kernel] = function
        return function

    return mark


def _flushes() -> bool:
    """Whether the processor takes denormal numbers for zero in the thread that asks."""
    return _SMALLEST / 2 == 0.0


def _as_the_caller(flush: bool, kernel: Callable[..., None], *args: Any) -> None:
    if _flushes() != flush:
        torch.set_flush_denormal(flush)
    kernel(*args)


def _slices(batch: int) -> int:
    return min(torch.get_num_threads(), batch // 2)


def by_team(kernel: Callable[..., None], batch: int, weights: np.ndarray, *args: Any) -> None:
    """``kernel(start, stop, turn, *args)`` on slices of ``range(batch)``, as `over_batch`, on OpenMP's threads.

    If the batch is too small to be split and the weights of its recurrent product are large, the threads go through
    it together. Where there is no such library, the pool's threads serve.
    """
    slices = max(1, _slices(batch))
    if slices == 1 and weights.nbytes >= SHARED_BYTES:
        slices = 0  # together
    if slices == 1 or _forked or torch.get_num_threads() == 1 or (openmp := addresses()) is None:
        over_batch(kernel, batch, ALONE, *args)
        return
    # A team of all of PyTorch's threads, whatever the slices: to change its size takes longer than to wait.
    _in_team[kernel]((*openmp, torch.get_num_threads()), slices, batch, *args)


def over_batch(kernel: Callable[..., None], batch: int, *args: Any) -> None:
    """Call ``kernel(start, stop, *args)`` on contiguous slices of ``range(batch)``, one per PyTorch thread.

    The slices run side by side on a pool's threads, since kernels release the GIL; each writes its own rows only.
    A slice has at least two items: a recurrent product takes as long for one as for two, since fetching the weights
    is what takes long.

    `torch.set_flush_denormal` holds for the thread that calls it. The threads here follow the caller's setting:
    results must not depend on when they were started.
    """
    global _pool
    threads = _slices(batch)
    if threads <= 1:
        kernel(0, batch, *args)
        return
    if _pool is None or _pool._max_workers < threads - 1:
        _pool = ThreadPoolExecutor(max_workers=threads - 1, thread_name_prefix="associative-lstm")
    edges = [batch * k // threads for k in range(threads + 1)]
    flush = _flushes()
    others = [
        _pool.submit(_as_the_caller, flush, kernel, edges[k], edges[k + 1], *args) for k in range(1, threads)
    ]
    try:
        kernel(edges[0], edges[1], *args)
    finally:
        errors = [other.exception() for other in others]  # waits: when we leave, nobody writes any more
    for error in errors:
        if error is not None:
            raise error


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
