"""The comparison: its runs; then, from their logs, how much each network recalls, and the claims about that."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from associative_lstm.lab.draw.pictures import save_figure
from associative_lstm.lab.draw.tables import Measured, read_rows, save_rows
from associative_lstm.lab.experiments.claim import Claim, judge, write_claims
from associative_lstm.lab.experiments.experiment import Advance, Experiment, Outcome
from associative_lstm.lab.experiments.learning.measures import both
from associative_lstm.lab.experiments.learning.runs import Logs, Run
from associative_lstm.lab.experiments.recall import cost, forgetting, grid
from associative_lstm.lab.experiments.recall.drawing import draw, draw_dependence, draw_learning
from associative_lstm.lab.experiments.recall.grid import (
    CLOSE,
    COPIES,
    DRAWN,
    MAD,
    MODERN,
    PAIRS,
    SETTINGS,
    SIXTEEN,
    SLOW,
    TRACKING,
    UNAIDED,
    whole,
)
from associative_lstm.lab.experiments.recall.page import page_of
from associative_lstm.lab.files import write_atomically
from associative_lstm.lab.run.folder import read_tests

Need = tuple[str, str]
"""A setting and a network."""

Judged = tuple[bool | None, dict[str, float | str]]


@dataclass(frozen=True)
class RecallStudy(Experiment):
    """An experiment on the accuracy that runs have logged; the runs are made first if they are missing."""

    def draw(
        self, out: Path, logs: Logs, *, advance: Advance = lambda: None, seconds: float = 4.0, **about: object
    ) -> Outcome:
        """Read what there is of the runs, time the networks, and judge; ``about`` goes with the verdicts."""
        rows = measured_rows(logs)
        forgetting.look(out, logs)
        costs = cost.measure(seconds, advance)
        return write(out, rows, costs, **about)


def measured_rows(logs: Logs) -> list[dict[str, Any]]:
    """A row for every seed that is done: the accuracy on the test split, and on longer sequences; how it learned."""
    rows = []
    for setting in SETTINGS.values():
        for point in setting.points:
            found = logs.curve(setting.curve(point))
            for run in found.runs:
                tests = {test["step"]: test for test in read_tests(run.folder)}
                last = tests.get(found.curve.steps)
                if last is None and run.diverged is None:
                    continue
                state, parameters = setting.sizes(point)
                rows.append(
                    {
                        "setting": setting.name,
                        "network": point.name,
                        "seed": run.config.seed,
                        "rate": run.config.learning_rate,
                        "state": state,
                        "parameters": parameters,
                        "accuracy": 0.0 if last is None else last["accuracy"],
                        **(
                            {"longer": last["longer_accuracy"] if last else 0.0}
                            if setting.name in (*TRACKING, UNAIDED)
                            else {}
                        ),
                        **({"diverged": True} if run.diverged else {}),
                        **(_learning(run, last) if setting.name in DRAWN else {}),
                    }
                )
    return rows


def _learning(run: Run, last: Mapping[str, Any] | None) -> dict[str, Any]:
    """What an answer cost in training, in bits, by minibatch, and on held-out sequences at the end."""
    bits = [(int(step), round(float(cost), 3)) for step, cost in zip(run.step, run.cost, strict=True)]
    return {"bits": bits} | ({} if last is None else {"held_out_bits": round(last["cost"], 3)})


def write(
    out: Path, rows: Sequence[Mapping[str, Any]], costs: Sequence[Mapping[str, Any]], **about: object
) -> Outcome:
    """The numbers, the verdicts, the pictures and the page."""
    out.mkdir(parents=True, exist_ok=True)
    numbers = save_rows(out / "measured.json", rows)
    write_atomically(out / "cost.json", (json.dumps(list(costs), indent=1) + "\n").encode())
    measured, kept, reasons = read(out)
    claims = judge_all(measured)
    write_atomically(out / "README.md", page_of(measured, claims, kept, reasons).encode())
    written = [
        save_figure(draw(measured), out / "recall.png"),
        save_figure(draw_dependence(measured), out / "dependence.png"),
        *([save_figure(learning, out / "learning.png")] if (learning := draw_learning(measured)) else []),
        numbers,
        out / "cost.json",
        *([out / forgetting.FILE] if reasons else []),
        out / "README.md",
        write_claims(out / "claims.json", claims, **about),
    ]
    return Outcome(written, claims)


def read(out: Path) -> tuple[Measured, list[dict[str, Any]], forgetting.Reasons]:
    """What was kept in a folder: accuracy by setting and network, what each network costs, why it forgets."""
    measured = read_rows(out / "measured.json", "setting", "network")
    return measured, json.loads((out / "cost.json").read_text(encoding="utf-8")), forgetting.kept(out)


# --- the claims: their criteria were written down before any run that is judged; those that were changed once, or
# --- added after other runs had been seen, say so


def judge_all(measured: Measured) -> list[Claim]:
    """Every claim with its verdict; undecided while a seed is missing."""
    claims = []
    for key, (sentence, criterion, needs, decide) in CLAIMS.items():
        missing = [
            f"{_label(setting, network)} on {SETTINGS[setting].title}"
            for setting, network in needs
            if not whole(measured, setting, network)
        ]
        holds, numbers = (None, {"not_yet_run": "; ".join(missing)}) if missing else decide(measured)
        claims.append(dataclasses.replace(judge(sentence, criterion, holds, **numbers), key=key))
    return claims


def _mean(measured: Measured, setting: str, network: str, what: str = "accuracy") -> float:
    return float(np.mean(whole(measured, setting, network, what)))


def _seeds(measured: Measured, setting: str, network: str) -> str:
    """The mean, and the worst and the best seed."""
    found = whole(measured, setting, network)
    return f"{np.mean(found):.3f} ({min(found):.2f} to {max(found):.2f})"


def _label(setting: str, network: str) -> str:
    return next(point.label for point in SETTINGS[setting].points if point.name == network)


_OPEN, _SHIFT = "associative-64-16-open-associative-lstm", "associative-60-16-shift"
_BOTH = ("stacked", "mqar")
_DELTA_RULES = ("deltanet-1x32", "gated-deltanet-1x32")
_LINEAR = (*MODERN["medium"], *(f"{name}-negative" for name in _DELTA_RULES))


def _reaches(setting: str, networks: Sequence[str], least: float) -> Callable[..., Judged]:
    """All of the networks reach an accuracy, in the mean of the seeds."""

    def decide(measured: Measured) -> Judged:
        means = [_mean(measured, setting, name) for name in networks]
        numbers = {_label(setting, name): _seeds(measured, setting, name) for name in networks}
        return all(mean >= least for mean in means), dict(numbers)

    return decide


def _not_behind(setting: str, ours: str, rivals: Sequence[str]) -> Callable[..., Judged]:
    """Ours is at most ``CLOSE`` below each of the rivals; not to be told if a run of one of them diverged."""

    def decide(measured: Measured) -> Judged:
        means = {name: _mean(measured, setting, name) for name in (ours, *rivals)}
        numbers: dict[str, float | str] = {
            _label(setting, name): _seeds(measured, setting, name) for name in means
        }
        if _diverged(measured, setting, rivals):
            return None, numbers | {"reason": _DIVERGED}
        return all(means[ours] >= means[rival] - CLOSE for rival in rivals), numbers

    return decide


_DIVERGED = "a run of a rival diverged"


def _diverged(measured: Measured, setting: str, networks: Sequence[str]) -> bool:
    return any(row.get("diverged") for name in networks for row in measured[setting, name])


def _ahead(setting: str, ours: str, rivals: Sequence[str], by: float) -> Callable[..., Judged]:
    """Every seed of ours is above every seed of the rivals, by so much in the mean; undecided if seeds overlap."""

    def decide(measured: Measured) -> Judged:
        numbers: dict[str, float | str] = {}
        verdicts: list[bool | None] = []
        a = whole(measured, setting, ours)
        numbers[_label(setting, ours)] = float(np.mean(a))
        for rival in rivals:
            b = whole(measured, setting, rival)
            numbers[_label(setting, rival)] = float(np.mean(b))
            apart = min(a) > max(b) or max(a) < min(b)
            verdicts.append(bool(np.mean(a) >= np.mean(b) + by) if apart else None)
        return both(*verdicts), numbers

    return decide


def _copies_buy(measured: Measured) -> Judged:
    """Of 16 pairs, more are recalled with 4 copies than with 1, and with 16 than with 4."""
    means = {n: _mean(measured, "copies-16", f"associative-64-{n}") for n in (1, 4, 16)}
    numbers: dict[str, float | str] = {f"copies {n}": mean for n, mean in means.items()}
    if means[1] > 0.95:
        return None, numbers | {"reason": "one copy is enough"}
    return means[4] >= means[1] + 0.05 and means[16] >= means[4] + 0.05, numbers


def _by_ratio(measured: Measured) -> Judged:
    """Where pairs / copies is the same, accuracy is the same; told only where it differs between ratios."""
    cells = {(p, n): _mean(measured, f"copies-{p}", f"associative-64-{n}") for p in PAIRS for n in COPIES}
    spreads = []
    for ratio in sorted({p / n for p, n in cells}):
        alike = [mean for (p, n), mean in cells.items() if p / n == ratio]
        if len(alike) > 1:
            spreads.append(max(alike) - min(alike))
    everywhere = max(cells.values()) - min(cells.values())
    numbers: dict[str, float | str] = {"largest difference at one ratio": max(spreads), "of all": everywhere}
    if everywhere < 0.3:
        return None, numbers | {"reason": "accuracy hardly differs between ratios"}
    return max(spreads) <= 0.1, numbers


def _needs_the_one_before(measured: Measured) -> Judged:
    without = _mean(measured, "mqar-unaided", SIXTEEN["medium"])
    beside = _mean(measured, "mqar", SIXTEEN["medium"])
    numbers: dict[str, float | str] = {"without": without, "with": beside}
    if beside < 0.5:
        return None, numbers | {"reason": "with it, too, most is wrong"}
    return without <= 0.5 * beside, numbers


def _generalises(measured: Measured) -> Judged:
    """Those with a state that is not linear in the one before stay right on longer sequences, the others do not."""
    numbers: dict[str, float | str] = {}
    verdicts = []
    for name in ("associative-60-16", "lstm-128", "gru-256"):
        longer = _mean(measured, "parity", name, "longer")
        numbers[f"{_label('parity', name)}, longer"] = longer
        verdicts.append(longer >= 0.9)
    for name in MODERN["medium"]:
        longer = _mean(measured, "parity", name, "longer")
        numbers[f"{_label('parity', name)}, longer"] = longer
        verdicts.append(longer <= 0.6)
    if _diverged(measured, "parity", MODERN["medium"]):
        return None, numbers | {"reason": _DIVERGED}
    return all(verdicts), numbers


def _tracks_sums(measured: Measured) -> Judged:
    """Ours stays right on longer sequences of modular arithmetic, no seed of a linear network does."""
    task = "modular-aided"
    ours, linear = (
        _mean(measured, task, SIXTEEN["medium"], "longer"),
        _no_seed_tracks(measured, task, _LINEAR),
    )
    numbers: dict[str, float | str] = {f"{_label(task, SIXTEEN['medium'])}, longer": ours}
    return both(ours >= 0.9, linear[0]), numbers | linear[1]


def _no_seed_tracks(measured: Measured, task: str, networks: Sequence[str]) -> Judged:
    """Every seed of the networks is right at most 0.6 of the steps beyond; not to be told if one diverged."""
    seeds = {name: whole(measured, task, name, "longer") for name in networks}
    numbers: dict[str, float | str] = {
        f"{_label(task, name)}, longer": f"{np.mean(a):.3f} ({min(a):.2f} to {max(a):.2f})"
        for name, a in seeds.items()
    }
    if any(max(a) > 0.6 for a in seeds.values()):
        return False, numbers
    if _diverged(measured, task, networks):
        return None, numbers | {"reason": "a run diverged"}
    return True, numbers


def _shifts_serve(measured: Measured) -> Judged:
    """With shifts, as much of MQAR, and as often right beyond the lengths trained, where random ones are."""
    recall, numbers = _not_behind("mqar", _SHIFT, [SIXTEEN["medium"]])(measured)
    verdicts = [recall]
    for task in ("parity", "modular-aided"):
        shifts, random = (_mean(measured, task, name, "longer") for name in (_SHIFT, SIXTEEN["medium"]))
        numbers |= {f"{task}, shifts, longer": shifts, f"{task}, random, longer": random}
        verdicts.append(shifts >= random - 0.05 if random >= 0.9 else None)
    return both(*verdicts), numbers


def _open_loop_loses_track(measured: Measured) -> Judged:
    return _no_seed_tracks(measured, "parity", [_OPEN])


def _mad_score(measured: Measured) -> Judged:
    scores = {
        name: float(np.mean([_mean(measured, task, name) for task in MAD]))
        for name in ("associative-60-16", "lstm-128")
    }
    ours, lstm = scores.values()
    return ours >= lstm - CLOSE, {_label(MAD[0], name): score for name, score in scores.items()}


def _as_many_weights(measured: Measured) -> Judged:
    """With a quarter of the state of today's networks, and not many more weights."""
    ours, rivals = SIXTEEN["medium"], MODERN["large"]
    holds, numbers = _not_behind("stacked", ours, rivals)(measured)
    weights = {name: measured["stacked", name][0]["parameters"] for name in (ours, *rivals)}
    ratio = weights[ours] / min(weights[name] for name in rivals)
    return holds, numbers | {"weights, of those of the rival with the fewest": f"{ratio:.2f} times"}


def _open_loop(measured: Measured) -> Judged:
    return _none_behind(measured, [(setting, _OPEN, SIXTEEN["medium"]) for setting in _BOTH])


def _turned(measured: Measured) -> Judged:
    """What the other recalls too little of tells nothing."""
    pairs = [(f"{name}-negative", name) for name in _DELTA_RULES]
    told = [(s, *pair) for s in _BOTH for pair in pairs if _mean(measured, s, pair[1]) >= 0.9]
    return _none_behind(measured, told)


def _none_behind(measured: Measured, compared: Sequence[tuple[str, str, str]]) -> Judged:
    """The first network is not behind the second, setting by setting; undecided if one of these, or none, is told."""
    verdicts: list[bool | None] = []
    numbers: dict[str, float | str] = {}
    for setting, network, other in compared:
        holds, its = _not_behind(setting, network, [other])(measured)
        verdicts.append(holds)
        numbers |= {f"{setting}, {name}": value for name, value in its.items()}
    return (both(*verdicts) if verdicts else None), numbers


def _on(setting: str, *networks: str) -> list[Need]:
    return [(setting, network) for network in networks]


def _equal_state(setting: str, size: str) -> tuple[list[Need], Callable[..., Judged]]:
    return _on(setting, SIXTEEN[size], *MODERN[size]), _not_behind(setting, SIXTEEN[size], MODERN[size])


_MEAN = "mean accuracy on held-out sequences over three seeds"
_EQUAL = f"{_MEAN}: at most {CLOSE} below each of mLSTM, Mamba-2, DeltaNet and Gated DeltaNet"

CLAIMS: Mapping[str, tuple[str, str, list[Need], Callable[[Measured], Judged]]] = {
    "12a": (
        "Holographic binding can recall: with 16 copies the Associative LSTM answers MQAR's small setting (ours).",
        f"V 256, L 64, 4 pairs, the symbol before presented beside: {_MEAN} at least 0.9, with about 4,096 numbers",
        _on("mqar", SIXTEEN["large"]),
        _reaches("mqar", [SIXTEEN["large"]], 0.9),
    ),
    **{
        f"12{key}": (
            f"On {SETTINGS[setting].title.replace('Stacked', 'stacked')}, with about {grid.SIZES[size]:,} numbers of "
            "state, it recalls as much as today's networks (ours).",
            _EQUAL,
            *_equal_state(setting, size),
        )
        for key, (setting, size) in zip(
            "bcdefg",
            [(setting, size) for setting in ("stacked", "mqar") for size in grid.SIZES],
            strict=True,
        )
    },
    "12h": (
        "With 256 numbers of state it recalls more of 32 stacked pairs than LSTM and GRU (ours).",
        f"{_MEAN}: every seed above every seed of both, by 0.05 in the mean; undecided if seeds overlap",
        _on("stacked", SIXTEEN["small"], "lstm-128", "gru-256"),
        _ahead("stacked", SIXTEEN["small"], ["lstm-128", "gru-256"], 0.05),
    ),
    "12i": (
        "Copies buy recall: of 16 stacked pairs 4 copies recall more than 1, and 16 more than 4 (ours).",
        f"N_h 64, one rate: {_MEAN} rises by 0.05 each time; undecided if one copy has 0.95",
        [("copies-16", f"associative-64-{n}") for n in (1, 4, 16)],
        _copies_buy,
    ),
    "12j": (
        "What a trained network recalls follows pairs / copies, as the noise of its memory does (ours).",
        "N_h 64, 4 to 32 stacked pairs, 1 to 16 copies: where the ratio is the same, mean accuracies differ by at "
        "most 0.1; undecided if those of all differ by less than 0.3",
        [(f"copies-{p}", f"associative-64-{n}") for p in PAIRS for n in COPIES],
        _by_ratio,
    ),
    "12k": (
        "With shifts it recalls as much as with random permutations (ours).",
        f"32 stacked pairs, about 1,024 numbers: {_MEAN} at most {CLOSE} lower (until runs with shifts were made: "
        "about 4,096; random permutations at 1,024 had been seen)",
        _on("stacked", SIXTEEN["medium"], _SHIFT),
        _not_behind("stacked", _SHIFT, [SIXTEEN["medium"]]),
    ),
    "12l": (
        "With 4 heads it recalls as much as with 1, at the same state (ours).",
        f"32 stacked pairs, about 1,024 numbers: {_MEAN} at most {CLOSE} lower",
        _on("stacked", SIXTEEN["medium"], "associative-60-13-4"),
        _not_behind("stacked", "associative-60-13-4", [SIXTEEN["medium"]]),
    ),
    "12m": (
        "One layer needs the symbol before beside the current one to bind a value to its key (ours).",
        f"MQAR, about 1,024 numbers: without it, {_MEAN} is at most half of what it is with it; undecided if that is "
        "below 0.5",
        [*_on("mqar", SIXTEEN["medium"]), *_on("mqar-unaided", SIXTEEN["medium"])],
        _needs_the_one_before,
    ),
    "12n": (
        "The rivals learn here what their authors report: with about 4,096 numbers they answer MQAR's small setting.",
        f"V 256, L 64, 4 pairs: {_MEAN} at least 0.9 of each of them, and of attention",
        _on("mqar", *MODERN["large"], "attention-1x32"),
        _reaches("mqar", [*MODERN["large"], "attention-1x32"], 0.9),
    ),
    "12o": (
        "On parity Associative LSTM, LSTM and GRU stay right on longer sequences than trained; linear ones with "
        "eigenvalues from 0 to 1 do not.",
        f"trained on 3 to 40 bits, tested on bits 41 to 256: {_MEAN} at least 0.9 of each of the three, at most 0.6 "
        "of mLSTM, Mamba-2, DeltaNet and Gated DeltaNet (until results were seen, on the last bit alone, which an "
        "LSTM did not learn in time)",
        _on("parity", "associative-60-16", "lstm-128", "gru-256", *MODERN["medium"]),
        _generalises,
    ),
    "12p": (
        "Over five of MAD's six tasks it is not behind an LSTM of a quarter of its state (ours).",
        f"the mean over the tasks of the {_MEAN}: at most {CLOSE} below (a GRU had been planned as well, and was "
        "left out before any run of it, for its time)",
        [(task, name) for task in MAD for name in ("associative-60-16", "lstm-128")],
        _mad_score,
    ),
    "12s": (
        "Trained for as many passes as published, rivals that were slow learn what their authors report.",
        f"V 256, L 64, 4 pairs, 32 passes, about 1,024 numbers: {_MEAN} at least 0.9 of each of mLSTM, Mamba-2 and "
        "Gated DeltaNet, which recalled less in 13 passes (planned after that was seen)",
        _on("mqar-long", *SLOW),
        _reaches("mqar-long", SLOW, 0.9),
    ),
    "12t": (
        "With eigenvalues from -1, by which they keep track of parity, delta rules recall as much as without (ours).",
        f"32 stacked pairs, and MQAR with 4, about 1,024 numbers: {_MEAN} at most {CLOSE} lower, of DeltaNet and of "
        "Gated DeltaNet, wherever the one without recalls 0.9 (planned after the others were seen)",
        [
            (setting, f"{name}{end}")
            for setting in _BOTH
            for name in _DELTA_RULES
            for end in ("", "-negative")
        ],
        _turned,
    ),
    "12r": (
        "Without h in gates and keys, linear in its memory, it recalls as much (ours).",
        f"32 stacked pairs, and MQAR with 4, about 1,024 numbers: {_MEAN} at most {CLOSE} lower on both",
        [*_on("stacked", SIXTEEN["medium"], _OPEN), *_on("mqar", SIXTEEN["medium"], _OPEN)],
        _open_loop,
    ),
    "12u": (
        "On modular arithmetic it stays right on longer sequences than trained; one layer of a linear network does "
        "not, with eigenvalues from -1 or without, though it sees the operator before each number.",
        f"the symbol before presented beside, trained on up to 40 symbols, tested on symbols 41 to 256: {_MEAN} at "
        "least 0.9 of ours with 16 copies, and at most 0.6 in every seed of mLSTM, Mamba-2, DeltaNet, Gated "
        "DeltaNet, and of the last two with eigenvalues from -1 (planned after runs without the symbol before were "
        "seen)",
        _on("modular-aided", SIXTEEN["medium"], *_LINEAR),
        _tracks_sums,
    ),
    "12v": (
        "With shifts it recalls as much of MQAR, too, and keeps as much track (ours).",
        f"about 1,024 numbers: {_MEAN} at most {CLOSE} lower on MQAR with 4 pairs, and at most 0.05 lower beyond the "
        "lengths trained on parity and modular arithmetic, if random permutations have 0.9 there (planned after "
        "shifts were seen on stacked pairs)",
        [
            *_on("mqar", _SHIFT, SIXTEEN["medium"]),
            *_on("parity", _SHIFT, SIXTEEN["medium"]),
            *_on("modular-aided", _SHIFT, SIXTEEN["medium"]),
        ],
        _shifts_serve,
    ),
    "12w": (
        "Without h in gates and keys it keeps no track of parity (ours).",
        "trained on 3 to 40 bits, tested on bits 41 to 256: accuracy at most 0.6 in every seed (planned after its "
        "recall was seen)",
        _on("parity", _OPEN),
        _open_loop_loses_track,
    ),
    "12q": (
        "With a quarter of their state, and at most two fifths more weights, it recalls as much of 32 stacked pairs "
        "as today's networks (ours).",
        f"16 copies and about 1,024 numbers of state, {_EQUAL}, each with about 4,096 numbers (how many times the "
        "weights is told since its other runs were seen)",
        _on("stacked", SIXTEEN["medium"], *MODERN["large"]),
        _as_many_weights,
    ),
}


RECALL = RecallStudy(
    "recall",
    "Recall: beside what people use today",
    "How much networks recall with a state of the same size: MQAR, MAD, state tracking, and what each costs.",
    pictures=(
        ("recall.png", "Accuracy by the numbers of state, and beyond the lengths trained"),
        ("dependence.png", "Accuracy on stacked MQAR by weights, by pairs, and by pairs over copies"),
        ("learning.png", "MQAR, 4 pairs: what an answer costs in training, by minibatch"),
    ),
    page="README.md",
    ours=True,
)
