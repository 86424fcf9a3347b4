"""The paper's tasks, one file each, all giving the same named :class:`Batch`."""

import difflib
from typing import Any

from associative_lstm.lab.tasks.arithmetic import Arithmetic
from associative_lstm.lab.tasks.assignment import Assignment
from associative_lstm.lab.tasks.base import Batch, Stream, Task
from associative_lstm.lab.tasks.copy import Copy, VariableCopy
from associative_lstm.lab.tasks.episodic import EpisodicTask
from associative_lstm.lab.tasks.ntm_copy import NTMCopy
from associative_lstm.lab.tasks.online import ONLINE_VOCABULARY, OnlineTask, mark
from associative_lstm.lab.tasks.wikipedia import Wikipedia
from associative_lstm.lab.tasks.xml import XML

TASKS: dict[str, type[Task]] = {
    task.name: task for task in (Copy, VariableCopy, XML, Assignment, Arithmetic, Wikipedia, NTMCopy)
}
"""Every task by name."""


def register(task: type[Task]) -> type[Task]:
    """Make a task of your own known by its name (a class decorator)."""
    if task.name in TASKS and TASKS[task.name] is not task:
        raise ValueError(f"a task named {task.name!r} exists already")
    TASKS[task.name] = task
    return task


def make_task(name: str, **options: Any) -> Task:
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
