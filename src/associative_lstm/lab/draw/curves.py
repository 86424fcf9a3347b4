"""Learning curves from run logs."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from associative_lstm.lab.files import RunError, write_atomically
from associative_lstm.lab.networks import label_of
from associative_lstm.lab.palette import CYCLE
from associative_lstm.lab.run.config import Config
from associative_lstm.lab.run.folder import read_config, read_log
from associative_lstm.lab.tasks import TASKS


def format_of(path: Path) -> str:
    """The format of the picture that the ending of its name asks for."""
    if (ending := path.suffix.lower()) not in (".png", ".pdf", ".svg"):
        raise RunError(f"{path} must end in .png, .pdf or .svg, which says what kind of picture to write")
    return ending.removeprefix(".")


_FIRST = ("key_init", "forget_bias", "learning_rate", "batch_size", "seed")
_NEVER = ("task", "log_every", "checkpoint_every", "test_every")


def labels_of(configs: Sequence[Config]) -> list[str]:
    """Names of several runs; where networks look alike, the settings that differ are added."""
    labels = [label_of(config.model, vars(config)) for config in configs]
    for key in (*_FIRST, *(name for name in Config.__dataclass_fields__ if name not in (*_FIRST, *_NEVER))):
        if len(set(labels)) == len(labels):
            break
        before, values = list(labels), [getattr(config, key) for config in configs]
        for k, label in enumerate(before):
            if len({value for value, other in zip(values, before, strict=True) if other == label}) > 1:
                labels[k] = f"{label}, {key.replace('_', ' ')} {values[k]}"
    return labels


def plot_runs(folders: Sequence[str | Path], path: Path) -> None:
    """Draw the learning curves of runs of one task, in the format that the ending of ``path`` asks for."""
    format = format_of(path)
    configs = [read_config(folder) for folder in folders]
    if len({config.task for config in configs}) > 1:
        raise RunError(f"runs of different tasks: {', '.join(sorted({config.task for config in configs}))}")
    logs = [read_log(folder) for folder in folders]
    write_atomically(path, draw_curves(logs, labels_of(configs), configs[0].task, format))


def curve_key(logs: Sequence[list[dict[str, Any]]]) -> str:
    """What the curves are of: the cost of the answer where all the lines have it, the cost elsewhere."""
    return "answer" if all("answer" in line for log in logs for line in log) and any(logs) else "cost"


def draw_curves(
    logs: Sequence[list[dict[str, Any]]], labels: Sequence[str], task_name: str, format: str = "png"
) -> bytes:
    """The picture: cost against minibatches, one line per run; the cost of the answer where the task has one."""
    from cycler import cycler
    from matplotlib.figure import Figure

    task = TASKS[task_name]
    key = curve_key(logs)
    figure = Figure(figsize=(7.5, 4.5), layout="constrained", dpi=120)
    axes = figure.add_subplot()
    axes.set_prop_cycle(cycler(linestyle=["-", "--", "-."]) * cycler(color=CYCLE))  # all colours solid first
    highest = 0.0
    for log, label in zip(logs, labels, strict=True):
        costs = [line[key] for line in log]
        axes.plot([line["step"] for line in log], costs, label=label, linewidth=1.6)
        highest = max([highest, *(costs[1:] or costs)])  # the first line would dwarf the others
    axes.axhline(task.chance, color="0.6", linewidth=1, linestyle=":", label="remembering nothing")
    highest = max(highest, task.chance)
    axes.set_xlabel("minibatches")
    axes.set_ylabel(f"{task.unit}, on the answer" if key == "answer" else task.unit)
    axes.set_title(f"{task_name}: {task.description}", fontsize=11)
    axes.set_ylim(0, highest * 1.08 or 1)
    axes.set_xlim(left=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(edgecolor="none", loc="upper right")  # "best" takes long where curves have many points
    image = io.BytesIO()
    figure.savefig(image, format=format)
    return image.getvalue()
