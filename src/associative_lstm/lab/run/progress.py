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
        self._trainer, self._show = trainer, show
        self._cost = float("nan")
        self._logged = 0.0
        self._start: tuple[float, int, float] | None = None
        self._next = 0.0
        self._last = Progress(trainer.step, trainer.config.steps, self._cost, 0.0, 0.0)

    def logged(self, cost: float) -> None:
        self._cost = cost
        self._logged += self._trainer.totals.symbols

    def step(self) -> None:
        now, trainer = time.perf_counter(), self._trainer
        totals = trainer.totals
        symbols = self._logged + totals.symbols
        if self._start is None:  # the first step may have compiled kernels: the clock starts after it
            self._start = now, trainer.step, symbols
            return
        if self._show is None or (now < self._next and trainer.step < trainer.config.steps):
            return
        self._next = now + 0.2
        start, first, before = self._start
        cost = totals.bits / max(totals.units, 1.0) if totals.steps > 20 else self._cost
        left = trainer.config.steps - trainer.step
        rate, seconds = (symbols - before) / (now - start), (now - start) / (trainer.step - first) * left
        self._last = Progress(trainer.step, trainer.config.steps, cost, rate, seconds)
        self._tell(self._last)

    def test(self, share: float) -> None:
        now = time.perf_counter()
        if self._show is not None and now >= self._next:
            self._next = now + 0.2
            self._tell(self._last._replace(step=self._trainer.step, tested=share))

    def _tell(self, progress: Progress) -> None:
        try:
            if self._show is not None:
                self._show(progress)
        except OSError:  # nobody is there to see it, as after a terminal was closed: no reason to stop
            self._show = None
