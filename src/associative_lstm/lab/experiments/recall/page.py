"""The page of the comparison, and its part in the documentation: every number comes from what was measured."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from associative_lstm.lab.draw.tables import Measured, markdown_table
from associative_lstm.lab.experiments.claim import Claim
from associative_lstm.lab.experiments.recall.answer import (
    MENDED,
    PAST,
    Costs,
    advice,
    by_network,
    by_size,
    findings,
    first_below,
    spread,
)
from associative_lstm.lab.experiments.recall.forgetting import SEQUENCES, Reasons
from associative_lstm.lab.experiments.recall.grid import (
    DRAWN,
    MAD,
    SEEDS,
    SETTINGS,
    TRACKING,
    UNAIDED,
    Point,
    whole,
)
from associative_lstm.lab.experiments.recall.published import MODULAR, MQAR, PARITY
from associative_lstm.lab.files import write_atomically
from associative_lstm.lab.tasks import TASKS

_TRACKED = (*TRACKING, UNAIDED)
_POWERS = ("interference", "random_interference", "expected")

_SMALLER = "All with about 1,000 numbers of state, but {} with 256, and attention, whose state grows."

_BITS = (6, 2.2, PAST, 0.5)
"""Something is known; nearly as much as for a guess among the four; more than that; nearly the right one."""

BEGIN, END = "<!-- recall: made from results/recall -->", "<!-- recall: end -->"


def page_of(measured: Measured, claims: Sequence[Claim], costs: Costs, reasons: Reasons) -> str:
    """Everything that was measured, as Markdown."""
    said = [advice(measured), findings(measured, reasons, costs), by_size(measured)]
    lines = [
        "# Recall: beside what people use today",
        "",
        "\n\n".join(filter(None, said)) or "Not yet run.",
        "",
    ]
    lines += [left, ""] if (left := _missing(measured)) else []
    lines += ["## Claims", "", *(claim.item for claim in claims), ""]
    for name in ("stacked", "mqar", "stacked-64", "mqar-long", "mqar-unaided"):
        lines += [f"## {SETTINGS[name].title}", "", _accuracy_table(measured, name), ""]
        lines += [_published(), ""] if name == "mqar" else []
    lines += ["## How soon answers are found", "", _learning_table(measured), ""]
    lines += ["## What copies buy", "", _copies_table(measured), ""]
    lines += ["## Why pairs are not recalled", "", _reasons_table(reasons), ""]
    lines += ["## MAD", "", f"{_SMALLER.format('the LSTM')} Accuracy on held-out sequences:", ""]
    lines += [_wide_table(measured, MAD, "accuracy"), "", "## State tracking", ""]
    lines += [
        f"{_SMALLER.format('LSTM and GRU')} At every step of held-out sequences of the lengths trained:",
        "",
    ]
    lines += [_wide_table(measured, _TRACKED, "accuracy"), "", "Of longer ones, at the steps beyond:", ""]
    lines += [_wide_table(measured, _TRACKED, "longer"), ""]
    lines += [_published_tracking(), "", "## What it costs", "", _cost_table(costs), ""]
    return "\n".join(lines)


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
    header = ["network", "seeds", *MENDED.values()]
    rows = [
        [row["label"], row["seeds"], *(f"{row[k]:.{1 if k in _POWERS else 2}f}" for k in MENDED)]
        for row in by_network(reasons)
    ]
    return f"{about}\n\n{markdown_table(header, rows)}"


def _left(measured: Measured) -> dict[str, list[Point]]:
    """By setting the networks that are still to be run."""
    return {
        name: [p for p in setting.points if not whole(measured, name, p.name)]
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


def _accuracy_table(measured: Measured, name: str) -> str:
    rows = []
    for point in SETTINGS[name].points:
        if found := measured.get((name, point.name)):
            first = found[0]
            cells = [point.label, f"{first['state']:,}", f"{first['parameters']:,}", f"{first['rate']:g}"]
            rows.append([*cells, len(found), spread([row["accuracy"] for row in found])])
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
                cells = [_steps(first_below(found, bits)) for bits in _BITS]
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
            spread([row["accuracy"] for row in measured.get((name, point.name), ())]) for name in settings
        ]
        rows.append([point.values["copies"], *cells])
    return markdown_table(["copies", *(f"{SETTINGS[name].values['pairs']} pairs" for name in settings)], rows)


def _wide_table(measured: Measured, names: Sequence[str], what: str) -> str:
    """Networks by tasks, with their weights; a kind of network may have other sizes on other tasks."""
    rows = []
    for kind in dict.fromkeys(point.kind for point in SETTINGS[names[0]].points):
        cells, weights = [], []
        for name in names:
            its = next((point.name for point in SETTINGS[name].points if point.kind == kind), "")
            found = [row for row in measured.get((name, its), ()) if what in row]
            cells.append(spread([row[what] for row in found]) or "–")
            weights += [row["parameters"] for row in found]
        if weights:
            least, most = f"{min(weights):,}", f"{max(weights):,}"
            rows.append([kind, least if least == most else f"{least} to {most}", *cells])
    return markdown_table(["network", "weights", *map(_heading, names)], rows) if rows else "Not yet run."


def _heading(name: str) -> str:
    """A task, and how often a guess is right."""
    return f"{SETTINGS[name].title} (guessing: {2 ** -TASKS[SETTINGS[name].task].chance:.2f})"


def _published() -> str:
    rows = [
        [name, f"{round(250 * kilobytes, -2):,.0f}", f"{accuracy:.2f}"] for name, kilobytes, accuracy in MQAR
    ]
    return (
        "Published, not measured here (read off the plot of the repository HazyResearch/zoology, four bytes a "
        "number; 8,192 symbols, up to 256 pairs, and other lengths of training than above):\n\n"
        f"{markdown_table(['network', 'numbers of state, about', 'accuracy'], rows)}"
    )


def _published_tracking() -> str:
    parity, modular = (
        ", ".join(f"{name} {accuracy:.2f}" for name, accuracy in each) for each in (PARITY, MODULAR)
    )
    return (
        "Published, not measured here (arXiv 2411.12537): longer sequences, after the last symbol, on a scale where "
        f"guessing is 0, the best of three seeds. Parity: {parity}. Modular arithmetic: {modular}; with three layers "
        "and a short convolution, where there is one layer and no convolution here."
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
    parts = [advice(measured)]
    if measured:
        parts += [
            "![Accuracy by the numbers of state, and beyond the lengths trained](../results/recall/recall.png)",
            findings(measured, reasons, costs),
            "Pictures: [recall by weights, pairs and copies](../results/recall/dependence.png), [how MQAR is "
            "learned](../results/recall/learning.png). Every network, size and task, the claims, what was published, "
            "and what each network costs: [results/recall](../results/recall/README.md).",
        ]
    if measured and (left := sum(map(len, _left(measured).values()))):
        of = sum(len(setting.points) for setting in SETTINGS.values())
        parts.append(f"{left} of {of} networks by task are still to be run; the same page lists them.")
    return "\n\n".join([BEGIN, *(filter(None, parts) if any(parts) else ["Not yet run."]), END])


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
