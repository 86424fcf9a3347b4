"""The README's ratios of speed are those of the recorded benchmark."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def ratios(groups, title, threads):
    (group,) = (g for g in groups if (g["title"], g["threads"]) == (title, threads))
    return " / ".join(
        f"{row['speed']:.2f}" for row in group["rows"] if row["network"].startswith("Associative")
    )


def test_the_readmes_speeds_are_those_that_were_measured():
    recorded = json.loads((ROOT / "results" / "bench" / "bench.json").read_text())
    titles = (
        "Table 1: episodic copy",
        "Table 3: against the NTM, minibatch 1",
        "Wikipedia's size",
    )
    widths = recorded["groups"], recorded["narrower"]
    measured = [[ratios(g, title, threads) for g in widths for threads in (1, 2)] for title in titles]
    section = (ROOT / "README.md").read_text().split("### Speed", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    assert [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines] == measured
