"""`alstm bench`: speed, side by side."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markdown import Markdown

from associative_lstm.lab.commands.common import SEEDS, Device, console, finite, progress_bar

PARTS = ("tables", "settings", "narrower", "itself", "growth", "memory", "tasks", "start")
ON_A_GPU = ("tables", "settings")


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
    device: Device = "cpu",
) -> None:
    """Time the networks in turns, against torch.nn.LSTM, after checking that they compute the right thing.

    Example: alstm bench --threads 1 --part tables
    """
    import torch

    from associative_lstm.lab.bench import growth, memory, narrow_vectors, speed, start
    from associative_lstm.lab.bench.commit import commit
    from associative_lstm.lab.bench.report import markdown, tables
    from associative_lstm.lab.files import write_atomically
    from associative_lstm.lab.run.folder import versions

    finite("--seconds", seconds)
    chosen = part or list(PARTS if device == "cpu" else ON_A_GPU)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        raise ValueError(f"--part: expected one of {', '.join(PARTS)}, got {unknown[0]!r}")
    if device != "cpu":
        if not torch.cuda.is_available():
            raise ValueError(f"--device is {device}, but PyTorch finds no GPU here")
        for name in chosen:
            if name not in ON_A_GPU:
                raise ValueError(f"--part {name} measures the CPU; on a GPU there are {', '.join(ON_A_GPU)}")
    counts = threads or ([1, 2] if device == "cpu" else [1])

    def each(kind: str, measure: Callable[..., Any], groups: Iterable[Any]) -> list[tuple[str, Any]]:
        return [(kind, lambda g=g, n=n: measure(g, n, seconds, seed)) for n in counts for g in groups]

    def group(*arguments: Any) -> list[Any]:
        return [speed.measure(*arguments, device=device)]

    def narrow() -> list[dict[str, Any]]:
        return narrow_vectors.groups(["tables", "settings"], counts, seconds, seed)

    jobs: dict[str, Callable[[], list[tuple[str, Any]]]] = {
        "tables": lambda: each("groups", group, speed.TABLES),
        "settings": lambda: each("groups", group, speed.SETTINGS),
        "narrower": lambda: [("narrower", narrow)] if narrow_vectors.possible() else [],
        "itself": lambda: each("itself", speed.against_itself, [*speed.TABLES[::2], *speed.SETTINGS]),
        "growth": lambda: [
            ("growth", lambda q=q: [growth.growth(q, counts[0], seconds)]) for q in growth.RANGES
        ],
        "memory": lambda: [("memory", memory.peaks)],
        "tasks": lambda: [("tasks", lambda: growth.batch_generation(counts[0], seconds / 4))],
        "start": lambda: [("start", start.first_and_second), ("help", start.time_of_help)],
    }
    wanted = [job for name in PARTS if name in chosen for job in jobs[name]()]
    out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"versions": versions() | {"commit": commit()}}
    if device != "cpu":
        results["versions"] |= {"gpu": torch.cuda.get_device_name()}
    with progress_bar("bench", len(wanted)) as advance:
        for kind, job in wanted:
            rows = list(job())
            results.setdefault(kind, []).extend(rows)
            console.print(Markdown("\n".join(tables({kind: rows}))), soft_wrap=False)
            advance()
    write_atomically(out / "bench.json", json.dumps(results, indent=1).encode())
    write_atomically(out / "bench.md", markdown(results).encode())
    console.print(f"wrote {out / 'bench.json'} and {out / 'bench.md'}")
