"""The README's task of one's own is trained as it is printed, only not for so long."""

import re
import shlex
from pathlib import Path

from associative_lstm.lab import cli, from_file
from associative_lstm.lab.run.folder import read_log

README = Path(__file__).parents[2] / "README.md"


def test_the_readmes_task_can_be_trained(tmp_path, monkeypatch):
    section = README.read_text().split("A task of your own is one small class", 1)[1].split("\n## ", 1)[0]
    [program] = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    [command] = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
    _, *arguments = shlex.split(command)
    monkeypatch.chdir(tmp_path)
    Path("echo.py").write_text(program)
    try:
        assert cli.main([*arguments, "--steps", "3", "--out", "run"]) == 0
    finally:
        from_file.forget()
    assert read_log("run")[-1]["step"] == 3
