"""Runs that are killed at random moments and resumed, again and again, until they are done.

A story is one run. Each of its attempts is `alstm train` or `alstm resume`, ended by a signal: after a random delay,
when something is seen in the run's folder (a file in the making, a new checkpoint, ...), or just before a file
operation of the attempt's own. In the end the run must be, to the bit, the one that nobody disturbed.
"""

import hashlib
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from torture import rules
from torture.server import Child, Place, Server

SIGNALS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}
"""What is sent, and the exit code that it leads to."""

_SMALL = "--hidden-size 8 --log-every 3 --checkpoint-every 7 --seed 5"
RUNS = {
    "assignment": f"assignment --model lstm --window 20 --steps 400 {_SMALL}",
    "assignment-copies": f"assignment --copies 2 --key-init conjugate --window 20 --steps 200 {_SMALL}",
    "copy": f"copy --model lstm --steps 250 {_SMALL}",
    "copy-variable": f"copy-variable --model permutation-rnn --steps 150 {_SMALL}",
    "xml": f"xml --model unitary-rnn --window 20 --steps 200 {_SMALL}",
    "arithmetic": f"arithmetic --copies 2 --heads 2 --layers 2 --steps 100 {_SMALL}",
    "ntm-copy": f"ntm-copy --model ntm --batch-size 1 --steps 120 {_SMALL}",
    "wikipedia": f"wikipedia --model lstm --data TEXT --window 20 --test-every 25 --steps 150 {_SMALL}",
}
"""Every kind of task and of network that has kernels or a state of its own."""

PATIENCE = 120.0  # seconds within which a run that was asked to stop has stopped
_OPERATIONS = (
    "open",
    "os.rename",
    "os.remove",
    "os.truncate",
    "os.mkdir",
    "os.chmod",
    "os.link",
    "shutil.move",
)


class References(NamedTuple):
    """The runs that nobody disturbed, and the text that one of them reads."""

    folder: Path
    text: Path

    def arguments(self, name: str, out: Path) -> list[str]:
        words = [str(self.text) if word == "TEXT" else word for word in RUNS[name].split()]
        return ["train", *words, "--out", str(out)]


def make_references(server: Server, folder: Path, names: list[str]) -> References:
    """Train every run once; kernels are compiled, and what training imports is imported, on the way."""
    text = folder / "text"
    text.write_bytes(b"the cat sat on the mat. " * 400)
    references = References(folder, text)
    server.warm([references.arguments(name, folder / name) for name in names], folder)
    return references


class Moment(NamedTuple):
    """When an attempt is killed."""

    kind: str
    """`delay`, `event` or `operation`."""
    what: str = ""
    number: int = 1
    seconds: float = 0.0

    @staticmethod
    def draw(rng: random.Random, events: list[str]) -> "Moment":
        kind = rng.choice(["delay", "event", "event", "operation", "operation"])
        if kind == "delay":
            return Moment(kind, seconds=10 ** rng.uniform(-2.5, 0.2))
        if kind == "event":
            what = rng.choice(events)
            return Moment(kind, what, rng.randint(1, 4), rng.choice([0.0, 0.0, rng.uniform(0, 0.004)]))
        return Moment(kind, number=int(10 ** rng.uniform(0, 2.3)))


_EVENTS: dict[str, Callable[[str], bool]] = {
    "a file in the making": lambda name: name.endswith(".tmp") and name != rules.MINE,
    "a checkpoint": lambda name: name.startswith("checkpoint-"),
    "a line of the log": lambda name: name == "log.jsonl",
    "a line of the tests": lambda name: name == "test.jsonl",
    "the configuration": lambda name: name in ("config.toml", "lock"),
    "the end": lambda name: name in ("model.safetensors", "curve.png"),
}


def story(server: Server, references: References, parent: Path, rng: random.Random, most: int) -> "Story":
    """One run, killed up to ``most`` times."""
    told = Story(server, references, Place(parent), rng)
    spinner = _spin(told.place.folder) if rng.random() < 0.5 else None
    try:
        told.tell(most)
    finally:
        if spinner is not None:
            os.kill(spinner, signal.SIGKILL)
            os.waitpid(spinner, 0)
    return told


class Story:
    def __init__(self, server: Server, references: References, place: Place, rng: random.Random) -> None:
        self.server, self.references, self.place, self.rng = server, references, place, rng
        self.name = rng.choice(sorted(path.name for path in references.folder.iterdir() if path.name in RUNS))
        self.run = place.work / "run"
        self.reference = references.folder / self.name
        self.log = (self.reference / "log.jsonl").read_bytes()
        self.counts: Counter[str] = Counter()
        self.events: list[str] = []  # what happened, for whoever repeats it
        self.broken: list[str] = []
        rules.plant(place.work)
        rules.plant(place.home)
        self.kept = rules.Kept()
        self.kept.add(*place.work.iterdir(), *place.home.iterdir())
        self.newest = -1

    def tell(self, most: int) -> None:
        for _ in range(most):
            if self._attempt(killed=True) == 0 or self.broken:
                break
        else:
            self._attempt(killed=False)
            if not self.broken and self.child.code != 0:
                self.broken.append(
                    f"the last attempt ended with {self.child.code}: {_last(self.child.err())}"
                )
        if not self.broken:
            self.broken += self._differences()
            self.counts["runs compared"] += 1

    def _attempt(self, killed: bool) -> int | None:
        rng = self.rng
        begun = (self.run / "config.toml").exists()
        if begun and not (self.run / rules.MINE).exists():
            rules.plant(self.run, ["notes.txt", rules.MINE, "folder/thesis.tex"])
            os.symlink("../notes.txt", self.run / "link")
            self.kept.add(*(self.run / name for name in ("notes.txt", rules.MINE, "folder", "link")))
        arguments = ["resume", str(self.run)] if begun else self.references.arguments(self.name, self.run)
        own_process = killed and rng.random() < 0.05
        # What does not come lets the run go through to its end, and so does what comes there: a few of these will do.
        expected = ["a file in the making", "a checkpoint", "a line of the log"] * 4 + ["the end"]
        expected += ["the configuration"] * (not begun) + ["a line of the tests"] * (self.name == "wikipedia")
        moment, number = Moment.draw(rng, expected), rng.choice(list(SIGNALS))
        twice = rng.random() < 0.1
        if own_process:
            moment = Moment("delay", seconds=rng.uniform(0, 6)) if moment.kind != "event" else moment
        prepare = None
        if killed and moment.kind == "operation":
            prepare = _dying(self.run, moment.number, number)
        before, self.written = _look(self.run), _bytes(self.run / "log.jsonl")
        self.child = child = self.server.start(
            arguments, self.place, prepare=prepare, own_process=own_process
        )
        sent = False
        if killed and moment.kind != "operation":
            sent = _await(child, self.run, moment)
            child.send(number)
            if twice:
                time.sleep(rng.uniform(0, 0.05))
                child.send(number)
        code = child.wait(PATIENCE)
        sent = sent or (killed and moment.kind == "operation" and code != 0)
        label = signal.Signals(number).name
        how = f"{moment.kind} {moment.what} {moment.number} {moment.seconds:.4f}{' (own process)' * own_process}"
        self.events.append(f"{arguments[0]}: {label + ' at ' + how if killed else 'left alone'} -> {code}")
        if killed and sent and code != 0:
            self.counts[label] += 1
            self.counts["own process" if own_process else "forked"] += 1
            self.counts[moment.kind] += 1
        self.broken += self._judge(number if sent else None, twice, before, own_process)
        if code not in (0, None) and not sent and code not in SIGNALS.values():
            self.broken.append(f"{arguments[0]} ended by itself with {code}: {_last(child.err())}")
        return code

    def _judge(self, number: int | None, twice: bool, before: dict[str, object], own: bool) -> Iterator[str]:
        """The rules after every attempt."""
        code, err = self.child.code, self.child.err()
        log = _bytes(self.run / "log.jsonl")
        newest = max(map(rules.step_of, rules.checkpoints(self.run)), default=-1)
        untouched = _look(self.run) == before
        if code is None or (code == -signal.SIGKILL and number != signal.SIGKILL):
            yield f"hangs: not stopped within {PATIENCE:.0f} seconds of signal {number}"
        elif number is not None and code != 0:
            # Before the first step and after the last there is nothing to save, and no need of a handler.
            idle = (newest == self.newest and log == self.written) or log == self.log
            by_default = code == -number and (idle or twice)
            if code != SIGNALS[signal.Signals(number)] and not by_default:
                yield f"exit code {code} after {signal.Signals(number).name}"
        # Python itself, before the command's first line, answers Ctrl-C with a traceback.
        if not (own and "associative_lstm" not in err and untouched):
            yield from rules.said(self.child.out(), err, code)
        yield from self.kept.broken()
        if not self.log.startswith(log):
            yield "the log is not the beginning of the undisturbed run's"
        if not _bytes(self.reference / "test.jsonl").startswith(_bytes(self.run / "test.jsonl")):
            yield "the tests are not the beginning of the undisturbed run's"
        yield from rules.damaged_checkpoints(self.run)
        if newest < self.newest:
            yield f"lost: the newest checkpoint was {self.newest} and is {newest}"
        self.newest = newest
        if not log.startswith(rules.lines_until(self.log, newest)):
            yield f"the log is shorter than the checkpoint of step {newest} says"
        for line in err.splitlines():
            words = line.partition("stopped after step ")[2].partition(";")[0]
            if words and words.replace(",", "").isdigit() and newest < int(words.replace(",", "")):
                yield f"announced step {words}, and the newest checkpoint is {newest}"

    def _differences(self) -> Iterator[str]:
        """The rules at the end."""
        for name in ("log.jsonl", "test.jsonl", "model.safetensors"):
            if _bytes(self.run / name) != _bytes(self.reference / name):
                yield f"{name} is not that of the undisturbed run"
        if not (self.run / "curve.png").is_file():
            yield "there is no learning curve"
        yield from rules.temporaries(self.run)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _last(text: str) -> str:
    return (text.splitlines() or [""])[-1][:200]


def _look(folder: Path) -> dict[str, object]:
    """What is in a folder, by name, with something that changes if the file does."""
    found: dict[str, object] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    about = entry.stat(follow_symlinks=False)
                except OSError:  # it has just been renamed
                    continue
                found[entry.name] = (about.st_ino, about.st_size, about.st_mtime_ns)
    except OSError:
        pass
    return found


def _await(child: Child, folder: Path, moment: Moment) -> bool:
    """Wait for the moment; False if the child ends before."""
    deadline = time.monotonic() + (moment.seconds if moment.kind == "delay" else PATIENCE)
    left, seen = moment.number, _look(folder)
    while child.poll() is None:
        if moment.kind == "event":
            now = _look(folder)
            left -= sum(_EVENTS[moment.what](name) for name in now if now[name] != seen.get(name))
            seen = now
            if left <= 0:
                time.sleep(moment.seconds)
                return child.poll() is None
        if time.monotonic() >= deadline:
            return True
        time.sleep(0.0003)
    return False


def _dying(folder: Path, number: int, what: int) -> Callable[[], None]:
    """What a child does to get the signal just before its ``number``-th operation on files of ``folder``."""
    inside = os.fspath(folder)

    def prepare() -> None:
        left = number

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            if left > 0 and event in _OPERATIONS and any(_is_in(inside, path) for path in arguments[:2]):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), what)

        sys.addaudithook(hook)

    return prepare


def _is_in(folder: str, path: object) -> bool:
    """Whether it is a path in the folder, or a bare name as they are used beside an open folder."""
    if isinstance(path, bytes | str | os.PathLike):
        text = os.fsdecode(path)
        return text.startswith(folder) or (text != "" and "/" not in text)
    return False


def _spin(folder: Path) -> int:
    """A process that keeps a core and the disk busy."""
    parent = os.getpid()
    if pid := os.fork():
        return pid
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        while os.getppid() == parent:
            content = hashlib.sha256(bytes(2**22)).digest() * 10_000
            with open(folder / "load", "wb") as file:
                file.write(content)
                os.fsync(file.fileno())
    finally:
        os._exit(0)
