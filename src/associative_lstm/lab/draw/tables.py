"""Tables as files and as Markdown."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

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


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown.

    >>> print(markdown_table(["network", "N_h"], [["LSTM", 128]]))
    | network | N_h |
    | --- | --- |
    | LSTM | 128 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
