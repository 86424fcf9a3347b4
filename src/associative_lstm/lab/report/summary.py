"""What came out: in three sentences, as counts, and claim by claim; ``method.md`` has how it was measured."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from associative_lstm.lab.experiments.claim import Claim
from associative_lstm.lab.report.sections import Section


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
        _all("holds", "9a", "9k", "9l", "9m", "9n", "9o") | _all("fails", "9e", "9g"),
        "Why: the paper tells neither how its networks start nor whether gradients are clipped. From a start and by "
        "a recipe of ours, with the same equations, 4 copies solve the copy task in a tenth of the minibatches, "
        "while XML and arithmetic are not yet as low after a quarter; on every task they stay ahead of an LSTM of "
        "the same size that is trained by the same recipe. A claim is undecided where seeds overlap, diverge, or "
        "still improve when they end.",
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


def counts_in_words(sections: Sequence[Section]) -> str:
    """The paper's claims, and ours, counted in a sentence each."""
    lines = []
    for whose, ours in (("the paper's", False), ("our own", True)):
        found = [c for section in sections if section.ours == ours for c in section.claims.values()]
        numbers = counts(found)
        lines.append(
            f"Of {whose} {len(found)} claims {numbers['holds']} hold, {numbers['fails']} fail and "
            f"{numbers['undecided']} are undecided."
        )
    return " ".join(lines)


def as_markdown(sections: Sequence[Section]) -> str:
    """Every claim with its verdict and its numbers, for a folder beside those of the experiments."""
    claims = {name: claim for section in sections for name, claim in section.claims.items()}
    lines = [
        "# What was reproduced",
        "",
        *(line for sentence in sentences(claims) for line in (sentence, "")),
        f"**{counts_in_words(sections)}** Each is below, with its criterion and what was measured.",
        "",
        "This page is made by `alstm report --out results/README.md` from the logs of the runs and the results in "
        "the folders beside it; `alstm report` makes a page with every curve.",
        "",
    ]
    for section in sections:
        if not section.claims:
            continue
        lines += [f"## {section.title}", "", f"[{section.id}]({section.id}): `{section.command}`", ""]
        for name, claim in section.claims.items():
            lines += [
                f'- <a id="{name}"></a>**{claim.verdict}**: {claim.sentence}',
                f"  <br>Criterion: {claim.criterion}.",
                f"  <br>Measured: {claim.measured}.",
            ]
        lines += [""]
    method = (files("associative_lstm.lab.report") / "method.md").read_text(encoding="utf-8")
    return "\n".join([*lines, "## How it was measured", "", method])
