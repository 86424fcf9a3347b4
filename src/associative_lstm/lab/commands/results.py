"""`alstm results pack` and `alstm results unpack`: the logs of recorded runs, one file per task."""

from pathlib import Path
from typing import Annotated

import typer

from associative_lstm.lab.commands.common import console
from associative_lstm.lab.words import counted

app = typer.Typer(rich_markup_mode=None)

_Tasks = Annotated[list[str] | None, typer.Argument(help="Only the runs of these tasks, e.g. xml copy.")]
_Runs = Annotated[Path, typer.Option(help="The folder of the runs, TASK/NETWORK/RUN in it.")]


@app.callback(invoke_without_command=True)
def results(context: typer.Context) -> None:
    """Pack the logs of recorded runs into one file per task, or make folders of them again.

    Figures and the report read packs and folders alike.

    Example: alstm results pack --remove
    """
    if context.invoked_subcommand is None:
        console.print(context.get_help())


@app.command()
def pack(
    tasks: _Tasks = None,
    runs: _Runs = Path("results/runs"),
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove folders of which the pack has every byte.")
    ] = False,
) -> None:
    """Pack the runs in folders: configuration, versions and logs, not checkpoints and weights.

    Example: alstm results pack xml
    """
    from associative_lstm.lab.run.packed import pack, remove_packed

    for path, added in pack(runs, tasks or ()).items():
        size = path.stat().st_size / 1e6
        console.print(f"written: {path} ({size:.2f} MB), {counted(len(added), 'run')} from folders")
        if remove:
            removed, kept = remove_packed(path, added)
            console.print(f"removed: {counted(removed, 'folder')}")
            for folder, names in kept.items():
                console.print(f"kept: {folder}, of which the pack has not {', '.join(names)}")


@app.command()
def unpack(tasks: _Tasks = None, runs: _Runs = Path("results/runs")) -> None:
    """Make folders of packed runs again; the packs stay, and nothing that differs is overwritten.

    Example: alstm results unpack wikipedia
    """
    from associative_lstm.lab.run.packed import unpack

    for path, count in unpack(runs, tasks or ()).items():
        console.print(f"{path}: {counted(count, 'file')} written")
