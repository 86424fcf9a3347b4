"""The command, run in children of one process that has imported everything and computed nothing.

To import PyTorch takes seconds, to fork a few milliseconds. PyTorch's threads do not survive a fork, so this process
never computes with it; its children do.
"""

import contextlib
import ctypes
import importlib
import io
import json
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_LIBC = ctypes.CDLL(None, use_errno=True)

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
    "PYTHONDONTWRITEBYTECODE": "1",
    # Nothing is downloaded: nobody listens there.
    **{f"{name}_proxy": "http://127.0.0.1:9" for name in ("http", "https", "HTTP", "HTTPS")},
}


def entry_point() -> str:
    """The function that is the command, as `module:function`."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    return str(scripts["alstm"])


def die_with_parent(number: int) -> None:
    """Have this process get a signal when the one that forked it ends."""
    _LIBC.prctl(1, number)


class Place:
    """A new folder in which one case happens: the working directory, a home, and files of the user's beside."""

    def __init__(self, parent: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=parent, prefix="case-"))
        self.work, self.home = self.folder / "work", self.folder / "home"
        for folder in (self.work, self.home):
            folder.mkdir()

    def remove(self) -> None:
        for folder, _, _ in os.walk(self.folder):  # some cases take rights away
            os.chmod(folder, 0o700)
        shutil.rmtree(self.folder, ignore_errors=True)


class Limits(NamedTuple):
    """What a child may have."""

    memory: int | None = None
    """Bytes beyond what the process has already when it starts."""
    file_size: int = 64 * 2**20


class Streams(NamedTuple):
    """What a child's output goes to: `file`, `gone` (a pipe without a reader), `full` (a full disk), `closed`."""

    out: str = "file"
    err: str = "file"
    encoding: str = "utf-8"


class Server:
    """Starts the command, in forked children or as a process of its own."""

    def __init__(self, entry: str) -> None:
        self.module, self.function = entry.split(":")
        os.environ.update(ENVIRONMENT)

    def load(self) -> None:
        """Import all of the package."""
        import associative_lstm

        for module in pkgutil.walk_packages(associative_lstm.__path__, "associative_lstm."):
            if "triton" not in module.name:  # which the extra gpu brings
                importlib.import_module(module.name)
        importlib.import_module(self.module)

    def warm(self, commands: Sequence[Sequence[str]], parent: Path) -> None:
        """Run ``commands`` in one child, which compiles kernels, and import what it came to import."""
        listed = parent / "modules.json"

        def run_all() -> None:
            main = self._main()
            for arguments in commands:
                sys.argv = ["alstm", *arguments]
                if code := main():
                    raise SystemExit(code)
            listed.write_text(json.dumps(sorted(sys.modules)))

        child = self.start([], Place(parent), main=run_all, limits=Limits(file_size=2**40))
        if child.wait(900) != 0:
            raise SystemExit(f"the command does not work at all: {child.err()}")
        for name in json.loads(listed.read_text()):
            with contextlib.suppress(Exception):
                importlib.import_module(name)

    def _main(self) -> Callable[[], object]:
        return getattr(importlib.import_module(self.module), self.function)

    def start(
        self,
        arguments: Sequence[str],
        place: Place,
        *,
        limits: Limits = Limits(),  # noqa: B008 (a tuple)
        streams: Streams = Streams(),  # noqa: B008 (a tuple)
        prepare: Callable[[], None] | None = None,
        own_process: bool = False,
        main: Callable[[], object] | None = None,
    ) -> "Child":
        """Start `alstm ARGUMENTS` in ``place``. Returns once the command's first line is about to run."""
        sys.stdout.flush()
        sys.stderr.flush()
        ready, told = os.pipe()
        pid = os.fork()
        if pid:
            os.close(told)
            os.read(ready, 1)  # or the end of the file, if it ends before
            os.close(ready)
            return Child(pid, arguments, place)
        code = 99  # of no command
        try:
            os.close(ready)
            _become_a_process(place, streams)
            _limit(limits)
            if own_process:
                self._execute(arguments, told)
            if prepare is not None:
                prepare()
            sys.argv = ["alstm", *arguments]
            os.write(told, b".")
            os.close(told)
            code = _as_a_program(main or self._main())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _execute(self, arguments: Sequence[str], told: int) -> None:
        os.set_inheritable(told, True)
        script = (
            f"import os, sys; os.write({told}, b'.'); os.close({told}); sys.argv[0] = 'alstm'\n"
            f"from {self.module} import {self.function}\n"
            f"sys.exit({self.function}())"
        )
        os.execv(sys.executable, [sys.executable, "-c", script, *arguments])


def _become_a_process(place: Place, streams: Streams) -> None:
    os.setsid()
    die_with_parent(signal.SIGKILL)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(place.work)
    os.environ["HOME"] = str(place.home)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, kind, name in ((1, streams.out, "stdout"), (2, streams.err, "stderr")):
        if kind == "gone":
            reader, writer = os.pipe()
            os.close(reader)
        elif kind == "full":
            writer = os.open("/dev/full", os.O_WRONLY)
        else:
            writer = os.open(place.folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(writer, number)
        os.close(writer)
        if kind == "closed":
            os.close(number)
            _set_stream(name, None)  # as Python does it
            continue
        buffered = name == "stdout"
        file = io.TextIOWrapper(
            open(number, "wb", closefd=False),  # noqa: SIM115 (as long as the process)
            encoding=streams.encoding,
            errors="strict" if buffered else "backslashreplace",
            line_buffering=not buffered,
        )
        _set_stream(name, file)


def _set_stream(name: str, file: io.TextIOWrapper | None) -> None:
    setattr(sys, name, file)
    setattr(sys, f"__{name}__", file)


def _limit(limits: Limits) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_size, limits.file_size))
    if limits.memory is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if os.geteuid() == 0:  # what a file's mode forbids is then forbidden, as for everybody else
        header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        _LIBC.capset(header, nothing)


def _as_a_program(main: Callable[[], object]) -> int:
    """Call ``main`` as the script of a package does, and end as Python would."""
    try:
        result = main()
    except SystemExit as error:
        result = error.code
    except KeyboardInterrupt:
        _show_error()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        _show_error()
        result = 1
    if result is not None and not isinstance(result, int):
        with contextlib.suppress(OSError, ValueError):
            print(result, file=sys.stderr or sys.stdout)
        result = 1
    code = int(result or 0)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            code = 120
    return code & 0xFF


def _show_error() -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # nobody reads it
            traceback.print_exc()


class Child:
    """A command that was started."""

    def __init__(self, pid: int, arguments: Sequence[str], place: Place) -> None:
        self.pid, self.arguments, self.place = pid, list(arguments), place
        self.code: int | None = None

    def poll(self) -> int | None:
        """The exit code as `subprocess` has it: negative for a signal; None while the child runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._ended(status)
        return self.code

    def _ended(self, status: int) -> None:
        self.code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(OSError):  # what it has started and left
            os.killpg(self.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> int | None:
        """The exit code; None, and the child is killed, if it takes longer."""
        deadline = time.monotonic() + seconds
        pause = 0.0005
        while self.poll() is None:
            if time.monotonic() > deadline:
                self.kill()
                return None
            time.sleep(pause)
            pause = min(pause * 1.2, 0.02)
        return self.code

    def send(self, number: int) -> None:
        if self.code is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        if self.code is None:
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            self._ended(os.waitpid(self.pid, 0)[1])

    def use(self) -> tuple[float, bool]:
        """Seconds of processor time, and whether the child waits for something that is not a child of its own."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        except OSError:
            return 0.0, False
        seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return seconds, fields[0] == "S" and not children.strip()

    def out(self) -> str:
        return self._read("stdout")

    def err(self) -> str:
        return self._read("stderr")

    def _read(self, name: str) -> str:
        try:
            return (self.place.folder / name).read_bytes().decode(errors="replace")
        except OSError:
            return ""
