"""Where a run is: told a few times a second to whoever wants to show it."""

import time
from collections.abc import Callable
from typing import NamedTuple

from associative_lstm.lab.run.step import Trainer


class Progress(NamedTuple):
    """Where a run is."""

    step: int
    steps: int
    cost: float
    symbols_per_second: float
    seconds_left: float
    tested: float | None = None
    """During an evaluation, the share of the test text that has been read."""


Show = Callable[[Progress], None]


class Meter:
    """Tells ``show`` a few times a second where the run is."""

    def __init__(self, trainer: Trainer, show: Show | None) -> None:
        self._trainer, self._show, self._next = trainer, show, 0.0
        self._cost, self._logged = float("nan"), 0.0
        self._start: tuple[float, int, float] | None = None
        self._last = Progress(trainer.step, trainer.config.steps, self._cost, 0.0, 0.0)

    def logged(self, cost: float) -> None:
        self._cost = cost
        self._logged += self._trainer.totals.symbols

    def step(self) -> None:
        if self._show is None:
            return
        now, totals = time.perf_counter(), self._trainer.totals
        step, steps = self._trainer.step, self._trainer.config.steps
        symbols = self._logged + totals.symbols
        if self._start is None:  # the first step may have compiled kernels: the clock starts after it
            self._start = now, step, symbols
            return
        start, first, before = self._start
        cost = totals.bits / max(totals.units, 1.0) if totals.steps > 20 else self._cost
        rate, seconds = (symbols - before) / (now - start), (now - start) / (step - first) * (steps - step)
        self._last = Progress(step, steps, cost, rate, seconds)
        self._tell(self._last)

    def test(self, share: float) -> None:
        self._tell(self._last._replace(step=self._trainer.step, tested=share))

    def _tell(self, progress: Progress) -> None:
        at_its_end = progress.step == progress.steps and progress.tested is None
        if self._show is None or (time.perf_counter() < self._next and not at_its_end):
            return
        self._next = time.perf_counter() + 0.2
        try:
            self._show(progress)
        except OSError:  # nobody is there to see it, as after a terminal was closed: no reason to stop
            self._show = None
