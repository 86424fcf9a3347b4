"""The four properties of the memory that section 3 lists, and the other ways to bind and to read, on photographs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from associative_lstm.functional import random_key
from associative_lstm.lab.bench.timing import threads
from associative_lstm.lab.draw.pictures import save_figure
from associative_lstm.lab.draw.tables import save_table
from associative_lstm.lab.experiments.claim import Claim, judge, write_claims
from associative_lstm.lab.experiments.experiment import Advance, Measurement, Outcome
from associative_lstm.lab.experiments.memory import properties_drawing as drawing
from associative_lstm.lab.experiments.memory.bindings import BINDINGS, retrieve
from associative_lstm.lab.experiments.memory.photographs import load_photographs, to_vectors
from associative_lstm.lab.experiments.memory.properties_drawing import Measured, Rows
from associative_lstm.memory import HolographicMemory, expected_error


class Scale(NamedTuple):
    """How large the experiments are; the smallest is for tests."""

    images: int = 100
    copies: int = 100
    draws: int = 5
    fractions: tuple[float, ...] = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


FULL = Scale()


@threads(1)  # a memory works through blocks that are too small to be split well among threads
def run(
    out: Path,
    *,
    images: Path | None = None,
    scale: Scale = FULL,
    seed: int = 0,
    warn: Callable[[str], None] = print,
    advance: Advance = lambda: None,
) -> Outcome:
    """Measure and draw the properties: one picture and one table each, and the verdicts."""
    photographs = load_photographs(scale.images, images, seed=seed, warn=warn)
    x = to_vectors(photographs.pixels)
    written: list[Path] = []
    claims: list[Claim] = []
    out.mkdir(parents=True, exist_ok=True)
    experiments: list[tuple[str, Any, Any, Any]] = [
        ("copies", changing_copies, judge_copies, drawing.draw_copies),
        ("partial_keys", partial_keys, judge_partial_keys, drawing.draw_partial_keys),
        ("items", more_items, judge_items, drawing.draw_items),
        ("binding", other_bindings, judge_bindings, drawing.draw_bindings),
    ]
    for name, measure, verdicts, draw in experiments:
        measured = measure(x, scale, torch.Generator().manual_seed(seed))
        claims += verdicts(measured.rows)
        written.append(save_table(out / f"{name}.csv", measured.rows))
        written.append(save_figure(draw(measured, photographs.pixels), out / f"{name}.png", colours=256))
        advance()
    written.append(write_claims(out / "claims.json", claims, **photographs.about(seed)))
    return Outcome(written, claims)


def _filled(x: Tensor, copies: int, generator: torch.Generator) -> tuple[HolographicMemory, Tensor]:
    r = random_key(x.shape[1], len(x), generator=generator)
    memory = HolographicMemory(x.shape[1], copies, generator=generator)
    memory.write(r, x)
    return memory, r


def _error(read: Tensor, x: Tensor) -> float:
    return (read - x).square().mean().item()


def _gain(read: Tensor, x: Tensor) -> float:
    """How much of x is in a read: 1 if it is unbiased."""
    return ((read * x).sum() / x.square().sum()).item()


# --- the number of copies can be modified at any time


def changing_copies(x: Tensor, scale: Scale, generator: torch.Generator) -> Measured:
    """Two groups of images, written before and after the memory has grown; then it shrinks."""
    n = min(20, scale.images // 2)
    old, new = x[:n], x[n : 2 * n]
    p_old, p_new = old.square().mean().item(), new.square().mean().item()
    small, large, least = n, min(4 * n, scale.copies), n // 2
    memory, r_old = _filled(old, small, generator)
    r_new = random_key(x.shape[1], n, generator=generator)
    rows: Rows = []
    pictures: dict[Any, Tensor] = {}

    def record(stage: str, group: str, r: Tensor, value: Tensor, expected: float) -> None:
        read = memory.read(r)
        naive = memory.read(r, num_copies=memory.num_copies)  # the mean over all copies, whatever they hold
        rows.append(
            {
                "stage": stage,
                "group": group,
                "copies": memory.num_copies,
                "mse": _error(read, value),
                "expected": expected,
                "gain": _gain(read, value),
                "gain_over_all_copies": _gain(naive, value),
            }
        )
        pictures[stage, group] = read[0]
        if group == "before":
            pictures[stage, "before, all copies"] = naive[0]

    def noise(own: float, other: float, holders: int) -> float:
        """Of the n - 1 others of the own group and the n of the other one, in so many copies."""
        together = (n - 1) * own + n * other
        return expected_error(2, holders, size=x.shape[1], power=together)

    record(f"{n} images in {small} copies", "before", r_old, old, expected_error(n, small, power=p_old))
    memory.resize(large)
    record(f"grown to {large} copies", "before", r_old, old, expected_error(n, small, power=p_old))
    memory.write(r_new, new)
    stage = f"{n} more images"
    record(stage, "before", r_old, old, noise(p_old, p_new, small))
    # the old copies disturb with all images, the added ones with the new images only
    mixed = (n - 1) * p_new / large + small * n * p_old / large**2
    record(stage, "after", r_new, new, mixed)
    memory.resize(least)
    stage = f"shrunk to {least} copies"
    record(stage, "before", r_old, old, noise(p_old, p_new, least))
    record(stage, "after", r_new, new, noise(p_new, p_old, least))
    return Measured(rows, pictures)


def judge_copies(rows: Rows) -> list[Claim]:
    """Every error is the one that the copies in use should give."""
    ratios = [row["mse"] / row["expected"] for row in rows]
    right = max(abs(ratio - 1) for ratio in ratios) < 0.05
    shrunk, grown = rows[-1], rows[-3]
    return [
        judge(
            "The number of copies can be modified at any time: fewer copies increase the noise, more enlarge the "
            "capacity.",
            "errors are the expected ones within 5 % at every stage, smallest for images written after the growth",
            right and grown["mse"] < rows[0]["mse"] < shrunk["mse"],
            smallest_ratio_to_expected=min(ratios),
            largest_ratio_to_expected=max(ratios),
            gain_of_old_images_after_growth=rows[2]["gain"],
            the_same_if_all_copies_were_averaged=rows[2]["gain_over_all_copies"],
        )
    ]


# --- a partially known key


def partial_keys(x: Tensor, scale: Scale, generator: torch.Generator) -> Measured:
    """Error against the fraction of the key that is known, with one image in the memory and with twenty."""
    size, half = x.shape[1], x.shape[1] // 2
    rows: Rows = []
    pictures: dict[Any, Tensor] = {}
    for items in (1, min(20, scale.images)):
        memory, r = _filled(x[:items], scale.copies, generator)
        chosen = slice(0, 8)
        # what each key forgets last
        order = torch.rand(len(r[chosen]), half, generator=generator).argsort(-1)
        power = x[:items].square().mean(-1)
        own, others = (
            power[chosen].mean().item(),
            ((power.sum() - power[chosen].mean()) / max(1, items - 1)).item(),
        )
        for copies in sorted({n for n in (1, 4, 20, 100) if n <= scale.copies}):
            for fraction in scale.fractions:
                known = max(1, round(fraction * half))
                mask = (order < known).float().repeat(1, 2)
                read = memory.read(r[chosen] * mask, num_copies=copies)
                f = known / half
                lost = (1 - f) ** copies
                noise = expected_error(items, copies, size=size, known=f) - lost  # for values of unit power
                rows.append(
                    {
                        "items": items,
                        "copies": copies,
                        "known": f,
                        "mse": _error(read, x[:items][chosen]) / own,
                        "expected": lost + noise * others / own,
                        "recovered": 1 - lost,
                    }
                )
                pictures[items, copies, fraction] = read[0]
    return Measured(rows, pictures)


def judge_partial_keys(rows: Rows) -> list[Claim]:
    """The paper's order of magnitude, N / copies elements."""
    copies = max(row["copies"] for row in rows)
    alone = [row for row in rows if row["items"] == 1 and row["copies"] == copies]
    once = min(alone, key=lambda row: abs(row["known"] * copies - 1))
    five = min(alone, key=lambda row: abs(row["known"] * copies - 5))
    return [
        judge(
            "A key of which O(N_h / N_copies) elements are known recovers the whole value.",
            f"from {copies} copies, five times N_h / N_copies elements lose less than 2 % of a value's power",
            five["mse"] < 0.02,
            fraction_known=five["known"],
            lost=five["mse"],
            lost_with_one_times=once["mse"],
        )
    ]


# --- more items than copies, and no search for free locations


def more_items(x: Tensor, scale: Scale, generator: torch.Generator) -> Measured:
    """Images are added to one memory long after they outnumber its copies."""
    size = x.shape[1]
    memory = HolographicMemory(size, min(20, scale.copies), generator=generator)
    r = random_key(size, len(x), generator=generator)
    power = x.square().mean(-1)
    chosen = slice(0, 3)
    rows: Rows = []
    pictures: dict[Any, Tensor] = {}
    written = 0
    counts = 1, 2, 3, 5, 7, 10, 15, *range(20, 101, 10)
    for items in (n for n in counts if n <= scale.images):
        memory.write(r[written:items], x[written:items])
        written = items
        others = (power[:items].sum() - power[:items][chosen].mean()).item() / max(1, items - 1)
        for copies in sorted({n for n in (1, 4, 20) if n <= memory.num_copies}):
            read = memory.read(r[:items][chosen], num_copies=copies)
            mse = _error(read, x[:items][chosen])
            expected = expected_error(items, copies, size=size, power=others)
            rows.append({"items": items, "copies": copies, "mse": mse, "expected": expected})
            pictures[items, copies] = read[0]
    return Measured(rows, pictures)


def judge_items(rows: Rows) -> list[Claim]:
    """The noise of superposition, and nothing else."""
    crowded = [row for row in rows if row["items"] > row["copies"]]
    ratios = [row["mse"] / row["expected"] for row in crowded]
    numbers = {"smallest_ratio_to_expected": min(ratios), "largest_ratio_to_expected": max(ratios)}
    return [
        judge(
            "More items than copies can be stored, at the cost of noise, and no free location is searched for.",
            "with more images than copies, every error is the expected one within 5 %",
            max(abs(ratio - 1) for ratio in ratios) < 0.05,
            **numbers,
        )
    ]


# --- other ways to bind and to read


def other_bindings(x: Tensor, scale: Scale, generator: torch.Generator) -> Measured:
    """The same images, with the same number of copies, bound and read in each of Plate's ways."""
    copies = min(20, scale.copies)
    rows: Rows = []
    pictures: dict[Any, Tensor] = {}
    for name in BINDINGS:
        for items in [n for n in (1, 2, 5, 20) if n <= scale.images]:
            reads = [retrieve(name, x[:items], copies, generator) for _ in range(scale.draws)]
            errors = [_error(read, x[0]) for read in reads]
            row = {"binding": name, "items": items, "copies": copies, "mse": sum(errors) / len(errors)}
            rows.append(row | {"smallest": min(errors), "largest": max(errors)})
            pictures[name, items] = reads[0]
    return Measured(rows, pictures)


def judge_bindings(rows: Rows) -> list[Claim]:
    """Why the conjugate, and not the inverse."""
    most = max(row["items"] for row in rows)
    error = {row["binding"]: row["mse"] for row in rows if row["items"] == most}
    names = list(BINDINGS)
    unit, conjugate, inverse = error[names[0]], error[names[1]], error[names[2]]
    return [
        judge(
            "The exact inverse of the key can magnify the noise; the complex conjugate is better for retrieval.",
            f"with {most} images under Gaussian keys, the inverse has a larger error than the conjugate, and unit "
            "keys (where the two are the same) the smallest",
            inverse > conjugate > unit,
            unit_keys=unit,
            gaussian_keys_conjugate=conjugate,
            gaussian_keys_inverse=inverse,
        )
    ]


PROPERTIES = Measurement(
    "properties",
    "Properties of the memory",
    "Copies added and removed while in use, partly known keys, more items than copies, other ways to bind.",
    run,
    4,
    pictures=[
        ("copies.png", "Images read back before and after the number of copies changes"),
        ("partial_keys.png", "How much of a value comes back when part of its key is known"),
        ("items.png", "Error against the number of items, for several numbers of copies"),
        ("binding.png", "Error of other ways to bind keys and values"),
    ],
)
