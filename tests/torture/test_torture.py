"""The harness in a small form, so that it does not rot, and proof that each of its rules can be broken."""

import hashlib
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torture import hostile, rules
from waiting import HANGS

TESTS = Path(__file__).parents[1]


def torture(*arguments):
    paths = [str(TESTS), *sys.path]
    return subprocess.run(
        [sys.executable, "-m", "torture", "--jobs", "1", *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )


def test_a_few_kills_and_a_few_dozen_inputs_break_no_rule(tmp_path):
    done = torture(
        "--kills", "6", "--runs", "assignment,copy", "--inputs", "40", "--out", str(tmp_path / "out")
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| rules broken | 0 |" in done.stdout
    assert "| inputs | 40 |" in done.stdout
    [kills] = [line for line in done.stdout.splitlines() if line.startswith("| kills |")]
    assert int(kills.split("|")[2]) >= 6


def test_a_careless_command_is_caught_and_what_it_did_is_kept(tmp_path):
    out = tmp_path / "out"
    done = torture(
        "--entry",
        "torture.careless:main",
        "--kills",
        "1",
        "--runs",
        "copy",
        "--inputs",
        "3",
        "--out",
        str(out),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    for broken in ("lost: .mine.tmp is gone", "traceback: RuntimeError: careless", "control character"):
        assert done.stdout.count(f"{broken}") >= 2, done.stdout  # of a kill and of an input
    kept = [json.loads(path.read_text())["case"] for path in out.glob("*/case.json")]
    assert {case.partition(":")[0] for case in kept} == {"kills", "inputs"}
    assert all((out / case.replace(":", "-") / "place" / "stderr").is_file() for case in kept)


@pytest.fixture
def run(tmp_path):
    """Something like the folder of a run."""
    folder = tmp_path / "run"
    folder.mkdir()
    lines = [json.dumps({"step": step, "cost": 1.0}) for step in (2, 4, 6)]
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
    for step in (4, 6):
        hostile.with_digest(folder, b"content %d" % step, step)
    shutil.copytree(folder, tmp_path / "original")
    return folder


def test_what_is_lost_of_a_run_is_seen(run):
    original = run.parent / "original"
    kept = rules.KeptRun(run, original)
    assert list(kept.broken()) == []
    log = (run / "log.jsonl").read_bytes()
    (run / "log.jsonl").write_bytes(log[:-3])
    assert list(kept.broken()) == ["lost: the log's good lines"]
    (run / "log.jsonl.1").write_bytes(log)  # kept beside
    assert list(kept.broken()) == []
    newest = max(run.glob("checkpoint-*"))
    newest.unlink()
    assert list(kept.broken()) == ["lost: the newest good checkpoint"]
    hostile.with_digest(run, b"a newer one", 8)
    assert list(kept.broken()) == []


def test_only_what_was_good_must_stay(run):
    original = run.parent / "original"
    log = run / "log.jsonl"
    content = log.read_bytes()
    log.write_bytes(content.replace(b"4", b"5"))
    assert rules.good_part(log, content) == content.splitlines(keepends=True)[0]
    newest = max(run.glob("checkpoint-*"))
    newest.write_bytes(b"damaged")
    assert list(rules.damaged_checkpoints(run)) == ["a checkpoint is not whole"]
    kept = rules.KeptRun(run, original)
    newest.unlink()
    assert list(kept.broken()) == []


def test_what_is_lost_of_the_users_is_seen(tmp_path):
    mine = tmp_path / "mine"
    rules.plant(mine)
    (mine / "link").symlink_to("notes.txt")
    kept = rules.Kept()
    kept.add(mine)
    assert list(kept.broken()) == []
    (mine / "notes.txt").write_bytes(b"theirs")
    (mine / "folder" / "thesis.tex").unlink()
    (mine / "link").unlink()
    (mine / "link").symlink_to("log.jsonl")
    (mine / "curve.png").chmod(0)
    said = [sentence.partition(" (")[0] for sentence in kept.broken()]
    assert said == ["lost: curve.png", "lost: thesis.tex is gone", "lost: link", "lost: notes.txt"]
    kept.forget(mine / "notes.txt")
    assert not any("notes" in sentence for sentence in kept.broken())


def test_what_must_not_be_said_is_heard():
    assert list(rules.said("fine", "alstm: no such file", 1)) == []
    assert list(rules.said("", "Traceback (most recent call last):\n  ...\nOSError: x", 0)) == [
        "traceback: OSError: x"
    ]
    assert list(rules.said("a\x1b[31m", "", 0)) == ["control character '\\x1b' is shown"]
    assert list(rules.said("", "oh", 2)) == ["refused without a sentence"]
    assert list(rules.ended(None)) == ["hangs"]
    assert list(rules.ended(-11)) == ["crashed by signal 11"]
    assert list(rules.ended(70)) == ["exit code 70"]


def test_temporaries_are_seen_and_the_users_own_is_none(tmp_path):
    (tmp_path / rules.MINE).touch()
    assert list(rules.temporaries(tmp_path)) == []
    (tmp_path / ".config.toml.abcdefgh.tmp").touch()
    assert list(rules.temporaries(tmp_path)) == ["a temporary is left: .config.toml.*.tmp"]


@pytest.mark.parametrize("kind", range(3))
def test_hostile_files_would_run_code(tmp_path, kind):
    marker = tmp_path / "code-was-run"
    pickle.loads(hostile.hostile_files(marker)[4 * kind])
    assert marker.is_dir()


def test_the_same_case_is_the_same_damage():
    content = hashlib.sha256(b"x").digest() * 10
    once, again = (hostile.damaged(random.Random("inputs:0:1"), content) for _ in range(2))
    assert once == again != content
