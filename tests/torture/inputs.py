"""Damaged, hostile and odd inputs: one case is one run of the command on something that is not as it should be."""

import gzip
import importlib
import io
import json
import os
import random
import shutil
import signal
import string
import time
import typing
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torture import hostile, rules
from torture.kills import PATIENCE, _dying
from torture.server import Child, Limits, Place, Server, Streams

_TINY = "--hidden-size 4 --log-every 2 --checkpoint-every 4 --steps 8"
TEMPLATES = {
    "lstm": f"assignment --model lstm --window 10 {_TINY}",
    "copies": f"assignment --copies 2 --window 10 {_TINY}",
    "copy": f"copy --model lstm {_TINY}",
    "wikipedia": f"wikipedia --model lstm --data TEXT --window 10 --test-every 4 {_TINY}",
}
_MEMORY = 3 * 2**29  # bytes for one input: too large a network is to be refused, not to fill the machine
_CPU = 2.0  # seconds of work after which Ctrl-C is pressed
_IDLE = 10.0  # seconds without any work, waiting for nobody, after which it is called a hang


class Templates(NamedTuple):
    """Small good runs and files, to be copied and damaged."""

    folder: Path
    names: list[str]
    text: Path
    bomb: Path

    def checkpoint(self, name: str) -> tuple[Path, dict[str, Any]]:
        """The newest checkpoint and what is in it."""
        import torch

        path = max((self.folder / name).glob("checkpoint-*.pt"))
        return path, torch.load(io.BytesIO(path.read_bytes()), weights_only=True)


def make_templates(server: Server, folder: Path) -> Templates:
    text = folder / "text"
    text.write_bytes(b"the cat sat on the mat. " * 100)

    def arguments(name: str) -> list[str]:
        words = [str(text) if word == "TEXT" else word for word in TEMPLATES[name].split()]
        return ["train", *words, "--out", str(folder / name)]

    first = str(folder / "lstm")
    also = [["eval", first, "--lanes", "2", "--batches", "1"], ["sample", first, "--length", "5"]]
    also += [["compare", first, "--out", str(folder / "x.png")], ["show", "xml"]]
    server.warm([*map(arguments, TEMPLATES), *also], folder)
    for path in folder.glob("*/eval-*"):
        path.unlink()
    shutil.copytree(folder / "lstm", folder / "bare")  # a finished run as it is shared: without checkpoints
    for path in (folder / "bare").glob("checkpoint-*"):
        path.unlink()
    place = Place(folder)  # a run that was killed while it wrote its second checkpoint
    words = ["train", *TEMPLATES["lstm"].split(), "--out", str(folder / "killed")]
    words[words.index("8")] = "12"
    server.start(words, place, prepare=_dying(folder / "killed" / ".checkpoint-", 4, signal.SIGKILL)).wait(60)
    bomb = folder / "bomb.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(bytes(2**20))
    names = [name for name in (*TEMPLATES, "bare", "killed") if (folder / name / "log.jsonl").is_file()]
    return Templates(folder, names, text, bomb)


class Input:
    """One case, put together by a family below, then run and judged."""

    def __init__(self, templates: Templates, place: Place, rng: random.Random) -> None:
        self.templates, self.place, self.rng = templates, place, rng
        self.arguments: list[str] = []
        self.limits, self.streams = Limits(_MEMORY), Streams()
        self.canary = place.folder / "canary"
        self.marker = place.folder / "code-was-run"
        rules.plant(self.canary)
        rules.plant(place.home)
        self.kept = rules.Kept()
        self.runs: list[rules.KeptRun] = []
        self.must_finish: Path | None = None
        self.doings: list[str] = []

    def copy(self, name: str | None = None, to: str = "run") -> Path:
        """A copy of one of the small runs, with files of the user's in it."""
        name = name or self.rng.choice(self.templates.names)
        run = self.place.work / to
        shutil.copytree(self.templates.folder / name, run, symlinks=True)
        mine = ["notes.txt", rules.MINE, "folder/thesis.tex"]
        rules.plant(run, mine)
        self.kept.add(*(run / one.partition("/")[0] for one in mine))
        self.source = self.templates.folder / name
        return run

    def guard(self, run: Path) -> None:
        """From here on, what is good in the run's folder must stay."""
        self.runs.append(rules.KeptRun(run, self.source))

    def run(self, server: Server) -> tuple[list[str], str]:
        """Run the command: how rules were broken, and how it ended."""
        self.kept.add(self.canary, *self.place.home.iterdir())
        child = server.start(self.arguments, self.place, limits=self.limits, streams=self.streams)
        code, stopped = _watch(child)
        broken = [*rules.ended(code)]
        # A stream that cannot be written to cannot carry a sentence, and a disk that is full neither.
        heard = self.streams == Streams() and self.limits.file_size > 500
        broken += rules.said(child.out(), child.err(), code, refused_in_words=heard)
        broken += self.kept.broken()
        if not stopped and code is not None:
            for one in self.runs:
                broken += one.broken()
        if self.marker.exists():
            broken.append("code of the file was run")
        if (
            self.must_finish is not None
            and not (self.must_finish / "model.safetensors").is_file()
            and not stopped
        ):
            broken.append("the run was not finished because nobody listened")
        how = (
            "stopped"
            if stopped
            else {0: "done", 1: "refused", 2: "refused"}.get(code if code is not None else -1, "other")
        )
        return broken, how


def _watch(child: Child) -> tuple[int | None, bool]:
    """Wait. Who works for long is asked to stop, and must; who does nothing at all, hangs."""
    begun = time.monotonic()
    used, since = 0.0, begun
    asked = 0.0
    pause = 0.001
    while child.poll() is None:
        time.sleep(pause)
        pause = min(pause * 1.3, 0.05)
        now = time.monotonic()
        if pause < 0.05:
            continue
        cpu, waits = child.use()
        if cpu != used or not waits:
            used, since = cpu, now
        if now - since > _IDLE or (asked and now - asked > PATIENCE):
            child.kill()
            return None, bool(asked)
        if (cpu > _CPU or now - begun > 60) and not asked:
            asked = now
            child.send(signal.SIGINT)
    return child.code, bool(asked)


# --- families -----------------------------------------------------------------------------------------------------


def folder(case: Input) -> None:
    """A run's folder in which files are damaged, missing, exchanged, or not files."""
    rng = case.rng
    run = case.copy()
    names = sorted(
        path.name for path in run.iterdir() if path.name not in ("notes.txt", rules.MINE, "folder")
    )
    more = ["curve.png", "test.jsonl", "model.safetensors", ".x.tmp", "eval-step-8-seed-0.json", "lock"]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        _damage(case, run, rng.choice(names) if rng.random() < 0.85 else rng.choice(more), names)
    case.guard(run)
    case.arguments = _on_run(rng, run)


def _damage(case: Input, run: Path, name: str, names: list[str]) -> None:
    rng, path = case.rng, run / name
    if path.is_dir() and not path.is_symlink():
        case.kept.forget(path)  # what an earlier damage had put there
    ways = (
        ["bytes"] * 6 + ["lines"] * 3 + ["gone", "gone", "swap", "copy", "link", "link", "dangling", "loop"]
    )
    ways += ["fifo", "folder", "full folder", "no rights", "read-only", "folder read-only", "value", "value"]
    way = rng.choice(ways)
    case.doings.append(f"{way}: {name}")
    regular = path.is_file() and not path.is_symlink()
    content = path.read_bytes() if regular and os.access(path, os.R_OK) else b""
    if way == "bytes":
        _put(path, hostile.damaged(rng, content))
    elif way == "lines":
        _put(path, hostile.damaged_lines(rng, content))
    elif way == "value":
        _put(run / "config.toml", _changed_value(rng, (case.source / "config.toml").read_text()).encode())
    elif way in ("swap", "copy"):
        other = run / rng.choice(names)
        if other.is_file() and not other.is_symlink() and other != path and regular:
            theirs = other.read_bytes()
            _put(path, theirs)
            if way == "swap":
                _put(other, content)
    elif way == "no rights":
        if regular:
            path.chmod(0)
    elif way == "read-only":
        if regular:
            path.chmod(0o444)
    elif way == "folder read-only":
        run.chmod(0o555)
    else:
        _clear(path)
        target = case.canary / rng.choice(["notes.txt", "log.jsonl", "curve.png", "model.safetensors"])
        if way == "link":
            if content and rng.random() < 0.5:  # what is linked to is good, and still not the run's own
                target = case.canary / "elsewhere"
                target.write_bytes(content)
            path.symlink_to(target)
        elif way == "dangling":
            path.symlink_to(case.canary / "nothing")
        elif way == "loop":
            path.symlink_to(path.name)
        elif way == "fifo":
            os.mkfifo(path)
        elif way in ("folder", "full folder"):
            path.mkdir()
            if way == "full folder":
                rules.plant(path)
                case.kept.add(path)


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def _put(path: Path, content: bytes) -> None:
    _clear(path)
    path.write_bytes(content)


def _on_run(rng: random.Random, run: Path) -> list[str]:
    """A command on a run."""
    return rng.choice(
        [
            ["resume", str(run)],
            ["resume", str(run)],
            ["resume", str(run), "--steps", "10"],
            ["resume", str(run), "--steps", "14"],
            ["eval", str(run), "--lanes", "2", "--batches", "1"],
            ["sample", str(run), "--length", "20"],
            ["compare", str(run), "--out", "curves.png"],
            ["inside", str(run), "--out", "inside.html"],
            ["inside", str(run), "--out", "inside.html", "--text", rng.choice(_TEXTS)],
            ["report", "--runs", str(run.parent), "--results", "results", "--out", "report.html"],
            ["train", "copy", "--hidden-size", "4", "--model", "lstm", "--steps", "2", "--out", str(run)],
        ]
    )


_NUMBERS = ["0", "-1", "1", "2", "3", "7", "1.5", "1e39", "-1e-9", "nan", "inf", "1_0", "0x10", "2147483648"]
_NUMBERS += ["9" * 26]
_TEXTS = ["", " ", "x", "é", "\U0001f600", "[red]a[/]", "%s{}", "a\x1b[31mb", "a\nb", "a\rb", "..", "-", "--"]
_TEXTS += ["a" * 300, "\u202eabc", "*", "~", "$HOME", "aux\x07", "\x9b31m", "\udcff"]


def _toml_value(rng: random.Random) -> str:
    texts = [json.dumps(text) for text in _TEXTS if text.isprintable()]
    others = [
        "true",
        "false",
        "[]",
        "{}",
        "[1, 2]",
        '""',
        "1979-05-27",
        '"\\u0000"',
        '"\\u001b[31m"',
        "4",
        "2",
        "0.5",
    ]
    names = [repr(name) for name in ("copy", "assignment", "lstm", "ntm", "associative-lstm", "conjugate")]
    return rng.choice(rng.choice([_NUMBERS, texts, others, names]))


def _keys() -> list[str]:
    from associative_lstm.lab.run.config import Config

    return list(typing.get_type_hints(Config))


def _changed_value(rng: random.Random, toml: str) -> str:
    lines = toml.splitlines()
    key = rng.choice([line.partition(" ")[0] for line in lines])
    changed = [f"{key} = {_toml_value(rng)}" if line.startswith(f"{key} ") else line for line in lines]
    return "\n".join(changed) + "\n"


def configuration(case: Input) -> None:
    """A file of settings that is not one, or has odd values."""
    rng = case.rng
    toml = (case.templates.folder / rng.choice(case.templates.names) / "config.toml").read_text()
    toml = toml.replace("steps = 8\n", "steps = 2\n")
    content = toml.encode()
    way = rng.choice(["values", "values", "values", "bytes", "lines", "keys", "odd"])
    if way == "values":
        for _ in range(rng.randrange(1, 4)):
            content = _changed_value(rng, content.decode(errors="replace")).encode(errors="replace")
    elif way == "bytes":
        content = hostile.damaged(rng, content)
    elif way == "lines":
        content = hostile.damaged_lines(rng, content)
    elif way == "keys":
        lines = [f"{rng.choice(_keys())} = {_toml_value(rng)}" for _ in range(rng.randrange(1, 8))]
        content = "\n".join(lines).encode(errors="replace")
    else:
        nested = b"a = " + b"[" * 20_000
        tables = b"".join(b"[a%d.b]\n" % i for i in range(2000))
        odd = [nested, tables, b"\xef\xbb\xbf" + content, content.replace(b"\n", b"\r\n"), content + content]
        odd += [
            b'task = "' + b"x" * 2**20 + b'"',
            b"\xff\xfe" + content,
            b"task = 1" + b"0" * 5000,
            b"\0" * 100,
        ]
        content = rng.choice(odd)
    file = case.place.work / rng.choice(["settings.toml", "s\x1b[31m.toml", "s[b].toml", "é.toml"])
    file.write_bytes(content)
    out = case.place.work / rng.choice(["new", "new", "new", "n\x1b[31mew", "n[bold]ew", "a/b/c", "n\new"])
    bounds = rng.choice(
        [[], [], ["--steps", "1"], ["--steps", "2", "--batch-size", "2"], ["--preset", "lstm-128"]]
    )
    case.kept.add(file)
    case.arguments = ["train", "--config", str(file), "--out", str(out), *bounds]


def checkpoint(case: Input) -> None:
    """A checkpoint whose name vouches for it, and that is damaged, foreign or hostile."""
    import torch

    rng = case.rng
    name = rng.choice([name for name in case.templates.names if name != "bare"])
    path, values = case.templates.checkpoint(name)
    run = case.copy(name)
    step = rules.step_of(path.name)
    way = rng.choice(["bytes", "bytes", "hostile", "zip", "values", "values", "values", "foreign"])
    if way == "bytes":
        content = hostile.damaged(rng, path.read_bytes())
    elif way == "hostile":
        content = rng.choice(hostile.hostile_files(case.marker))
    elif way == "zip":
        content = hostile.zip_trick(rng, path.read_bytes(), case.marker)
    elif way == "foreign":
        other = rng.choice([name for name in case.templates.names if name != "bare"])
        content = case.templates.checkpoint(other)[0].read_bytes()
    else:
        odd: list[Any] = [
            None,
            True,
            -1,
            10**30,
            2**53,
            float("nan"),
            1e300,
            "x",
            "",
            [],
            {},
            [1, [2]],
            {"a": 1},
        ]
        odd += [
            torch.zeros(2),
            torch.zeros(0),
            torch.full((3, 3), torch.nan),
            torch.zeros(4).bool(),
            torch.ones(()),
        ]
        # The 625 integers of Python's random generator would otherwise take most of the draws.
        paths = [at for at in hostile.leaves(values) if not ("python" in at and len(at) > 5)]
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.choice(paths)
            try:
                values = hostile.replaced(values, at, rng.choice(odd))
            except (TypeError, KeyError, IndexError):  # the first change took away the second one's place
                continue
        buffer = io.BytesIO()
        torch.save(values, buffer)
        content = buffer.getvalue()
    case.doings.append(way)
    if rng.random() < 0.7:
        for old in run.glob("checkpoint-*.pt"):
            old.unlink()
    hostile.with_digest(run, content, rng.choice([step, step, step + 1, 10**11, 0]))
    # Its name vouches for it, so it counts as good, and it may be the newest: only the others are guarded.
    case.guard(run)
    case.arguments = _on_run(rng, run)


def weights(case: Input) -> None:
    """A file of weights that is damaged, or says that it is of another network."""
    import struct

    rng = case.rng
    content = (
        case.templates.folder / rng.choice(["lstm", "copies", "copy"]) / "model.safetensors"
    ).read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    way = rng.choice(["bytes", "bytes", "header", "described", "described", "data", "size"])
    if way == "bytes":
        content = hostile.damaged(rng, content)
    elif way == "size":
        content = struct.pack("<Q", rng.choice([0, 1, size - 1, size + 1, 2**31, 2**63])) + content[8:]
    else:
        if way == "data":
            value = rng.choice([float("nan"), float("inf"), 1e38, 0.0])
            data = struct.pack("<f", value) * (len(data) // 4)
        elif way == "described":
            described = json.loads(header["__metadata__"]["run"])
            if rng.random() < 0.3:
                described = hostile.replaced(
                    described, rng.choice(hostile.leaves(described)), _json_value(rng)
                )
            else:
                described["config"][rng.choice(_keys())] = _json_value(rng)
            header["__metadata__"]["run"] = json.dumps(described)
        else:
            header = hostile.replaced(header, rng.choice(hostile.leaves(header)), _json_value(rng))
        text = json.dumps(header).encode()
        content = struct.pack("<Q", len(text)) + text + data
    file = case.place.work / rng.choice(["model.safetensors", "m.safetensors", "m\x1b[31m.safetensors"])
    file.write_bytes(content)
    case.kept.add(file)
    case.arguments = rng.choice(
        [
            ["eval", str(file), "--lanes", "2", "--batches", "1"],
            ["sample", str(file), "--length", "10"],
            ["sample", str(file), "--length", "10", "--prompt", "a"],
            ["inside", str(file), "--out", "inside.html"],
        ]
    )


def _json_value(rng: random.Random) -> Any:
    numbers: list[Any] = [0, -1, 1, 3, 5, 1.5, 1e39, float("nan"), 2**31, 10**30, 10**7, None, True]
    return rng.choice([*numbers, "copy", "lstm", "ntm", "xml", "x", "", "a\x1b[31m", [], {}, [1]])


def data(case: Input) -> None:
    """A text that cannot be read, unpacked, or is not a text."""
    rng, work = case.rng, case.place.work
    text = rng.choice(
        [b"", b"a", b"the cat sat. " * 300, rng.randbytes(3000), b"\0" * 2000, b"\xff\xfe" * 900, b"\n" * 500]
    )
    kind = rng.choice(["plain", "gz", "zip", "other"])
    if kind == "plain":
        file = work / rng.choice(["text", "text.txt", "t\x1b[31mext", "text.gz", "text.zip"])
        file.write_bytes(text)
    elif kind == "gz":
        file = work / "text.gz"
        if rng.random() < 0.05:
            shutil.copy(case.templates.bomb, file)
        else:
            packed = gzip.compress(text)
            file.write_bytes(hostile.damaged(rng, packed) if rng.random() < 0.7 else packed)
    elif kind == "zip":
        file = work / "text.zip"
        packed_zip = io.BytesIO()
        with zipfile.ZipFile(packed_zip, "w") as archive:
            for number in range(rng.choice([0, 1, 1, 1, 2])):
                name = rng.choice(["text", "../../above", "/absolute", "a/b", "folder/", "t\x1b[31m"]) + str(
                    number or ""
                )
                archive.writestr(
                    name, text, rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
                )
        content = bytearray(packed_zip.getvalue())
        way = rng.choice(["good", "damaged", "locked", "size"])
        if way == "locked" and len(content) > 60:  # the flag of a file with a password
            content[6] |= 1
            at = content.rfind(b"PK\x01\x02")
            content[at + 8] |= 1
        if way == "size" and (at := content.rfind(b"PK\x01\x02")) >= 0:
            content[at + 24 : at + 28] = rng.randbytes(4)
        file.write_bytes(hostile.damaged(rng, bytes(content)) if way == "damaged" else bytes(content))
    else:
        file = work / "text"
        way = rng.choice(["folder", "fifo", "dangling", "loop", "no rights", "link", "nothing"])
        if way == "folder":
            file.mkdir()
        elif way == "fifo":
            os.mkfifo(file)
        elif way in ("dangling", "loop"):
            file.symlink_to("nothing" if way == "dangling" else "text")
        elif way == "link":
            file.symlink_to(case.canary / "notes.txt")
        elif way == "no rights":
            file.write_bytes(text)
            file.chmod(0)
    case.kept.add(file)
    small = "--model lstm --hidden-size 4 --steps 2 --window 5 --batch-size 2 --test-every 1"
    case.arguments = rng.choice(
        [
            ["train", "wikipedia", "--data", str(file), *small.split(), "--out", "new"],
            ["train", "wikipedia", "--data", str(file), *small.split(), "--out", "new"],
            ["show", "wikipedia", "--data", str(file), "--length", "50"],
        ]
    )
    if rng.random() < 0.15:  # a trained network whose text has changed
        run = case.copy("wikipedia")
        toml = (run / "config.toml").read_text()
        _put(run / "config.toml", toml.replace(str(case.templates.text), str(file)).encode())
        case.guard(run)
        case.arguments = _on_run(rng, run)


def disk(case: Input) -> None:
    """A disk that is full: no file can become longer than some bytes."""
    rng = case.rng
    run = case.copy()
    case.limits = Limits(_MEMORY, int(10 ** rng.uniform(2.8, 5)))
    case.guard(run)
    case.arguments = _on_run(rng, run)
    if rng.random() < 0.4:
        template = TEMPLATES[rng.choice(["lstm", "copies", "copy"])]
        case.arguments = ["train", *template.split(), "--out", "new"]


def streams(case: Input) -> None:
    """Output that nobody reads, that cannot be written, or that has other letters."""
    rng = case.rng
    kinds = ["file", "gone", "full", "closed"]
    out, err = rng.choice(kinds), rng.choice(kinds)
    case.streams = Streams(out, err, rng.choice(["utf-8", "utf-8", "ascii", "latin-1"]))
    if rng.random() < 0.4:
        template = TEMPLATES[rng.choice(["lstm", "copies", "copy"])]
        case.arguments = ["train", *template.split(), "--out", "new"]
        case.must_finish = case.place.work / "new"
    else:
        run = case.copy()
        case.guard(run)
        case.arguments = rng.choice(
            [_on_run(rng, run), ["show", "xml"], ["--help"], ["info"], ["train", "--help"]]
        )


_SMALL = {
    "steps": (1, 3),
    "lanes": (2, 4),
    "batches": (1, 2),
    "copies": (1, 3),
    "hidden_size": (2, 8),
    "layers": (1, 2),
    "heads": (1, 2),
    "batch_size": (1, 4),
    "window": (1, 10),
    "length": (1, 40),
    "draws": (1, 1),
    "items": (1, 20),
    "size": (2, 64),
    "threads": (1, 2),
    "jobs": (1, 2),
}
_ALWAYS_SMALL = (
    "threads",
    "jobs",
)  # many threads and processes are work for the machine, not for the command
_SELDOM = {
    "bench": 0.2,
    "demo": 0.2,
    "info": 0.3,
    "reproduce": 1.0,
    "train": 6.0,
    "resume": 3.0,
    "report": 0.5,
}
"""How often a command is drawn; 2 for all others."""


class _Commands:
    """The command's own subcommands and parameters, asked of itself."""

    found: dict[tuple[str, ...], list[Any]] | None = None

    @classmethod
    def all(cls, module: str) -> dict[tuple[str, ...], list[Any]]:
        if cls.found is None:
            from typer.main import get_command

            cls.found = {}
            command: Any = importlib.import_module(module)
            root: Any = get_command(command.app if hasattr(command, "app") else command._app())
            cls._walk(root, (), cls.found)
        return cls.found

    @classmethod
    def _walk(cls, command: Any, path: tuple[str, ...], found: dict[tuple[str, ...], list[Any]]) -> None:
        if hasattr(command, "list_commands"):
            context = command.make_context(path[-1] if path else "alstm", [], resilient_parsing=True)
            for name in command.list_commands(context):
                cls._walk(command.get_command(context, name), (*path, name), found)
        else:
            found[path] = list(command.params)


def command_line(case: Input) -> None:
    """Any subcommand with any options and values, good, odd and huge."""
    rng, work = case.rng, case.place.work
    commands = _Commands.all("associative_lstm.lab.cli")
    groups = sorted({path[0] for path in commands})
    group = rng.choices(groups, [_SELDOM.get(name, 2.0) for name in groups])[0]
    path = rng.choice([path for path in commands if path[0] == group])
    rules.plant(work)
    case.kept.add(*work.iterdir())
    run = case.copy()
    case.guard(run)
    (work / "dangling").symlink_to("nowhere")
    os.mkfifo(work / "fifo")
    words: list[str] = list(path)
    for parameter in commands[path]:
        is_argument = parameter.param_type_name == "argument"
        wanted = parameter.required or rng.random() < (0.8 if is_argument else 0.25)
        if parameter.name == "out" or (parameter.name in _SMALL and path[0] != "resume"):
            wanted = wanted or rng.random() < 0.7  # most of the time little work, in a known place
        if not wanted or rng.random() < 0.02:
            continue
        for _ in range(rng.choice([1, 1, 2]) if parameter.multiple or parameter.nargs == -1 else 1):
            value = _value(case, parameter, path)
            if is_argument:
                words.append(value)
            elif parameter.is_flag or _kind(parameter) == "bool":
                words.append(rng.choice([*parameter.opts, *parameter.secondary_opts]))
            else:
                option = rng.choice(parameter.opts)
                words += [f"{option}={value}"] if rng.random() < 0.3 else [option, value]
    if rng.random() < 0.08:
        words.insert(rng.randrange(len(words) + 1), rng.choice(["--help", "--no-such", "--", "-x", *_TEXTS]))
    if rng.random() < 0.03:
        words = words[:1] if rng.random() < 0.5 else rng.choice([[], ["--help"], ["--version"], ["nonsense"]])
    for word in words:  # a file that is named as the one to write may be written
        name = word.rpartition("=")[2]
        if name not in ("", ".", "folder", "run") and "/" not in name:
            case.kept.forget(work / name)
    case.arguments = [word.replace("\0", "") for word in words]


def _kind(parameter: Any) -> str:
    """What a parameter takes: int, float, bool, path or text. Typer says it in one way or another."""
    told = getattr(parameter, "type_descriptor", None)
    text = str(told.annotation if told else parameter.type.name).lower()
    return next((kind for kind in ("int", "float", "bool", "path") if kind in text), "text")


def _value(case: Input, parameter: Any, path: tuple[str, ...]) -> str:
    from associative_lstm.lab.networks import NETWORKS
    from associative_lstm.lab.run.recipes import PRESETS
    from associative_lstm.lab.tasks import TASKS

    rng, name, kind = case.rng, parameter.name, _kind(parameter)
    small = _SMALL.get(name)
    if name in _ALWAYS_SMALL:
        return rng.choice([str(rng.randint(*_SMALL[name])), "0", "-1", "x", "", "9" * 26])
    odd = rng.random() < 0.2
    if kind in ("int", "float"):
        if odd:
            return rng.choice([*_NUMBERS, "x", "", "４", "100000", "1000000000"])
        low, high = small or (1, 5)
        return str(rng.randint(low, high)) if kind == "int" else rng.choice(["0.01", "0.5", "1", "2"])
    if kind == "path" or name in ("data", "run", "runs", "out"):
        if name in ("run", "runs") and not odd:
            return "run"
        there = [
            "run",
            "run",
            "notes.txt",
            "folder",
            "dangling",
            ".",
            "run/model.safetensors",
            "run/config.toml",
        ]
        if name != "config":  # to name a pipe there is to say that somebody will write to it
            there.append("fifo")
        new = ["new", "new", "new", "new/a", "x.png", "x.pdf", "notes.txt/x", "dangling", "fifo"]
        pool = new if name == "out" else there
        return rng.choice(
            ["", "new/" + rng.choice(_TEXTS), "a" * 300, "n\x1b[31mew", ".", "folder", "run"] if odd else pool
        )
    if name == "cluster":  # never a real one
        return rng.choice(_TEXTS)
    known = {
        "task": list(TASKS),
        "model": list(NETWORKS),
        "preset": list(PRESETS),
        "key_init": ["glorot", "conjugate"],
    }
    if name in known and not odd:
        return rng.choice(known[name])
    return rng.choice([*_TEXTS, "".join(rng.choices(string.printable, k=8))])


FAMILIES: dict[str, tuple[Callable[[Input], None], float]] = {
    "run folders": (folder, 30),
    "configurations": (configuration, 15),
    "checkpoints": (checkpoint, 15),
    "weights": (weights, 8),
    "data files": (data, 8),
    "full disks": (disk, 5),
    "broken streams": (streams, 5),
    "command lines": (command_line, 25),
}
"""What is tried, and how often."""


def one(
    server: Server, templates: Templates, parent: Path, rng: random.Random
) -> tuple[Input, str, list[str], Counter[str]]:
    """One case: itself, its family, how rules were broken, and what to count."""
    names = list(FAMILIES)
    family = rng.choices(names, [FAMILIES[name][1] for name in names])[0]
    case = Input(templates, Place(parent), rng)
    FAMILIES[family][0](case)
    broken, how = case.run(server)
    return case, family, broken, Counter({family: 1, f"{family}: {how}": 1})
