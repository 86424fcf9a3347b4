"""The loop: steps, the log, checkpoints, and every way in which a run can stop."""

import dataclasses
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric

from associative_lstm.lab import own
from associative_lstm.lab.files import Diverged, Interrupted, RunError, memory_lacked
from associative_lstm.lab.run.checkpoint import (
    export_weights,
    save_checkpoint,
    step_of,
    usable_checkpoints,
)
from associative_lstm.lab.run.config import Config
from associative_lstm.lab.run.evaluation import cost_of_reading
from associative_lstm.lab.run.folder import LOGS, TESTS, TIMES, WEIGHTS, RunLog, last_step, read_tests
from associative_lstm.lab.run.signals import Asked, listening
from associative_lstm.lab.run.step import Trainer, make_fabric
from associative_lstm.lab.words import counted

_MAY_DIFFER = ("steps", "checkpoint_every", "data")
"""What a resumed run may have otherwise than its checkpoint: it changes no number, if the text is the same."""


class Progress(NamedTuple):
    """Where a run is."""

    step: int
    steps: int
    cost: float
    symbols_per_second: float
    seconds_left: float
    tested: float | None = None
    """During an evaluation, the share of the test text that has been read."""


Show = Callable[[Progress], None]
Say = Callable[[str], None]


def _to_stderr(message: str) -> None:
    with suppress(OSError):  # a terminal that was closed
        print(message, file=sys.stderr, flush=True)


def train(
    config: Config, folder: str | Path, *, show: Show | None = None, asked: Asked | None = None
) -> Path:
    """Train a new run in ``folder``, which is new or empty, and return the folder.

    Signals ask it to stop; if ``asked`` is given, that function is asked after every step instead.

    >>> import tempfile
    >>> from associative_lstm.lab.run.config import complete
    >>> config = complete({"task": "assignment", "model": "lstm", "hidden_size": 8, "steps": 20, "log_every": 10})
    >>> folder = train(config, tempfile.mkdtemp())
    >>> from associative_lstm.lab.run.folder import read_log
    >>> [line["step"] for line in read_log(folder)]
    [10, 20]
    """
    fabric = make_fabric()
    with _own_settings():
        trainer = Trainer(config, fabric)  # before the folder: what cannot be trained leaves nothing behind
        with (
            _hearing(fabric, asked) as heard,
            RunLog(folder, config) if fabric.is_global_zero else nullcontext() as log,
        ):
            if log is not None:
                log.start()
            _loop(trainer, log, Path(folder), None, 0.0, show, heard)
    return Path(folder)


def resume(
    folder: str | Path,
    *,
    steps: int | None = None,
    ignore_log: bool = False,
    show: Show | None = None,
    say: Say = _to_stderr,
    asked: Asked | None = None,
) -> Path:
    """Continue the run in ``folder`` from its last good checkpoint, exactly as if it had never stopped.

    ``steps`` makes the run longer. What is damaged is named through ``say``. Logs that do not fit the checkpoint are
    refused, and so is a run that has logs and no checkpoint. With ``ignore_log`` such files are kept beside, under
    new names, and the run goes on from the checkpoint, or from the start if there is none.
    """
    fabric = make_fabric()
    with (
        _own_settings(),
        _hearing(fabric, asked) as heard,
        RunLog(folder) if fabric.is_global_zero else nullcontext() as log,
    ):
        config = fabric.broadcast(log.config if log is not None else None)
        assert config is not None
        if steps is not None and steps < config.steps:
            raise RunError(f"steps can be raised, not lowered: the run has {config.steps}, got {steps}")
        config = dataclasses.replace(config, steps=steps or config.steps)
        damaged: dict[Path, str] = {}
        found = usable_checkpoints(log.folder, damaged) if log is not None else iter(())
        newest = next(found, None)
        if log is not None and newest is not None:
            _check_same(log, config, *newest, say)  # before a network of the wrong size is made
        trainer = Trainer(config, fabric)
        checkpoints = chain([] if newest is None else [newest], found)
        last_good, seconds = _restore(trainer, log, checkpoints, damaged, ignore_log, say)
        if log is not None and log.config != config:
            log.reconfigure(config)
        _loop(trainer, log, Path(folder), last_good, seconds, show, heard)
    return Path(folder)


def _hearing(fabric: Fabric, asked: Asked | None) -> AbstractContextManager[Asked]:
    """What tells whether to stop, from before the first change to the folder until after the last.

    From a terminal each of several processes gets Ctrl-C twice, once more from torchrun, and one that broke off would
    leave the others waiting for it.
    """
    return listening(patient=fabric.world_size > 1) if asked is None else nullcontext(asked)


def is_tested(folder: str | Path, config: Config) -> bool:
    """Whether the run in ``folder`` has made the evaluation of its last step, if there is one."""
    return not _test_due(config, config.steps) or config.steps in [
        test["step"] for test in read_tests(folder)
    ]


def _check_same(log: RunLog, config: Config, checkpoint: Path, content: dict[str, Any], say: Say) -> None:
    """Refuse to continue a checkpoint with another configuration than made it, and name what differs.

    Checkpoints did not always hold their configuration; such a one passes.
    """
    path = log.folder / "config.toml"
    if (step := step_of(checkpoint)) > config.steps:
        wanted = counted(config.steps, "step")
        raise RunError(f"{path} says {wanted}, and the run has made {step}: put back what it was")
    before = content.get("config")
    if not isinstance(before, dict):
        return
    now = dataclasses.asdict(config)
    differ = [
        key for key in now if key in before and (type(now[key]), now[key]) != (type(before[key]), before[key])
    ]
    changed = [f"{key} is {now[key]!r} and was {before[key]!r}" for key in differ if key not in _MAY_DIFFER]
    if changed:
        raise RunError(
            f"{path} is not what the run was begun with: {', '.join(changed)}; put back what it was, "
            f"or begin a new run with `alstm train --config {path}`"
        )
    if "data" in differ:
        say(f"data is {now['data']!r} and was {before['data']!r}: only the same text continues the run")


def _restore(
    trainer: Trainer,
    log: RunLog | None,
    checkpoints: Iterator[tuple[Path, dict[str, Any]]],
    damaged: dict[Path, str],
    ignore_log: bool,
    say: Say,
) -> tuple[Path | None, float]:
    """Put the trainer and the logs where the last good checkpoint has them; the beginning, if there is none."""
    fabric = trainer.fabric
    unfit: dict[Path, tuple[str, Path]] = {}  # what is wrong with a log, and the checkpoint that says so
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
        if _any(fabric, bool(reason)):
            damaged[path] = reason or "another process cannot use it"
            continue
        wrong = [] if ignore_log else [name for name in misfits if name != TIMES]
        if log is not None:
            unfit = {log.folder / name: (misfits[name], path) for name in wrong} | unfit
        if _any(fabric, bool(wrong)):
            continue
        if log is not None:
            _start(log, path, content["positions"], trainer.step, misfits, damaged, unfit, say)
        return path, seconds
    if unfit:
        file, (what, path) = next(iter(unfit.items()))
        folder = file.parent
        raise RunError(
            f"{file} {what}: `alstm resume {quote(str(folder))} --ignore-log` goes on from {path.name} "
            "and keeps what there is of it beside"
        )
    if damaged:
        bad, reason = next(iter(damaged.items()))
        raise RunError(f"no checkpoint can be used: {bad} is damaged ({reason})")
    if log is not None:
        _start_over(log, ignore_log, say)
    return None, 0.0


def _start(
    log: RunLog,
    path: Path,
    positions: dict[str, Any],
    step: int,
    misfits: dict[str, str],
    damaged: dict[Path, str],
    unfit: dict[Path, tuple[str, Path]],
    say: Say,
) -> None:
    """Open the logs where the checkpoint at ``path`` has them, and say what was wrong.

    What they hold beyond it is dropped, because it will come again; but it is kept beside where more is lost than by
    a kill, after which there is less than the way to the next checkpoint.
    """
    lost = bool(damaged or unfit) or _goes_beyond(log, step)
    for bad, reason in damaged.items():
        say(f"{bad} is damaged ({reason}); continuing from {path.name}")
    for file, (what, _) in unfit.items():
        say(f"{file} {what}; continuing from {path.name}")
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


def _loop(
    trainer: Trainer,
    log: RunLog | None,
    folder: Path,
    last_good: Path | None,
    seconds: float,
    show: Show | None,
    asked: Asked,
) -> None:
    config = trainer.config
    started = time.perf_counter() - seconds
    meter = _Meter(trainer, show if log is not None else None)
    tested = trainer.fabric.broadcast(log.tested() if log is not None else 0)
    if trainer.step == 0:  # whatever happens from now on, there is a checkpoint that the log goes on from
        last_good = _checkpoint(trainer, log, last_good, time.perf_counter() - started)
    while True:
        if tested < trainer.step and _test_due(config, trainer.step):
            begun = time.perf_counter()
            try:
                record = _test(trainer, folder, asked, meter)
            except Diverged as error:
                raise Diverged(f"{error}; {_kept(last_good, folder)}") from error
            if log is not None:
                log.append_test(record)
            tested = trainer.step
            started += time.perf_counter() - begun  # the log has seconds of training
        if trainer.step >= config.steps:
            break
        try:
            trainer.train_step()
        except Diverged as error:
            raise Diverged(f"{error}; {_kept(last_good, folder)}") from error
        except (RuntimeError, MemoryError) as error:
            if (lack := memory_lacked(error)) is None:
                raise
            stopped = f"stopped at step {trainer.step + 1}: {lack}"
            raise RunError(f"{stopped}; {_kept(last_good, folder)}") from error
        step, last = trainer.step, trainer.step == config.steps
        if step % config.log_every == 0 or last:
            record = trainer.totals.record(step, trainer.has_answer)
            if log is not None:
                log.append(record, time.perf_counter() - started)
            meter.logged(record["cost"])
            trainer.totals = type(trainer.totals)()
        stop = _agreed(trainer, asked)
        if step % config.checkpoint_every == 0 or last or stop or _test_due(config, step):
            last_good = _checkpoint(trainer, log, last_good, time.perf_counter() - started)
        meter.step()
        if stop and not last:
            raise _interruption(trainer, folder, stop)
    if log is not None:
        export_weights(log.folder / WEIGHTS, trainer.weights(), config, trainer.step)


def _test_due(config: Config, step: int) -> bool:
    """Whether the whole test text is read after this step; a checkpoint is written before."""
    return config.test_every is not None and step > 0 and step % config.test_every == 0


def _test(trainer: Trainer, folder: Path, asked: Asked, meter: "_Meter") -> dict[str, Any]:
    """The cost on the whole test text, lanes shared by the processes. Training goes on as if it had not been."""
    fabric, task = trainer.fabric, trainer.task
    reading = task.read_test(rank=fabric.global_rank, world_size=fabric.world_size)
    assert reading is not None  # a task with `test_every` has it
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        meter.test(done / len(reading))
        if number := _asked(trainer, asked):
            raise _interruption(trainer, folder, number)

    sums = torch.tensor(cost_of_reading(trainer.model, task, reading, advance), dtype=torch.float64)
    if fabric.world_size > 1:
        torch.distributed.all_reduce(sums)
    bits, symbols = sums.tolist()
    if not math.isfinite(bits):
        raise Diverged(f"stopped after step {trainer.step}: the cost on the test text is not finite")
    return {"step": trainer.step, "cost": bits / symbols, "symbols": int(symbols)}


def _checkpoint(trainer: Trainer, log: RunLog | None, last_good: Path | None, seconds: float) -> Path | None:
    """Write a checkpoint, in the first process; all take part in making it."""
    content = {"trainer": trainer.save(), "config": dataclasses.asdict(trainer.config), "seconds": seconds}
    if log is None:
        return None
    content["positions"] = log.positions()
    try:
        return save_checkpoint(log.folder, trainer.step, content, keep=last_good)
    except RunError as error:
        kept = _kept(last_good, log.folder)
        raise RunError(f"stopped after step {trainer.step}: {error}; {kept}") from error


def _kept(last_good: Path | None, folder: Path) -> str:
    if last_good is None:
        return f"no checkpoint had been written in {folder}"
    return f"the last good checkpoint is {last_good}"


def _command(trainer: Trainer) -> str:
    """What to type before `resume`: a run goes on with as many processes as have made it."""
    processes = trainer.fabric.world_size
    if processes == 1:
        return "alstm"
    here = int(os.environ["LOCAL_WORLD_SIZE"])
    machines = f"--nnodes {processes // here} " if processes > here else ""
    return f"torchrun {machines}--nproc-per-node {here} -m associative_lstm.lab.cli"


def _agreed(trainer: Trainer, asked: Asked) -> int:
    """Whether to stop now: several processes must do so after the same step, and ask each other at every tenth.

    torchrun kills processes that have not ended 30 seconds after Ctrl-C, so ten steps should not take longer.
    """
    if trainer.fabric.world_size > 1 and trainer.step % 10:
        return 0
    return _asked(trainer, asked)


def _asked(trainer: Trainer, asked: Asked) -> int:
    """The signal that has asked this process, or any of several, to stop; 0 if none has."""
    return _most(trainer.fabric, asked())


def _any(fabric: Fabric, here: bool) -> bool:
    """Whether something is so in this process, or in any of several, which all must ask."""
    return bool(_most(fabric, int(here)))


def _most(fabric: Fabric, here: int) -> int:
    """The largest of the numbers that the processes have, which all must ask."""
    if fabric.world_size == 1:
        return here
    anywhere = torch.tensor(here)
    torch.distributed.all_reduce(anywhere, op=torch.distributed.ReduceOp.MAX)
    return int(anywhere)


def _interruption(trainer: Trainer, folder: Path, number: int) -> Interrupted:
    how = f"{_command(trainer)} resume {quote(str(folder))}{own.flags()}"
    return Interrupted(f"stopped after step {trainer.step}; continue with: {how}", number)


@contextmanager
def _own_settings() -> Iterator[None]:
    """Take numbers below 1e-38 for zero, and put this and the number of threads back in the end.

    Processors are a hundred times slower with such numbers than with others, and they come up in gradients that
    vanish over time or through layers. A thread inherits the setting of the one that starts it: whatever computes for
    a run comes after this, so that all its threads agree, also after a resume.
    """
    threads = torch.get_num_threads()
    before = float(torch.full((), 1e-38) / 10) == 0.0  # PyTorch has no other way to ask
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
        torch.set_num_threads(threads)


class _Meter:
    """Tells ``show`` a few times a second where the run is."""

    def __init__(self, trainer: Trainer, show: Show | None) -> None:
        self._trainer, self._show = trainer, show
        self._cost = float("nan")
        self._logged = 0.0
        self._start: tuple[float, int, float] | None = None
        self._next = 0.0
        self._last = Progress(trainer.step, trainer.config.steps, self._cost, 0.0, 0.0)

    def logged(self, cost: float) -> None:
        self._cost = cost
        self._logged += self._trainer.totals.symbols

    def step(self) -> None:
        now, trainer = time.perf_counter(), self._trainer
        totals = trainer.totals
        symbols = self._logged + totals.symbols
        if self._start is None:  # the first step may have compiled kernels: the clock starts after it
            self._start = now, trainer.step, symbols
            return
        if self._show is None or (now < self._next and trainer.step < trainer.config.steps):
            return
        self._next = now + 0.2
        start, first, before = self._start
        cost = totals.bits / max(totals.units, 1.0) if totals.steps > 20 else self._cost
        left = trainer.config.steps - trainer.step
        rate, seconds = (symbols - before) / (now - start), (now - start) / (trainer.step - first) * left
        self._last = Progress(trainer.step, trainer.config.steps, cost, rate, seconds)
        self._tell(self._last)

    def test(self, share: float) -> None:
        now = time.perf_counter()
        if self._show is not None and now >= self._next:
            self._next = now + 0.2
            self._tell(self._last._replace(step=self._trainer.step, tested=share))

    def _tell(self, progress: Progress) -> None:
        try:
            if self._show is not None:
                self._show(progress)
        except OSError:  # nobody is there to see it, as after a terminal was closed: no reason to stop
            self._show = None
