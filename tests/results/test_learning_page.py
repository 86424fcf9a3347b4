"""The table of what each part of the fast recipe is worth is what the logs say."""

from pathlib import Path

from associative_lstm.lab.experiments.learning.curves import ABLATION_TASKS, WITHOUT, curve
from associative_lstm.lab.experiments.learning.measures import final_cost
from associative_lstm.lab.experiments.learning.runs import read_curve

ROOT = Path(__file__).parents[2]


def test_the_parts_of_the_recipe():
    def cell(task, suffix):
        runs = read_curve(ROOT / "results" / "runs", curve(task, f"fast-at-one-rate{suffix}"))
        assert runs.finished
        costs = [final_cost(run, runs.curve.steps) for run in runs.runs]
        return f"{sum(costs) / len(costs):.2f}"

    measured = [[text, *(cell(task, suffix) for task in ABLATION_TASKS)] for suffix, text, _ in WITHOUT]
    section = (ROOT / "docs" / "learning.md").read_text().split("## What each part is worth", 1)[1]
    lines = [line for line in section.split("\n## ", 1)[0].splitlines() if line.startswith("|")][2:]
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines] == measured
