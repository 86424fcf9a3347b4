"""Tables 1, 2 and 3: the size, the number of parameters and the relative speed of every network."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from associative_lstm.lab.bench import speed
from associative_lstm.lab.draw.tables import markdown_table
from associative_lstm.lab.experiments.claim import Claim, judge, write_claims
from associative_lstm.lab.experiments.experiment import Advance, Experiment, Outcome
from associative_lstm.lab.files import write_atomically
from associative_lstm.lab.run.config import Config, complete, task_of
from associative_lstm.lab.run.model import build_model, count_parameters
from associative_lstm.lab.run.recipes import PRESETS
from associative_lstm.lab.words import counted

SECONDS = 4.0
"""For timing the networks of a table, at least."""


@dataclass(frozen=True)
class Row:
    """A network of the paper: its preset, and how many parameters the paper counts."""

    network: str
    size: str
    preset: str
    paper_parameters: int


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
class Table(Experiment):
    """One of the paper's tables, at whose task and minibatch its networks are counted; ``timed`` is its benchmark.

    The networks of that are those of the rows, in the same order.
    """

    task: str
    timed: speed.Group
    rows: Sequence[Row]
    batch_size: int | None = None

    def write(self, out: Path, entries: list[Entry], **about: object) -> Outcome:
        """The finished rows as Markdown and JSON, and the verdicts; ``about`` goes with these."""
        out.mkdir(parents=True, exist_ok=True)
        claims = judge_entries(entries, embedded=self.task == "copy")
        table, data = out / self.page, out / f"{self.name}.json"
        caption = self.title.removeprefix(f"{self.short}: ")
        write_atomically(table, f"**{caption}**\n\n{as_markdown(entries)}\n".encode())
        write_atomically(data, (json.dumps([asdict(entry) for entry in entries], indent=2) + "\n").encode())
        written = write_claims(out / "claims.json", claims, task=self.task, **about)
        return Outcome([table, data, written], claims)

    def measure(self, *, steps: int, seed: int, advance: Advance = lambda: None) -> list[Entry]:
        """The finished rows: counted, and timed as `alstm bench` does for ``steps`` steps or more, if any.

        Calls ``advance`` once per network that is timed.
        """
        times: list[dict[str, Any]] = [{}] * len(self.rows)
        if steps:
            times = speed.measure(self.timed, 1, SECONDS, seed, least=max(2, steps), advance=advance)["rows"]
        paper = [1.0, *(ratio for ratio in self.timed.paper if ratio is not None)]
        rows = zip(self.rows, paper, times, strict=True)
        return [self._entry(row, ratio, time, seed) for row, ratio, time in rows]

    def _entry(self, row: Row, paper_speed: float, time: Mapping[str, Any], seed: int) -> Entry:
        batch = {} if self.batch_size is None else {"batch_size": self.batch_size}
        config = complete({"task": self.task, "seed": seed, **PRESETS[row.preset], **batch})
        parameters = count_parameters(build_model(config, task_of(config)))
        difference = row.paper_parameters - parameters
        counted = parameters, row.paper_parameters, difference, _known(config, difference)
        timed = time.get("speed"), paper_speed, time["milliseconds"] / 1e3 if time else None
        return Entry(row.network, row.size, *counted, *timed)


def _associative(name: str, preset: str, parameters: int) -> list[Row]:
    return [
        Row(f"{name}, {counted(copies, 'copy')}", "128 (64 complex)", f"{preset}{copies}", parameters)
        for copies in (1, 4, 8)
    ]


def _table(number: int, caption: str, text: str, task: str, *rows: Row, **options: Any) -> Table:
    name, timed = f"table{number}", speed.TABLES[number - 1]
    return Table(name, f"Table {number}: {caption}", text, task, timed, rows, page=f"{name}.md", **options)


_HEADS = _associative("Associative LSTM nHeads=3", "associative-lstm-3-heads-", 775_731)

TABLES = (
    _table(
        1,
        "Network sizes on the episodic copy task",
        "Parameters and relative speed of the networks of figures 3 and 4.",
        "copy",
        Row("LSTM", "128", "lstm-128", 72_993),
        Row("LSTM nH=512", "512", "lstm-512", 1_078_305),
        *_associative("Associative LSTM", "associative-lstm-", 65_505),
        Row("Permutation RNN", "256", "permutation-rnn-256", 5_642),
        Row("Unitary RNN", "256 (128 complex)", "unitary-rnn-256", 6_666),
        Row("Multiplicative uRNN", "256 (128 complex)", "multiplicative-unitary-rnn-256", 10_506),
    ),
    _table(
        2,
        "Network sizes for the arithmetic task",
        "Parameters and relative speed of the networks of figures 8 and 9.",
        "arithmetic",
        Row("LSTM", "128", "lstm-128", 117_747),
        Row("LSTM nH=512", "512", "lstm-512", 1_256_691),
        *_associative("Associative LSTM", "associative-lstm-", 131_123),
        *_HEADS,
    ),
    _table(
        3,
        "Networks compared to a Neural Turing Machine",
        "Parameters and relative speed of the networks of figures 11 to 13, with minibatches of one sequence.",
        "arithmetic",
        Row("LSTM nH=512", "512", "lstm-512", 1_256_691),
        *_HEADS,
        Row("NTM nHeads=4", "384, memory 128 x 20", "ntm", 1_097_340),
        batch_size=1,
    ),
)


_FORM = "2(H + n) + 3"


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
        return (
            f"{_FORM}, as in every LSTM of the paper (H outputs, n symbols); no sentence of it explains this"
        )
    return "unknown"


def judge_entries(entries: list[Entry], *, embedded: bool = False) -> list[Claim]:
    """What the tables, and the text about them, say of parameters and speed; ``embedded``: W_hu is zero."""
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
    if embedded:
        associative, lstm = counts[0], entries[0].parameters
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
    unexplained = [e.network for e in entries if e.difference and _FORM not in e.known]
    claims.append(
        judge(
            "The networks have the numbers of parameters of the table, up to 2(H + n) + 3, which nothing in the "
            "paper explains.",
            "ours are the paper's but for differences whose form is known",
            not unexplained,
            exact=float(sum(e.difference == 0 for e in entries)),
            with_a_difference_of_known_form=float(sum(_FORM in e.known for e in entries)),
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
    note = (
        "Speed is relative to the first network: a training minibatch (forward, backward, Adam) on one core."
    )
    return "\n".join([table, "", note, *([""] if lines else []), *lines])
