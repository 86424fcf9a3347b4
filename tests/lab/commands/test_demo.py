"""What the demo shows, to a terminal and to a file."""

import os
import pty
import re
import signal
import subprocess
import sys

from associative_lstm.lab.cli import main
from associative_lstm.lab.run.checkpoint import find_checkpoints
from waiting import HANGS, wait_for_lines

DEMO = [sys.executable, "-m", "associative_lstm.lab.cli", "demo", "--steps", "3", "--out"]


def check(text):
    assert "[bold" not in text
    assert not re.search(r"\bnan\b", text)
    assert re.search(r"Associative LSTM +3/3 ", text)
    assert "the same questions to both" in text
    assert re.search(r"learning curves: .*demo\.png", text)
    assert re.search(r"a page for a browser: .*inside\.html", text)


def test_to_a_file(tmp_path, capsys):
    folder = tmp_path / "demo"
    done = subprocess.run([*DEMO, str(folder)], capture_output=True, text=True, timeout=HANGS, check=True)
    check(done.stdout + done.stderr)
    assert "\x1b" not in done.stdout + done.stderr
    assert "…" not in done.stderr
    assert done.stderr.endswith("\n")
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert len(re.findall(r"q\([a-z]+\) +[a-z] +\S [✓✗] +\S [✓✗]", done.stdout)) == 8
    shares = re.findall(r"\) +(-?[\d.]+)%", done.stdout)
    assert len(shares) == 2
    assert all(0 <= float(share) < 20 for share in shares)  # hardly trained: a guess among 26 letters
    page = (folder / "inside.html").read_text()
    assert "Associative LSTM 128, 4 copies</b> and <b>LSTM 128</b>" in page
    assert done.stdout.endswith(f"runs: {folder}\n")
    assert main(["demo", "--out", str(folder)]) == 1
    assert capsys.readouterr().err == f"alstm: {folder} is not empty: choose another folder\n"


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


def test_ctrl_c_stops_it_with_both_runs_saved(tmp_path):
    command = [sys.executable, "-m", "associative_lstm.lab.cli", "demo", "--out", str(tmp_path / "demo")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        logs = [tmp_path / "demo" / name / "log.jsonl" for name in ("associative-lstm", "lstm")]
        wait_for_lines(logs, process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        _, errors = process.communicate(timeout=HANGS)
    assert process.returncode == 130, errors
    assert f"alstm resume {tmp_path / 'demo' / 'lstm'}" in errors
    assert "Traceback" not in errors
    for log in logs:
        assert find_checkpoints(log.parent)
