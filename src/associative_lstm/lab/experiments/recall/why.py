"""Why pairs are not recalled: do trained networks ask with the wrong keys, or is their memory noisy?

The answers of stacked MQAR are given again by the same network with one thing mended at a time. Whatever makes them
right is what was wrong. Every read is linear in what was written, so that nothing of this is an approximation.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from associative_lstm import functional as F
from associative_lstm import inside
from associative_lstm.lab.draw.tables import save_rows
from associative_lstm.lab.experiments.learning.runs import Logs
from associative_lstm.lab.experiments.recall.grid import SETTINGS
from associative_lstm.lab.run.checkpoint import find_checkpoints
from associative_lstm.lab.run.evaluation import Trained, load_trained
from associative_lstm.memory import HolographicMemory, expected_error

STUDIED = (
    "associative-128-1",
    "associative-52-4",
    "associative-16-16",
    "associative-60-16",
    "associative-240-16",
)
"""Networks of stacked MQAR with one head and random permutations."""

FILE = "why.json"

Rows = Sequence[Mapping[str, Any]]


def measure(trained: Trained, sequences: int = 32) -> dict[str, float]:
    """The share of right answers to held-out sequences: as they are, and with one thing mended at a time.

    ``alone``: the pair asked for is the only one in memory. ``exact_key``: it is asked for with the very key that it
    was written with. ``random_keys``: the same values in a memory of the same size, under keys of random phases.
    Then, in power and by that of the pair asked for, what all the others add to a read (the median), and what theory
    expects of random keys (the mean).
    """
    model: Any = trained.model.double()
    layer, pairs = model.layers[-1], int(trained.config.pairs or 0)
    reading = trained.task.read_test(lanes=sequences)
    assert reading is not None
    batch = next(iter(reading))
    keys, right = batch.inputs[..., 0], batch.targets[pairs:]
    meant = (keys[pairs:, None] == keys[:pairs]).int().argmax(1)
    asked = list(range(pairs, 2 * pairs))
    with torch.no_grad():
        x = model._present(batch.inputs)
        said = model(batch.inputs)[0][pairs:].argmax(-1)
        [seen] = inside.look(layer, x)
        [split] = inside.separate(layer, x, meant, reads=asked)
        gate = torch.cat([seen.g_o, seen.g_o], -1)[pairs:, :, 0]

        def share(read: Tensor) -> float:
            return _share(model.readout(gate * F.bound(read)).argmax(-1), right)

        written = F.conjugate(seen.r_i[:pairs, :, 0].gather(0, _along(meant, seen.r_i)))
        exact = F.bind(F.permute(written, layer.permutations_l0), seen.c[pairs:]).mean(-2)
        signal, interference = (part[:, :, 0].square().sum(-1) for part in split)
        return {
            "right": _share(said, right),
            "alone": share(split.signal[:, :, 0]),
            "exact_key": share(exact),
            "random_keys": share(_random(layer, seen, meant, pairs)),
            "interference": float((interference / signal).median()),
            "expected": expected_error(pairs, layer.num_copies, size=layer.hidden_size),
        }


def _random(layer: Any, seen: inside.Inside, meant: Tensor, pairs: int) -> Tensor:
    """What is read of the same values, from a new memory and under keys of random phases."""
    batch, size = meant.shape[1], layer.hidden_size
    g = torch.Generator().manual_seed(0)
    memory = HolographicMemory(size, layer.num_copies, batch_shape=(batch,), generator=g, dtype=torch.float64)
    memory.permutations.copy_(layer.permutations_l0)
    keys = F.random_key(size, batch, pairs, generator=g, dtype=torch.float64)
    gates = torch.cat([seen.g_i, seen.g_i], -1)[:pairs, :, 0]
    memory.write(keys, (gates * seen.u[:pairs, :, 0]).transpose(0, 1))
    return memory.read(keys).transpose(0, 1).gather(0, _along(meant, seen.u))


def _along(meant: Tensor, like: Tensor) -> Tensor:
    return meant.unsqueeze(-1).expand(*meant.shape, like.shape[-1])


def _share(said: Tensor, right: Tensor) -> float:
    return float((said == right).double().mean())


def look(out: Path, logs: Logs) -> None:
    """Look into the runs that have their weights, and keep what is found; of the others, what was kept before."""
    setting = SETTINGS["stacked"]
    rows = {(row["network"], row["seed"]): row for row in kept(out)}
    for point in setting.points:
        if point.name not in STUDIED:
            continue
        found = logs.curve(setting.curve(point))
        for run in found.runs:
            if run.diverged is None and run.steps >= found.curve.steps and find_checkpoints(run.folder):
                known = {"network": point.name, "label": point.label, "seed": run.config.seed}
                numbers = measure(load_trained(run.folder))
                rows[point.name, run.config.seed] = known | {k: float(f"{v:.4g}") for k, v in numbers.items()}
    if rows:
        out.mkdir(parents=True, exist_ok=True)
        ordered = sorted(rows.values(), key=lambda row: (STUDIED.index(row["network"]), row["seed"]))
        save_rows(out / FILE, ordered)


def kept(out: Path) -> Rows:
    """The rows that were kept in a folder."""
    path = out / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
