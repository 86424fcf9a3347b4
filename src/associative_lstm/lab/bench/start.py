"""How long a user waits for the compiler: the first training step of a process, without and with kernels on disk."""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

_SCRIPT = """
import json, time
begin = time.perf_counter()
import torch
from associative_lstm import AssociativeLSTM
ready = time.perf_counter()
output, _ = AssociativeLSTM(10, 128, num_copies=4)(torch.randn(5, 2, 10))
output.sum().backward()
print(json.dumps({"imports": ready - begin, "step": time.perf_counter() - ready}))
"""


def first_and_second() -> list[dict[str, Any]]:
    """Seconds of the same step in two processes that share a cache, which is empty for the first of them."""
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for what in ("compiled", "from the cache"):
            environment = os.environ | {"NUMBA_CACHE_DIR": cache}
            done = subprocess.run(
                [sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, text=True, check=True
            )
            rows.append({"what": what, **json.loads(done.stdout)})
    return rows
