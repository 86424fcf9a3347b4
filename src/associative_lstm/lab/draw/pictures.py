"""How figures look: colours that the colour-blind can tell apart, and letters that can be read in a README."""

import io
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from associative_lstm.lab.files import write_atomically
from associative_lstm.lab.palette import CYCLE

STYLE: Any = {
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "axes.prop_cycle": cycler(color=CYCLE),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}

DPI = 110


def style() -> AbstractContextManager[None]:
    """The context in which figures are made."""
    return mpl.rc_context(STYLE)


def save_figure(figure: Figure, path: Path, *, colours: int | None = None) -> Path:
    """Write a figure as PNG, whole or not at all; noisy photographs are a third the size in 256 ``colours``."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    if colours is not None:
        with Image.open(buffer) as image:
            reduced = image.convert("RGB").quantize(colours)
        buffer = io.BytesIO()
        reduced.save(buffer, format="png", optimize=True)
    write_atomically(path, buffer.getvalue())
    return path


def contact_sheet(pixels: Tensor, per_line: int) -> np.ndarray:
    """Images side by side on white: ``(count, 3, side, side)`` with values in [0, 1] to ``(height, width, 3)``."""
    gap = 4
    side = pixels.shape[-1] + gap
    lines = -(-len(pixels) // per_line)
    sheet = pixels.new_ones(3, lines * side - gap, per_line * side - gap)
    for k, image in enumerate(pixels.clamp(0, 1)):
        top, left = k // per_line * side, k % per_line * side
        sheet[:, top : top + side - gap, left : left + side - gap] = image
    return sheet.permute(1, 2, 0).numpy()


def picture_table(
    axes: Axes, rows: Mapping[str, Sequence[tuple[Tensor, str]]], header: Sequence[str] = ()
) -> None:
    """A row of pictures per entry, each ``(3, side, side)`` with a line of text below, under optional headers."""
    side, gap, text = 110, 10, 26
    width = max(map(len, rows.values())) * (side + gap) - gap
    limits = (len(rows) * (side + text), -text if header else 0)
    axes.set(xlim=(0, width), ylim=limits, aspect="equal")
    axes.set_axis_off()
    for r, (label, pictures) in enumerate(rows.items()):
        top = r * (side + text)
        axes.text(-gap, top + side / 2, label, ha="right", va="center")
        for c, (pixels, caption) in enumerate(pictures):
            left = c * (side + gap)
            picture = pixels.clamp(0, 1).permute(1, 2, 0).numpy()
            axes.imshow(picture, extent=(left, left + side, top + side, top), interpolation="lanczos")
            axes.text(left + side / 2, top + side + 4, caption, ha="center", va="top", fontsize=10)
    for c, title in enumerate(header):
        axes.text(c * (side + gap) + side / 2, -5, title, ha="center", va="bottom", fontsize=11)
    axes.set(xlim=(0, width), ylim=limits)  # imshow has changed them
