"""The study: what trained networks recall, task by task. Its numbers are kept, and its claims judged from these."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from associative_lstm.lab.draw.tables import Measured, markdown_table, read_rows, save_rows
from associative_lstm.lab.experiments.claim import Claim, judge, write_claims
from associative_lstm.lab.experiments.experiment import Advance, Experiment, Outcome
from associative_lstm.lab.experiments.inside.meant import ALIKE
from associative_lstm.lab.experiments.inside.measure import measure
from associative_lstm.lab.experiments.learning.curves import Curve, curve
from associative_lstm.lab.experiments.learning.runs import Logs, Run
from associative_lstm.lab.files import RunError, write_atomically
from associative_lstm.lab.run.checkpoint import find_checkpoints
from associative_lstm.lab.run.evaluation import load_trained
from associative_lstm.lab.words import counted

COPY = "copy", "fast-associative-lstm-4"
XML = "xml", "fast-small"
ASSIGNMENT = "assignment", "fast-associative-lstm-4"
ARITHMETIC = "arithmetic", "fast-3-heads-4"
ONE_HEAD = "arithmetic", "fast-associative-lstm-4"
LAW = [(task, f"fast-associative-lstm-{n}") for task in ("xml", "assignment") for n in (1, 4, 8)]
STUDIED = list(dict.fromkeys([COPY, XML, ASSIGNMENT, ARITHMETIC, ONE_HEAD, *LAW]))

Judged = tuple[bool | None, dict[str, float | str]]


@dataclass(frozen=True)
class InsideStudy(Experiment):
    """An experiment on the weights of runs, which are made first if they are missing."""

    answers: int = 200

    @property
    def needed(self) -> list[Curve]:
        """The curves whose runs are looked into."""
        return [curve(*which) for which in STUDIED]

    def runs(self, logs: Logs) -> list[tuple[tuple[str, str], Run]]:
        """The finished runs by task and network; one without weights is a RunError."""
        found = [
            (which, run)
            for which in STUDIED
            for c in [logs.curve(curve(*which))]
            for run in c.runs
            if run.diverged is None and run.steps >= c.curve.steps
        ]
        for _, run in found:
            if not find_checkpoints(run.folder):
                raise RunError(f"{run.folder} has no weights: choose --runs where the runs can be made anew")
        return found

    def draw(
        self,
        out: Path,
        logs: Logs,
        *,
        advance: Advance = lambda: None,
        **about: object,
    ) -> Outcome:
        """Look into every run, and judge; ``about`` goes with the verdicts. Nothing is drawn."""
        rows = []
        for (task, network), run in self.runs(logs):
            known = {"task": task, "network": network, "run": logs.name(run.folder), "seed": run.config.seed}
            answers = 20 if about.get("smoke") else self.answers
            rows.append(known | measure(load_trained(run.folder), answers, seed=run.config.seed))
            advance()
        return write(out, rows, **about)


def write(out: Path, rows: Sequence[Mapping[str, Any]], **about: object) -> Outcome:
    """The numbers, the verdicts and the page."""
    out.mkdir(parents=True, exist_ok=True)
    numbers, page = save_rows(out / "measured.json", rows), out / "README.md"
    measured = read(out)
    claims = judge_all(measured)
    write_atomically(page, page_of(measured, claims).encode())
    return Outcome([numbers, page, write_claims(out / "claims.json", claims, **about)], claims)


def read(out: Path) -> Measured:
    """The numbers that were kept in a folder."""
    return read_rows(out / "measured.json", "task", "network")


# --- the claims: their criteria were written down before anything was measured


def judge_all(measured: Measured) -> list[Claim]:
    """Every claim with its verdict, undecided where runs are missing; what holds, where a seed is."""
    claims = []
    for key, (sentence, criterion, needs, decide) in CLAIMS.items():
        missing = [f"{task}/{network}" for task, network in needs if not measured.get((task, network))]
        numbers: dict[str, float | str]
        if missing:
            holds, numbers = None, {"not_yet_run": ", ".join(missing)}
        else:
            holds, numbers = decide([measured[need] for need in needs])
            if holds and any(len(measured[need]) < len(curve(*need).seeds) for need in needs):
                holds, numbers = None, numbers | {"reason": "not all seeds are there"}
            numbers.setdefault("seeds", float(min(len(measured[need]) for need in needs)))
        claims.append(replace(judge(sentence, criterion, holds, **numbers), key=key))
    return claims


def _recalled(runs: Sequence[Sequence[Mapping[str, Any]]]) -> Judged:
    """In every seed nine of ten right answers."""
    shares = [row["groups"]["all"]["recalled"] for row in runs[0]]
    if None in shares:
        return None, {"reason": "a seed has no right answer"}
    return min(shares) >= 0.9, {"smallest": min(shares), "mean": _mean(shares), "seeds": float(len(shares))}


def _in_place(runs: Sequence[Sequence[Mapping[str, Any]]]) -> Judged:
    right = _mean(row["wrong letters"]["right"] for row in runs[0])
    wrong = _mean(row["wrong letters"]["wrong"] for row in runs[0])
    numbers: dict[str, float | str] = {"right after right letters": right, "right after random ones": wrong}
    if right < 0.5:
        return None, numbers
    return True if wrong >= 0.9 * right else False if wrong < 0.5 * right else None, numbers


def _per_depth(runs: Sequence[Sequence[Mapping[str, Any]]]) -> Judged:
    around, *closed = (
        f"{tags}, the same letter"
        for tags in ("tags open around it", "closed tags of this depth", "closed tags of other depths")
    )
    if any(not {"what was meant", around, *closed} <= {*row.get("votes", {})} for row in runs[0]):
        return None, {"reason": "a seed has no right answer of every kind"}
    shares = [row["votes"][around] / row["votes"]["what was meant"] for row in runs[0]]
    numbers: dict[str, float | str] = {"largest share": max(shares)}
    for kind in (around, *closed):
        numbers[f"bits of {kind}"] = _mean(row["votes"][kind] for row in runs[0])
    numbers["bits of what was meant"] = _mean(row["votes"]["what was meant"] for row in runs[0])
    return max(shares) < 0.1, numbers


def _not_mistaken(runs: Sequence[Sequence[Mapping[str, Any]]]) -> Judged:
    right = {name: _mean(row["groups"][name]["right"] for row in runs[0]) for name in ALIKE}
    return right[ALIKE[2]] >= 0.9 * right[ALIKE[0]], {
        f"right, {name}": share for name, share in right.items()
    }


def _divided(runs: Sequence[Sequence[Mapping[str, Any]]]) -> Judged:
    """Whether each kind of write has a head that gives half of its bits and more, and not the same for all."""
    leading, firsts = [], []
    for row in runs[0]:
        shares = np.array(list(row.get("shares", {}).values()))
        if not shares.size:
            return None, {"reason": "a seed has no right answer"}
        large = shares[shares.sum(1) >= 0.05 * shares.sum()]
        leading.append(float((large.max(1) / large.sum(1)).mean()))
        firsts.append(len({*large.argmax(1).tolist()}))
    numbers: dict[str, float | str] = {"share of the leading head, smallest": min(leading)}
    numbers |= {"heads that lead in something, fewest": float(min(firsts))}
    return min(leading) >= 0.5 and min(firsts) > 1, numbers


def _law(runs: Sequence[Sequence[Mapping[str, Any]]]) -> Judged:
    """The error goes as items / copies: both exponents are 1."""
    numbers: dict[str, float | str] = {}
    verdicts = []
    for task, some in (("xml", runs[:3]), ("assignment", runs[3:])):
        noise = [row["noise"] for curve_ in some for row in curve_]
        copies, by_item = (np.log([one[key] for one in noise]) for key in ("copies", "error by item"))
        exponents = {
            "items": _mean(one["exponent of items"] for one in noise),
            "copies": float(np.polyfit(copies, by_item, 1)[0]),
        }
        numbers |= {f"{task}, exponent of {name}": value for name, value in exponents.items()}
        verdicts += [abs(exponents["items"] - 1) <= 0.2, abs(exponents["copies"] + 1) <= 0.2]
    return all(verdicts), numbers


_MOST = "in every seed, of 9 of 10 right answers and more the largest part is that of this write"

CLAIMS: Mapping[str, tuple[str, str, list[tuple[str, str]], Callable[..., Judged]]] = {
    "11a": ("On copy a character is recalled from its own write (ours).", _MOST, [COPY], _recalled),
    "11b": (
        "On XML a letter of a closing tag is recalled from the write of the same letter of the tag that it closes.",
        _MOST,
        [XML],
        _recalled,
    ),
    "11c": (
        "On XML tag names are held in queues: the next letter is found by its place, not by the letters before it.",
        "with the letters of a closing tag so far replaced by random ones, the next is right at least 0.9 times as"
        " often in the mean of the seeds; below 0.5 the claim fails, between them it is undecided",
        [XML],
        _in_place,
    ),
    "11d": (
        "On XML there is a queue for every nesting level.",
        "in every seed, at right letters, the same letter of the tags open around gives less than a tenth of the "
        "bits, each to the symbol that it holds, that the write meant gives to its own",
        [XML],
        _per_depth,
    ),
    "11e": (
        "On variable assignment the query finds the write of the variable's value (ours).",
        _MOST,
        [ASSIGNMENT],
        _recalled,
    ),
    "11f": (
        "Variables that begin alike are not mistaken for each other (ours).",
        "where another variable begins with the same two letters, answers are right at least 0.9 times as often as"
        " where none begins alike, in the mean of the seeds",
        [ASSIGNMENT],
        _not_mistaken,
    ),
    "11g": (
        "On arithmetic a result's digit is recalled from the digits of both numbers in its place (ours).",
        _MOST.replace("this write", "one of the two"),
        [ARITHMETIC],
        _recalled,
    ),
    "11h": (
        "On arithmetic three heads divide the work (ours).",
        "in every seed, of the bits (without sign) of each kind of write that has a twentieth and more of all, one"
        " head has at least half in the mean, and it is not the same head for all kinds",
        [ARITHMETIC],
        _divided,
    ),
    "11i": (
        "In trained networks too, the error of a read is proportional to items / copies.",
        "1, 4 and 8 copies, on XML and on variable assignment: the exponent of the interference (by the signal's "
        "power) over the items (other writes, by the power left of them) within a run, in the mean, and of the "
        "interference by item over the copies, are 1 and -1 within 0.2",
        LAW,
        _law,
    ),
}


# --- the page


def page_of(measured: Measured, claims: Sequence[Claim]) -> str:
    """What was measured, as Markdown: a section for every task."""
    by_key = {claim.key: claim for claim in claims}
    sections = [
        ("Copy", [COPY], "a"),
        ("XML", [XML, ("xml", "fast-associative-lstm-4")], "bcd"),
        ("Variable assignment", [ASSIGNMENT], "ef"),
        ("Arithmetic", [ARITHMETIC, ONE_HEAD], "gh"),
    ]
    lines = [
        "Means over the seeds, smallest and largest in brackets. Recalled: of the right answers, those whose "
        "largest part is that of the write meant. Found: of all candidates (other values, letters, characters), "
        "the write meant speaks most for the symbol that it holds, whatever is answered. Bits are of the logit "
        "answered, less the mean of all logits.",
        "",
    ]
    for title, curves, keys in sections:
        lines += [f"### {title}", ""]
        lines += [_hypothesis(*(by_key[f"11{key}"] for key in keys)), ""] if title == "XML" else []
        lines += [*(by_key[f"11{key}"].item for key in keys), ""]
        there = {which: measured[which] for which in curves if measured.get(which)}
        lines += [_answers_table(there), ""] if there else []
        for which, runs in there.items():
            lines += _kinds(which, runs)
    lines += ["### Signal and noise", "", by_key["11i"].item, "", *_noise_table(measured)]
    return "\n".join(lines).rstrip() + "\n"


def _hypothesis(looked_up: Claim, by_place: Claim, per_level: Claim) -> str:
    return (
        "The paper supposes that this task is solved “by using associative lookup to implement multiple queues”. "
        f"Judged apart: that the letters of the tag itself are looked up {_so(looked_up)}, that they are found by "
        f"their place, as in a queue, {_so(by_place)}, and that there is a queue for every level {_so(per_level)}."
    )


def _so(claim: Claim) -> str:
    return "is undecided" if claim.verdict == "undecided" else claim.verdict


def _answers_table(measured: Measured) -> str:
    header = [
        "network",
        "answers",
        "right",
        "recalled",
        "found",
        "bits of the write meant",
        "of the largest other",
    ]
    rows = []
    for (_, network), runs in measured.items():
        label = f"{curve(*next(w for w in measured if w[1] == network)).network.label}, {counted(len(runs), 'seed')}"
        groups = list(dict.fromkeys(name for row in runs for name in row["groups"]))
        if groups[1:] and set(groups[1:]) == set(ALIKE):
            groups.remove("all")  # as many of each group are no sample of the task
        for name in groups:
            some = [row["groups"][name] for row in runs if name in row["groups"]]
            cells = [_spread([one[k] for one in some], ".0%") for k in ("right", "recalled", "found")]
            cells += [_spread([one[k] for one in some], ".1f") for k in ("bits", "next")]
            rows.append([label, name, *cells])
            label = ""
    return markdown_table(header, rows)


def _kinds(which: tuple[str, str], runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What other writes give to an answer, by kind."""
    label = curve(*which).network.label
    votes, shares = ([row[key] for row in runs if key in row] for key in ("votes", "shares"))
    if votes:
        yield f"At right answers of {label}, the bits that a write gives to the symbol that it holds:"
        yield ""
        kinds = sorted({kind for row in votes for kind in row}, key=_place)
        rows = [[kind, _spread([row[kind] for row in votes if kind in row], ".1f")] for kind in kinds]
        yield markdown_table(["write", "bits"], rows)
        yield ""
    if shares:
        yield f"At right answers of {label}, the share of each kind of write in all bits (without sign), by head:"
        yield ""
        heads = range(len(next(iter(shares[0].values()))))
        header = ["write", *(f"head {head + 1}" for head in heads)]
        rows = [
            [kind, *(_spread([row[kind][head] for row in shares], ".0%") for head in heads)]
            for kind in shares[0]
        ]
        yield markdown_table(header, rows)
        yield ""


def _place(kind: str) -> tuple[bool, str]:
    """Where a kind of write stands in a table: what was meant comes first."""
    return not kind.endswith(("meant", "its place")), kind


def _noise_table(measured: Measured) -> Iterator[str]:
    header = [
        "task",
        "copies",
        "seeds",
        "items",
        "interference / signal",
        "by item",
        "exponent of items",
        "in the logits",
    ]
    rows = []
    for which in LAW:
        noise = [row["noise"] for row in measured.get(which, ()) if "noise" in row]
        if noise:
            keys = ("items", "error", "error by item", "exponent of items", "error of the answer")
            cells = [_spread([one[key] for one in noise], ".3g") for key in keys]
            rows.append([which[0], noise[0]["copies"], len(noise), *cells])
    if rows:
        yield (
            "Both in power, medians over the answers of a run. Items: what is left of all other writes, by what is "
            "left of the write meant. The law of section 3 is interference / signal = items / copies. In the logits: "
            "the same of what the output gate and the readout let through:"
        )
        yield ""
        yield markdown_table(header, rows)


def _spread(values: Sequence[float | None], form: str) -> str:
    there = [value for value in values if value is not None]
    if not there:
        return ""
    text = format(_mean(there), form)
    return text if len(there) == 1 else f"{text} ({min(there):{form}} to {max(there):{form}})"


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


INSIDE = InsideStudy(
    "inside",
    "Inside: what trained networks recall",
    "Ours, not the paper's: of every answer, which write it was read from, and whether that was the one meant.",
    page="README.md",
    ours=True,
)
