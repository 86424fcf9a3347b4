"""Learning curves from run logs."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from associative_lstm.lab.files import RunError, write_atomically
from associative_lstm.lab.networks import NETWORKS, Look, label_of
from associative_lstm.lab.palette import CYCLE, YELLOW
from associative_lstm.lab.run.config import Config
from associative_lstm.lab.run.folder import read_config, read_log
from associative_lstm.lab.tasks import TASKS


def format_of(path: Path) -> str:
    """The format of the picture that the ending of its name asks for."""
    if (ending := path.suffix.lower()) not in (".png", ".pdf", ".svg"):
        raise RunError(f"{path} must end in .png, .pdf or .svg, which says what kind of picture to write")
    return ending.removeprefix(".")


LINES = ("-", "--", "-.", ":")

_FIRST = ("key_init", "forget_bias", "learning_rate", "batch_size", "seed")
_NEVER = ("task", "log_every", "checkpoint_every", "test_every")


def labels_of(configs: Sequence[Config], folders: Sequence[str | Path] = ()) -> list[str]:
    """Names of several runs; where networks are alike, the settings that differ are added, or else their folders."""
    labels = [label_of(config.model, vars(config)) for config in configs]
    for key in (*_FIRST, *(name for name in Config.__dataclass_fields__ if name not in (*_FIRST, *_NEVER))):
        if len(set(labels)) == len(labels):
            break
        before, values = list(labels), [getattr(config, key) for config in configs]
        for k, label in enumerate(before):
            if len({value for value, other in zip(values, before, strict=True) if other == label}) > 1:
                labels[k] = f"{label}, {key.replace('_', ' ')} {values[k]}"
    if folders:
        names = [Path(folder).name for folder in folders]
        names = names if len(set(names)) == len(names) else [str(folder) for folder in folders]
        same = {label for label in labels if labels.count(label) > 1}
        labels = [
            f"{label}, {name}" if label in same else label for label, name in zip(labels, names, strict=True)
        ]
    return labels


def looks_of(configs: Sequence[Config]) -> list[Look]:
    """How the runs are drawn: in the colours of the figures, and of one colour with different lines.

    Where a colour has more runs than there are lines, the rest have colours that no other network has here.
    """
    wanted = [NETWORKS[config.model].look(vars(config)) for config in configs]
    spare = [colour for colour in [*CYCLE, YELLOW] if colour not in {colour for colour, _ in wanted}]
    looks: list[Look] = []
    for colour, line in wanted:
        free = [(c, other) for c in (colour, *spare) for other in (line, *LINES) if (c, other) not in looks]
        looks.append(free[0] if free else (colour, line))
    return looks


def plot_runs(folders: Sequence[str | Path], path: Path) -> None:
    """Draw the learning curves of runs of one task, in the format that the ending of ``path`` asks for."""
    format = format_of(path)
    configs = [read_config(folder) for folder in folders]
    if len({config.task for config in configs}) > 1:
        raise RunError(f"runs of different tasks: {', '.join(sorted({config.task for config in configs}))}")
    logs = [read_log(folder) for folder in folders]
    labels = labels_of(configs, folders)
    write_atomically(path, draw_curves(logs, labels, looks_of(configs), configs[0].task, format))


def curve_key(logs: Sequence[list[dict[str, Any]]]) -> str:
    """What the curves are of: the cost of the answer where all the lines have it, the cost elsewhere."""
    return "answer" if all("answer" in line for log in logs for line in log) and any(logs) else "cost"


def draw_curves(
    logs: Sequence[list[dict[str, Any]]],
    labels: Sequence[str],
    looks: Sequence[Look],
    task_name: str,
    format: str = "png",
) -> bytes:
    """The picture: cost against minibatches, one line per run; the cost of the answer where the task has one."""
    from matplotlib.figure import Figure

    task = TASKS[task_name]
    key = curve_key(logs)
    figure = Figure(figsize=(7.5, 4.5), layout="constrained", dpi=120)
    axes = figure.add_subplot()
    highest = 0.0
    for log, label, (colour, dash) in zip(logs, labels, looks, strict=True):
        costs = [line[key] for line in log]
        steps = [line["step"] for line in log]
        axes.plot(steps, costs, label=label, linewidth=1.6, color=colour, linestyle=dash)
        axes.plot(steps[-1:], costs[-1:], "o", color=colour, markersize=4)  # where it ends
        highest = max([highest, *(costs[1:] or costs)])  # the first line would dwarf the others
    axes.axhline(task.chance, color="0.6", linewidth=1, linestyle=":", label="remembering nothing")
    highest = min(max(highest, task.chance), 1.5 * task.chance)  # and so would a leap
    axes.xaxis.set_major_formatter("{x:,.0f}")
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
