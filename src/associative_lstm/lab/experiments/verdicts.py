"""The verdicts of all experiments in one table, as the README and the report show them."""

from collections.abc import Iterable
from pathlib import Path

from associative_lstm.lab.experiments.claims import Claim, in_order, read_claims
from associative_lstm.lab.experiments.drawing import markdown_table


def read_verdicts(results: Path) -> dict[str, list[Claim]]:
    """The claims that experiments have written under ``results``, by experiment, figures in the paper's order."""
    folders = sorted((path.parent for path in results.glob("*/claims.json")), key=_order)
    return {folder.name: read_claims(folder / "claims.json") for folder in folders}


def _order(folder: Path) -> tuple[int, int, str]:
    kinds = ("fig", "properties", "table", "starts")
    kind = next((k for k, prefix in enumerate(kinds) if folder.name.startswith(prefix)), len(kinds))
    return kind, int("".join(c for c in folder.name if c.isdigit()) or 0), folder.name


def verdict_table(results: Path, names: Iterable[str] | None = None) -> str:
    """A Markdown table of verdict, claim and where its evidence is, of all experiments or those with ``names``.

    Below it, what was measured: of every claim that does not hold, and folded away of those that do.
    """
    found = [
        (claim, f"[{name}]({results.name}/{name})")
        for name, claims in read_verdicts(results).items()
        if names is None or name in names
        for claim in claims
    ]
    found.sort(key=lambda pair: in_order(pair[0].key))
    rows = [(claim.key, f"**{claim.verdict}**", claim.sentence, place) for claim, place in found]
    numbers = [(claim.verdict, f"- {claim.key} {claim.verdict}: {claim.measured}.") for claim, _ in found]
    others = [line for verdict, line in numbers if verdict != "holds"]
    holds = [line for verdict, line in numbers if verdict == "holds"]
    folded = [
        "",
        "<details><summary>The numbers of the claims that hold</summary>",
        "",
        *holds,
        "",
        "</details>",
    ]
    table = markdown_table(("", "verdict", "claim", "evidence"), rows)
    return "\n".join((table, "", *others, *(folded if holds else [])))
