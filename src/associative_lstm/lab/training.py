"""The loop: steps, the log, checkpoints, and every way in which a run can stop."""

import dataclasses
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric

from associative_lstm.lab.checkpoint import (
    export_weights,
    save_checkpoint,
    usable_checkpoints,
)
from associative_lstm.lab.config import Config
from associative_lstm.lab.evaluation import cost_of_reading
from associative_lstm.lab.files import Diverged, Interrupted, RunError, memory_lacked
from associative_lstm.lab.runlog import RunLog, read_tests
from associative_lstm.lab.tasks import Wikipedia
from associative_lstm.lab.trainer import Trainer, make_fabric

WEIGHTS = "model.safetensors"


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
    print(message, file=sys.stderr, flush=True)


def train(config: Config, folder: str | Path, *, show: Show | None = None) -> Path:
    """Train a new run in ``folder`` and return the folder.

    >>> import tempfile
    >>> from associative_lstm.lab.config import complete
    >>> config = complete({"task": "assignment", "model": "lstm", "hidden_size": 8, "steps": 20, "log_every": 10})
    >>> folder = train(config, tempfile.mkdtemp())
    >>> from associative_lstm.lab.runlog import read_log
    >>> [line["step"] for line in read_log(folder)]
    [10, 20]
    """
    fabric = make_fabric()
    with _own_settings():
        trainer = Trainer(config, fabric)  # before the folder: what cannot be trained leaves nothing behind
        with RunLog(folder, config) if fabric.is_global_zero else nullcontext() as log:
            if log is not None:
                log.start()
            _loop(trainer, log, Path(folder), None, 0.0, show)
    return Path(folder)


def resume(
    folder: str | Path, *, steps: int | None = None, show: Show | None = None, say: Say = _to_stderr
) -> Path:
    """Continue the run in ``folder`` from its last good checkpoint, exactly as if it had never stopped.

    ``steps`` makes the run longer. A damaged checkpoint is named through ``say``.
    """
    fabric = make_fabric()
    with _own_settings(), RunLog(folder) if fabric.is_global_zero else nullcontext() as log:
        config = fabric.broadcast(log.config if log is not None else None)
        assert config is not None
        if steps is not None and steps < config.steps:
            raise RunError(f"steps can be raised, not lowered: the run has {config.steps}, got {steps}")
        config = dataclasses.replace(config, steps=steps or config.steps)
        trainer = Trainer(config, fabric)
        last_good, seconds = _restore(trainer, log, say)
        if log is not None and log.config != config:
            log.reconfigure(config)
        _loop(trainer, log, Path(folder), last_good, seconds, show)
    return Path(folder)


def is_tested(folder: str | Path, config: Config) -> bool:
    """Whether the run in ``folder`` has made the evaluation of its last step, if there is one."""
    return not _test_due(config, config.steps) or config.steps in [
        test["step"] for test in read_tests(folder)
    ]


def _restore(trainer: Trainer, log: RunLog | None, say: Say) -> tuple[Path | None, float]:
    """Put the trainer and the logs where the last good checkpoint has them; the beginning, if there is none."""
    fabric = trainer.fabric
    damaged: dict[Path, str] = {}
    candidates = iter(usable_checkpoints(log.folder, damaged) if log is not None else ())
    while True:
        path, content = fabric.broadcast(next(candidates, (None, {})))
        if path is None:
            break
        reason = ""
        try:
            trainer.load(content["trainer"])
            seconds = float(content["seconds"])
            if log is not None:
                log.start(content["positions"], trainer.step)
        except RunError:
            raise
        except Exception as error:  # whatever a damaged or foreign checkpoint leads to
            reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        if _any(fabric, bool(reason)):
            damaged[path] = reason or "another process cannot use it"
            continue
        for bad, reason in damaged.items() if log is not None else ():
            say(f"{bad} is damaged ({reason}); continuing from {path.name}")
        return path, seconds
    if damaged:
        bad, reason = next(iter(damaged.items()))
        raise RunError(f"no checkpoint can be used: {bad} is damaged ({reason})")
    if log is not None:
        log.start()
    return None, 0.0


def _loop(
    trainer: Trainer,
    log: RunLog | None,
    folder: Path,
    last_good: Path | None,
    seconds: float,
    show: Show | None,
) -> None:
    config = trainer.config
    started = time.perf_counter() - seconds
    meter = _Meter(trainer, show if log is not None else None)
    tested = trainer.fabric.broadcast(log.tested() if log is not None else 0)
    with _interruptible(trainer.fabric.world_size) as interrupted:
        while True:
            if tested < trainer.step and _test_due(config, trainer.step):
                begun = time.perf_counter()
                try:
                    record = _test(trainer, folder, interrupted, meter)
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
            stop = _agreed(trainer, interrupted)
            if step % config.checkpoint_every == 0 or last or stop or _test_due(config, step):
                content = {"trainer": trainer.save(), "seconds": time.perf_counter() - started}
                if log is not None:
                    content["positions"] = log.positions()
                    last_good = _save(log.folder, step, content, last_good)
            meter.step()
            if stop and not last:
                raise _interruption(trainer, folder)
    if log is not None:
        export_weights(log.folder / WEIGHTS, trainer.weights(), config, trainer.step)


def _test_due(config: Config, step: int) -> bool:
    """Whether the whole test text is read after this step; a checkpoint is written before."""
    return config.test_every is not None and step > 0 and step % config.test_every == 0


def _test(trainer: Trainer, folder: Path, interrupted: threading.Event, meter: "_Meter") -> dict[str, Any]:
    """The cost on the whole test text, lanes shared by the processes. Training goes on as if it had not been."""
    fabric, task = trainer.fabric, trainer.task
    assert isinstance(task, Wikipedia)
    reading = task.read_test(rank=fabric.global_rank, world_size=fabric.world_size)
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        meter.test(done / len(reading))
        if _asked(trainer, interrupted):
            raise _interruption(trainer, folder)

    sums = torch.tensor(cost_of_reading(trainer.model, task, reading, advance), dtype=torch.float64)
    if fabric.world_size > 1:
        torch.distributed.all_reduce(sums)
    bits, symbols = sums.tolist()
    if not math.isfinite(bits):
        raise Diverged(f"stopped after step {trainer.step}: the cost on the test text is not finite")
    return {"step": trainer.step, "cost": bits / symbols, "symbols": int(symbols)}


def _save(folder: Path, step: int, content: dict[str, Any], last_good: Path | None) -> Path:
    try:
        return save_checkpoint(folder, step, content, keep=last_good)
    except RunError as error:
        raise RunError(f"stopped after step {step}: {error}; {_kept(last_good, folder)}") from error


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


def _agreed(trainer: Trainer, interrupted: threading.Event) -> bool:
    """Whether to stop now: several processes must do so after the same step, and ask each other at every tenth.

    torchrun kills processes that have not ended 30 seconds after Ctrl-C, so ten steps should not take longer.
    """
    if trainer.fabric.world_size > 1 and trainer.step % 10:
        return False
    return _asked(trainer, interrupted)


def _asked(trainer: Trainer, interrupted: threading.Event) -> bool:
    """Whether this process, or any of several, has been asked to stop."""
    return _any(trainer.fabric, interrupted.is_set())


def _any(fabric: Fabric, here: bool) -> bool:
    """Whether something is so in this process, or in any of several, which all must ask."""
    if fabric.world_size == 1:
        return here
    anywhere = torch.tensor(int(here))
    torch.distributed.all_reduce(anywhere, op=torch.distributed.ReduceOp.MAX)
    return bool(anywhere)


def _interruption(trainer: Trainer, folder: Path) -> Interrupted:
    return Interrupted(
        f"stopped after step {trainer.step}; continue with: {_command(trainer)} resume {folder}"
    )


@contextmanager
def _interruptible(processes: int = 1) -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, instead of breaking off in the middle of a step; a second Ctrl-C does that.

    Not so with several processes: from a terminal each gets Ctrl-C twice, once more from torchrun, and one that broke
    off would leave the others waiting for it.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before if processes == 1 else signal.SIG_IGN)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        if processes == 1 or not asked.is_set():
            signal.signal(signal.SIGINT, before)


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
        self._show(self._last)

    def test(self, share: float) -> None:
        now = time.perf_counter()
        if self._show is not None and now >= self._next:
            self._next = now + 0.2
            self._show(self._last._replace(step=self._trainer.step, tested=share))
