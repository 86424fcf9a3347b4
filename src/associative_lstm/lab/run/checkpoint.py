"""Checkpoints: written atomically, checked when read, loaded without running code, two kept.

A checkpoint is a file of ``torch.save`` named ``checkpoint-STEP-DIGEST.pt``. The digest, of the file's content, is
part of the name, so that it appears together with the content by one rename, and a damaged file shows itself. What
is in one: ``Trainer.save`` in ``step.py``, and ``_checkpoint`` in ``loop.py``.
"""

import contextlib
import dataclasses
import hashlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from associative_lstm.lab.files import write_atomically
from associative_lstm.lab.run.config import Config

_NAME = re.compile(r"checkpoint-(\d{1,12})-([0-9a-f]{16})\.pt")


class DamagedCheckpoint(Exception):
    """Why a checkpoint cannot be used."""


def save_checkpoint(folder: Path, step: int, content: dict[str, Any], *, keep: Path | None = None) -> Path:
    """Write a checkpoint, then remove all but this one and ``keep``, the last good one before it."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    data = buffer.getvalue()
    path = folder / f"checkpoint-{step:08d}-{_digest(data)}.pt"
    write_atomically(path, data)
    for old in find_checkpoints(folder):
        if old not in (path, keep):
            with contextlib.suppress(OSError):
                old.unlink()
    return path


def find_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the latest first."""
    found = [path for path in folder.glob("checkpoint-*.pt") if _NAME.fullmatch(path.name) and path.is_file()]
    return sorted(found, key=lambda path: (step_of(path), path.name), reverse=True)


def step_of(path: Path) -> int:
    """The step after which the checkpoint was written."""
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else -1


def load_checkpoint(path: Path) -> dict[str, Any]:
    """The content of a checkpoint: tensors, numbers, strings and containers of them, and nothing else."""
    match = _NAME.fullmatch(path.name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedCheckpoint(error.strerror or str(error)) from error
    if match is None or _digest(data) != match[2]:
        raise DamagedCheckpoint("its content is not what was written")
    try:
        content = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    except Exception as error:  # a hostile file can make the reader raise anything
        raise DamagedCheckpoint("it is not a file of tensors and plain values") from error
    if not isinstance(content, dict):
        raise DamagedCheckpoint("it is not a file of tensors and plain values")
    return content


def usable_checkpoints(folder: Path, damaged: dict[Path, str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Checkpoints that can be read, the latest first; the others go into ``damaged`` with the reason."""
    for path in find_checkpoints(folder):
        try:
            content = load_checkpoint(path)
        except DamagedCheckpoint as reason:
            damaged[path] = str(reason)
        else:
            yield path, content


def export_weights(path: Path, weights: dict[str, Tensor], config: Config, step: int) -> None:
    """Write the weights as safetensors, with the configuration that rebuilds the model in the metadata."""
    tensors = {name: tensor.detach().contiguous() for name, tensor in weights.items()}
    run = json.dumps({"config": dataclasses.asdict(config), "step": step})
    write_atomically(path, save(tensors, {"run": run}))  # one entry: several would be in random order


def exported_step(path: Path) -> int:
    """The step after which weights were exported to ``path``; -1 if none were."""
    try:
        with safe_open(path, "pt") as file:
            return int(json.loads(file.metadata()["run"])["step"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return -1


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
