"""Kernels on the same numbers with one thread and with several."""

import numpy as np
import torch

THREADS = (2, 3, 5)


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
                own = _copied(args)
                run(kernel, batch, *own)
                results.append(own)
            torch.set_num_threads(1)
            run(kernel, batch, *args)
        finally:
            torch.set_num_threads(before)
        for own in results:
            for ours, expected in zip(_arrays(own), _arrays(args), strict=True):
                assert ours.tobytes() == expected.tobytes()
        kernels.append(kernel)

    monkeypatch.setattr(module, name, on_copies)
    return kernels


def _copied(value):
    """The same arrays, or tuples of them, in other places."""
    if isinstance(value, tuple):
        parts = [_copied(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return _like(value) if isinstance(value, np.ndarray) else value


def _like(array):
    """A copy at an address as good for vectors as the original's."""
    copy = torch.empty(array.nbytes, dtype=torch.uint8).numpy().view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _arrays(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
