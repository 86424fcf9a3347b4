"""`alstm capacity`: how many copies, what they cost, and whether they do what was predicted."""

from typing import Annotated

import typer
from rich.filesize import decimal
from rich.table import Table

from associative_lstm.lab.commands.common import SEEDS, console, finite, progress_bar
from associative_lstm.lab.words import counted


def capacity(
    items: Annotated[int, typer.Option(help="Items to be stored.", min=1)],
    size: Annotated[int, typer.Option(help="Real numbers of a key or a value (even).", min=2, max=10**15)],
    error: Annotated[float, typer.Option(help="Mean squared error per number that may remain.")],
    power: Annotated[float, typer.Option(help="Mean square of the numbers of the values.")] = 1.0,
    permutation: Annotated[
        str, typer.Option(help="random (the paper's) or shift: see docs/memory.md.")
    ] = "random",
    limit: Annotated[float, typer.Option(help="GiB that trying out the memory may take.", min=0)] = 1.0,
    seed: Annotated[
        int, typer.Option(help="Decides the items with which the memory is tried out.", **SEEDS)
    ] = 0,
) -> None:
    """Find the copies that a memory needs, their cost, and the error measured with them.

    Example: alstm capacity --items 100 --size 10000 --error 0.5
    """
    from associative_lstm.lab.experiments.memory.capacity import plan, size_needed, tried_chunks, try_out

    finite("--limit", limit)
    chosen = plan(items, size, error, power, permutation)
    copies, one, shifts = counted(chosen.copies, "copy"), chosen.copies == 1, permutation == "shift"
    if chosen.enough:
        keep = "keeps" if one else "keep"
        console.print(f"{copies} {keep} the error of {counted(items, 'item')} at {error:g} or below.")
    else:
        best = size_needed(items, error, power, permutation)
        needed = counted(plan(items, best, error, power, permutation).copies, "copy")
        elements = counted(size // 2, "element")
        console.print(
            f"No number of copies brings the error down to {error:g}: with {size:,} numbers an item it stays "
            f"{'at' if shifts else 'above'} "
            f"{chosen.floor:.4g}, because a key has only {elements} to permute. Longer items would do: "
            f"least memory at size {best:,}, with {needed}. Below is what {copies} {'gives' if one else 'give'} "
            + (
                "here, all there are."
                if shifts
                else "here; twice as many would lower it by a quarter at most."
            )
        )
    table = Table("", "value", show_header=False)
    table.columns[1].justify = "right"
    table.add_row("copies", f"{chosen.copies:,}")
    table.add_row("memory: traces and permutations", decimal(chosen.bytes))
    table.add_row("error expected", f"{chosen.expected:.4g}")
    if chosen.bytes > limit * 2**30:
        console.print(table)
        console.print(f"not tried out, because it takes more than --limit {limit:g} GiB")
        return
    with progress_bar("trying it out", tried_chunks(chosen)) as advance:
        trial = try_out(chosen, seed=seed, advance=advance)
    table.add_row("error measured", f"{trial.error:.4g} ± {trial.deviation:.2g}")
    table.add_row("time to write an item", f"{1000 * trial.write_seconds:.3g} ms")
    table.add_row("time to read an item", f"{1000 * trial.read_seconds:.3g} ms")
    console.print(table)
