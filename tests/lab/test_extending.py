"""The task of one's own in the documentation is trained as it is printed, only not for so long."""

import re
import shlex
from pathlib import Path

from associative_lstm.lab import cli, from_file
from associative_lstm.lab.run.folder import read_log

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


def test_the_task_of_ones_own_can_be_trained(tmp_path, monkeypatch):
    section = PAGE.read_text().split("## A task", 1)[1].split("\n## ", 1)[0]
    [program] = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    [command] = re.findall(r"^alstm train echo .*", section, flags=re.MULTILINE)
    _, *arguments = shlex.split(command)
    monkeypatch.chdir(tmp_path)
    Path("echo.py").write_text(program)
    try:
        assert cli.main([*arguments, "--steps", "3", "--out", "run"]) == 0
    finally:
        from_file.forget()
    assert read_log("run")[-1]["step"] == 3
