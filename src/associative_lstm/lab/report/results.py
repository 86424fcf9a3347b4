"""The sections made from committed results: the memory's figures, the tables, the speed."""

import base64
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from markdown_it import MarkdownIt
from markupsafe import Markup
from PIL import Image

from associative_lstm.lab.colours import BLUE, VERMILION
from associative_lstm.lab.experiments.claims import Claim, read_claims
from associative_lstm.lab.report.learning import Panel
from associative_lstm.lab.report.lines import Json, digits, series


@dataclass(frozen=True)
class Evidence:
    """A claim with its place in the page."""

    id: str
    claim: Claim
    figure: str


@dataclass
class Section:
    """A figure or a table of the page; ``notes`` say what is missing."""

    id: str
    title: str
    command: str
    text: str = ""
    panels: list[Panel] = field(default_factory=list)
    plots: dict[str, Json] = field(default_factory=dict)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    table: Markup = field(default_factory=Markup)
    texts: list[tuple[str, str]] = field(default_factory=list)
    claims: list[Evidence] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def committed(
    folder: Path, title: str, command: str, text: str = "", pictures: Sequence[tuple[str, str]] = ()
) -> Section:
    """A section with the claims and pictures (file, what it shows) of a folder of results."""
    section = Section(folder.name, title, command, text)
    if not folder.is_dir():
        section.notes.append(f"There is no {folder} yet: `{command}` makes it.")
        return section
    short = title.split(":")[0]
    try:
        claims = read_claims(folder / "claims.json")
        section.claims = [
            Evidence(f"claim-{folder.name}-{k}", claim, short) for k, claim in enumerate(claims, 1)
        ]
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError) as error:
        section.notes.append(f"{folder / 'claims.json'} cannot be read and is left out: {error}")
    for name, what in pictures:
        try:
            section.pictures.append((picture(folder / name), what))
        except (OSError, ValueError) as error:
            section.notes.append(f"{folder / name} cannot be read and is left out: {error}")
    return section


def picture(path: Path) -> str:
    """A picture as an address that holds it; photographs with noise are a third the size as WebP."""
    content = io.BytesIO()
    with Image.open(path) as image:
        image.convert("RGB").save(content, format="webp", quality=75, method=4)
    return "data:image/webp;base64," + base64.b64encode(content.getvalue()).decode()


def markdown(path: Path) -> Markup:
    """A table that an experiment wrote, its headings below those of the page; HTML in it is text."""
    text = re.sub(r"\A# .*\n", "", path.read_text(encoding="utf-8"))  # the section has a title
    html: str = MarkdownIt("js-default").render(re.sub(r"^#+ ", "#### ", text, flags=re.MULTILINE))
    return Markup(
        html.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    )


def with_table(section: Section, path: Path) -> Section:
    """The section, with the table in ``path``."""
    try:
        section.table = markdown(path)
    except (OSError, ValueError) as error:
        if path.parent.is_dir():
            section.notes.append(f"{path} cannot be read and is left out: {error}")
    return section


_FIG2 = {
    "copies": ("50 images", "number of copies"),
    "images": ("50 copies", "number of images"),
    "both": ("as many copies as images", "number of copies = images"),
}


def memory_sections(results: Path, lines: dict[str, Json]) -> Iterator[Section]:
    """Figures 1 and 2 and the properties of the memory; what figure 2 draws is added to ``lines``."""
    yield committed(
        results / "fig1",
        "Figure 1: images in a memory",
        "alstm reproduce fig1",
        "Photographs stored in one memory under random keys, and read back from 1, 4 and 20 copies.",
        [("fig1.png", "Originals, and below them what 1, 4 and 20 copies give back: ever less noise")],
    )
    section = committed(
        results / "fig2",
        "Figure 2: error of retrieval",
        "alstm reproduce fig2",
        "The error of an image read back, against the number of copies, of images, and of both together.",
    )
    try:
        section.plots = _fig2(results / "fig2" / "fig2.csv", lines)
    except (OSError, ValueError, KeyError) as error:
        if (results / "fig2").is_dir():
            section.notes.append(f"{results / 'fig2' / 'fig2.csv'} cannot be read and is left out: {error}")
    yield section
    yield committed(
        results / "properties",
        "Properties of the memory",
        "alstm reproduce properties",
        "Copies added and removed while in use, partly known keys, more items than copies, other ways to bind.",
        [
            ("copies.png", "Images read back before and after the number of copies changes"),
            ("partial_keys.png", "How much of a value comes back when part of its key is known"),
            ("items.png", "Error against the number of items, for several numbers of copies"),
            ("binding.png", "Error of other ways to bind keys and values"),
        ],
    )


def _fig2(path: Path, lines: dict[str, Json]) -> dict[str, Json]:
    with path.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    plots = {}
    for panel, (title, label) in _FIG2.items():
        rows = [row for row in table if row["panel"] == panel]
        n = list(dict.fromkeys(int(row["n"]) for row in rows))
        draws = list(dict.fromkeys(row["draw"] for row in rows))
        measured = {draw: [float(row["mse"]) for row in rows if row["draw"] == draw] for draw in draws}
        expected = [[float(row["expected"]) for row in rows if row["draw"] == draw] for draw in draws]
        ids = []
        for draw, values in measured.items():
            ids.append(f"fig2/{panel}/{draw}")
            lines[ids[-1]] = _line(f"draw {draw}", n, values)
        lines[f"fig2/{panel}/expected"] = _line("", n, np.mean(expected, axis=0))
        plots[f"fig2-{panel}"] = {
            "title": f"Figure 2, {title}",
            "caption": title,
            "x": [{"key": "n", "name": "n", "label": label}],
            "y": [{"key": "mse", "name": "mse", "label": "mean squared error per pixel (values 0 to 1)"}],
            "views": [{"key": "best", "name": "draws"}],
            "of": "draws",
            "series": [
                series("measured", (BLUE, "-"), {"best": ids}),
                series(
                    "expected: items over copies", (VERMILION, "--"), {"best": [f"fig2/{panel}/expected"]}
                ),
            ],
        }
    return plots


def _line(name: str, n: Sequence[int], values: Sequence[float] | np.ndarray) -> Json:
    return {"name": name, "x": {"n": list(n)}, "y": {"mse": digits(values)}, "window": 1}


def table_sections(results: Path) -> Iterator[Section]:
    """Tables 1 to 3 and the measured speed."""
    titles = {
        1: "networks on the copy task",
        2: "networks on the online tasks",
        3: "networks compared to the NTM",
    }
    for number, title in titles.items():
        name = f"table{number}"
        section = committed(results / name, f"Table {number}: {title}", f"alstm reproduce {name}")
        yield with_table(section, results / name / f"{name}.md")
    bench = committed(results / "bench", "Speed and memory of the layer", "alstm bench --out results/bench")
    yield with_table(bench, results / "bench" / "bench.md")
