"""`alstm reproduce fig10`: Wikipedia."""

import os
from pathlib import Path
from typing import Annotated

import typer

from associative_lstm.lab.commands.common import errors, grid_line


def fig10(
    data: Annotated[
        Path | None, typer.Option(help="The text (plain, .gz or .zip; default: enwik8, downloaded once).")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Minibatches per network (default: one pass, 96000).", min=1)
    ] = None,
    network: Annotated[
        list[str] | None, typer.Option(help="Make the runs of this network only; may be repeated.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time (default: one per core).", min=1)] = None,
    runs: Annotated[
        Path | None,
        typer.Option(help="The folder of all runs; what is in it goes on (default: results/runs)."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write to (default: results/fig10).")] = None,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Tiny networks on a tiny text, in smoke/: to see that it works.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The figure has one seed, 0.", min=0, max=0)] = 0,
) -> None:
    """Train an LSTM and Associative LSTMs of three layers on Wikipedia; the cost on its test text over training.

    Hours per network. It may be stopped at any time: the same command goes on.

    Example: alstm reproduce fig10 --data enwik8.gz --network lstm-3x256 --jobs 1
    """
    from associative_lstm.lab.commands.reproduce import report
    from associative_lstm.lab.experiments import fig10 as experiment
    from associative_lstm.lab.grid import local
    from associative_lstm.lab.tasks.corpus import keep_enwik8

    def say(message: str) -> None:
        errors.print(message, highlight=False, markup=False)

    base = Path("smoke" if smoke else "results")
    runs, out = runs or base / "runs", out or base / "fig10"
    text = None if data is None or smoke else keep_enwik8(data, say)
    execute = local(jobs or os.cpu_count() or 1)
    with grid_line("figure 10") as show:
        outcome = experiment.run(
            out, runs, execute, data=text, steps=steps, networks=network or [], smoke=smoke, show=show
        )
    report(outcome)
    if smoke:
        say("tiny networks on a tiny text: the verdicts mean nothing")
