"""The README's ratios of speed are those of the recorded benchmark."""

import json
from pathlib import Path

ROOT = Path(__file__).parent.parent


def ratios(rows, column):
    shown = [row[column] for row in rows if row["network"].startswith("Associative")]
    return "" if None in shown else " / ".join(f"{value:.2f}" for value in shown)


def test_the_readmes_speeds_are_those_that_were_measured():
    groups = json.loads((ROOT / "results" / "bench" / "bench.json").read_text())["groups"]
    expected = {}
    for title in (
        "Table 1: episodic copy",
        "Inference on episodic copy",
        "Table 3: against the NTM, minibatch 1",
        "Wikipedia's size",
        "A large minibatch",
    ):
        one, two = (next(g for g in groups if (g["title"], g["threads"]) == (title, n)) for n in (1, 2))
        expected[title] = [f"`{one['against']}`", *(ratios(g["rows"], "speed") for g in (one, two))]
        expected[title].append(ratios(one["rows"], "paper"))
    section = (ROOT / "README.md").read_text().split("### Speed", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    assert [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines] == list(expected.values())
