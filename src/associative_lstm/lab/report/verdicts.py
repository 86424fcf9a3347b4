"""Every claim with its verdict and its numbers, as Markdown."""

from collections.abc import Sequence
from importlib.resources import files

from associative_lstm.lab.report.sections import Section
from associative_lstm.lab.report.summary import counts, sentences


def as_markdown(sections: Sequence[Section]) -> str:
    """The page of verdicts, for a folder beside those of the experiments."""
    claims = {name: claim for section in sections for name, claim in section.claims.items()}
    numbers = counts(claims.values())
    lines = [
        "# What was reproduced",
        "",
        *(line for sentence in sentences(claims) for line in (sentence, "")),
        f"**Of {len(claims)} claims {numbers['holds']} hold, {numbers['fails']} fail and {numbers['undecided']} are "
        "undecided.** Each is below, with its criterion and what was measured.",
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
