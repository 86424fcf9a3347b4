"""The registry of tasks, one file each, all giving the same named :class:`Batch`; names are there without PyTorch."""

import difflib
import importlib
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from associative_lstm.lab.tasks.arithmetic import Arithmetic
    from associative_lstm.lab.tasks.assignment import Assignment
    from associative_lstm.lab.tasks.base import Batch, Stream, Task
    from associative_lstm.lab.tasks.copy import Copy, VariableCopy
    from associative_lstm.lab.tasks.episodic import EpisodicTask
    from associative_lstm.lab.tasks.ntm_copy import NTMCopy
    from associative_lstm.lab.tasks.online import ONLINE_VOCABULARY, OnlineTask, mark
    from associative_lstm.lab.tasks.wikipedia import Wikipedia
    from associative_lstm.lab.tasks.xml import XML

_OURS = {
    "copy": "Copy",
    "copy-variable": "VariableCopy",
    "xml": "XML",
    "assignment": "Assignment",
    "arithmetic": "Arithmetic",
    "wikipedia": "Wikipedia",
    "ntm-copy": "NTMCopy",
}
_HOMES = {
    "ONLINE_VOCABULARY": "online",
    "XML": "xml",
    "Arithmetic": "arithmetic",
    "Assignment": "assignment",
    "Batch": "base",
    "Copy": "copy",
    "EpisodicTask": "episodic",
    "NTMCopy": "ntm_copy",
    "OnlineTask": "online",
    "Stream": "base",
    "Task": "base",
    "VariableCopy": "copy",
    "Wikipedia": "wikipedia",
    "mark": "online",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


class _Tasks(MutableMapping[str, "type[Task]"]):
    """Task classes by name, each imported when it is asked for."""

    def __init__(self) -> None:
        self._known: dict[str, str | type[Task]] = dict(_OURS)

    def __getitem__(self, name: str) -> "type[Task]":
        found = self._known[name]
        if isinstance(found, str):
            self._known[name] = found = __getattr__(found)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __setitem__(self, name: str, task: "type[Task]") -> None:
        self._known[name] = task

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


TASKS = _Tasks()
"""Every task by name."""


def register(task: "type[Task]") -> "type[Task]":
    """Make a task of your own known by its name (a class decorator)."""
    if task.name in TASKS and TASKS[task.name] is not task:
        raise ValueError(f"a task named {task.name!r} exists already")
    missing = [what for what in ("description", "episodic", "chance") if not hasattr(task, what)]
    if missing := [*missing, *sorted(task.__abstractmethods__)]:
        raise ValueError(f"task {task.name!r} has no {missing[0]}")
    TASKS[task.name] = task
    return task


def make_task(name: str, **options: Any) -> "Task":
    """The task of that name; an unknown name is an error with the nearest one.

    >>> make_task("assignment", window=50).window
    50
    >>> make_task("asignment")
    Traceback (most recent call last):
        ...
    ValueError: unknown task 'asignment', did you mean 'assignment'?
    """
    if name not in TASKS:
        near = difflib.get_close_matches(name, TASKS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(TASKS)}"
        raise ValueError(f"unknown task {name!r}, {hint}")
    return TASKS[name](**options)


__all__ = [
    "ONLINE_VOCABULARY",
    "TASKS",
    "XML",
    "Arithmetic",
    "Assignment",
    "Batch",
    "Copy",
    "EpisodicTask",
    "NTMCopy",
    "OnlineTask",
    "Stream",
    "Task",
    "VariableCopy",
    "Wikipedia",
    "make_task",
    "mark",
    "register",
]
