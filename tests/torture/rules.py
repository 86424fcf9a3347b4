"""What must hold whatever happens. Every rule gives the sentences that say how it was broken; none, if it was not."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_CHECKPOINT = re.compile(r"checkpoint-(\d{1,12})-([0-9a-f]{16})\.pt")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|^Exception ignored|Fatal Python error", re.M)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")
MINE = ".mine.tmp"
"""The user's own file in a run's folder, of a name like those of files in the making."""

CONTENT = {
    "notes.txt": b"mine\n",
    "log.jsonl": b'{"step": 1, "cost": 0.5}\n',
    "times.jsonl": b"mine too\n",
    "curve.png": b"my own picture\n",
    "model.safetensors": b"my own weights\n",
    MINE: b"my own draft\n",
    "folder/thesis.tex": b"\\begin{document}\n",
}


def plant(folder: Path, names: Iterable[str] = CONTENT) -> None:
    """Put files of the user's into a folder, where there are none of these names."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(path):
            path.write_bytes(CONTENT[name])


class Kept:
    """What was there, and must be there afterwards as it was."""

    def __init__(self) -> None:
        self._were: dict[Path, tuple[str, bytes]] = {}

    def add(self, *roots: Path) -> None:
        for root in roots:
            for path in _all(root):
                self._were[path] = _describe(path)

    def forget(self, path: Path) -> None:
        """A file that the user names as a target may be replaced."""
        for one in [path, *(p for p in self._were if path in p.parents)]:
            self._were.pop(one, None)

    def broken(self) -> Iterator[str]:
        for path, was in self._were.items():
            now = _describe(path)
            if now[0] == "nothing" != was[0]:
                yield f"lost: {path.name} is gone"
            elif now != was:
                yield f"lost: {path.name} ({was[0]}) has been changed"


def _all(root: Path) -> Iterator[Path]:
    yield root
    if root.is_dir() and not root.is_symlink():
        for path in sorted(root.iterdir()):
            yield from _all(path)


def _describe(path: Path) -> tuple[str, bytes]:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return "nothing", b""
    if stat.S_ISLNK(mode):
        return "link", os.fsencode(os.readlink(path))
    if stat.S_ISREG(mode):
        return f"file {stat.S_IMODE(mode):o}", path.read_bytes()
    return {stat.S_IFDIR: "folder", stat.S_IFIFO: "fifo"}.get(stat.S_IFMT(mode), "special"), b""


def said(out: str, err: str, code: int | None, *, refused_in_words: bool = True) -> Iterator[str]:
    """No traceback, no control characters; who is refused is told why in a sentence."""
    for text in (out, err):
        if _TRACEBACK.search(text):
            last = next(
                (line for line in reversed(text.splitlines()) if re.match(r"\w[\w.]*(:|$)", line)), ""
            )
            yield f"traceback: {last[:150]}"
        if found := _CONTROL.search(text):
            yield f"control character {found[0]!r} is shown"
    if (
        code in (1, 2)
        and refused_in_words
        and not any(line.startswith("alstm: ") for line in err.splitlines())
    ):
        yield "refused without a sentence"


def ended(code: int | None) -> Iterator[str]:
    """It came to an end, and not by a crash."""
    if code is None:
        yield "hangs"
    elif code < 0:
        yield f"crashed by signal {-code}"
    elif code not in (0, 1, 2, 120, 129, 130, 143):
        yield f"exit code {code}"


def temporaries(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob(".*.tmp")):
        if path.name != MINE:
            yield f"a temporary is left: {re.sub(r'[.-][0-9a-z_]{8,16}[.]', '.*.', path.name)}"


def checkpoints(folder: Path) -> dict[str, bytes]:
    """The checkpoints that hold what was written, by name."""
    found = {}
    for path in folder.iterdir() if folder.is_dir() and os.access(folder, os.R_OK) else ():
        match = _CHECKPOINT.fullmatch(path.name)
        if match and not path.is_symlink() and path.is_file():
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest()[:16] == match[2]:
                found[path.name] = content
    return found


def step_of(name: str) -> int:
    match = _CHECKPOINT.fullmatch(name)
    return int(match[1]) if match else -1


def damaged_checkpoints(folder: Path) -> Iterator[str]:
    """A checkpoint of a run that was only killed is whole."""
    whole = checkpoints(folder)
    for path in folder.glob("checkpoint-*.pt"):
        if path.name not in whole:
            yield "a checkpoint is not whole"


def lines_until(log: bytes, step: int) -> bytes:
    """The part of a log that belongs to the steps up to ``step``."""
    lines = [line for line in log.splitlines(keepends=True) if json.loads(line)["step"] <= step]
    return b"".join(lines)


def good_part(log: Path, original: bytes) -> bytes:
    """The whole lines with which a log begins as it was written."""
    content = log.read_bytes() if log.is_file() and not log.is_symlink() else b""
    good = 0
    for mine, theirs in zip(content.splitlines(True), original.splitlines(True), strict=False):
        if mine != theirs or not mine.endswith(b"\n"):
            break
        good += len(mine)
    return content[:good]


class KeptRun:
    """A run's folder: the good part of its log and its newest good checkpoint stay, whatever is done with it."""

    def __init__(self, folder: Path, original: Path) -> None:
        self._folder = folder
        self._log = good_part(folder / "log.jsonl", (original / "log.jsonl").read_bytes())
        theirs = checkpoints(original)
        mine = {name: data for name, data in checkpoints(folder).items() if theirs.get(name) == data}
        self._newest = max(mine, key=step_of, default=None)
        self._content = mine[self._newest] if self._newest else b""

    def broken(self) -> Iterator[str]:
        if self._log and not self._somewhere(self._log):
            yield "lost: the log's good lines"
        if self._newest is None:
            return
        newest = max(map(step_of, checkpoints(self._folder)), default=-1)
        if newest < step_of(self._newest) and not self._somewhere(self._content):
            yield "lost: the newest good checkpoint"

    def _somewhere(self, content: bytes) -> bool:
        for path in _all(self._folder):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    if file.read(len(content)) == content:
                        return True
        return False
