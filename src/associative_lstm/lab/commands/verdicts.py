"""How an experiment came out, on the console."""

from rich.text import Text

from associative_lstm.lab.commands.common import console
from associative_lstm.lab.experiments.experiment import Outcome

_COLOURS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def print_outcome(outcome: Outcome) -> None:
    """Print the verdicts of an experiment, and what it wrote."""
    for claim in outcome.claims:
        verdict = Text(f"{claim.verdict:9}", style=_COLOURS[claim.verdict])
        console.print(verdict, Text(claim.sentence, style="bold"))
        console.print(Text(f"          {claim.criterion}: {claim.measured}", style="dim"))
        for lack in claim.lacks:
            console.print(Text(f"          stands on the runs there are: {lack}", style="dim"))
        for reading in claim.readings:
            console.print(Text(f"          {reading.name}: {reading.verdict}", style="dim"))
    if outcome.cost:
        cost = ", ".join(f"{value:,} {unit.replace('_', ' ')}" for unit, value in outcome.cost.items())
        console.print(f"cost: {cost}", soft_wrap=True, highlight=False)
    for path in outcome.written:
        console.print(f"written: {path}", soft_wrap=True, highlight=False)
