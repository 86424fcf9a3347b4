"""Where Numba cannot be used: one warning and the reference; and when compilation is announced."""

import subprocess
import sys
import threading

import pytest
import torch
from numba.core import event

from associative_lstm import AssociativeLSTM, kernels
from associative_lstm.kernels.compiler import runtime, threads
from waiting import HANGS

PROGRAM = """
import sys, warnings
sys.modules["numba"] = None
import torch
from associative_lstm import AssociativeLSTM
torch.manual_seed(0)
x = torch.randn(5, 2, 3)
layer = AssociativeLSTM(3, 8, num_layers=2, num_copies=2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    output, _ = layer(x)
    output.sum().backward()
    layer(x)
    AssociativeLSTM(3, 8)(x)
assert len(caught) == 1, caught
assert caught[0].category is RuntimeWarning
print(caught[0].message)
layer.backend = "reference"
assert torch.equal(layer(x)[0], output)
layer.backend = "fused"
try:
    layer(x)
except RuntimeError as error:
    print(error)
assert "numba.core" not in sys.modules
"""


def test_without_numba_the_reference_serves_and_says_so_once():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=HANGS, check=False
    )
    assert done.returncode == 0, done.stderr
    warning, error = done.stdout.splitlines()
    reason = r"Numba cannot be used here (ModuleNotFoundError: import of numba halted; None in sys.modules)"
    assert warning == f"associative-lstm runs its slow reference loop: {reason}"
    assert error == f"backend='fused': {reason}"


@pytest.fixture
def timers(monkeypatch):
    """The timers of announcements, which come almost at once; nothing has been announced before."""
    made = []

    class Timer(threading.Timer):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(runtime, "_announced", set())
    monkeypatch.setattr(runtime, "_PATIENCE", 0.01)
    monkeypatch.setattr(runtime.threading, "Timer", Timer)
    return made


def test_a_compilation_that_takes_long_is_announced_once(capsys, timers):
    with runtime.announce_compilation("a", "kernel"), event.trigger_event("numba:compile"):
        timers[0].join()
    with runtime.announce_compilation("a", "kernel"), event.trigger_event("numba:compile"):
        pass
    assert len(timers) == 1
    message = "associative-lstm: compiling a kernel for this machine (once; later runs load it from disk)\n"
    assert capsys.readouterr().err == message


def test_what_is_quick_or_no_compilation_is_not_announced(capsys, timers, monkeypatch):
    with runtime.announce_compilation("found", "on", "disk"):
        assert timers[0].ident is None  # not even started
    monkeypatch.setattr(runtime, "_PATIENCE", 10 * HANGS)
    with runtime.announce_compilation("quick"), event.trigger_event("numba:compile"):
        pass
    timers[1].join(timeout=HANGS)
    assert not timers[1].is_alive()  # cancelled, it has ended without a word
    assert capsys.readouterr().err == ""


def test_a_kernel_that_failed_is_announced_again(capsys, monkeypatch):
    monkeypatch.setattr(runtime, "_announced", set())
    with pytest.raises(ArithmeticError, match="broken"), runtime.announce_compilation("broken"):
        raise ArithmeticError("broken")
    assert runtime._announced == set()


def test_which_path_is_taken_and_why():
    cpu, meta = torch.device("cpu"), torch.device("meta")
    assert kernels.choose_backend("auto", cpu, torch.float64)[0] == "fused"
    assert kernels.choose_backend("auto", meta, torch.float32) == (
        "reference",
        "the fused kernel runs on the CPU, not on meta",
    )
    assert kernels.choose_backend("fused", cpu, torch.float32) == ("fused", "asked for")
    layer, x = AssociativeLSTM(3, 8, backend="auto"), torch.randn(4, 2, 3)
    assert "_Eager" in type(layer(x)[0].grad_fn).__name__


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="the processor cannot flush denormals")
def test_the_pools_threads_take_denormals_as_the_caller_does(monkeypatch):
    monkeypatch.setattr(threads, "_pool", None)
    smallest = torch.full((), torch.finfo(torch.float32).tiny)
    before = torch.get_num_threads()

    def kernel(start, stop, halves):
        halves[start:stop] = [float(smallest / 2)] * (stop - start)

    try:
        torch.set_num_threads(3)
        for flush in (False, True, False):  # the first call starts the threads
            torch.set_flush_denormal(flush)
            halves = [-1.0] * 6
            threads.over_batch(kernel, 6, halves)
            assert [half == 0.0 for half in halves] == [flush] * 6
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(before)
