"""How time grows with the length, the copies, the minibatch and the size; and what a task's batches cost."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from associative_lstm.lab.bench import networks as net
from associative_lstm.lab.bench.timing import in_turns, threads, training_step
from associative_lstm.lab.tasks import TASKS, make_task

BASE = {"steps": 100, "batch": 4, "size": 128, "copies": 4}
RANGES = {
    "steps": [50, 100, 200, 400, 800, 1600],
    "copies": [1, 2, 4, 8, 16, 32],
    "batch": [1, 2, 4, 8, 16, 32, 64],
    "size": [64, 128, 256, 512, 1024],
}


def exponent(values: list[int], times: list[float]) -> float:
    """The slope of log time over log value, least squares: 1 is linear.

    >>> round(exponent([1, 2, 4, 8], [3.0, 6.0, 12.0, 24.0]), 6)
    1.0
    """
    return float(np.polyfit(np.log(values), np.log(times), 1)[0])


def growth(quantity: str, count: int, seconds: float) -> dict[str, Any]:
    """Training steps with one quantity grown and the others as in `BASE`."""
    values = RANGES[quantity]
    steps: dict[str, Callable] = {}
    with threads(count):
        for value in values:
            setting = BASE | {quantity: value}
            layer = net.associative(setting["size"], setting["copies"]).make(10)
            steps[str(value)] = training_step(layer, torch.randn(setting["steps"], setting["batch"], 10))
        timings = in_turns(steps, seconds=seconds, least=5)
    times = [timings[str(value)].median for value in values]
    return {
        "quantity": quantity,
        "threads": count,
        "values": values,
        "milliseconds": [1e3 * t for t in times],
        "exponent": exponent(values, times),
        "last_doubling": math.log2(times[-1] / times[-2]),
    }


def batch_generation(count: int, seconds: float) -> list[dict[str, Any]]:
    """What a task's minibatch costs beside a training step of the Associative LSTM 128 with 4 copies on it."""
    rows = []
    with threads(count):
        for name, kind in TASKS.items():
            if "data" in kind.settings:  # needs a file
                continue
            task = make_task(name)
            stream = task.stream(kind.batch_size, 0)
            batch = next(stream)
            layer = net.associative(128, 4).make(task.input_size)
            x = torch.randn(batch.inputs.shape[0], batch.inputs.shape[1], task.input_size)
            timings = in_turns(
                {"batch": stream.__next__, "step": training_step(layer, x)}, seconds=seconds, least=20
            )
            share = timings["batch"].over(timings["step"])
            rows.append({"task": name, "microseconds": 1e6 * timings["batch"].median, "share": share})
    return rows
