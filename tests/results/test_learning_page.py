"""The tables of what each part of the fast recipe is worth, and of how many copies, are what the logs say."""

from pathlib import Path

from associative_lstm.lab.experiments.learning.curves import (
    ABLATION_TASKS,
    FAST_STEPS,
    WITHOUT,
    curve,
    fast_curve,
)
from associative_lstm.lab.experiments.learning.measures import final_cost
from associative_lstm.lab.experiments.learning.runs import read_curve

ROOT = Path(__file__).parents[2]


def cell(task, network):
    runs = read_curve(ROOT / "results" / "runs", curve(task, network))
    assert runs.finished
    costs = [final_cost(run, runs.curve.steps) for run in runs.runs]
    return f"{sum(costs) / len(costs):.2f}"


def table_under(title):
    section = (ROOT / "docs" / "learning.md").read_text().split(f"## {title}", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_the_parts_of_the_recipe():
    measured = [
        [text, *(cell(task, f"fast-at-one-rate{suffix}") for task in ABLATION_TASKS)]
        for suffix, text, _ in WITHOUT
    ]
    assert table_under("What each part is worth") == measured


def test_how_many_copies():
    networks = [f"fast-{name}" for name in (*(f"associative-lstm-{n}" for n in (1, 4, 8)), "lstm-128")]
    measured = [
        [f"{task}, {steps:,}", *(cell(task, name) for name in networks)] for task, steps in FAST_STEPS.items()
    ]
    assert table_under("Which rate, and how many copies?") == measured


def long_runs(task, copies, steps):
    """By rate, how many seeds of long runs by the recipe diverged; of rates with which all are told."""
    found = read_curve(ROOT / "results" / "runs", fast_curve(task, f"associative-lstm-{copies}", steps))
    told = {rate: runs for rate, runs in {**found.given_up, found.rate: found.runs}.items() if len(runs) == 3}
    return {f"{rate:g}": sum(run.diverged is not None for run in runs) for rate, runs in told.items()}


def test_how_long_the_recipe_can_be_trained():
    assert table_under("For how long?") == [
        [str(copies), rate, f"{diverged} of 3"]
        for copies in (1, 4, 8)
        for rate, diverged in long_runs("copy", copies, 40_000).items()
    ]
    others = [("assignment", 4, 40_000), ("assignment", 8, 40_000), ("arithmetic", 1, 300_000)]
    assert [list(long_runs(*each).values()) for each in others] == [[0], [0], [0]]
