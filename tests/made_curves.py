"""Whole curves of runs, as a figure plans them, without the training; and what a claim makes of them."""

import dataclasses
import shutil

import numpy as np

import made_runs
from associative_lstm.lab.experiments.learning.curves import curve, fast_curve
from associative_lstm.lab.experiments.learning.figures import FIGURES
from associative_lstm.lab.experiments.learning.runs import Logs, Run
from associative_lstm.lab.sweep.jobs import DIVERGED

IN_ALL = {figure.name: figure for figure in FIGURES if figure.in_all}

CLAIMS = {claim.key: claim for figure in IN_ALL.values() for claim in figure.claims}


def judged(key, runs):
    return CLAIMS[key].judge(Logs(runs))


def write_run(curve, runs, rate, seed, cost, steps=None, diverged=False):
    """A run of a curve: ``cost`` is a function of the step."""
    config = curve.config(rate, seed, steps or curve.steps)
    end = {"logged": 3, "diverged": "stopped at step 301: the cost is not finite"} if diverged else {}
    made_runs.write_run(curve.folder(runs, rate, seed), config, cost_at=cost, **end)


def write_curve(runs, task, network, *costs, best=1e-3):
    """All runs of a curve, with the final ``costs`` of its seeds: constant, from chance at the first step."""
    write_planned(runs, curve(task, network), *costs, best=best)


def write_whole(runs, task, network, *costs):
    """The same for the runs by the fast recipe that are as long as those as the paper trained."""
    write_planned(runs, fast_curve(task, network, curve(task, network).steps), *costs, best=5e-3)


def write_planned(runs, planned, *costs, best):
    costs = costs * len(planned.seeds) if len(costs) == 1 else costs
    for rate in planned.rates:
        if rate != best:
            write_run(planned, runs, rate, planned.swept_with, lambda s: 50.0, planned.sweep_steps)
    for seed, cost in zip(planned.seeds, costs, strict=True):
        write_run(planned, runs, best, seed, lambda s, cost=cost: cost)
    if planned.swept_with not in planned.seeds:
        write_run(planned, runs, best, planned.swept_with, lambda s: costs[0], planned.sweep_steps)


def run_of(values, task="xml", every=100):
    config = dataclasses.replace(curve(task, "lstm-128").config(1e-3, 0, 1000), log_every=every)
    values = np.asarray(values, dtype=float)
    step = every * np.arange(1, len(values) + 1)
    return Run(None, config, step, values, None, step / 100, None)


def lengthen(planned, runs, rate, cost, steps):
    shutil.rmtree(planned.folder(runs, rate, planned.seeds[0]), ignore_errors=True)
    write_run(planned, runs, rate, planned.seeds[0], cost, steps)


def write_solving(runs, task, network, *solved, best=1e-3):
    """All runs of a curve, whose seeds are at chance until they have ``solved`` the task."""
    planned = curve(task, network)
    solved = solved * len(planned.seeds) if len(solved) == 1 else solved
    for rate in planned.rates:
        if rate != best:
            write_run(planned, runs, rate, planned.seeds[0], lambda s: 90.0, planned.sweep_steps)
    for seed, at in zip(planned.seeds, solved, strict=True):
        write_run(planned, runs, best, seed, lambda step, at=at: 30.0 if step < at else 0.1)


def cut_short(planned, runs, rate, seed, lines):
    """The run diverges after so many lines of its log."""
    folder = planned.folder(runs, rate, seed)
    (folder / DIVERGED).write_text("stopped\n")
    log = folder / "log.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:lines]))
