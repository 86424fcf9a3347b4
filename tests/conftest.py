"""For all tests."""

import signal

from hypothesis import HealthCheck, settings


def pytest_configure():
    """The same examples at every run. And signals: what a shell's background or nohup ignores, children would too."""
    slow = [HealthCheck.too_slow]  # on a busy machine, whatever is drawn
    settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=slow)
    settings.load_profile("same")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
