"""`alstm train` and `alstm resume`."""

import math
import os
from collections.abc import Callable
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from associative_lstm.lab.commands.common import Own, completing, console, know, live_line, so_long
from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.run.config import Config, complete, read_toml
from associative_lstm.lab.run.recipes import PRESETS
from associative_lstm.lab.tasks import TASKS
from associative_lstm.lab.words import counted, nearest

if TYPE_CHECKING:
    from associative_lstm.lab.run.progress import Progress


_OF_A_RECIPE = ("start", "key_init", "forget_bias", "clip", "schedule", "beta2")
"""What a recipe decides together; a learning rate of one's own goes with any."""


def a_folder(name: str | Path) -> Path:
    """The folder that was named: no name is none, and does not stand for the current folder."""
    if not str(name):
        raise typer.BadParameter("a folder's name is missing")
    return Path(name)


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _with_keys(command: Any) -> Any:
    """An option for every key of a configuration but the task, in the place of the command's ``flags``."""
    options = []
    for name, hint in get_type_hints(Config).items():
        kind = next(kind for kind in get_args(hint) or [hint] if kind is not type(None))
        words = any(get_origin(kind) is Literal for kind in get_args(hint))
        option = typer.Option(
            *(["--learning-rate", "--lr"] if name == "learning_rate" else []),
            help=Config.__dataclass_fields__[name].metadata.get("help"),
            autocompletion=completing(NETWORKS) if name == "model" else None,
            parser=_number_or_word if words and kind is float else None,
            metavar="<float or str>" if words and kind is float else None,
        )
        typed: Any = Annotated[(kind if isinstance(kind, type) else str) | None, option]
        if name != "task":
            options.append(Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=typed))
    *own, _ = signature(command).parameters.values()
    command.__signature__ = Signature([*own, *options])
    command.__annotations__ = {each.name: each.annotation for each in (*own, *options)}
    return command


@_with_keys
def train(
    task: Annotated[
        str | None, typer.Argument(help="The task: see `alstm show`.", autocompletion=completing(TASKS))
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings; flags go before it.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="A network of the paper, e.g. lstm-512.", autocompletion=completing(PRESETS)),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The run's folder, new or empty (default: a new one in runs/).", parser=a_folder),
    ] = None,
    own: Own = None,
    **flags: Any,
) -> None:
    """Train a network on a task, in a new run folder.

    Example: alstm train assignment --copies 4 --steps 5000
    """
    from associative_lstm.lab.run import loop

    know(own)
    settings = complete(settings_from(config, preset, {"task": task} | flags))
    if out is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(
            "--out must name the run's folder under torchrun: each process would choose one itself"
        )
    folder = out or new_folder(settings)
    _watch(settings.task, folder, partial(loop.train, settings, folder))


def settings_from(file: Path | None, preset: str | None, flags: dict[str, Any]) -> dict[str, Any]:
    """What the file says, then the preset, then the flags that were given; without the first two, the fast recipe."""
    settings: dict[str, Any] = read_toml(file) if file else {} if preset else {"recipe": "fast"}
    if flags.get("recipe") and (said := [key for key in _OF_A_RECIPE if key in settings]):
        raise ValueError(
            f"--recipe: {file} says how it is trained ({', '.join(said)}), and half of a recipe is none: take "
            "that out of the file, or give what is to change by itself (--clip 1, --schedule linear-end, ...)"
        )
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
    device: Annotated[
        Literal["cpu", "cuda"] | None,
        typer.Option(help="The run's own; to be told only where its folder cannot be seen."),
    ] = None,
    own: Own = None,
) -> None:
    """Continue a run from its last good checkpoint, exactly as if it had not stopped.

    Example: alstm resume runs/assignment-associative-lstm-128-4-copies-seed-0
    """
    from associative_lstm.lab.run import loop
    from associative_lstm.lab.run.folder import read_config

    know(own)
    config = read_config(run) if _speaks() else None
    if config is not None and seed is not None and seed != config.seed:
        raise ValueError(f"seed cannot be changed: the run has {config.seed}, got {seed}")
    work = partial(loop.resume, run, steps=steps, ignore_log=ignore_log, device=device)
    _watch(config.task if config else "", run, work)


def _show(line: Callable[[int, int, str], None], p: "Progress") -> None:
    """Where a run is, on its live line."""
    cost = "..." if math.isnan(p.cost) else f"{p.cost:.3f}"
    testing = "" if p.tested is None else f", testing, {p.tested:.0%}"
    rate = f"{p.symbols_per_second:,.0f} symbols/s"
    words = f"step {p.step:,}/{p.steps:,}, cost {cost} bits, {rate}, {so_long(p.seconds_left)}{testing}"
    line(p.step, p.steps, words)


def _speaks() -> bool:
    """Whether this is the first process: under torchrun it speaks for all, and it alone needs the run's folder."""
    return os.environ.get("RANK", "0") == "0"


def _watch(task: str, folder: Path, work: Callable[..., Path]) -> None:
    """Do the work on a run, and show how far it is; then draw its curve, and say how it ended and where it is."""
    from associative_lstm.lab.draw.runs import plot_runs
    from associative_lstm.lab.run.folder import read_config, read_log

    if not _speaks():
        work()
        return
    with live_line(task) as line:
        work(show=lambda progress: _show(line, progress))
    plot_runs([folder], folder / "curve.png")
    config, log = read_config(folder), read_log(folder)
    if log:
        answer = f", {log[-1]['answer']:.3f} on the answer" if "answer" in log[-1] else ""
        console.print(
            f"{config.task}: cost {log[-1]['cost']:.4f} bits{answer} after {counted(log[-1]['step'], 'step')}"
        )
    console.print(f"learning curve: {folder / 'curve.png'}")
    console.print(f"run: {folder}")
