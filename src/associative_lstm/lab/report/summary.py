"""What came out, in three sentences; how it was measured; and what was changed after runs had been seen."""

from collections.abc import Iterable, Mapping

from associative_lstm.lab.experiments.claims import Claim


def _all(verdict: str, *keys: str) -> dict[str, str]:
    return {f"claim-{key}": verdict for key in keys}


SENTENCES: tuple[tuple[Mapping[str, str], str], ...] = (
    (
        _all("holds", "fig1-1", "fig2-1", "fig2-2", "fig2-3", "fig2-4", "3a", "4a", "7a", "7b", "7d", "7e"),
        "What holds: the noise of the memory is what the paper predicts, and falls with the number of copies; and "
        "where things have to be looked up all the time (XML, variable assignment) several copies learn far better "
        "than LSTMs of the same size or of 512 units, however well these are tuned.",
    ),
    (
        _all("fails", "1d", "1e", "5b", "5d", "6b", "6c", "6d", "6f", "6g", "6h"),
        "What does not: within these runs nothing solves arithmetic, nor, with minibatches of one sequence, any task "
        "that the NTM is compared on, where the NTM's progress is the steadier; and on the copy task copies do help, "
        "while a single one is far behind permutation and unitary RNN.",
    ),
    (
        {},
        "Why is open where runs were too short to tell: the paper does not say how long its own were, these are of "
        "10,000 to 80,000 minibatches on one core, and as nothing is clipped, as in the paper, some diverge; a "
        "claim is undecided where seeds overlap, diverge, or still improve when they end.",
    ),
)
"""Each with the verdicts that it rests on: it is said only while they are those."""

METHOD = (
    "Every network gets the same sweep of learning rates with its first seed; if the lowest or the highest rate is "
    "best, the next one beyond it is tried too. The rate with the lowest mean cost over the last fifth of the sweep "
    "is the network's best; rates within 2 % of it are first trained for longer, until one is best. The other seeds "
    "are trained with it. Figure 10 has a rule of its own, which its page tells.",
    "Runs are of 20,000 minibatches; of 40,000 on copy (the LSTM's of 80,000 with fixed length; other starts "
    "20,000), on assignment with 4 and 8 copies, and on arithmetic with the Associative LSTM of one head. In "
    "figures 11 to 13 a minibatch is a single sequence, and runs are of 10,000; of 40,000 on XML and of 20,000 on "
    "assignment for the two networks whose progress is compared. Gradients are not clipped, as in the paper. "
    "Figures 3 and 4 leave out the LSTM of 512 units, which Table 1 has.",
    "“Fails” is said of the runs that were made, “undecided” where they cannot tell: a seed diverged, seeds "
    "overlap, means are closer than a tenth, a task was not solved by their end, or they ended while still "
    "improving by 5 % in the last tenth. Tried where a claim did not come out as the paper has it: rates beyond the "
    "sweep; longer runs, but for three heads on arithmetic, also against the NTM; on copy, XML and assignment also "
    "other starts of keys and forget gate. Not tried: clipping, and runs as long as the paper's, which it does not "
    "give.",
    "The criteria of the claims were fixed before the runs were looked at. Changed since:",
)


def sentences(claims: Mapping[str, Claim]) -> list[str]:
    """What can be said of the claims, which are given by the names of their anchors."""
    verdicts = {name: claim.verdict for name, claim in claims.items()}
    return [text for rests_on, text in SENTENCES if rests_on.items() <= verdicts.items()]


def counts(claims: Iterable[Claim]) -> dict[str, int]:
    """How many claims hold, fail, are undecided."""
    verdicts = [claim.verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in ("holds", "fails", "undecided")}


CHANGED = (
    (
        ("1a", "1b"),
        "Who solves the copy task first is compared network by network, where several had been pooled, which could "
        "not fail.",
    ),
    (
        ("1a", "1e"),
        "That the Associative LSTM is somewhat later had been part of another claim; it can fail by itself now.",
    ),
    (
        ("1d", "8a"),
        "Whether copies or starts matter is undecided where the seeds overlap, and a comparison of costs where a "
        "seed of several diverged.",
    ),
    (
        ("2c",),
        "Variable lengths with 4 and 8 copies were added when 1 copy could not tell and the others had been seen.",
    ),
    (
        ("5a", "5d"),
        "The claim about 1 copy on arithmetic says that it learns better than several, which is what it measures; "
        "that it does well is a claim of its own.",
    ),
    (
        ("6a", "6b", "6c"),
        "The comparison to the NTM is judged task by task. Steadiness leaves out costs of a solved task, asks for a "
        "difference of a tenth, and is undecided unless both networks have halved their cost.",
    ),
    (
        ("3c", "4c", "7a", "7d"),
        "Comparisons with the LSTM are made with forget bias 1 too, and tuning is judged task by task; an LSTM of "
        "512 units by the rate that is best in the end, where whole runs with several were made.",
    ),
    (
        ("1d", "2b", "4a"),
        "A seed that diverged counts for as long as it went where times are compared, and decides nothing about "
        "copies; it leaves open whether a task is solved.",
    ),
    (
        (),
        "The sweep goes one rate beyond its ends, and trains rates that are too close to call for longer. On the "
        "online tasks it is 20,000 minibatches long for networks of at most 200,000 parameters; it had been 5,000.",
    ),
    (
        (),
        "Runs were made longer where they could not decide: from 20,000 to 40,000 minibatches on copy (80,000 for "
        "the LSTM with fixed length), on assignment with 4 and 8 copies, and on arithmetic with one head; where "
        "networks are compared to the NTM, from 10,000 to 40,000 on XML and to 20,000 on assignment.",
    ),
    (
        ("10a", "10b"),
        "Wikipedia had been judged by the pass with the better of two rates after 2,000 minibatches. It is judged by "
        "the better pass of two, with the best rates of a sweep of 4,000, in which rates within 20 % of the best go "
        "on to 16,000. The sweep was made longer when short ones had been seen to mislead, the second pass added "
        "when the gradients of the Associative LSTM had exploded, past a third of the pass, at the rate that was "
        "best in the sweep.",
    ),
)
"""What was changed about claims and runs after runs had been seen, and some of the claims that it is about."""
