"""`alstm show` and `alstm info`: the tasks, and the machine."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table

from associative_lstm.lab.commands.common import SEEDS, Own, completing, console, know
from associative_lstm.lab.tasks import TASKS, make_task


def show(
    task: Annotated[
        str | None,
        typer.Argument(help="The task; without it, a list of all.", autocompletion=completing(TASKS)),
    ] = None,
    length: Annotated[int, typer.Option(help="Symbols to show.", min=1, max=100_000)] = 300,
    data: Annotated[Path | None, typer.Option(help="Wikipedia: the file.")] = None,
    seed: Annotated[int, typer.Option(help="Decides the sample.", **SEEDS)] = 0,
    own: Own = None,
) -> None:
    """Print a sample of a task, with the scored symbols in colour and marked.

    Example: alstm show xml
    """
    from associative_lstm.lab.draw.text import bit_rows, scored_lines
    from associative_lstm.lab.tasks.base import Batch, fresh

    know(own)
    if task is None:
        table = Table("task", "what it is", "kind", "minibatch")
        for name, cls in TASKS.items():
            table.add_row(
                name, cls.description, "episodic" if cls.episodic else "online", str(cls.batch_size)
            )
        console.print(table)
        return
    reads_a_file = task in TASKS and "data" in TASKS[task].settings
    if data is not None and not reads_a_file:
        raise ValueError(f"data cannot be used with task {task!r}, which makes its own data")
    options = {"data": data, "progress": console.print} if reads_a_file else {}
    chosen = make_task(task, **options)
    batch = Batch(*(part[:length] for part in fresh(chosen, seed, length, split="train")))
    if chosen.vocabulary is None:
        for line in bit_rows(chosen, batch, batch.targets - 0.5):
            console.print(line)
    else:
        if chosen.episodic:
            console.print(f"inputs\n{chosen.decode(batch.inputs[:, 0])}\ntargets, the answer marked")
        for line in scored_lines(chosen, batch):
            console.print(line)
    console.print(
        f"{chosen.name}: {chosen.description}; remembering nothing costs {chosen.chance:.2f} {chosen.unit}"
    )


def info(
    seed: Annotated[int, typer.Option(help="Decides the weights of the layers tried.", **SEEDS)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="The same for programs, and for reports.")] = False,
) -> None:
    """Print versions, threads, and which path each network takes here, and why.

    Example: alstm info
    """
    found = machine(seed)
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for name, version in found["versions"].items():
        console.print(f"{name}: {version or 'not installed'}")
    console.print(
        f"cores: {found['cores']}; PyTorch threads: {found['pytorch_threads']}; lab threads: 1 per process"
    )
    table = Table("network", "N_h", "parameters", "state", "path on the CPU, and why", box=SIMPLE)
    for name, network in found["networks"].items():
        kinds: dict[str, list[str]] = {}
        for kind, path in network["paths"].items():
            kinds.setdefault(f"{path['path']} ({path['why']})", []).append(kind)
        words = "\n".join(f"{', '.join(which)}: {path}" for path, which in kinds.items())
        size, parameters, state = (network[key] for key in ("hidden_size", "parameters", "state"))
        table.add_row(name, str(size), f"{parameters:,}", f"{state:,}", words)
    console.print(table)
    console.print("parameters: on the assignment task, with its 80 symbols")
    console.print(
        "state: numbers carried from step to step; attention's, for every step that it can look back on"
    )
    console.print(found["gpu"])


def machine(seed: int) -> dict[str, Any]:
    """Versions, threads, and of each network its size and its path for every type of numbers."""
    import torch

    from associative_lstm.kernels import choose_backend
    from associative_lstm.lab.networks import NETWORKS
    from associative_lstm.lab.run.config import complete, task_of
    from associative_lstm.lab.run.folder import versions
    from associative_lstm.lab.run.model import build_model, count_parameters, count_state

    networks = {}
    for name, entry in NETWORKS.items():
        torch.manual_seed(seed)
        config = complete({"task": "assignment", "model": name})
        paths = {}
        for kind in (torch.float32, torch.float64, torch.bfloat16):
            path, why = "PyTorch's routines", "there is no kernel for it"
            if entry.kernel is not None:
                path, why = choose_backend("auto", torch.device("cpu"), kind, entry.kernel)
            paths[str(kind).removeprefix("torch.")] = {"path": path, "why": why}
        model = build_model(config, task_of(config))
        sizes = {"parameters": count_parameters(model), "state": count_state(model)}
        networks[name] = {"hidden_size": entry.hidden_size, **sizes, "paths": paths}
    return {
        "versions": {name: version for name, version in versions().items() if name != "processes"},
        "cores": os.cpu_count(),
        "pytorch_threads": torch.get_num_threads(),
        "networks": networks,
        "gpu": _on_a_gpu(),
    }


def _on_a_gpu() -> str:
    """What the Associative LSTM does on a GPU, and what is known of that."""
    import torch

    from associative_lstm.kernels import fused_unavailable

    known = "checked in Triton's interpreter and compiled for sm_80, sm_90 and gfx942; not yet run on a GPU"
    error = fused_unavailable("associative.triton")
    here = f"Triton cannot be used here ({error}), so it is a loop" if error else "one Triton kernel each way"
    there = torch.cuda.get_device_name() if torch.cuda.is_available() else "none here"
    return f"GPU: {there}; associative-lstm: {here} (backend 'triton': {known})"
