"""Kernels that are compiled ahead."""

import subprocess
import sys

import torch

from associative_lstm import AssociativeLSTM, warm_up
from waiting import HANGS


def test_afterwards_nothing_is_compiled(capsys):
    """Of what a user of float32 calls: one head or more, one thread or more, any size."""
    before = torch.get_num_threads()
    try:
        warm_up.main()
        assert len(capsys.readouterr().out.splitlines()) == 5
        compiled = warm_up.event.RecordingListener()
        with warm_up.event.install_listener("numba:compile", compiled):
            for threads, size, heads in ((1, 64, 1), (2, 64, 1), (1, 64, 3), (2, 6, 1)):
                torch.set_num_threads(threads)
                layer = AssociativeLSTM(5, size, num_copies=3, num_heads=heads, activation="tanh")
                layer(torch.randn(4, 5, 5))[0].sum().backward()
        assert compiled.buffer == []
        command = [sys.executable, "-m", "associative_lstm.warm_up"]  # where nothing is in memory yet
        lines = subprocess.run(command, capture_output=True, text=True, timeout=HANGS).stdout.splitlines()
        assert len(lines) == 5
        assert all(line.endswith("found on disk") for line in lines[:-1])
        assert lines[-1].startswith("kept in ")
    finally:
        torch.set_num_threads(before)
