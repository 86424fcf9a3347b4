"""The page: its sections in the order of the paper, rendered by a template that escapes every text."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from associative_lstm.lab.experiments.claims import Claim, in_order, judge, shown
from associative_lstm.lab.experiments.learning.claims import CHANGED, statements_of
from associative_lstm.lab.experiments.learning.figures import NAMES, Prepare, preparation
from associative_lstm.lab.files import RunError, write_atomically
from associative_lstm.lab.report.learning import panels
from associative_lstm.lab.report.lines import PALETTE, Json
from associative_lstm.lab.report.results import Evidence, Section, memory_sections, table_sections
from associative_lstm.lab.report.runs import UNREADABLE, Group, Runs
from associative_lstm.lab.report.wikipedia import wikipedia_section

STEPS = len(NAMES) + 4
"""How often :func:`write_report` tells that it has got further."""


@dataclass(frozen=True)
class Chapter:
    """Sections under one heading."""

    id: str
    title: str
    sections: list[Section]


@dataclass(frozen=True)
class Page:
    """All that the template shows."""

    runs: Runs
    chapters: list[Chapter]
    groups: list[Group]
    data: Json

    @property
    def evidence(self) -> list[tuple[Section, Evidence]]:
        """Every claim with the section that shows it: those with a number first, in its order."""
        found = [(s, e) for chapter in self.chapters for s in chapter.sections for e in s.claims]
        return sorted(found, key=lambda pair: in_order(pair[1].claim.key))

    @property
    def verdicts(self) -> Counter[str]:
        """How many claims hold, fail, are undecided."""
        return Counter(evidence.claim.verdict for _, evidence in self.evidence)


def write_report(
    runs: Path, results: Path, out: Path, *, seed: int = 0, advance: Callable[[], None] = lambda: None
) -> Page:
    """Write the page about the runs and results in two folders to ``out``; a folder without runs is a RunError.

    The seeds of the runs begin with ``seed``, as those of `alstm reproduce` do.
    """
    page = build(Runs(runs), results, preparation(seed=seed), advance)
    html = render(page)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{out} could not be written: {error.strerror or error}") from error
    write_atomically(out, html.encode())
    advance()
    return page


def build(runs: Runs, results: Path, prepare: Prepare, advance: Callable[[], None]) -> Page:
    """Put the page together from run logs and committed results; nothing is trained."""
    advance()
    lines = runs.lines()
    learning = []
    for name in NAMES:
        if name == "fig11":
            learning += list(wikipedia_section(results, runs, lines))
        learning.append(_learning_section(name, runs, prepare))
        advance()
    memory = list(memory_sections(results, lines))
    advance()
    chapters = [
        Chapter("learning", "Learning curves", learning),
        Chapter("memory", "The memory by itself", memory),
        Chapter("tables", "Sizes and speeds", list(table_sections(results))),
    ]
    plots = {
        name: plot
        for chapter in chapters
        for section in chapter.sections
        for name, plot in (section.plots | {panel.id: panel.plot for panel in section.panels}).items()
    }
    advance()
    return Page(runs, chapters, runs.groups(), {"lines": lines, "plots": plots})


OURS = {
    "tuning": (
        "Tuning: does a well-tuned LSTM close the gap?",
        "Readers' question: LSTMs at their best learning rates, with either forget bias and with 512 units.",
    ),
    "starts": (
        "Starts: how keys and forget gate begin",
        "Ours, not the paper's: four initialisations of the Associative LSTM on three tasks.",
    ),
}
"""What is not a figure of the paper: title and text."""


def _learning_section(name: str, runs: Runs, prepare: Prepare) -> Section:
    found = panels(name, runs, prepare)
    command = f"alstm reproduce {name} --jobs 2"
    if name in OURS:
        title, text = OURS[name]
        section = Section(name, title, command)
        section.text = text
    else:
        section = Section(name, found[0].plot["title"], command)
    section.panels = found
    short = section.title.split(":")[0]
    for statement in statements_of(name):
        try:
            claim = statement.judge(runs.folder, prepare)
        except UNREADABLE as error:
            claim = _unreadable(statement.sentence, statement.criterion, statement.key, error)
        section.claims.append(Evidence(f"claim-{claim.key}", claim, short))
    return section


def _unreadable(sentence: str, criterion: str, key: str, error: Exception) -> Claim:
    return replace(judge(sentence, criterion, None, a_run_cannot_be_read=str(error)), key=key)


def render(page: Page) -> str:
    """The HTML text."""
    environment = Environment(
        loader=PackageLoader("associative_lstm.lab", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    environment.filters["number"] = shown
    here = files("associative_lstm.lab.report")
    css, *js = (
        (here / name).read_text(encoding="utf-8") for name in ("report.css", "points.js", "report.js")
    )
    return environment.get_template("template.html").render(
        page=page, changed=CHANGED, palette=PALETTE, css=css, js="\n".join(js)
    )
