"""Runs packed into one file per task: ``RUNS/TASK.jsonl.xz`` holds the texts of every ``RUNS/TASK/NETWORK/RUN``.

Each line is a run, ``{"run": "NETWORK/RUN", "files": {"config.toml": "...", ...}}``, in the order of their names, so
that the same runs make the same file. Whoever reads a run's files does so by :func:`read_bytes` and :func:`is_file`
and finds them in a folder and in a pack alike; a folder with a config.toml is believed before the pack. Checkpoints
and weights are not packed, so a packed run cannot go on.
"""

import errno
import functools
import json
import lzma
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from associative_lstm.lab.files import RunError, write_atomically

SUFFIX = ".jsonl.xz"
LARGEST = 2**28
"""Bytes that a pack may hold: it is read into memory as a whole."""

_MEMORY = 2**27  # for xz to read with; what is written here needs a tenth of it
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=+-]{0,199}")
_TEXTS = (".toml", ".json", ".jsonl", ".txt")
_LOGS = ("log.jsonl", "test.jsonl")
_IS_LAST = "config.toml".__eq__  # of the files that come or go: while it is there, the folder is the run

Texts = Mapping[str, bytes]
"""The files of a run by name."""

Pack = Mapping[str, Texts]
"""The runs of a task by ``NETWORK/RUN``."""


def read_bytes(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """The content of a run's file, be the run a folder or packed; an OSError, as of ``Path.read_bytes``.

    ``most``: no more bytes than so many are read of a file that is not packed.
    """
    path = Path(path)
    texts = packed(path.parent)
    if texts is None:
        if path.exists() and not path.is_file():  # a pipe may never end
            raise OSError(errno.EINVAL, "it is not a file", str(path))
        with open(path, "rb") as file:
            return file.read(most)
    if path.name not in texts:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return texts[path.name]


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a run has this file, be the run a folder or packed."""
    path = Path(path)
    texts = packed(path.parent)
    return path.is_file() if texts is None else path.name in texts


def is_run(folder: str | os.PathLike[str]) -> bool:
    """Whether there is such a run, be it a folder or packed."""
    return is_file(Path(folder) / "config.toml")


def runs_below(folder: Path) -> list[Path]:
    """Every run below ``folder``, be it a folder or packed, in the order of their names."""
    found = {path.parent for path in folder.rglob("config.toml")}
    for path in folder.rglob(f"*{SUFFIX}"):
        found |= {_task_of(path) / run for run in _read(path)}
    return sorted(found)


def packed(folder: str | os.PathLike[str]) -> Texts | None:
    """The files of a run that is in a pack and not in a folder; None for any other."""
    folder = Path(os.path.abspath(folder))
    network, task = folder.parent, folder.parent.parent
    if not task.name or (folder / "config.toml").is_file():
        return None
    return _read(_pack_of(task)).get(f"{network.name}/{folder.name}")


def refuse_packed(folder: str | os.PathLike[str]) -> None:
    """A RunError if the run is packed: it cannot go on."""
    if packed(folder) is not None:
        task = Path(os.path.abspath(folder)).parent.parent
        raise RunError(
            f"{folder} is packed in {task.name}{SUFFIX}, without checkpoints to go on from: "
            f"`alstm results unpack {task.name}` makes folders of its runs again"
        )


def pack(runs: Path, tasks: Collection[str] = ()) -> dict[Path, list[str]]:
    """Put the runs in folders below ``runs`` into the packs of their tasks, beside what these hold already.

    Gives every pack that was written and which runs came from folders. What a pack has and the folder lacks stays. A
    run whose log in the folder does not go on from that in the pack is a RunError, and nothing is written.
    """
    contents: dict[Path, dict[str, Texts]] = {}
    added: dict[Path, list[str]] = {}
    for config in sorted(runs.glob("*/*/*/config.toml")):
        folder, task = config.parent, config.parents[2]
        if tasks and task.name not in tasks:
            continue
        path, run = _pack_of(task), folder.relative_to(task).as_posix()
        if not _is_name(run):
            raise RunError(f"{folder} cannot be packed: names are of letters, digits and the signs _.,=+-")
        content = contents.setdefault(path, dict(_read(path)))
        texts = _texts(folder)
        for name in _LOGS:
            if not texts.get(name, b"").startswith(content.get(run, {}).get(name, b"")):
                raise RunError(f"{folder / name} does not go on from that in {path}: remove one of the two")
        content[run] = {**content.get(run, {}), **texts}  # what the folder lacks stays
        added.setdefault(path, []).append(run)
    _check_named(runs, tasks, {_task_of(path).name for path in added}, "no runs in folders")
    files = {path: _compressed(path, content) for path, content in contents.items()}
    for path, data in files.items():
        write_atomically(path, data)
    return added


def remove_packed(path: Path, runs: Collection[str]) -> tuple[int, dict[Path, list[str]]]:
    """Remove the folders of ``runs`` of which their pack, read again, has every byte: how many were removed.

    And those that are kept, each with the files that are not in the pack as they are there: checkpoints, weights.
    """
    removed, kept = 0, {}
    content = _parsed(path, path.read_bytes())
    for run in runs:
        folder = _task_of(path) / run
        same = {name for name, text in _texts(folder).items() if text == content[run].get(name)}
        if rest := {entry.name for entry in folder.iterdir()} - same - {"lock"}:
            kept[folder] = sorted(rest)
            continue
        for name in sorted([*content[run], "lock"], key=_IS_LAST):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
        removed += 1
        for empty in (folder.parent, folder.parent.parent):
            if not any(empty.iterdir()):
                empty.rmdir()
    return removed, kept


def unpack(runs: Path, tasks: Collection[str] = ()) -> dict[Path, int]:
    """Make folders of the runs that are packed in ``runs``: every pack, and how many files were not there yet.

    A file that is there with another content is a RunError, and nothing is written.
    """
    packs = [path for path in sorted(runs.glob(f"*{SUFFIX}")) if not tasks or _task_of(path).name in tasks]
    _check_named(runs, tasks, {_task_of(path).name for path in packs}, "no packed runs")
    missing: dict[Path, dict[Path, bytes]] = {}
    for path in packs:
        missing[path] = {}
        for run, texts in _read(path).items():
            for name in sorted(texts, key=_IS_LAST):
                target = _task_of(path) / run / name
                if not os.path.lexists(target):
                    missing[path][target] = texts[name]
                elif not target.is_file() or target.read_bytes() != texts[name]:
                    raise RunError(f"{target} is not what {path} has: remove one of the two")
    for files in missing.values():
        for target, content in files.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, content)
    return {path: len(files) for path, files in missing.items()}


def _check_named(runs: Path, asked: Collection[str], found: Collection[str], lack: str) -> None:
    for task in asked or [""] * (not found):
        if task not in found:
            raise RunError(f"{runs / task} has {lack}")


def _pack_of(task: Path) -> Path:
    return task.with_name(task.name + SUFFIX)


def _task_of(pack: Path) -> Path:
    return pack.with_name(pack.name.removesuffix(SUFFIX))


def _texts(folder: Path) -> dict[str, bytes]:
    """What of a run's folder is packed."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if _is_text(path.name)}


def _is_name(run: str) -> bool:
    parts = run.split("/")
    return len(parts) == 2 and all(map(_NAME.fullmatch, parts))


def _is_text(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name.endswith(_TEXTS)


def _read(path: Path) -> Pack:
    """The runs in a pack; none if there is no such file."""
    path = Path(os.path.abspath(path))
    try:
        about = path.stat()
        return _cached(path, about.st_size, about.st_mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}") from error


@functools.lru_cache(maxsize=32)
def _cached(path: Path, size: int, changed: int) -> Pack:
    if size > LARGEST:
        raise RunError(f"{path} is not a pack of runs: it has more than {LARGEST:,} bytes")
    return _parsed(path, path.read_bytes())


def _parsed(path: Path, data: bytes) -> Pack:
    """The runs in what a pack's file holds; whatever is not right about it is a RunError."""
    try:
        reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
        text = reader.decompress(data, LARGEST)
        if not reader.eof:
            # Either the end is missing or there is more to come than is allowed.
            raise ValueError("it is cut off" if reader.needs_input else f"it holds over {LARGEST:,} bytes")
        if reader.unused_data or not text.endswith(b"\n"):
            raise ValueError("its end is not that of a pack")
        found: dict[str, Texts] = {}
        for number, line in enumerate(text.split(b"\n")[:-1], 1):
            try:
                run, texts = _run_of(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"its line {number} is not a run") from error
            if run in found:
                raise ValueError(f"it holds {run} twice")
            found[run] = texts
    except (lzma.LZMAError, EOFError, ValueError) as error:
        raise RunError(f"{path} is not a pack of runs or is damaged: {error}") from error
    return found


def _run_of(line: Any) -> tuple[str, Texts]:
    """A run out of its line; a ValueError if it is not one, or could be written anywhere but in its own folder."""
    if not isinstance(line, dict) or line.keys() != {"run", "files"}:
        raise ValueError
    run, files = line["run"], line["files"]
    if not isinstance(run, str) or not isinstance(files, dict) or "config.toml" not in files:
        raise ValueError
    if not _is_name(run) or not all(_is_text(n) and isinstance(text, str) for n, text in files.items()):
        raise ValueError
    # The counterpart of what _compressed does with bytes that are not UTF-8.
    return run, {name: text.encode("utf-8", "surrogateescape") for name, text in files.items()}


def _compressed(path: Path, content: Pack) -> bytes:
    """The file of a pack, once it has been seen that it reads as what went in."""
    lines = []
    for run in sorted(content):
        files = {n: content[run][n].decode("utf-8", "surrogateescape") for n in sorted(content[run])}
        lines.append(json.dumps({"run": run, "files": files}, separators=(",", ":")) + "\n")
    data = lzma.compress("".join(lines).encode())
    if _parsed(path, data) != content:
        raise RunError(f"{path} would not hold every byte of its runs, and is not written")
    return data
