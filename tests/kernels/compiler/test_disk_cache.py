"""Compiled kernels on disk: found by the next process, made again when damaged, done without on a full disk."""

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core import caching

import associative_lstm
from associative_lstm.kernels.compiler import disk_cache, runtime
from waiting import HANGS

KERNELS = """
from associative_lstm.kernels.compiler.runtime import jit

@jit
def double(x):
    return 2 * x

@jit
def half(x):
    return x / 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where kernels are kept during the test. Nothing has been said yet of kernels that could not be."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_cache, "_told", set())
    (tmp_path / "tiny.py").write_text(KERNELS)
    return tmp_path / "cache"


def fresh(folder):
    """Two small kernels as in a new process, with nothing compiled."""
    spec = importlib.util.spec_from_file_location("tiny", folder.parent / "tiny.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(kernel):
    """Whether its one call had to compile it."""
    hits, misses = (sum(count.values()) for count in (kernel.stats.cache_hits, kernel.stats.cache_misses))
    assert hits + misses == 1
    return misses == 1


def file_of(folder, kernel, suffix):
    (path,) = folder.rglob(f"tiny.{kernel}-*{suffix}")
    return path


def use(folder):
    kernels = fresh(folder)
    assert kernels.double(21.0) == 42.0
    return kernels.double


def test_the_next_use_finds_it(folder, capsys):
    assert compiled(use(folder))
    assert not compiled(use(folder))
    assert file_of(folder, "double", ".nbi").exists()
    assert file_of(folder, "double", ".nbc").exists()
    assert capsys.readouterr().err == ""


DAMAGE = {
    "emptied": lambda data: b"",
    "cut short": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "another file": lambda data: b"\x80\x04K\x07.",
}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_compiled_again_and_replaced(folder, suffix, damage, capsys):
    use(folder)
    path = file_of(folder, "double", suffix)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    assert compiled(use(folder))
    assert not compiled(use(folder))
    assert capsys.readouterr().err == ""


def test_machine_code_with_one_wrong_bit_is_never_run(folder):
    use(folder)
    path = file_of(folder, "double", ".nbc")
    good = path.read_bytes()
    for place in range(len(good) // 10, len(good), len(good) // 10):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert compiled(use(folder))


def test_what_other_sources_left_behind_is_not_loaded(folder, monkeypatch):
    """As when a process ends between writing the new index and the new kernel, over files of an older version."""
    monkeypatch.setattr(disk_cache, "_SOURCES", b"older")
    use(folder)
    path = file_of(folder, "double", ".nbc")
    stale = path.read_bytes()
    monkeypatch.setattr(disk_cache, "_SOURCES", b"newer")
    assert compiled(use(folder))
    path.write_bytes(stale)
    assert compiled(use(folder))


def test_two_processes_that_took_the_same_name_do_not_load_each_others_kernel(folder):
    """Both found the index empty; the index of one and the kernel of the other were written last."""
    use(folder)
    index, kernel = (file_of(folder, "double", suffix) for suffix in (".nbi", ".nbc"))
    of_floats = index.read_bytes()
    index.unlink()
    assert fresh(folder).double(21) == 42  # integers
    index.write_bytes(of_floats)
    assert kernel == file_of(folder, "double", ".nbc")
    assert compiled(use(folder))
    assert not compiled(use(folder))


def said_once(capsys, reason):
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"associative-lstm: compiled kernels cannot be kept on disk ({reason}), so that every start compiles them "
        "again; NUMBA_CACHE_DIR can name another folder for them"
    ]


def test_on_a_full_disk_kernels_are_used_and_not_kept(folder, monkeypatch, capsys):
    use(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def full(path, mode="r"):
        file = open(path, mode)  # noqa: SIM115 (returned open)
        if "w" in mode:
            file.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return file

    monkeypatch.setattr(caching, "open", full, raising=False)
    kernels = fresh(folder)
    assert kernels.double(21) == 42  # another type than what is kept
    assert kernels.half(42.0) == 21.0
    said_once(capsys, "[Errno 28] No space left on device")
    assert not compiled(use(folder))  # what is there serves
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in before} == before


def test_a_folder_that_is_gone_is_done_without(folder, capsys):
    kernels = fresh(folder)
    for place in folder.iterdir():
        shutil.rmtree(place)
        place.write_text("a file where the folder was")
    assert kernels.double(21.0) == 42.0
    assert kernels.half(42.0) == 21.0
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be kept on disk" in line


def test_without_any_place_kernels_are_compiled_at_every_start(folder, monkeypatch, capsys):
    """As where the package is installed read-only and there is no home: no locator finds a place to write."""
    for locator in caching.CacheImpl._locator_classes:
        monkeypatch.setattr(locator, "from_function", lambda *_: None)
    monkeypatch.setattr(runtime, "_announced", set())
    monkeypatch.setattr(runtime.threading, "Timer", AtOnce)
    kernels = fresh(folder)
    with runtime.announce_compilation("a", "kernel"):
        assert kernels.double(21.0) == 42.0
    assert kernels.half(42.0) == 21.0
    told, announced = capsys.readouterr().err.splitlines()
    start = "associative-lstm: compiled kernels cannot be kept on disk (cannot cache function 'double': no locator"
    assert told.startswith(start)
    assert announced == "associative-lstm: compiling a kernel for this machine (at every start)"


@pytest.fixture
def nowhere(folder, monkeypatch):
    """As for nobody in a container: no place beside the source, none at home. Gives the one for temporary files."""
    blocked = folder.parent / "__pycache__"
    blocked.write_text("a file, so that no folder can be made here")
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("HOME", str(blocked))
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    temporary = folder.parent / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(disk_cache.tempfile, "tempdir", str(temporary))
    disk_cache._temporary_folder.cache_clear()
    yield temporary
    disk_cache._temporary_folder.cache_clear()


def test_a_folder_for_temporary_files_serves_where_no_other_does(folder, nowhere, capsys):
    assert compiled(use(folder))
    assert not compiled(use(folder))
    (place,) = nowhere.iterdir()
    assert place.stat().st_mode & 0o777 == 0o700
    assert capsys.readouterr().err.splitlines() == [
        f"associative-lstm: compiled kernels are kept in {place}, since neither the package's folder nor the user's "
        "cache can be written; NUMBA_CACHE_DIR can name another folder for them"
    ]


@pytest.mark.parametrize("foreign", ["others can write to it", "a link"])
def test_what_others_can_write_is_not_run(folder, nowhere, capsys, foreign):
    place = nowhere / f"associative-lstm-{os.getuid()}"
    if foreign == "a link":
        (nowhere / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(nowhere / "elsewhere")
    else:
        place.mkdir()
        place.chmod(0o777)
    assert compiled(use(folder))
    assert compiled(use(folder))
    assert not any(path.is_file() for path in nowhere.rglob("*"))
    said_once(capsys, f"others can write to {place}")


class AtOnce:
    """A timer that does not wait."""

    def __init__(self, seconds, function):
        self.start = function

    def cancel(self):
        pass


def test_another_process_finds_it_and_a_change_of_a_called_kernel_is_noticed(tmp_path):
    package = tmp_path / "associative_lstm"
    shutil.copytree(
        Path(associative_lstm.__file__).parent, package, ignore=shutil.ignore_patterns("lab", "__pycache__")
    )
    (package / "kernels" / "__init__.py").write_text("")  # which would load PyTorch
    start = "from associative_lstm.kernels.compiler.runtime import jit\n"
    outer, inner = package / "kernels" / "outer.py", package / "kernels" / "inner.py"
    outer.write_text(
        f"from associative_lstm.kernels.inner import inner\n{start}@jit\ndef outer(x): return 2 * inner(x)\n"
    )
    program = """
from associative_lstm.kernels.outer import outer
print(outer(1.0), sum(outer.stats.cache_hits.values()))
"""

    def run(change):
        inner.write_text(f"{start}@jit\ndef inner(x): return x + {change}\n")
        environment = os.environ | {
            "PYTHONPATH": str(tmp_path),
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",  # Python itself misses a change within a second
        }
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=HANGS,
            check=True,
        )
        return done.stdout.split()

    assert run(1) == ["4.0", "0"]
    assert run(1) == ["4.0", "1"]
    assert run(2) == ["6.0", "0"]
