"""What the answers of one trained network are made of, as numbers that can be written down."""

import random
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from associative_lstm import inside
from associative_lstm.lab.experiments.inside.meant import ALIKE, MEANT, Answer
from associative_lstm.lab.run.evaluation import Trained
from associative_lstm.lab.tasks.base import Task, fresh
from associative_lstm.lab.tasks.online import OnlineTask

LENGTH = 400
"""Symbols read at a time, of a task without end."""

Numbers = Mapping[str, Any]
"""What was measured of a run: JSON."""


class Found(NamedTuple):
    """What one answer was made of; bits are those of the logit that was largest, less the mean of all."""

    group: str
    right: bool
    recalled: bool  # the largest part is that of a write that was meant
    found: bool | None  # of all candidates, the write that was meant speaks most for the symbol that it holds
    mistaken: bool  # the largest part is that of another candidate, and its symbol was answered
    bits: float  # of the writes that were meant
    next: float  # of the largest other
    votes: dict[str, float]  # by kind: the bits that a write gives to the symbol that it holds
    shares: dict[str, list[float]]  # by kind and reading head: the part of all absolute bits
    items: float | None  # the power of all other writes that is left, by that of the write meant
    error: float | None  # the power of all else in the read, by that of what was meant
    answer_error: float | None  # the same of the logits


def measure(trained: Trained, answers: int, seed: int) -> dict[str, Any]:
    """The numbers of a run, from so many answers to fresh data."""
    found = list(look_at(trained, answers, seed))
    numbers: dict[str, Any] = {"groups": _groups(found)}
    right = [one for one in found if one.right]
    if votes := _means(one.votes for one in right):
        numbers["votes"] = votes
    flat = [
        {(kind, k): value for kind, some in one.shares.items() for k, value in enumerate(some)}
        for one in right
    ]
    if shares := _means(flat):
        numbers["shares"] = {
            kind: [shares[kind, head] for head in range(trained.config.heads or 1)]
            for kind in dict.fromkeys(kind for kind, _ in shares)
        }
    if law := _law([one for one in found if one.items is not None]):
        numbers["noise"] = law | {"copies": int(trained.config.copies or 1)}
    if trained.task.name == "xml":
        numbers["wrong letters"] = given_wrong_letters(trained, answers, seed)
    return numbers


def look_at(trained: Trained, answers: int, seed: int) -> Iterator[Found]:
    """What so many answers to fresh data were made of."""
    model, task, ahead = trained.model.double(), trained.task, 0 if trained.task.episodic else 1
    left = answers
    for text in texts(task, seed):
        asked = list(MEANT[task.name](text))[:left]
        if not asked:
            continue
        left -= len(asked)
        x = torch.tensor(task.encode(text).tolist())
        reads = [answer.place - ahead for answer in asked]
        layer, below, _ = inside.last_layer(model, x)
        seen = inside.look(layer, below)[-1]
        with torch.no_grad():
            said = model(x.unsqueeze(1))[0][reads, 0].argmax(-1)
        copied = task.name != "arithmetic"  # a sum is none of the symbols that it is made from
        parts, own = _parts(model, x, reads, said, asked if copied else [])
        noise = _noise(model, below, seen, reads, asked) if copied and layer.num_heads == 1 else None
        for i, answer in enumerate(asked):
            right = int(x[answer.meant[0] if task.episodic else answer.place])
            yield _found(
                answer,
                int(said[i]),
                right,
                x,
                parts[i],
                own[i] if copied else None,
                None if noise is None else noise[i].tolist(),
            )
        if left <= 0:
            return


def _found(
    answer: Answer,
    said: int,
    right: int,
    x: Tensor,
    parts: Tensor,
    own: Tensor | None,
    noise: list[float] | None,
) -> Found:
    bits, meant = parts.sum(0), list(answer.meant)
    largest = int(bits.argmax())
    candidates = [k for some in answer.others.values() for k in some]
    others = bits.clone()
    others[meant] = -torch.inf
    kinds = answer.kinds
    votes: dict[str, float] = {}
    if own is not None:
        votes = {kind: own[list(some)].mean().item() for kind, some in kinds.items() if some}
    size = parts.abs().sum().clamp(min=1e-12)
    shares = {kind: (parts[:, list(some)].abs().sum(1) / size).tolist() for kind, some in kinds.items()}
    return Found(
        answer.group,
        said == right,
        largest in meant,
        None if own is None else bool(own[meant].max() > own[candidates].max()) if candidates else True,
        largest in candidates and int(x[largest]) == said != right,
        bits[meant].sum().item(),
        others.max().item(),
        votes,
        shares if own is None else {},
        *(noise or (None, None, None)),
    )


def texts(task: Task, seed: int) -> Iterator[str]:
    """Fresh texts; of variable assignment, as many queries of each way in which names can begin alike."""
    rng = random.Random(seed)
    lane = seed
    while True:
        if task.name == "assignment" and isinstance(task, OnlineTask):
            text, k = "", 0
            while len(text) < LENGTH:
                text, k = text + _alike(task, rng, ALIKE[k % len(ALIKE)]), k + 1
            yield text
            continue
        yield task.decode(fresh(task, lane, LENGTH).inputs[:, 0])
        lane += 1


def _alike(task: OnlineTask, rng: random.Random, group: str) -> str:
    """A sequence of the task whose query is of this group."""
    while True:
        sequence = task.sequence(rng)
        if next(MEANT["assignment"](sequence)).group == group:
            return sequence


def given_wrong_letters(trained: Trained, letters: int, seed: int) -> dict[str, float]:
    """How often a letter of a closing tag is right, after the right letters and after random ones in their place.

    One tag at a time is given wrong letters, and its first letter is not asked for. A queue does not care for what is
    read from it; a memory that is asked for what came after these letters would.
    """
    task, rng = trained.task, random.Random(seed)
    model = trained.model.double()
    hits, asked = {"right": 0, "wrong": 0}, 0
    for text in texts(task, seed):
        for tag in re.finditer("(?<=</)[a-z]{2,}(?=>)", text):
            name = tag[0]
            if name not in re.findall("<([a-z]+)>", text[: tag.start()]):
                continue  # it was opened before the text begins
            wrong = "".join(rng.choice(string.ascii_lowercase.replace(letter, "")) for letter in name)
            for kind, given in (("right", name), ("wrong", wrong)):
                x = torch.tensor(task.encode(text[: tag.start()] + given[:-1]).tolist())
                with torch.inference_mode():
                    said = task.decode(model(x.unsqueeze(1))[0][tag.start() :, 0].argmax(-1))
                hits[kind] += sum(a == b for a, b in zip(said, name[1:], strict=True))
            asked += len(name) - 1
            if asked >= letters:
                return {"letters": asked} | {kind: _rounded(count / asked) for kind, count in hits.items()}
    raise AssertionError("texts have no end")


def _parts(
    model: Any, x: Tensor, reads: list[int], said: Tensor, asked: list[Answer]
) -> tuple[Tensor, Tensor]:
    """The bits of every write for the symbol said, ``(reads, heads, T)``, and for what it holds, ``(reads, T)``.

    The latter of the candidates of what was ``asked``.
    """
    wanted = [
        (i, symbol)
        for i, answer in enumerate(asked)
        for symbol in sorted({int(x[k]) for some in answer.kinds.values() for k in some})
    ]
    symbols = torch.cat([said, torch.tensor([symbol for _, symbol in wanted], dtype=said.dtype)])
    every = [*reads, *(reads[i] for i, _ in wanted)]
    bits = inside.attribute(model, x, symbols, reads=every, against="mean").writes.sum(-1)
    own = torch.zeros(len(reads), len(x), dtype=torch.float64)
    for (i, symbol), row in zip(wanted, bits[len(reads) :].sum(1), strict=True):
        own[i, x == symbol] = row[x == symbol]
    return bits[: len(reads)], own


def _noise(model: Any, below: Tensor, seen: inside.Inside, reads: list[int], asked: list[Answer]) -> Tensor:
    """How many items disturb a read (by the power that is left of them), and how much, in it and in the logits.

    ``(reads, 3)``, for a layer of one head.
    """
    meant = torch.tensor([answer.meant[0] for answer in asked])
    split = inside.separate(model.layers[-1], below, meant, reads=reads)[-1]
    r_i, r_o, u, q, h = (_power(tensor[:, 0]) for tensor in (seen.r_i, seen.r_o, seen.u, seen.q, seen.h))
    lost = seen.g_f.log().cumsum(0)
    items = []
    for t, k in zip(reads, meant.tolist(), strict=True):
        kept = (2 * (lost[t] - lost[: t + 1])).exp() * seen.g_i[: t + 1, 0].square() * u[: t + 1]
        size = kept.sum(1) * (r_o[t] * r_i[: t + 1]).mean(1)
        items.append((size.sum() - size[k]) / size[k])
    shut = (h / q.clamp(min=1e-30)).sqrt()[reads].repeat(1, 2)  # by the bound and the output gate
    weight = model.readout.weight.detach().double()
    rows = weight - weight.mean(0)
    parts = [part[:, 0] for part in split]
    powers = [[part.square().sum(1), ((shut * part) @ rows.T).square().sum(1)] for part in parts]
    errors = [after / before for before, after in zip(*powers, strict=True)]
    return torch.stack([torch.stack(items), *errors], 1)


def _power(pair: Tensor) -> Tensor:
    real, imaginary = pair.chunk(2, -1)
    return real.square() + imaginary.square()


def _groups(found: Sequence[Found]) -> dict[str, Any]:
    groups: dict[str, Sequence[Found]] = {"all": found}
    names = {one.group for one in found}
    if len(names) > 1:
        ordered = sorted(names, key=lambda name: (ALIKE.index(name) if name in ALIKE else 0, len(name), name))
        groups |= {name: [one for one in found if one.group == name] for name in ordered}
    return {name: _group(some) for name, some in groups.items()}


def _group(some: Sequence[Found]) -> dict[str, Any]:
    right, wrong = [one for one in some if one.right], [one for one in some if not one.right]
    return {
        "answers": len(some),
        "right": _mean(one.right for one in some),
        "recalled": _mean(one.recalled for one in right),
        "found": _mean(one.found for one in some if one.found is not None),
        "wrong": len(wrong),
        "mistaken": _mean(one.mistaken for one in wrong),
        "bits": _mean(one.bits for one in right),
        "next": _mean(one.next for one in right),
    }


def _law(found: Sequence[Found]) -> dict[str, float]:
    """How the error grows with the items: its exponent, and the error by item."""
    if len(found) < 2:
        return {}
    items, error, answer = (np.array([getattr(one, k) for one in found]) for k in Found._fields[-3:])
    return {
        "items": _rounded(np.median(items)),
        "error": _rounded(np.median(error)),
        "error by item": _rounded(np.median(error / items)),
        "exponent of items": _rounded(np.polyfit(np.log(items), np.log(error), 1)[0]),
        "error of the answer": _rounded(np.median(answer)),
    }


def _means(some: Iterable[Mapping[Any, float]]) -> dict[Any, float]:
    """The mean of every key over those that have it."""
    columns: dict[Any, list[float]] = {}
    for one in some:
        for key, value in one.items():
            columns.setdefault(key, []).append(value)
    return {key: _rounded(np.mean(column)) for key, column in columns.items()}


def _mean(values: Iterable[float]) -> float | None:
    listed = [float(value) for value in values]
    return _rounded(np.mean(listed)) if listed else None


def _rounded(value: Any) -> float:
    return float(f"{float(value):.4g}")
