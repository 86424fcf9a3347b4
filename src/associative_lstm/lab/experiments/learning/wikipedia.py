"""Figure 10: the cost on Wikipedia's test text while networks of three layers are trained on the rest of it.

As everywhere, learning rates are compared by a short sweep, the same for every network
(:mod:`~associative_lstm.lab.experiments.learning.runs`). Here the two best make the pass, and the better one
is judged, by its cost on the test text; networks that came later make one pass, with the lower of the two.
"""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from associative_lstm.lab.draw.pictures import save_figure, style
from associative_lstm.lab.draw.tables import markdown_table, save_table
from associative_lstm.lab.experiments.claim import (
    BEFORE,
    FAST,
    Claim,
    Reading,
    judge,
    verdict_of,
    write_claims,
)
from associative_lstm.lab.experiments.experiment import Outcome
from associative_lstm.lab.experiments.learning.curves import (
    FAST_RATES,
    FAST_SWEEP_SEED,
    RATES,
    WHOLE_SEEDS,
    Curve,
    Network,
)
from associative_lstm.lab.experiments.learning.drawing import look_of
from associative_lstm.lab.experiments.learning.judging import (
    Judged,
    LearningFigure,
    OpenClaim,
    Panel,
    rates_given_up,
    reading,
)
from associative_lstm.lab.experiments.learning.measures import means
from associative_lstm.lab.experiments.learning.runs import SHARE, CurveRuns, Logs, Run
from associative_lstm.lab.files import RunError, write_atomically
from associative_lstm.lab.palette import PURPLE
from associative_lstm.lab.run.config import task_of
from associative_lstm.lab.run.evaluation import load_trained, write_text
from associative_lstm.lab.run.folder import read_config
from associative_lstm.lab.run.model import build_model, count_parameters
from associative_lstm.lab.run.packed import runs_below
from associative_lstm.lab.run.recipes import PRESETS
from associative_lstm.lab.tasks import Wikipedia
from associative_lstm.lab.words import counted, printable

SWEEP_STEPS, CLOSE, DOUBLINGS = 4000, 1.2, 2
"""A sweep is short beside a pass, and the LSTM's begins with a plateau that ends after 500 to 3,000 minibatches,
whatever the rate is worth later: so rates within 20 % of the best, not 2 %, go on to 8,000 minibatches, and then to
16,000, before one is chosen."""

PASS = 96_000
"""The minibatches in which the 96 million characters that enwik8 has for training are read once."""

TESTS_PER_PASS = 6

COMPARABLE = 0.05
"""Bits per character by which a network may differ from another and still be called comparable: about what 3 % of
the cost is. Fixed before the runs."""

_NOT_WORSE = (
    f"after one pass its cost on the test text is at most {COMPARABLE} bits per character above the LSTM's, each at "
    "the better of the passes made with its two best rates"
)

NETWORKS = (
    Network("lstm-3x256", "LSTM, 3 x 256", PRESETS["wikipedia-lstm"]),
    *(
        Network(
            f"associative-lstm-3x256-{copies}",
            f"Associative LSTM, 3 x 256, {counted(copies, 'copy')}",
            PRESETS[f"wikipedia-associative-lstm-{copies}"],
        )
        for copies in (1, 4)
    ),
    Network(
        "lstm-3x256-forget-1",
        "LSTM, 3 x 256, forget bias 1",
        PRESETS["wikipedia-lstm"] | {"forget_bias": 1.0},
    ),
    Network(
        "associative-lstm-3x128-2-heads",
        "Associative LSTM, 3 x 128, 1 copy, 2 heads",
        PRESETS["wikipedia-associative-lstm-1"] | {"hidden_size": 128, "heads": 2},
        look=(PURPLE, "-"),
    ),
)
"""Two heads of 128 have an output of 256, as the others, and about as many parameters as the LSTM."""

_LSTMS = ("lstm-3x256", "lstm-3x256-forget-1")
_FIRST = ("lstm-3x256", "associative-lstm-3x256-1")
"""These make two passes. At the higher of the two rates the Associative LSTM's cost rose before the pass was over,
and the LSTM's on the test text fell no more, so the others, of which nothing had been run when that was seen, make
one: with the lower."""

_THREE_LAYERS = {"recipe": "fast", "hidden_size": 256, "layers": 3}
FAST_NETWORKS = (
    Network("fast-lstm-3x256", "LSTM, 3 x 256, fast", {"model": "lstm"} | _THREE_LAYERS, rates=FAST_RATES),
    *(
        Network(
            f"fast-associative-lstm-3x256-{copies}",
            f"Associative LSTM, 3 x 256, {counted(copies, 'copy')}, fast",
            {"model": "associative-lstm", "copies": copies} | _THREE_LAYERS,
            rates=FAST_RATES,
        )
        for copies in (1, 4)
    ),
)
"""The same by the fast recipe, which has a forget bias of its own."""

PROMPT = "'''"
"""What the samples go on from: it opens bold type, and with it most articles."""

_SMOKE_TEXT = "".join(
    f"<page>\n  <title>Page {k}</title>\n  <text>The number {k} follows {k - 1}.</text>\n</page>\n"
    for k in range(1, 25)
)
_SMOKE = {"hidden_size": 8, "window": 10, "log_every": 1, "checkpoint_every": 5}


def test_every(whole: int) -> int:
    """The minibatches from one test to the next, of a pass with so many."""
    return max(whole // TESTS_PER_PASS, 1)


@dataclass(frozen=True, eq=False)
class Passes:
    """The passes that a network makes, of ``whole`` minibatches each: two with its best rates, or one."""

    found: CurveRuns
    whole: int

    @property
    def runs(self) -> list[Run]:
        """The passes, as far as they have come."""
        if not self.found.curve.with_runner_up:
            return self.found.runs
        chosen = (self.found.rate, self.found.runner_up)
        return [self.found.sweep[rate] for rate in chosen if rate is not None]

    def test_cost(self, run: Run | None) -> float | None:
        """The cost on the test text at the end of the pass (at the last test in it), if it has been measured."""
        if run is None or run.steps < self.whole:
            return None
        return run.tests.get(self.whole - self.whole % test_every(self.whole))

    @property
    def best(self) -> tuple[float, Run] | None:
        """The pass that ends lower on the test text, and its cost there."""
        made = [(cost, run) for run in self.runs if (cost := self.test_cost(run)) is not None]
        return min(made, key=lambda pair: pair[0], default=None)

    @property
    def shown(self) -> Run | None:
        """The run that stands for the network: its best pass or, before there is one, that which goes on."""
        if self.best:
            return self.best[1]
        return min(self.runs, key=lambda run: run.diverged is not None, default=None)

    @property
    def awaited(self) -> list[Run]:
        """The passes that are not over yet."""
        return [run for run in self.runs if not run.diverged and self.test_cost(run) is None]

    @property
    def may_fall(self) -> bool:
        """Whether the network has a pass to make, or to finish, that may be better than those that it has made."""
        return bool(self.awaited) or (self.best is None and not self.diverged)

    @property
    def diverged(self) -> bool:
        """Whether the network diverged with every rate, or later with both of the best."""
        return self.found.always_diverged or (bool(self.runs) and all(run.diverged for run in self.runs))

    def thinned(self, run: Run) -> tuple[np.ndarray, np.ndarray]:
        """The cost of training in means over hundredths of the curve, each at its last step."""
        width = max(self.found.curve.steps // 100, 1)
        starts = np.flatnonzero(np.diff((run.step - 1) // width, prepend=-1))
        return run.step[np.append(starts[1:], len(run.step)) - 1], means(run.cost, starts)


def _unfinished(passes: Iterable[Passes]) -> list[str]:
    """The passes that are not over yet, in words."""
    return [
        f"{p.found.label} at rate {run.config.learning_rate:g} ({run.steps:,} of {p.whole:,} minibatches)"
        for p in passes
        for run in p.awaited
    ]


def _absent(passes: Iterable[Passes]) -> list[str]:
    """The networks of which nothing was run, in words."""
    return [p.found.label for p in passes if not p.found.sweep]


@dataclass(frozen=True)
class ComparableClaim(OpenClaim):
    """That a network costs about as much after a pass as the better of the LSTMs, which come before it in ``curves``.

    It had been asked whether it is not much worse; a lead is told from that now. ``fast`` has the same networks
    by the fast recipe.
    """

    curves: Sequence[Curve]
    whole: int
    fast: Sequence[Curve]

    @property
    def needed(self) -> list[Curve]:
        """The curves that it looks at."""
        return list(self.curves)

    def judge(self, logs: Logs) -> Claim:
        """The claim with its verdict; undecided while a network has no pass, or one that may bring it closer."""
        first, again = self._compared(logs, self.curves), self._compared(logs, self.fast)
        claim = judge(self.sentence, self.criterion, first.holds, **first.numbers)
        difference = first.numbers.get("difference")
        before = None if difference is None else float(difference) <= COMPARABLE
        readings = reading(FAST, again), Reading(BEFORE, verdict_of(before), criterion=_NOT_WORSE)
        return dataclasses.replace(claim, key=self.key, runs=first.runs, lacks=first.lacks, readings=readings)

    def _compared(self, logs: Logs, curves: Sequence[Curve]) -> Judged:
        *lstms, ours = (Passes(logs.curve(c), self.whole) for c in curves)
        lstm = min(
            (p for p in lstms if p.best), key=lambda p: p.best[0] if p.best else np.inf, default=lstms[0]
        )
        numbers: dict[str, float | str] = {}
        verdict, missing = None, [p for p in (lstm, ours) if p.best is None]
        if missing:
            for what, which in ("diverged", True), ("not_yet_run", False):
                if names := [p.found.curve.network.name for p in missing if p.diverged == which]:
                    numbers[what] = ", ".join(names)
        elif lstm.best and ours.best:
            its_name = lstm.found.label.replace(", 3 x 256", "")
            for network, (cost, run) in (its_name, lstm.best), ("Associative LSTM", ours.best):
                numbers[f"{network} at rate {run.config.learning_rate:g}"] = cost
            difference = ours.best[0] - lstm.best[0]
            numbers["difference"] = difference
            verdict = abs(difference) <= COMPARABLE
            if not verdict:
                behind = [ours] if difference > 0 else lstms
                numbers["the Associative LSTM is"] = "worse" if difference > 0 else "better"
                verdict = None if any(p.may_fall for p in behind) else False
            if awaited := ", ".join(_unfinished((*lstms, ours))):
                numbers["not judged, because not whole:"] = awaited
            if absent := ", ".join(_absent(lstms)):
                numbers["not yet run:"] = absent
        numbers |= rates_given_up(p.found for p in (*lstms, ours))
        runs = tuple(logs.name(p.shown.folder) for p in (lstm, ours) if p.shown is not None)
        others = [p for p in (*lstms, ours) if p not in missing]
        left = _unfinished((*lstms, ours)) + [f"{name}: none yet" for name in _absent(others)]
        return Judged(verdict, numbers, runs, tuple(left))


@dataclass(frozen=True)
class WikipediaFigure(LearningFigure):
    """The figure: ``whole`` minibatches are a pass; by a ``recipe``, ``chosen`` networks are trained, or all."""

    whole: int = PASS
    chosen: Sequence[str] = ()
    recipe: str = "paper"

    @property
    def needed(self) -> list[Curve]:
        """The curves of the chosen networks."""
        all_of_them = self.needed_fast if self.recipe == "fast" else self.panels[0].curves
        return [c for c in all_of_them if not self.chosen or c.network.name in self.chosen]

    @property
    def needed_fast(self) -> list[Curve]:
        """The curves of the fast recipe."""
        claims = (claim for claim in self.claims if isinstance(claim, ComparableClaim))
        return list(dict.fromkeys(c for claim in claims for c in claim.fast))

    def recorded(self, folder: Path) -> LearningFigure:
        """The figure with passes of the length that its verdicts have."""
        try:
            about = json.loads((folder / "claims.json").read_text(encoding="utf-8"))["about"]
            return figure_10(whole=int(about["minibatches_of_a_pass"]))
        except (OSError, ValueError, KeyError, TypeError):
            return self

    def refuse_other_texts(self, runs: Path) -> None:
        """Runs on different texts cannot be compared, and would overwrite each other's figure."""
        for curve in (*self.panels[0].curves, *self.needed_fast):
            asked = curve.network.values.get("data")
            its = runs / curve.task / curve.network.name
            for folder in (run for run in runs_below(runs) if run.parent == its):
                if (found := read_config(folder).data) != asked:
                    texts = f"{found or 'enwik8'}, not on {asked or 'enwik8'}"
                    raise RunError(f"{folder} is a run on {texts}: choose another --runs and --out")

    def passes(self, logs: Logs) -> list[Passes]:
        """What there is of the passes of every network; by the fast recipe, of those that have been begun."""
        fast = [Passes(logs.curve(c), self.whole) for c in self.needed_fast]
        first = [Passes(logs.curve(c), self.whole) for c in self.panels[0].curves]
        return first + [p for p in fast if p.found.sweep]

    def draw(self, out: Path, logs: Logs, **about: object) -> Outcome:
        """The picture, the data behind it, a page of text, the verdicts, and what each finished network writes."""
        passes = self.passes(logs)
        claims = [claim.judge(logs) for claim in self.claims]
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(out / self.page, self.text_of_page(passes).encode())
        rows = [row for p in passes for row in _rows(p)] or [{"runs": "none yet"}]
        about = {"minibatches_of_a_pass": self.whole, "rates": RATES, "seed": 0}
        written = [
            save_figure(_picture(self.title, passes), out / f"{self.name}.png"),
            save_table(out / f"{self.name}.csv", rows),
            write_claims(out / "claims.json", claims, **about),
            out / self.page,
            *(path for p in passes if (path := _write_sample(out, p)) is not None),
        ]
        return Outcome(written, claims)

    def text_of_page(self, passes: Sequence[Passes]) -> str:
        """What was measured, what others report, and why these networks' costs are higher."""
        measured = []
        for p in passes:
            run, cost = p.shown, p.test_cost(p.shown)
            config = p.found.curve.config(RATES[0], 0, p.found.curve.steps)
            parameters = count_parameters(build_model(config, task_of(config, symbols_only=True)))
            so_far = "0" if run is None else f"{run.steps:,}"
            rate = "" if run is None else f"{run.config.learning_rate:g}"
            shown = f"{cost:.3f}" if cost is not None else "diverged" if p.diverged else "not yet"
            measured.append([p.found.label, f"{parameters:,}", rate, so_far, shown])
        table = markdown_table(
            ["network", "parameters", "learning rate", "minibatches", "after one pass"], measured
        )
        notes = []
        if awaited := _unfinished(passes):
            notes.append(f"Not judged, because not whole: {'; '.join(awaited)}.")
        if absent := _absent(passes):
            notes.append(f"Not yet run: {'; '.join(absent)}.")
        curve = passes[0].found.curve
        *some, longest = [f"{length:,}" for length in _contest_lengths(curve)]
        text = (files("associative_lstm.lab.experiments.learning") / "wikipedia.md").read_text(
            encoding="utf-8"
        )
        return text.format(
            title=self.title,
            whole=self.whole,
            rates=", ".join(f"{rate:g}" for rate in RATES),
            sweep=some[0],
            close=100 * (CLOSE - 1),
            longest=longest,
            table=table,
            notes=" ".join(notes),
            lengths=f"{', '.join(some)} and {longest}",
            first_test=test_every(self.whole),
            every=curve.config(RATES[0], 0, self.whole).log_every,
            costs=rates_table(passes),
            prompt=PROMPT,
        )


def figure_10(
    data: str | None = None,
    steps: int | None = None,
    networks: Sequence[str] = (),
    *,
    recipe: str = "paper",
    whole: int = PASS,
    smoke_in: Path | None = None,
) -> WikipediaFigure:
    """The figure.

    Args:
        data: the text, None for enwik8, or for one of which a pass has ``whole`` minibatches.
        steps: minibatches of every network, None for one pass over the training text.
        networks: names out of :data:`NETWORKS`, or by the fast ``recipe`` out of :data:`FAST_NETWORKS`, whose runs
            are to be made, all if empty; all are drawn.
        smoke_in: tiny networks on a text of two thousand characters that is written into this folder, to see that
            everything works.
    """
    names = [network.name for network in (FAST_NETWORKS if recipe == "fast" else NETWORKS)]
    if unknown := [name for name in networks if name not in names]:
        known = ", ".join(names)
        raise ValueError(f"network must be one of {known}, got {unknown[0]!r}")
    values: dict[str, Any] = {}
    if smoke_in is not None:
        path = smoke_in.resolve() / "text"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _SMOKE_TEXT.encode())
        data, values = str(path), dict(_SMOKE)
    if data is not None:
        values["data"] = data
        whole = one_pass(data, values.get("window", 100))
    length = steps or whole
    values["test_every"] = test_every(whole)
    sweep = min(4 if smoke_in else SWEEP_STEPS, length)
    here, fast_here = (
        [dataclasses.replace(n, values=dict(n.values) | values) for n in of]
        for of in (NETWORKS, FAST_NETWORKS)
    )
    curves = [
        Curve(
            "wikipedia",
            network,
            length,
            sweep,
            (0,),
            RATES,
            CLOSE,
            DOUBLINGS,
            with_runner_up=network.name in _FIRST,
            lower_of_two=network.name not in _FIRST,
        )
        for network in here
    ]
    fast = [
        Curve(
            "wikipedia",
            dataclasses.replace(network, steps={"wikipedia": length}),
            length,
            sweep,
            WHOLE_SEEDS[:1],
            FAST_RATES,
            doublings=0,
            sweep_seed=FAST_SWEEP_SEED,
            retreats=True,
        )
        for network in fast_here
    ]
    lstms = [c for c in curves if c.network.name in _LSTMS]
    one_head = [c for c in curves if c.network.name.startswith("associative-lstm-3x256")]
    claims = [
        ComparableClaim(
            key,
            f"The Associative LSTM with {counted(ours.network.values['copies'], 'copy')} performs "
            "comparably to the LSTM on Wikipedia.",
            f"after one pass its cost on the test text and the LSTM's differ by at most {COMPARABLE} bits per "
            "character, each at the better of the passes made with its two best rates, or of those begun later at "
            "the lower of them, and the LSTM with the better of two forget biases; the Associative LSTM starts with "
            "conjugate keys, of ours, the LSTM from Glorot weights; undecided if they differ by more and the "
            "one behind has a pass to make or to finish",
            (*lstms, ours),
            whole,
            (fast[0], ours_fast),
        )
        for key, ours, ours_fast in zip(("10a", "10b"), one_head, fast[1:], strict=True)
    ]
    title, text = "Figure 10: English Wikipedia", "The next character of enwik8, by networks of three layers."
    panels = [Panel("fig10", title, curves)]
    return WikipediaFigure(
        "fig10",
        title,
        text,
        panels,
        claims,
        in_all=False,
        whole=whole,
        chosen=networks,
        recipe=recipe,
        page="README.md",
    )


def one_pass(data: str, window: int = 100) -> int:
    """The minibatches in which the training text is read once."""
    read = Wikipedia.batch_size * window
    length = Wikipedia(data).length("train")
    if length < read:
        raise ValueError(f"data: a minibatch reads {read:,} characters, there are {length:,} to train on")
    return length // read


def _rows(passes: Passes) -> list[dict[str, object]]:
    """The test costs, and the training costs in means, so that the table stays small."""
    run = passes.shown
    if run is None:
        return []
    costs = {"train": zip(*passes.thinned(run), strict=True), "test": run.tests.items()}
    name = passes.found.curve.network.name
    return [
        {"network": name, "text": text, "step": int(step), "cost": float(cost)}
        for text, points in costs.items()
        for step, cost in points
    ]


def _picture(title: str, passes: Sequence[Passes]) -> Figure:
    """Test cost (points) and training cost (thin) against the share of the training text that has been read."""
    with style():
        figure = Figure((8.5, 5.0), layout="constrained")
        axes = figure.subplots()
        lowest, highest = np.inf, 0.0
        for p in passes:
            if (run := p.shown) is None:
                continue
            step, cost = p.thinned(run)
            colour, line = look_of(p.found.curve.network)
            axes.plot(step / p.whole, cost, color=colour, linewidth=0.9, alpha=0.6)
            x, y = [s / p.whole for s in run.tests], list(run.tests.values())
            axes.plot(
                x, y, f"o{line}", color=colour, label=f"{p.found.label}, rate {run.config.learning_rate:g}"
            )
            late = [*cost[step > p.whole / 20], *y]
            lowest, highest = min([lowest, *late]), max([highest, *late])
        if highest:
            axes.set_ylim(lowest - 0.05, highest + 0.05)  # the first steps, from 8 bits, would dwarf the rest
            axes.legend(loc="upper right")
        axes.set(xlabel="passes over the training text", ylabel="bits per character", xlim=(0, None))
        figure.suptitle(title, x=0.01, ha="left", fontsize=14)
        note = "points: the whole test text; thin: training, on text not read before in the first pass"
        figure.supxlabel(note, x=0.01, ha="left", fontsize=11, color="0.35")
    return figure


def rates_table(passes: Sequence[Passes]) -> str:
    """The costs of every rate of every sweep, as far as it was trained; those of the passes in bold."""
    lengths, first_test = _contest_lengths(passes[0].found.curve), test_every(passes[0].whole)
    rows = []
    for p in passes:
        swept = sorted(p.found.sweep.items())
        for rate, run in swept + [
            (r.config.learning_rate, r) for r in p.runs if (r.config.learning_rate, r) not in swept
        ]:
            costs = [run.last(SHARE, until=length) for length in lengths]
            last = p.test_cost(run)
            costs += [run.tests.get(first_test, np.inf), np.inf if last is None else last]
            shown = [f"{cost:.3f}" if np.isfinite(cost) else "" for cost in costs]
            if last is None and (run.diverged or run in p.awaited):
                shown[-1] = f"{'diverged after' if run.diverged else 'not whole:'} {run.steps:,}"
            name = f"**{rate:g}**" if run in p.runs else f"{rate:g}"
            rows.append([p.found.label, name, *shown, f"{np.max(run.gradient_norm, initial=0.0):.2g}"])
    at_tests = f"test, {first_test:,}", "test, one pass"
    return markdown_table(["network", "rate", *(f"{n:,}" for n in lengths), *at_tests, "gradient"], rows)


def _contest_lengths(curve: Curve) -> list[int]:
    return [curve.sweep_steps * 2**k for k in range(curve.doublings + 1)]


def _write_sample(out: Path, passes: Passes) -> Path | None:
    """Text from a network that has been trained for a pass, if its weights are still in the run's folder."""
    if passes.best is None:
        return None
    try:
        trained = load_trained(passes.best[1].folder, symbols_only=True)
    except RunError:  # committed logs come without weights: the text beside them stays
        return None
    symbols = write_text(trained, seed=0, length=400, prompt=PROMPT, temperature=1.0)
    path = out / f"sample-{passes.found.curve.network.name}.txt"
    write_atomically(path, f"{PROMPT}{printable(trained.task.decode(symbols))}\n".encode())
    return path


FIG10 = figure_10()
