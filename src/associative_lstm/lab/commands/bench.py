"""`alstm bench`: speed, side by side."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from associative_lstm.lab.commands.common import SEEDS, console, finite, progress_bar
from associative_lstm.lab.words import counted

PARTS = ("tables", "settings", "itself", "growth", "memory", "tasks", "start")


def bench(
    threads: Annotated[
        list[int] | None, typer.Option(help="Threads to measure with; may be repeated.", min=1, max=1024)
    ] = None,
    part: Annotated[
        list[str] | None, typer.Option(help=f"Only this part, may be repeated: {', '.join(PARTS)}.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Seconds for each group of networks.", min=0.01)] = 4.0,
    out: Annotated[Path, typer.Option(help="The folder for bench.json and bench.md.")] = Path("bench"),
    seed: Annotated[int, typer.Option(help="Decides the inputs.", **SEEDS)] = 0,
) -> None:
    """Time the networks in turns, against torch.nn.LSTM, after checking that they compute the right thing.

    Example: alstm bench --threads 1 --part tables
    """
    from associative_lstm.lab.bench import growth, memory, speed, start
    from associative_lstm.lab.bench.report import markdown
    from associative_lstm.lab.files import write_atomically
    from associative_lstm.lab.run.folder import versions

    finite("--seconds", seconds)
    chosen = part or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        raise ValueError(f"--part: expected one of {', '.join(PARTS)}, got {unknown[0]!r}")
    counts = threads or [1, 2]
    jobs: list[tuple[str, Any]] = []
    for n in counts:
        if "tables" in chosen:
            jobs += [("groups", lambda g=g, n=n: [speed.measure(g, n, seconds, seed)]) for g in speed.TABLES]
        if "settings" in chosen:
            jobs += [
                ("groups", lambda g=g, n=n: [speed.measure(g, n, seconds, seed)]) for g in speed.SETTINGS
            ]
        if "itself" in chosen:
            groups = [speed.TABLES[0], speed.TABLES[2], *speed.SETTINGS]
            jobs += [
                ("itself", lambda g=g, n=n: list(speed.against_itself(g, n, seconds, seed))) for g in groups
            ]
    if "growth" in chosen:
        jobs += [("growth", lambda q=q: [growth.growth(q, counts[0], seconds)]) for q in growth.RANGES]
    if "memory" in chosen:
        jobs.append(("memory", memory.peaks))
    if "tasks" in chosen:
        jobs.append(("tasks", lambda: growth.batch_generation(counts[0], seconds / 4)))
    if "start" in chosen:
        jobs.append(("start", start.first_and_second))
        jobs.append(("help", start.time_of_help))

    out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"versions": versions()}
    with progress_bar("bench", len(jobs)) as advance:
        for kind, job in jobs:
            rows = job()
            results.setdefault(kind, []).extend(rows)
            for row in rows:
                _print(kind, row)
            advance()
    write_atomically(out / "bench.json", json.dumps(results, indent=1).encode())
    write_atomically(out / "bench.md", markdown(results).encode())
    console.print(f"wrote {out / 'bench.json'} and {out / 'bench.md'}")


def _print(kind: str, row: dict[str, Any]) -> None:
    if kind == "groups":
        size = f"T {row['steps']}, B {row['batch']}, {counted(row['threads'], 'thread')}"
        table = Table(
            "network",
            "ms (quartiles)",
            f"speed / {row['against']}",
            "paper",
            title=f"{row['title']}: {row['what']}, {size}",
        )
        for entry in row["rows"]:
            low, high = entry["quartiles"]
            paper = "" if entry["paper"] is None else f"{entry['paper']:.2f}"
            table.add_row(
                entry["network"],
                f"{entry['milliseconds']:.2f} ({low:.2f}-{high:.2f})",
                f"{entry['speed']:.2f}",
                paper,
            )
        console.print(table)
    elif kind == "itself":
        console.print(
            f"{row['title']}, {counted(row['threads'], 'thread')}, {row['network']}: {row['milliseconds']:.2f} ms, "
            f"{row['over_reference']:.1f} times the reference loop's speed, "
            f"{row['of_products']:.2f} of the speed of its matrix products alone"
        )
    elif kind == "growth":
        times = ", ".join(f"{v}: {t:.2f}" for v, t in zip(row["values"], row["milliseconds"], strict=True))
        console.print(
            f"growth with {row['quantity']} (ms): {times}; exponent {row['exponent']:.2f}, "
            f"last doubling {row['last_doubling']:.2f}"
        )
    elif kind == "memory":
        setting = ", ".join(f"{name} {value}" for name, value in row["setting"].items())
        console.print(
            f"memory, {setting}: peak {row['peak'] / 2**20:.1f} MiB, "
            f"{row['peak'] / row['saved']:.2f} of the traces and pre-activations ({row['saved'] / 2**20:.1f} MiB)"
        )
    elif kind == "start":
        console.print(
            f"kernels {row['what']}: first step {row['step']:.1f} s, after {row['imports']:.1f} s of imports"
        )
    elif kind == "help":
        console.print(
            f"{row['what']}: {row['seconds']:.2f} s, {row['ratio']:.0f} times an empty Python program"
        )
    else:
        console.print(
            f"{row['task']}: a minibatch takes {row['microseconds']:.0f} us, {row['share']:.1%} of a step"
        )
