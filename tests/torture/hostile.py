"""Ways to damage a file, and files that would run code if they were read carelessly."""

import hashlib
import io
import os
import pickle
import random
import subprocess
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch


def damaged(rng: random.Random, content: bytes) -> bytes:
    """The content with something wrong."""
    at = rng.randrange(len(content) + 1)
    way = rng.choice(
        ["flip", "flip", "bits", "cut", "head", "empty", "insert", "append", "zeros", "noise", "twice"]
    )
    if way == "flip" and at < len(content):
        return content[:at] + bytes([content[at] ^ rng.randrange(1, 256)]) + content[at + 1 :]
    if way == "bits":
        changed = bytearray(content)
        for _ in range(rng.randrange(1, 30)):
            if changed:
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if way == "cut":
        return content[:at]
    if way == "head":
        return content[at:]
    if way == "empty":
        return b""
    if way == "insert":
        return content[:at] + rng.randbytes(rng.randrange(1, 40)) + content[at:]
    if way == "append":
        return content + rng.choice([b"\n", b"\0" * 512, b"{}\n", rng.randbytes(50)])
    if way == "zeros":
        return content[:at] + bytes(len(content) - at)
    if way == "twice":
        return content + content
    return rng.randbytes(rng.randrange(300))


def damaged_lines(rng: random.Random, content: bytes) -> bytes:
    """A text with a line lost, repeated, moved or changed."""
    lines = content.splitlines(keepends=True) or [b"\n"]
    at = rng.randrange(len(lines))
    way = rng.choice(["lost", "again", "moved", "digit", "cut"])
    if way == "lost":
        del lines[at]
    elif way == "again":
        lines.insert(at, lines[at])
    elif way == "moved":
        lines.insert(rng.randrange(len(lines)), lines.pop(at))
    elif way == "cut":
        lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
    else:
        places = [i for i, byte in enumerate(lines[at]) if chr(byte).isdigit()]
        if places:
            i = rng.choice(places)
            lines[at] = lines[at][:i] + str(rng.randrange(10)).encode() + lines[at][i + 1 :]
    return b"".join(lines)


class _Reduced:
    """Unpickled by a careless reader, it calls a function."""

    def __init__(self, *call: Any) -> None:
        self._call = call

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call


def hostile_files(marker: Path) -> list[bytes]:
    """Pickles, plain and in the archives of ``torch.save``, that would make the folder ``marker``."""
    calls = [
        _Reduced(os.mkdir, (str(marker),)),
        _Reduced(exec, (f"import os; os.mkdir({str(marker)!r})",)),
        _Reduced(subprocess.call, (["mkdir", str(marker)],)),
    ]
    found = []
    for call in calls:
        plain = pickle.dumps(call)
        buffer, legacy, archive = io.BytesIO(), io.BytesIO(), io.BytesIO()
        torch.save({"trainer": call}, buffer)
        torch.save(call, legacy, _use_new_zipfile_serialization=False)
        with zipfile.ZipFile(archive, "w") as out:
            out.writestr("archive/data.pkl", plain)
            out.writestr("archive/version", "3")
        found += [plain, buffer.getvalue(), legacy.getvalue(), archive.getvalue()]
    return found


def zip_trick(rng: random.Random, content: bytes, marker: Path) -> bytes:
    """A checkpoint's archive with something wrong about the archive itself."""
    made = io.BytesIO()
    hostile = pickle.dumps(_Reduced(os.mkdir, (str(marker),)))
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(made, "w") as new,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # names that are there twice
        names = old.namelist()
        victim = rng.choice(names)
        way = rng.choice(
            ["without", "twice", "other", "packed", "above", "bomb", "deep", "hostile-too", "many"]
        )
        for name in names:
            data = old.read(name)
            if name == victim and way == "without":
                continue
            if name == victim and way == "other":
                data = old.read(rng.choice(names))
            if name == victim and way == "bomb":
                new.writestr(name, bytes(30 * 2**20), zipfile.ZIP_DEFLATED)
                continue
            if way == "deep" and name.endswith("data.pkl"):
                data = b"\x80\x02" + b"(" * 200_000 + b"."
            new.writestr(name, data, zipfile.ZIP_DEFLATED if way == "packed" else zipfile.ZIP_STORED)
            if way == "hostile-too" and name.endswith("data.pkl"):
                new.writestr(name, hostile)
            if name == victim and way == "twice":
                new.writestr(name, data[::-1])
        if way == "above":
            new.writestr("../" * 3 + "above", b"out")
        if way == "many":
            for number in range(2000):
                new.writestr(f"archive/data/x{number}", b"")
    return made.getvalue()


def with_digest(folder: Path, content: bytes, step: int = 8) -> Path:
    """Write ``content`` as a checkpoint whose name vouches for it."""
    path = folder / f"checkpoint-{step:08d}-{hashlib.sha256(content).hexdigest()[:16]}.pt"
    path.write_bytes(content)
    return path


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything inside a checkpoint."""
    found = [path] if path else []
    items: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in items:
        found += leaves(inner, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of ``value`` with ``new`` at ``path``."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return value | {key: replaced(value[key], tuple(rest), new)}
    return [*value[:key], replaced(value[key], tuple(rest), new), *value[key + 1 :]]
