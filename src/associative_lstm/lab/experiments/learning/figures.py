"""What `alstm reproduce fig6` does: the runs of a figure; then, from their logs, pictures, table and verdicts."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from associative_lstm.lab.experiments.claims import Outcome, write_claims
from associative_lstm.lab.experiments.drawing import save_figure, save_table
from associative_lstm.lab.experiments.learning.claims import statements_of
from associative_lstm.lab.experiments.learning.curves import (
    FIGURES,
    START_COPIES,
    START_TASKS,
    Curve,
    curve,
    smoke,
    start_curves,
)
from associative_lstm.lab.experiments.learning.decisions import GAPS
from associative_lstm.lab.experiments.learning.drawing import draw_figure, draw_sweep
from associative_lstm.lab.experiments.learning.measures import final_cost, solved_at, whole_cost
from associative_lstm.lab.experiments.learning.runs import SHARE, CurveRuns, make_runs, read_curve
from associative_lstm.lab.grid import Execute, Show

NAMES = (*FIGURES, "tuning", "starts")
"""What can be reproduced here: the paper's figures, and two of ours: how far tuning gets, and how networks start."""

Prepare = Callable[[Curve], Curve]


def panels_of(name: str) -> dict[str, list[Curve]]:
    """The pictures of a figure, by title: one for a figure of the paper, one per task for those of ours."""
    if name in FIGURES:
        figure = FIGURES[name]
        return {f"Figure {name.removeprefix('fig')}: {figure.title}": figure.curves}
    if name == "tuning":
        networks = ("lstm-128", "lstm-128-forget-1", "lstm-512")
        return {
            f"Does a well-tuned LSTM close the gap? {task}": [curve(task, n) for n in (*networks, ours)]
            for task, ours in GAPS.items()
        }
    titles = {task: f"How keys and forget gate start: {task}" for task in START_TASKS}
    return {titles[t]: [c for copies in START_COPIES for c in start_curves(t, copies)] for t in START_TASKS}


def preparation(*, seed: int = 0, quick: bool = False) -> Prepare:
    """What is done to every curve before it is run or read: other seeds from ``seed`` on, or tiny networks."""

    def prepare(planned: Curve) -> Curve:
        chosen = smoke(planned) if quick else planned
        return dataclasses.replace(chosen, seeds=tuple(seed + s for s in chosen.seeds))

    return prepare


def make(
    names: Sequence[str], runs: Path, execute: Execute, prepare: Prepare, show: Show | None = None
) -> Sequence[str]:
    """Make what is missing of the runs of the figures and of their claims; why any could not be made."""
    planned = [c for name in names for curves in panels_of(name).values() for c in curves]
    needed = [curve(*need) for name in names for claim in statements_of(name) for need in claim.needs]
    return make_runs(runs, [prepare(c) for c in (*planned, *needed)], execute, show)


def draw(
    name: str, out: Path, runs: Path, prepare: Prepare = lambda planned: planned, **about: object
) -> Outcome:
    """Pictures, table and verdicts of a figure from what there is of its runs; ``about`` goes with the verdicts."""
    out.mkdir(parents=True, exist_ok=True)
    written, rows = [], []
    panels = panels_of(name)
    for title, planned in panels.items():
        curves = [read_curve(runs, prepare(c)) for c in planned]
        stem = name if len(panels) == 1 else f"{name}-{planned[0].task}"
        written.append(save_figure(draw_figure(title, curves), out / f"{stem}.png"))
        written.append(save_figure(draw_sweep(title, curves), out / f"{stem}-sweep.png"))
        rows += _rows(curves)
    written.append(save_table(out / f"{name}.csv", rows or [{"runs": "none yet"}]))
    claims = [statement.judge(runs, prepare) for statement in statements_of(name)]
    written.append(write_claims(out / "claims.json", claims, runs=str(runs), **about))
    return Outcome(written, claims)


def _rows(curves: Sequence[CurveRuns]) -> list[dict[str, object]]:
    """Every run of the curves in a line: the sweep's, then the seeds'."""
    rows: list[dict[str, object]] = []
    for c in curves:
        chosen = [*c.sweep.values(), *c.runs[1:]]
        for run in chosen:
            ours = run in c.runs
            until = c.curve.steps if ours else c.curve.sweep_steps
            rows.append(
                {
                    "task": c.curve.task,
                    "network": c.curve.network.name,
                    "rate": run.config.learning_rate,
                    "seed": run.config.seed,
                    "steps": run.steps,
                    "best_rate": ours,
                    "sweep_cost": run.last(SHARE, until=c.curve.sweep_steps),
                    "final_cost": final_cost(run, until),
                    "whole_cost": whole_cost(run, until),
                    "solved_at": solved_at(run),
                    "seconds": float(np.max(run.seconds, initial=0.0)),
                    "diverged": run.diverged is not None,
                }
            )
    return rows
