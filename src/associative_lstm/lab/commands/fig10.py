"""`alstm reproduce fig10`: Wikipedia."""

from pathlib import Path
from typing import Annotated

import typer

from associative_lstm.lab.commands.common import errors
from associative_lstm.lab.commands.executing import Address, Cluster, Jobs, executing
from associative_lstm.lab.commands.learning import OUT, RUNS, SMOKE, Smoke, grid_line, refuse_results


def fig10(
    data: Annotated[
        Path | None, typer.Option(help="The text (plain, .gz or .zip; default: enwik8, downloaded once).")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Minibatches of a run (default: one pass, 96000).", min=1)
    ] = None,
    network: Annotated[
        list[str] | None, typer.Option(help="Make the runs of this network only; may be repeated.")
    ] = None,
    jobs: Jobs = 1,
    runs: Annotated[
        Path | None,
        typer.Option(help="The folder of all runs; what is in it goes on (default: results/runs)."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write to (default: results/fig10).")] = None,
    smoke: Smoke = False,
    cluster: Cluster = None,
    address: Address = None,
    seed: Annotated[int, typer.Option(help="The figure has one seed, 0.", min=0, max=0)] = 0,
) -> None:
    """Train an LSTM and Associative LSTMs of three layers on Wikipedia; the cost on its test text over training.

    Hours per network, which makes two passes, with its two best learning rates. It may be stopped at any time: the
    same command goes on from the checkpoints. Packed logs, as in a clone, have none: those that are not whole begin
    again after `alstm results unpack wikipedia`, or with another --runs.

    Example: alstm reproduce fig10 --data enwik8.gz --jobs 2
    """
    from associative_lstm.lab.commands.reproduce import report
    from associative_lstm.lab.experiments import fig10 as experiment
    from associative_lstm.lab.tasks.corpus import find_corpus, keep_enwik8

    def say(message: str) -> None:
        errors.print(message)

    runs = runs or (SMOKE / "runs" if smoke else RUNS)
    out = out or (SMOKE if smoke else OUT) / "fig10"
    if smoke:
        refuse_results(runs, out)
        if data is not None:
            raise ValueError("--smoke has a text of its own: leave out --data")
    text = None
    if not smoke:
        text = keep_enwik8(data or find_corpus(progress=say), say)
    with executing(jobs, cluster, address) as execute, grid_line("figure 10") as show:
        outcome = experiment.run(
            out, runs, execute, data=text, steps=steps, networks=network or [], smoke=smoke, show=show
        )
    report(outcome)
    if smoke:
        say("tiny networks on a tiny text: the verdicts mean nothing")
