"""Figure 1: photographs read back from 1, 4 and 20 copies of the memory trace."""

from collections.abc import Callable
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from associative_lstm.functional import random_key
from associative_lstm.lab.bench.timing import threads
from associative_lstm.lab.draw.pictures import contact_sheet, save_figure, style
from associative_lstm.lab.draw.tables import save_table
from associative_lstm.lab.experiments.claim import judge, write_claims
from associative_lstm.lab.experiments.experiment import Advance, Measurement, Outcome
from associative_lstm.lab.experiments.memory.photographs import (
    SIZE,
    Photographs,
    load_photographs,
    to_pixels,
    to_vectors,
)
from associative_lstm.lab.words import counted
from associative_lstm.memory import HolographicMemory, expected_error

COPIES = (1, 4, 20)


@threads(1)  # a memory works through blocks that are too small to be split well among threads
def run(
    out: Path,
    *,
    images: Path | None = None,
    count: int = 20,
    seed: int = 0,
    warn: Callable[[str], None] = print,
    advance: Advance = lambda: None,
) -> Outcome:
    """Store ``count`` photographs under random unit keys and draw what 1, 4 and 20 copies give back.

    Writes the contact sheet, the error of every image, and the verdict.
    """
    photographs = load_photographs(count, images, seed=seed, warn=warn)
    x = to_vectors(photographs.pixels)
    generator = torch.Generator().manual_seed(seed)
    r = random_key(SIZE, count, generator=generator)
    memory = HolographicMemory(SIZE, max(COPIES), generator=generator)
    memory.write(r, x)
    retrieved = {copies: memory.read(r, num_copies=copies) for copies in COPIES}

    errors = {copies: (read - x).square().mean(-1) for copies, read in retrieved.items()}  # one per image
    predicted = {c: expected_error(count, c, size=SIZE, power=x.square().mean().item()) for c in COPIES}
    fewest, some, most = (errors[copies] for copies in COPIES)
    claim = judge(
        "Using more copies reduces the noise of the retrieved images.",
        f"every image has a smaller error from {COPIES[1]} copies than from {COPIES[0]}, and from {COPIES[2]} than "
        f"from {COPIES[1]}",
        bool(((most < some) & (some < fewest)).all()),
        **{f"mean squared error, {counted(c, 'copy')}": errors[c].mean().item() for c in COPIES},
        **{f"expected error, {counted(c, 'copy')}": predicted[c] for c in COPIES},
    )

    advance()
    out.mkdir(parents=True, exist_ok=True)
    table = [
        {"image": name, **{f"mse_{copies}_copies": errors[copies][k].item() for copies in COPIES}}
        for k, name in enumerate(photographs.names)
    ]
    return Outcome(
        [
            save_figure(draw(photographs, retrieved, errors), out / "fig1.png", colours=256),
            save_table(out / "fig1.csv", table),
            write_claims(out / "claims.json", [claim], **photographs.about(seed)),
        ],
        [claim],
    )


def draw(photographs: Photographs, retrieved: dict[int, Tensor], errors: dict[int, Tensor]) -> Figure:
    """A contact sheet: the originals, and below them what each number of copies gives back."""
    per_line = 10
    count = len(photographs.names)
    lines = -(-count // per_line)
    sheets = [("original", photographs.pixels)] + [
        (f"{counted(copies, 'copy')}\nmse {errors[copies].mean():.2g}", to_pixels(read))
        for copies, read in retrieved.items()
    ]
    with style():
        figure = Figure((9, 0.62 + 0.8 * len(sheets) * lines))
        inch = 1 / figure.get_figheight()
        title = f"Figure 1: {count} images in one memory, read back"
        figure.text(0.01, 1 - 0.08 * inch, title, va="top", fontsize=14)
        figure.text(0.01, 1 - 0.34 * inch, photographs.source, va="top", fontsize=11, color="0.35")
        grid = figure.add_gridspec(
            len(sheets), 1, left=0.125, right=0.995, top=1 - 0.58 * inch, bottom=0.005, hspace=0.04
        )
        for row, (label, pixels) in enumerate(sheets):
            axes = figure.add_subplot(grid[row])
            axes.imshow(contact_sheet(pixels, per_line), interpolation="lanczos")
            axes.set_axis_off()
            axes.text(-0.008, 0.5, label, transform=axes.transAxes, ha="right", va="center", fontsize=13)
    return figure


FIG1 = Measurement(
    "fig1",
    "Figure 1: images in a memory",
    "Photographs stored in one memory under random keys, and read back from 1, 4 and 20 copies.",
    run,
    pictures=[("fig1.png", "Originals, and below them what 1, 4 and 20 copies give back: ever less noise")],
)
