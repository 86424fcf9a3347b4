"""The README's task of one's own is trained as it is printed, only not for so long."""

import re
from pathlib import Path

from associative_lstm.lab.runlog import read_log
from associative_lstm.lab.tasks import TASKS

README = Path(__file__).parents[2] / "README.md"


def test_the_readmes_task_can_be_trained(tmp_path, monkeypatch):
    section = README.read_text().split("A task of your own is one small class", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(blocks) == 2
    program = "\n".join(blocks)
    assert '"steps": 2000' in program
    monkeypatch.chdir(tmp_path)
    try:
        exec(program.replace('"steps": 2000', '"steps": 3'), {"__name__": "readme"})
        [line] = read_log("runs/echo")
    finally:
        TASKS.pop("echo", None)
    assert line["step"] == 3
