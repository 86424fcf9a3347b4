"""A grid skips runs that are done, continues others, survives being killed, and keeps what diverged as a result."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from associative_lstm.lab.files import RunError
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import WEIGHTS, hold, last_step, read_config
from associative_lstm.lab.sweep.jobs import DIVERGED, Job, is_finished, make_run, run_grid
from associative_lstm.lab.sweep.local import local
from waiting import HANGS, wait_for_lines

TINY = {
    "task": "assignment",
    "model": "lstm",
    "hidden_size": 8,
    "window": 20,
    "log_every": 5,
    "checkpoint_every": 10,
    "steps": 20,
}


def jobs_in(folder, count=3, **changes):
    return [Job(complete(TINY | changes | {"seed": seed}), folder / str(seed)) for seed in range(count)]


def logs(folder):
    return {path.parent.name: path.read_bytes() for path in folder.glob("*/log.jsonl")}


def test_processes_make_the_same_runs_as_one(tmp_path):
    assert run_grid(jobs_in(tmp_path / "one"), local(1)) == []
    assert run_grid(jobs_in(tmp_path / "two"), local(2)) == []
    assert len(logs(tmp_path / "one")) == 3
    assert logs(tmp_path / "one") == logs(tmp_path / "two")


def test_what_is_done_is_left_alone(tmp_path):
    jobs = jobs_in(tmp_path)
    run_grid(jobs, local(1))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    made = []
    run_grid(jobs, lambda left: made.extend(left) or [])
    assert made == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def test_logs_without_checkpoints_are_done(tmp_path):
    """In a clone there are the logs alone."""
    (job,) = jobs_in(tmp_path, 1)
    make_run(job)
    for path in job.folder.glob("checkpoint-*"):
        path.unlink()
    (job.folder / "model.safetensors").unlink()
    assert is_finished(job)


def test_a_run_is_made_longer_as_if_it_had_never_ended(tmp_path):
    (short,), (long,), (whole,) = (
        jobs_in(tmp_path / name, 1, steps=steps) for name, steps in (("a", 20), ("a", 40), ("b", 40))
    )
    for job in (short, long, whole):
        assert make_run(job) is None
    assert read_config(long.folder).steps == 40
    assert (long.folder / "log.jsonl").read_bytes() == (whole.folder / "log.jsonl").read_bytes()
    assert is_finished(short)  # the sweep's part of a longer run


def test_a_run_whose_rate_falls_towards_its_end_is_not_made_longer(tmp_path):
    short, long = (jobs_in(tmp_path, 1, steps=steps, schedule="linear-end")[0] for steps in (20, 40))
    assert make_run(short) is None
    assert "another steps" in make_run(long)
    assert read_config(short.folder).steps == 20
    assert is_finished(short)
    other = Job(dataclasses.replace(short.config, steps=10), short.folder)
    assert not is_finished(other)  # at its end the rate of a shorter one is lower


def test_weights_of_an_earlier_step_are_not_the_end_of_a_longer_run(tmp_path):
    (short,) = jobs_in(tmp_path, 1)
    make_run(short)
    weights = (short.folder / WEIGHTS).read_bytes()
    longer = Job(dataclasses.replace(short.config, steps=40), short.folder)
    make_run(longer)
    assert is_finished(longer)
    (short.folder / WEIGHTS).write_bytes(weights)  # as if killed before the last export
    assert not is_finished(longer)
    make_run(longer)
    assert (short.folder / WEIGHTS).read_bytes() != weights
    assert is_finished(longer)


def test_divergence_is_a_result(tmp_path):
    (job,) = jobs_in(tmp_path, 1, learning_rate=1e38)
    assert make_run(job) is None
    reason = (job.folder / DIVERGED).read_text()
    assert "not finite" in reason
    assert str(tmp_path) not in reason
    assert is_finished(job)
    assert last_step(job.folder) < job.config.steps


def test_a_run_of_something_else_is_not_touched(tmp_path):
    (job,) = jobs_in(tmp_path, 1)
    make_run(job)
    before = (job.folder / "log.jsonl").read_bytes()
    other = Job(dataclasses.replace(job.config, hidden_size=16, steps=40), job.folder)
    assert "another hidden_size" in make_run(other)
    same_length = Job(dataclasses.replace(job.config, hidden_size=16), job.folder)
    assert ["another hidden_size" in reason for reason in run_grid([same_length], local(1))] == [True]
    assert (job.folder / "log.jsonl").read_bytes() == before


def test_one_failure_does_not_stop_the_others(tmp_path):
    jobs = jobs_in(tmp_path)
    jobs[1].folder.parent.mkdir(exist_ok=True)
    jobs[1].folder.write_text("a file where a folder should be")
    (reason,) = run_grid(jobs, local(1))
    assert str(jobs[1].folder) in reason
    assert is_finished(jobs[0])
    assert is_finished(jobs[2])


class Deadly:
    """Stands in for the configuration of a run that takes its process down, here by being unpickled."""

    steps = 20

    def __reduce__(self):
        return os._exit, (9,)


def test_runs_whose_process_dies_are_named_and_the_others_are_made(tmp_path):
    good = jobs_in(tmp_path)
    deadly = [Job(Deadly(), tmp_path / name) for name in "xyz"]
    died = [f"{job.folder}: its process ended with code 9" for job in deadly]
    assert run_grid([deadly[0], *good[:2]], local(2)) == died[:1]
    assert is_finished(good[0])
    assert is_finished(good[1])
    alone = f"{good[2].folder}: no process is left to make it"
    assert sorted(run_grid([*deadly[1:], good[2]], local(2))) == sorted([*died[1:], alone])


def test_progress_ends_with_everything_done(tmp_path):
    shown = []
    jobs = jobs_in(tmp_path)
    run_grid(jobs, local(1), shown.append)
    last = shown[-1]
    assert (last.steps_done, last.steps, last.runs_done, last.runs) == (60, 60, 3, 3)
    assert last.seconds_left in (0.0, None)


GRID = """
import json, sys
from pathlib import Path
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.sweep.jobs import Job, run_grid
from associative_lstm.lab.sweep.local import local
values, folders = json.loads(sys.argv[1])
jobs = [Job(complete(values | {"seed": seed}), Path(folder)) for seed, folder in enumerate(folders)]
print(run_grid(jobs, local(int(sys.argv[2]))))
"""


def wait_until_left(folders):
    """A grid's processes end a moment after it, and hold their runs until then."""
    for folder in filter(Path.exists, folders):
        deadline = time.monotonic() + HANGS
        while True:
            try:
                hold(folder).close()
                break
            except RunError:
                assert time.monotonic() < deadline
                time.sleep(0.05)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The logs of a grid left alone."""
    folder = tmp_path_factory.mktemp("whole")
    assert run_grid(jobs_in(folder, 4, steps=1000), local(2)) == []
    return logs(folder)


@pytest.mark.parametrize(("kill", "processes"), [(signal.SIGKILL, 2), (signal.SIGINT, 2), (signal.SIGINT, 1)])
def test_a_killed_grid_goes_on(tmp_path, whole, kill, processes):
    """Killed with all its processes in the middle; then the same call ends with the bits of a grid left alone."""
    for attempt in range(
        5
    ):  # where other work keeps the test from looking, the grid may be over before it is killed
        killed = jobs_in(tmp_path / str(attempt), 4, steps=1000)
        asked = json.dumps([TINY | {"steps": 1000}, [str(job.folder) for job in killed]])
        command = [sys.executable, "-c", GRID, asked, str(processes)]
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
        wait_for_lines([killed[0].folder / "log.jsonl"], process)
        os.killpg(process.pid, kill)
        process.wait(HANGS)
        process.stderr.close()
        wait_until_left(job.folder for job in killed)
        if not is_finished(killed[-1]):
            break
    assert not is_finished(killed[-1])
    assert run_grid(killed, local(2)) == []
    assert logs(tmp_path / str(attempt)) == whole
