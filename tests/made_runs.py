"""Folders of runs such as training leaves, without the training."""

import json
from pathlib import Path

import numpy as np

from associative_lstm.lab.experiments.learning.curves import curve
from associative_lstm.lab.sweep.jobs import DIVERGED

VERSIONS = {"python": "3.11.7", "torch": "2.13.0", "associative-lstm": None}


def write_run(
    folder: Path, config, logged: int | None = None, level: float = 0.1, diverged: str = "", cost_at=None
) -> Path:
    """A run with ``logged`` lines in its log: a noisy cost that falls from 4 bits (on copy 60) towards ``level``.

    Or the cost that ``cost_at`` has for each step. On copy half of it is the answer's, of which ``cost_at`` tells.
    """
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(config.to_toml())
    (folder / "versions.json").write_text(json.dumps(VERSIONS))
    if diverged:
        (folder / DIVERGED).write_text(diverged + "\n")
    rng = np.random.default_rng(config.seed)
    step = config.log_every * np.arange(1, (logged or config.steps // config.log_every) + 1)
    start = 60.0 if config.task.startswith("copy") else 4.0
    cost = (level + (start - level) * np.exp(-step / 2000)) * rng.uniform(0.9, 1.1, len(step))
    if cost_at is not None:
        cost = [cost_at(s) * (2 if config.task.startswith("copy") else 1) for s in step]
    lines = [
        {"step": int(s), "cost": float(c), "gradient_norm": 1.0} for s, c in zip(step, cost, strict=True)
    ]
    if config.task.startswith("copy"):
        lines = [line | {"answer": line["cost"] / 2} for line in lines]
    write_lines(folder / "log.jsonl", lines)
    write_lines(folder / "times.jsonl", [{"step": int(s), "seconds": 0.004 * s + config.seed} for s in step])
    return folder


def write_lines(path: Path, lines) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_curve(runs: Path, task: str, network: str, *, best=3e-3, level=0.1, seeds=None) -> None:
    """All the runs of a curve, the ``seeds`` among them, of which rate ``best`` is the best."""
    planned = curve(task, network)
    for rate in planned.rates:
        if rate != best:
            config = planned.config(rate, planned.seeds[0], planned.sweep_steps)
            write_run(planned.folder(runs, rate, planned.seeds[0]), config, level=level * 5 + 10)
    for seed in planned.seeds if seeds is None else seeds:
        write_run(planned.folder(runs, best, seed), planned.config(best, seed, planned.steps), level=level)


def sweep_run(runs: Path, task: str, network: str, rate: float, **options) -> Path:
    """One run of a sweep."""
    planned = curve(task, network)
    config = planned.config(rate, 0, planned.sweep_steps)
    return write_run(planned.folder(runs, rate, 0), config, **options)
