"""`alstm reproduce`: the paper's figures and tables, each with its data, its picture and its verdicts."""

import functools
from typing import Any

import typer
from typer.core import TyperGroup

from associative_lstm.lab.commands.common import console


class _Experiments(TyperGroup):
    """The subcommands, made from the registry of experiments when one is asked for: importing that takes long."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_subcommands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _subcommands().get(cmd_name)


@functools.cache
def _subcommands() -> dict[str, Any]:
    from associative_lstm.lab.commands.experiments import app as experiments

    made: Any = typer.main.get_command(experiments)
    return made.commands


app = typer.Typer(rich_markup_mode=None, cls=_Experiments)


@app.callback(invoke_without_command=True)
def reproduce(context: typer.Context) -> None:
    """Reproduce a figure or a table of the paper: its data, its picture, and a verdict on each claim.

    Runs are trained by the recipe of the paper: nothing is clipped, and the learning rate stays as it is. Those of
    `fast` are trained by the fast one, and with `--recipe fast` those by which a figure's claims are judged again.

    Example: alstm reproduce fig2 --seed 1
    """
    if context.invoked_subcommand is None:
        console.print(context.get_help(), highlight=False, markup=False)
