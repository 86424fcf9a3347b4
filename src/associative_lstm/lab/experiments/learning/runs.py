"""The runs behind the learning curves: which are to be made, which rate is a curve's best, and what they logged."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from associative_lstm.lab.experiments.learning.curves import BEYOND, FURTHER, Curve
from associative_lstm.lab.run.config import Config
from associative_lstm.lab.run.folder import read_config, read_log, read_tests
from associative_lstm.lab.run.packed import is_file, is_run, read_bytes
from associative_lstm.lab.sweep.jobs import (
    DIVERGED,
    Execute,
    Job,
    Show,
    has_length,
    is_finished,
    run_grid,
)
from associative_lstm.lab.tasks import TASKS


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
        chosen = (self.step > (1 - share) * until) & (self.step <= until)
        if self.steps < until or not chosen.any():
            return float("inf")
        return float(self.cost[chosen].mean())

    @functools.cached_property
    def tests(self) -> dict[int, float]:
        """The cost of the test text, by the minibatch after which it was measured, where there is such a text."""
        return {test["step"]: test["cost"] for test in read_tests(self.folder)}

    def answers(self, step: int) -> float:
        """The share of the test split that it answered rightly after so many minibatches; 0 if that is not known."""
        found = {test["step"]: test.get("accuracy", 0.0) for test in read_tests(self.folder)}
        return float(found.get(step, 0.0))


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

    ``needed`` is what is to be made next, if it is not there: the sweep, then longer runs of the rates that are too
    close to call, then the seeds. ``runner_up`` is the second best of the rates that were compared last. While the
    rates are not ``settled``, the runs are those of the rate that was trained furthest, and of several the lowest.
    ``given_up`` has the runs of better rates that gave way: the first seed diverged with them after the sweep or lost
    all it had learned, or any seed diverged where the curve retreats from that.
    """

    curve: Curve
    sweep: dict[float, Run]
    rate: float | None
    runs: list[Run]
    needed: list[Job] = field(default_factory=list)
    runner_up: float | None = None
    settled: bool = True
    given_up: dict[float, list[Run]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What a reader calls the network."""
        return self.curve.network.label

    @property
    def finished(self) -> bool:
        """Whether the best rate is settled and every run with it has all its minibatches, or has diverged."""
        whole = [run for run in self.runs if run.diverged or run.steps >= self.curve.steps]
        return self.settled and len(whole) == len(self.curve.seeds)

    @property
    def length(self) -> int:
        """The minibatches that all its runs have, which may be fewer than are planned."""
        return min([self.curve.steps, *(run.steps for run in self.runs if not run.diverged)])

    @property
    def can_be_judged(self) -> bool:
        """Whether as many seeds as a verdict takes have been trained, and one alone for longer than the sweep.

        By the fast recipe they are trained to the end, to which its rate falls.
        """
        alone = self.curve.least_seeds < len(self.curve.seeds)
        enough = min(self.curve.sweep_steps + alone, self.curve.steps)
        if self.curve.network.steps is not None:
            enough = self.curve.steps
        trained = [run for run in self.runs if run.diverged or run.steps >= enough]
        return len(trained) == len(self.runs) and len(trained) >= self.curve.least_seeds

    @property
    def lacks(self) -> str:
        """What the plan asks for beyond the runs that it can be judged by, in words; nothing if it is finished."""
        if self.finished:
            return ""
        words = []
        if not self.settled:
            left = {job.config.learning_rate: job.config.steps for job in self.needed}
            behind = [rate for rate in sorted(left) if rate != self.rate and not self._has(rate, left[rate])]
            rates = ", ".join(f"{rate:g}" for rate in behind)
            if behind:
                words.append(
                    f"rate {self.rate:g}, chosen before {rates} had {max(left.values()):,} minibatches"
                )
        if self.length < self.curve.steps:
            words.append(f"{self.length:,} of {self.curve.steps:,} minibatches")
        if len(self.runs) < len(self.curve.seeds):
            words.append(f"{len(self.runs)} of {len(self.curve.seeds)} seeds")
        return ", ".join(words)

    def _has(self, rate: float, steps: int) -> bool:
        return rate in self.sweep and bool(self.sweep[rate].diverged or self.sweep[rate].steps >= steps)

    @property
    def always_diverged(self) -> bool:
        """Whether the network has diverged with every rate before the end of the sweep."""
        ends = [run.diverged and np.isinf(self.sweep_cost(rate)) for rate, run in self.sweep.items()]
        return len(ends) >= len(self.curve.rates) and all(ends)

    def sweep_cost(self, rate: float) -> float:
        """What the rates are compared by; infinite for a run that diverged before the end of the sweep."""
        return _compared(self.curve, self.sweep[rate], self.curve.sweep_steps)


SHARE = 0.2
"""Rates are compared by the mean cost over this share of the minibatches, the last."""


SOLVED = 0.98
"""Where rates are compared by the test split, of several that answer so much of it the middle one is taken. Which of
them costs least says little, and is often the highest, by which another seed fails."""


def _compared(curve: Curve, run: Run, until: int) -> float:
    """What a rate is judged by, infinite if it is not there."""
    return run.tests.get(until, float("inf")) if curve.by_test else run.last(SHARE, until=until)


Read = Callable[[Path], Run]


def read_curve(runs: Path, curve: Curve, read: Read = read_run) -> CurveRuns:
    """What there is of a curve under the folder ``runs``, and what it needs next; nothing need be finished."""

    def job(rate: float, steps: int, seed: int = curve.swept_with) -> Job:
        return Job(curve.config(rate, seed, steps), curve.folder(runs, rate, seed))

    jobs = [job(rate, curve.sweep_steps) for rate in curve.rates]
    for beyond in (BEYOND, FURTHER) if curve.by_test else (BEYOND,):
        if not all(map(is_finished, jobs)):
            break
        made = {each.config.learning_rate: read(each.folder) for each in jobs}
        costs = {rate: _compared(curve, run, curve.sweep_steps) for rate, run in made.items()}
        best = min(costs, key=costs.__getitem__)  # where it is the lowest or the highest, the next one too
        enough = beyond is FURTHER and any(run.answers(curve.sweep_steps) >= SOLVED for run in made.values())
        if best in (min(costs), max(costs)) and best in beyond and np.isfinite(costs[best]) and not enough:
            jobs.append(job(beyond[best], curve.sweep_steps))
    sweep = {each.config.learning_rate: read(each.folder) for each in jobs if is_run(each.folder)}
    found = CurveRuns(curve, sweep, None, [], jobs)
    if not all(map(is_finished, jobs)):
        return found
    finite = [rate for rate in sweep if np.isfinite(found.sweep_cost(rate))]
    if not finite:
        return replace(found, needed=[])
    rates, until, settled = _contest(found, finite)
    told_by_passes = curve.with_runner_up or curve.lower_of_two
    lasting = [rate for rate in finite if not sweep[rate].diverged or sweep[rate].steps >= curve.steps]
    lasting = [rate for rate in lasting if curve.by_test or not has_lost_all(sweep[rate])]
    given_up: dict[float, list[Run]] = {}
    if lasting and not told_by_passes:
        while settled and rates[0] not in lasting:
            given_up[rates[0]] = [sweep[rates[0]]]
            rates, until, settled = _contest(found, [rate for rate in finite if rate not in given_up])
        rates, until, settled = _contest(found, lasting)

    def seeds_with(rate: float) -> list[Run]:
        folders = [curve.folder(runs, rate, seed) for seed in curve.seeds]
        found = [read(folder) for folder in folders if is_run(folder)]
        return [run for run in found if has_length(run.config, curve.steps)]

    if not settled:
        found = replace(found, needed=[job(rate, until) for rate in rates], settled=False)
        longest = {rate: _furthest(curve, seeds_with(rate)) for rate in rates}
        tried = [replace(found, rate=rate, runs=longest[rate], given_up=given_up) for rate in rates]
        tried = [each for each in tried if each.can_be_judged and not told_by_passes]
        return max(tried, key=lambda c: (c.length, -c.runs[0].last(SHARE, until=c.length)), default=found)
    best, second, *_ = *rates, None
    if curve.retreats:
        for rate in sorted((rate for rate in finite if rate <= rates[0]), reverse=True):
            best, its = rate, seeds_with(rate)
            ended = [run for run in its if run.diverged or run.steps >= curve.steps]
            if len(ended) < len(curve.seeds) or not any(run.diverged for run in its):
                break
            given_up[rate] = its
        given_up.pop(best, None)  # the lowest, below which there is none
    needed = [job(best, curve.steps, seed) for seed in curve.seeds]
    if curve.with_runner_up and second is not None:
        needed.append(job(second, curve.steps))
    runs_made = _furthest(curve, seeds_with(best))
    return CurveRuns(curve, sweep, best, runs_made, needed, second, given_up=given_up)


def has_lost_all(run: Run) -> bool:
    """Whether the run had halved what remembering nothing costs, and its last tenth costs more than that."""
    chance = TASKS[run.config.task].chance
    tenths = [run.last(1 / part, until=run.steps * part // 10) for part in range(1, 11)]
    return tenths[-1] > chance > 2 * min(tenths)


def _furthest(curve: Curve, runs: list[Run]) -> list[Run]:
    """The runs that went furthest, of as many seeds as a verdict takes, and others as long; all, if these are few."""
    lengths = sorted((curve.steps if run.diverged else run.steps for run in runs), reverse=True)
    if len(lengths) < curve.least_seeds:
        return runs
    return [run for run in runs if run.diverged or run.steps >= lengths[curve.least_seeds - 1]]


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


def _contest(c: CurveRuns, entered: list[float]) -> tuple[list[float], int, bool]:
    """The rates that are left of those, after how many minibatches they are compared, and whether they were.

    If they were, the best comes first: of several that made the whole run, the lowest in the end.
    """
    rates, until = entered, c.curve.sweep_steps

    def cost(rate: float) -> float:
        return _compared(c.curve, c.sweep[rate], until)

    for doubling in range(c.curve.doublings + 1):
        until = min(c.curve.sweep_steps * 2**doubling, c.curve.steps)
        if not all(c.sweep[rate].diverged or c.sweep[rate].steps >= until for rate in rates):
            return rates, until, False
        rates = sorted(rates, key=cost)
        close = [rate for rate in rates if cost(rate) <= c.curve.close * cost(rates[0])]
        if len(close) <= 1 or until == c.curve.steps:
            break
        rates = close
        if until >= (c.curve.two_from or until + 1):
            rates = close[:2]
    if c.curve.lower_of_two:  # of those that are close and have come so far
        rates = [*sorted(close[:2]), *(rate for rate in rates if rate not in close[:2])]
    until = c.curve.steps
    whole = sorted((rate for rate in entered if c.sweep[rate].steps >= until), key=cost)
    if whole and rates[0] in whole:
        rates = [*whole, *(rate for rate in rates if rate not in whole)]
    if c.curve.by_test and (solving := sorted(r for r in entered if c.sweep[r].answers(until) >= SOLVED)):
        middle = solving[(len(solving) - 1) // 2]
        rates = [middle, *(rate for rate in rates if rate != middle)]
    return rates, until, True


def make_runs(
    runs: Path, curves: Iterable[Curve], execute: Execute, show: Show | None = None
) -> Sequence[str]:
    """Make what is missing of the curves: sweeps, rates beyond, contests, seeds. Why any could not be made."""
    unique = list(dict.fromkeys(curves))
    failed: list[str] = []
    asked: list[Job] = []
    while True:  # each time, what is needed is decided by the runs of the time before
        found = [read_curve(runs, curve) for curve in unique]
        jobs = [job for job in dict.fromkeys(job for c in found for job in c.needed) if job not in asked]
        if not jobs:
            return failed
        unsettled = [c.curve for c in found if c.rate is None or not c.settled]
        later = [config for curve in unsettled for config in _seeds_to_come(curve)]
        longest = {job.folder: job for job in sorted(jobs, key=lambda job: job.config.steps)}  # of one run
        failed += run_grid([job for job in jobs if job in longest.values()], execute, show, asked, later)
        asked += jobs


def _seeds_to_come(curve: Curve) -> list[Config]:
    """What a curve needs after its sweep, whatever its best rate: the rest of the first seed, and the others."""
    others = [seed for seed in curve.seeds if seed != curve.swept_with]
    to_come = [curve.config(curve.rates[0], seed, curve.steps) for seed in others]
    if curve.steps > curve.sweep_steps:
        rest = curve.config(curve.rates[0], curve.swept_with, curve.steps - curve.sweep_steps)
        to_come += [rest] * (len(curve.seeds) - len(others) + curve.with_runner_up)
    return to_come
