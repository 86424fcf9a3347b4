"""What was measured, as Markdown."""

from typing import Any

from associative_lstm.lab.draw.tables import markdown_table
from associative_lstm.lab.words import counted

_STEP = "A training step is forward, backward and Adam (fused=True)."
_RATIOS = (
    "Speed is the time of what is compared with over that of the network, so 2 is twice as fast. Such a ratio is the "
    "median over turns, in each of which both were called; milliseconds are medians too."
)

_NARROWER = (
    "What is held to narrower vectors was measured on this same machine: Numba, PyTorch and PyTorch's libraries were "
    "told by their own settings to use no others."
)


def markdown(results: dict[str, Any]) -> str:
    """All that `alstm bench` has measured, in tables.

    >>> print(markdown({"versions": {"torch": "2.13.0"}}))  # doctest: +ELLIPSIS
    # Speed and memory
    <BLANKLINE>
    Measured with torch 2.13.0.
    <BLANKLINE>
    A training step is forward, backward and Adam (fused=True).
    Speed is ...
    <BLANKLINE>
    """
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    head = ["# Speed and memory", "", f"Measured with {versions}.", "", _STEP, _RATIOS, ""]
    if "narrower" in results:
        head += [_NARROWER, ""]
    return "\n".join([*head, *tables(results)])


def tables(results: dict[str, Any]) -> list[str]:
    """What was measured, or a part of it, line by line."""
    lines: list[str] = []
    for group in [*results.get("groups", []), *results.get("narrower", [])]:
        what = (
            f"{group['what']}, T {group['steps']}, B {group['batch']}, {counted(group['threads'], 'thread')}"
        )
        if "vector_bytes" in group:
            what += f", held to vectors of {group['vector_bytes']} bytes"
        lines += [f"## {group['title']}: {what}", ""]
        lines += _table(
            ["network", "speed", "ms", "quartiles", f"{group['against']}, ms", "the paper's speed"],
            [
                [
                    row["network"],
                    f"{row['speed']:.2f}",
                    f"{row['milliseconds']:.2f}",
                    "{:.2f} to {:.2f}".format(*row["quartiles"]),
                    f"{row['against']['milliseconds']:.2f}",
                    "" if row["paper"] is None else f"{row['paper']:.2f}",
                ]
                for row in group["rows"][1:]
            ],
        )
    if "itself" in results:
        lines += ["## Against the reference loop, and against its matrix products alone", ""]
        lines += _table(
            ["setting", "network", "threads", "ms", "speed / reference", "speed / products alone"],
            [
                [
                    row["title"],
                    row["network"],
                    str(row["threads"]),
                    f"{row['milliseconds']:.2f}",
                    f"{row['over_reference']:.1f}",
                    f"{row['of_products']:.2f}",
                ]
                for row in results["itself"]
            ],
        )
    if "growth" in results:
        lines += ["## Growth of a training step's time (ms)", ""]
        for row in results["growth"]:
            points = ", ".join(
                f"{v}: {t:.2f}" for v, t in zip(row["values"], row["milliseconds"], strict=True)
            )
            slope = f"exponent {row['exponent']:.2f}, of the last doubling {row['last_doubling']:.2f}"
            lines += [f"- {row['quantity']}: {points}; {slope}"]
        lines += [""]
    if "memory" in results:
        lines += ["## Peak memory of a training step", ""]
        lines += _table(
            ["setting", "traces and pre-activations, MiB", "peak, MiB", "ratio"],
            [
                [
                    ", ".join(f"{name} {value}" for name, value in row["setting"].items()),
                    f"{row['saved'] / 2**20:.1f}",
                    f"{row['peak'] / 2**20:.1f}",
                    f"{row['peak'] / row['saved']:.2f}",
                ]
                for row in results["memory"]
            ],
        )
    if "tasks" in results:
        lines += ["## Making a minibatch", ""]
        lines += _table(
            ["task", "microseconds", "of a training step"],
            [[row["task"], f"{row['microseconds']:.0f}", f"{row['share']:.1%}"] for row in results["tasks"]],
        )
    if "start" in results:
        lines += ["## The first training step of a process", ""]
        lines += _table(
            ["kernels", "seconds of the step", "seconds of the imports"],
            [[row["what"], f"{row['step']:.1f}", f"{row['imports']:.1f}"] for row in results["start"]],
        )
    if "help" in results:
        lines += ["## Help", ""]
        lines += _table(
            ["command", "seconds", "times an empty Python program"],
            [[row["what"], f"{row['seconds']:.2f}", f"{row['ratio']:.0f}"] for row in results["help"]],
        )
    return lines


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [markdown_table(header, rows), ""]
