"""SIGTERM and SIGHUP do what Ctrl-C does, to a run and to those that make several; nobody goes on training unseen."""

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
from multiprocessing.context import SpawnProcess

import pytest

from associative_lstm.lab.files import Interrupted, RunError
from associative_lstm.lab.run.checkpoint import find_checkpoints, step_of
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import hold, last_step
from associative_lstm.lab.run.signals import SIGNALS, listening
from associative_lstm.lab.sweep.jobs import Job, run_grid
from associative_lstm.lab.sweep.local import local
from waiting import HANGS, wait_for_lines

TRAIN = [sys.executable, "-m", "associative_lstm.lab.cli", "train", "assignment"]
TRAIN += ["--model", "lstm", "--hidden-size", "8", "--window", "20", "--log-every", "5"]
TRAIN += ["--steps", "10000000", "--checkpoint-every", "10000000"]


@contextlib.contextmanager
def start(folder, *command, **options):
    arguments = command or (*TRAIN, "--out", str(folder))
    with subprocess.Popen([*arguments], stderr=subprocess.PIPE, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()  # a test that failed waits for nobody


def saved_step(folder):
    return step_of(find_checkpoints(folder)[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_finishes_its_step_saves_and_says_how_to_go_on(tmp_path, number):
    run = tmp_path / "run"
    with start(run) as process:
        wait_for_lines([run / "log.jsonl"], process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=HANGS)
    assert process.returncode == 128 + number
    step = saved_step(run)
    assert step - last_step(run) in range(5)
    assert errors == f"alstm: stopped after step {step}; continue with: alstm resume {run}\n"


def test_without_a_terminal_to_tell_it_to_a_run_stops_all_the_same(tmp_path):
    run = tmp_path / "run"
    with start(run) as process:
        wait_for_lines([run / "log.jsonl"], process)
        process.stderr.close()
        process.send_signal(signal.SIGHUP)
        assert process.wait(HANGS) == 129
    assert saved_step(run) > 0


def test_nohup_is_respected(tmp_path):
    run = tmp_path / "run"
    log = run / "log.jsonl"
    with start(run, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        wait_for_lines([log], process)
        process.send_signal(signal.SIGHUP)
        size = log.stat().st_size
        deadline = time.monotonic() + HANGS
        while log.stat().st_size < size + 1000:  # many steps later
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=HANGS)
    assert process.returncode == 143


def test_a_terminal_that_is_closed(tmp_path):
    """The kernel's own signal, to whoever has the terminal."""
    run = tmp_path / "run"
    ours, theirs = pty.openpty()
    options = {"stdin": theirs, "stdout": theirs, "start_new_session": True}
    with start(run, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **options) as process:
        os.close(theirs)
        try:
            wait_for_lines([run / "log.jsonl"], process)
        finally:
            os.close(ours)
        _, errors = process.communicate(timeout=HANGS)
    assert process.returncode == 129
    assert errors == f"alstm: stopped after step {saved_step(run)}; continue with: alstm resume {run}\n"


@pytest.fixture
def heard():
    """Handlers that note what reaches them, in place of those of this process."""
    noted = []
    before = {each: signal.signal(each, lambda number, frame: noted.append(number)) for each in SIGNALS}
    yield noted
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_second_signal_breaks_off(heard, number):
    with listening() as asked:
        assert asked() == 0
        signal.raise_signal(number)
        assert asked() == number
        assert heard == []
        signal.raise_signal(signal.SIGHUP)  # of which a closed terminal sends two
        assert heard == []
        signal.raise_signal(signal.SIGTERM)
        assert heard == [signal.SIGTERM]
    signal.raise_signal(signal.SIGINT)
    assert heard == [signal.SIGTERM, signal.SIGINT]


def test_one_of_several_processes_does_not_break_off(heard):
    with listening(patient=True) as asked:
        for number in SIGNALS:
            signal.raise_signal(number)
        assert asked() == signal.SIGINT
    assert heard == []


def test_signals_are_put_back(heard):
    with listening():
        pass
    for number in SIGNALS:
        signal.raise_signal(number)
    assert heard == list(SIGNALS)


def test_only_the_main_thread_listens(heard):
    def listen():
        with listening() as asked:
            signal.raise_signal(signal.SIGTERM)
            told.append(asked())

    told = []
    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert told == [0]
    assert heard == [signal.SIGTERM]


SEVERAL = """
import sys
from pathlib import Path
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.experiments.demo import train_side_by_side
from associative_lstm.lab.files import Interrupted
from associative_lstm.lab.sweep.jobs import Job, run_grid
from associative_lstm.lab.sweep.local import local

folder, how = Path(sys.argv[1]), sys.argv[2]
settings = {"task": "assignment", "model": "lstm", "hidden_size": 8, "window": 20, "log_every": 5}
settings |= {"steps": 10_000_000, "checkpoint_every": 10_000_000}
configs = {name: complete(settings | {"seed": seed}) for seed, name in enumerate("abc")}
try:
    if how == "grid":
        run_grid([Job(config, folder / name) for name, config in configs.items()], local(2))
    else:
        del configs["c"]
        train_side_by_side(configs, folder, lambda progress: None)
except Interrupted as stopped:
    print(stopped, file=sys.stderr)
    sys.exit(stopped.code)
"""


@pytest.mark.parametrize(
    ("how", "number", "to_all"),
    [
        ("demo", signal.SIGTERM, False),
        ("demo", signal.SIGTERM, True),  # with Ctrl-C, the tests of the demo do it
        ("demo", signal.SIGKILL, False),
        ("grid", signal.SIGTERM, False),
        ("grid", signal.SIGTERM, True),
        ("grid", signal.SIGINT, True),
        ("grid", signal.SIGKILL, False),
    ],
)
def test_several_runs_are_all_saved_and_none_goes_on(tmp_path, how, number, to_all):
    runs = [tmp_path / "a", tmp_path / "b"]
    with start(None, sys.executable, "-c", SEVERAL, str(tmp_path), how, start_new_session=True) as process:
        wait_for_lines([run / "log.jsonl" for run in runs], process)
        (os.killpg if to_all else os.kill)(process.pid, number)
        _, errors = process.communicate(timeout=HANGS)
    if number == signal.SIGKILL:  # which nobody can pass on: they see for themselves that they are alone
        for run in runs:
            wait_until_left(run)
    else:
        assert process.returncode == 128 + number
        words = {"demo": f"stopped; continue with: alstm resume {runs[0]} and alstm resume {runs[1]}"}
        words["grid"] = "stopped, with every run saved; the same command goes on from there"
        assert errors == f"{words[how]}\n"
    for run in runs:
        hold(run).close()  # nobody does
        assert saved_step(run) - last_step(run) in range(5)
    assert not (tmp_path / "c").exists()  # the next run of the grid is not begun


def test_a_signal_while_a_process_is_started_is_heard(tmp_path, monkeypatch):
    """In that moment the signals are kept from the new process; this one must not lose it."""
    start_process = SpawnProcess.start

    def start_slowly(process):
        monkeypatch.undo()  # the second signal would break off
        signal.raise_signal(signal.SIGTERM)
        start_process(process)

    monkeypatch.setattr(SpawnProcess, "start", start_slowly)
    settings = {"task": "assignment", "model": "lstm", "hidden_size": 8, "steps": 200}
    jobs = [Job(complete(settings | {"seed": seed}), tmp_path / str(seed)) for seed in range(2)]
    with pytest.raises(Interrupted, match="stopped, with every run saved") as stopped:
        run_grid(jobs, local(2))
    assert stopped.value.code == 128 + signal.SIGTERM


def wait_until_left(run):
    deadline = time.monotonic() + HANGS
    while True:
        try:
            hold(run).close()
            return
        except RunError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
