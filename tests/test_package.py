"""What is built is what is meant to be, and works where nothing but it and what it declares is installed.

Nothing is downloaded: an empty environment gets the wheel, and links to what this one has of the packages that the
wheel asks for. A package that is used and not declared is missing there.
"""

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import associative_lstm
from waiting import HANGS

ROOT = Path(__file__).parents[1]

LIBRARY = """
import doctest, sys
import torch
from associative_lstm import AssociativeLSTM, HolographicMemory, functional

layer = AssociativeLSTM(3, 32, num_copies=2)
output, (h, c) = layer(torch.randn(5, 2, 3))
output.sum().backward()
assert output.shape == (5, 2, 32) and layer.weight_hh_l0.grad.isfinite().all()
memory = HolographicMemory(64, num_copies=8)
key, value = functional.random_key(64), torch.randn(64)
memory.write(key, value)
assert torch.allclose(memory.read(key), value, atol=1e-5)
tried = doctest.testmod(functional, extraglobs={"torch": torch})
assert tried.attempted > 10 and not tried.failed
assert not {"typer", "matplotlib", "lightning_fabric"} & set(sys.modules)
"""


def run(*command, **options):
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))
    }
    options = {"capture_output": True, "text": True, "timeout": HANGS, "check": False} | options
    return subprocess.run([str(part) for part in command], **{"env": environment} | options)


def needed(requirements, extras):
    """The distributions that these requirements and extras need, with what those need in turn."""
    found, asked = {}, [(text, ("", *extras)) for text in requirements]
    while asked:
        text, extras = asked.pop()
        requirement = Requirement(text)
        if requirement.name in found:
            continue
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        with contextlib.suppress(metadata.PackageNotFoundError):  # CUDA, where PyTorch is its build for CPUs
            distribution = found[requirement.name] = metadata.distribution(requirement.name)
            asked += [(text, ("", *requirement.extras)) for text in distribution.requires or []]
    return found.values()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the sdist and of the wheel made from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = run(*command, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def install(built, tmp_path_factory):
    """A function that makes an environment with the wheel and some extras, and gives its folder of programs."""
    [wheel] = built.glob("*.whl")

    def install(*extras):
        folder = tmp_path_factory.mktemp("environment")
        done = run(sys.executable, "-m", "venv", "--without-pip", folder)
        assert done.returncode == 0, done.stderr
        programs = folder / ("Scripts" if os.name == "nt" else "bin")
        python = programs / "python"
        offline = ["--no-deps", "--no-index", "--disable-pip-version-check"]
        done = run(sys.executable, "-m", "pip", "--python", python, "install", *offline, wheel)
        assert done.returncode == 0, done.stderr
        [site] = folder.rglob("site-packages")
        [described] = site.glob("associative_lstm-*.dist-info")
        for distribution in needed(metadata.Distribution.at(described).requires, extras):
            for file in distribution.files or []:
                name = file.parts[0]
                if name not in ("..", "__pycache__") and not (site / name).exists():
                    (site / name).symlink_to(distribution.locate_file(name))
        return programs

    return install


def test_the_sdist_holds_the_package_and_its_papers(built):
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    outside = {name for name in names if not name.startswith("src/associative_lstm/")}
    assert outside == {
        *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "PKG-INFO", ".gitignore")
    }


def test_the_wheel_holds_the_package_and_nothing_else(built):
    [wheel] = built.glob("*.whl")
    source = ROOT / "src"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    expected = {name for name in files if "__pycache__" not in name and ".egg-info" not in name}
    assert names == expected
    assert "associative_lstm/py.typed" in names
    assert {Path(name).suffix for name in names - {"associative_lstm/py.typed"}} == {
        ".py",
        ".md",
        ".html",
        ".css",
        ".js",
    }


def test_the_version_stands_in_one_place(built):
    [wheel] = built.glob("*.whl")
    assert wheel.name.split("-")[1] == associative_lstm.__version__
    assert "version" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [cited] = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    assert cited == associative_lstm.__version__


def test_the_library_alone_computes_and_says_how_to_get_the_lab(install, tmp_path):
    programs = install()
    done = run(programs / "python", "-W", "error", "-c", LIBRARY, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for arguments in ([], ["--help"], ["train", "xml"], ["info"]):
        done = run(programs / "alstm", *arguments, cwd=tmp_path)
        assert done.returncode == 1
        assert done.stderr.startswith("alstm: the lab is not installed: pip install 'associative-lstm[lab]'")
        assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_lab_needs_its_extra_only(install, tmp_path):
    programs = install("lab")
    done = run(programs / "alstm", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"alstm {associative_lstm.__version__}\n")
    small = ["--model", "lstm", "--hidden-size", "8", "--window", "10", "--steps", "2", "--out", "run"]
    done = run(programs / "alstm", "train", "assignment", *small, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(programs / "alstm", "compare", "run", "--out", "compare.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(programs / "alstm", "reproduce", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(programs / "python", "-c", EVERY_MODULE, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed here")
def test_a_cluster_needs_the_lab_and_its_extra_only(install, tmp_path):
    """Ray itself is started by tests/lab/sweep/test_cluster.py; here, that it is found and asked."""
    programs = install("lab", "cluster")
    nowhere = ["--smoke", "--cluster", "ray", "--address", "127.0.0.1:1"]
    done = run(programs / "alstm", "reproduce", "fig6", *nowhere, cwd=tmp_path)
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


EVERY_MODULE = """
import importlib, pkgutil
import associative_lstm

for module in pkgutil.walk_packages(associative_lstm.__path__, "associative_lstm."):
    if "triton" not in module.name:  # which the extra gpu brings
        importlib.import_module(module.name)
"""
