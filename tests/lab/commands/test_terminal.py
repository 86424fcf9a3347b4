"""The command as a process: what it imports, Ctrl-C at any moment, streams that are lost."""

import os
import signal
import subprocess
import sys

import pytest

import associative_lstm
from associative_lstm.lab import cli
from associative_lstm.lab.commands import inspect
from associative_lstm.lab.run.folder import read_log
from waiting import HANGS

TINY = ["--model", "lstm", "--hidden-size", "8", "--window", "20", "--steps", "30", "--log-every", "5"]


def python(program, *arguments, **options):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, text=True, timeout=HANGS, check=False, **options)


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["--version"]])
def test_help_waits_for_nothing_that_only_a_run_needs(arguments):
    program = """
import sys
from associative_lstm.lab.cli import main
code = main(sys.argv[1:])
heavy = {"torch", "numpy", "numba", "matplotlib", "lightning_fabric"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else code)
"""
    done = python(program, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "alstm" in done.stdout


def test_names_of_networks_and_tasks_are_completed_without_pytorch():
    program = """
import sys
from associative_lstm.lab.commands.train import NETWORKS, PRESETS, TASKS, completing
assert completing(NETWORKS)("ls") == ["lstm"] and "lstm-512" in completing(PRESETS)("lstm")
assert completing(TASKS)("x") == ["xml"]
assert not {"torch", "numpy", "numba"} & set(sys.modules)
"""
    assert python(program).stderr == ""


def test_the_package_has_its_names_without_being_asked_for_them():
    program = """
import sys
import associative_lstm
assert "torch" not in sys.modules
assert set(associative_lstm.__all__) | {"nn", "memory"} <= set(dir(associative_lstm))
from associative_lstm import *
import pickle
assert pickle.loads(pickle.dumps(associative_lstm.AssociativeLSTM)) is AssociativeLSTM
assert associative_lstm.nn.AssociativeLSTM is AssociativeLSTM and functional is associative_lstm.functional
try:
    associative_lstm.nothing
except AttributeError as error:
    assert str(error) == "module 'associative_lstm' has no attribute 'nothing'"
"""
    assert python(program).stderr == ""


def test_the_version_is_the_packages(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"alstm {associative_lstm.__version__}\n"


# When Python first imports a module, or opens a file, of that name: while Typer is read, or PyTorch.
INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from associative_lstm.lab.cli import main
kind, name, come = sys.argv[1], sys.argv[2], []
def hook(event, about):
    if event == kind and not come and name in str(about[0]):
        come.append(name)
        signal.raise_signal(signal.SIGINT)
sys.addaudithook(hook)
sys.argv[1:] = sys.argv[3:]
code = main()
sys.exit(code if come else f"it has come to its end without {name}")
"""


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("import", "associative_lstm.lab.commands.terminal"),
        ("import", "typer"),
        ("import", "torch"),
        ("import", "torch.nn"),
        ("import", "lightning_fabric"),
        ("import", "associative_lstm.lab.run.loop"),
        ("open", "typer"),
        ("open", "torch"),
    ],
)
def test_ctrl_c_while_it_starts_is_one_line(tmp_path, kind, name):
    arguments = ["train", "assignment", "--hidden-size", 8, "--steps", 3, "--out", tmp_path / "run"]
    done = python(INTERRUPTED, kind, name, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "alstm: interrupted\n")


@pytest.mark.parametrize("delay", [0, 0.3])  # of the thread that repeats it, as on a busy machine
def test_ctrl_c_in_a_callback_is_not_lost(delay):
    program = """
import signal, sys, threading, time
start = threading.Thread.start
def starts_slowly(thread):
    start(thread)
    time.sleep(float(sys.argv[1]))
threading.Thread.start = starts_slowly
signal.signal(signal.SIGINT, signal.default_int_handler)
from associative_lstm.lab import cli
class Falls:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def waits(arguments):
    Falls()
    while True:
        time.sleep(0.01)
cli._run = waits
sys.exit(cli.main())
"""
    done = python(program, delay)
    assert (done.returncode, done.stderr) == (130, "alstm: interrupted\n")


def test_ctrl_c_after_the_end_shows_nothing():
    program = """
import atexit, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from associative_lstm.lab.cli import main
atexit.register(lambda: signal.raise_signal(signal.SIGINT))
sys.argv[1:] = ["--version"]
sys.exit(main())
"""
    done = python(program)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_an_error_after_ctrl_c_is_the_interruption(monkeypatch, capsys):
    def becomes_another(arguments):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("a library that could not be read") from None

    monkeypatch.setattr(cli, "_run", becomes_another)
    assert cli.main(["info"]) == 130
    assert capsys.readouterr().err == "alstm: interrupted\n"


def test_the_end_of_a_file_is_no_interruption(monkeypatch, capsys):
    def cut_short(**_):
        raise EOFError("Ran out of input")

    monkeypatch.delenv("ALSTM_DEBUG", raising=False)
    monkeypatch.setattr("associative_lstm.lab.run.folder.versions", cut_short)
    assert cli.main(["info"]) == cli.UNEXPECTED
    error = capsys.readouterr().err
    assert "EOFError: Ran out of input" in error
    assert "interrupted" not in error
    assert error.count("\n") == 1


def test_a_reader_that_leaves_does_not_end_the_run(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    program = "import sys; from associative_lstm.lab.cli import main; sys.exit(main())"
    arguments = ["train", "assignment", *TINY, "--out", tmp_path / "run"]
    try:
        done = python(program, *arguments, stdout=writer, stderr=writer)
    finally:
        os.close(writer)
    assert done.returncode == 0
    assert read_log(tmp_path / "run")[-1]["step"] == 30
    assert (tmp_path / "run" / "curve.png").is_file()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_output_that_is_lost_is_told(tmp_path):
    program = "import sys; from associative_lstm.lab.cli import main; sys.exit(main())"
    with open("/dev/full", "wb") as full:
        done = python(program, "show", stdout=full)
    assert done.returncode == 1
    assert done.stderr == "alstm: the output could not be written: No space left on device\n"


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)])
def test_streams_may_be_closed(closed):
    program = "import sys; from associative_lstm.lab.cli import main; sys.exit(main())"
    done = python(program, "show", "xml", preexec_fn=lambda: [os.close(number) for number in closed])
    assert (done.returncode, done.stderr) == (0, "")


def test_characters_without_a_code_are_written_out():
    program = "import sys; from associative_lstm.lab.cli import main; sys.exit(main())"
    done = python(program, "show", "ntm-copy", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2588" in done.stdout


def test_nothing_is_printed_that_a_terminal_would_obey(capsys):
    inspect.console.print("a name \x1b[31mred\x07, \x9b31m and \u202e", style="bold")
    assert cli.main(["eval", "no\x1b[31mwhere\n\udcff"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "a name \ufffd[31mred, \ufffd31m and \ufffd\n"
    assert captured.err == "alstm: no\ufffd[31mwhere \ufffd is not a run: it has no config.toml\n"
