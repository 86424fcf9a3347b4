"""The runs behind the learning curves: which are to be made, which rate is a curve's best, and what they logged."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from associative_lstm.lab.experiments.learning.curves import BEYOND, Curve
from associative_lstm.lab.run.config import Config
from associative_lstm.lab.run.folder import read_config, read_log, read_tests
from associative_lstm.lab.run.packed import is_file, is_run, read_bytes
from associative_lstm.lab.sweep.jobs import DIVERGED, Execute, Job, Show, is_finished, run_grid


@dataclass(frozen=True, eq=False)
class Run:
    """What a run logged, interval by interval; ``diverged`` is the sentence with which it ended, if it did."""

    folder: Path
    config: Config
    step: np.ndarray
    cost: np.ndarray
    answer: np.ndarray | None
    seconds: np.ndarray
    diverged: str | None
    gradient_norm: np.ndarray = field(default_factory=lambda: np.array([]))

    @property
    def steps(self) -> int:
        """The minibatches made so far."""
        return int(self.step[-1]) if len(self.step) else 0

    def last(self, share: float, *, until: int) -> float:
        """The mean cost over the last ``share`` of the minibatches up to ``until``; infinite if not made."""
        if self.steps < until:
            return float("inf")
        chosen = (self.step > (1 - share) * until) & (self.step <= until)
        return float(self.cost[chosen].mean())

    @functools.cached_property
    def tests(self) -> dict[int, float]:
        """The cost of the test text, by the minibatch after which it was measured, where there is such a text."""
        return {test["step"]: test["cost"] for test in read_tests(self.folder)}


def smoothed(values: np.ndarray, lines: int) -> np.ndarray:
    """The mean over the last so many ``lines`` of a log before each: as many values less as that takes."""
    return np.convolve(values, np.full(lines, 1 / lines), mode="valid")


def means(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The mean over each stretch of a log, which begins at ``starts`` and ends where the next one does.

    >>> means(np.array([1.0, 3.0, 5.0]), np.array([0, 2]))
    array([2., 5.])
    """
    if not len(values):
        return values
    return np.add.reduceat(values, starts) / np.diff(starts, append=len(values))


def read_run(folder: Path) -> Run:
    """The run in ``folder``, also while it is being made."""
    log = read_log(folder)

    def column(key: str) -> np.ndarray:
        return np.array([np.nan if line.get(key) is None else line[key] for line in log], dtype=float)

    reason = folder / DIVERGED
    return Run(
        folder,
        read_config(folder),
        np.array([line["step"] for line in log], dtype=int),
        column("cost"),
        column("answer") if log and "answer" in log[0] else None,
        column("seconds"),
        read_bytes(reason).decode().strip() if is_file(reason) else None,
        column("gradient_norm"),
    )


@dataclass(frozen=True, eq=False)
class CurveRuns:
    """A curve with its runs: those of the sweep by rate, and those of every seed with the best rate.

    ``runner_up`` is the second best of the rates that were compared last.
    """

    curve: Curve
    sweep: dict[float, Run]
    rate: float | None
    runs: list[Run]
    runner_up: float | None = None

    @property
    def finished(self) -> bool:
        """Whether every run has all its minibatches, or has diverged."""
        whole = [run for run in self.runs if run.diverged or run.steps >= self.curve.steps]
        return len(whole) == len(self.curve.seeds)

    @property
    def always_diverged(self) -> bool:
        """Whether the network has diverged with every rate before the end of the sweep."""
        ends = [run.diverged and np.isinf(self.sweep_cost(rate)) for rate, run in self.sweep.items()]
        return len(ends) >= len(self.curve.rates) and all(ends)

    def sweep_cost(self, rate: float) -> float:
        """What the rates are compared by; infinite for a run that diverged before the end of the sweep."""
        return _sweep_cost(self.sweep[rate], self.curve)


SHARE = 0.2
"""Rates are compared by the mean cost over this share of the minibatches, the last."""


Read = Callable[[Path], Run]


def read_curve(runs: Path, curve: Curve, read: Read = read_run) -> CurveRuns:
    """What there is of a curve under the folder ``runs``; nothing need be finished."""
    jobs = [*sweep_jobs(runs, curve), *beyond_jobs(runs, curve, read)]
    sweep = {job.config.learning_rate: read(job.folder) for job in jobs if is_run(job.folder)}
    found = CurveRuns(curve, sweep, None, [])
    if not all(is_finished(job) for job in jobs):
        return found
    rates, _, settled = _contest(found)
    if not settled or not rates:
        return found
    best, second, *_ = *rates, None
    folders = [curve.folder(runs, best, seed) for seed in curve.seeds[1:]]
    its = [sweep[best], *(read(f) for f in folders if is_run(f))]
    return CurveRuns(curve, sweep, best, its, second)


class Logs:
    """The runs under a folder, each read once, and each curve once: for pictures, tables and claims alike.

    ``prepare`` is what is done to every curve before it is looked for: other seeds, tiny networks.
    """

    def __init__(self, folder: Path, prepare: Callable[[Curve], Curve] = lambda planned: planned) -> None:
        self.folder = folder
        self.run: Read = functools.cache(read_run)
        self.prepare = prepare
        self._curves: dict[Curve, CurveRuns] = {}

    def curve(self, planned: Curve) -> CurveRuns:
        """What there is of a curve."""
        prepared = self.prepare(planned)
        if prepared not in self._curves:
            self._curves[prepared] = read_curve(self.folder, prepared, self.run)
        return self._curves[prepared]

    def name(self, folder: Path) -> str:
        """The path of a run under the folder of all."""
        return folder.relative_to(self.folder).as_posix()


def sweep_jobs(runs: Path, curve: Curve) -> list[Job]:
    """The first seed with every rate."""
    return [_sweep_job(runs, curve, rate) for rate in curve.rates]


def _sweep_job(runs: Path, curve: Curve, rate: float) -> Job:
    seed = curve.seeds[0]
    return Job(curve.config(rate, seed, curve.sweep_steps), curve.folder(runs, rate, seed))


def beyond_jobs(runs: Path, curve: Curve, read: Read = read_run) -> list[Job]:
    """The first seed with the rate beyond the sweep, if a finished sweep has its best rate at that end."""
    jobs = sweep_jobs(runs, curve)
    if not all(is_finished(job) for job in jobs):
        return []
    costs = {job.config.learning_rate: _sweep_cost(read(job.folder), curve) for job in jobs}
    best = min(costs, key=costs.__getitem__)
    return [_sweep_job(runs, curve, BEYOND[best])] if best in BEYOND and np.isfinite(costs[best]) else []


def _sweep_cost(run: Run, curve: Curve) -> float:
    return run.last(SHARE, until=curve.sweep_steps)


def _contest(c: CurveRuns) -> tuple[list[float], int, bool]:
    """The rates of a finished sweep that are left, after how many minibatches they are compared, whether they were.

    If they were, the best comes first. None is left if all have diverged.
    """
    rates = [rate for rate in c.sweep if np.isfinite(c.sweep_cost(rate))]
    until = c.curve.sweep_steps
    for doubling in range(c.curve.doublings + 1):
        until = min(c.curve.sweep_steps * 2**doubling, c.curve.steps)
        if not all(c.sweep[rate].diverged or c.sweep[rate].steps >= until for rate in rates):
            return rates, until, False
        costs = {rate: c.sweep[rate].last(SHARE, until=until) for rate in rates}
        rates = sorted(rates, key=costs.__getitem__)
        close = [rate for rate in rates if costs[rate] <= c.curve.close * costs[rates[0]]]
        if len(close) <= 1 or until == c.curve.steps:
            break
        rates = close
    return rates, until, True


def contest_jobs(runs: Path, curve: Curve) -> list[Job]:
    """The first seed with every rate that is still too close to the best, for longer."""
    found = read_curve(runs, curve)
    swept = all(is_finished(job) for job in (*sweep_jobs(runs, curve), *beyond_jobs(runs, curve)))
    if found.rate is not None or not swept:
        return []
    rates, until, _ = _contest(found)
    seed = curve.seeds[0]
    return [Job(curve.config(rate, seed, until), curve.folder(runs, rate, seed)) for rate in rates]


def seed_jobs(runs: Path, curve: Curve) -> list[Job]:
    """Every seed with the best rate, which a finished sweep has told; none if every rate has diverged."""
    found = read_curve(runs, curve)
    wanted = [(found.rate, seed) for seed in curve.seeds]
    if curve.with_runner_up:
        wanted.append((found.runner_up, curve.seeds[0]))
    return [
        Job(curve.config(rate, seed, curve.steps), curve.folder(runs, rate, seed))
        for rate, seed in wanted
        if rate is not None
    ]


def make_runs(
    runs: Path, curves: Iterable[Curve], execute: Execute, show: Show | None = None
) -> Sequence[str]:
    """Make what is missing of the curves: sweeps, rates beyond, contests, seeds. Why any could not be made."""
    unique = list(dict.fromkeys(curves))
    failed: list[str] = []
    before: list[Job] = []
    contests = max((curve.doublings for curve in unique), default=0)
    waves = sweep_jobs, beyond_jobs, *(contest_jobs,) * contests, seed_jobs
    for wave in waves:  # each decided by the runs of the one before
        jobs = [job for curve in unique for job in wave(runs, curve)]
        later = [] if wave is seed_jobs else [config for curve in unique for config in _seeds_to_come(curve)]
        failed += run_grid(jobs, execute, show, before, later)
        before += jobs
    return failed


def _seeds_to_come(curve: Curve) -> list[Config]:
    """What a curve needs after its sweep, whatever its best rate: the rest of the first seed, and the others."""
    first, *others = curve.seeds
    rest = curve.config(curve.rates[0], first, max(1, curve.steps - curve.sweep_steps))
    return [
        *(rest,) * (1 + curve.with_runner_up),
        *(curve.config(curve.rates[0], seed, curve.steps) for seed in others),
    ]
