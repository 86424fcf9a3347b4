"""What the demo shows, to a terminal and to a file."""

import os
import pty
import re
import subprocess
import sys

from waiting import HANGS

DEMO = [sys.executable, "-m", "associative_lstm.lab.cli", "demo", "--steps", "3", "--out"]


def check(text):
    assert "[bold" not in text
    assert not re.search(r"\bnan\b", text)
    assert re.search(r"Associative LSTM +3/3 ", text)
    assert "the same questions to both" in text
    assert re.search(r"learning curves: .*demo\.png", text)


def test_to_a_file(tmp_path):
    done = subprocess.run(
        [*DEMO, str(tmp_path / "run")], capture_output=True, text=True, timeout=HANGS, check=True
    )
    check(done.stdout + done.stderr)
    assert "\x1b" not in done.stdout + done.stderr
    assert "…" not in done.stderr
    assert done.stderr.endswith("\n")


def test_to_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    command = [*DEMO, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # how the end of a terminal shows itself
            pass
        finally:
            os.close(ours)
            process.wait(HANGS)
    assert process.returncode == 0
    assert b"\x1b[" in shown
    check(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()))
