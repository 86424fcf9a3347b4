"""For all tests."""

import os
import signal

from hypothesis import HealthCheck, settings

# Before PyTorch is loaded: threads that wait leave their core to others. On a busy machine, where those they wait for
# get no core meanwhile, a small sum takes ten times as long otherwise.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Processes that test side by side share the cores. Tests of several threads ask for as many as they need.
if beside := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // beside)))


def pytest_configure(config):
    """The same examples at every run. And signals: what a shell's background or nohup ignores, children would too."""
    if "gpu" not in config.getoption("markexpr"):  # before Triton is imported: its interpreter needs no GPU
        os.environ.setdefault("TRITON_INTERPRET", "1")
    slow = [HealthCheck.too_slow]  # on a busy machine, whatever is drawn
    settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=slow)
    settings.load_profile("same")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
