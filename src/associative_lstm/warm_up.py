"""``python -m associative_lstm.warm_up``: compile the layer's kernels now, and keep them for every later process.

For an image of a container, say, or before many jobs are started at once on a new machine. What is on disk already is
left as it is. Kernels are compiled for the CPU on which this runs, or for the one that ``NUMBA_CPU_NAME`` and
``NUMBA_CPU_FEATURES`` (which may be empty) describe, and are kept in ``NUMBA_CACHE_DIR`` if that is set.
"""

import time
from typing import Any

import torch
from numba.core import event

from associative_lstm.kernels.associative import loops
from associative_lstm.kernels.compiler.disk_cache import kept
from associative_lstm.nn import AssociativeLSTM

_ONE_HEAD: dict[str, Any] = {"hidden_size": 128}
_ANY: dict[str, Any] = {"hidden_size": 10, "num_heads": 2}


def main() -> None:
    """Compile for float32: any number of threads, heads, copies, and any size."""
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for what, options in (("one head", _ONE_HEAD), ("any number of heads", _ANY)):
            begin, compiled = time.perf_counter(), event.RecordingListener()
            with event.install_listener("numba:compile", compiled):  # not what is found on disk
                output, _ = AssociativeLSTM(3, **options)(torch.randn(2, 4, 3))
                output.sum().backward()
            took = f"compiled in {time.perf_counter() - begin:.1f} s" if compiled.buffer else "found on disk"
            print(f"{what}, {'several threads' if threads > 1 else 'one thread'}: {took}", flush=True)
    folder = loops.forward._cache.cache_path
    print("not kept: no folder can be written" if folder is None or not kept() else f"kept in {folder}")


if __name__ == "__main__":
    main()
