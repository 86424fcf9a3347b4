"""Figure 10, the Wikipedia text, where there are runs or results of it."""

import dataclasses
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from associative_lstm.lab.colours import CYCLE
from associative_lstm.lab.experiments.fig10 import NETWORKS
from associative_lstm.lab.experiments.learning.curves import Network
from associative_lstm.lab.experiments.learning.drawing import look_of
from associative_lstm.lab.experiments.learning.runs import Run
from associative_lstm.lab.plots import label_of
from associative_lstm.lab.report.learning import NetworkRow, Panel
from associative_lstm.lab.report.lines import Json, digits, learning_plot, series, steps, unit_of
from associative_lstm.lab.report.results import Section, committed, with_table
from associative_lstm.lab.report.runs import Runs, seconds_of
from associative_lstm.lab.runlog import read_tests

_LABELS = {network.name: network.label for network in NETWORKS}
_TITLE, _COMMAND = "Figure 10: text of Wikipedia", "alstm reproduce fig10"


def wikipedia_section(results: Path, runs: Runs, lines: dict[str, Json]) -> Iterator[Section]:
    """The section, if there is anything to show; the costs of the test text are added to ``lines``."""
    networks: dict[str, list[Run]] = {}
    for name, run in runs.runs.items():
        if run.config.task == "wikipedia" and run.steps:
            networks.setdefault(Path(name).parent.as_posix(), []).append(run)
    folder = results / "fig10"
    if not networks and not folder.is_dir():
        return
    section = committed(folder, _TITLE, _COMMAND)
    if (folder / "README.md").is_file():
        with_table(section, folder / "README.md")
    for path in sorted(folder.glob("sample-*.txt")):
        text = path.read_text(encoding="utf-8", errors="replace")
        name = path.stem.removeprefix("sample-")
        section.texts.append((f"What this network writes: {_LABELS.get(name, name)}", text))
    if networks:
        judged = {name for evidence in section.claims for name in evidence.claim.runs}
        section.panels = _panels(networks, judged, _pass(folder), runs, lines)
    yield section


def _pass(folder: Path) -> int:
    """The minibatches of a pass over the training text, as the figure's verdicts have it; 0 if there are none."""
    try:
        about = json.loads((folder / "claims.json").read_text(encoding="utf-8"))["about"]
        return int(about["minibatches_of_a_pass"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _panels(
    networks: dict[str, list[Run]], judged: Collection[str], whole: int, runs: Runs, lines: dict[str, Json]
) -> list[Panel]:
    """The cost of the test text, and that of the training text."""
    test, training, rows = [], [], []
    for k, (name, its) in enumerate(networks.items()):
        best = _best(its, judged, runs)
        longest = max(best, key=lambda run: run.steps)
        rate = longest.config.learning_rate if len({run.config.learning_rate for run in best}) == 1 else None
        label, look = label_of(longest.config), _look(name, longest, k)
        for run in its:
            if tested := read_tests(run.folder):
                lines[f"{runs.name(run.folder)}#test"] = _test_line(run, tested)
        chosen, ids = ([runs.name(run.folder) for run in some] for some in (best, its))
        steps_asked = whole or longest.config.steps
        done = longest.steps >= steps_asked
        state = "finished" if done else f"{longest.steps:,} of {steps_asked:,} minibatches"
        if longest.diverged:
            done, state = False, f"diverged after {longest.steps:,} minibatches"
        note = "the best rate is not settled yet" if rate is None else "" if done else state
        training.append(series(label, look, {"best": chosen, "sweep": ids}, rate, note))
        tested_best, tested_all = (
            [f"{i}#test" for i in some if f"{i}#test" in lines] for some in (chosen, ids)
        )
        test.append(series(label, look, {"best": tested_best, "sweep": tested_all}, rate, note))
        cost = [f"{test['cost']:.4g} on the test text" for test in read_tests(longest.folder)][-1:]
        final = ", ".join([*cost, *([] if done else [state])])
        seconds = f"{seconds_of(longest):,.0f}"
        rows.append(NetworkRow(label, f"runs:{name}", state, done, [], final, "", seconds))
    panels = []
    if any(s["views"]["best"] for s in test):
        plot = _wikipedia_plot("the whole test text", test, networks)
        panels.append(Panel("fig10-test", unit_of("wikipedia"), [], rows, plot))
    plot = _wikipedia_plot("training", training, networks)
    panels.append(Panel("fig10-training", unit_of("wikipedia"), [], [] if panels else rows, plot))
    return panels


def _best(its: Sequence[Run], judged: Collection[str], runs: Runs) -> list[Run]:
    """The runs that the verdicts are about; if there are none yet, the longest ones."""
    named = [run for run in its if runs.name(run.folder) in judged]
    return named or [run for run in its if run.steps == max(other.steps for other in its)]


def _wikipedia_plot(what: str, entries: Sequence[Json], networks: dict[str, list[Run]]) -> Json:
    """From 8 bits, the first minibatches would dwarf the rest: the axis begins where a twentieth is done."""
    late = [run.cost[run.step > run.steps / 20] for its in networks.values() for run in its]
    plot = learning_plot(f"{_TITLE}, {what}", "wikipedia", entries, f"Cost, {what}")
    top = 1.05 * max(float(costs.max(initial=0.0)) for costs in late)
    plot["views"] = [{"key": "best", "name": "judged"}, {"key": "sweep", "name": "every rate"}]
    plot["y"] = [quantity | {"top": top, "zero": False} for quantity in plot["y"]]
    return plot


def _test_line(run: Run, tested: Sequence[Json]) -> Json:
    step = np.array([int(test["step"]) for test in tested])
    seconds = np.interp(step, run.step, run.seconds)
    return {
        "name": f"rate {run.config.learning_rate:g}, seed {run.config.seed}",
        "rate": run.config.learning_rate,
        "x": {"minibatches": steps(step), "seconds": digits(seconds)},
        "y": {"cost": digits(test["cost"] for test in tested)},
        "window": 1,
        "diverged": run.diverged is not None,
    }


def _look(name: str, run: Run, k: int) -> tuple[str, str]:
    values = {key: value for key, value in dataclasses.asdict(run.config).items() if value is not None}
    try:
        return look_of(Network(name, name, values))
    except KeyError:  # a number of copies that no figure of the paper has
        return CYCLE[k % len(CYCLE)], "-"
