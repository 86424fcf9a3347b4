"""What trained networks recall: of every answer, whether it was read from the write that it should be read from.

python benchmarks/inside.py RUN [RUN ...] [--answers 500] [--seed 0]    a table as Markdown, a row for each group

Which write was meant is known from the text: of a queried variable its value, of a closing tag the same letter of the
tag that was opened, of a copied character itself, of a result's digit those of both numbers in its place.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from associative_lstm import inside
from associative_lstm.lab.run.evaluation import Trained, load_trained
from associative_lstm.lab.tasks.base import Task
from associative_lstm.lab.words import counted

LENGTH = 400  # symbols read at a time, of a task without end


class Answer(NamedTuple):
    """A symbol to be predicted, the writes that it should be read from, and those that could be taken for them."""

    place: int
    meant: tuple[int, ...]
    rivals: tuple[int, ...]
    group: str


class Found(NamedTuple):
    """What an answer was made of."""

    group: str
    right: bool
    recalled: bool  # the largest part is that of a write that was meant
    mistaken: bool  # the largest part is that of a rival, and the rival's symbol was answered
    bits: float  # of the writes that were meant
    others: float  # of the largest other
    noise: float  # the power of all else in the read, by that of what was meant
    by_head: list[float]


def assignment(text: str) -> Iterator[Answer]:
    """`s(ml,a),s(qc,n),q(ml)a.`: the value that was set, and not that of another variable."""
    for sequence in re.finditer(r"((?:s\([a-z]+,[a-z]\),)+)q\(([a-z]+)\)[a-z]", text):
        variables = {
            m[1]: sequence.start() + m.start(2) for m in re.finditer(r"s\(([a-z]+),([a-z])\)", sequence[1])
        }
        asked = sequence[2]
        if asked not in variables:
            continue  # the beginning is missing
        others = {name: place for name, place in variables.items() if name != asked}
        alike = any(name[0] == asked[0] for name in others)
        group = "another variable begins alike" if alike else counted(len(variables), "variable")
        yield Answer(sequence.end() - 1, (variables[asked],), tuple(others.values()), group)


def xml(text: str) -> Iterator[Answer]:
    """`<ab><c></c></ab>`: the same letter of the tag that is open, and not of those around it."""
    opened: list[tuple[str, int]] = []
    for tag in re.finditer(r"<(/?)([a-z]+)>", text):
        if not tag[1]:
            opened.append((tag[2], tag.start(2)))
        elif opened and opened[-1][0] == tag[2]:
            _, start = opened.pop()
            for i in range(len(tag[2])):
                rivals = tuple(other + i for name, other in opened if i < len(name))
                yield Answer(tag.start(2) + i, (start + i,), rivals, f"depth {len(opened) + 1}")


def arithmetic(text: str) -> Iterator[Answer]:
    """`-981+1721=047]`: the digits of both numbers in the result's place."""
    for sum_ in re.finditer(r"-?(\d+)[+-](\d+)=(\d+)-?\]", text):
        for i in range(len(sum_[3])):
            places = [sum_.end(k) - 1 - i for k in (1, 2) if i < len(sum_[k])]
            numbers = {*range(*sum_.span(1)), *range(*sum_.span(2))}
            if places:
                group = f"{counted(len(places), 'digit')} meant"
                yield Answer(sum_.start(3) + i, tuple(places), tuple(numbers - {*places}), group)


def copy(text: str) -> Iterator[Answer]:
    """`cah___:___`: the character, and not another of them. The answers stand beside the last blanks."""
    count, start = len(re.match("[a-h]*", text)[0]), text.index(":") + 1  # type: ignore[index]
    for i in range(count):
        yield Answer(start + i, (i,), tuple({*range(count)} - {i}), f"character {i + 1}")


MEANT = {"assignment": assignment, "xml": xml, "arithmetic": arithmetic, "copy": copy, "copy-variable": copy}


def study(trained: Trained, answers: int, seed: int) -> Iterator[Found]:
    """What so many answers to fresh data were made of."""
    model, task, ahead = trained.model.double(), trained.task, 0 if trained.task.episodic else 1
    left, lane = answers, 0
    while left > 0:
        text, targets = _fresh(task, seed + lane)
        lane += 1
        asked = list(MEANT[task.name](text))[:left]
        if not asked:
            continue
        left -= len(asked)
        x = torch.tensor([(task.vocabulary or "").index(c) for c in text])
        reads = [answer.place - ahead for answer in asked]
        with torch.no_grad():
            logits = model.readout(_outputs(model, x))[reads]
        said = logits.argmax(-1)
        parts = inside.attribute(model, x, said, reads=reads, against="mean").writes.sum(
            -1
        )  # (reads, heads, T)
        meant = torch.tensor([answer.meant[0] for answer in asked])
        split = inside.separate(model.layers[-1], _below(model, x), meant, reads=reads)[-1]
        noise = split.interference.square().sum((1, 2)) / split.signal.square().sum((1, 2))
        for i, answer in enumerate(asked):
            bits, largest = parts[i].sum(0), int(parts[i].sum(0).argmax())
            symbol = int(said[i])
            others = bits.clone()
            others[list(answer.meant)] = -torch.inf
            yield Found(
                answer.group,
                symbol == targets[answer.place - ahead],
                largest in answer.meant,
                largest in answer.rivals and int(x[largest]) == symbol,
                bits[list(answer.meant)].sum().item(),
                others.max().item(),
                noise[i].item(),
                parts[i][:, list(answer.meant)].sum(1).tolist(),
            )


def _fresh(task: Task, seed: int) -> tuple[str, list[int]]:
    stream = task.stream(1, seed, split="test")
    batches = [next(stream)]
    while not task.episodic and sum(len(batch.inputs) for batch in batches) < LENGTH:
        batches.append(next(stream))
    inputs, targets = (torch.cat([getattr(b, name)[:, 0] for b in batches]) for name in ("inputs", "targets"))
    return task.decode(inputs), targets.tolist()


def _below(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    h = torch.eye(int(model.input_size), dtype=torch.float64)[x]  # type: ignore[arg-type]
    for layer in list(model.layers)[:-1]:  # type: ignore[arg-type]
        h = inside.look(layer, h)[-1].h.flatten(1)
    return h


def _outputs(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return inside.look(list(model.layers)[-1], _below(model, x))[-1].h.flatten(1)  # type: ignore[arg-type]


def table(name: str, found: list[Found]) -> Iterator[str]:
    """The rows of one run: all answers, and each group of them."""
    groups = {"all": found}
    for group in sorted({one.group for one in found}, key=lambda name: (len(name), name)):
        groups[group] = [one for one in found if one.group == group]
    for group, some in groups.items():
        right, wrong = [one for one in some if one.right], [one for one in some if not one.right]
        heads = [_mean(column) for column in zip(*(one.by_head for one in right), strict=True)]
        cells = [
            name,
            group,
            str(len(some)),
            f"{_mean([one.right for one in some]):.1%}",
            f"{_mean([one.recalled for one in right]):.1%}",
            f"{_mean([one.mistaken for one in wrong]):.1%} of {len(wrong)}",
            f"{_mean([one.bits for one in right]):.1f}",
            f"{_mean([one.others for one in right]):.1f}",
            f"{torch.tensor([one.noise for one in right]).median().item() if right else float('nan'):.1f}",
            " + ".join(f"{bits:.1f}" for bits in heads),
        ]
        yield f"| {' | '.join(cells)} |"


def _mean(values: list[float] | list[bool] | tuple[float, ...]) -> float:
    return sum(values) / len(values) if values else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--answers", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(
        "| run | answers | number | right | of the right: largest part from the write meant "
        "| of the wrong: read from a rival | bits from the write meant | from the largest other "
        "| interference / signal | bits by reading head |"
    )
    print("|" + " --- |" * 10)
    for run in arguments.runs:
        trained = load_trained(run)
        if trained.task.name not in MEANT:
            parser.error(f"{run}: of task {trained.task.name!r} it is not known which write is meant")
        for row in table(run.name, list(study(trained, arguments.answers, arguments.seed))):
            print(row)


if __name__ == "__main__":
    main()
