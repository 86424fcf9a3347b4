"""`alstm report`."""

from pathlib import Path
from typing import Annotated

import typer

from associative_lstm.lab.commands.common import console, errors, progress_bar
from associative_lstm.lab.words import counted


def report(
    runs: Annotated[Path, typer.Option(help="The folder of the runs.")] = Path("results/runs"),
    results: Annotated[
        Path, typer.Option(help="The folder of the other results: pictures, tables, speed.")
    ] = Path("results"),
    out: Annotated[
        Path,
        typer.Option(help="The page to write; if it ends in .md, every claim with its numbers as Markdown."),
    ] = Path("results/report.html"),
    seed: Annotated[
        int, typer.Option(help="The first of the seeds, as it was for `alstm reproduce`.", min=0)
    ] = 0,
) -> None:
    """Make one HTML page of everything measured: every figure, table, claim and run; it needs nothing else.

    Example: alstm report --out report.html
    """
    from associative_lstm.lab.report.page import STEPS, write_report

    with progress_bar("report", STEPS) as advance:
        page = write_report(runs, results, out, seed=seed, advance=advance)
    for problem in page.runs.problems:
        errors.print(problem, style="yellow", markup=False)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(page.verdicts.items()))
    console.print(f"{counted(len(page.runs.runs), 'run')}; claims: {verdicts}")
    console.print(f"written: {out} ({out.stat().st_size / 1e6:.1f} MB)")
