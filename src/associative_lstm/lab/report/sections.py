"""The sections of the page: one for every experiment, from the logs of its runs or from what it has written."""

import base64
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup
from PIL import Image

from associative_lstm.lab.experiments.claim import Claim, judge, read_claims
from associative_lstm.lab.experiments.experiment import Experiment
from associative_lstm.lab.experiments.learning.judging import LearningFigure, OpenClaim
from associative_lstm.lab.experiments.registry import EXPERIMENTS
from associative_lstm.lab.report.learning import Plotted, plots_of
from associative_lstm.lab.report.lines import Json, points_plot
from associative_lstm.lab.report.runs import UNREADABLE, Runs

TILE = 360
"""The width of a small picture."""


@dataclass
class Section:
    """A figure or a table of the page; ``notes`` say what is missing. Claims are by the names of their anchors."""

    id: str
    title: str
    command: str
    text: str = ""
    panels: list[Plotted] = field(default_factory=list)
    plots: dict[str, Json] = field(default_factory=dict)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    table: Markup = field(default_factory=Markup)
    texts: list[tuple[str, str]] = field(default_factory=list)
    claims: dict[str, Claim] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    tile: str = ""
    ours: bool = False
    recipes: bool = False
    """Whether its claims are judged a second time, by runs that `alstm reproduce ... --recipe fast` makes."""
    unclaimed: list[str] = field(default_factory=list)
    """Of runs that it shows, and no claim needs, what is planned and not there yet."""

    @property
    def short(self) -> str:
        """The title up to its colon, if it has one."""
        return self.title.split(":")[0]

    @property
    def about(self) -> str:
        """The title after its colon."""
        return self.title.partition(": ")[2]

    @property
    def small_plot(self) -> str:
        """The plot that stands for the section where there is little room, if it has one."""
        return next(iter([*(panel.id for panel in self.panels), *self.plots]), "")

    @contextmanager
    def noting(self, path: Path) -> Iterator[None]:
        """What cannot be read is left out, and said so."""
        try:
            yield
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.notes.append(f"{path} cannot be read and is left out: {error}")


def section_of(experiment: Experiment, runs: Runs, results: Path, lines: dict[str, Json]) -> Section:
    """The section of an experiment; what is drawn in it is added to ``lines``."""
    command = f"alstm reproduce {experiment.name}"
    section = Section(experiment.name, experiment.title, command, experiment.text, ours=experiment.ours)
    folder = results / experiment.name
    if isinstance(experiment, LearningFigure):
        figure = experiment.recorded(folder)
        section.command += " --jobs 2"
        section.recipes = bool(figure.needed_fast)
        section.panels = plots_of(figure, runs, lines)
        with section.noting(runs.logs.folder):
            section.unclaimed = _unclaimed(figure, runs)
        claims = [_judged(claim, runs) for claim in figure.claims]
    elif not folder.is_dir():
        section.notes.append(f"There is no {folder} yet: `{command}` makes it.")
        return section
    else:
        claims = []
        with section.noting(folder / "claims.json"):
            claims = read_claims(folder / "claims.json")
    section.claims = {
        f"claim-{claim.key or f'{section.id}-{k}'}": claim for k, claim in enumerate(claims, start=1)
    }
    if folder.is_dir():
        _add_written(section, experiment, folder, lines)
    return section


def _unclaimed(figure: LearningFigure, runs: Runs) -> list[str]:
    figures = [each for each in EXPERIMENTS if isinstance(each, LearningFigure)]
    needed = {c for each in (figure, *figures) for claim in each.claims for c in claim.needed}
    shown = dict.fromkeys(c for panel in figure.panels for c in panel.curves)
    curves = [runs.logs.curve(c) for c in shown if c not in needed]
    told = {c.curve.name: c.lacks if c.runs else "none yet" for c in curves}
    return [f"{name}: {lacks}" for name, lacks in told.items() if lacks]


def _judged(claim: OpenClaim, runs: Runs) -> Claim:
    try:
        return claim.judge(runs.logs)
    except UNREADABLE as error:
        unread = judge(claim.sentence, claim.criterion, None, a_run_cannot_be_read=str(error))
        return replace(unread, key=claim.key)


def _add_written(section: Section, experiment: Experiment, folder: Path, lines: dict[str, Json]) -> None:
    """What the experiment has written: pictures, points, a page, texts."""
    for name, what in experiment.pictures:
        with section.noting(folder / name):
            section.pictures.append((picture(folder / name), what))
            section.tile = section.tile or picture(folder / name, TILE)
    if experiment.points is not None:
        with section.noting(folder):
            for name, points in experiment.points(folder).items():
                full = f"{section.id}-{name}"
                section.plots[full] = points_plot(full, section.short, points, lines)
    if experiment.page:
        with section.noting(folder / experiment.page):
            section.table = markdown((folder / experiment.page).read_text(encoding="utf-8"))
    panels = experiment.panels if isinstance(experiment, LearningFigure) else ()
    for network in (c.network for panel in panels for c in panel.curves):
        if (sample := folder / f"sample-{network.name}.txt").is_file():
            text = sample.read_text(encoding="utf-8", errors="replace")
            section.texts.append((f"What this network writes: {network.label}", text))


def bench_section(results: Path) -> Section:
    """The measured speed, which is no experiment of the paper."""
    section = Section("bench", "Speed and memory of the layer", "alstm bench --out results/bench")
    path = results / "bench" / "bench.md"
    if not path.parent.is_dir():
        section.notes.append(f"There is no {path.parent} yet: `{section.command}` makes it.")
    else:
        with section.noting(path):
            section.table = markdown(path.read_text(encoding="utf-8"))
    return section


def picture(path: Path, width: int | None = None) -> str:
    """A picture, no wider than ``width``, as an address that holds it; noise is a third the size as WebP."""
    content = io.BytesIO()
    with Image.open(path) as image:
        shown = image.convert("RGB")
        if width is not None:
            shown.thumbnail((width, width))
        shown.save(content, format="webp", quality=75, method=4)
    return "data:image/webp;base64," + base64.b64encode(content.getvalue()).decode()


def markdown(text: str) -> Markup:
    """Text that an experiment wrote, its headings below those of the page; HTML in it is text."""
    text = re.sub(r"\A# .*\n", "", text)  # the section has a title
    html: str = MarkdownIt("js-default").render(re.sub(r"^#+ ", "#### ", text, flags=re.MULTILINE))
    return Markup(
        html.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    )
