"""A run killed with SIGKILL again and again until it is done: ``python killing.py FOLDER REFERENCE TASK SEED KILLS``.

Every attempt is a fork of this one process, which has loaded all that training needs. Half of the kills come at a
random moment; the others are made by the attempt itself in the middle of writing a checkpoint.
"""

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from associative_lstm.lab import files
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.log import RunLog
from associative_lstm.lab.run.loop import resume, train
from associative_lstm.lab.sweep.jobs import Job, is_finished


def kill_me(*_):
    os.kill(os.getpid(), signal.SIGKILL)


class HalfWritten:
    """A stand-in for the file of the n-th atomic write: it writes half of the content and dies."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.file.close()

    def write(self, content):
        self.file.write(content[: len(content) // 2])
        self.file.flush()
        kill_me()


def die_in_write(rng):
    """Arrange for death inside one of the coming checkpoint writes, at one of its four stages."""
    left, stage = rng.randint(1, 3), rng.choice(["half", "fsync", "replace", "folder"])
    fdopen, fsync, replace, sync = os.fdopen, os.fsync, os.replace, files.sync_folder

    def opened(handle, mode):
        nonlocal left
        left -= 1
        file = fdopen(handle, mode)
        return HalfWritten(file) if left == 0 and stage == "half" else file

    files.os.fdopen = opened
    files.os.fsync = lambda handle: kill_me() if left == 0 and stage == "fsync" else fsync(handle)
    files.os.replace = lambda a, b: kill_me() if left == 0 and stage == "replace" else replace(a, b)
    files.sync_folder = lambda folder: kill_me() if left == 0 and stage == "folder" else sync(folder)


def wait_for_changes(log, left):
    """Until the log was seen to change so many times, however slow the machine is today."""
    before = None
    while left:
        size = log.stat().st_size if log.exists() else None
        left -= size != before
        before = size
        time.sleep(0.001)


def attempt(folder, config, rng, in_write):
    """Fork, work on the run in the child, kill it; True if the child came to its end."""
    child = os.fork()
    if child == 0:
        try:
            if in_write:
                die_in_write(rng)
            resume(folder) if (folder / "config.toml").exists() else train(config, folder)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    if not in_write:
        wait_for_changes(folder / "log.jsonl", rng.randrange(20))
        time.sleep(rng.uniform(0, 0.05))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit("an attempt failed")
    return os.WIFEXITED(status)


def main():
    folder, reference, task, seed, kills = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
    rng = random.Random(seed)
    settings = {"task": task, "model": "lstm", "hidden_size": 8, "seed": int(seed), "log_every": 5}
    if task != "copy":
        settings["window"] = 20
    if task == "wikipedia":  # most kills at a random moment hit an evaluation
        text = folder.parent / "text"
        text.write_bytes(b"the cat sat on the mat. " * 500)
        settings |= {"data": str(text), "test_every": 9}
    settings |= {"steps": 1_000_000, "checkpoint_every": 7}
    config = complete(settings)
    with tempfile.TemporaryDirectory() as warm:
        train(complete(settings | {"steps": 1}), warm)
    for number in range(int(kills)):
        if attempt(folder, config, rng, in_write=number % 2 == 1):
            sys.exit("an attempt ended before it was killed")
    # A few more steps than the last kill saw: now the run comes to its end, and one never killed is made beside it.
    steps = max([int(path.name.split("-")[1]) for path in folder.glob("checkpoint-*.pt")], default=0) + 10
    config = complete(settings | {"steps": steps})
    log = RunLog(folder)
    log.reconfigure(config)
    log.close()
    resume(folder)
    assert is_finished(Job(config, folder))
    train(config, reference)


if __name__ == "__main__":
    main()
