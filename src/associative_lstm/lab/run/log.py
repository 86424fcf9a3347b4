"""The logs of a run while it is written: opened, appended to, and cut back to where a checkpoint has them."""

import contextlib
import hashlib
import itertools
import json
import os
import re
import socket
import time
from collections.abc import Collection
from pathlib import Path
from shlex import quote
from typing import IO, Any

from associative_lstm.lab.files import RunError, as_run_error, open_own, remove_temporaries, write_atomically
from associative_lstm.lab.run.config import Config
from associative_lstm.lab.run.folder import (
    APPENDED,
    LOGS,
    REPLACED,
    TESTS,
    VERSIONS,
    WEIGHTS,
    hold,
    last_step,
    parse,
    read_config,
    read_tests,
    versions,
)
from associative_lstm.lab.run.packed import is_run
from associative_lstm.lab.words import counted


class RunLog(contextlib.AbstractContextManager["RunLog"]):
    """A run folder opened for writing, by one process at a time.

    Args:
        folder: the folder; it is made if need be, and a new run finds it empty.
        config: the configuration of a new run; None to open an existing one.
    """

    def __init__(self, folder: str | os.PathLike[str], config: Config | None = None) -> None:
        self.folder = Path(folder)
        if config is None and not is_run(self.folder):
            raise RunError(f"{self.folder} is not a run: it has no config.toml")
        if config is not None and _holds_something_else(self.folder):
            raise RunError(f"{self.folder} is not empty and holds no run: choose another folder")
        self._open_files = hold(self.folder)
        self._files: dict[str, IO[bytes]] = {}
        self._events: _Events | None = None
        try:
            self._open(config)
        except BaseException:
            self.close()
            raise

    def _open(self, config: Config | None) -> None:
        path = self.folder / "config.toml"
        if config is None:
            self.config = read_config(self.folder)
        elif path.exists():
            raise RunError(
                f"{self.folder} already holds a run: continue it with `alstm resume {quote(str(self.folder))}`, "
                "or choose another folder"
            )
        else:
            self.config = config
            write_atomically(path, config.to_toml().encode())  # the first: with it, the folder is a run
        remove_temporaries(self.folder, REPLACED)

    def reconfigure(self, config: Config) -> None:
        """Change the configuration of the run: to make it longer."""
        self.config = config
        write_atomically(self.folder / "config.toml", config.to_toml().encode())

    def misfits(self, positions: dict[str, Any]) -> dict[str, str]:
        """What is wrong with each log that does not begin with what a checkpoint knows of it, by the log's name."""
        known = [*LOGS, *([TESTS] if self.config.test_every is not None and TESTS in positions else [])]
        found = {name: _misfit(self.folder / name, *positions[name]) for name in known}
        return {name: what for name, what in found.items() if what}

    def start(
        self,
        positions: dict[str, Any] | None = None,
        step: int = 0,
        *,
        begin_anew: Collection[str] = (),
        keep: bool = False,
    ) -> list[Path]:
        """Open the logs at ``positions``, as a checkpoint of ``step`` has them; what was written after is dropped.

        Not so the evaluation that belongs to the checkpoint itself, which is made after it: if it is there, it stays.
        Logs to ``begin_anew`` are kept beside under new names, and with ``keep`` all others of which anything is
        dropped; these names are returned. Without positions the run itself begins anew.
        """
        ends = {}
        for name in (*LOGS, *([TESTS] if self.config.test_every is not None else [])):
            known = positions is not None and name in positions and name not in begin_anew
            ends[name] = positions[name][0] if positions is not None and known else 0
        if TESTS in ends and TESTS not in begin_anew:
            ends[TESTS] = _end_of_test(self.folder / TESTS, ends[TESTS], step)
        if positions is None:
            ends |= dict.fromkeys((VERSIONS, WEIGHTS), 0)  # which are replaced
        kept = []
        with contextlib.ExitStack() as files, as_run_error(f"{self.folder} cannot be written"):
            for name, end in ends.items():
                path = self.folder / name
                if (keep or name in begin_anew) and path.exists() and path.stat().st_size > end:
                    kept.append(_keep(path))
            if positions is None:
                described = json.dumps(versions(), indent=2).encode() + b"\n"
                write_atomically(self.folder / VERSIONS, described)
            for name in ends.keys() & APPENDED:
                self._files[name] = files.enter_context(open_own(self.folder / name))
            events = files.enter_context(open(self.folder / _Events.new_name(), "xb"))
            for name, file in self._files.items():  # once nothing can fail any more
                file.truncate(ends[name])
            if positions is None:
                (self.folder / WEIGHTS).unlink(missing_ok=True)  # of what begins anew
            self._events = _Events(events, last_step(self.folder))
            self._open_files.enter_context(files.pop_all())
        return kept

    def append(self, record: dict[str, Any], seconds: float) -> None:
        """Add one line to the logs and hand it to the system."""
        times = {"step": record["step"], "seconds": round(seconds, 3)}
        with as_run_error(f"the log in {self.folder} cannot be written"):
            for name, line in zip(LOGS, (record, times), strict=True):
                self._files[name].write(json.dumps(line).encode() + b"\n")
                self._files[name].flush()
            if self._events is not None:
                self._events.write(record)

    def append_test(self, record: dict[str, Any]) -> None:
        """Add the line of an evaluation to the log of tests and bring it to the disk."""
        with as_run_error(f"{self.folder / TESTS} cannot be written"):
            self._files[TESTS].write(json.dumps(record).encode() + b"\n")
            self._files[TESTS].flush()
            os.fsync(self._files[TESTS].fileno())
            if self._events is not None:
                told = {f"test_{key}": value for key, value in record.items() if key != "step"}
                self._events.write({"step": record["step"]} | told)

    def positions(self) -> dict[str, Any]:
        """Where the logs end and the digest of what they hold, once they are on the disk: for a checkpoint."""
        for file in self._files.values():
            os.fsync(file.fileno())
        contents = {name: (self.folder / name).read_bytes() for name in self._files}
        return {name: [len(content), _digest(content)] for name, content in contents.items()}

    def tested(self) -> int:
        """The step of the last evaluation, 0 if there is none."""
        tests = read_tests(self.folder)
        return int(tests[-1]["step"]) if tests else 0

    def close(self) -> None:
        """Close the files and let go of the folder."""
        with contextlib.suppress(OSError):  # a full disk has been reported already
            self._open_files.close()

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Events:
    """Scalars for TensorBoard, written without its background thread."""

    @staticmethod
    def new_name() -> str:
        return f"events.out.tfevents.{time.time_ns():020d}.{socket.gethostname()}.{os.getpid()}"

    def __init__(self, file: IO[bytes], step: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = Event, Summary
        self._file = file
        self._writer = RecordWriter(file)
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        # TensorBoard forgets what earlier files say about later steps: the run repeats them.
        start = SessionLog(status=SessionLog.START)
        self._write(Event(wall_time=time.time(), step=step + 1, session_log=start))

    def _write(self, event: Any) -> None:
        self._writer.write(event.SerializeToString())
        self._file.flush()

    def write(self, record: dict[str, Any]) -> None:
        values = [
            self._summary.Value(tag=tag, simple_value=value) for tag, value in record.items() if tag != "step"
        ]
        summary = self._summary(value=values)
        self._write(self._event(wall_time=time.time(), step=record["step"], summary=summary))


def _holds_something_else(folder: Path) -> bool:
    """Whether a folder without a run has anything in it but what the first moment of a killed run leaves there."""
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:  # not there yet, or not to be read: who writes will see
        return False
    left = re.compile(r"lock|\.config\.toml\.[a-z0-9_]{8}\.tmp")
    return "config.toml" not in names and not all(left.fullmatch(name) for name in names)


def _keep(path: Path) -> Path:
    """Copy a file to the first free one of the names ``path.1``, ``path.2``, ..."""
    beside = (path.with_name(f"{path.name}.{k}") for k in itertools.count(1))
    free = next(name for name in beside if not os.path.lexists(name))
    write_atomically(free, path.read_bytes())
    return free


def _misfit(path: Path, end: Any, digest: Any) -> str:
    """What is wrong with a log that should begin with ``end`` bytes of this digest; nothing if it does."""
    if type(end) is not int or end < 0:
        raise ValueError(f"its position in {path.name} is {end!r}")
    if not path.is_file():
        return "is missing" if end else ""
    content = path.read_bytes()
    if len(content) < end:
        return f"has {counted(len(content), 'byte')} and should have {end:,}"
    if _digest(content[:end]) == digest:
        return ""
    whole = len(parse(content[:end]))
    where = f" (line {whole + 1} cannot be read)" if whole < content[:end].count(b"\n") else ""
    return f"is not what was written{where}"


def _end_of_test(path: Path, end: int, step: int) -> int:
    """The end of the line after ``end`` if it is the whole evaluation made at ``step``, otherwise ``end``."""
    content = path.read_bytes()[end:] if path.is_file() else b""
    line, newline, _ = content.partition(b"\n")
    records = parse(line + newline)
    return end + len(line + newline) if records and records[0]["step"] == step else end


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
