"""How claims about learning curves are judged, and a figure of them made: runs, then pictures, table and verdicts."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from associative_lstm.lab.draw.pictures import save_figure
from associative_lstm.lab.draw.tables import save_table
from associative_lstm.lab.experiments.claim import (
    BEFORE,
    FAST,
    FAST_BEFORE,
    SHORT,
    Claim,
    Reading,
    judge,
    verdict_of,
    write_claims,
)
from associative_lstm.lab.experiments.experiment import Experiment, Outcome
from associative_lstm.lab.experiments.learning.criteria import Criterion, Decision, Need, Numbers
from associative_lstm.lab.experiments.learning.curves import Curve, curve, fast_curve, smoke
from associative_lstm.lab.experiments.learning.drawing import draw_figure, draw_sweep
from associative_lstm.lab.experiments.learning.measures import final_cost, solved_at, whole_cost
from associative_lstm.lab.experiments.learning.runs import SHARE, CurveRuns, Logs


@dataclass(frozen=True)
class OpenClaim:
    """A claim before it is judged: what it says, and what would show it, in words."""

    key: str
    sentence: str
    criterion: str

    def judge(self, logs: Logs) -> Claim:
        """The claim with its verdict, from what there is of the runs."""
        raise NotImplementedError

    @property
    def needed(self) -> list[Curve]:
        """The curves that it looks at besides those of its figure."""
        return []


class Otherwise(NamedTuple):
    """Another criterion for a claim: what it is called, in words, and as a function."""

    name: str
    criterion: str
    judged_by: Criterion


class Judged(NamedTuple):
    """A decision, the runs behind it, and what the plan asks for beyond them."""

    holds: bool | None
    numbers: Numbers
    runs: tuple[str, ...]
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class LearningClaim(OpenClaim):
    """A claim about curves.

    It is judged as the paper trained, and a second time by the same criterion with the fast recipe, unless
    ``not_fast`` says why not; ``otherwise`` has other criteria for the first, such as those that it had before.
    ``as_long``: the recipe's short runs cannot tell, so its second verdict has runs as long as the first's; where
    these differ on a task, as the shortest of them. What the short ones would have said is kept beside it.
    """

    judged_by: Criterion
    otherwise: Sequence[Otherwise] = ()
    not_fast: str = ""
    as_long: bool = False

    @property
    def needed(self) -> list[Curve]:
        """The curves that it looks at, by all of its criteria."""
        criteria = (self.judged_by, *(each.judged_by for each in self.otherwise))
        return list(dict.fromkeys(curve(*need) for criterion in criteria for need in criterion.needs))

    @property
    def twins(self) -> dict[Need, Curve]:
        """The same curves by the fast recipe; none if one of them has no such network."""
        return self._twins(as_long=self.as_long)

    def _twins(self, *, as_long: bool) -> dict[Need, Curve]:
        needs = self.judged_by.needs
        lengths: dict[str, int] = {}
        if as_long:  # one for all of a task: the rate falls towards the end of a run
            for task, network in needs:
                steps = curve(task, network).steps
                lengths[task] = min(steps, lengths.get(task, steps))
        found = {(task, network): fast_curve(task, network, lengths.get(task)) for task, network in needs}
        if self.not_fast or None in found.values():
            return {}
        return {need: its for need, its in found.items() if its is not None}

    @property
    def needed_fast(self) -> list[Curve]:
        """The curves that its second verdict looks at."""
        return list(dict.fromkeys(self.twins.values()))

    def judge(self, logs: Logs) -> Claim:
        """The claim with its verdict; undecided while runs are missing."""
        first = _judged(logs, self.judged_by)
        claim = judge(self.sentence, self.criterion, first.holds, **first.numbers)
        readings = []
        if self.not_fast:
            readings.append(Reading(FAST, "undecided", {"reason": self.not_fast}))
        elif self.twins:
            again = reading(FAST, _judged(logs, self.judged_by, self.twins))
            shorter = any(its.steps < curve(*need).steps for need, its in self.twins.items())
            readings.append(dataclasses.replace(again, short=shorter and not self.as_long))
            short = _judged(logs, self.judged_by, self._twins(as_long=False))
            if self.as_long and "not_yet_run" not in short.numbers:
                readings.append(reading(SHORT, short))
        for name, criterion, judged_by in self.otherwise:
            readings.append(reading(name, _judged(logs, judged_by), criterion))
            twins = self.twins
            if name == BEFORE and twins and set(judged_by.needs) <= set(twins):
                readings.append(reading(FAST_BEFORE, _judged(logs, judged_by, twins)))
        return dataclasses.replace(
            claim, key=self.key, runs=first.runs, lacks=first.lacks, readings=tuple(readings)
        )


def reading(name: str, made: Judged, criterion: str = "") -> Reading:
    return Reading(name, verdict_of(made.holds), made.numbers, criterion, made.runs, made.lacks)


def _judged(logs: Logs, criterion: Criterion, twins: Mapping[Need, Curve] | None = None) -> Judged:
    """What a criterion decides; of ``twins``, where these are given, in the place of the curves that it names."""
    found = {need: logs.curve((twins or {}).get(need) or curve(*need)) for need in criterion.needs}
    curves = {c.curve.name: c for c in found.values()}
    missing = [name for name, c in curves.items() if not c.can_be_judged]
    hopeless = [name for name, c in curves.items() if c.always_diverged]
    decision: Decision
    if hopeless:
        decision = None, {"diverged_with_every_rate": ", ".join(hopeless)}
    elif missing:
        decision = None, {"not_yet_run": ", ".join(missing)}
    else:
        decision = criterion.decide(found)
    decision = decision[0], decision[1] | rates_given_up(found.values())
    behind = [run for c in found.values() for runs in (c.runs, *c.given_up.values()) for run in runs]
    if criterion.by_sweeps:
        behind += [run for c in found.values() for run in c.sweep.values()]
    runs = dict.fromkeys(logs.name(run.folder) for run in behind)
    lacks = [f"{name}: {c.lacks}" for name, c in curves.items() if name not in missing and c.lacks]
    return Judged(*decision, tuple(runs), tuple(lacks))


def rates_given_up(curves: Iterable[CurveRuns]) -> Numbers:
    """The rates that gave way, since a seed diverged with them or lost what it had learned."""
    return {
        f"{c.label}: rate {rate:g} given up for {c.rate:g}": (
            f"{diverged} of {len(runs)} diverged" if diverged else "it lost what it had learned"
        )
        for c in curves
        for rate, runs in c.given_up.items()
        for diverged in [sum(run.diverged is not None for run in runs)]
    }


class Panel(NamedTuple):
    """One picture: the beginning of its file's name, its title, and its curves in the order of the legend.

    ``labels`` are shorter names for them on a page, where the networks' own say the same again and again. Where some
    curves are much longer than others, the minibatches are drawn ``logarithmic``.
    """

    stem: str
    title: str
    curves: Sequence[Curve]
    labels: Sequence[str] = ()
    logarithmic: bool = False

    @property
    def unequal(self) -> bool:
        """Whether the minibatches are drawn logarithmic, as is asked for or for the planned lengths."""
        lengths = [c.steps for c in self.curves]
        return self.logarithmic or max(lengths) > 4 * min(lengths)


@dataclass(frozen=True)
class LearningFigure(Experiment):
    """An experiment that is read from the logs of runs, which are made first if they are missing.

    ``in_all``: whether `alstm reproduce all` makes it.
    """

    panels: Sequence[Panel]
    claims: Sequence[OpenClaim]
    in_all: bool = True

    @property
    def needed(self) -> list[Curve]:
        """The curves of its panels, and those that its claims look at besides."""
        shown = [c for panel in self.panels for c in panel.curves]
        return [*shown, *(c for claim in self.claims for c in claim.needed)]

    @property
    def needed_fast(self) -> list[Curve]:
        """The curves of the fast recipe by which its claims are judged a second time."""
        claims = (claim for claim in self.claims if isinstance(claim, LearningClaim))
        return list(dict.fromkeys(c for claim in claims for c in claim.needed_fast))

    @property
    def long_panels(self) -> list[Panel]:
        """What its claims are judged by a second time besides the recipe's short runs: its long ones."""
        tasks: dict[str, list[Curve]] = {}
        for c in self.needed_fast:
            if c.retreats:
                tasks.setdefault(c.task, []).append(c)
        return [
            Panel(
                f"{self.name}-{task}-fast",
                f"{self.short}, by the fast recipe: {task}",
                curves,
                logarithmic=True,
            )
            for task, curves in tasks.items()
        ]

    def recorded(self, folder: Path) -> "LearningFigure":
        """The figure as it was when it was drawn into ``folder``: on which text, where there are several."""
        return self

    def draw(self, out: Path, logs: Logs, **about: object) -> Outcome:
        """Pictures, table and verdicts from what there is of the runs; ``about`` goes with the verdicts."""
        out.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        rows: list[dict[str, object]] = []
        for panel in self.panels:
            stem, title, planned, *_ = panel
            curves = [logs.curve(c) for c in planned]
            written.append(save_figure(draw_figure(title, curves, panel.unequal), out / f"{stem}.png"))
            written.append(save_figure(draw_sweep(title, curves), out / f"{stem}-sweep.png"))
            rows += _rows(curves)
        for stem, title, planned, _, logarithmic in self.long_panels:
            curves = [logs.curve(c) for c in planned]
            if any(c.runs for c in curves):
                written.append(save_figure(draw_figure(title, curves, logarithmic), out / f"{stem}.png"))
                rows += _rows(curves)
        written.append(save_table(out / f"{self.name}.csv", rows or [{"runs": "none yet"}]))
        claims = [claim.judge(logs) for claim in self.claims]
        written.append(write_claims(out / "claims.json", claims, runs=str(logs.folder), **about))
        return Outcome(written, claims)


def preparation(*, seed: int = 0, quick: bool = False) -> Callable[[Curve], Curve]:
    """What is done to every curve before it is run or read: other seeds from ``seed`` on, or tiny networks."""

    def prepare(planned: Curve) -> Curve:
        chosen = smoke(planned) if quick else planned
        swept = None if chosen.sweep_seed is None else seed + chosen.sweep_seed
        return dataclasses.replace(chosen, seeds=tuple(seed + s for s in chosen.seeds), sweep_seed=swept)

    return prepare


def _rows(curves: Sequence[CurveRuns]) -> list[dict[str, object]]:
    """Every run of the curves in a line: the sweep's, then the seeds'."""
    rows: list[dict[str, object]] = []
    for c in curves:
        given_up = [run for runs in c.given_up.values() for run in runs]
        for run in dict.fromkeys((*c.sweep.values(), *given_up, *c.runs)):
            ours = run in c.runs
            until = c.length if ours else max(run.steps, c.curve.sweep_steps)
            rows.append(
                {
                    "task": c.curve.task,
                    "network": c.curve.network.name,
                    "rate": run.config.learning_rate,
                    "seed": run.config.seed,
                    "steps": run.steps,
                    "best_rate": ours,
                    "sweep_cost": run.last(SHARE, until=c.curve.sweep_steps),
                    "final_cost": final_cost(run, until),
                    "whole_cost": whole_cost(run, until),
                    "solved_at": solved_at(run),
                    "seconds": float(np.max(run.seconds, initial=0.0)),
                    "diverged": run.diverged is not None,
                }
            )
    return rows
