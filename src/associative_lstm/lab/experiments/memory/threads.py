"""Small computations on one thread each."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """Within the block, PyTorch computes on the calling thread alone (also as a decorator).

    A memory works through small blocks. Splitting each among threads gains little on an idle machine, and on a
    busy one the threads wait for each other at every block.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
