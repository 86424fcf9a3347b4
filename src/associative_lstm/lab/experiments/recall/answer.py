"""What the comparison says, in words: who should use what, and why. Only of what was measured, and all from that."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from associative_lstm.lab.draw.tables import Measured, markdown_table
from associative_lstm.lab.experiments.recall.forgetting import SEQUENCES, Reasons
from associative_lstm.lab.experiments.recall.grid import (
    CLOSE,
    COPIES,
    FEWER,
    MAD,
    MODERN,
    MODERN_KINDS,
    OURS,
    PAIRS,
    SEEDS,
    SETTINGS,
    SIXTEEN,
    SIZES,
    TRACKING,
    Point,
    stands_in_the_middle,
    whole,
)
from associative_lstm.lab.experiments.recall.published import MODULAR
from associative_lstm.lab.words import counted

Costs = Sequence[Mapping[str, Any]]

MENDED = {
    "right": "right",
    "alone": "alone",
    "random_keys": "random keys",
    "match": "match",
    "interference": "interference",
    "random_interference": "with random keys",
    "expected": "expected",
}
"""What was measured inside a network that forgets, and what a table calls it."""

NEARLY_ALL = 0.97
"""Where both recall so much, a task tells little of them."""

FAR_APART = 0.3
"""Seeds whose accuracies differ by more are told one by one."""

PAST = 1.8
"""Bits of an answer: surely less than a guess among the four values of MQAR."""


class Verdict(NamedTuple):
    """Ours with 16 copies beside the best of the others of fixed state, on one task and with one size of state."""

    task: str
    numbers: int
    ours: list[float]
    forms: list[str]  # other forms of ours that are better
    best: list[str]  # the best of the others, and those whose mean is as good
    theirs: list[float]  # the seeds of the best
    weights: float  # ours, as a multiple of those of the best

    @property
    def take(self) -> str:
        """Which of both, if that can be told."""
        lead = float(np.mean(self.ours) - np.mean(self.theirs))
        if abs(lead) <= CLOSE:
            return "either"
        if overlap(self.ours, self.theirs):
            return "seeds overlap"
        return OURS if lead > 0 else " or ".join(self.best)


def advice(measured: Measured) -> str:
    """Who should use what; who recalls and keeps track; and a row for every task and size of state at which ours
    stands beside all of today's networks.
    """
    verdicts = [
        verdict
        for name, size in itertools.product(_RECALL, SIZES)
        if (verdict := _verdict(measured, name, size))
    ]
    if not verdicts:
        return ""
    both, table = _for_both(measured)
    parts = [
        f"**Who should use what.** To recall, {_ahead(verdicts)}.{both}",
        _counted(verdicts),
        _other_forms(measured),
        table,
        _at_equal_state(measured, verdicts),
    ]
    return "\n\n".join(filter(None, parts))


_RECALL = ("stacked", "stacked-64", "mqar")
_TURNED = "DeltaNet, eigenvalues from -1"


def _seeds(measured: Measured) -> str:
    """What stands in a cell of a table."""
    diverged = any(row.get("diverged") for rows in measured.values() for row in rows)
    lost = "; one that diverged counts as 0" if diverged else ""
    return f"means of three seeds (smallest to largest, or each where they lie far apart{lost})"


def _at_equal_state(measured: Measured, verdicts: Sequence[Verdict]) -> str:
    """The table of the comparisons."""
    rows = [
        [
            each.task,
            f"{each.numbers:,}",
            spread(each.ours),
            ", ".join(each.forms) or "–",
            f"{each.best[0]} {spread(each.theirs)}",
            f"{each.weights:.1f}",
            each.take,
        ]
        for each in verdicts
    ]
    header = [
        "task",
        "numbers of state",
        OURS,
        "better forms of it",
        "best of the others",
        "weights, as a multiple of theirs",
        "take",
    ]
    about = (
        f"Recall at equal state, of networks with a state of fixed size, trained alike: accuracy on held-out "
        f'sequences, {_seeds(measured)}. "Either" in the last column: means that differ by at most {CLOSE}.'
    )
    return f"{about}\n\n{markdown_table(header, rows)}"


def _verdict(measured: Measured, name: str, size: str) -> Verdict | None:
    """None if ours or one of today's is missing."""
    ranked = _ranked(measured, name, size)
    seeds = {point.kind: a for point, a in ranked}
    if not {OURS, *MODERN_KINDS} <= seeds.keys():
        return None
    others = {kind: a for kind, a in seeds.items() if kind in (*MODERN_KINDS, *FEWER)}
    first = next(iter(others.values()))
    best = [kind for kind, a in others.items() if np.mean(a) >= np.mean(first) - CLOSE]
    forms = [
        f"{kind.partition(', ')[2]} {np.mean(a):.2f}"
        for kind, a in seeds.items()
        if kind.startswith("Associative") and np.mean(a) > np.mean(seeds[OURS]) + CLOSE
    ]
    weights = {point.kind: measured[name, point.name][0]["parameters"] for point, _ in ranked}
    ratio = weights[OURS] / weights[best[0]]
    return Verdict(SETTINGS[name].title, SIZES[size], seeds[OURS], forms, best, first, ratio)


def _behind(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [each for each in verdicts if each.take not in (OURS, "either", "seeds overlap")]


def _ahead(verdicts: Sequence[Verdict]) -> str:
    """Who is ahead, where that can be told: ours or, of the others, who is most often."""
    behind, leads = _behind(verdicts), sum(each.take == OURS for each in verdicts)
    names = Counter(kind for each in behind for kind in each.best)
    if len(behind) > leads:
        return " or ".join(kind for kind, count in names.items() if count == max(names.values()))
    return "the Associative LSTM" if leads > len(behind) else "neither before the other"


def _counted(verdicts: Sequence[Verdict]) -> str:
    """How often ours is ahead."""
    takes = Counter(each.take for each in verdicts)
    alike = [each for each in verdicts if each.take == "either"]
    nearly = all(min(np.mean(each.ours), np.mean(each.theirs)) >= NEARLY_ALL for each in alike)
    easy = " (where both recall nearly all)" if alike and nearly else ""
    return (
        f"In {len(verdicts)} comparisons at equal state, the Associative LSTM with 16 copies is ahead of the best of "
        f"the others in {takes[OURS]}, as good in {len(alike)}{easy}, behind in {len(_behind(verdicts))}; in "
        f"{takes['seeds overlap']} seeds overlap."
    )


def _other_forms(measured: Measured) -> str:
    """Shifts, if they recall more somewhere and less nowhere, with what they keep less track of; copies if few."""
    shifts, few = ("associative-60-16-shift", SIXTEEN["medium"]), ("associative-52-4", SIXTEEN["small"])
    said = []
    recall = _beside(measured, _RECALL, *shifts)
    more = _instead(recall)
    if more and not _instead(recall, less=True):
        track = _beside(measured, TRACKING, *shifts, "longer")
        told = [pair for pair in track if not overlap(*pair[1:])]
        less = f"; but it keeps less track of a state: {its}" if (its := _instead(told, less=True)) else ""
        said.append(f'{_numbers("medium")}, `permutation="shift"`: {more}{less}')
    if more := _instead(_beside(measured, _RECALL, *few)):
        some, all_16, theirs = (
            measured["stacked", name][0]["parameters"] for name in (*few, "deltanet-1x16")
        )
        weights = f"{some / all_16:.1f} times the weights, {some / theirs:.1f} times DeltaNet's"
        said.append(
            f"{_numbers('small')}, 4 copies: {more}, with {weights}; it was not run on state tracking"
        )
    items = "\n".join(f"- {each}." for each in said)
    return f"Other forms of it recall more:\n\n{items}" if said else ""


Pairs = list[tuple[str, list[float], list[float]]]
"""By task the seeds of two networks."""


def _beside(measured: Measured, names: Sequence[str], one: str, other: str, which: str = "accuracy") -> Pairs:
    """The seeds of two networks on the tasks that both were run on."""
    found = []
    for name in names:
        a, b = (whole(measured, name, network, which) for network in (one, other))
        if a and b:
            found.append((SETTINGS[name].title, a, b))
    return found


def _instead(pairs: Pairs, *, less: bool = False) -> str:
    """Where the first has more than the second in the mean, or less."""
    sign = -1 if less else 1
    means = [(task, float(np.mean(a)), float(np.mean(b))) for task, a, b in pairs]
    return ", ".join(
        f"{a:.2f} instead of {b:.2f} of {task}" for task, a, b in means if sign * (a - b) > CLOSE
    )


def _numbers(size: str) -> str:
    return f"about {SIZES[size]:,} numbers"


def _for_both(measured: Measured) -> tuple[str, str]:
    """Who does most of what is recalled and kept track of, in a sentence; and the table of all that."""
    points = {p.kind: p for name in ("stacked", "parity") for p in SETTINGS[name].points if _is_compared(p)}
    recalled, found = ("stacked", "mqar"), {}
    for kind, point in points.items():
        tracked = [whole(measured, name, point.name, "longer") for name in TRACKING]
        if any(tracked):
            once, shorter = (whole(measured, name, point.name) for name in recalled)
            longer = whole(measured, "mqar-long", point.name)
            is_longer = np.mean(longer or [-1]) > np.mean(shorter or [-1])
            mqar = (longer, "†") if is_longer else (shorter, "")
            found[kind] = [(once, ""), mqar, *((values, "") for values in tracked)]
    if not found:
        return "", ""
    rows = [[kind, *(_short(*cell) for cell in cells)] for kind, cells in found.items()]
    header = ["network", *(SETTINGS[name].title for name in (*recalled, *TRACKING))]
    fewer = " and ".join(row[0] for row in rows if row[0] in FEWER)
    sizes = _numbers("medium") + (f" ({fewer}: {SIZES['small']})" if fewer else "")
    about = (
        f"What is recalled, and how often the state is right beyond the lengths trained on: one layer, {sizes}, "
        "means of three seeds. Bold: 0.90 and more."
    )
    notes = (
        "†: in 32 passes, which were better than 13. Best, lowest: a seed, where they lie far apart. Eigenvalues "
        "from -1: a write can flip the sign of what is stored under a key; with three layers and a short convolution "
        f"such a DeltaNet is published with {dict(MODULAR)[_TURNED]} of modular arithmetic, on a scale where "
        "guessing is 0, here 0.20 (arXiv 2411.12537). Which tasks count, and 0.90, was chosen when results had been "
        "seen."
    )
    return _does_most(header[1:], found), f"{about}\n\n{markdown_table(header, rows)}\n\n{notes}"


def _does_most(tasks: Sequence[str], found: Mapping[str, Sequence[tuple[list[float], str]]]) -> str:
    """Of the networks that were run on all tasks those that are good at most, and which they are not good at."""
    on_all = {kind: [values for values, _ in cells] for kind, cells in found.items()}
    on_all = {kind: cells for kind, cells in on_all.items() if all(cells)}
    lacks = {
        kind: [
            task for task, values in zip(tasks, cells, strict=True) if not _is_good(float(np.mean(values)))
        ]
        for kind, cells in on_all.items()
    }
    least = min(map(len, lacks.values()), default=len(tasks))
    if least == len(tasks):
        return ""
    who = []
    for kind, its in lacks.items():
        if len(its) == least:
            seeds = [
                f"; {task} with a seed at {min(values):.2f}"
                for task, values in zip(tasks, on_all[kind], strict=True)
                if task not in its and not _is_good(min(values))
            ]
            but = " but " * bool(its) + " and ".join(its)
            who.append(f"{kind} (all tasks below{but}{''.join(seeds)})")
    return f" To recall and to keep track of a state as well, {' or '.join(who)}."


def _is_compared(point: Point) -> bool:
    return stands_in_the_middle(point) and point.kind != "Attention"


def _is_good(accuracy: float) -> bool:
    return round(accuracy, 2) >= 0.9  # as it is shown


def _short(values: Sequence[float], mark: str = "") -> str:
    """The mean; and the best seed where they lie far apart, or the lowest of a good mean that is not good itself."""
    if not values:
        return "–"
    mean = f"{np.mean(values):.2f}"
    if _is_good(float(np.mean(values))):
        lowest = "" if _is_good(min(values)) else f" (lowest {min(values):.2f})"
        return f"**{mean}**{mark}{lowest}"
    best = f" (best {max(values):.2f})" if max(values) - min(values) > FAR_APART else ""
    return f"{mean}{mark}{best}"


def findings(measured: Measured, reasons: Reasons, costs: Costs) -> str:
    """What else was found, as a list."""
    found = (
        _unlearned(measured),
        _equal_weights(measured),
        _mad(measured),
        _copies(measured),
        _unaided(measured),
        _reason(reasons),
        _how_soon(measured),
        _price(costs),
    )
    return "\n".join(f"- {sentence}" for sentence in found if sentence)


def _unlearned(measured: Measured) -> str:
    """Which of today's networks do not surely learn the small setting here, by the largest of each."""
    means = {point.kind: a for point, a in _ranked(measured, "mqar", "large") if point.kind in MODERN_KINDS}
    weak = [f"{kind} {_with_best(a)}" for kind, a in means.items() if np.mean(a) < 0.9]
    if not weak:
        return ""
    shorter = {point.kind: a for point, a in _ranked(measured, "mqar", "medium")}
    longer = [
        f"{point.kind} {np.mean(shorter[point.kind]):.2f} and {_with_best(a)}"
        for point, a in _ranked(measured, "mqar-long", "medium")
        if point.kind in shorter
    ]
    passes = f" With {_numbers('medium')}, in 13 and in 32 passes: {'; '.join(longer)}." if longer else ""
    return (
        f"**Some of today's do not reliably learn MQAR's 4 pairs here.** With {_numbers('large')}: "
        f"{'; '.join(weak)}.{passes} They are published with more layers, a short convolution, weight decay and "
        "longer training: this tells of the training here, and not of what they can do."
    )


def _with_best(values: Sequence[float]) -> str:
    return f"{np.mean(values):.2f} (best seed {max(values):.2f})"


def _equal_weights(measured: Measured) -> str:
    """Ours of the middle size beside the largest of today's: about as many weights, and a quarter of the state."""
    said, weights = [], {}
    for name in ("stacked", "mqar"):
        points = [p for p in SETTINGS[name].points if p.name in (SIXTEEN["medium"], *MODERN["large"])]
        seeds = {point.kind: whole(measured, name, point.name) for point in points}
        if all(seeds.values()):
            ranked = sorted(seeds, key=lambda kind: -np.mean(seeds[kind]))
            means = ", ".join(f"{kind} {np.mean(seeds[kind]):.2f}" for kind in ranked)
            said.append(f"{SETTINGS[name].title}: {means}.")
            weights = {point.kind: measured[name, point.name][0]["parameters"] for point in points}
    if not said:
        return ""
    theirs = [weights[kind] for kind in MODERN_KINDS]
    least, most = (weights[OURS] / f(theirs) for f in (max, min))
    return (
        f"**With a quarter of their state and {least:.1f} to {most:.1f} times their weights**, ours "
        f"({weights[OURS]:,} weights, {_numbers('medium')}) beside theirs ({SIZES['large']:,} numbers). "
        f"{' '.join(said)}"
    )


def _mad(measured: Measured) -> str:
    """The mean over MAD's tasks, of the networks that were run on all of them; and without the one that decides."""
    found = {
        point.kind: {name: float(np.mean(whole(measured, name, point.name) or [np.nan])) for name in MAD}
        for point in SETTINGS[MAD[0]].points
    }
    found = {kind: means for kind, means in found.items() if np.isfinite(list(means.values())).all()}
    if OURS not in found or len(found) < 2:
        return ""

    def ranked(names: Sequence[str]) -> list[tuple[float, str]]:
        means = [(float(np.mean([its[name] for name in names])), kind) for kind, its in found.items()]
        return sorted(means, key=lambda pair: -pair[0])

    def said(means: Sequence[tuple[float, str]]) -> str:
        return "; ".join(f"{kind} {mean:.2f}" for mean, kind in means)

    copying = "mad-copying"
    means, without = ranked(MAD), ranked([name for name in MAD if name != copying])
    learned = sorted(
        ((its[copying], kind) for kind, its in found.items() if its[copying] >= 0.5), reverse=True
    )
    who = " and ".join(f"{kind} ({mean:.2f})" for mean, kind in learned)
    told = f"in this time selective copying is learned by {who or 'none'} alone"
    decides = (
        f"It is decided by one of them: {told}"
        if means[0][1] != without[0][1]
        else told[0].upper() + told[1:]
    )
    return (
        f"**MAD**, mean accuracy over five of its six tasks ({_numbers('medium')}, the LSTM {SIZES['small']}, "
        f"attention more; under 4 passes, far fewer than published): {said(means)}. {decides}. Without it: "
        f"{said(without)}."
    )


def _copies(measured: Measured) -> str:
    """What copies buy, where all of it was measured: one ratio of pairs to copies beside itself."""
    where = {(p, n): (f"copies-{p}", f"associative-64-{n}") for p in PAIRS for n in COPIES}
    seeds = {cell: whole(measured, *its) for cell, its in where.items()}
    if not all(seeds.values()):
        return ""
    means = {cell: float(np.mean(a)) for cell, a in seeds.items()}
    states = {n: f"{measured[where[16, n]][0]['state']:,} numbers" for n in COPIES}
    some = ", ".join(f"{counted(n, 'copy')} ({states[n]}) {means[16, n]:.2f}" for n in (1, 4, 16))
    alike = ", ".join(f"{counted(n, 'copy')} {means[p, n]:.2f}" for p, n in where if p == 4 * n)
    answer = ""
    if means[16, 16] >= 0.9:
        answer = " No." if means[16, 1] >= 0.9 else " No, if it has copies."
    return (
        f"**Must holographic binding fail at recall**, for its capacity (arXiv 2604.05030)?{answer} Of 16 pairs, "
        f"with the same 64 units and weights, but a state that grows with the copies, it recalls: {some}. Of four "
        f"pairs for every copy: {alike}."
    )


def _unaided(measured: Measured) -> str:
    """What ours recalls where key and value come one after the other, and it sees one symbol at a time."""
    found = whole(measured, "mqar-unaided", SIXTEEN["medium"])
    if not found:
        return ""
    return (
        "**On MQAR all see the symbol before** beside the current one, in the place of a short convolution. Without "
        f"it ours recalls {np.mean(found):.2f}; the others were not run so."
    )


def _reason(reasons: Reasons) -> str:
    """What is wrong with the networks that get a tenth and more wrong, if it is the same with all of them."""
    means = [row for row in by_network(reasons) if row["right"] < 0.9 and row["seeds"] == len(SEEDS)]
    if not means:
        return ""

    def mends(what: str, least: float) -> list[bool]:
        return [row[what] - row["right"] >= least * (1 - row["right"]) for row in means]

    shapes = "; ".join(
        f"{row['label'].partition(', ')[2].replace(', ', ' of ')} {row['right']:.2f} / {row['alone']:.2f} / "
        f"{row['random_keys']:.2f}"
        for row in means
    )
    numbers = (
        f"Right as trained / without the other pairs / with random keys, on {SEQUENCES} sequences: {shapes} (N_h: "
        "real numbers of a copy)."
    )
    if not all(mends("alone", 0.9)):
        return f"**Why pairs are forgotten**, of 32 stacked ones. {numbers}"
    keys = "" if any(mends("random_keys", 0.25)) else "; random keys would mend less than a quarter"
    why = f"the other pairs drown them{keys}"
    return f"**Why pairs are forgotten**, of 32 stacked ones: {why}. {numbers}"


def by_network(reasons: Reasons) -> list[dict[str, Any]]:
    """The means over the seeds."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in reasons:
        found.setdefault(row["network"], []).append(row)
    labels = {point.name: point.label for point in SETTINGS["stacked"].points}
    return [
        {"label": labels[name], "seeds": len(rows)}
        | {k: float(np.mean([row[k] for row in rows])) for k in MENDED}
        for name, rows in found.items()
    ]


def _how_soon(measured: Measured) -> str:
    """When an answer costs less than a guess among the values that were shown; of the middle size, with ours."""
    found = {
        point.kind: measured["mqar", point.name]
        for point in SETTINGS["mqar"].points
        if whole(measured, "mqar", point.name) and stands_in_the_middle(point)
    }
    if OURS not in found:
        return ""
    firsts = sorted((first_below(rows, PAST), kind) for kind, rows in found.items())
    past = [f"{kind} {first:,}" for first, kind in firsts if math.isfinite(first)]
    late = [kind for first, kind in firsts if math.isinf(first)]
    small = ", ".join(kind for kind in found if kind in FEWER)
    fewer = f"; about {SIZES['medium']:,} numbers, {small} {SIZES['small']}" if small else ""
    said = [*past, *([f"not in the time, with most seeds: {', '.join(late)}"] if late else [])]
    return (
        f"**How soon answers are found**, MQAR with 4 pairs: minibatches until an answer costs less than {PAST} bits "
        f"in training, where a guess among the four values costs 2 (median of the seeds{fewer}): {'; '.join(said)}."
    )


def first_below(found: Sequence[Mapping[str, Any]], bits: float) -> float:
    """The minibatches after which an answer costs less: the median of the seeds, infinite if it does not."""
    firsts = sorted(
        next((step for step, cost in row["bits"] if cost < bits and not row.get("diverged")), math.inf)
        for row in found
    )
    return firsts[len(firsts) // 2]


def _price(costs: Costs) -> str:
    """What it costs beside DeltaNet."""
    rows = {row["network"]: row for row in costs}
    said = []
    for size, ours, theirs in (
        ("medium", SIXTEEN["medium"], "deltanet-1x32"),
        ("large", SIXTEEN["large"], "deltanet-1x64"),
    ):
        if {ours, theirs} <= rows.keys():
            weights, step, memory, token = (
                rows[ours][what] / rows[theirs][what]
                for what in ("parameters", "step_milliseconds", "peak_bytes", "token_microseconds")
            )
            training = f"a training step {step:.1f}, its memory {memory:.1f}"
            numbers = f"weights {weights:.1f}, {training}, a token {token:.1f}"
            said.append(f"with about {SIZES[size]:,} numbers {numbers}")
    if not said:
        return ""
    return (
        "**What it costs**, as a multiple of DeltaNet's, on one thread, as computed here (ours by compiled "
        f"routines, the others by PyTorch's operations): {'; '.join(said)}. That is on a CPU. On a GPU the others "
        "train in parallel over time; ours goes step by step, and has not been run on one."
    )


def by_size(measured: Measured) -> str:
    """A row for every kind of network, a column for every size of state at which several stand beside each other."""
    columns = {
        (name, size): ranked
        for name, size in itertools.product(("stacked", "stacked-64", "mqar", "mqar-long"), SIZES)
        if len(ranked := _ranked(measured, name, size)) > 1
    }
    if not columns:
        return ""
    cells: dict[str, dict[tuple[str, str], str]] = {}
    for column, ranked in columns.items():
        best = max(np.mean(a) for point, a in ranked if point.kind != "Attention")
        for point, a in ranked:
            first = point.kind != "Attention" and np.mean(a) >= best - CLOSE
            cells.setdefault(point.kind, {})[column] = f"**{spread(a)}**" if first else spread(a)
    header = ["network", *(f"{SETTINGS[name].title}: {SIZES[size]:,}" for name, size in columns)]
    kinds = dict.fromkeys(point.kind for name, _ in columns for point in SETTINGS[name].points)
    rows = [[kind, *(cells[kind].get(column, "–") for column in columns)] for kind in kinds if kind in cells]
    about = (
        f"Accuracy on held-out sequences by task and numbers of state, {_seeds(measured)}. Bold: the best mean "
        f"of those with a state of fixed size, unlike attention's, and those at most {CLOSE} lower. –: not planned, "
        "or not yet run."
    )
    return f"{about}\n\n{markdown_table(header, rows)}"


def _ranked(measured: Measured, name: str, size: str) -> list[tuple[Point, list[float]]]:
    """The networks of this size all of whose seeds are there, and their accuracies: the best first."""
    found = []
    for point in SETTINGS[name].points:
        if point.size == size and (a := whole(measured, name, point.name)):
            found.append((point, a))
    return sorted(found, key=lambda pair: -np.mean(pair[1]))


def overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether seeds of one are among those of the other."""
    return min(a) <= max(b) and min(b) <= max(a)


def spread(values: Sequence[float]) -> str:
    """The mean, and between which seeds; each seed, where they lie far apart."""
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    ends = f"{min(values):.2f} to {max(values):.2f}"
    if max(values) - min(values) > FAR_APART:
        ends = " / ".join(f"{value:.2f}" for value in sorted(values))
    return f"{np.mean(values):.2f} ({ends})"
