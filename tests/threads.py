"""Kernels on the same numbers with one thread and with several."""

import numpy as np
import torch

THREADS = (2, 3, 5)


def _copy(value):
    """Arrays copied, also those in tuples."""
    if isinstance(value, tuple):
        return getattr(type(value), "_make", tuple)(map(_copy, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def _bytes(value):
    """What stands in the arrays."""
    if isinstance(value, tuple):
        return [_bytes(part) for part in value]
    return value.tobytes() if isinstance(value, np.ndarray) else None


def with_any_number_of_threads(monkeypatch, module, name):
    """From now on, what ``module.name(kernel, batch, *args)`` computes must have the same bits whatever the threads.

    Every call is made on copies of its arrays with each number of THREADS, then on the arrays themselves with one
    thread, and what stands in them is compared. Whatever else computes, PyTorch's own products above all, is the same
    for all of them. The list that is returned grows by the kernel of every call.
    """
    run, kernels = getattr(module, name), []

    def on_copies(kernel, batch, *args):
        before = torch.get_num_threads()
        try:
            results = []
            for threads in THREADS:
                torch.set_num_threads(threads)
                own = _copy(args)
                run(kernel, batch, *own)
                results.append(_bytes(own))
            torch.set_num_threads(1)
            run(kernel, batch, *args)
        finally:
            torch.set_num_threads(before)
        assert all(own == _bytes(args) for own in results)
        kernels.append(kernel)

    monkeypatch.setattr(module, name, on_copies)
    return kernels
