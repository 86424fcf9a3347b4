"""Many runs on this machine, by processes with one thread each.

The process that starts them alone hears signals: it tells them to stop, and they stop if it is gone.
"""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, cast

from associative_lstm.lab.files import Interrupted
from associative_lstm.lab.run.signals import held_back, listening
from associative_lstm.lab.sweep.jobs import Execute, Job, make_run


def local(processes: int) -> Execute:
    """Make jobs with so many ``processes`` of this machine."""

    def execute(jobs: Sequence[Job]) -> Iterator[str | None]:
        if processes == 1:
            yield from map(make_run, jobs)
            return
        left, stopping = list(reversed(jobs)), 0
        with listening() as asked, _workers(min(processes, len(jobs))) as started:
            busy: dict[Connection, Job] = {}
            idle = list(started)
            while True:
                while idle and left and not stopping:
                    worker, job = idle.pop(), left.pop()
                    busy[worker.connection] = job
                    with suppress(OSError):  # a worker that has ended shows that below
                        worker.connection.send(job)
                if not busy:
                    break
                for ready in cast("list[Connection]", wait(list(busy), timeout=0.2)):
                    job = busy.pop(ready)
                    [worker] = [one for one in started if one.connection is ready]
                    try:
                        reason = ready.recv()
                        idle.append(worker)
                    except (EOFError, OSError):
                        worker.process.join()
                        reason = f"{job.folder}: its process ended with code {worker.process.exitcode}"
                    yield reason
                if asked() and not stopping:
                    stopping = asked()
                    for worker in started:
                        worker.stop()
            for worker in started:
                worker.stop()
        if stopping:
            raise Interrupted("stopped, with every run saved; the same command goes on from there", stopping)
        yield from (f"{job.folder}: no process is left to make it" for job in reversed(left))

    return execute


class _Worker(NamedTuple):
    """A process and the pipe to it, through which it gets jobs and tells what has become of them."""

    process: Any
    connection: Connection

    def stop(self) -> None:
        """Ask the process to stop: anything that it gets while it trains does."""
        with suppress(OSError):  # it has ended
            self.connection.send(None)


def _make_runs(connection: Connection) -> None:
    """In a process of its own: make the jobs that come, one after the other, until none comes or it has to stop."""

    def asked() -> int:
        return signal.SIGTERM if connection.poll() else 0

    with suppress(EOFError, OSError, Interrupted):  # whoever gives out the jobs is gone, or wants an end
        while (job := connection.recv()) is not None:
            connection.send(make_run(job, asked))


@contextmanager
def _workers(count: int) -> Iterator[list[_Worker]]:
    """Start so many processes, and wait for their ends.

    After an error here they stop with their runs saved, after a second Ctrl-C at once.
    """
    spawn = multiprocessing.get_context("spawn")
    resource_tracker.ensure_running()  # now: as it starts, it lets signals through
    started: list[_Worker] = []
    try:
        for _ in range(count):
            here, there = spawn.Pipe()
            process = spawn.Process(target=_make_runs, args=(there,))
            with held_back():
                process.start()
            there.close()
            started.append(_Worker(process, here))
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


def _join(started: list[_Worker]) -> None:
    for worker in started:
        worker.process.join()
