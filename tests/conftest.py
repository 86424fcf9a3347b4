"""For all tests."""

import signal

from hypothesis import HealthCheck, settings


def pytest_configure():
    """The same examples at every run. And Ctrl-C: background jobs of a shell ignore it, and their children would."""
    slow = [HealthCheck.too_slow]  # on a busy machine, whatever is drawn
    settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=slow)
    settings.load_profile("same")
    signal.signal(signal.SIGINT, signal.default_int_handler)
