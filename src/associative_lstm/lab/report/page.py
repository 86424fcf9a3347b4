"""The page: a section for every experiment, rendered by a template that escapes every text."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from associative_lstm.lab.experiments.claim import BEFORE, FAST, Claim, shown
from associative_lstm.lab.experiments.learning.judging import preparation
from associative_lstm.lab.experiments.learning.runs import Logs
from associative_lstm.lab.experiments.registry import EXPERIMENTS
from associative_lstm.lab.files import as_run_error, write_atomically
from associative_lstm.lab.inside.page import environment
from associative_lstm.lab.palette import NAMED
from associative_lstm.lab.report.lines import Json
from associative_lstm.lab.report.runs import Group, Runs, again, last_tenth, seconds_of, state_of_run
from associative_lstm.lab.report.sections import Section, bench_section, markdown, section_of
from associative_lstm.lab.report.summary import (
    CHANGED,
    as_markdown,
    by_the_fast_recipe,
    changed,
    counts,
    counts_in_words,
    sentences,
    waits,
)

STEPS = len(EXPERIMENTS) + 2
"""How often :func:`write_report` tells that it has got further."""


@dataclass(frozen=True)
class Page:
    """All that the template shows."""

    runs: Runs
    sections: list[Section]
    groups: list[Group]
    data: Json

    @property
    def claims(self) -> dict[str, Claim]:
        """Every claim, by the name of its anchor."""
        return {name: claim for section in self.sections for name, claim in section.claims.items()}

    @property
    def verdicts(self) -> dict[str, int]:
        """How many claims hold, fail, are undecided."""
        return counts(claim.verdict for claim in self.claims.values())


def write_report(
    runs: Path, results: Path, out: Path, *, seed: int = 0, advance: Callable[[], None] = lambda: None
) -> Page:
    """Write the page about the runs and results in two folders to ``out``; a folder without runs is a RunError.

    If ``out`` ends in ``.md`` it gets every claim with its numbers and nothing else. The seeds of the runs begin with
    ``seed``, as those of `alstm reproduce` do.
    """
    page = build(Runs(Logs(runs, preparation(seed=seed))), results, advance)
    text = as_markdown(page.sections) if out.suffix == ".md" else render(page)
    with as_run_error(f"{out} could not be written"):
        out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, text.encode())
    advance()
    return page


def build(runs: Runs, results: Path, advance: Callable[[], None]) -> Page:
    """Put the page together from run logs and committed results; nothing is trained."""
    advance()
    lines = runs.lines()
    sections = []
    for experiment in EXPERIMENTS:
        sections.append(section_of(experiment, runs, results, lines))
        advance()
    sections.append(bench_section(results))
    plots = {
        name: plot
        for section in sections
        for name, plot in (section.plots | {panel.id: panel.plot for panel in section.panels}).items()
    }
    return Page(runs, sections, runs.groups(), {"lines": lines, "plots": plots})


def render(page: Page) -> str:
    """The HTML text."""
    templates = environment("report")
    templates.filters["number"] = shown
    about_claims = counts_in_words, sentences, by_the_fast_recipe, changed, waits
    about_runs = again, last_tenth, seconds_of, state_of_run
    templates.globals |= {f.__name__: f for f in (*about_claims, *about_runs)}
    here = files("associative_lstm.lab.report")
    method, css, *js = (
        (here / name).read_text(encoding="utf-8")
        for name in ("method.md", "report.css", "points.js", "report.js")
    )
    return templates.get_template("template.html").render(
        page=page,
        method=markdown(method),
        fast=FAST,
        before=BEFORE,
        about_changes=CHANGED,
        palette=NAMED,
        css=css,
        js="\n".join(js),
    )
