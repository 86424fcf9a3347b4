"""Figures 3 to 13, and three of ours: their networks, and what each of them is to show.

The criteria were written down before the runs were looked at; ``report/method.md`` says what was changed since, and a
claim whose criterion was changed is judged by the one before, too (``_before``). Every network is judged at its own
best learning rate.
"""

from collections.abc import Iterable, Iterator

from associative_lstm.lab.experiments.claim import BEFORE
from associative_lstm.lab.experiments.learning import criteria
from associative_lstm.lab.experiments.learning.criteria import Criterion
from associative_lstm.lab.experiments.learning.curves import (
    ASSOCIATIVE,
    ON_COPY,
    ONE_RATE,
    START_COPIES,
    START_TASKS,
    STARTS,
    STEADY,
    curve,
    start_curves,
)
from associative_lstm.lab.experiments.learning.fast import FAST
from associative_lstm.lab.experiments.learning.judging import LearningClaim, LearningFigure, Otherwise, Panel
from associative_lstm.lab.experiments.learning.measures import whole_cost
from associative_lstm.lab.experiments.learning.wikipedia import FIG10
from associative_lstm.lab.tasks import TASKS
from associative_lstm.lab.words import counted

_ONE, _FOUR, _EIGHT = ASSOCIATIVE
_LSTMS = ("lstm-128", "lstm-128-forget-1")
_ONLINE = (*_LSTMS, "lstm-512", *ASSOCIATIVE)
_HEADS = tuple(f"associative-lstm-3-heads-{copies}" for copies in (1, 4, 8))
_THREE_BELOW_ONE = list(zip(_HEADS[1:], (_FOUR, _EIGHT), strict=True))
_UNITARY = tuple(f"{m}unitary-rnn-{size}" for m in ("", "multiplicative-") for size in (256, 1024))

_UNITARY_256 = ("unitary-rnn-256", "multiplicative-unitary-rnn-256")

_SOLVE_TEXT = "averaged over 500 minibatches"
_LOWER = (
    "over the last tenth of the runs, the cost of every seed is lower, by a tenth or more in the mean; "
    "undecided if the seeds overlap or the means are closer"
)
_LOWER_OVER_ALL = (
    "the mean cost over the whole run is lower in every seed, by a tenth or more in the mean; undecided if the seeds "
    "overlap or the means are closer"
)
_LENGTHS_DIFFER = (
    "on arithmetic, by the fast recipe, 3 heads are trained for 250,000 minibatches of 2 sequences, all others for "
    "10,000, and the rate falls towards the end of each"
)
_FALLS = "undecided if the others diverge, or end earlier than planned or while improving by 2 % per tenth"
_FELL = "undecided if the others diverge, or end while improving by 5 % per tenth"
_SOLVED = f"the cost, {_SOLVE_TEXT}, falls below 0.1 bits"
_SOLVED_IN_EVERY_SEED = f"in every seed {_SOLVED}; {_FALLS}"
_WELL = (
    "in every seed the cost of the last tenth is less than a quarter of what remembering nothing costs; undecided if "
    "the others are above it by less than a tenth, diverge, or end earlier than planned or while improving by 2 % "
    "per tenth"
)


def _before(criterion: str, judged_by: Criterion) -> Otherwise:
    """The criterion that a claim had before results were seen."""
    return Otherwise(BEFORE, criterion, judged_by)


def _solved_before(*needs: criteria.Need) -> Otherwise:
    """That the task is solved, with a stricter rule for runs that end too early."""
    return _before(f"in every seed {_SOLVED}; {_FELL}", criteria.solve_before(*needs))


def _figure(
    number: int, title: str, task: str, networks: Iterable[str], *claims: LearningClaim
) -> LearningFigure:
    """A figure of the paper: one panel, and what the task is in a sentence."""
    name, title, text = f"fig{number}", f"Figure {number}: {title}", f"{TASKS[task].description}."
    curves, relapses = [curve(task, network) for network in networks], TASKS[task].episodic
    panel = Panel(
        name, title, curves, logarithmic=relapses
    )  # on copy some need 600 minibatches, others 40,000
    return LearningFigure(name, title, text[0].upper() + text[1:], [panel], claims)


def _against_ntm(number: int, title: str, task: str, letters: str) -> LearningFigure:
    """Minibatches of 1: both networks do well, and one of them gets there more steadily."""
    ours, ntm = STEADY
    at_first = (
        ours if task == "arithmetic" else ours.removesuffix("-whu")
    )  # elsewhere it was run without W_hu
    earlier = (at_first, ntm)
    solving = [
        LearningClaim(
            f"6{letter}",
            f"The {name} does well on {task} with minibatches of 1.",
            _WELL,
            criteria.do_well((task, network)),
            (
                _solved_before((task, network)),
                *([Otherwise("without W_hu", _WELL, criteria.do_well((task, before)))] * (before != network)),
            ),
            as_long=True,
        )
        for letter, name, network, before in zip(
            letters, ("Associative LSTM with 3 heads and 4 copies", "NTM"), (ours, ntm), earlier, strict=False
        )
    ]
    rises = "the rises of log cost, from one 500 minibatches to the next, over its net fall, "
    smaller = (
        "are smaller by a tenth or more (3 heads, 4 copies); undecided unless both have halved their cost"
    )
    slowly = "take 5,000 minibatches or more to get there, and have run as long as planned"
    range_of_both = f"{rises}down to the cost that both networks reach, {smaller}, {slowly}"
    steadily = LearningClaim(
        f"6{letters[-1]}",
        f"On {task} the Associative LSTM's progress is steadier than the NTM's.",
        range_of_both,
        criteria.steadier(task, (ours, ntm)),
        (
            _before(f"{rises}down to 0.1 bits, {smaller}", criteria.steadier(task, STEADY, as_before=True)),
            *(
                [Otherwise("without W_hu", range_of_both, criteria.steadier(task, earlier))]
                * (ours != earlier[0])
            ),
        ),
        as_long=True,
    )
    title = f"{title}, minibatches of 1, against the NTM"
    networks = ("lstm-512-batch-1", *(f"{name}-batch-1-whu" for name in _HEADS), at_first, ntm)
    return _figure(number, title, task, dict.fromkeys(networks), *solving, steadily)


def _choices() -> LearningFigure:
    """What the paper says of its choices in passing: W_hu, the bound, the size of a minibatch."""
    with_w_hu, tanh = f"{_FOUR}-whu", f"{_FOUR}-tanh"
    alone, together = "associative-lstm-3-heads-4-batch-1", "associative-lstm-3-heads-4"
    pairs = [
        (task, one, two)
        for task in ("xml", "assignment", "arithmetic")
        for one, two in (
            (f"{alone}-whu", together if task == "arithmetic" else f"{together}-whu"),
            ("lstm-512-batch-1", "lstm-512"),
        )
    ]
    return LearningFigure(
        "choices",
        "Choices: W_hu, the bound, and minibatches",
        "What the paper says of its choices in passing, 4 copies.",
        [
            *(
                Panel(f"choices-{task}", f"W_hu and the bound: {task}", [curve(task, name) for name in names])
                for task, names in {
                    "copy": (_FOUR, with_w_hu),
                    "xml": (_FOUR, with_w_hu, tanh),
                    "assignment": (_FOUR, with_w_hu, tanh),
                }.items()
            ),
            *(
                Panel(
                    f"choices-minibatches-{task}",
                    f"Minibatches of 1 and of 2: {task}",
                    [curve(task, f"{name}-whu") for name in (alone, together)],
                )
                for task in ("xml", "assignment")
            ),
        ],
        (
            LearningClaim(
                "13a",
                "Leaving out W_hu speeds learning up on copy, XML and variable assignment.",
                f"4 copies, without it and with it, on each of the three: {_LOWER_OVER_ALL}",
                criteria.every(
                    *(
                        criteria.compare(task, [(_FOUR, with_w_hu)], measure=whole_cost)
                        for task in ("copy", "xml", "assignment")
                    )
                ),
            ),
            LearningClaim(
                "13b",
                "The hard bound works slightly better than tanh of the modulus.",
                "4 copies, on XML and on variable assignment: the mean cost over the whole run is lower in every "
                "seed, however little; undecided if the seeds overlap",
                criteria.every(
                    *(
                        criteria.compare(task, [(_FOUR, tanh)], factor=1.0, measure=whole_cost)
                        for task in ("xml", "assignment")
                    )
                ),
            ),
            LearningClaim(
                "13c",
                "Other sizes of the minibatch than 1 lead to similar learning curves.",
                "3 heads with 4 copies and the LSTM of 512 units, on the three tasks of the NTM: with minibatches of "
                "1 and of 2 the costs of the last tenth differ by a quarter at most, after as many minibatches or as "
                "many sequences; undecided if a seed diverged or is as far from its network's mean",
                criteria.every(*(criteria.alike(*each) for each in pairs)),
                not_fast=_LENGTHS_DIFFER,
            ),
        ),
    )


def _gap_claims() -> Iterator[LearningClaim]:
    """Readers' question, task by task: does a well-tuned LSTM close the gap?"""
    sizes = {"of the same size": _LSTMS, "of 512 units (ten times the parameters)": ("lstm-512",)}
    cases = [
        (size, lstms, task, ours) for size, lstms in sizes.items() for task, ours in criteria.GAPS.items()
    ]
    for letter, (size, lstms, task, ours) in zip("abcdef", cases, strict=True):
        copies = "1 copy" if ours.endswith("-1") else "4 copies"
        bias = f", the LSTM with {'either forget bias' if len(lstms) > 1 else 'forget bias 0 only'}"
        yield LearningClaim(
            f"7{letter}",
            f"On {task}, a well-tuned LSTM {size} does not close the gap to the Associative LSTM with {copies}.",
            f"each network at the best rate of the same sweep{bias}, the LSTM stays behind within the run: {_LOWER}",
            criteria.gap(task, *lstms),
        )


_AT_ONE_RATE = (f"{_FOUR}-at-one-rate", f"{_EIGHT}-at-one-rate")
_AT_THE_SAME_RATE = LearningClaim(
    "7g",
    "Several copies solve the copy task sooner than one at the same rate, too (ours).",
    f"at {ONE_RATE:g}, which is best for 1 copy: every seed with 4 and with 8 solves it before any with 1",
    criteria.at_rate(ONE_RATE, criteria.solve_sooner(_AT_ONE_RATE, (_ONE,))),
    not_fast="the recipe has rates of its own",
)


def _starts(task: str) -> Panel:
    curves = [c for copies in START_COPIES for c in start_curves(task, copies)]
    labels = [f"{counted(copies, 'copy')}, {text}" for copies in START_COPIES for _, text, _ in STARTS]
    return Panel(f"starts-{task}", f"How keys and forget gate start: {task}", curves, labels)


FIGURES: tuple[LearningFigure, ...] = (
    _figure(
        3,
        "Episodic copy, fixed length",
        "copy",
        (*ON_COPY, "lstm-512"),
        LearningClaim(
            "1a",
            "Permutation and unitary RNN solve the copy task before the Associative LSTM.",
            f"bits on the answer, {_SOLVE_TEXT}, fall below 3 in every seed of the two before any seed of the third",
            criteria.solve_sooner(("permutation-rnn-256", "unitary-rnn-256"), (_ONE,)),
        ),
        LearningClaim(
            "1b",
            "The Associative LSTM solves the copy task much faster than the LSTM.",
            "solved in half the minibatches that the LSTM needs with either forget bias",
            criteria.solve_sooner((_ONE,), _LSTMS, factor=2.0),
            as_long=True,
        ),
        LearningClaim(
            "1c",
            "On the copy task the LSTM learns faster with forget bias 1 than without.",
            f"with the bias {_LOWER_OVER_ALL}",
            criteria.compare("copy", [("lstm-128-forget-1", "lstm-128")], measure=whole_cost),
            (
                _before(
                    "every seed with the bias solves it before any without",
                    criteria.solve_sooner(("lstm-128-forget-1",), ("lstm-128",)),
                ),
            ),
            "the recipe has a forget bias of its own",
        ),
        LearningClaim(
            "1d",
            "On the copy task more copies neither help nor harm.",
            "the mean minibatches to solve it with 4 and with 8 copies are within 25 % of those with 1; undecided "
            "if a seed of 1 copy is as far from their mean",
            criteria.COPIES_ALIKE,
            as_long=True,
        ),
        LearningClaim(
            "1e",
            "The Associative LSTM is only somewhat later than the permutation and the unitary RNN.",
            "with 1 copy it needs at most 3 times the minibatches of each of the two",
            criteria.soon_after(("permutation-rnn-256", "unitary-rnn-256"), _ONE, 3.0),
        ),
        LearningClaim(
            "1f",
            "The Associative LSTM solves the copy task before an LSTM of 512 units, too.",
            "every seed with 1 copy solves it before any of the LSTM",
            criteria.solve_sooner((_ONE,), ("lstm-512",)),
            as_long=True,
        ),
    ),
    _figure(
        4,
        "Episodic copy, variable length",
        "copy-variable",
        ON_COPY,
        LearningClaim(
            "2a",
            "Variable lengths slow the unitary RNNs down badly.",
            "both need at least twice the minibatches (answer below a tenth of chance)",
            criteria.slowdown(_UNITARY_256, at_least=2.0),
        ),
        LearningClaim(
            "2b",
            "Variable lengths hardly slow the Associative LSTM down.",
            "with 1 copy it needs at most 1.5 times the minibatches; undecided if a seed diverges or ends before "
            "that",
            criteria.slowdown((_ONE,), at_most=1.5),
            as_long=True,
        ),
        LearningClaim(
            "2c",
            "Variable lengths hardly slow the Associative LSTM with 4 and 8 copies down.",
            "each needs at most 1.5 times the minibatches; undecided if a seed diverges or ends before that",
            criteria.slowdown((_FOUR, _EIGHT), at_most=1.5),
        ),
        *(
            LearningClaim(
                key,
                f"With variable lengths the Associative LSTM with {copies} solves the task before the unitary RNNs.",
                f"bits on the answer, {_SOLVE_TEXT}, fall below a tenth of chance in every seed before any seed of "
                "the two",
                criteria.solve_sooner(ours, _UNITARY_256, task="copy-variable"),
            )
            for key, copies, ours in (
                ("2d", "1 copy", (_ONE,)),
                ("2e", "4 and with 8 copies", (_FOUR, _EIGHT)),
            )
        ),
    ),
    _figure(
        5,
        "XML, with unitary RNNs",
        "xml",
        ("lstm-128", *ASSOCIATIVE, *_UNITARY),
        LearningClaim(
            "3d",
            "On XML unitary RNNs do badly, even with 1024 units.",
            f"all four stay behind the LSTM of 128 units: {_LOWER}",
            criteria.compare("xml", [("lstm-128", network) for network in _UNITARY]),
        ),
    ),
    _figure(
        6,
        "XML",
        "xml",
        _ONLINE,
        LearningClaim(
            "3a",
            "On XML the cost falls with the number of copies.",
            f"4 copies below 1, and 8 below 4: {_LOWER}",
            criteria.compare("xml", [(_FOUR, _ONE), (_EIGHT, _FOUR)]),
        ),
        LearningClaim(
            "3b",
            "On XML 4 copies of 128 units learn faster than an LSTM of 512, which has as many cells.",
            "the mean cost over the whole run is lower in every seed, by a tenth or more in the mean; undecided if "
            "closer",
            criteria.compare("xml", [(_FOUR, "lstm-512")], measure=whole_cost),
        ),
        LearningClaim(
            "3c",
            "On XML the Associative LSTM with 1 copy beats the LSTM of the same size by far.",
            "with either forget bias of the LSTM: over the last tenth of the runs, the cost of every seed is lower, "
            "and 1.5 times as low in the mean; undecided if the seeds overlap",
            criteria.compare("xml", [(_ONE, lstm) for lstm in _LSTMS], factor=1.5),
        ),
        LearningClaim(
            "3e",
            "On XML 4 copies are enough for a dramatic improvement.",
            "over the last tenth of the runs, the cost of every seed of 4 copies is lower than that of every seed of "
            "1, and half as high in the mean; undecided if the seeds overlap",
            criteria.compare("xml", [(_FOUR, _ONE)], factor=2.0),
        ),
    ),
    _figure(
        7,
        "Variable assignment",
        "assignment",
        _ONLINE,
        LearningClaim(
            "4a",
            "4 and 8 copies solve variable assignment.",
            _SOLVED_IN_EVERY_SEED,
            criteria.solve(("assignment", _FOUR), ("assignment", _EIGHT)),
            (_solved_before(("assignment", _FOUR), ("assignment", _EIGHT)),),
            as_long=True,
        ),
        LearningClaim(
            "4b",
            "An LSTM of 512 units learns variable assignment more slowly than 4 or 8 copies.",
            f"4 copies and 8 below it: {_LOWER_OVER_ALL}",
            criteria.compare("assignment", [(_FOUR, "lstm-512"), (_EIGHT, "lstm-512")], measure=whole_cost),
        ),
        LearningClaim(
            "4c",
            "On variable assignment the LSTM of 128 units is worse than the Associative LSTM with 1 copy.",
            f"1 copy below the LSTM with either forget bias: {_LOWER_OVER_ALL}",
            criteria.compare("assignment", [(_ONE, lstm) for lstm in _LSTMS], measure=whole_cost),
            (
                _before(
                    f"1 copy below the LSTM with either forget bias: {_LOWER}",
                    criteria.compare("assignment", [(_ONE, lstm) for lstm in _LSTMS]),
                ),
            ),
        ),
        LearningClaim(
            "4d",
            "An LSTM of 512 units solves variable assignment.",
            _SOLVED_IN_EVERY_SEED,
            criteria.solve(("assignment", "lstm-512")),
            as_long=True,
        ),
    ),
    _figure(
        8,
        "Arithmetic",
        "arithmetic",
        _ONLINE,
        LearningClaim(
            "5a",
            "On arithmetic 1 copy learns better than several.",
            "over the last tenth of the runs, the cost of every seed of 1 copy is lower than that of every seed of 4 "
            "and of 8, however little; undecided if the seeds overlap, or while runs are shorter than planned",
            criteria.compare("arithmetic", [(_ONE, _FOUR), (_ONE, _EIGHT)], factor=1.0, in_the_end=True),
            (
                _before(
                    f"1 copy below 4 and below 8: {_LOWER}",
                    criteria.compare("arithmetic", [(_ONE, _FOUR), (_ONE, _EIGHT)]),
                ),
            ),
            as_long=True,
        ),
        LearningClaim(
            "5d",
            "With 1 copy the Associative LSTM does well on arithmetic.",
            _WELL,
            criteria.do_well(("arithmetic", _ONE)),
            (_solved_before(("arithmetic", _ONE)),),
            as_long=True,
        ),
        LearningClaim(
            "5f",
            "With several copies, and one head, the Associative LSTM does not do well on arithmetic.",
            "with 4 and with 8 copies, in every seed the cost of the last tenth is a quarter or more of what "
            "remembering nothing costs; undecided if one diverges, or ends earlier than planned or while improving "
            "by 2 % per tenth",
            criteria.do_badly(("arithmetic", _FOUR), ("arithmetic", _EIGHT)),
            as_long=True,
        ),
    ),
    _figure(
        9,
        "Arithmetic, 3 heads",
        "arithmetic",
        ("lstm-128", "lstm-512", *_HEADS),
        LearningClaim(
            "5b",
            "With 3 heads, several copies solve arithmetic.",
            f"with 4 and with 8 copies, in one seed at least, {_SOLVED}; {_FALLS}",
            criteria.solve(*(("arithmetic", name) for name in _HEADS[1:]), in_one_seed=True),
            (_solved_before(*(("arithmetic", name) for name in _HEADS[1:])),),
        ),
        LearningClaim(
            "5c",
            "On arithmetic 3 heads help where there are several copies.",
            f"3 heads below 1, with 4 and with 8 copies: {_LOWER}, or while runs are shorter than planned",
            criteria.compare("arithmetic", _THREE_BELOW_ONE, in_the_end=True),
            (
                _before(
                    f"3 heads below 1, with 4 and with 8 copies: {_LOWER}",
                    criteria.compare("arithmetic", _THREE_BELOW_ONE),
                ),
            ),
            not_fast=_LENGTHS_DIFFER,
        ),
        LearningClaim(
            "5e",
            "With 3 heads, several copies solve arithmetic consistently.",
            f"with 4 and with 8 copies, in each of two seeds or more, {_SOLVED}; {_FALLS}",
            criteria.solve(*(("arithmetic", name) for name in _HEADS[1:]), seeds=2),
        ),
    ),
    FIG10,
    _against_ntm(11, "XML", "xml", "abc"),
    _against_ntm(12, "Variable assignment", "assignment", "def"),
    _against_ntm(13, "Arithmetic", "arithmetic", "ghi"),
    _choices(),
    LearningFigure(
        "tuning",
        "Tuning: does a well-tuned LSTM close the gap, do copies differ at one rate?",
        "Readers' question: LSTMs at their best learning rates, with either forget bias and with 512 units; "
        "copies at one rate.",
        [
            Panel(
                f"tuning-{task}",
                f"Does a well-tuned LSTM close the gap? {task}",
                [curve(task, network) for network in (*_LSTMS, "lstm-512", ours)],
            )
            for task, ours in criteria.GAPS.items()
        ]
        + [
            Panel(
                "tuning-copy", "Copies at one rate: copy", [curve("copy", n) for n in (_ONE, *_AT_ONE_RATE)]
            )
        ],
        (*_gap_claims(), _AT_THE_SAME_RATE),
        ours=True,
    ),
    LearningFigure(
        "starts",
        "Starts: how keys and forget gate begin",
        "Ours, not the paper's: four initialisations of the Associative LSTM on three tasks.",
        [_starts(task) for task in START_TASKS],
        (
            LearningClaim(
                "8a",
                "How keys and forget gate start matters on all three tasks, with 1 and with 4 copies (ours).",
                "on copy, XML and assignment, with 1 and 4 copies, the worst start costs 1.25 times the best over "
                "the whole run, in every seed more; undecided if the seeds overlap",
                criteria.START_DECIDES,
            ),
            LearningClaim(
                "8b",
                "One start of keys and forget gate serves all three tasks (ours).",
                "one of the four costs at most 1.25 times the best on each task, with 1 and with 4 copies, over the "
                "whole run",
                criteria.ONE_START_SERVES,
            ),
        ),
        ours=True,
    ),
    FAST,
)
