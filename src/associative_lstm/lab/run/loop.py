"""The loop: steps, the log, checkpoints, and every way in which a run can stop."""

import dataclasses
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from lightning_fabric import Fabric

from associative_lstm.lab import from_file
from associative_lstm.lab.files import Diverged, Interrupted, RunError, memory_lacked
from associative_lstm.lab.run.checkpoint import export_weights, save_checkpoint
from associative_lstm.lab.run.config import Config
from associative_lstm.lab.run.evaluation import cost_of_reading
from associative_lstm.lab.run.folder import WEIGHTS, read_config, read_tests
from associative_lstm.lab.run.log import RunLog
from associative_lstm.lab.run.progress import Meter, Show
from associative_lstm.lab.run.restore import Say, restore
from associative_lstm.lab.run.signals import Asked, listening
from associative_lstm.lab.run.step import Trainer, make_fabric, most_of


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
    fabric = make_fabric(config.device)
    with own_settings():
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
    device: str | None = None,
    show: Show | None = None,
    say: Say = _to_stderr,
    asked: Asked | None = None,
) -> Path:
    """Continue the run in ``folder`` from its last good checkpoint, exactly as if it had never stopped.

    ``steps`` makes the run longer. What is damaged is named through ``say``. Logs that do not fit the checkpoint are
    refused, and so is a run that has logs and no checkpoint. With ``ignore_log`` such files are kept beside, under
    new names, and the run goes on from the checkpoint, or from the start if there is none. ``device`` is the run's
    own, and has to be told only to a process that does not see the folder.
    """
    fabric = make_fabric(device or _device_of(folder))
    with (
        own_settings(),
        _hearing(fabric, asked) as heard,
        RunLog(folder) if fabric.is_global_zero else nullcontext() as log,
    ):
        config = fabric.broadcast(log.config if log is not None else None)
        assert config is not None
        if config.device != fabric.device.type:
            raise RunError(f"the run computes on {config.device}: continue it with --device {config.device}")
        if steps is not None and steps < config.steps:
            raise RunError(f"steps can be raised, not lowered: the run has {config.steps}, got {steps}")
        config = dataclasses.replace(config, steps=steps or config.steps)
        trainer, last_good, seconds = restore(config, fabric, log, say, ignore_log=ignore_log)
        if log is not None and log.config != config:
            log.reconfigure(config)
        _loop(trainer, log, Path(folder), last_good, seconds, show, heard)
    return Path(folder)


def _device_of(folder: str | Path) -> str:
    """The run's device, as far as it can be read here; what is wrong with the folder is said later."""
    try:
        return read_config(folder).device
    except (RunError, ValueError, OSError):
        return "cpu"


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
    meter = Meter(trainer, show if log is not None else None)
    tested = trainer.fabric.broadcast(log.tested() if log is not None else 0)
    if trainer.step == 0:  # whatever happens from now on, there is a checkpoint that the log goes on from
        last_good = _checkpoint(trainer, log, last_good, time.perf_counter() - started)
    while True:
        try:
            if tested < trainer.step and _test_due(config, trainer.step):
                begun = time.perf_counter()
                record = _test(trainer, folder, asked, meter)
                if log is not None:
                    log.append_test(record)
                tested = trainer.step
                started += time.perf_counter() - begun  # the log has seconds of training
            if trainer.step >= config.steps:
                break
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


def _test(trainer: Trainer, folder: Path, asked: Asked, meter: Meter) -> dict[str, Any]:
    """The cost on the whole test split, and that of longer sequences where the task has them.

    Lanes are shared by the processes. Training goes on as if it had not been.
    """
    fabric, task = trainer.fabric, trainer.task
    mine = {"rank": fabric.global_rank, "world_size": fabric.world_size}
    tests = {"": task.read_test(**mine), "longer_": task.read_longer(**mine)}
    readings = {prefix: reading for prefix, reading in tests.items() if reading is not None}
    batches, done = sum(map(len, readings.values())), 0

    def advance() -> None:
        nonlocal done
        done += 1
        meter.test(done / batches)
        if number := most_of(fabric, asked()):
            raise _interruption(trainer, folder, number)

    record: dict[str, Any] = {"step": trainer.step}
    for prefix, reading in readings.items():
        found = cost_of_reading(trainer.model, task, reading, advance)
        sums = torch.tensor(found, dtype=torch.float64, device=fabric.device)
        if fabric.world_size > 1:
            torch.distributed.all_reduce(sums)
        bits, symbols, right = sums.tolist()
        if not math.isfinite(bits):
            raise Diverged(f"stopped after step {trainer.step}: the cost on the test split is not finite")
        record |= {
            f"{prefix}cost": bits / symbols,
            f"{prefix}accuracy": right / symbols,
            f"{prefix}symbols": int(symbols),
        }
    return record


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
    """The signal that says to stop now, or 0: several processes do so after the same step, and agree at every tenth.

    torchrun kills processes that have not ended 30 seconds after Ctrl-C, so ten steps should not take longer.
    """
    if trainer.fabric.world_size > 1 and trainer.step % 10:
        return 0
    return most_of(trainer.fabric, asked())


def _interruption(trainer: Trainer, folder: Path, number: int) -> Interrupted:
    how = f"{_command(trainer)} resume {quote(str(folder))}{from_file.flags()}"
    return Interrupted(f"stopped after step {trainer.step}; continue with: {how}", number)


@contextmanager
def own_settings() -> Iterator[None]:
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
