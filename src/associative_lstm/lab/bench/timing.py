"""Times of several things, measured in turns so that a noisy machine is noisy to all of them alike."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

Step = Callable[[], Any]


class Timing(NamedTuple):
    """Seconds of the calls of a step, turn by turn."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The usual one."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Their spread: a quarter was shorter than the first, a quarter longer than the second."""
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return low, high

    def over(self, other: "Timing") -> float:
        """How many times as long as the other: the median over turns, in each of which the machine was the same.

        >>> Timing((2.0, 20.0, 30.0)).over(Timing((1.0, 10.0, 10.0)))  # a machine that got ten times slower
        2.0
        """
        return statistics.median(a / b for a, b in zip(self.seconds, other.seconds, strict=True))


def in_turns(steps: dict[str, Step], *, seconds: float = 3.0, least: int = 7) -> dict[str, Timing]:
    """Call every step in turn, at least ``least`` times and for about ``seconds`` in all, and time each call.

    Before a call is timed the step is called once: in training, too, a step finds the caches as the same step has
    left them, and not as some other network has.

    >>> timings = in_turns({"a": lambda: sum(range(100)), "b": lambda: sum(range(10_000))}, seconds=0.01)
    >>> timings["a"].median < timings["b"].median
    True
    """
    for step in steps.values():  # the first call compiles and allocates
        step()
    times: dict[str, list[float]] = {name: [] for name in steps}
    end = time.perf_counter() + seconds
    while len(next(iter(times.values()))) < least or time.perf_counter() < end:
        for name, step in steps.items():
            step()
            start = time.perf_counter()
            step()
            times[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(seconds)) for name, seconds in times.items()}


def training_step(network: nn.Module, x: Tensor) -> Step:
    """Forward, backward and Adam, as `alstm train` uses it."""
    optimiser = torch.optim.Adam(network.parameters(), fused=True)

    def step() -> None:
        optimiser.zero_grad()
        output, _ = network(x)
        output.sum().backward()
        optimiser.step()
        _wait_for(x)

    return step


def inference_step(network: Callable[[Tensor], Any], x: Tensor) -> Step:
    """Forward without gradients."""

    def step() -> None:
        with torch.no_grad():
            network(x)
        _wait_for(x)

    return step


def _wait_for(x: Tensor) -> None:
    """Until a GPU has done what it was told."""
    if x.is_cuda:
        torch.cuda.synchronize(x.device)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """PyTorch, and with it the fused kernels, on ``count`` threads (also as a decorator)."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
