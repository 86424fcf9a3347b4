"""What came out, in three sentences and as counts; ``method.md`` has how it was measured and what was changed."""

from collections.abc import Iterable, Mapping

from associative_lstm.lab.experiments.claim import Claim


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


def sentences(claims: Mapping[str, Claim]) -> list[str]:
    """What can be said of the claims, which are given by the names of their anchors."""
    verdicts = {name: claim.verdict for name, claim in claims.items()}
    return [text for rests_on, text in SENTENCES if rests_on.items() <= verdicts.items()]


def counts(claims: Iterable[Claim]) -> dict[str, int]:
    """How many claims hold, fail, are undecided."""
    verdicts = [claim.verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in ("holds", "fails", "undecided")}
