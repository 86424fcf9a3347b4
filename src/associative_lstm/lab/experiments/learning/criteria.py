"""The criteria of the claims about learning: which curves each needs, and how it decides from their measures."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from associative_lstm.lab.experiments.learning import measures
from associative_lstm.lab.experiments.learning.curves import (
    ASSOCIATIVE,
    START_COPIES,
    START_TASKS,
    STARTS,
    curve,
    start_curves,
)
from associative_lstm.lab.experiments.learning.measures import (
    beats,
    both,
    final_cost,
    solved_at,
    sooner,
    whole_cost,
)
from associative_lstm.lab.experiments.learning.runs import CurveRuns, Run
from associative_lstm.lab.tasks import TASKS
from associative_lstm.lab.words import counted

Numbers = dict[str, float | str]
Need = tuple[str, str]
"""A task and a network: a curve."""

Found = Mapping[Need, CurveRuns]
Decision = tuple[bool | None, Numbers]


class Criterion(NamedTuple):
    """The curves that it needs; and a function that takes them, finished, and gives verdict and numbers.

    ``by_sweeps``: not only the runs of the best rates are evidence, but all that a sweep has.
    """

    needs: Sequence[Need]
    decide: Callable[[Found], Decision]
    by_sweeps: bool = False


def on(task: str, networks: Iterable[str]) -> list[Need]:
    return [(task, network) for network in dict.fromkeys(networks)]


def _until(*curves: CurveRuns) -> int:
    """Curves of different lengths are compared where the shortest ends."""
    return min(c.length for c in curves)


def _costs(c: CurveRuns, until: int, measure: Callable[..., float] = final_cost) -> list[float]:
    return [measure(run, until) for run in c.runs]


def solving_times(c: CurveRuns) -> list[float]:
    return [solved_at(run) for run in c.runs]


def _ends(c: CurveRuns) -> list[float]:
    return [measures.told_until(run, c.length) for run in c.runs]


def spread(values: Sequence[float], infinite: str = "never") -> str:
    """Mean and range over seeds, as text; ``infinite`` is what an infinite one means.

    >>> spread([0.2, 0.4]), spread([1500.0]), spread([1000.0, float("inf")])
    ('0.3 (0.2 to 0.4)', '1,500', '1,000 to never')
    """

    def text(value: float) -> str:
        if not np.isfinite(value):
            return infinite
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    if not np.isfinite(values).all():
        return infinite if not np.isfinite(min(values)) else f"{text(min(values))} to {infinite}"
    if len(values) == 1:
        return text(values[0])
    return f"{text(float(np.mean(values)))} ({text(min(values))} to {text(max(values))})"


def solving(c: CurveRuns) -> str:
    """When the seeds solved their task, how many diverged, lost it for a time, and had lost it at the end."""
    counts = {
        "diverged": sum(run.diverged is not None for run in c.runs),
        "relapsed": sum(measures.has_relapsed(run) for run in c.runs),
        "unsolved again at the end": sum(measures.has_lost_it(run) for run in c.runs),
    }
    notes = [f"{count} of {len(c.runs)} {what}" for what, count in counts.items() if count]
    never = f"never in {c.length:,}" if any(run.diverged is None for run in c.runs) else "never"
    return spread(solving_times(c), never) + (f" ({', '.join(notes)})" if notes else "")


def final_costs(runs: Sequence[Run], until: int) -> str:
    """The final costs of the seeds, how many of them were still falling, and how many have lost what they had."""
    falling = sum(measures.is_falling(run, until) for run in runs)
    ends = f", {falling} of {len(runs)} still falling" if falling else ""
    lost = [run for run in runs if measures.has_lost_ground(run, until)]
    if lost:
        before = spread([measures.lowest_cost(run, until) for run in lost])
        ends += f", {len(lost)} of {len(runs)} had been lower: {before}"
    return f"{spread([final_cost(run, until) for run in runs], 'diverged')}{ends}"


def _times_as_long(left: CurveRuns, right: CurveRuns) -> Numbers:
    """How many times the minibatches of ``left`` the other needs to solve the task, if all seeds of both do."""
    a, b = solving_times(left), solving_times(right)
    if not np.isfinite([*a, *b]).all():
        return {}
    return {f"{right.label} over {left.label}": float(np.mean(b) / np.mean(a))}


def cost_ratio(a: Sequence[float], b: Sequence[float]) -> float | str:
    """How many times the mean of ``a`` that of ``b`` is."""
    ratio = float(np.mean(b) / np.mean(a)) if np.isfinite(a).all() else np.inf
    return ratio if np.isfinite(ratio) else "none: a run diverged"


def _each(decisions: Iterable[Decision]) -> Decision:
    """Several decisions as one: fails if one fails, holds if all hold."""
    made = list(decisions)
    numbers = {name: value for _, its in made for name, value in its.items()}
    return both(*(verdict for verdict, _ in made)), numbers


def _all(
    cases: Sequence[Sequence[Need]], decide: Callable[..., Decision], *, by_sweeps: bool = False
) -> Criterion:
    """That ``decide`` holds of the curves of every case."""
    needs = list(dict.fromkeys(itertools.chain(*cases)))
    return Criterion(
        needs, lambda found: _each(decide(*(found[n] for n in case)) for case in cases), by_sweeps
    )


def compare(
    task: str,
    pairs: Sequence[tuple[str, str]],
    factor: float = 1.1,
    measure: Callable[..., float] = final_cost,
    in_the_end: bool = False,
) -> Criterion:
    """Every first network of ``pairs`` has a lower cost than the second.

    ``in_the_end``: undecided while one of them is shorter than planned, where an early lead is known to turn.
    """

    def pair(first: CurveRuns, second: CurveRuns) -> Decision:
        until = _until(first, second)
        a, b = _costs(first, until, measure), _costs(second, until, measure)
        numbers: Numbers = {
            first.label: spread(a, "diverged"),
            second.label: spread(b, "diverged"),
            f"{second.label} over {first.label}": cost_ratio(a, b),
        }
        planned = min(first.curve.steps, second.curve.steps)
        if in_the_end and until < planned:
            return None, numbers | {"reason": f"after {until:,} of {planned:,} minibatches"}
        return beats(a, b, factor), numbers

    return _all([on(task, both_names) for both_names in pairs], pair)


def every(*criteria: Criterion) -> Criterion:
    """That every one of them holds, each about a task of its own, by which its numbers are told apart."""
    needs = list(dict.fromkeys(itertools.chain(*(each.needs for each in criteria))))

    def one(criterion: Criterion, found: Found) -> Decision:
        verdict, numbers = criterion.decide(found)
        task, _ = criterion.needs[0]
        return verdict, {f"{task}, {name}": value for name, value in numbers.items()}

    return Criterion(needs, lambda found: _each(one(each, found) for each in criteria))


def _ended_early(c: CurveRuns, run: Run, planned: int) -> bool:
    """Whether the run was shorter than is planned, or still getting better."""
    return c.length < planned or measures.is_falling(run, c.length)


def _falling_fast(c: CurveRuns, run: Run, planned: int) -> bool:
    """The same as it was before: whatever is planned, and only if it got better by 5 % in the last tenth."""
    return measures.is_falling(run, c.length, by=0.05)


def _all_reach(
    needs: Sequence[Need],
    reached: Callable[[CurveRuns, Run], bool],
    ended_early: Callable[[CurveRuns, Run, int], bool] = _ended_early,
    at_least: int = 1,
    in_one_seed: bool = False,
) -> Criterion:
    """All runs of the curves, or one of each, have ``reached`` it; undecided if others diverged or ended too early.

    Runs of the fast recipe, too, have ended early if they are shorter than those as the paper trained are planned.
    """

    def one(need: Need, c: CurveRuns) -> Decision:
        left = [run for run in c.runs if not reached(c, run)]
        if in_one_seed and len(left) < len(c.runs):
            left = []
        open_ends = (any if in_one_seed else all)(
            run.diverged or ended_early(c, run, curve(*need).steps) for run in left
        )
        name = f"{c.curve.task}, {c.label}"
        numbers: Numbers = {
            f"{name}: solved at minibatch": solving(c),
            f"{name}: final cost": final_costs(c.runs, c.length),
            f"{name}: minibatches": c.length,
        }
        if not left and len(c.runs) < at_least:
            return None, numbers | {"reason": f"{counted(len(c.runs), 'seed')} of {at_least}"}
        return not left or (None if open_ends else False), numbers

    return Criterion(needs, lambda found: _each(one(need, found[need]) for need in needs))


def _solves(c: CurveRuns, run: Run) -> bool:
    return bool(np.isfinite(solved_at(run)))


def solve(*needs: Need, seeds: int = 1, in_one_seed: bool = False) -> Criterion:
    """All runs of the curves, of so many ``seeds`` at least, solve their task; or one of each."""
    return _all_reach(needs, _solves, at_least=seeds, in_one_seed=in_one_seed)


def solve_before(*needs: Need) -> Criterion:
    """The same by the rule that was before."""
    return _all_reach(needs, _solves, _falling_fast)


WELL = 0.25


def do_well(*needs: Need) -> Criterion:
    """All runs of the curves end below a quarter of what remembering nothing costs; a tenth more is close to that."""

    def open_end(c: CurveRuns, run: Run, planned: int) -> bool:
        return _does_well(c, run, 1.1) or _ended_early(c, run, planned)

    return _all_reach(needs, _does_well, open_end)


def _does_well(c: CurveRuns, run: Run, within: float = 1.0) -> bool:
    return final_cost(run, c.length) < within * WELL * TASKS[c.curve.task].chance


def do_badly(*needs: Need) -> Criterion:
    """No run of the curves ends there; undecided if one of them diverged or ended too early."""

    def one(need: Need, c: CurveRuns) -> Decision:
        numbers: Numbers = {c.label: final_costs(c.runs, c.length)}
        if any(_does_well(c, run) for run in c.runs):
            return False, numbers
        early = any(run.diverged or _ended_early(c, run, curve(*need).steps) for run in c.runs)
        return (None if early else True), numbers

    return Criterion(needs, lambda found: _each(one(need, found[need]) for need in needs))


def solve_sooner(
    first: Sequence[str], second: Sequence[str], factor: float = 1.0, task: str = "copy"
) -> Criterion:
    """On a copy task, all of the first solve it before any of the second."""

    def decide(found: Found) -> Decision:
        curves = {name: found[task, name] for name in (*first, *second)}
        numbers: Numbers = {f"{c.label}: solved at minibatch": solving(c) for c in curves.values()}
        verdicts = []
        for a, b in itertools.product((curves[n] for n in first), (curves[n] for n in second)):
            numbers |= _times_as_long(a, b)
            verdicts.append(sooner(solving_times(a), solving_times(b), min(_ends(a)), min(_ends(b)), factor))
        return both(*verdicts), numbers

    return Criterion(on(task, (*first, *second)), decide)


def at_rate(rate: float, criterion: Criterion) -> Criterion:
    """The criterion, told only where every curve was trained with this rate."""

    def decide(found: Found) -> Decision:
        verdict, numbers = criterion.decide(found)
        others = [f"{c.label} has {c.rate:g}" for c in found.values() if c.rate != rate]
        return (None, numbers | {"reason": "; ".join(others)}) if others else (verdict, numbers)

    return criterion._replace(decide=decide)


def _later(
    first: CurveRuns, second: CurveRuns, at_least: float = 0.0, at_most: float = np.inf
) -> tuple[bool | None, float | str]:
    """Whether ``second`` needs so many times the minibatches of ``first`` to solve its task, and how many.

    Seeds that have not solved it count with the length of their run: it is as many at least.
    """
    before, after = solving_times(first), solving_times(second)
    if not np.isfinite(before).all():
        return None, "not to be told: the first is unsolved"
    times = float(np.mean(np.minimum(after, _ends(second))) / np.mean(before))
    if np.isfinite(after).all():
        return at_least <= times <= at_most, times
    at_any_rate = times >= at_least and at_most == np.inf
    return (False if times > at_most else at_any_rate or None), f"at least {times:.3g}"


def soon_after(first: Sequence[str], second: str, factor: float) -> Criterion:
    """On the copy task, the second needs at most ``factor`` times the minibatches of each of the first."""

    def one(c: CurveRuns, later: CurveRuns) -> Decision:
        verdict, times = _later(c, later, at_most=factor)
        solved = {f"{each.label}: solved at minibatch": solving(each) for each in (later, c)}
        return verdict, solved | {f"{later.label} over {c.label}": times}

    all_of_them = _all([on("copy", (name, second)) for name in first], one)
    return all_of_them._replace(needs=on("copy", (*first, second)))  # the order in which a page lists them


def _copies_alike(found: Found) -> Decision:
    """Whether 4 and 8 copies need as long as 1 for the copy task; not to be told if the seeds of 1 differ as much."""
    curves = {copies: found["copy", f"associative-lstm-{copies}"] for copies in (1, 4, 8)}
    times = {copies: solving_times(c) for copies, c in curves.items()}
    numbers: Numbers = {
        f"{counted(copies, 'copy')}: solved at minibatch": solving(c) for copies, c in curves.items()
    }
    for copies in (4, 8):
        numbers |= _times_as_long(curves[1], curves[copies])
    one = np.mean(times[1])
    solved = np.isfinite([t for ts in times.values() for t in ts]).all()
    if not solved or max(abs(t / one - 1) for t in times[1]) > 0.25:
        return None, numbers
    return bool(all(abs(np.mean(times[copies]) / one - 1) <= 0.25 for copies in (4, 8))), numbers


COPIES_ALIKE = Criterion(on("copy", ASSOCIATIVE), _copies_alike)


def slowdown(networks: Sequence[str], *, at_least: float = 0.0, at_most: float = np.inf) -> Criterion:
    """The minibatches to solve the copy task with variable over those with fixed length, of every network."""

    def one(fixed: CurveRuns, variable: CurveRuns) -> Decision:
        verdict, times = _later(fixed, variable, at_least, at_most)
        return verdict, {
            f"{fixed.label}: fixed, solved at minibatch": solving(fixed),
            f"{variable.label}: variable, solved at minibatch": solving(variable),
            f"{fixed.label}: times as long": times,
        }

    return _all([[("copy", name), ("copy-variable", name)] for name in networks], one)


LEAST_WINDOWS = 10
"""Times 500 minibatches that a curve takes through a range of costs, for its steadiness there to be told."""


def steadier(task: str, networks: Sequence[str], *, as_before: bool = False) -> Criterion:
    """Whether the Associative LSTM's curve is less rough than the NTM's; undecided unless both have learned, slowly.

    And while one of them is shorter than planned: what it has learned may be lost later. Over the range of costs
    where both are: a lower curve has more to lose, and near the floor the noise of the samples counts as much as a
    relapse. ``as_before``: each over its own, and over what there is.
    """

    def decide(found: Found) -> Decision:
        curves = [found[task, name] for name in networks]
        until = _until(*curves)
        lowest = [measures.lowest_cost(run, until) for c in curves for run in c.runs]
        floor = max(lowest) if not as_before and np.isfinite(lowest).all() else 0.0
        ours, ntm = ([measures.roughness(run, until, floor) for run in c.runs] for c in curves)
        progress = [measures.progress(run, until) for c in curves for run in c.runs]
        down = f" down to {floor:.3g} bits" if floor else ""
        numbers: Numbers = {
            f"Associative LSTM: roughness{down}": spread(ours, "no progress"),
            f"NTM: roughness{down}": spread(ntm, "no progress"),
        }
        short = [
            f"{c.label} has {c.length:,} of {c.curve.steps:,}" for c in curves if c.length < c.curve.steps
        ]
        if not as_before and short:  # what it has learned may be lost later
            return None, numbers | {"reason": f"shorter than planned: {', '.join(short)} minibatches"}
        if min(progress) < 1:
            return None, numbers | {"reason": "one of them has not halved its cost"}
        fewest = min(measures.windows(run, until, floor) for c in curves for run in c.runs)
        if not as_before and fewest < LEAST_WINDOWS:
            return None, numbers | {"reason": f"one of them is there after {500 * fewest:,} minibatches"}
        return beats(ours, ntm), numbers

    return Criterion(on(task, networks), decide)


def alike(task: str, one: str, two: str) -> Criterion:
    """The ends of a network's curves with minibatches of 1 and of 2, after as many minibatches or as many sequences.

    The ratio of the costs is at most 1.25, one way or the other, by one of the two counts. It tells nothing where
    seeds of the same network differ as much from their mean.
    """

    def decide(found: Found) -> Decision:
        alone, together = (found[task, name] for name in (one, two))
        until = _until(alone, together)
        every = [_costs(alone, until), _costs(together, until), _costs(together, until // 2)]
        a, *others = (float(np.mean(costs)) for costs in every)
        counts = ("as many minibatches", "as many sequences")
        numbers: Numbers = {f"{alone.label}, minibatches of 1, after {until:,}": spread(every[0], "diverged")}
        for what, costs in zip(counts, every[1:], strict=True):
            numbers[f"{together.label}, minibatches of 2, after {what}"] = spread(costs, "diverged")
        if not np.isfinite([a, *others]).all():
            return None, numbers | {"reason": "a run diverged"}
        if any(not 0.75 <= cost / np.mean(costs) <= 1.25 for costs in every for cost in costs):
            return None, numbers | {"reason": "seeds of one network are as far from their mean"}
        return any(1 / 1.25 <= a / cost <= 1.25 for cost in others), numbers

    return Criterion(on(task, (one, two)), decide)


GAPS = {"xml": "associative-lstm-4", "assignment": "associative-lstm-4", "arithmetic": "associative-lstm-1"}


def gap(task: str, *lstms: str) -> Criterion:
    """On an online task all the tuned LSTMs stay behind; how far, and which were still getting better."""

    def one(first: CurveRuns, second: CurveRuns) -> Decision:
        until = _until(first, second)
        a, b = (_costs(c, until) for c in (first, second))
        numbers: Numbers = {
            c.label: f"{final_costs(c.runs, until)} at rate {c.rate:g}" for c in (first, second)
        }
        return beats(a, b), numbers | {f"{second.label} over the Associative LSTM": cost_ratio(a, b)}

    return _all([on(task, (GAPS[task], lstm)) for lstm in lstms], one, by_sweeps=True)


Case = tuple[str, int]


def _start_costs(found: Found) -> dict[Case, dict[str, list[float]]]:
    """For every task and number of copies, by the words for the start: the cost of every seed from the beginning."""
    costs = {}
    for task, copies in itertools.product(START_TASKS, START_COPIES):
        named = zip(STARTS, start_curves(task, copies), strict=True)
        curves = {text: found[task, planned.network.name] for (_, text, _), planned in named}
        until = _until(*curves.values())
        costs[task, copies] = {text: _costs(c, until, whole_cost) for text, c in curves.items()}
    return costs


def _start_decides(found: Found) -> Decision:
    """Whether in every case the worst start costs a quarter more than the best, in every seed."""

    def one(task: str, copies: int, costs: Mapping[str, list[float]]) -> Decision:
        ranked = sorted(costs, key=lambda text: float(np.mean(costs[text])))
        best, worst = costs[ranked[0]], costs[ranked[-1]]
        case = f"{task}, {counted(copies, 'copy')}"
        return beats(best, worst, 1.25), {
            f"{case}: best": f"{ranked[0]}, {spread(best, 'diverged')}",
            f"{case}: worst": f"{ranked[-1]}, {spread(worst, 'diverged')}",
            f"{case}: worst over best": cost_ratio(best, worst),
        }

    return _each(one(*case, costs) for case, costs in _start_costs(found).items())


def _one_start_serves(found: Found) -> Decision:
    """Whether one start is at most a quarter above the best everywhere; and which is best where."""
    costs = _start_costs(found)
    mean = {case: {text: float(np.mean(v)) for text, v in starts.items()} for case, starts in costs.items()}
    best = {case: min(starts.values()) for case, starts in mean.items()}
    if not np.isfinite(list(best.values())).all():
        return None, {"reason": "in one case every start diverged"}
    words = [text for _, text, _ in STARTS]
    worst = {text: max(mean[case][text] / best[case] for case in mean) for text in words}
    numbers: Numbers = {
        f"{text}: at worst over the best": ratio if np.isfinite(ratio) else "diverged"
        for text, ratio in worst.items()
    }
    for task in START_TASKS:
        product = {
            text: float(np.prod([mean[task, copies][text] for copies in START_COPIES])) for text in words
        }
        numbers[f"best for {task}"] = min(product, key=product.__getitem__)
    numbers["best for all"] = min(worst, key=worst.__getitem__)
    return min(worst.values()) <= 1.25, numbers


_STARTS = [
    (planned.task, planned.network.name)
    for task, copies in itertools.product(START_TASKS, START_COPIES)
    for planned in start_curves(task, copies)
]
START_DECIDES = Criterion(_STARTS, _start_decides)
ONE_START_SERVES = Criterion(_STARTS, _one_start_serves)
