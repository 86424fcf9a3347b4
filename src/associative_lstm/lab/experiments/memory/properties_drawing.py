"""The pictures of `associative_lstm.lab.experiments.memory.properties`."""

from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from torch import Tensor

from associative_lstm.lab.draw.pictures import picture_table, style
from associative_lstm.lab.experiments.memory.photographs import SIDE, to_pixels
from associative_lstm.lab.palette import BLACK, CYCLE
from associative_lstm.lab.words import counted

COLOUR = dict(zip((1, 4, 20, 100), CYCLE, strict=False))
MARKER = dict(zip((1, 4, 20, 100), "osD^", strict=True))

Pictures = list[tuple[Tensor, str]]
Rows = list[dict[str, Any]]


class Measured(NamedTuple):
    """What was measured of a property: rows of numbers, and the images of some of them, by the same labels."""

    rows: Rows
    pictures: dict[Any, Tensor]


def draw_copies(measured: Measured, originals: Tensor) -> Figure:
    """Errors stage by stage, and below each stage what an image of each group looks like."""
    rows = measured.rows
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    with style():
        figure = Figure((9.5, 9.2))
        _title(figure, "Copies added and removed while in use")
        left, width, column = 0.13, 0.86, 0.86 * 120 / 590  # in step with the columns of pictures below
        axes = figure.add_axes((left + column, 0.69, width - column, 0.26))
        for group, colour, marker in (("before", CYCLE[0], "o"), ("after", CYCLE[1], "s")):
            own = [row for row in rows if row["group"] == group]
            at = [stages.index(row["stage"]) for row in own]
            label = f"images written {group} the growth"
            axes.plot(at, [row["mse"] for row in own], marker, color=colour, markersize=9, label=label)
            expected = [row["expected"] for row in own]
            axes.plot(
                at, expected, "_", color=BLACK, markersize=28, label="expected" if group == "after" else None
            )
        axes.set_xticks(range(len(stages)), [_two_lines(stage) for stage in stages])
        axes.set(
            xlim=(-55 / 120, len(stages) - 65 / 120), ylim=(0, None), ylabel="mean squared error\nper pixel"
        )
        axes.legend(loc="upper left")
        old, new = originals[0], originals[min(20, len(originals) // 2)]
        table = {
            "written\nbefore": _through_stages(measured, stages, "before", old),
            "the same,\nif averaged\nover all\ncopies": _through_stages(
                measured, stages, "before, all copies", old
            ),
            "written\nafter": _through_stages(measured, stages, "after", new),
        }
        picture_table(figure.add_axes((left, 0.0, width, 0.62)), table)
    return figure


def _through_stages(measured: Measured, stages: list[str], which: str, original: Tensor) -> Pictures:
    group, _, all_copies = which.partition(", ")
    pictures = [(original, "original")]
    for stage in stages:
        if (stage, which) not in measured.pictures:
            pictures.append((original.new_ones(3, SIDE, SIDE), ""))
            continue
        row = next(row for row in measured.rows if (row["stage"], row["group"]) == (stage, group))
        gain = row["gain_over_all_copies" if all_copies else "gain"]
        pictures.append((to_pixels(measured.pictures[stage, which]), f"brightness x {gain:.2f}"))
    return pictures


def draw_partial_keys(measured: Measured, originals: Tensor) -> Figure:
    """Error against the known fraction of the key, and a value recovered from less and less of its key."""
    rows = measured.rows
    with style():
        figure = Figure((9.5, 6.4))
        _title(figure, "Reading with a partially known key")
        note = "dotted: N$_h$/N$_{copies}$ elements known; lines: expected"
        figure.text(0.99, 0.975, note, ha="right", va="top", color="0.35")
        for k, items in enumerate(sorted({row["items"] for row in rows})):
            axes = figure.add_axes((0.115 + 0.465 * k, 0.43, 0.41, 0.45))
            for copies in sorted({row["copies"] for row in rows}):
                own = [row for row in rows if row["items"] == items and row["copies"] == copies]
                _lines(axes, own, "known", copies)
                axes.axvline(1 / copies, color=COLOUR[copies], linestyle=":", linewidth=1.4)
            axes.set(xscale="log", yscale="log", xlabel="fraction of the key that is known")
            axes.set_title(f"{_images(items)} stored")
            if k == 0:
                axes.set_ylim(1e-4, 3)
                axes.set_ylabel("mean squared error\n(mean square of the value = 1)")
                axes.legend(loc="lower left")
        most = max(row["copies"] for row in rows)
        pictures = [(originals[0], "original")]
        for (items, copies, fraction), read in measured.pictures.items():
            if items == 1 and copies == most and fraction in (0.002, 0.01, 0.02, 0.05, 0.1):
                pictures.append((to_pixels(read), f"{100 * fraction:g} % known"))
        picture_table(figure.add_axes((0.115, 0.0, 0.875, 0.3)), {f"1 image,\n{most} copies": pictures})
    return figure


def draw_items(measured: Measured, originals: Tensor) -> Figure:
    """Error against the number of items, far beyond the number of copies."""
    rows = measured.rows
    counts = sorted({row["items"] for row in rows})
    most = max(row["copies"] for row in rows)
    with style():
        figure = Figure((9.5, 5.9))
        _title(figure, "More items than copies")
        axes = figure.add_axes((0.12, 0.42, 0.86, 0.48))
        for copies in sorted({row["copies"] for row in rows}):
            own = [row for row in rows if row["copies"] == copies and row["items"] > 1]
            _lines(axes, own, "items", copies)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="number of images stored",
            ylabel="mean squared error\nper pixel",
        )
        axes.set_xticks([n for n in (2, 5, 10, 20, 50, 100) if n <= counts[-1]])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.legend(loc="upper left", title="lines: expected")
        pictures = [(originals[0], "original")]
        for items in [n for n in (1, 5, 20, 50, 100) if n in counts]:
            pictures.append((to_pixels(measured.pictures[items, most]), f"1 of {_images(items)}"))
        picture_table(figure.add_axes((0.12, 0.0, 0.86, 0.29)), {f"read from\n{most} copies": pictures})
    return figure


def draw_bindings(measured: Measured, originals: Tensor) -> Figure:
    """One image out of several, by each way to bind and to read."""
    rows = measured.rows
    counts = sorted({row["items"] for row in rows})
    table: dict[str, Pictures] = {}
    for name in dict.fromkeys(row["binding"] for row in rows):
        table[name.replace(", ", ",\n")] = [(originals[0], "original")] + [
            (to_pixels(measured.pictures[name, row["items"]]), _mse(row))
            for row in rows
            if row["binding"] == name
        ]
    with style():
        figure = Figure((8.6, 8.9))
        _title(
            figure,
            f"Other ways to bind and to read: one of 1 to {counts[-1]} images, {rows[0]['copies']} copies",
        )
        axes = figure.add_axes((0.235, 0.05, 0.755, 0.91))
        picture_table(axes, table, ["", *map(_images, counts)])
        note = (
            "Errors are means over draws, pictures the first draw. The noise of circular convolution lies in the\n"
            "spectrum and is largest at low frequencies, as photographs are. A permuted key keeps its sum, so that\n"
            "copies cannot average out the noise of the brightness."
        )
        figure.text(0.01, 0.01, note, fontsize=10, color="0.35")
    return figure


def _lines(axes: Axes, rows: Rows, x: str, copies: int) -> None:
    at, colour = [row[x] for row in rows], COLOUR[copies]
    axes.plot(at, [row["expected"] for row in rows], color=colour, linewidth=1.3)
    measured, label = [row["mse"] for row in rows], counted(copies, "copy")
    axes.plot(at, measured, MARKER[copies], color=colour, markersize=5.5, label=label)


def _title(figure: Figure, text: str) -> None:
    figure.text(0.01, 1 - 0.1 / figure.get_figheight(), text, fontsize=14, va="top")


def _images(n: int) -> str:
    return counted(n, "image")


def _mse(row: dict[str, Any]) -> str:
    return f"mse {row['mse']:.2g}" if row["mse"] > 1e-9 else "mse 0 (rounding)"


def _two_lines(stage: str) -> str:
    words = stage.split()
    middle = (len(words) + 1) // 2
    return " ".join(words[:middle]) + "\n" + " ".join(words[middle:])
