"""Waiting for a process to come so far that a test can interrupt it."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

HANGS = 1200.0
"""Seconds after which a process that a test waits for is taken to hang. No measure: a busy machine is slow."""


def wait_for_lines(logs: Sequence[Path], process: subprocess.Popen) -> None:
    """Return when each of ``logs`` has something in it; the test fails if ``process`` ends or takes too long."""
    deadline = time.monotonic() + HANGS
    while not all(log.exists() and log.stat().st_size for log in logs):
        if process.poll() is not None:
            pytest.fail(f"the process ended with code {process.returncode}: {process.communicate()[1]}")
        if time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"after {HANGS:.0f} seconds there is still no line in one of {list(map(str, logs))}")
        time.sleep(0.02)
