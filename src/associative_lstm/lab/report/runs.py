"""Every run under a folder: its configuration, its log, how to make it again; and what could not be read."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from associative_lstm.lab.experiments.learning.curves import NETWORKS
from associative_lstm.lab.experiments.learning.runs import Logs, Run
from associative_lstm.lab.files import RunError
from associative_lstm.lab.networks import label_of
from associative_lstm.lab.report.lines import Json, line_of
from associative_lstm.lab.run.packed import is_file, read_bytes, runs_below

UNREADABLE = (RunError, ValueError, OSError)


@dataclass(frozen=True)
class Group:
    """The runs of one network on one task, and what their configurations have in common."""

    name: str
    label: str
    common: str
    runs: list[Run]


class Runs:
    """The runs that ``logs`` has, by their path; ``problems`` says of each damaged one what was skipped.

    A folder without any run is a RunError.
    """

    def __init__(self, logs: Logs) -> None:
        self.logs, folder = logs, logs.folder
        self.runs: dict[str, Run] = {}
        self.problems: list[str] = []
        self.versions: dict[str, int] = {}
        for run in runs_below(folder):
            self._read(run)
        if not self.runs and not self.problems:
            raise RunError(
                f"{folder} holds no runs: `alstm reproduce all` makes them, --runs names another folder"
            )

    def _read(self, folder: Path) -> None:
        name = self.logs.name(folder)
        try:
            run = self.logs.run(folder)
            log = folder / "log.jsonl"
            whole = read_bytes(log).count(b"\n") if is_file(log) else 0
        except UNREADABLE as error:
            self.problems.append(f"{name} is left out: {error}")
            return
        if whole > len(run.step):
            kept = f"after minibatch {run.steps:,}" if run.steps else "from the beginning"
            self.problems.append(f"{name}: its log is damaged {kept}; nothing from there on is shown")
        self.runs[name] = run
        platform = _versions(folder)
        if platform:
            self.versions[platform] = self.versions.get(platform, 0) + 1

    @property
    def minibatches(self) -> int:
        """Made by all the runs."""
        return sum(run.steps for run in self.runs.values())

    @property
    def hours(self) -> float:
        """Of training, all the runs together."""
        return sum(map(seconds_of, self.runs.values())) / 3600

    def lines(self) -> dict[str, Json]:
        """Every run as it is drawn."""
        return {name: line_of(run) for name, run in self.runs.items() if run.steps}

    def groups(self) -> list[Group]:
        """The runs by task and network."""
        by_curve: dict[str, list[Run]] = {}
        for name, run in self.runs.items():
            by_curve.setdefault(Path(name).parent.as_posix(), []).append(run)
        return [self._group(name, runs) for name, runs in by_curve.items()]

    def _group(self, name: str, runs: Sequence[Run]) -> Group:
        texts = [run.config.to_toml() for run in runs]
        lines = [line for line in texts[0].splitlines() if all(line in t.splitlines() for t in texts)]
        network = NETWORKS.get(Path(name).name)
        config = runs[0].config
        label = f"{config.task}: {network.label if network else label_of(config.model, vars(config))}"
        ordered = sorted(runs, key=lambda run: (run.config.learning_rate, run.config.seed))
        return Group(name, label, "\n".join(lines), ordered)


def state_of_run(run: Run) -> str:
    """How a run has ended, or how much of it is made."""
    if run.diverged:
        return f"diverged: {run.diverged}"
    return "whole" if run.steps >= run.config.steps else f"{run.steps / run.config.steps:.0%} made"


def again(run: Run) -> str:
    """The command that makes it again."""
    return f"alstm train --config {shlex.quote(str(run.folder / 'config.toml'))} --out runs/again"


def seconds_of(run: Run) -> float:
    """How long a run has been trained, as far as its log tells."""
    known = run.seconds[np.isfinite(run.seconds)]
    return float(known.max(initial=0.0))


def last_tenth(run: Run, values: np.ndarray) -> str:
    """The mean of the last tenth of what a run has logged."""
    chosen = values[run.step > 0.9 * run.steps]
    return f"{chosen.mean():.4g}" if len(chosen) else ""


def _versions(folder: Path) -> str:
    """What made a run, in one line; nothing where that is not known."""
    try:
        found = json.loads(read_bytes(folder / "versions.json"))
        return ", ".join(f"{name} {value}" for name, value in found.items() if value is not None)
    except (OSError, ValueError, AttributeError):
        return ""
