"""The memory of a training step against what it has to save: pre-activations and traces of every step."""

import os
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from associative_lstm.lab.bench.timing import training_step
from associative_lstm.nn import AssociativeLSTM


class StepMemory(NamedTuple):
    """Bytes: the most that a training step held at once beyond what was there before, and what it had to save."""

    peak: int
    saved: int

    @property
    def ratio(self) -> float:
        """peak / saved."""
        return self.peak / self.saved


def saved_bytes(layer: AssociativeLSTM, x: Tensor) -> int:
    """The bytes of the pre-activations and traces of every step of x ``(T, B, input)``, of all layers.

    With ``keep_states_every`` = k > 1: of the traces of every k-th step, and of one stretch of k steps in between,
    in the one layer that is at work.

    >>> saved_bytes(AssociativeLSTM(10, 128, num_copies=4), torch.zeros(100, 2, 10))  # 100 * 2 * (576 + 512) * 4
    870400
    """
    steps, batch, _ = x.shape
    every = layer.keep_states_every
    traces = layer.num_copies * layer.hidden_size
    step = layer.rows.total + traces
    sequences = layer.num_layers * (2 if layer.bidirectional else 1)
    if every == 1:
        numbers = sequences * steps * step
    else:
        numbers = sequences * -(-steps // every) * traces + min(every, steps) * step
    return numbers * batch * x.element_size()


def step_memory(layer: AssociativeLSTM, x: Tensor) -> StepMemory:
    """Measure a training step on x ``(T, B, input)``, and say what it had to save.

    >>> memory = step_memory(AssociativeLSTM(10, 32), torch.randn(200, 2, 10))
    >>> memory.saved < memory.peak
    True
    """
    return StepMemory(peak_bytes(layer, x), saved_bytes(layer, x))


def peak_bytes(network: nn.Module, x: Tensor) -> int:
    """The most that a training step (forward, backward, Adam) of any network holds at once beyond what was there.

    PyTorch's own record of its allocations is added up, so that the figure is the same at every call. Working space
    inside the compiled routines, which does not grow with the sequence, is not in it.
    """
    os.environ.setdefault(
        "KINETO_LOG_LEVEL", "99"
    )  # the recorder would write two lines to stderr at every use
    step = training_step(network, x)
    step()  # compiles, and makes the optimiser's own state
    network.zero_grad()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    held = peak = 0
    changes = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(changes, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


SETTINGS: list[dict[str, Any]] = [
    {"steps": 121, "batch": 2, "hidden_size": 128, "num_copies": 1},
    {"steps": 121, "batch": 2, "hidden_size": 128, "num_copies": 8},
    {"steps": 1600, "batch": 8, "hidden_size": 256, "num_copies": 4},
    {"steps": 1600, "batch": 8, "hidden_size": 256, "num_copies": 4, "keep_states_every": 40},
]


def peaks() -> list[dict[str, Any]]:
    """The memory of training steps of several sizes, and of one that keeps every 40th state only."""
    rows = []
    for setting in SETTINGS:
        options = {name: value for name, value in setting.items() if name not in ("steps", "batch")}
        layer = AssociativeLSTM(10, **options)
        peak, saved = step_memory(layer, torch.randn(setting["steps"], setting["batch"], 10))
        rows.append({"setting": setting, "peak": peak, "saved": saved})
    return rows
