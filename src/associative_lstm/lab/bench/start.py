"""How long a user waits: for help, and for the compiler at the first training step of a process."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
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


def time_of_help(turns: int = 5) -> list[dict[str, Any]]:
    """Seconds of `alstm --help` and of a subcommand's, and how many times those of a program that does nothing."""
    programs = {"": ["-c", "pass"]}
    for arguments in (["--help"], ["train", "--help"]):
        programs[f"alstm {' '.join(arguments)}"] = ["-m", "associative_lstm.lab.cli", *arguments]
    seconds: dict[str, list[float]] = {what: [] for what in programs}
    for _ in range(turns):
        for what, program in programs.items():
            begin = time.perf_counter()
            subprocess.run([sys.executable, *program], capture_output=True, check=True)
            seconds[what].append(time.perf_counter() - begin)
    nothing = seconds.pop("")
    return [
        {
            "what": what,
            "seconds": statistics.median(times),
            "ratio": statistics.median(a / b for a, b in zip(times, nothing, strict=True)),
        }
        for what, times in seconds.items()
    ]
