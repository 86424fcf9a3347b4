"""How the claims about learning are decided: each function takes finished curves and gives verdict and numbers."""

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from associative_lstm.lab.experiments.learning import measures
from associative_lstm.lab.experiments.learning.curves import START_COPIES, START_TASKS, STARTS
from associative_lstm.lab.experiments.learning.measures import (
    beats,
    both,
    final_cost,
    solved_at,
    sooner,
    whole_cost,
)
from associative_lstm.lab.experiments.learning.runs import CurveRuns

Numbers = dict[str, float | str]
Found = Mapping[tuple[str, str], CurveRuns]
"""Curves by task and network."""

Decide = Callable[[Found], tuple[bool | None, Numbers]]


def _until(*curves: CurveRuns) -> int:
    """Curves of different lengths are compared where the shortest ends."""
    return min(c.curve.steps for c in curves)


def _costs(c: CurveRuns, until: int, measure: Callable[..., float] = final_cost) -> list[float]:
    return [measure(run, until) for run in c.runs]


def _times(c: CurveRuns) -> list[float]:
    return [solved_at(run) for run in c.runs]


def spread(values: Sequence[float]) -> str:
    """Mean and range over seeds, as text.

    >>> spread([0.2, 0.4]), spread([1500.0]), spread([1000.0, float("inf")])
    ('0.3 (0.2 to 0.4)', '1,500', '1,000 to never')
    """

    def text(value: float) -> str:
        if not np.isfinite(value):
            return "never"
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    if not np.isfinite(values).all():
        return "never" if not np.isfinite(min(values)) else f"{text(min(values))} to never"
    if len(values) == 1:
        return text(values[0])
    return f"{text(float(np.mean(values)))} ({text(min(values))} to {text(max(values))})"


def _ratio(a: Sequence[float], b: Sequence[float]) -> float | str:
    """How many times the mean of ``a`` that of ``b`` is."""
    ratio = float(np.mean(b) / np.mean(a)) if np.isfinite(a).all() else np.inf
    return ratio if np.isfinite(ratio) else "none: a run diverged"


def compare(
    task: str,
    pairs: Sequence[tuple[str, str]],
    factor: float = 1.1,
    measure: Callable[..., float] = final_cost,
) -> Decide:
    """Every first network of ``pairs`` has a lower cost than the second."""

    def decide(found: Found) -> tuple[bool | None, Numbers]:
        verdicts: list[bool | None] = []
        numbers: Numbers = {}
        for left, right in pairs:
            first, second = found[task, left], found[task, right]
            until = _until(first, second)
            a, b = _costs(first, until, measure), _costs(second, until, measure)
            verdicts.append(beats(a, b, factor))
            numbers |= {first.curve.network.label: spread(a), second.curve.network.label: spread(b)}
            label = f"{second.curve.network.label} over {first.curve.network.label}"
            numbers[label] = _ratio(a, b)
        return both(*verdicts), numbers

    return decide


def solve(*needs: tuple[str, str]) -> Decide:
    """All runs of the curves solve their task; undecided if those that have not were still getting better."""

    def decide(found: Found) -> tuple[bool | None, Numbers]:
        verdicts: list[bool | None] = []
        numbers: Numbers = {}
        for need in needs:
            c = found[need]
            unsolved = [run for run in c.runs if not np.isfinite(solved_at(run))]
            falling = all(measures.is_falling(run, c.curve.steps) for run in unsolved)
            verdicts.append(not unsolved or (None if falling else False))
            name = f"{need[0]}, {c.curve.network.label}"
            numbers[f"{name}: solved at minibatch"] = spread(_times(c))
            numbers[f"{name}: final cost"] = spread(_costs(c, c.curve.steps))
        return both(*verdicts), numbers

    return decide


def solve_sooner(first: Sequence[str], second: Sequence[str], factor: float = 1.0) -> Decide:
    """On the copy task, all of the first solve it before any of the second."""

    def decide(found: Found) -> tuple[bool | None, Numbers]:
        times = {name: _times(found["copy", name]) for name in (*first, *second)}
        a = [t for name in first for t in times[name]]
        b = [t for name in second for t in times[name]]
        ended = _until(*(found["copy", name] for name in (*first, *second)))
        numbers: Numbers = {
            f"{found['copy', name].curve.network.label}: solved at minibatch": spread(t)
            for name, t in times.items()
        }
        return sooner(a, b, ended, factor), numbers

    return decide


def copies_alike(found: Found) -> tuple[bool | None, Numbers]:
    times = {copies: _times(found["copy", f"associative-lstm-{copies}"]) for copies in (1, 4, 8)}
    numbers: Numbers = {f"{copies} copies: solved at minibatch": spread(t) for copies, t in times.items()}
    if not np.isfinite([t for ts in times.values() for t in ts]).all():
        return None, numbers
    one = np.mean(times[1])
    return bool(all(abs(np.mean(times[copies]) / one - 1) <= 0.25 for copies in (4, 8))), numbers


def slowdown(networks: Sequence[str], *, at_least: float = 0.0, at_most: float = np.inf) -> Decide:
    """The minibatches to solve the copy task with variable over those with fixed length, of every network."""

    def decide(found: Found) -> tuple[bool | None, Numbers]:
        verdicts: list[bool | None] = []
        numbers: Numbers = {}
        for name in networks:
            fixed, variable = found["copy", name], found["copy-variable", name]
            label = fixed.curve.network.label
            before, after = _times(fixed), _times(variable)
            numbers[f"{label}: fixed, solved at minibatch"] = spread(before)
            numbers[f"{label}: variable, solved at minibatch"] = spread(after)
            if not np.isfinite(before).all():
                verdicts.append(None)
                continue
            least = float(np.mean(np.minimum(after, variable.curve.steps)) / np.mean(before))
            known = bool(np.isfinite(after).all())
            numbers[f"{label}: times as long"] = least if known else f"at least {least:.3g}"
            if least > at_most or (known and least < at_least):
                verdicts.append(False)
            else:
                verdicts.append(True if (least >= at_least and (known or at_most == np.inf)) else None)
        return both(*verdicts), numbers

    return decide


NTM_TASKS = ("xml", "assignment", "arithmetic")
STEADY = ("associative-lstm-3-heads-4-batch-1", "ntm")


def steadier(found: Found) -> tuple[bool | None, Numbers]:
    numbers: Numbers = {}
    verdicts = []
    for task in NTM_TASKS:
        ours, ntm = (
            float(np.mean([measures.roughness(run) for run in found[task, name].runs])) for name in STEADY
        )
        numbers[f"{task}, Associative LSTM: roughness"] = spread([ours])
        numbers[f"{task}, NTM: roughness"] = spread([ntm])
        verdicts.append(ours < ntm)
    return (True if all(verdicts) else None if any(verdicts) else False), numbers


GAPS = {"xml": "associative-lstm-4", "assignment": "associative-lstm-4", "arithmetic": "associative-lstm-1"}


def gap(*lstms: str) -> Decide:
    """On every online task all the tuned LSTMs stay behind; and how far."""

    def decide(found: Found) -> tuple[bool | None, Numbers]:
        verdicts: list[bool | None] = []
        numbers: Numbers = {}
        for task, lstm in itertools.product(GAPS, lstms):
            first, second = found[task, GAPS[task]], found[task, lstm]
            until = _until(first, second)
            a, b = _costs(first, until), _costs(second, until)
            verdicts.append(beats(a, b))
            numbers[f"{task}: {first.curve.network.label}"] = f"{spread(a)} at rate {first.rate:g}"
            numbers[f"{task}: {second.curve.network.label}"] = f"{spread(b)} at rate {second.rate:g}"
            numbers[f"{task}: {second.curve.network.label} over the Associative LSTM"] = _ratio(a, b)
        return both(*verdicts), numbers

    return decide


def _relative_costs(found: Found) -> dict[tuple[str, int], dict[str, float]]:
    """For every task and number of copies: the mean whole cost of each start over that of the best start."""
    table: dict[tuple[str, int], dict[str, float]] = {}
    for task in START_TASKS:
        for copies in START_COPIES:
            costs = {}
            for suffix, text, _ in STARTS:
                c = found[task, f"associative-lstm-{copies}{suffix}"]
                costs[text] = float(np.mean(_costs(c, c.curve.steps, whole_cost)))
            best = min(costs.values())
            table[task, copies] = {text: cost / best for text, cost in costs.items()}
    return table


def start_decides(found: Found) -> tuple[bool | None, Numbers]:
    table = _relative_costs(found)
    worst = {f"{task}, copies {copies}": max(costs.values()) for (task, copies), costs in table.items()}
    numbers: Numbers = {f"{case}: worst over best start": ratio for case, ratio in worst.items()}
    return all(ratio >= 1.25 for ratio in worst.values()), numbers


def one_start_serves(found: Found) -> tuple[bool | None, Numbers]:
    table = _relative_costs(found)
    worst = {text: max(costs[text] for costs in table.values()) for _, text, _ in STARTS}
    numbers: Numbers = {f"{text}: at worst over the best": ratio for text, ratio in worst.items()}
    for task in START_TASKS:
        mean = {text: table[task, 1][text] * table[task, 4][text] for _, text, _ in STARTS}
        numbers[f"best for {task}"] = min(mean, key=mean.__getitem__)
    numbers["best for all"] = min(worst, key=worst.__getitem__)
    return min(worst.values()) <= 1.25, numbers
