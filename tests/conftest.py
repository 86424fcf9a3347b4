"""For all tests."""

import signal


def pytest_configure():
    """Let tests interrupt what they start: a shell's background jobs ignore Ctrl-C, and so would their children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
