"""`alstm inside`: one page about what a trained network remembers."""

from pathlib import Path
from typing import Annotated

import typer

from associative_lstm.lab.commands.common import SEEDS, Own, console, errors, know
from associative_lstm.lab.words import counted


def inside(
    run: Annotated[Path, typer.Argument(help="The run's folder, or its model.safetensors.")],
    beside: Annotated[
        Path | None, typer.Argument(help="A second run of the same task, to be shown beside it.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="What the network reads first (default: fresh data of the task).")
    ] = None,
    length: Annotated[int, typer.Option(help="Symbols of that fresh data.", min=1, max=1000)] = 120,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("inside.html"),
    seed: Annotated[int, typer.Option(help="Decides the fresh data.", **SEEDS)] = 0,
    own: Own = None,
) -> None:
    """Make one HTML page that holds a trained network: type into it, and see from where each answer is recalled.

    Example: alstm inside runs/assignment-associative-lstm-128-seed-0 --text "s(ml,a),s(qc,n),q(ml)"
    """
    from associative_lstm.lab.inside.page import LONGEST, check, fitting, load, samples, write_page

    know(own)
    readers = [load(path) for path in (run, beside) if path is not None]
    check(readers)
    task = readers[0].trained.task
    examples = [] if "data" in task.settings and text is not None else samples(task, seed, length)
    shown = fitting(task, text if text is not None else examples.pop(0))
    if text is not None and len(shown) < len(text):
        errors.print(
            f"the page reads at most {counted(LONGEST, 'symbol')}: it has the first {len(shown):,} of "
            f"{counted(len(text), 'character')}",
            style="yellow",
        )
    write_page(readers, shown, examples, out)
    console.print(f"written: {out} ({out.stat().st_size / 1e6:.1f} MB)")
