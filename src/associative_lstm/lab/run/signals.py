"""Ctrl-C, SIGTERM (a cluster, a shutdown) and SIGHUP (a closed terminal): each asks a run to stop."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

HANG_UP: int | None = getattr(signal, "SIGHUP", None)  # Windows has none
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([] if HANG_UP is None else [HANG_UP]))

Asked = Callable[[], int]
"""The number of the signal that has asked to stop; 0 as long as none has."""


@contextmanager
def listening(*, patient: bool = False) -> Iterator[Asked]:
    """A function that tells which signal has come. A second Ctrl-C or SIGTERM does what it did before this.

    Not so if ``patient``: then all that come later are ignored. What is ignored already stays ignored: SIGHUP by
    `nohup`, Ctrl-C by a script's background. A second SIGHUP always is, because a terminal that is closed sends two.
    """
    number = 0
    before: dict[int, Any] = {}

    def hear(heard: int, frame: object) -> None:
        nonlocal number
        number = heard
        for other, handler in before.items():
            signal.signal(other, signal.SIG_IGN if patient or other == HANG_UP else handler)

    if threading.current_thread() is threading.main_thread():  # Python allows handlers in no other
        for each in SIGNALS:
            handler = signal.getsignal(each)
            if handler != signal.SIG_IGN:
                before[each] = signal.SIG_DFL if handler is None else handler  # None: not Python's own
        for listened in before:
            signal.signal(listened, hear)
    try:
        yield lambda: number
    finally:
        for listened, handler in before.items():
            if not number or not (patient or listened == number == HANG_UP):
                signal.signal(listened, handler)


@contextmanager
def held_back() -> Iterator[None]:
    """Signals come when this ends; a process that is started meanwhile never hears one. Not so on Windows."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
