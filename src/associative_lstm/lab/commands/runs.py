"""`alstm eval` and `alstm compare`: what has become of runs."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from associative_lstm.lab.commands.common import SEEDS, Device, Own, console, errors, know, progress_bar
from associative_lstm.lab.files import RunError, write_atomically

_RUN = typer.Argument(help="The run's folder, or its model.safetensors.")


def evaluate(
    run: Annotated[Path, _RUN],
    lanes: Annotated[int, typer.Option(help="Independent streams of fresh data.", min=2, max=10_000)] = 64,
    batches: Annotated[
        int | None, typer.Option(help="Batches (default 20; Wikipedia: the whole test text).", min=1)
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the fresh data.", **SEEDS)] = 0,
    device: Device = "cpu",
    own: Own = None,
) -> None:
    """Measure a run's network on fresh data, with a 95% confidence interval.

    Example: alstm eval runs/assignment-associative-lstm-128-4-copies-seed-0
    """
    from associative_lstm.lab.run.evaluation import evaluate as measure
    from associative_lstm.lab.run.evaluation import held_out, load_trained

    know(own)
    trained = load_trained(run, progress=errors.print, device=device)
    task = trained.task
    stream, batches = held_out(task, lanes, seed, batches)
    with progress_bar("evaluating", batches) as advance:
        result = measure(trained.model, task, stream, batches, advance)
    low, high = result.interval
    console.print(
        f"{task.name}, step {trained.step:,}: {result.cost:.4f} {task.unit} (95%: {low:.4f} to {high:.4f})"
    )
    if result.answer is not None:
        console.print(f"on the answer: {result.answer:.4f} bits (remembering nothing: {task.chance:g})")
    counted = "what is scored" if result.answer is None else "the answer"
    console.print(f"predicted right: {100 * result.accuracy:.2f}% of {counted}")
    path = (run if run.is_dir() else run.parent) / f"eval-step-{trained.step}-seed-{seed}.json"
    content = result._asdict() | {"step": trained.step, "seed": seed, "lanes": lanes, "batches": batches}
    write_atomically(path, json.dumps(content, indent=2).encode() + b"\n")
    console.print(f"written: {path}")


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs of one task.")],
    out: Annotated[Path, typer.Option(help="The picture to write: .png, .pdf or .svg.")] = Path(
        "compare.png"
    ),
    seed: Annotated[int | None, typer.Option(help="Only runs with this seed.", **SEEDS)] = None,
    own: Own = None,
) -> None:
    """Put the learning curves of several runs into one picture and one table.

    Example: alstm compare runs/assignment-* --out curves.png
    """
    from associative_lstm.lab.draw.runs import curve_key, format_of, labels_of, plot_runs
    from associative_lstm.lab.run.folder import read_config, read_log

    format_of(out)
    know(own)
    chosen = [run for run in runs if seed is None or read_config(run).seed == seed]
    if not chosen:
        raise RunError(f"none of these runs has seed {seed}")
    configs = [read_config(run) for run in chosen]
    logs = [read_log(run) for run in chosen]
    for run, log in zip(chosen, logs, strict=True):
        if not log:
            raise RunError(f"{run} has no line in its log yet")
    plot_runs(chosen, out)
    table = Table(configs[0].task, "steps", "last cost", "lowest cost", "seconds", box=SIMPLE)
    for column in table.columns[1:]:
        column.justify = "right"
    key = curve_key(logs)
    for label, log in zip(labels_of(configs, chosen), logs, strict=True):
        seconds = log[-1]["seconds"]
        table.add_row(
            label,
            f"{log[-1]['step']:,}",
            f"{log[-1][key]:.4f}",
            f"{min(line[key] for line in log):.4f}",
            "?" if seconds is None else f"{seconds:,.0f}",
        )
    console.print(table)
    console.print(f"cost in bits{' on the answer' if key == 'answer' else ''}; written: {out}")
