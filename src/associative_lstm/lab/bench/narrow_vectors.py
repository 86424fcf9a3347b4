"""The same measurements as on a CPU with narrower vectors, in a process that is told so before it starts."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

AVX2 = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "DNNL_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}
"""Holds Numba, and for fairness PyTorch and its libraries, to vectors of 32 bytes on a CPU that has wider ones."""


def possible() -> bool:
    """Whether this process is not held to them already, on a CPU that has wider ones."""
    from associative_lstm.kernels.compiler.target import VECTOR_BYTES

    return VECTOR_BYTES > 32


def groups(parts: list[str], threads: list[int], seconds: float, seed: int) -> list[dict[str, Any]]:
    """What `alstm bench` measures of these parts there."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "associative_lstm.lab.cli", "bench", "--out", out]
        command += ["--seconds", str(seconds), "--seed", str(seed)]
        command += [word for n in threads for word in ("--threads", str(n))]
        command += [word for part in parts for word in ("--part", part)]
        done = subprocess.run(command, env=os.environ | AVX2, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the benchmark with narrower vectors failed: {done.stderr.strip()}")
        results = json.loads((Path(out) / "bench.json").read_text())
    held = results["versions"]["vector bytes"]
    return [group | {"vector_bytes": held} for group in results["groups"]]
