"""Figure 2: the error of a retrieved image against the number of copies, of images, and of both together."""

import csv
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from associative_lstm.functional import random_key
from associative_lstm.lab.bench.timing import threads
from associative_lstm.lab.draw.pictures import save_figure, style
from associative_lstm.lab.draw.tables import save_table
from associative_lstm.lab.experiments.claim import Claim, judge, write_claims
from associative_lstm.lab.experiments.experiment import Advance, Measurement, Outcome, Points
from associative_lstm.lab.experiments.memory.photographs import load_photographs, to_vectors
from associative_lstm.lab.files import write_atomically
from associative_lstm.lab.palette import BLUE, VERMILION
from associative_lstm.memory import HolographicMemory, expected_error

GRID = [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100]
MIDDLE = 50
"""The images stored in the left panel, and the copies used in the middle one."""

READ = 10
"""Images read back per point and draw."""

DRAWS = 5

PANELS = ("copies", "images", "both")

Errors = dict[str, dict[int, list[tuple[float, float]]]]
"""Panel, then its abscissa, then in each draw the mean squared error: measured, expected."""


def run(
    out: Path,
    *,
    images: Path | None = None,
    draws: int = DRAWS,
    largest: int = 100,
    seed: int = 0,
    warn: Callable[[str], None] = print,
    advance: Advance = lambda: None,
) -> Outcome:
    """Measure and draw the three panels with up to ``largest`` images and copies.

    Every draw has its own keys, permutations and order of the images, and ends with a call of ``advance``. Writes the
    picture, the data behind it and the verdicts.
    """
    started = time.perf_counter(), time.process_time()
    grid = [n for n in GRID if n <= largest]
    middle = min(MIDDLE, grid[-1])
    photographs = load_photographs(grid[-1], images, seed=seed, warn=warn)
    x = to_vectors(photographs.pixels)
    out.mkdir(parents=True, exist_ok=True)
    # Draws side by side, one thread each: a memory's blocks are too small to be split well among threads.
    drawn = []
    with threads(1), ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for result in pool.map(lambda k: _measure(x, grid, middle, seed * 1000 + k), range(draws)):
            drawn.append(result)
            advance()
    errors = {panel: {n: [result[panel][n] for result in drawn] for n in grid} for panel in PANELS}
    claims = judge_panels(errors, middle)

    table = [
        {"panel": panel, "n": n, "draw": k, "mse": measured, "expected": expected}
        for panel, points in errors.items()
        for n, pairs in points.items()
        for k, (measured, expected) in enumerate(pairs)
    ]
    about = {
        "source": photographs.source,
        "licences": photographs.licences,
        "draws": draws,
        "size": x.shape[1],
        "seed": seed,
    }
    written = [
        save_figure(draw(errors, middle, photographs.source), out / "fig2.png"),
        save_table(out / "fig2.csv", table),
        write_claims(out / "claims.json", claims, **about),
    ]
    cost: dict[str, float] = {
        "seconds": round(time.perf_counter() - started[0], 1),
        "processor_seconds": round(time.process_time() - started[1], 1),
    }
    if sys.platform != "win32":  # which does not tell
        import resource

        unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
        cost["peak_mebibytes"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)
    # Apart from the claims, which are the same in every run.
    write_atomically(out / "cost.json", (json.dumps(cost, indent=2) + "\n").encode())
    return Outcome([*written, out / "cost.json"], claims, cost)


def _measure(x: Tensor, grid: list[int], middle: int, seed: int) -> dict[str, dict[int, tuple[float, float]]]:
    """One draw: images are written one group after the other, and read back in between."""
    generator = torch.Generator().manual_seed(seed)
    items, size = x.shape
    x = x[torch.randperm(items, generator=generator)]
    r = random_key(size, items, generator=generator)
    memory = HolographicMemory(size, grid[-1], generator=generator)
    power = x.square().mean(-1)

    def error(stored: int, copies: int) -> tuple[float, float]:
        chosen = torch.linspace(0, stored - 1, min(stored, READ)).round().long()
        measured = (memory.read(r[chosen], num_copies=copies) - x[chosen]).square().mean().item()
        bright = (power[:stored].sum() - power[chosen].mean()).item()  # bright images disturb more
        others = bright / max(1, stored - 1)
        return measured, expected_error(stored, copies, size=size, power=others)

    errors: dict[str, dict[int, tuple[float, float]]] = {panel: {} for panel in PANELS}
    for before, n in itertools.pairwise([0, *grid]):
        memory.write(r[before:n], x[before:n])
        errors["images"][n] = error(n, middle)
        errors["both"][n] = error(n, n)
        if n == middle:
            errors["copies"] = {copies: error(n, copies) for copies in grid}
    return errors


def judge_panels(errors: Errors, middle: int) -> list[Claim]:
    """The three sentences under the paper's figure, and its prediction, as numbers."""
    n = np.array(list(errors["copies"]), dtype=float)
    draws = {panel: np.array(list(points.values())) for panel, points in errors.items()}  # (grid, draws, 2)
    mean = {panel: pairs[..., 0].mean(1) for panel, pairs in draws.items()}

    slopes = np.array([np.polyfit(np.log(n), np.log(errors), 1)[0] for errors in draws["copies"][..., 0].T])

    gradient, intercept = np.polyfit(n, mean["images"], 1)
    residual = mean["images"] - (gradient * n + intercept)
    r_squared = 1 - residual.var() / mean["images"].var()

    late = mean["both"][n >= middle]
    drift = float(late.max() / late.min() - 1)

    pairs = np.concatenate([draws[panel].mean(1) for panel in PANELS])  # (points, 2)
    measured, expected = pairs[pairs[:, 1] > 0].T  # a single image has no noise
    ratio = measured / expected
    return [
        judge(
            "The error is inversely proportional to the number of copies.",
            "the slope of log error over log copies is -1 within 0.02",
            bool(abs(slopes.mean() + 1) < 0.02),
            slope=float(slopes.mean()),
            smallest_slope_of_a_draw=float(slopes.min()),
            largest_slope_of_a_draw=float(slopes.max()),
        ),
        judge(
            "The error grows linearly with the number of stored images.",
            "a straight line explains 99 % of the variance and is zero at one image, within 2 % of the range",
            bool(r_squared > 0.99 and abs(gradient + intercept) < 0.02 * mean["images"].max()),
            r_squared=float(r_squared),
            gradient_per_image=float(gradient),
            intercept=float(intercept),
            error_at_one_image=float(gradient + intercept),
        ),
        judge(
            f"With as many copies as images, the error is almost constant after {middle}.",
            f"from {middle} on, the largest mean error is at most 5 % above the smallest",
            drift <= 0.05 if len(late) > 1 else None,
            largest_over_smallest_minus_one=drift,
        ),
        judge(
            "The simulation agrees with the prediction, items over copies.",
            "measured over expected error is 1 within 3 % at every point",
            bool(np.abs(ratio - 1).max() < 0.03),
            mean_ratio=float(ratio.mean()),
            smallest_ratio=float(ratio.min()),
            largest_ratio=float(ratio.max()),
        ),
    ]


def draw(errors: Errors, middle: int, source: str) -> Figure:
    """The paper's three panels, linear like its own, with the law of the left one on double logarithmic axes."""
    with style():
        figure = Figure((10.5, 4.1), layout="constrained")
        draws = len(errors["both"][1])
        panels = figure.subplots(1, 3)
        for axes, (panel, (title, label)) in zip(panels, _titles(middle).items(), strict=True):
            _curve(axes, errors[panel])
            axes.set(title=title, xlabel=label, xlim=(0, None), ylim=(0, None))
        panels[0].set_ylabel("mean squared error per pixel\n(pixel values from 0 to 1)")
        panels[1].legend(loc="upper left")
        inset = panels[0].inset_axes((0.44, 0.42, 0.54, 0.54))
        _curve(inset, errors["copies"])
        inset.set(xscale="log", yscale="log")
        inset.text(0.96, 0.93, "same, log-log", transform=inset.transAxes, ha="right", va="top", fontsize=11)
        inset.tick_params(labelsize=10)
        figure.suptitle(
            "Figure 2: error of an image read from a memory trace", x=0.01, ha="left", fontsize=14
        )
        figure.supxlabel(
            f"mean and range over {draws} draws; {source}", x=0.01, ha="left", fontsize=11, color="0.35"
        )
    return figure


def _curve(axes: Axes, points: dict[int, list[tuple[float, float]]]) -> None:
    n = np.array(list(points))
    measured, expected = np.moveaxis(np.array(list(points.values())), -1, 0)  # (grid, draws) each
    axes.fill_between(n, measured.min(1), measured.max(1), color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(n, measured.mean(1), "o", color=BLUE, markersize=4, label="measured")
    axes.plot(n, expected.mean(1), color=VERMILION, linewidth=1.5, label="expected")


def _titles(middle: int) -> dict[str, tuple[str, str]]:
    """Of every panel, what is above it and below."""
    return {
        "copies": (f"{middle} images", "number of copies"),
        "images": (f"{middle} copies", "number of images"),
        "both": ("as many copies as images", "number of copies = images"),
    }


def read_points(folder: Path) -> dict[str, Points]:
    """The panels as they were written: of every draw what was measured, and the mean of what was expected."""
    with (folder / "fig2.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    found = {}
    for panel, (title, x) in _titles(MIDDLE).items():
        draws: dict[str, list[tuple[float, float, float]]] = {}
        for row in (row for row in table if row["panel"] == panel):
            draws.setdefault(row["draw"], []).append(
                (int(row["n"]), float(row["mse"]), float(row["expected"]))
            )
        n, measured, expected = np.moveaxis(np.array(list(draws.values())), -1, 0)  # (draws, grid) each
        found[panel] = Points(
            title,
            x,
            "mean squared error per pixel (values 0 to 1)",
            n[0].astype(int).tolist(),
            {"measured": measured.tolist(), "expected: items over copies": [expected.mean(0).tolist()]},
        )
    return found


FIG2 = Measurement(
    "fig2",
    "Figure 2: error of retrieval",
    "The error of an image read back, against the number of copies, of images, and of both together.",
    run,
    DRAWS,
    drawn=True,
    points=read_points,
)
