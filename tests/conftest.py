"""For all tests."""

import signal

from hypothesis import settings


def pytest_configure():
    """The same examples at every run. And Ctrl-C: background jobs of a shell ignore it, and their children would."""
    settings.register_profile("same", derandomize=True, deadline=None)
    settings.load_profile("same")
    signal.signal(signal.SIGINT, signal.default_int_handler)
