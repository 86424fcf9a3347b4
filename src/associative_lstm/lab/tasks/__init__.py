"""The registry of tasks, one file each, all giving the same named :class:`Batch`; names are there without PyTorch."""

import importlib
from collections import UserDict
from typing import TYPE_CHECKING, Any

from associative_lstm.lab.words import nearest

if TYPE_CHECKING:
    from associative_lstm.lab.tasks.base import Task

_MODULES = {
    "arithmetic": ("Arithmetic",),
    "assignment": ("Assignment",),
    "base": ("Batch", "Stream", "Task"),
    "copy": ("Copy", "VariableCopy"),
    "episodic": ("EpisodicTask",),
    "fixed": ("FixedTask",),
    "mad": ("Compression", "FuzzyRecall", "InContextRecall", "NoisyRecall", "SelectiveCopying"),
    "mqar": ("MQAR", "StackedMQAR"),
    "ntm_copy": ("NTMCopy",),
    "online": ("ONLINE_VOCABULARY", "OnlineTask", "mark"),
    "state_tracking": ("ModularArithmetic", "Parity", "SwapsOfFive"),
    "wikipedia": ("Wikipedia",),
    "xml": ("XML",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


class _Tasks(UserDict[str, Any]):
    """Task classes by name, each imported when it is asked for."""

    def __getitem__(self, name: str) -> "type[Task]":
        found = self.data[name]
        if isinstance(found, str):
            self.data[name] = found = __getattr__(found)
        return found


TASKS = _Tasks(
    {
        "copy": "Copy",
        "copy-variable": "VariableCopy",
        "xml": "XML",
        "assignment": "Assignment",
        "arithmetic": "Arithmetic",
        "wikipedia": "Wikipedia",
        "ntm-copy": "NTMCopy",
        "mqar": "MQAR",
        "mqar-stacked": "StackedMQAR",
        "mad-recall": "InContextRecall",
        "mad-fuzzy": "FuzzyRecall",
        "mad-noisy": "NoisyRecall",
        "mad-copying": "SelectiveCopying",
        "mad-compression": "Compression",
        "parity": "Parity",
        "modular-arithmetic": "ModularArithmetic",
        "s5": "SwapsOfFive",
    }
)
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
        raise ValueError(f"unknown task {name!r}, {nearest(name, TASKS)}")
    return TASKS[name](**options)
