"""The page of the comparison, and its part in the documentation: every number comes from what was measured."""

import itertools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from associative_lstm.lab.draw.tables import Measured, markdown_table
from associative_lstm.lab.experiments.claim import Claim
from associative_lstm.lab.experiments.recall.grid import (
    COPIES,
    MAD,
    OURS,
    PAIRS,
    SEEDS,
    SETTINGS,
    SIZES,
    TRACKING,
    Point,
)
from associative_lstm.lab.experiments.recall.published import MQAR, PARITY
from associative_lstm.lab.experiments.recall.why import Rows
from associative_lstm.lab.files import write_atomically

Costs = Sequence[Mapping[str, Any]]

_MODERN = ("mLSTM", "Mamba-2", "DeltaNet", "Gated DeltaNet")

BEGIN, END = "<!-- recall: made from results/recall -->", "<!-- recall: end -->"


def page_of(measured: Measured, claims: Sequence[Claim], costs: Costs, looked: Rows = ()) -> str:
    """Everything that was measured, as Markdown."""
    lines = ["# Recall: beside what people use today", "", *answer(measured, looked), ""]
    lines += ["## Claims", "", *(claim.item for claim in claims), ""]
    for name in ("stacked", "mqar", "stacked-64", "mqar-unaided"):
        lines += [f"## {SETTINGS[name].title}", "", _accuracy_table(measured, name), ""]
    lines += ["## What copies buy", "", _copies_table(measured), ""]
    lines += ["## Why pairs are not recalled", "", _why_table(looked), ""]
    lines += ["## MAD", "", _wide_table(measured, MAD, "accuracy"), ""]
    lines += ["## State tracking", "", "On held-out sequences of the lengths that were trained:", ""]
    lines += [_wide_table(measured, TRACKING, "accuracy"), "", "On longer ones:", ""]
    lines += [_wide_table(measured, TRACKING, "longer"), ""]
    lines += [_published(), "", "## What it costs", "", _cost_table(costs), ""]
    return "\n".join(lines)


def answer(measured: Measured, looked: Rows = ()) -> list[str]:
    """Who recalls how much, and who should use what: said of what was measured, and only of that."""
    sentences = [s for s in (_advice(measured), _why(looked), _copies(measured)) if s]
    table = _by_size(measured)
    if not table and not sentences:
        return ["Not yet run."]
    parts = ["\n".join(f"- {sentence}" for sentence in sentences), table, _missing(measured)]
    return "\n\n".join(part for part in parts if part).split("\n")


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
        best = next(np.mean(a) for point, a in ranked if _family(point) != "Attention")
        for point, a in ranked:
            shown, first = _spread(a), point.kind != "Attention" and np.mean(a) > best - 0.005
            cells.setdefault(point.kind, {})[column] = f"**{shown}**" if first else shown
    header = ["network", *(f"{SETTINGS[name].title}: {SIZES[size]:,}" for name, size in columns)]
    kinds = dict.fromkeys(point.kind for name, _ in columns for point in SETTINGS[name].points)
    rows = [[kind, *(cells[kind].get(column, "") for column in columns)] for kind in kinds if kind in cells]
    about = (
        "Accuracy on held-out sequences by task and numbers of state, means over three seeds (smallest to largest). "
        "Bold: the best of those whose state has a fixed size, which attention's has not."
    )
    return f"{about}\n\n{markdown_table(header, rows)}"


def _why(looked: Rows) -> str:
    """Whether it is the keys or the memory, of the networks that get a tenth and more wrong, where all agree."""
    means = [row for row in _by_network(looked) if row["right"] < 0.9]
    if not means:
        return ""
    labels = [row["label"].partition(", ")[2].replace(", ", " of ") for row in means]

    def said(what: str) -> str:
        return ", ".join(f"{row[what]:.2f}" for row in means)

    numbers = (
        f"with {'; '.join(labels)}, right as they are {said('right')}; were the pair asked for alone in memory "
        f"{said('alone')}; asked with the very key that it was written with {said('exact_key')}; with random keys in "
        f"place of the learned ones {said('random_keys')}"
    )
    noise = all(row["alone"] - row["right"] >= 0.9 * (1 - row["right"]) for row in means)
    keys = any(max(row["exact_key"], row["random_keys"]) - row["right"] >= 0.1 for row in means)
    if noise and not keys:
        return f"What it does not recall is lost in the noise of its memory, not to wrong keys: {numbers}."
    return f"Why it does not recall, {numbers}."


def _by_network(looked: Rows) -> list[dict[str, Any]]:
    """The means over the seeds."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in looked:
        found.setdefault(row["label"], []).append(row)
    numbers = [key for key in (looked[0] if looked else {}) if key not in ("network", "label", "seed")]
    return [
        {"label": label, "seeds": len(rows)} | {k: float(np.mean([row[k] for row in rows])) for k in numbers}
        for label, rows in found.items()
    ]


def _why_table(looked: Rows) -> str:
    if not looked:
        return "Not yet measured."
    about = (
        "Of 32 stacked pairs, answers to held-out sequences given again by the same networks with one thing mended "
        "at a time; means over the seeds. Alone: the pair asked for is the only one in memory. Exact key: it is "
        "asked for with the very key that it was written with. Random keys: the same values in a memory of the same "
        "size, under keys of random phases. Interference: what all other pairs add to a read, in power and by that "
        "of the pair asked for (medians), and what theory expects of random keys."
    )
    rows = [
        [
            row["label"],
            row["seeds"],
            *(f"{row[key]:.2f}" for key in ("right", "alone", "exact_key", "random_keys")),
            *(f"{row[key]:.1f}" for key in ("interference", "expected")),
        ]
        for row in _by_network(looked)
    ]
    header = ["network", "seeds", "right", "alone", "exact key", "random keys", "interference", "expected"]
    return f"{about}\n\n{markdown_table(header, rows)}"


def _missing(measured: Measured) -> str:
    """What is still to be run."""
    said = []
    for setting in SETTINGS.values():
        left = [p for p in setting.points if len(measured.get((setting.name, p.name), ())) < len(SEEDS)]
        if len(left) == len(setting.points):
            said.append(setting.title)
        elif left:
            said.append(f"{setting.title}: {', '.join(p.label.replace(', ', ' ') for p in left)}")
    return f"Not yet run: {'; '.join(said)}." if said else ""


def _family(point: Point) -> str:
    return point.label.split(",")[0]


def _copies(measured: Measured) -> str:
    """What copies buy, where all of it was measured: one ratio of pairs to copies beside itself."""
    cells = {(p, n): measured.get((f"copies-{p}", f"associative-64-{n}"), ()) for p in PAIRS for n in COPIES}
    if any(len(rows) < len(SEEDS) for rows in cells.values()):
        return ""
    means = {cell: float(np.mean([row["accuracy"] for row in rows])) for cell, rows in cells.items()}
    alike = ", ".join(f"{n} of {p} pairs {means[p, n]:.2f}" for p, n in cells if p == 4 * n)
    return (
        f"Copies buy recall, at no parameters: of 16 stacked pairs 1 copy recalls {means[16, 1]:.2f}, 4 copies "
        f"{means[16, 4]:.2f}, 16 copies {means[16, 16]:.2f}. It follows pairs / copies: at four pairs a copy, copies "
        f"recall {alike}."
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
    """Who should use what, by the largest state at which ours stands beside all of today's networks on each task."""
    said, lost = [], []
    for name in ("stacked", "mqar"):
        ranked = {size: _ranked(measured, name, size) for size in SIZES}
        whole = [size for size in SIZES if {OURS, *_MODERN} <= {point.kind for point, _ in ranked[size]}]
        if not whole:
            continue
        means = {point: float(np.mean(a)) for point, a in ranked[whole[-1]] if point.kind != "Attention"}
        ours = next(point for point in means if _family(point) == "Associative LSTM")
        best = next(point for point in means if _family(point) != "Associative LSTM")
        where = f"on {SETTINGS[name].title.replace('Stacked', 'stacked')}, with about {SIZES[whole[-1]]:,} numbers"
        if means[ours] >= means[best] - 0.02:
            said.append(
                f"{where}, none of them recalls more than an Associative LSTM ({means[ours]:.2f}; next {best.kind} "
                f"{means[best]:.2f})"
            )
        else:
            said.append(f"{where}, {best.kind} recalls more ({means[best]:.2f}; ours {means[ours]:.2f})")
            lost.append(best.kind)
    if not said:
        return ""
    if lost:
        advice = (
            f"Who wants to recall much should take {' or '.join(dict.fromkeys(lost))}; an Associative LSTM is for "
            "those who want to read its memory, exactly, or an LSTM that stores more without more weights"
        )
    else:
        advice = (
            "Who wants to recall much loses nothing by an Associative LSTM; who has no use for its exact account of "
            "what it recalls may take what trains faster"
        )
    return f"Of networks whose state has a fixed size, as trained here, {', and '.join(said)}. {advice}."


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


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
    return markdown_table(["network", *names], rows) if rows else "Not yet run."


def _published() -> str:
    figures = ", ".join(f"{name} {kilobytes:g} kB {accuracy:.2f}" for name, kilobytes, accuracy in MQAR)
    parity = ", ".join(f"{name} {accuracy:.2f}" for name, accuracy in PARITY)
    return (
        f"Published, not measured here: MQAR by size of state, {figures} (read off the plot of the repository "
        "HazyResearch/zoology: more symbols and pairs, and other lengths of training, than ours); parity on longer "
        f"sequences, on a scale where guessing is 0, {parity} (arXiv 2411.12537)."
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


def block(measured: Measured, looked: Rows = ()) -> str:
    """What the documentation says of it."""
    parts = ["\n".join(answer(measured, looked))]
    if measured:
        parts += [
            "![Accuracy against the numbers of state, and against pairs over copies](../results/recall/recall.png)",
            "Every table, the claims and what each network costs: [results/recall](../results/recall/README.md).",
        ]
    return "\n\n".join([BEGIN, *parts, END])


def filled(text: str, measured: Measured, looked: Rows = ()) -> str:
    """A page of the documentation with the block that the measurements say."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + block(measured, looked) + after


if (
    __name__ == "__main__"
):  # python -m associative_lstm.lab.experiments.recall.page results/recall docs/recall.md
    from associative_lstm.lab.experiments.recall.study import read

    results, page = map(Path, sys.argv[1:])
    numbers, _, reasons = read(results)
    write_atomically(page, filled(page.read_text(encoding="utf-8"), numbers, reasons).encode())
