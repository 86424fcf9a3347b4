"""`alstm train` and `alstm resume`."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from associative_lstm.lab.commands.common import (
    Own,
    complete_model,
    complete_preset,
    complete_task,
    console,
    know,
    live_line,
)
from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.run.config import PRESETS, Config, complete, nearest, read_toml
from associative_lstm.lab.words import counted

_NETWORK, _RUN = "Network", "Run"
_NAMES = list(NETWORKS)


def a_folder(name: str | Path) -> Path:
    """The folder that was named: no name is none, and does not stand for the current folder."""
    if not str(name):
        raise typer.BadParameter("a folder's name is missing")
    return Path(name)


def train(
    task: Annotated[
        str | None, typer.Argument(help="The task: see `alstm show`.", autocompletion=complete_task)
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings; flags go before it.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="A network of the paper, e.g. lstm-512.", autocompletion=complete_preset),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}.",
            autocompletion=complete_model,
            rich_help_panel=_NETWORK,
        ),
    ] = None,
    hidden_size: Annotated[
        int | None,
        typer.Option(help="N_h: real numbers of one copy of the memory.", rich_help_panel=_NETWORK),
    ] = None,
    layers: Annotated[int | None, typer.Option(help="Networks stacked.", rich_help_panel=_NETWORK)] = None,
    copies: Annotated[
        int | None, typer.Option(help="Copies of the memory.", rich_help_panel=_NETWORK)
    ] = None,
    heads: Annotated[
        int | None, typer.Option(help="Items written and read per step.", rich_help_panel=_NETWORK)
    ] = None,
    key_init: Annotated[
        str | None, typer.Option(help="Keys start as glorot or conjugate.", rich_help_panel=_NETWORK)
    ] = None,
    forget_bias: Annotated[
        float | None, typer.Option(help="Where the forget gates' biases start.", rich_help_panel=_NETWORK)
    ] = None,
    recurrent_update: Annotated[
        bool | None,
        typer.Option(
            help="Feed h to the update (W_hu); the default is the paper's for the task.",
            rich_help_panel=_NETWORK,
        ),
    ] = None,
    learn_initial_state: Annotated[
        bool | None,
        typer.Option(help="Learn the initial state (default: on copy tasks).", rich_help_panel=_NETWORK),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", "--lr", help="Adam's.", rich_help_panel=_RUN)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Lanes of a minibatch (default: the paper's).", rich_help_panel=_RUN)
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(help="Symbols between cuts of the gradient (default 100).", rich_help_panel=_RUN),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Wikipedia: the file (plain, .gz or .zip); enwik8 is downloaded if absent.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Minibatches (default 20000).", rich_help_panel=_RUN)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides weights and data.", rich_help_panel=_RUN)] = None,
    log_every: Annotated[
        int | None, typer.Option(help="Steps per line of the log.", rich_help_panel=_RUN)
    ] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Steps between checkpoints.", rich_help_panel=_RUN)
    ] = None,
    test_every: Annotated[
        int | None,
        typer.Option(help="Wikipedia: steps between tests (default 16000).", rich_help_panel=_RUN),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads per process (default 1).", rich_help_panel=_RUN)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The run's folder, new or empty (default: a new one in runs/).", parser=a_folder),
    ] = None,
    own: Own = None,
) -> None:
    """Train a network on a task, in a new run folder.

    Example: alstm train assignment --copies 4 --key-init conjugate --steps 5000
    """
    know(own)
    flags = {key: value for key, value in locals().items() if key in Config.__dataclass_fields__}
    settings = settings_from(config, preset, flags)
    complete_settings = complete(settings)
    if out is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(
            "--out must name the run's folder under torchrun: each process would choose one itself"
        )
    folder = out or new_folder(complete_settings)
    _train(complete_settings, folder)


def settings_from(file: Path | None, preset: str | None, flags: dict[str, Any]) -> dict[str, Any]:
    """What the file says, then the preset, then the flags that were given."""
    settings = read_toml(file) if file else {}
    if preset is not None:
        if preset not in PRESETS:
            raise ValueError(f"unknown preset {preset!r}, {nearest(preset, PRESETS)}")
        settings |= PRESETS[preset]
    return settings | {key: value for key, value in flags.items() if value is not None}


def new_folder(config: Config) -> Path:
    """A folder in runs/ that does not exist yet, named after the run."""
    parts = [config.task, config.model, str(config.hidden_size)]
    if config.copies is not None:
        parts.append(f"{config.copies}-copies")
    name = "-".join([*parts, f"seed-{config.seed}"])
    candidates = [Path("runs") / name, *(Path("runs") / f"{name}-{k}" for k in range(2, 10_000))]
    return next(folder for folder in candidates if not os.path.lexists(folder))


def _train(config: Config, folder: Path) -> None:
    from associative_lstm.lab.run import loop

    if not _speaks():
        loop.train(config, folder)
        return
    with live_line(config.task, config.steps) as show:
        loop.train(config, folder, show=show)
    _finish(folder)


def resume(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    steps: Annotated[int | None, typer.Option(help="Make the run longer: so many steps in all.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Must be the run's own seed: a run keeps the one it has.")
    ] = None,
    ignore_log: Annotated[
        bool,
        typer.Option(
            "--ignore-log",
            help="Keep logs that do not fit beside, under new names; without a checkpoint begin again.",
        ),
    ] = False,
    own: Own = None,
) -> None:
    """Continue a run from its last good checkpoint, exactly as if it had not stopped.

    Example: alstm resume runs/assignment-associative-lstm-128-4-copies-seed-0
    """
    from associative_lstm.lab.run import loop
    from associative_lstm.lab.run.folder import read_config

    know(own)
    if not _speaks():
        loop.resume(run, steps=steps, ignore_log=ignore_log)
        return
    config = read_config(run)
    if seed is not None and seed != config.seed:
        raise ValueError(f"seed cannot be changed: the run has {config.seed}, got {seed}")
    with live_line(config.task, steps or config.steps) as show:
        loop.resume(run, steps=steps, ignore_log=ignore_log, show=show)
    _finish(run)


def _speaks() -> bool:
    """Whether this is the first process: under torchrun it speaks for all, and it alone needs the run's folder."""
    return os.environ.get("RANK", "0") == "0"


def _finish(folder: Path) -> None:
    """Draw the learning curve, and say how the run ended and where it is."""
    from associative_lstm.lab.draw.curves import plot_runs
    from associative_lstm.lab.run.folder import read_config, read_log

    plot_runs([folder], folder / "curve.png")
    config, log = read_config(folder), read_log(folder)
    if log:
        answer = f", {log[-1]['answer']:.3f} on the answer" if "answer" in log[-1] else ""
        console.print(
            f"{config.task}: cost {log[-1]['cost']:.4f} bits{answer} after {counted(log[-1]['step'], 'step')}"
        )
    console.print(f"learning curve: {folder / 'curve.png'}")
    console.print(f"run: {folder}")
