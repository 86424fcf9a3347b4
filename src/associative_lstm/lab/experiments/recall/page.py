"""The page of the comparison, and its part in the documentation: every number comes from what was measured."""

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from associative_lstm.lab.draw.tables import Measured, markdown_table
from associative_lstm.lab.experiments.claim import Claim
from associative_lstm.lab.experiments.recall.forgetting import SEQUENCES, Reasons
from associative_lstm.lab.experiments.recall.grid import (
    CLOSE,
    COPIES,
    DRAWN,
    MAD,
    OURS,
    PAIRS,
    SEEDS,
    SETTINGS,
    SIZES,
    TRACKING,
    Point,
    stands_in_the_middle,
)
from associative_lstm.lab.experiments.recall.published import MQAR, PARITY
from associative_lstm.lab.files import write_atomically
from associative_lstm.lab.tasks import TASKS

Costs = Sequence[Mapping[str, Any]]

_MODERN = ("mLSTM", "Mamba-2", "DeltaNet", "Gated DeltaNet")

_MENDED = {
    "right": "right",
    "alone": "alone",
    "random_keys": "random keys",
    "match": "match",
    "interference": "interference",
    "random_interference": "with random keys",
    "expected": "expected",
}
_POWERS = ("interference", "random_interference", "expected")

_SMALLER = (
    "All with about 1,000 numbers of state, but LSTM and GRU with 256, and attention, whose state grows."
)

_PAST = 1.8
_BITS = (6, 2.2, _PAST, 0.5)
"""Something is known; nearly as much as for a guess among the four; more than that; nearly the right one."""

BEGIN, END = "<!-- recall: made from results/recall -->", "<!-- recall: end -->"


def page_of(measured: Measured, claims: Sequence[Claim], costs: Costs, reasons: Reasons) -> str:
    """Everything that was measured, as Markdown."""
    lines = ["# Recall: beside what people use today", "", answer(measured, reasons, costs), ""]
    lines += [left, ""] if (left := _missing(measured)) else []
    lines += ["## Claims", "", *(claim.item for claim in claims), ""]
    for name in ("stacked", "mqar", "stacked-64", "mqar-unaided"):
        lines += [f"## {SETTINGS[name].title}", "", _accuracy_table(measured, name), ""]
    lines += ["## How soon answers are found", "", _learning_table(measured), ""]
    lines += ["## What copies buy", "", _copies_table(measured), ""]
    lines += ["## Why pairs are not recalled", "", _reasons_table(reasons), ""]
    lines += ["## MAD", "", f"{_SMALLER} Accuracy on held-out sequences:", ""]
    lines += [_wide_table(measured, MAD, "accuracy"), "", "## State tracking", ""]
    lines += [f"{_SMALLER} At every step of held-out sequences of the lengths that were trained:", ""]
    lines += [_wide_table(measured, TRACKING, "accuracy"), "", "Of longer ones, at the steps beyond:", ""]
    lines += [_wide_table(measured, TRACKING, "longer"), ""]
    lines += [_published(), "", "## What it costs", "", _cost_table(costs), ""]
    return "\n".join(lines)


def answer(measured: Measured, reasons: Reasons, costs: Costs) -> str:
    """Who recalls how much, and who should use what: said of what was measured, and only of that."""
    found = (
        _advice(measured),
        _unlearned(measured),
        _tracks(measured),
        _copies(measured),
        _reason(reasons),
        _how_soon(measured),
        _price(costs),
    )
    said = "\n".join(f"- {sentence}" for sentence in found if sentence)
    table = _by_size(measured)
    return "\n\n".join(filter(None, [said if measured else "", table])) or "Not yet run."


def _by_size(measured: Measured) -> str:
    """A row for every kind of network, a column for every size of state at which several stand beside each other."""
    columns = {
        (name, size): ranked
        for name, size in itertools.product(("stacked", "mqar"), SIZES)
        if len(ranked := _ranked(measured, name, size)) > 1
    }
    if not columns:
        return ""
    cells: dict[str, dict[tuple[str, str], str]] = {}
    for column, ranked in columns.items():
        best = next(_mean(a) for point, a in ranked if point.kind != "Attention")
        for point, a in ranked:
            first = point.kind != "Attention" and _mean(a) == best
            cells.setdefault(point.kind, {})[column] = f"**{_spread(a)}**" if first else _spread(a)
    header = ["network", *(f"{SETTINGS[name].title}: {SIZES[size]:,}" for name, size in columns)]
    kinds = dict.fromkeys(point.kind for name, _ in columns for point in SETTINGS[name].points)
    rows = [[kind, *(cells[kind].get(column, "–") for column in columns)] for kind in kinds if kind in cells]
    about = (
        "Accuracy on held-out sequences by task and numbers of state, means over three seeds (smallest to largest, "
        "or each where they lie far apart; one that diverged counts as 0). Bold: the best mean of those with a state "
        "of fixed size, unlike attention's. –: not run."
    )
    return f"{about}\n\n{markdown_table(header, rows)}"


def _reason(reasons: Reasons) -> str:
    """What is wrong with the networks that get a tenth and more wrong, if it is the same with all of them."""
    means = [row for row in _by_network(reasons) if row["right"] < 0.9 and row["seeds"] == len(SEEDS)]
    if not means:
        return ""

    def mends(what: str, least: float) -> list[bool]:
        return [row[what] - row["right"] >= least * (1 - row["right"]) for row in means]

    shapes = "; ".join(
        f"{row['label'].partition(', ')[2].replace(', ', ' of ')} {row['right']:.2f}, {row['alone']:.2f}, "
        f"{row['random_keys']:.2f}"
        for row in means
    )
    numbers = (
        "Right as they are, by what the pair asked for gave alone, and with keys as unlike as random ones: "
        f"{shapes}."
    )
    if not all(mends("alone", 0.9)):
        return f"**Why pairs are forgotten**, of 32 stacked ones. {numbers}"
    keys = (
        ""
        if any(mends("random_keys", 0.25))
        else ": keys as unlike as random ones would mend less than a quarter"
    )
    return f"**Why pairs are forgotten**, of 32 stacked ones: the others drown them{keys}. {numbers}"


def _by_network(reasons: Reasons) -> list[dict[str, Any]]:
    """The means over the seeds."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in reasons:
        found.setdefault(row["network"], []).append(row)
    labels = {point.name: point.label for point in SETTINGS["stacked"].points}
    return [
        {"label": labels[name], "seeds": len(rows)}
        | {k: float(np.mean([row[k] for row in rows])) for k in _MENDED}
        for name, rows in found.items()
    ]


def _reasons_table(reasons: Reasons) -> str:
    if not reasons:
        return "Not yet measured."
    about = (
        f"Answers to {SEQUENCES} of the held-out sequences of 32 stacked pairs, given again by the same networks, "
        "with the same gates; means over the seeds. Alone: by what the pair asked for gave to the read, no more. "
        "Random keys: turned by random phases, so that keys of different pairs are no more alike than random ones. "
        "Match: how similar the key of a read is to that which the pair was written with, 1 if it is the same. "
        "Interference: what everything else adds to a read, in power and by that of the pair asked for (medians), "
        "with the network's keys and with random ones, and what theory expects of these."
    )
    header = ["network", "seeds", *_MENDED.values()]
    rows = [
        [row["label"], row["seeds"], *(f"{row[k]:.{1 if k in _POWERS else 2}f}" for k in _MENDED)]
        for row in _by_network(reasons)
    ]
    return f"{about}\n\n{markdown_table(header, rows)}"


def _tracks(measured: Measured) -> str:
    """Who stays right beyond the lengths trained, on the tasks where ours stands beside today's networks."""
    said = []
    for name in TRACKING:
        points = SETTINGS[name].points
        found = {point.kind: measured.get((name, point.name), ()) for point in points}
        means = {
            k: _mean([row["longer"] for row in rows]) for k, rows in found.items() if len(rows) >= len(SEEDS)
        }
        if {OURS, *_MODERN} <= means.keys():
            able = [f"{kind} ({mean:.2f})" for kind, mean in means.items() if mean >= 0.9]
            best = max(means, key=means.__getitem__)
            left = [f"not yet run: {kind}" for kind in found if kind not in means]
            who = able or [f"none, best {best} ({means[best]:.2f})"]
            said.append(f"{SETTINGS[name].title.lower()}: {'; '.join([*who, *left])}")
    if not said:
        return ""
    return (
        "**Who keeps track**, right at 90 % and more of the steps beyond the lengths trained, in the mean of three "
        "seeds. " + ". ".join(one[0].upper() + one[1:] for one in said) + "."
    )


def _left(measured: Measured) -> dict[str, list[Point]]:
    """By setting the networks that are still to be run."""
    return {
        name: [p for p in setting.points if len(measured.get((name, p.name), ())) < len(SEEDS)]
        for name, setting in SETTINGS.items()
    }


def _missing(measured: Measured) -> str:
    """What is still to be run."""
    said = []
    for name, left in _left(measured).items():
        if len(left) == len(SETTINGS[name].points):
            said.append(SETTINGS[name].title)
        elif left:
            said.append(f"{SETTINGS[name].title}: {', '.join(p.label.replace(', ', ' ') for p in left)}")
    return f"Not yet run: {'; '.join(said)}." if said else ""


def _copies(measured: Measured) -> str:
    """What copies buy, where all of it was measured: one ratio of pairs to copies beside itself."""
    cells = {(p, n): measured.get((f"copies-{p}", f"associative-64-{n}"), ()) for p in PAIRS for n in COPIES}
    if any(len(rows) < len(SEEDS) for rows in cells.values()):
        return ""
    means = {cell: float(np.mean([row["accuracy"] for row in rows])) for cell, rows in cells.items()}
    alike = ", ".join(f"{n} of {p} pairs {means[p, n]:.2f}" for p, n in cells if p == 4 * n)
    return (
        "**Must holographic binding fail at recall**, for its capacity (arXiv 2604.05030)? Of 16 stacked pairs 1 "
        f"copy recalls {means[16, 1]:.2f}, 4 copies {means[16, 4]:.2f}, 16 copies {means[16, 16]:.2f}, with the same "
        "weights, and 4 and 16 times the memory. With four pairs for every copy, copies recall "
        f"{alike}."
    )


def _ranked(measured: Measured, name: str, size: str) -> list[tuple[Point, list[float]]]:
    """The networks of this size all of whose seeds are there, and their accuracies: the best first."""
    found = []
    for point in SETTINGS[name].points:
        rows = measured.get((name, point.name), ())
        if point.size == size and len(rows) >= len(SEEDS):
            found.append((point, [float(row["accuracy"]) for row in rows]))
    return sorted(found, key=lambda pair: -np.mean(pair[1]))


def _advice(measured: Measured) -> str:
    """Who should use what, by task and size of the state, where ours stands beside all of today's networks."""
    said = []
    for name in ("stacked", "stacked-64", "mqar"):
        sizes = {SIZES[size]: _verdict(measured, name, _ranked(measured, name, size)) for size in SIZES}
        told = [f"about {count:,} numbers: {verdict}" for count, verdict in sizes.items() if verdict]
        if told:
            first, *more = told
            said += [f"{SETTINGS[name].title}, {first}", *(f"A{each[1:]}" for each in more)]
    if not said:
        return ""
    return (
        f"**Who should use what**, of networks whose state has a fixed size, as trained here, in the mean of "
        f"three seeds. {' '.join(said)} What speaks for an Associative LSTM: its memory can be read exactly."
    )


def _verdict(measured: Measured, name: str, ranked: Sequence[tuple[Point, list[float]]]) -> str:
    """Ours with 16 copies, or the best of the others, and what ours takes for it; "" if one of today's is missing."""
    means = {point.kind: float(np.mean(a)) for point, a in ranked}
    if not {OURS, *_MODERN} <= means.keys():
        return ""
    rivals = [kind for kind in means if not kind.startswith(("Associative", "Attention"))]
    best = max(rivals, key=means.__getitem__)
    weights = {point.kind: measured[name, point.name][0]["parameters"] for point, _ in ranked}
    ratio = weights[OURS] / weights[best]
    price = f", {ratio:.1f} times the weights" if ratio >= 1.5 else ""
    theirs, ours = f"{best} ({means[best]:.2f})", f"{OURS} ({means[OURS]:.2f}{price})"
    if abs(means[OURS] - means[best]) <= CLOSE:
        said = f"{theirs} and {ours} serve alike."
    else:
        first, second = (ours, theirs) if means[OURS] > means[best] else (theirs, ours)
        seeds = {point.kind: a for point, a in ranked}
        apart = min(seeds[OURS]) > max(seeds[best]) or min(seeds[best]) > max(seeds[OURS])
        said = f"take {first}, not {second}." if apart else f"{first} before {second}, but seeds overlap."
    better = [
        f"{kind.partition(', ')[2]} ({mean:.2f})"
        for kind, mean in means.items()
        if kind.startswith("Associative") and mean > means[OURS] + CLOSE
    ]
    return f"{said} Better forms of ours there: {', '.join(better)}." if better else said


def _unlearned(measured: Measured) -> str:
    """Which of today's networks do not surely learn here what their authors report, by the largest of each."""
    means = {point.kind: a for point, a in _ranked(measured, "mqar", "large") if point.kind in _MODERN}
    weak = [f"{kind} ({_mean(a):.2f}, best seed {max(a):.2f})" for kind, a in means.items() if _mean(a) < 0.9]
    if not weak:
        return ""
    return (
        "**Who does not surely learn here what its authors report**, MQAR with 4 pairs and about "
        f"{SIZES['large']:,} numbers: {', '.join(weak)}. So their means, here and below, say how they fare by this "
        "training, and not what they can."
    )


def _how_soon(measured: Measured) -> str:
    """When an answer costs less than a guess among the values that were shown; of the middle size, with ours."""
    found = {
        point.kind: rows
        for point in SETTINGS["mqar"].points
        if len(rows := measured.get(("mqar", point.name), ())) >= len(SEEDS) and stands_in_the_middle(point)
    }
    if OURS not in found:
        return ""
    firsts = sorted((_first_below(rows, _PAST), kind) for kind, rows in found.items())
    past = [f"{kind} ({first:,})" for first, kind in firsts if math.isfinite(first)]
    ends = {
        kind: np.median([row["bits"][-1][1] for row in rows if row["bits"]]) for kind, rows in found.items()
    }
    late = [f"{kind} (at the end {ends[kind]:.1f})" for first, kind in firsts if math.isinf(first)]
    said = [*past, *([f"not in the time: {', '.join(late)}"] if late else [])]
    return (
        f"**How soon answers are found**, MQAR with 4 pairs, where a guess among the four values costs 2 bits: after "
        f"how many minibatches an answer in training costs less than {_PAST} (median of the seeds, each network at "
        f"its own rate; about 1,024 numbers; LSTM, GRU and unitary RNN 256): {'; '.join(said)}."
    )


def _price(costs: Costs) -> str:
    """What it costs beside DeltaNet."""
    rows = {row["network"]: row for row in costs}
    if not {"associative-60-16", "deltanet-1x32"} <= rows.keys():
        return ""
    ours, theirs = rows["associative-60-16"], rows["deltanet-1x32"]
    weights, step, token = (
        ours[what] / theirs[what] for what in ("parameters", "step_milliseconds", "token_microseconds")
    )
    return (
        f"**What it costs** with about 1,024 numbers, as a multiple of DeltaNet's: weights {weights:.1f}, on one "
        f"thread a training step {step:.1f}, a token {token:.1f}."
    )


def _mean(values: Sequence[float]) -> float:
    """As it is shown."""
    return round(float(np.mean(values)), 2)


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    ends = f"{min(values):.2f} to {max(values):.2f}"
    if max(values) - min(values) > 0.3:
        ends = " / ".join(f"{value:.2f}" for value in sorted(values))
    return f"{np.mean(values):.2f} ({ends})"


def _accuracy_table(measured: Measured, name: str) -> str:
    rows = []
    for point in SETTINGS[name].points:
        if found := measured.get((name, point.name)):
            first = found[0]
            cells = [point.label, f"{first['state']:,}", f"{first['parameters']:,}", f"{first['rate']:g}"]
            rows.append([*cells, len(found), _spread([row["accuracy"] for row in found])])
    if not rows:
        return "Not yet run."
    return markdown_table(["network", "numbers of state", "parameters", "rate", "seeds", "accuracy"], rows)


def _learning_table(measured: Measured) -> str:
    """After how many minibatches an answer costs fewer bits than these, and what it costs at the end."""
    rows = []
    for name in DRAWN:
        for point in SETTINGS[name].points:
            found = measured.get((name, point.name), ())
            if len(found) >= len(SEEDS):
                label = point.label if name == "mqar" else f"{point.label}, without the symbol before"
                held_out = [row["held_out_bits"] for row in found if "held_out_bits" in row]
                cells = [_steps(_first_below(found, bits)) for bits in _BITS]
                rows.append([label, *cells, f"{np.median(held_out):.2f}" if held_out else "–"])
    if not rows:
        return "Not yet run."
    about = (
        "MQAR with 4 pairs: an answer costs 7 bits while nothing is known, and 2 as a guess among the four values of "
        "the sequence. After how many minibatches it costs less than so many bits in training, whose 10,000 "
        "sequences come again up to 13 times, and what it costs at the end on held-out ones; medians of the seeds. "
        "Every seed of those of about 1,024 numbers: `learning.png`."
    )
    header = ["network", *(f"{bits:g} bits" for bits in _BITS), "held-out bits"]
    return f"{about}\n\n{markdown_table(header, rows)}"


def _first_below(found: Sequence[Mapping[str, Any]], bits: float) -> float:
    """The minibatches after which an answer costs less: the median of the seeds, infinite if it does not."""
    firsts = sorted(
        next((step for step, cost in row["bits"] if cost < bits and not row.get("diverged")), math.inf)
        for row in found
    )
    return firsts[len(firsts) // 2]


def _steps(count: float) -> str:
    return "–" if math.isinf(count) else f"{count:,}"


def _copies_table(measured: Measured) -> str:
    settings = [name for name in SETTINGS if name.startswith("copies-")]
    points = SETTINGS[settings[0]].points
    if not any((name, point.name) in measured for name in settings for point in points):
        return "Not yet run."
    rows = []
    for point in points:
        cells = [
            _spread([row["accuracy"] for row in measured.get((name, point.name), ())]) for name in settings
        ]
        rows.append([point.values["copies"], *cells])
    return markdown_table(["copies", *(f"{SETTINGS[name].values['pairs']} pairs" for name in settings)], rows)


def _wide_table(measured: Measured, names: Sequence[str], what: str) -> str:
    """Networks by tasks; a kind of network may have other sizes on other tasks."""
    rows = []
    for kind in dict.fromkeys(point.kind for point in SETTINGS[names[0]].points):
        cells = []
        for name in names:
            its = next(point.name for point in SETTINGS[name].points if point.kind == kind)
            cells.append(_spread([row[what] for row in measured.get((name, its), ()) if what in row]))
        if any(cells):
            rows.append([kind, *cells])
    return markdown_table(["network", *map(_heading, names)], rows) if rows else "Not yet run."


def _heading(name: str) -> str:
    """Of a task, and of state tracking, where every answer is as likely, how often a guess is right."""
    title = SETTINGS[name].title
    return f"{title} (guessing: {2 ** -TASKS[SETTINGS[name].task].chance:.2f})" if name in TRACKING else title


def _published() -> str:
    figures = ", ".join(f"{name} {kilobytes:g} kB {accuracy:.2f}" for name, kilobytes, accuracy in MQAR)
    parity = ", ".join(f"{name} {accuracy:.2f}" for name, accuracy in PARITY)
    return (
        f"Published, not measured here: MQAR by size of state, {figures} (read off the plot of the repository "
        "HazyResearch/zoology: more symbols and pairs, and other lengths of training, than ours); parity on longer "
        f"sequences, after the last bit, on a scale where guessing is 0, {parity} (arXiv 2411.12537)."
    )


def _cost_table(costs: Costs) -> str:
    if not costs:
        return "Not yet measured."
    header = [
        "network",
        "numbers of state",
        "parameters",
        "ms of a training step",
        "µs of a token",
        "MiB of a step",
    ]
    rows = [
        [
            row["label"],
            f"{row['state']:,}",
            f"{row['parameters']:,}",
            f"{row['step_milliseconds']:.1f}",
            f"{row['token_microseconds']:.0f}",
            f"{row['peak_bytes'] / 2**20:.1f}",
        ]
        for row in costs
    ]
    first = costs[0]
    about = (
        "One thread, one machine, one run: a training step (forward, backward, Adam) on MQAR, minibatch "
        f"{first['batch']}, {first['steps']} steps; a token of one sequence. Timed after what each says token by "
        "token was compared with what it says of the whole sequence."
    )
    return f"{about}\n\n{markdown_table(header, rows)}"


def block(measured: Measured, reasons: Reasons, costs: Costs) -> str:
    """What the documentation says of it: the answer, its picture, and how much is still missing."""
    parts = [answer(measured, reasons, costs)]
    if measured:
        parts += [
            "![Accuracy against the numbers of state, against pairs over copies, and beyond the lengths trained]"
            "(../results/recall/recall.png)",
            "Every table, the claims, [how MQAR is learned](../results/recall/learning.png) and what each network "
            "costs: [results/recall](../results/recall/README.md).",
        ]
    if measured and (left := sum(map(len, _left(measured).values()))):
        of = sum(len(setting.points) for setting in SETTINGS.values())
        parts.append(f"{left} of {of} networks by task are still to be run; the same page lists them.")
    return "\n\n".join([BEGIN, *parts, END])


def filled(text: str, measured: Measured, reasons: Reasons, costs: Costs) -> str:
    """A page of the documentation with the block that the measurements say."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + block(measured, reasons, costs) + after


if (
    __name__ == "__main__"
):  # python -m associative_lstm.lab.experiments.recall.page results/recall docs/recall.md
    from associative_lstm.lab.experiments.recall.study import read

    results, page = map(Path, sys.argv[1:])
    numbers, costs, reasons = read(results)
    write_atomically(page, filled(page.read_text(encoding="utf-8"), numbers, reasons, costs).encode())
