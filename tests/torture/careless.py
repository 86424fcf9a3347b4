"""A command that breaks rules where there are files of the user's, to see that the harness sees it."""

import sys
from pathlib import Path

from associative_lstm.lab.cli import main as careful
from torture import rules


def main() -> int:
    """The command as it is, and in the places of the harness one that deletes a file and shows where it failed."""
    there = [folder for folder in (Path(), Path("../canary")) if (folder / rules.MINE).exists()]
    for folder in there:
        (folder / rules.MINE).unlink()
    if there:
        print("\x1b[31m", file=sys.stderr)
        raise RuntimeError("careless")
    return careful()
