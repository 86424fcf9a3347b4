"""The folder of a run: what it writes while it runs, and what figures read afterwards.

::

    config.toml                the complete configuration: `alstm train --config config.toml` repeats the run
    versions.json              what ran it: versions, machine, number of processes
    log.jsonl                  one line per interval: step, cost, ... (bit-identical however often the run was killed)
    times.jsonl                the training seconds at the same steps (which cannot be identical)
    test.jsonl                 cost and accuracy on the test split, where there is one (bit-identical too)
    events.out.tfevents...     the same for TensorBoard
    checkpoint-STEP-DIGEST.pt  the last two checkpoints
    model.safetensors          the weights, when the run is done
    lock                       held by the process that works on the run
    NAME.1, NAME.2, ...        what a file was before a resume that could not go on from it
"""

import contextlib
import json
import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from associative_lstm import __version__
from associative_lstm.lab.files import (
    RunError,
    as_run_error,
    refuse_foreign,
)
from associative_lstm.lab.run.config import Config, complete, read_toml
from associative_lstm.lab.run.packed import is_run, read_bytes, refuse_packed

TIMES = "times.jsonl"
LOGS = ("log.jsonl", TIMES)
TESTS = "test.jsonl"
VERSIONS = "versions.json"
WEIGHTS = "model.safetensors"

APPENDED = (*LOGS, TESTS)
REPLACED = (
    rf"(?:config\.toml|versions\.json|{re.escape(WEIGHTS)}|diverged\.txt|curve\.png|"
    r"(?:log|times|test)\.jsonl|checkpoint-\d+-[0-9a-f]{16}\.pt)(?:\.\d+)?"
)
_OWN = re.compile(rf"{REPLACED}|lock|eval-.*\.json|events\.out\.tfevents\..*")
"""The names of all that is ever written in the folder of a run."""


def hold(folder: Path) -> contextlib.ExitStack:
    """Make the folder if need be and keep other processes from working on its run until this is closed."""
    refuse_packed(folder)
    with contextlib.ExitStack() as held, as_run_error(f"{folder} cannot be written"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if _OWN.fullmatch(path.name):
                refuse_foreign(path, replaced=path.name not in (*APPENDED, "lock"))
        try:
            held.enter_context(FileLock(folder / "lock", thread_local=False).acquire(blocking=False))
        except Timeout as error:
            raise RunError(f"{folder} is in use by another process") from error
        return held.pop_all()


def read_config(folder: str | os.PathLike[str]) -> Config:
    """The configuration of the run in ``folder``."""
    path = Path(folder) / "config.toml"
    if not is_run(folder):
        raise RunError(f"{folder} is not a run: it has no config.toml")
    return complete(read_toml(path))


def read_log(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The lines of a run's log, each with its seconds; also while it runs, and whatever a crash has left.

    A line that is not whole ends the log: nothing after it can be trusted.
    """
    records = _read_lines(Path(folder) / "log.jsonl", ("step", "cost"))
    seconds = {
        line["step"]: line["seconds"] for line in _read_lines(Path(folder) / "times.jsonl", ("seconds",))
    }
    return [record | {"seconds": seconds.get(record["step"])} for record in records]


def read_tests(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The evaluations on the test split that a run has made so far: step, cost, accuracy, symbols.

    Where a task has longer sequences too, the same of these: ``longer_cost`` and so on.
    """
    return _read_lines(Path(folder) / TESTS, ("step", "cost"))


def _read_lines(path: Path, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    try:
        return parse(read_bytes(path), keys)
    except OSError:
        return []


def parse(content: bytes, keys: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The lines of a log up to the first that is not whole."""
    records: list[dict[str, Any]] = []
    for line in content.split(b"\n")[:-1]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(record, dict) or not {"step", *keys} <= record.keys():
            break
        if not all(type(value) in (int, float) and abs(value) < 1e300 for value in record.values()):
            break
        records.append(record)
    return records


def last_step(folder: str | os.PathLike[str]) -> int:
    """The last step in the log of the run in ``folder``; 0 if there is none."""
    records = _read_lines(Path(folder) / "log.jsonl", ())
    return int(records[-1]["step"]) if records else 0


def versions() -> dict[str, Any]:
    """What a run stands on."""
    packages = ("torch", "numpy", "numba", "lightning-fabric")
    found: dict[str, Any] = {"python": platform.python_version(), "platform": platform.platform()}
    found["associative-lstm"] = __version__
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    found["processes"] = int(os.environ.get("WORLD_SIZE", "1"))
    with contextlib.suppress(ImportError):  # without Numba nothing is compiled
        from associative_lstm.kernels.compiler.target import described

        found |= described()
    return found
