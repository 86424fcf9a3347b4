"""Where a run goes on: its last good checkpoint, logs that fit it, and what is said of what does not."""

import dataclasses
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

from lightning_fabric import Fabric

from associative_lstm.lab.files import RunError
from associative_lstm.lab.run.checkpoint import step_of, usable_checkpoints
from associative_lstm.lab.run.config import LATER, Config
from associative_lstm.lab.run.folder import LOGS, TESTS, TIMES, WEIGHTS, last_step
from associative_lstm.lab.run.log import RunLog
from associative_lstm.lab.run.schedule import told_by_length
from associative_lstm.lab.run.step import Trainer, most_of
from associative_lstm.lab.words import counted

_MAY_DIFFER = ("steps", "checkpoint_every", "data")
"""What a resumed run may have otherwise than its checkpoint: it changes no number, if the text is the same."""

Say = Callable[[str], None]


def restore(
    config: Config, fabric: Fabric, log: RunLog | None, say: Say, *, ignore_log: bool
) -> tuple[Trainer, Path | None, float]:
    """A trainer, and the logs, where the last good checkpoint has them; that checkpoint and its seconds of training.

    At the beginning if there is no checkpoint. The first of several processes has the ``log``.
    """
    damaged: dict[Path, str] = {}
    unfit: dict[Path, tuple[str, Path]] = {}  # what is wrong with a log, and the checkpoint that says so
    found = usable_checkpoints(log.folder, damaged) if log is not None else iter(())
    newest = next(found, None)
    if log is not None and newest is not None:
        _check_same(log, config, *newest, say)  # before a network of the wrong size is made
    checkpoints = chain([] if newest is None else [newest], found)
    trainer = Trainer(config, fabric)
    while True:
        path, content = next(checkpoints, (None, {}))
        if path is not None and step_of(path) == 0 and log is not None:
            # It serves a run that was killed before its second checkpoint. Where that is lost, nothing is begun over.
            finished = (log.folder / WEIGHTS).exists()
            path = None if damaged or unfit or finished or _goes_beyond(log, 0) else path
        path, content = fabric.broadcast((path, content))
        if path is None:
            break
        reason, misfits, seconds = "", {}, 0.0
        try:
            trainer.load(content["trainer"])
            seconds = float(content["seconds"])
            if log is not None:
                misfits = log.misfits(content["positions"])
        except RunError:
            raise
        except Exception as error:  # whatever a damaged or foreign checkpoint leads to
            reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        if most_of(fabric, bool(reason)):
            damaged[path] = reason or "another process cannot use it"
            continue
        wrong = [] if ignore_log else [name for name in misfits if name != TIMES]
        if log is not None:
            unfit = {log.folder / name: (misfits[name], path) for name in wrong} | unfit
        if most_of(fabric, bool(wrong)):
            continue
        if log is not None:
            bad = {file: f"is damaged ({reason})" for file, reason in damaged.items()}
            bad |= {file: what for file, (what, _) in unfit.items()}
            _start(log, path, content["positions"], trainer.step, misfits, bad, say)
        return trainer, path, seconds
    if unfit:
        file, (what, path) = next(iter(unfit.items()))
        raise RunError(
            f"{file} {what}: `alstm resume {quote(str(file.parent))} --ignore-log` goes on from {path.name} "
            "and keeps what there is of it beside"
        )
    if damaged:
        file, reason = next(iter(damaged.items()))
        raise RunError(f"no checkpoint can be used: {file} is damaged ({reason})")
    if log is not None:
        _start_over(log, ignore_log, say)
    return trainer, None, 0.0


def _check_same(log: RunLog, config: Config, checkpoint: Path, content: dict[str, Any], say: Say) -> None:
    """Refuse to continue a checkpoint with another configuration than made it, and name what differs.

    Checkpoints did not always hold their configuration; such a one passes.
    """
    path = log.folder / "config.toml"
    if (step := step_of(checkpoint)) > config.steps:
        wanted = counted(config.steps, "step")
        raise RunError(f"{path} says {wanted}, and the run has made {step}: put back what it was")
    if not isinstance(content.get("config"), dict):
        return
    now, before = dataclasses.asdict(config), LATER | content["config"]
    differ = [
        key for key in now if key in before and (type(now[key]), now[key]) != (type(before[key]), before[key])
    ]
    changed = [f"{key} is {now[key]!r} and was {before[key]!r}" for key in differ if key not in _MAY_DIFFER]
    if changed:
        raise RunError(
            f"{path} is not what the run was begun with: {', '.join(changed)}; put back what it was, "
            f"or begin a new run with `alstm train --config {quote(str(path))}`"
        )
    if "steps" in differ and isinstance(before["steps"], int):
        _check_length(path, config, step, before["steps"])
    if "data" in differ:
        say(f"data is {now['data']!r} and was {before['data']!r}: only the same text continues the run")


def _check_length(path: Path, config: Config, step: int, before: int) -> None:
    """Refuse another length where the steps made so far would have had other learning rates with it."""
    if step - 1 > told_by_length(config, min(before, config.steps)):
        raise RunError(
            f"the run was begun with {counted(before, 'step')} and cannot have {config.steps:,}: by its schedule, "
            f"{config.schedule!r}, the learning rate has been falling towards that end; begin a new one with "
            f"`alstm train --config {quote(str(path))} --steps {config.steps}`"
        )


def _start(
    log: RunLog,
    checkpoint: Path,
    positions: dict[str, Any],
    step: int,
    misfits: dict[str, str],
    bad: dict[Path, str],
    say: Say,
) -> None:
    """Open the logs where the checkpoint has them, and say what was wrong.

    What they hold beyond it is dropped, because it will come again; but it is kept beside where more is lost than by
    a kill, after which there is less than the way to the next checkpoint.
    """
    lost = bool(bad) or _goes_beyond(log, step)
    for file, what in bad.items():
        say(f"{file} {what}; continuing from {checkpoint.name}")
    for name, what in misfits.items():
        say(f"{log.folder / name} {what}; a new one begins after step {step}")
    _say_kept(log.start(positions, step, begin_anew=misfits, keep=lost), say)


def _goes_beyond(log: RunLog, step: int) -> bool:
    """Whether the log goes beyond the checkpoint that was due after that of ``step``: there was one, and is not."""
    every = log.config.checkpoint_every
    return last_step(log.folder) > (step // every + 1) * every


def _start_over(log: RunLog, ignore_log: bool, say: Say) -> None:
    """Open the logs of a run without checkpoints: one that was killed as it began, unless it has more than that."""
    folder, step = log.folder, last_step(log.folder)
    sizes = [(folder / name).stat().st_size for name in (*LOGS, TESTS, WEIGHTS) if (folder / name).exists()]
    if any(sizes) and not ignore_log:
        weights = f" ({WEIGHTS} has the weights alone)" if (folder / WEIGHTS).exists() else ""
        raise RunError(
            f"{folder} has a log up to step {step} and no checkpoint of that{weights}, "
            "so there is nothing to continue from: "
            f"`alstm train --config {quote(str(folder / 'config.toml'))}` makes the run again in a new folder, "
            f"`alstm resume {quote(str(folder))} --ignore-log` in this one, with what is there kept beside"
        )
    _say_kept(log.start(keep=any(sizes)), say)


def _say_kept(kept: list[Path], say: Say) -> None:
    if kept:
        say(f"what was there is kept in {', '.join(map(str, kept))}")
