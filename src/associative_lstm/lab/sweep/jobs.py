"""Many runs: what is done is skipped, what was begun goes on, and how far they are is told from their logs."""

import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from associative_lstm.lab.files import Diverged, RunError, memory_lacked, write_atomically
from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.run.checkpoint import exported_step, find_checkpoints, step_of
from associative_lstm.lab.run.config import Config
from associative_lstm.lab.run.folder import WEIGHTS, last_step, read_config
from associative_lstm.lab.run.loop import is_tested, resume, train
from associative_lstm.lab.run.packed import is_file, is_run
from associative_lstm.lab.run.signals import Asked

DIVERGED = "diverged.txt"
"""In the folder of a run that ended early because a number was not finite: what happened, in one sentence."""


class Job(NamedTuple):
    """A run to be made: its configuration and its folder."""

    config: Config
    folder: Path


Execute = Callable[[Sequence[Job]], Iterable[str | None]]
"""Makes every job, and gives for each, as it ends, None or why it was not done."""


def is_finished(job: Job) -> bool:
    """Whether the log of the run has all its steps, or it has diverged; checkpoints need not be there any more.

    If they are, so must be what comes after the last line of the log: a checkpoint of that step and its weights, or a
    later checkpoint, of a run that has been made longer.
    """
    if is_run(job.folder) and not has_length(read_config(job.folder), job.config.steps):
        return False
    if is_file(job.folder / DIVERGED):
        return True
    if last_step(job.folder) < job.config.steps or not is_tested(job.folder, job.config):
        return False
    checkpoints = find_checkpoints(job.folder)
    if not checkpoints:
        return True
    last, steps = step_of(checkpoints[0]), job.config.steps
    return last > steps or (last == steps and exported_step(job.folder / WEIGHTS) == steps)


def make_run(job: Job, asked: Asked | None = None) -> str | None:
    """Begin, continue or lengthen one run; None, or why it could not be made.

    A log that came without its checkpoints, as in a clone, is kept beside and the run begun again. A run that
    diverges is made: that is its result, and :data:`DIVERGED` says so. One that is asked to stop raises
    :class:`~associative_lstm.lab.files.Interrupted`: the others must not be begun then.
    """
    try:
        _make(job, asked)
    except (RuntimeError, MemoryError, OSError, ValueError) as error:
        lack = memory_lacked(error)
        if lack is None and not isinstance(error, RunError | OSError | ValueError):
            raise
        return f"{job.folder}: {lack or error}"
    return None


def _make(job: Job, asked: Asked | None) -> None:
    begun = is_run(job.folder)
    if begun:
        _check_same(job)
    if is_finished(job):
        return
    try:
        if begun:
            steps = max(job.config.steps, read_config(job.folder).steps)
            alone = not any(map(step_of, find_checkpoints(job.folder)))  # nothing is saved but the beginning
            resume(job.folder, steps=steps, ignore_log=alone, asked=asked)
        else:
            train(job.config, job.folder, asked=asked)
    except Diverged as stopped:  # kept with the logs, which may be read elsewhere
        reason = str(stopped).replace(f"{job.folder}{os.sep}", "").replace(str(job.folder), "its folder")
        write_atomically(job.folder / DIVERGED, f"{reason}\n".encode())


def _check_same(job: Job) -> None:
    found = read_config(job.folder)
    asked = dataclasses.asdict(job.config)
    differ = [key for key, value in asked.items() if key != "steps" and getattr(found, key) != value]
    if not has_length(found, job.config.steps):
        differ.append("steps")
    if differ:
        raise RunError(f"it holds a run with another {', '.join(differ)}: choose another folder for the runs")


def has_length(config: Config, steps: int) -> bool:
    """Whether a run counts as one of so many steps: any, unless its rate falls towards the end that it has."""
    return config.schedule == "constant" or config.steps == steps


class GridProgress(NamedTuple):
    """Where a grid is: minibatches over all its runs, runs, and an estimate of the time left."""

    steps_done: int
    steps: int
    runs_done: int
    runs: int
    seconds_left: float | None


Show = Callable[[GridProgress], None]


def run_grid(
    jobs: Sequence[Job],
    execute: Execute,
    show: Show | None = None,
    before: Sequence[Job] = (),
    later: Sequence[Config] = (),
) -> list[str]:
    """Make all jobs that are not finished; the reasons of those that could not be made.

    What is shown counts jobs that the caller has asked for ``before``, and runs that it will ask for ``later``.
    """
    left = [job for job in jobs if not _is_made(job)]
    watched = {job.folder: job for job in (*before, *jobs)}
    with _watching(list(watched.values()), show, later):
        return [reason for reason in execute(left) if reason is not None]


def _is_made(job: Job) -> bool:
    """Whether there is nothing to do; a folder that holds another run is left to :func:`make_run`, which says so."""
    begun = is_run(job.folder)  # a damaged pack ends the grid: it may hold any of the runs
    try:
        if begun:
            _check_same(job)
    except (RunError, ValueError):
        return False
    return is_finished(job)


@contextmanager
def _watching(jobs: Sequence[Job], show: Show | None, later: Sequence[Config]) -> Iterator[None]:
    """Tell ``show`` every second where the runs are, from their logs: whoever makes them, and wherever."""
    if show is None or not jobs:
        yield
        return
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(jobs, show, later, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(jobs: Sequence[Job], show: Show, later: Sequence[Config], ended: threading.Event) -> None:
    all_cost = sum(_cost(config) for config in (*(job.config for job in jobs), *later))
    all_steps = sum(config.steps for config in (*(job.config for job in jobs), *later))
    started, first, over = time.monotonic(), None, False
    finished: set[Job] = set()
    while not over:
        over = ended.wait(1.0)
        finished |= {job for job in jobs if job not in finished and is_finished(job)}
        work = [
            1.0 if job in finished else min(1.0, last_step(job.folder) / job.config.steps) for job in jobs
        ]
        cost = [_cost(job.config) for job in jobs]
        done = sum(w * c for w, c in zip(work, cost, strict=True))
        first = done if first is None else first
        elapsed = time.monotonic() - started
        seconds = elapsed * (all_cost - done) / (done - first) if done > first else None
        steps = sum(int(w * job.config.steps) for w, job in zip(work, jobs, strict=True))
        show(GridProgress(steps, all_steps, len(finished), len(jobs) + len(later), seconds))


def _cost(config: Config) -> float:
    """About how many milliseconds the run takes."""
    return config.steps * NETWORKS[config.model].milliseconds(vars(config))
