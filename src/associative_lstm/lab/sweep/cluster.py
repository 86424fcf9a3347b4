"""Many runs on many machines: the grid's jobs as tasks of a Ray cluster.

No disk need be shared. A task trains in a temporary folder of its own machine and, while it trains, yields whatever
has changed in it; the driver keeps the run's folder up to date with that. A task whose worker is lost is started
again with what the driver holds, the last checkpoint that came through, and exact resume does the rest: the logs are
those that one machine would have written, bit by bit.
"""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from associative_lstm.lab.files import RunError, write_atomically
from associative_lstm.lab.run.checkpoint import find_checkpoints, step_of
from associative_lstm.lab.run.config import Config
from associative_lstm.lab.run.folder import hold
from associative_lstm.lab.sweep.jobs import Execute, Job, make_run

LOOK_EVERY = 0.5
"""Seconds between two looks of a worker at what has changed."""

LOST_AT_MOST = 5
"""Workers that a run may lose in a row without a checkpoint gained: with one more, it is the run that does it."""


class Changes(NamedTuple):
    """What has changed in a run's folder: files by name, as they are now, and which checkpoints there are."""

    files: dict[str, bytes]
    checkpoints: list[str]


@contextmanager
def ray_cluster(
    address: str | None = None, workers: int = 1, say: Callable[[str], None] = lambda message: None
) -> Iterator[Execute]:
    """What makes jobs on the Ray cluster at ``address``, or on one of this machine with so many ``workers``.

    A run takes as many CPUs of the cluster as it has threads. ``say`` hears of lost workers.
    """
    try:
        import ray
    except ImportError as error:
        raise ValueError(
            "--cluster ray needs Ray: pip install '.[cluster]' in the project's folder"
        ) from error
    if address is not None:
        _knock(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"address": address}
    if address is None:  # "local": otherwise Ray looks for a cluster that runs on this machine already
        options = {"address": "local", "num_cpus": workers, "include_dashboard": False}
        options["object_store_memory"] = 2**29
    try:
        ray.init(log_to_driver=False, logging_level="error", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunError(f"no Ray cluster at {address or 'this machine'}: {reason}") from error
    stopping = threading.Event()

    def execute(jobs: Sequence[Job]) -> Iterator[str | None]:
        if not jobs:
            return
        with ThreadPoolExecutor(max_workers=min(len(jobs), 1000)) as pool:  # threads that only wait
            try:
                futures = [pool.submit(_make, job, say, stopping) for job in jobs]
                for future in as_completed(futures):
                    yield future.result()
            except BaseException:
                stopping.set()
                pool.shutdown(wait=False, cancel_futures=True)
                ray.shutdown()  # ends the tasks, and so the threads
                raise

    try:
        yield execute
    finally:
        stopping.set()
        ray.shutdown()


def _knock(address: str) -> None:
    """Whether anybody answers at ``HOST:PORT`` or ``ray://HOST:PORT``: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # "auto", and whatever else Ray understands
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise RunError(f"no Ray cluster at {address}: {getattr(error, 'strerror', None) or error}") from error


def _make(job: Job, say: Callable[[str], None], stopping: threading.Event) -> str | None:
    """One job to its end, however many workers it takes; None, or why it could not be made."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    task = ray.remote(max_retries=0, num_cpus=job.config.threads)(train_elsewhere)
    lost, begun = 0, -1
    try:
        with hold(job.folder):
            while not stopping.is_set():
                step = _last_checkpoint(job.folder)
                lost, begun = (lost + 1 if step == begun else 1), step
                try:
                    for reference in task.remote(job.config, str(job.folder), _content(job.folder)):
                        changes = ray.get(reference)
                        if not isinstance(changes, Changes):
                            return changes
                        apply(changes, job.folder)
                except RayTaskError as error:
                    return f"{job.folder}: {str(error).splitlines()[-1]}"
                except RayError as error:
                    if stopping.is_set():
                        break
                    if lost > LOST_AT_MOST:
                        why = (str(error).splitlines() or [""])[0]
                        return f"{job.folder}: it has lost {lost} workers in a row after step {begun} ({why})"
                    goes_on = _last_checkpoint(job.folder)
                    say(f"{job.folder}: its worker was lost, it goes on from step {goes_on}")
    except (RunError, OSError) as error:
        return f"{job.folder}: {error}"
    return f"{job.folder}: stopped"


def train_elsewhere(
    config: Config, name: str, content: Mapping[str, bytes]
) -> Iterator[Changes | str | None]:
    """On a worker: make the run in a folder that begins with ``content``; yield its changes, at last the outcome."""
    with TemporaryDirectory(prefix="alstm-") as temporary:
        folder = Path(temporary) / "run"
        folder.mkdir()
        for file, data in content.items():
            (folder / file).write_bytes(data)
        outcome: list[str | None] = []
        trainer = threading.Thread(target=lambda: outcome.append(make_run(Job(config, folder))), daemon=True)
        sent = dict(content)
        trainer.start()
        alive = True
        while alive:
            trainer.join(LOOK_EVERY)
            alive = trainer.is_alive()  # asked before the look: the last one is at what is final
            changes = changes_since(sent, folder)
            if changes.files:
                yield changes
        if not outcome:
            raise RunError("training ended with an error that is not its own")
        yield outcome[0] and outcome[0].replace(str(folder), name)


def changes_since(sent: dict[str, bytes], folder: Path) -> Changes:
    """What is new in ``folder`` beside ``sent``, which is brought up to date.

    Checkpoints are read first: the logs, read later, then hold all that these know of them.
    """
    checkpoints = [path.name for path in find_checkpoints(folder)]
    others = [p.name for p in folder.iterdir() if p.is_file() and p.name not in ("lock", *checkpoints)]
    files = {}
    for name in [*checkpoints, *(n for n in others if not n.startswith((".", "checkpoint-")))]:
        if name in checkpoints and name in sent:
            continue  # a checkpoint never changes
        try:
            data = (folder / name).read_bytes()
        except OSError:  # a checkpoint that has just been replaced
            checkpoints = [c for c in checkpoints if c != name]
            continue
        if data != sent.get(name):
            files[name] = data
            sent[name] = b"" if name in checkpoints else data
    return Changes(files, checkpoints)


def apply(changes: Changes, folder: Path) -> None:
    """Bring ``folder`` up to date: logs first, then checkpoints, and only then are old checkpoints removed.

    So whatever is there when this machine stops is a run that can go on.
    """
    order = {"config.toml": -1} | dict.fromkeys(changes.checkpoints, 1)  # the first makes the folder a run
    for name in sorted(changes.files, key=lambda name: order.get(name, 0)):
        write_atomically(folder / name, changes.files[name])
    if changes.checkpoints:
        for path in find_checkpoints(folder):
            if path.name not in changes.checkpoints:
                path.unlink(missing_ok=True)


def _content(folder: Path) -> dict[str, bytes]:
    """All that a worker needs to go on from what is there: not the events of TensorBoard, which it adds to."""
    files = [path for path in folder.iterdir() if path.is_file()]
    return {
        p.name: p.read_bytes() for p in files if p.name != "lock" and not p.name.startswith((".", "events."))
    }


def _last_checkpoint(folder: Path) -> int:
    found = find_checkpoints(folder)
    return step_of(found[0]) if found else 0
