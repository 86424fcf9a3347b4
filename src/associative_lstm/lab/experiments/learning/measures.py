"""What is measured of learning curves: how low, how soon, how steadily; and when a difference is one.

A run that diverged has an infinite cost from there on and has solved nothing.
"""

from collections.abc import Sequence

import numpy as np

from associative_lstm.lab.experiments.learning.runs import Run
from associative_lstm.lab.tasks import TASKS

WINDOW = 500
"""Minibatches over which a curve is averaged before it is said to have solved its task."""


def final_cost(run: Run, until: int) -> float:
    """The mean cost over the last tenth of the minibatches up to ``until``."""
    return run.last(0.1, until=until)


def lowest_cost(run: Run, until: int) -> float:
    """The mean cost over that tenth of the minibatches up to ``until`` in which it is lowest."""
    return min(run.last(1 / k, until=until * k // 10) for k in range(1, 11))


def whole_cost(run: Run, until: int) -> float:
    """The mean cost over all the minibatches up to ``until``: small for a network that learns fast and well."""
    return run.last(1.0, until=until)


def answer_cost(run: Run) -> np.ndarray:
    """The cost of the answer, where the task has one; of everything elsewhere."""
    return run.cost if run.answer is None else run.answer


def window_of(run: Run) -> int:
    """The lines of the run's log that ``WINDOW`` minibatches have."""
    return max(1, WINDOW // run.config.log_every)


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


def _smoothed(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the cost of the answer averaged over the last 500 minibatches before each."""
    lines = window_of(run)
    if len(run.step) < lines:
        return np.array([], dtype=int), np.array([])
    return run.step[lines - 1 :], smoothed(answer_cost(run), lines)


def solved_at(run: Run) -> float:
    """The minibatch at which the run has solved its task; infinite if it has not, or diverged later."""
    return float("inf") if run.diverged else _below_at(run)


def told_until(run: Run, steps: int) -> float:
    """Up to which minibatch of ``steps`` an unsolved run tells that the task was not solved.

    One that diverged, no longer than it went; and if it had solved the task before, until then.
    """
    return min(run.steps, _below_at(run)) if run.diverged else steps


def _below_at(run: Run) -> float:
    step, value = _smoothed(run)
    below = np.flatnonzero(value < _threshold(run))
    return float(step[below[0]]) if len(below) else float("inf")


def has_relapsed(run: Run) -> bool:
    """Whether the run has solved its task and later, be it for a time, no longer did, by more than a factor of 2."""
    step, value = _smoothed(run)
    return bool((value[step > solved_at(run)] > 2 * _threshold(run)).any())


def has_lost_it(run: Run) -> bool:
    """Whether the run has solved its task and, for most of its last tenth, no longer does."""
    last = run.step > 0.9 * run.steps
    return bool(np.isfinite(solved_at(run)) and np.median(answer_cost(run)[last]) > _threshold(run))


def has_lost_ground(run: Run, until: int) -> bool:
    """Whether the last tenth costs half as much again as that in which the run was best, and the task is unsolved."""
    final = final_cost(run, until)
    return bool(np.isfinite(final)) and final > max(1.5 * lowest_cost(run, until), _threshold(run))


def _threshold(run: Run) -> float:
    return TASKS[run.config.task].solved_below


FALLING = 0.02


def is_falling(run: Run, until: int, by: float = FALLING) -> bool:
    """Whether the last tenth costs less than the tenth before, ``by`` 2 % or more: the run ended too early."""
    before = run.last(1 / 9, until=until * 9 // 10)
    return final_cost(run, until) < (1 - by) * before


def progress(run: Run, until: int, floor: float = 0.0) -> float:
    """How often the smoothed cost has been halved by minibatch ``until``; none in a run that diverged."""
    return -float(_changes(run, until, floor).sum()) if not run.diverged else 0.0


def roughness(run: Run, until: int, floor: float = 0.0) -> float:
    """The rises of the smoothed curve, added up, over its net fall: 0 for a curve that only falls.

    Taken at every ``WINDOW`` minibatches, on the logarithm of the cost, so that a relapse late in training counts.
    Infinite for a run that diverged.
    """
    change = _changes(run, until, floor)
    fall = progress(run, until, floor)
    return float(change[change > 0].sum() / fall) if fall > 0 else float("inf")


def windows(run: Run, until: int, floor: float = 0.0) -> int:
    """How many times ``WINDOW`` minibatches the smoothed cost is above ``floor``."""
    return int((_taken(run, until, floor) > max(floor, _threshold(run))).sum())


def _changes(run: Run, until: int, floor: float) -> np.ndarray:
    """The changes of log2 of the smoothed cost from one ``WINDOW`` to the next."""
    return np.diff(np.log2(_taken(run, until, floor)))


def _taken(run: Run, until: int, floor: float) -> np.ndarray:
    """The smoothed cost at every ``WINDOW`` minibatches.

    Of a task that is solved nothing more is asked: costs below that, or below ``floor``, count as that.
    """
    step, value = _smoothed(run)
    value = np.maximum(value[step <= until], max(floor, _threshold(run)))
    return value[:: window_of(run)]


def beats(a: Sequence[float], b: Sequence[float], factor: float = 1.1) -> bool | None:
    """Whether costs ``a`` lie below costs ``b``, by ``factor`` in the mean; None if it is too close to call.

    Seeds that overlap are, and means that differ by less than a tenth, unless ``factor`` asks for less, or for more
    than any two seeds show.

    >>> beats([0.2, 0.3], [0.5, 0.6]), beats([0.5], [0.2]), beats([0.2, 0.55], [0.5, 0.6]), beats([0.5], [0.51])
    (True, False, None, None)
    >>> beats([0.5], [0.51], factor=1.0), beats([0.5], [0.51], factor=1.5)
    (True, False)
    """
    if np.isinf(a).all() and np.isinf(b).all():
        return None
    if max(a) >= min(b) and max(b) >= min(a):
        return None if factor <= 1.1 or max(b) >= factor * min(a) else False
    ratio = np.mean(b) / np.mean(a) if np.mean(a) > 0 else np.inf
    if factor <= 1.1 and 1 / factor < ratio < factor:
        return None
    return bool(ratio >= factor)


def sooner(
    a: Sequence[float], b: Sequence[float], end_a: float, end_b: float, factor: float = 1.0
) -> bool | None:
    """Whether every ``a`` solved its task ``factor`` times as soon as every ``b``; none of their runs ends before.

    >>> sooner([2e3], [5e3, 6e3], 20_000, 20_000, factor=2), sooner([5e3], [2e3], 20_000, 20_000)
    (True, False)
    >>> sooner([12e3], [float("inf")], 20_000, 20_000, factor=2) is None  # who knows how much later
    True
    """
    if max(a) * factor <= min(*b, end_b) and np.isfinite(max(a)):
        return True
    if min(*a, end_a) * factor > max(b):
        return False
    return None


def both(*verdicts: bool | None) -> bool | None:
    """A verdict on several together: fails if one fails, holds if all hold."""
    if False in verdicts:
        return False
    return None if None in verdicts else True
