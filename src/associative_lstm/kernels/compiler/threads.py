"""Who splits a batch among threads: slices of it side by side, or all threads together on one that is too small."""

import functools
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType
from typing import Any

import numpy as np
import torch

from associative_lstm.kernels.compiler.openmp import ALONE, Team, addresses, in_team
from associative_lstm.kernels.compiler.runtime import jit

SHARED_BYTES = 2**20
"""Weights that several threads read faster than one, although they wait for each other twice a step."""

_pool: ThreadPoolExecutor | None = None
_forked = False
_SMALLEST = sys.float_info.min  # a variable, so that Python divides when it runs, not when it compiles


def _forget_threads() -> None:
    global _pool, _forked
    _pool, _forked = None, True  # threads do not survive a fork: the child makes its own, and OpenMP cannot


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def _flushes() -> bool:
    """Whether the processor takes denormal numbers for zero in the thread that asks."""
    return _SMALLEST / 2 == 0.0


def _as_the_caller(flush: bool, kernel: Callable[..., None], *args: Any) -> None:
    if _flushes() != flush:
        torch.set_flush_denormal(flush)
    kernel(*args)


def _slices(batch: int) -> int:
    return min(torch.get_num_threads(), batch // 2)


def by_team(kernel: Any, batch: int, weights: np.ndarray, *args: Any) -> None:
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
    _runner(kernel)(Team._make([*openmp, torch.get_num_threads()]), slices, batch, *args)


def _run(team, slices, batch, *args):
    in_team(_kernel, team, slices, batch, args)  # noqa: F821 (given by _runner)


@functools.cache
def _runner(kernel: Any) -> Any:
    """`_run` for this kernel, under a name of its own, by which it is found on disk again."""
    name = f"{kernel.__module__}.{kernel.__name__}"
    run = FunctionType(_run.__code__, {"__name__": __name__, "in_team": in_team, "_kernel": kernel}, name)
    run.__qualname__ = name
    return jit(run)


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
