"""Every example runs, in its small form, in a process of its own, with warnings as errors."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import HANGS

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

SAID = {
    "distributed": "1 process(es), loss ",
    "export": "exported: (50, 7, 16)",
    "key_value_store": "dollar is to the usa as peso is to mexico",
    "own_task": "step 5: ",
    "own_text": "lstm: ",
    "tagger": "AssociativeLSTM: ",
}


def run(folder, *command):
    found = {name: os.environ[name] for name in ("PYTHONPATH", "NUMBA_CACHE_DIR") if name in os.environ}
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT", "TEMP") if name in os.environ}
    environment = kept | found | {"OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
    command = [sys.executable, "-W", "error", *map(str, command)]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANGS, check=False
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(example, tmp_path):
    done = run(tmp_path, example, "--small")
    assert done.returncode == 0, done.stderr
    assert SAID[example.stem] in done.stdout


def test_the_store_reads_back_all_that_was_stored(tmp_path):
    done = run(tmp_path, ROOT / "examples" / "key_value_store.py")
    for line in ("20 of 20 variables read back", "left: big red cube", "right: big blue cone"):
        assert line in done.stdout


def test_two_processes_train_one_network(tmp_path):
    """What is printed does not depend on which of them comes first: the first process speaks."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = ["-W", "default", *launch]  # the launcher's own warnings are not ours
    done = run(tmp_path, *environment, ROOT / "examples" / "distributed.py", "--small")
    assert done.returncode == 0, done.stderr
    assert "2 process(es), loss " in done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_in_the_percent_format_and_on_the_page_of_examples(example):
    cells = re.findall(r"^# %%( \[markdown\])?$", example.read_text(), flags=re.MULTILINE)
    assert "" in cells
    assert cells[0] == " [markdown]"
    assert f"examples/{example.name}" in (ROOT / "docs" / "examples.md").read_text()
