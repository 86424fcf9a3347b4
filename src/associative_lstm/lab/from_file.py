"""A user's own tasks and networks: a Python file, named on the command line, that registers them.

Nothing but the user's word runs such a file: a run does not remember it, since the run may be somebody else's.
"""

import itertools
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from types import ModuleType

from associative_lstm.lab.files import RunError, as_run_error
from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.tasks import TASKS

_loaded: dict[Path, tuple[set[str], set[str]]] = {}
"""By file, the tasks and the networks that it has registered."""

_numbers = itertools.count()  # two files may have one name


def load(files: Sequence[Path]) -> None:
    """Run each file, so that the tasks and networks that it registers are known."""
    for file in files:
        _load(file.absolute())


def _load(file: Path) -> None:
    _forget(*_loaded.pop(file, (set(), set())))
    tasks, networks = set(TASKS), set(NETWORKS)
    if not file.is_file():
        raise RunError(f"--from {file} is not a file")
    with as_run_error(f"--from {file} cannot be read"):
        text = file.read_bytes()
    try:
        module = ModuleType(f"own_{next(_numbers)}_{file.stem.replace('.', '_')}")
        module.__file__ = str(file)
        sys.modules[module.__name__] = module  # where dataclasses and the like look for the names of a class
        exec(compile(text, file, "exec"), module.__dict__)
        if (tasks, networks) == (set(TASKS), set(NETWORKS)):
            raise RunError(f"--from {file} registers no task and no network")
    except (Exception, SystemExit) as error:
        _forget(set(TASKS) - tasks, set(NETWORKS) - networks)
        if isinstance(error, RunError):
            raise
        raise RunError(f"--from {told(error, file)}") from error
    _loaded[file] = set(TASKS) - tasks, set(NETWORKS) - networks


def _forget(tasks: set[str], networks: set[str]) -> None:
    for name in tasks:
        del TASKS[name]
    for name in networks:
        del NETWORKS[name]


def forget() -> None:
    """As if no file had been loaded."""
    while _loaded:
        _forget(*_loaded.popitem()[1])


def flags() -> str:
    """What a command line needs so that all that is known here is known again."""
    return "".join(f" --from {quote(str(file))}" for file in _loaded)


def blamed(error: BaseException) -> str | None:
    """Where in a file of the user's own an error came from, and what it was; None if from nowhere there."""
    lines = _lines(error)
    return next((told(error, file) for file in _loaded if str(file) in lines), None)


def told(error: BaseException, file: Path) -> str:
    """An error by the line of ``file`` that led to it."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}, line {error.lineno}: {error.msg}"
    line = _lines(error).get(str(file))
    name, text = type(error).__name__, str(error)
    return f"{file}{f', line {line}' if line else ''}: {name}{f': {text}' if text else ''}"


def _lines(error: BaseException) -> dict[str, int]:
    """By file, the line that an error passed through last."""
    return {frame.filename: frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__)}
