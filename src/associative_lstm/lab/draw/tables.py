"""Tables as files and as Markdown."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from associative_lstm.lab.files import write_atomically


def save_table(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """Write rows as CSV, floats with six digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
    write_atomically(path, text.getvalue().encode())
    return path


Measured = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
"""Rows of numbers by two of their entries: by task and network, say."""


def save_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows as JSON, a line each."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    write_atomically(path, f"[\n{lines}\n]\n".encode())
    return path


def read_rows(path: Path, first: str, second: str) -> Measured:
    """The rows that `save_rows` wrote, by these two entries."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in json.loads(path.read_text(encoding="utf-8")):
        found.setdefault((row[first], row[second]), []).append(row)
    return found


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown.

    >>> print(markdown_table(["network", "N_h"], [["LSTM", 128]]))
    | network | N_h |
    | --- | --- |
    | LSTM | 128 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
