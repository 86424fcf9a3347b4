"""Figure 10: the cost on Wikipedia's test text while networks of three layers are trained on the rest of it.

As everywhere, learning rates are compared by a short sweep, the same for every network
(:mod:`~associative_lstm.lab.experiments.learning.runs`). Here the two best make the pass, and the better one
is judged.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from associative_lstm.lab.config import PRESETS, task_of
from associative_lstm.lab.evaluation import load_trained, printable, write_text
from associative_lstm.lab.experiments.claims import Claim, Outcome, judge, write_claims
from associative_lstm.lab.experiments.drawing import markdown_table, save_figure, save_table, style
from associative_lstm.lab.experiments.learning.curves import RATES, Curve, Network, copies_in_words
from associative_lstm.lab.experiments.learning.drawing import look_of
from associative_lstm.lab.experiments.learning.runs import SHARE, CurveRuns, Run, make_runs, read_curve
from associative_lstm.lab.files import RunError, write_atomically
from associative_lstm.lab.grid import Execute, Show
from associative_lstm.lab.model import build_model, count_parameters
from associative_lstm.lab.packed import runs_below
from associative_lstm.lab.runlog import read_config, read_log, read_tests
from associative_lstm.lab.tasks import Wikipedia

SWEEP_STEPS, CLOSE, DOUBLINGS = 4000, 1.2, 2
"""A sweep is short beside a pass, and the LSTM's begins with a plateau that ends after 500 to 3,000 minibatches,
whatever the rate is worth later: so rates within 20 % of the best, not 2 %, go on to 8,000 minibatches, and then to
16,000, before one is chosen."""

TESTS_PER_PASS = 6

COMPARABLE = 0.05
"""Bits per character by which a network may be worse than another and still be called comparable: about what 3 % of
the cost is. Fixed before the runs."""

NETWORKS = (
    Network("lstm-3x256", "LSTM, 3 x 256", PRESETS["wikipedia-lstm"]),
    Network(
        "associative-lstm-3x256-1",
        "Associative LSTM, 3 x 256, 1 copy",
        PRESETS["wikipedia-associative-lstm-1"],
    ),
    Network(
        "associative-lstm-3x256-4",
        "Associative LSTM, 3 x 256, 4 copies",
        PRESETS["wikipedia-associative-lstm-4"],
    ),
)

PROMPT = "'''"
"""What the samples go on from: it opens bold type, and with it most articles."""

PUBLISHED = (
    ("LSTM, 7 layers of 700", "Graves 2013, arXiv:1308.0850", 1.67),
    ("Recurrent highway network, 46 million parameters", "Zilly et al. 2016, arXiv:1607.03474", 1.27),
    ("Multiplicative LSTM, 46 million parameters", "Krause et al. 2016, arXiv:1609.07959", 1.24),
    ("LSTM, 3 layers, regularised, 47 million parameters", "Merity et al. 2018, arXiv:1803.08240", 1.23),
    ("Transformer-XL, 24 layers, 277 million parameters", "Dai et al. 2019, arXiv:1901.02860", 0.99),
)
"""What others report for enwik8, bits per character. Quoted from the papers named, not measured."""

_SMOKE_TEXT = "".join(
    f"<page>\n  <title>Page {k}</title>\n  <text>The number {k} follows {k - 1}.</text>\n</page>\n"
    for k in range(1, 25)
)
_SMOKE = {"hidden_size": 8, "window": 10, "log_every": 1, "checkpoint_every": 5}


def run(
    out: Path,
    runs: Path,
    execute: Execute,
    *,
    data: str | None = None,
    steps: int | None = None,
    networks: Sequence[str] = (),
    smoke: bool = False,
    show: Show | None = None,
) -> Outcome:
    """Make what is missing of the runs, then draw and judge what there is.

    Args:
        out: the folder for the figure, its data and the verdicts.
        runs: the folder of all runs; these are in ``wikipedia/NETWORK/lrRATE-seed0`` of it.
        data: the text, None for enwik8.
        steps: minibatches of every network, None for one pass over the training text.
        networks: names out of :data:`NETWORKS` whose runs are to be made, all if empty; all are drawn.
        smoke: tiny networks on a text of two thousand characters, to see that everything works.
    """
    if smoke:
        data = str(_smoke_text(runs))
    curves = curves_of(data, steps, smoke=smoke)
    unknown = [name for name in networks if name not in [curve.network.name for curve in curves]]
    if unknown:
        known = ", ".join(curve.network.name for curve in curves)
        raise ValueError(f"network must be one of {known}, got {unknown[0]!r}")
    _refuse_other_texts(runs, curves)
    chosen = [curve for curve in curves if not networks or curve.network.name in networks]
    if failed := make_runs(runs, chosen, execute, show):
        raise RunError(f"{len(failed)} of the runs could not be made: {failed[0]}")
    return draw_and_judge(out, runs, curves, one_pass(data, smoke=smoke))


def _refuse_other_texts(runs: Path, curves: Sequence[Curve]) -> None:
    """Runs on different texts cannot be compared, and would overwrite each other's figure."""
    for curve in curves:
        asked = curve.network.values.get("data")
        its = runs / curve.task / curve.network.name
        for folder in (run for run in runs_below(runs) if run.parent == its):
            if (found := read_config(folder).data) != asked:
                texts = f"{found or 'enwik8'}, not on {asked or 'enwik8'}"
                raise RunError(f"{folder} is a run on {texts}: choose another --runs and --out")


def curves_of(data: str | None, steps: int | None = None, *, smoke: bool = False) -> list[Curve]:
    """The three curves: ``steps`` minibatches long, or one pass."""
    whole = one_pass(data, smoke=smoke)
    length = steps or whole
    values: dict[str, Any] = {"test_every": _test_every(whole)} | (_SMOKE if smoke else {})
    if data is not None:
        values["data"] = data
    sweep = min(4 if smoke else SWEEP_STEPS, length)
    return [
        Curve("wikipedia", network, length, sweep, (0,), RATES, CLOSE, DOUBLINGS, with_runner_up=True)
        for network in (dataclasses.replace(n, values=dict(n.values) | values) for n in NETWORKS)
    ]


def one_pass(data: str | None, *, smoke: bool = False) -> int:
    """The minibatches in which the training text is read once: 96,000 for enwik8."""
    window = _SMOKE["window"] if smoke else 100
    read = Wikipedia.batch_size * window
    length = Wikipedia(data).length("train")
    if length < read:
        raise ValueError(f"data: a minibatch reads {read:,} characters, there are {length:,} to train on")
    return length // read


def draw_and_judge(out: Path, runs: Path, curves: Sequence[Curve], whole: int) -> Outcome:
    """The picture, the data behind it, a page of text, the verdicts, and what each finished network writes."""
    found = [read_curve(runs, curve) for curve in curves]
    rows = [row for curve in found for row in _rows(curve, whole)]
    if not rows:
        raise RunError(f"there are no runs of figure 10 in {runs / 'wikipedia'} yet")
    claims = judge_curves(found, runs, whole)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "README.md", page(found, whole).encode())
    written = [
        save_figure(draw(found, whole), out / "fig10.png"),
        save_table(out / "fig10.csv", rows),
        write_claims(out / "claims.json", claims, minibatches_of_a_pass=whole, rates=RATES, seed=0),
        out / "README.md",
        *(path for curve in found if (path := _write_sample(out, curve, whole)) is not None),
    ]
    return Outcome(written, claims)


def best_pass(found: CurveRuns, whole: int) -> tuple[float, Run] | None:
    """Of the passes with the two best rates, the one that ends lower on the test text, and its cost there."""
    made = [(cost, run) for run in _passes(found) if (cost := final_cost(run, whole)) is not None]
    return min(made, key=lambda pair: pair[0], default=None)


def _passes(found: CurveRuns) -> list[Run]:
    return [found.sweep[rate] for rate in (found.rate, found.runner_up) if rate is not None]


def _awaited(found: CurveRuns, whole: int) -> list[Run]:
    """The passes with the two best rates that are not over yet."""
    return [run for run in _passes(found) if not run.diverged and final_cost(run, whole) is None]


def _unfinished(found: Sequence[CurveRuns], whole: int) -> list[str]:
    """Those passes in words."""
    return [
        f"{c.curve.network.label} at rate {run.config.learning_rate:g} ({run.steps:,} of {whole:,} minibatches)"
        for c in found
        for run in _awaited(c, whole)
    ]


def shown_run(found: CurveRuns, whole: int) -> Run | None:
    """The run that stands for the network: its best pass or, before there is one, that of its rates which goes on."""
    if best := best_pass(found, whole):
        return best[1]
    return min(_passes(found), key=lambda run: run.diverged is not None, default=None)


def final_cost(run: Run | None, whole: int) -> float | None:
    """The cost on the test text at the end of the first pass (at the last test in it), if it has been measured."""
    if run is None or run.steps < whole:
        return None
    end = whole - whole % _test_every(whole)
    return next((test["cost"] for test in read_tests(run.folder) if test["step"] == end), None)


def _test_every(whole: int) -> int:
    return max(whole // TESTS_PER_PASS, 1)


def diverged(found: CurveRuns) -> bool:
    """Whether the network diverged with every rate, or later with both of the best."""
    passes = _passes(found)
    return found.always_diverged or (bool(passes) and all(run.diverged for run in passes))


def judge_curves(found: Sequence[CurveRuns], runs: Path, whole: int) -> list[Claim]:
    """The paper's one sentence about the figure, for each number of copies."""
    lstm, *associative = found
    claims = []
    for key, curve in zip(("10a", "10b"), associative, strict=True):
        copies = copies_in_words(curve.curve.network.values["copies"])
        theirs, ours = (best_pass(c, whole) for c in (lstm, curve))
        numbers: dict[str, float | str] = {}
        verdict = None
        if theirs is None or ours is None:
            missing = [c for c, best in ((lstm, theirs), (curve, ours)) if best is None]
            for what, which in ("diverged", True), ("not_yet_run", False):
                if names := [c.curve.network.name for c in missing if diverged(c) == which]:
                    numbers[what] = ", ".join(names)
        else:
            difference = ours[0] - theirs[0]
            verdict = difference <= COMPARABLE
            for network, (cost, best) in ("LSTM", theirs), ("Associative LSTM", ours):
                numbers[f"{network} at rate {best.config.learning_rate:g}"] = cost
            numbers["difference"] = difference
            if awaited := ", ".join(_unfinished((lstm, curve), whole)):
                numbers["not judged, because not whole:"] = awaited
        claim = judge(
            f"The Associative LSTM with {copies} performs comparably to the LSTM on Wikipedia.",
            f"after one pass its cost on the test text is at most {COMPARABLE} bits per character above the LSTM's, "
            "each at the better of the passes made with its two best rates",
            verdict,
            **numbers,
        )
        shown = [run for c in (lstm, curve) if (run := shown_run(c, whole)) is not None]
        behind = [run.folder.relative_to(runs).as_posix() for run in shown]
        claims.append(dataclasses.replace(claim, key=key, runs=tuple(behind)))
    return claims


def _rows(found: CurveRuns, whole: int) -> list[dict[str, object]]:
    """The test costs, and the training costs in means over hundredths of the curve, so that the table stays small."""
    run, name = shown_run(found, whole), found.curve.network.name
    if run is None:
        return []
    step, cost = _thinned(run.step, run.cost, found.curve.steps)
    rows = [
        {"network": name, "text": "train", "step": int(s), "cost": float(c)}
        for s, c in zip(step, cost, strict=True)
    ]
    return rows + [
        {"network": name, "text": "test", "step": test["step"], "cost": test["cost"]}
        for test in read_tests(run.folder)
    ]


def _thinned(step: np.ndarray, cost: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Means of the cost over up to a hundred stretches, each at its last step."""
    width = max(steps // 100, 1)
    stretch = (step - 1) // width
    ends = np.flatnonzero(np.diff(stretch, append=stretch[-1:] + 1))
    means = [part.mean() for part in np.split(cost, ends + 1) if len(part)]
    return step[ends], np.array(means)


def draw(found: Sequence[CurveRuns], whole: int) -> Figure:
    """Test cost (points) and training cost (thin) against the share of the training text that has been read."""
    with style():
        figure = Figure((8.5, 5.0), layout="constrained")
        axes = figure.subplots()
        lowest, highest = np.inf, 0.0
        for curve in found:
            if (run := shown_run(curve, whole)) is None:
                continue
            step, cost = _thinned(run.step, run.cost, curve.curve.steps)
            colour, line = look_of(curve.curve.network)
            axes.plot(step / whole, cost, color=colour, linewidth=0.9, alpha=0.6)
            tests = read_tests(run.folder)
            x, y = [t["step"] / whole for t in tests], [t["cost"] for t in tests]
            label = f"{curve.curve.network.label}, rate {run.config.learning_rate:g}"
            axes.plot(x, y, f"o{line}", color=colour, label=label)
            late = [*cost[step > whole / 20], *y]
            lowest, highest = min([lowest, *late]), max([highest, *late])
        if highest:
            axes.set_ylim(lowest - 0.05, highest + 0.05)  # the first steps, from 8 bits, would dwarf the rest
        axes.set(xlabel="passes over the training text", ylabel="bits per character", xlim=(0, None))
        axes.legend(loc="upper right")
        figure.suptitle("Figure 10: English Wikipedia", x=0.01, ha="left", fontsize=14)
        note = "points: the whole test text; thin: training, on text not read before in the first pass"
        figure.supxlabel(note, x=0.01, ha="left", fontsize=11, color="0.35")
    return figure


def page(found: Sequence[CurveRuns], whole: int) -> str:
    """What was measured, what others report, and why these networks' costs are higher."""
    measured = []
    for curve in found:
        run = shown_run(curve, whole)
        cost = final_cost(run, whole)
        config = curve.curve.config(RATES[0], 0, curve.curve.steps)
        parameters = count_parameters(build_model(config, task_of(config, symbols_only=True)))
        so_far = "0" if run is None else f"{run.steps:,}"
        rate = "" if run is None else f"{run.config.learning_rate:g}"
        shown = f"{cost:.3f}" if cost is not None else "diverged" if diverged(curve) else "not yet"
        measured.append([curve.curve.network.label, f"{parameters:,}", rate, so_far, shown])
    table = markdown_table(
        ["network", "parameters", "learning rate", "minibatches", "after one pass"], measured
    )
    notes = []
    if awaited := _unfinished(found, whole):
        notes.append(f"Not judged, because not whole: {'; '.join(awaited)}.")
    if absent := [c.curve.network.label for c in found if not c.sweep]:
        notes.append(f"Not yet run: {'; '.join(absent)}.")
    others = markdown_table(
        ["network", "from", "bits per character"], [[n, f, f"{c:.2f}"] for n, f, c in PUBLISHED]
    )
    sweep = found[0].curve.sweep_steps
    lengths = _contest_lengths(found[0].curve)
    every = found[0].curve.config(RATES[0], 0, whole).log_every
    return f"""# Figure 10: English Wikipedia

Bits per character on the whole test text, the last 4 % of the file, every character predicted once with the state
carried through. Three layers of 256, minibatches of 10, windows of 100, Adam, no dropout, gradients not clipped, one
pass ({whole:,} minibatches), so that every character of the training text is seen once. One seed.

For every network alike, the learning rates {", ".join(f"{rate:g}" for rate in RATES)} are compared after {sweep:,}
minibatches: if the first or the last of them is best, the next one beyond is tried too; rates within
{100 * (CLOSE - 1):.0f} % of the best are trained twice as long and compared again, and once more, up to
{sweep * 2**DOUBLINGS:,} minibatches. A pass is made with the best and one with the second best; the network is judged
by the one that ends lower on the test text.

{table}

{" ".join(notes)}

The cost of training lies below that of the test text, though in the first pass neither has been read before: the ten
lanes read on in their articles, and the weights follow them.

## The learning rates

Cost of training over the last fifth of {_in_words(lengths)} minibatches, by which the two rates are chosen (in bold);
cost on the test text after {_test_every(whole):,} minibatches and after the pass; and the largest mean norm of the
gradient over {every:,} minibatches, wherever in the run it was.

{rates_table(found, whole)}

## What others reach on enwik8

Quoted from the papers named, not measured here. Graves splits the file as it is split here; most of the others train
on the first 90 million characters and test on the last 5.

{others}

The networks of figure 10 are not meant to compete with these. The paper keeps them small to compare two architectures
in reasonable time: less than two million parameters, where the others have from more than 20 million to 277 million.
They see the text once, the others several times, most of them with some regularisation. What the figure can show is
the difference between its curves. Networks with several heads were left out, to have time for whole passes. The texts
beside this page go on from `{PROMPT}`, drawn at temperature 1 with seed 0.
"""


def rates_table(found: Sequence[CurveRuns], whole: int) -> str:
    """The costs of every rate of every sweep, as far as it was trained; those of the passes in bold."""
    lengths = _contest_lengths(found[0].curve)
    rows = []
    for curve in found:
        for rate, run in sorted(curve.sweep.items()):
            costs = [run.last(SHARE, until=length) for length in lengths]
            tests = {test["step"]: test["cost"] for test in read_tests(run.folder)}
            last = np.inf if (cost := final_cost(run, whole)) is None else cost
            costs += [tests.get(_test_every(whole), np.inf), last]
            shown = [f"{cost:.3f}" if np.isfinite(cost) else "" for cost in costs]
            if not shown[-1] and (run.diverged or run in _awaited(curve, whole)):
                shown[-1] = f"{'diverged after' if run.diverged else 'not whole:'} {run.steps:,}"
            norms = [line["gradient_norm"] for line in read_log(run.folder)]
            name = f"**{rate:g}**" if run in _passes(curve) else f"{rate:g}"
            rows.append([curve.curve.network.label, name, *shown, f"{max(norms, default=0.0):.2g}"])
    at_tests = f"test, {_test_every(whole):,}", "test, one pass"
    return markdown_table(["network", "rate", *(f"{n:,}" for n in lengths), *at_tests, "gradient"], rows)


def _contest_lengths(curve: Curve) -> list[int]:
    return [curve.sweep_steps * 2**k for k in range(curve.doublings + 1)]


def _in_words(numbers: Sequence[int]) -> str:
    *others, last = [f"{n:,}" for n in numbers]
    return f"{', '.join(others)} and {last}"


def _write_sample(out: Path, found: CurveRuns, whole: int) -> Path | None:
    """Text from a network that has been trained for a pass, if its weights are still in the run's folder."""
    if (best := best_pass(found, whole)) is None:
        return None
    try:
        trained = load_trained(best[1].folder, symbols_only=True)
    except RunError:  # committed logs come without weights: the text beside them stays
        return None
    symbols = write_text(trained, seed=0, length=400, prompt=PROMPT, temperature=1.0)
    path = out / f"sample-{found.curve.network.name}.txt"
    write_atomically(path, f"{PROMPT}{printable(trained.task.decode(symbols))}\n".encode())
    return path


def _smoke_text(runs: Path) -> Path:
    path = runs.resolve() / "text"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, _SMOKE_TEXT.encode())
    return path
