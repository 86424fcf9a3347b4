"""A real Ray cluster of this machine: workers are killed, nothing is lost, the runs are those of the local grid."""

import dataclasses
import os
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from associative_lstm.lab import cli
from associative_lstm.lab.files import RunError
from associative_lstm.lab.run.checkpoint import find_checkpoints, load_checkpoint, step_of
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import hold
from associative_lstm.lab.run.loop import train
from associative_lstm.lab.sweep import cluster
from associative_lstm.lab.sweep.cluster import Changes, apply, changes_since, train_elsewhere
from associative_lstm.lab.sweep.jobs import DIVERGED, Job, is_finished, run_grid
from associative_lstm.lab.sweep.local import local

TINY = {"task": "assignment", "model": "lstm", "hidden_size": 8, "window": 20, "log_every": 10}
SETTINGS = TINY | {"checkpoint_every": 100, "steps": 500}
LONG = {"steps": 3000}


@pytest.fixture(scope="module")
def ray_here(tmp_path_factory):
    pytest.importorskip("ray")
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # of another cluster, which is left alone
        with cluster.ray_cluster(workers=2, say=said.append) as execute:
            yield execute, said


def jobs_in(folder, **changes):
    settings = [SETTINGS | LONG | {"seed": 0}, SETTINGS | {"seed": 1}, SETTINGS | {"seed": 2}]
    return [Job(complete(s | changes), folder / str(k)) for k, s in enumerate(settings)]


def workers_at_work():
    """The processes of this test's cluster that are training now."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"train_elsewhere" in (process / "cmdline").read_bytes() and _is_ours(int(process.name)):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def _is_ours(pid):
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def same_runs(one, other):
    for folder in sorted(path.name for path in one.iterdir()):
        for name in ("log.jsonl", "model.safetensors", "config.toml"):
            assert (one / folder / name).read_bytes() == (other / folder / name).read_bytes(), (folder, name)
        last = [find_checkpoints(base / folder)[0] for base in (one, other)]
        assert len({load_checkpoint(path)["trainer"]["step"] for path in last}) == 1


def test_killed_workers_lose_nothing_and_the_runs_are_those_of_the_local_grid(tmp_path, ray_here):
    execute, said = ray_here
    jobs = jobs_in(tmp_path / "cluster")
    killed = []

    def kill():
        """Whoever works, as soon as the driver holds steps of the long run in a checkpoint: it is not over then."""
        while not killed and not is_finished(jobs[0]):
            if any(map(step_of, find_checkpoints(jobs[0].folder))):
                for worker in workers_at_work():
                    os.kill(worker, signal.SIGKILL)
                    killed.append(worker)
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    seen = []
    assert run_grid(jobs, execute, seen.append) == []
    killer.join()
    assert killed
    lost = [
        message
        for message in said
        if message.startswith(f"{jobs[0].folder}: its worker was lost, it goes on")
    ]
    assert lost
    assert int(lost[0].rpartition(" ")[2]) >= 100
    assert seen[-1].steps_done == seen[-1].steps == 4000
    assert run_grid(jobs_in(tmp_path / "local"), local(1)) == []
    same_runs(tmp_path / "cluster", tmp_path / "local")
    assert all(len(find_checkpoints(job.folder)) == 2 for job in jobs)


def test_what_was_begun_here_goes_on_there_and_what_is_done_is_not_sent(tmp_path, ray_here):
    execute, _ = ray_here
    job = Job(complete(SETTINGS | {"steps": 300}), tmp_path / "run" / "0")
    train(dataclasses.replace(job.config, steps=150), job.folder)
    assert run_grid([job], execute) == []
    train(dataclasses.replace(job.config, steps=150), tmp_path / "whole" / "0")
    assert run_grid([Job(job.config, tmp_path / "whole" / "0")], local(1)) == []
    same_runs(tmp_path / "run", tmp_path / "whole")
    before = {path: path.stat().st_mtime_ns for path in job.folder.iterdir()}
    assert run_grid([job], execute) == []
    assert {path: path.stat().st_mtime_ns for path in job.folder.iterdir()} == before


def test_what_cannot_be_made_is_said_and_what_diverges_is_a_result(tmp_path, ray_here):
    execute, _ = ray_here
    wrong = Job(complete({"task": "wikipedia", "data": "nowhere", "steps": 5}), tmp_path / "wrong")
    hot = complete(SETTINGS | {"model": "permutation-rnn", "learning_rate": 1e30})
    assert run_grid([wrong, Job(hot, tmp_path / "hot")], execute) == [
        f"{tmp_path / 'wrong'}: data: 'nowhere' is not a file"
    ]
    assert "learning_rate 1e+30 is too high" in (tmp_path / "hot" / DIVERGED).read_text()
    busy = Job(complete(SETTINGS), tmp_path / "busy")
    with hold(busy.folder):
        assert run_grid([busy], execute) == [f"{busy.folder}: {busy.folder} is in use by another process"]


def test_a_folder_follows_another_through_every_state_in_which_a_run_can_be_stopped(tmp_path, monkeypatch):
    """Without a cluster: what a worker yields, applied piece by piece, is always a run that can go on."""
    monkeypatch.setattr(cluster, "LOOK_EVERY", 0.05)
    text = tmp_path / "text"
    text.write_bytes(b"the cat sat on the mat. " * 500)
    wikipedia = {"task": "wikipedia", "data": str(text), "test_every": 100}
    config = complete(SETTINGS | wikipedia | {"steps": 400, "checkpoint_every": 50})
    copy = tmp_path / "copy"
    copy.mkdir()
    *pieces, outcome = train_elsewhere(config, "run", {})
    assert outcome is None
    assert len(pieces) > 2
    for k, changes in enumerate(pieces):
        apply(changes, copy)
        shutil.copytree(copy, tmp_path / f"stopped-{k}")
    train(config, tmp_path / "whole")
    stopped = sorted(tmp_path.glob("stopped-*"))
    for folder in {stopped[0], stopped[len(stopped) // 2], stopped[-2], copy}:
        assert run_grid([Job(config, folder)], local(1)) == []
        for name in ("log.jsonl", "test.jsonl", "model.safetensors", "config.toml"):
            assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), (folder, name)


def test_what_changes_is_sent_once_and_old_checkpoints_go(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    sent = {}

    def send():
        changes = changes_since(sent, here)
        apply(changes, there)
        assert {p.name: p.read_bytes() for p in there.iterdir()} == {
            p.name: p.read_bytes() for p in here.iterdir() if p.name != "lock"
        }
        return set(changes.files)

    first, second = (f"checkpoint-0000000{k}-{'0' * 16}.pt" for k in (1, 2))
    (here / "lock").write_bytes(b"")
    (here / "log.jsonl").write_bytes(b"one\n")
    (here / first).write_bytes(b"weights")
    assert send() == {"log.jsonl", first}
    assert send() == set()
    (here / "log.jsonl").write_bytes(b"one\ntwo\n")
    assert send() == {"log.jsonl"}
    (here / "log.jsonl").write_bytes(b"one\n")  # cut back by a resume
    (here / second).write_bytes(b"more")
    (here / first).unlink()
    assert send() == {"log.jsonl", second}
    (here / "log.jsonl").write_bytes(b"one\nanother\n")
    assert send() == {"log.jsonl"}
    (here / "log.jsonl").write_bytes(b"eno\nother lines\n")
    assert send() == {"log.jsonl"}


def test_a_run_that_takes_its_workers_down_is_given_up(tmp_path, ray_here, monkeypatch):
    execute, said = ray_here
    said.clear()

    def dies(config, name, content):
        yield Changes({}, [])
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(cluster, "train_elsewhere", dies)
    monkeypatch.setattr(cluster, "LOST_AT_MOST", 1)
    [reason] = run_grid([Job(complete(SETTINGS), tmp_path / "run")], execute)
    assert "it has lost 2 workers in a row after step 0" in reason
    assert len(said) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--cluster", "slurm"], "--cluster must be ray, got 'slurm'"),
        (["--address", "auto"], "--address needs --cluster ray"),
    ],
)
def test_bad_options_are_one_sentence(options, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["reproduce", "fig7", "--smoke", *options]) == 1
    assert capsys.readouterr().err == f"alstm: {sentence}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("prefix", ["", "ray://"])
def test_an_address_where_nobody_answers_is_one_sentence_at_once(prefix):
    pytest.importorskip("ray")
    with socket.socket() as taken:  # a port that nobody listens at
        taken.bind(("127.0.0.1", 0))
        address = f"{prefix}127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RunError, match=f"no Ray cluster at {address}: Connection refused"):
            cluster.ray_cluster(address).__enter__()


def test_without_ray_there_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"needs Ray: pip install '\.\[cluster\]'"):
        cluster.ray_cluster().__enter__()
