"""Why pairs are not recalled: whether trained networks ask with keys that do not match, or pairs disturb each other.

The answers of stacked MQAR are given again by the same network, with the same gates and readout, and one thing mended
at a time.
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
from associative_lstm.lab.files import RunError
from associative_lstm.lab.run.checkpoint import find_checkpoints
from associative_lstm.lab.run.evaluation import Trained, load_trained
from associative_lstm.memory import expected_error

FILE = "forgetting.json"

STUDIED = (
    "associative-128-1",
    "associative-52-4",
    "associative-16-16",
    "associative-60-16",
    "associative-240-16",
)
"""Of stacked MQAR: 1, 4 and 16 copies at the smallest state, then 16 at the larger ones."""

SEQUENCES = 32
"""Held-out sequences that are answered again."""

Reasons = Sequence[Mapping[str, Any]]
"""What was measured of every run: JSON."""


def measure(trained: Trained, sequences: int = SEQUENCES) -> dict[str, float]:
    """Of a network of one layer with one head: the share of right answers, as they are and mended.

    ``alone``: of all that is read, only what the pair asked for has given. ``random_keys``: the keys of every write
    are turned by random phases, and those of a read back by those of the pair asked for, so that nothing changes but
    how alike the keys of different writes are. ``match``: how similar the key of a read is to the conjugate of the
    one that the pair was written with. Then, in power and by that of the pair asked for, what everything else adds to
    a read, with either keys (medians), and what theory expects of random keys and equal powers (the mean).
    """
    model: Any = trained.model.double()
    task: Any = trained.task
    layer, pairs = model.layers[-1], task.pairs
    batch = next(iter(task.read_test(lanes=sequences)))
    keys, right = batch.inputs[..., 0], batch.targets[pairs:]
    meant = (keys[pairs:, None] == keys[:pairs]).int().argmax(1)
    with torch.no_grad():
        x = model._present(batch.inputs)
        said = model(batch.inputs)[0][pairs:].argmax(-1)
        [seen] = inside.look(layer, x)
        [split] = inside.separate(layer, x, meant, reads=range(pairs, 2 * pairs))
        signal = split.signal[:, :, 0]
        gate = _both(seen.g_o)[pairs:, :, 0]

        def share(read: Tensor) -> float:
            return _share(model.readout(gate * F.bound(read)).argmax(-1), right)

        turned = _turned(seen, meant, layer.permutations_l0)
        written = _of(seen.r_i[:, :, 0], meant)
        match = F.similarity(seen.r_o[pairs:, :, 0], F.conjugate(written))
        return {
            "right": _share(said, right),
            "alone": share(signal),
            "random_keys": share(turned),
            "match": float(match.mean()),
            "interference": _power(split.interference[:, :, 0], signal),
            "random_interference": _power(turned - signal, signal),
            "expected": expected_error(pairs, layer.num_copies, size=layer.hidden_size),
        }


def _turned(seen: inside.Inside, meant: Tensor, permutations: Tensor) -> Tensor:
    """What is read in the second half if every write's key is turned by random phases, and its reads' keys back."""
    r_i, r_o, u = (part[:, :, 0] for part in (seen.r_i, seen.r_o, seen.u))
    g_f, g_i = _both(seen.g_f), _both(seen.g_i)[:, :, 0]
    g = torch.Generator().manual_seed(0)
    phases = F.random_key(r_i.shape[-1], *r_i.shape[:2], generator=g, dtype=r_i.dtype)
    written = F.permute(F.bind(phases, r_i), permutations)
    asked = F.permute(F.bind(F.conjugate(_of(phases, meant)), r_o[len(meant) :]), permutations)
    c, reads = torch.zeros_like(written[0]), []
    for t, key in enumerate(written):
        c = g_f[t].unsqueeze(-2) * c + F.bind(key, (g_i[t] * u[t]).unsqueeze(-2))
        if t >= len(meant):
            reads.append(F.bind(asked[t - len(meant)], c).mean(-2))
    return torch.stack(reads)


def _both(gate: Tensor) -> Tensor:
    """A gate for the real and the imaginary parts."""
    return torch.cat([gate, gate], -1)


def _of(steps: Tensor, meant: Tensor) -> Tensor:
    """Of ``(T, B, N)``, for every read that of the step meant."""
    return steps.gather(0, meant.unsqueeze(-1).expand(*meant.shape, steps.shape[-1]))


def _share(said: Tensor, right: Tensor) -> float:
    return float((said == right).double().mean())


def _power(rest: Tensor, signal: Tensor) -> float:
    return float((rest.square().sum(-1) / signal.square().sum(-1).clamp(min=1e-30)).median())


def look(out: Path, logs: Logs) -> None:
    """Look into the runs that have their weights; of others keep what was found before, at the same rate."""
    setting = SETTINGS["stacked"]
    before = {(row["network"], row["seed"], row["rate"]): row for row in kept(out)}
    rows = []
    for point in sorted(
        (p for p in setting.points if p.name in STUDIED), key=lambda p: STUDIED.index(p.name)
    ):
        found = logs.curve(setting.curve(point))
        for run in found.runs:
            if run.diverged is not None or run.steps < found.curve.steps:
                continue
            seed, rate = run.config.seed, run.config.learning_rate
            known = {"network": point.name, "seed": seed, "rate": rate}
            trained = _trained(run.folder, found.curve.steps)
            if trained is not None:
                rows.append(known | {key: float(f"{value:.4g}") for key, value in measure(trained).items()})
            elif row := before.get((point.name, seed, rate)):
                rows.append(dict(row))
    if rows or before:
        out.mkdir(parents=True, exist_ok=True)
        save_rows(out / FILE, rows)


def _trained(folder: Path, steps: int) -> Trained | None:
    """The network of a run at its end, if its weights are there and whole."""
    if not find_checkpoints(folder):
        return None
    try:
        trained = load_trained(folder)
    except RunError:
        return None
    return trained if trained.step == steps else None


def kept(out: Path) -> Reasons:
    """What was measured before."""
    path = out / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
