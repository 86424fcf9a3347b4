"""Processes that train for this one. It alone hears signals: it tells them to stop, and they stop if it is gone."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from associative_lstm.lab.run.signals import Asked, ignoring


class Worker(NamedTuple):
    """A process and the pipe to it, through which it sends what it has to tell."""

    process: Any
    connection: Connection

    def stop(self) -> None:
        """Ask the process to stop: anything that it gets while it trains does."""
        with suppress(OSError):  # it has ended
            self.connection.send(None)


def told_to_stop(connection: Connection) -> Asked:
    """In a worker: whether it has got anything, or the process that started it is gone."""
    return lambda: signal.SIGTERM if connection.poll() else 0


@contextmanager
def workers(target: Callable[..., None], arguments: list[tuple[Any, ...]]) -> Iterator[list[Worker]]:
    """Start a process for each of the ``arguments``, to which the pipe is added; wait for their ends.

    After an error here they stop with their runs saved, after a second Ctrl-C at once.
    """
    spawn = multiprocessing.get_context("spawn")
    started: list[Worker] = []
    try:
        for own in arguments:
            here, there = spawn.Pipe()
            process = spawn.Process(target=target, args=(*own, there))
            with ignoring():
                process.start()
            there.close()
            started.append(Worker(process, here))
        yield started
        _join(started)
    except KeyboardInterrupt:
        for worker in started:
            worker.process.kill()
        raise
    finally:
        for worker in started:
            worker.connection.close()
        _join(started)


def _join(started: list[Worker]) -> None:
    for worker in started:
        worker.process.join()
