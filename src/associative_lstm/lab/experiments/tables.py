"""Tables 1, 2 and 3: the size, the number of parameters and the relative speed of every network."""

import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from associative_lstm.lab.bench.timing import Timing
from associative_lstm.lab.config import PRESETS, Config, complete, task_of
from associative_lstm.lab.experiments.claims import Claim, Outcome, judge, write_claims
from associative_lstm.lab.experiments.drawing import markdown_table
from associative_lstm.lab.files import write_atomically
from associative_lstm.lab.model import build_model, count_parameters
from associative_lstm.lab.trainer import Trainer, make_fabric

ROUNDS = 9


@dataclass(frozen=True)
class Row:
    """A network of the paper: its preset, and what the paper says of it."""

    network: str
    size: str
    preset: str
    paper_parameters: int
    paper_speed: float


@dataclass(frozen=True)
class Entry:
    """A row of the finished table; speeds are relative to the first network, seconds of one core for a minibatch."""

    network: str
    size: str
    parameters: int
    paper_parameters: int
    difference: int
    known: str
    speed: float | None
    paper_speed: float
    seconds: float | None


@dataclass(frozen=True)
class Table:
    """One of the paper's tables, and the task and minibatch at which its networks are measured."""

    title: str
    task: str
    rows: tuple[Row, ...]
    batch_size: int | None = None


def _associative(name: str, preset: str, parameters: int, speeds: tuple[float, ...]) -> tuple[Row, ...]:
    size = "128 (64 complex)"
    return tuple(
        Row(
            f"{name}, {copies} {'copy' if copies == 1 else 'copies'}",
            size,
            f"{preset}{copies}",
            parameters,
            speed,
        )
        for copies, speed in zip((1, 4, 8), speeds, strict=True)
    )


TABLES = {
    1: Table(
        "Network sizes on the episodic copy task",
        "copy",
        (
            Row("LSTM", "128", "lstm-128", 72_993, 1.0),
            Row("LSTM nH=512", "512", "lstm-512", 1_078_305, 0.18),
            *_associative("Associative LSTM", "associative-lstm-", 65_505, (0.22, 0.16, 0.12)),
            Row("Permutation RNN", "256", "permutation-rnn-256", 5_642, 2.05),
            Row("Unitary RNN", "256 (128 complex)", "unitary-rnn-256", 6_666, 0.24),
            Row("Multiplicative uRNN", "256 (128 complex)", "multiplicative-unitary-rnn-256", 10_506, 0.23),
        ),
    ),
    2: Table(
        "Network sizes for the arithmetic task",
        "arithmetic",
        (
            Row("LSTM", "128", "lstm-128", 117_747, 1.0),
            Row("LSTM nH=512", "512", "lstm-512", 1_256_691, 0.15),
            *_associative("Associative LSTM", "associative-lstm-", 131_123, (0.19, 0.15, 0.11)),
            *_associative(
                "Associative LSTM nHeads=3", "associative-lstm-3-heads-", 775_731, (0.10, 0.08, 0.07)
            ),
        ),
    ),
    3: Table(
        "Networks compared to a Neural Turing Machine",
        "arithmetic",
        (
            Row("LSTM nH=512", "512", "lstm-512", 1_256_691, 1.0),
            *_associative(
                "Associative LSTM nHeads=3", "associative-lstm-3-heads-", 775_731, (0.66, 0.56, 0.46)
            ),
            Row("NTM nHeads=4", "384, memory 128 x 20", "ntm", 1_097_340, 0.66),
        ),
        batch_size=1,
    ),
}


def run(
    out: Path,
    number: int,
    *,
    steps: int = 10,
    seed: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> Outcome:
    """Count and time the networks of a table: ``steps`` training minibatches each, in each of nine rounds.

    Calls ``advance`` once per network and round. Writes the table as Markdown and JSON, and the verdicts.
    """
    out.mkdir(parents=True, exist_ok=True)
    entries = measure(number, steps=steps, seed=seed, advance=advance)
    claims = judge_table(number, entries)
    table = out / f"table{number}.md"
    write_atomically(table, (f"**{TABLES[number].title}**\n\n{as_markdown(entries)}\n").encode())
    data = out / f"table{number}.json"
    write_atomically(data, (json.dumps([asdict(entry) for entry in entries], indent=2) + "\n").encode())
    about = {"task": TABLES[number].task, "steps": steps, "rounds": ROUNDS, "seed": seed}
    return Outcome([table, data, write_claims(out / "claims.json", claims, **about)], claims)


def read(folder: Path, number: int) -> list[Entry]:
    """The rows of a table that `run` has written."""
    return [
        Entry(**entry) for entry in json.loads((folder / f"table{number}.json").read_text(encoding="utf-8"))
    ]


def measure(number: int, *, steps: int, seed: int, advance: Callable[[], None] = lambda: None) -> list[Entry]:
    """The finished rows of a table; without ``steps``, they are counted and not timed."""
    table = TABLES[number]
    configs = [_config(table, row, seed) for row in table.rows]
    parameters = [count_parameters(build_model(config, task_of(config))) for config in configs]
    timings = _seconds_per_minibatch(configs, steps, advance) if steps else [None] * len(configs)
    first = timings[0]
    return [
        Entry(
            network=row.network,
            size=row.size,
            parameters=count,
            paper_parameters=row.paper_parameters,
            difference=row.paper_parameters - count,
            known=_known(config, row.paper_parameters - count),
            speed=None if timing is None or first is None else first.over(timing),
            paper_speed=row.paper_speed,
            seconds=None if timing is None else timing.median,
        )
        for row, config, count, timing in zip(table.rows, configs, parameters, timings, strict=True)
    ]


def _config(table: Table, row: Row, seed: int) -> Config:
    values: dict[str, Any] = {"task": table.task, "seed": seed, **PRESETS[row.preset]}
    if table.batch_size is not None:
        values["batch_size"] = table.batch_size
    return complete(values)


def _seconds_per_minibatch(
    configs: list[Config], steps: int, advance: Callable[[], None]
) -> Sequence[Timing | None]:
    """Forward, backward and Adam on one core, in several rounds, in which the networks take turns.

    Turns, because the machine's speed drifts; and the thread's own time, because it may be kept waiting.
    """
    trainers = [Trainer(config, make_fabric()) for config in configs]
    for trainer in trainers:
        trainer.train_step()  # compiles what is to be compiled
        trainer.train_step()
    seconds: list[list[float]] = [[] for _ in trainers]
    for _ in range(ROUNDS):
        for trainer, own in zip(trainers, seconds, strict=True):
            started = time.thread_time()
            for _ in range(steps):
                trainer.train_step()
            own.append((time.thread_time() - started) / steps)
            advance()
    return [Timing(tuple(own)) for own in seconds]


def _known(config: Config, difference: int) -> str:
    """What is known of the difference between the paper's count and ours."""
    if difference == 0:
        return "the same"
    assert config.hidden_size is not None
    if config.model == "ntm":
        return "the paper gives the sizes only: how the heads are wired to the controller is not told"
    outputs = config.hidden_size * (config.heads or 1)
    symbols = task_of(config).output_size
    if difference == 2 * (outputs + symbols) + 3:
        return "2(H + n) + 3, as in every LSTM of the paper (H outputs, n symbols); no sentence of it explains this"
    return "unknown"


def judge_table(number: int, entries: list[Entry]) -> list[Claim]:
    """What the tables, and the text about them, say of parameters and speed."""
    by_name = {entry.network: entry for entry in entries}
    counts = [e.parameters for e in entries if e.network.startswith("Associative LSTM, ")] or [
        e.parameters for e in entries if e.network.startswith("Associative LSTM")
    ]
    claims = [
        judge(
            "The number of parameters of an Associative LSTM is not affected by the number of copies.",
            "the counts with 1, 4 and 8 copies are equal",
            len(set(counts)) == 1,
            parameters=float(counts[0]),
        )
    ]
    if number == 1:
        associative, lstm = counts[0], by_name["LSTM"].parameters
        claims.append(
            judge(
                "Associative LSTM has fewer parameters than LSTM if W_hu is zero and real and imaginary parts share "
                "their gates.",
                "our counts at N_h = 128",
                associative < lstm,
                associative_lstm=float(associative),
                lstm=float(lstm),
            )
        )
    unexplained = [e.network for e in entries if e.known == "unknown"]
    claims.append(
        judge(
            "The networks have the numbers of parameters of the table.",
            "ours are the paper's but for differences whose form is known",
            None if any("not told" in e.known for e in entries) else not unexplained,
            exact=float(sum(e.difference == 0 for e in entries)),
            of=float(len(entries)),
            largest_difference=float(max(abs(e.difference) for e in entries)),
        )
    )
    speeds = [(e.speed, e.paper_speed) for e in entries if e.speed is not None]
    pairs = [(a, b) for a, b in itertools.combinations(speeds, 2) if a[1] != b[1]]
    agree = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in pairs)
    claims.append(
        judge(
            "The networks are as fast, relative to each other, as in the table.",
            "every pair of networks is in the paper's order by speed",
            agree == len(pairs) if pairs else None,
            pairs_in_order=float(agree),
            pairs=float(len(pairs)),
        )
    )
    return claims


HEADER = ["network", "N_h", "parameters", "paper", "difference", "speed", "paper", "ms per minibatch"]


def as_cells(entry: Entry) -> list[str]:
    """A row of the table as text."""
    return [
        entry.network,
        entry.size,
        f"{entry.parameters:,}",
        f"{entry.paper_parameters:,}",
        f"{entry.difference:,}",
        "" if entry.speed is None else f"{entry.speed:.2f}",
        f"{entry.paper_speed:.2f}",
        "" if entry.seconds is None else f"{1000 * entry.seconds:.1f}",
    ]


def as_markdown(entries: list[Entry]) -> str:
    """The table, and below it what is known of the differences."""
    known = dict.fromkeys(entry.known for entry in entries if entry.difference)
    differences = {
        why: dict.fromkeys(f"{e.difference:,}" for e in entries if e.known == why) for why in known
    }
    lines = [f"- difference {' and '.join(numbers)}: {why}." for why, numbers in differences.items()]
    table = markdown_table(HEADER, map(as_cells, entries))
    speed = (
        "Speed is relative to the first network: a training minibatch (forward, backward, Adam) on one core."
    )
    return "\n".join([table, "", speed, *([""] if lines else []), *lines])
