"""Ratios of speed: the paper's tables, and the settings that a user would compare."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from associative_lstm import nn as ours
from associative_lstm.lab.bench import networks as net
from associative_lstm.lab.bench.timing import Step, Timing, in_turns, inference_step, threads, training_step

TOLERANCE = 1e-4
"""Fast paths in float32 over whole sequences; the tests hold single precision to 1e-5 on short ones."""


class Group(NamedTuple):
    """Networks measured on the same input, each in turns with the one they are compared with.

    In pairs, because one large network in the turns leaves caches and clock in a state that slows all others down.
    """

    title: str
    steps: int
    batch: int
    inputs: int
    base: net.Candidate
    others: list[net.Candidate]
    paper: list[float | None]
    training: bool = True


def _copies(*args: Any, **options: Any) -> list[net.Candidate]:
    return [net.associative(args[0], copies, *args[1:], **options) for copies in (1, 4, 8)]


LSTM_128, LSTM_512 = net.torch_lstm(128), net.torch_lstm(512)
EMBEDDED = {"recurrent_update": False}  # W_hu = 0, as on the copy task

TABLES = [
    Group(
        "Table 1: episodic copy",
        121,
        2,
        10,
        LSTM_128,
        [LSTM_512, *_copies(128, **EMBEDDED), net.PERMUTATION, net.UNITARY, net.MULTIPLICATIVE],
        [0.18, 0.22, 0.16, 0.12, 2.05, 0.24, 0.23],
    ),
    Group(
        "Table 2: arithmetic",
        100,
        2,
        80,
        LSTM_128,
        [LSTM_512, *_copies(128), *_copies(128, 3)],
        [0.15, 0.19, 0.15, 0.11, 0.10, 0.08, 0.07],
    ),
    Group(
        "Table 3: against the NTM, minibatch 1",
        100,
        1,
        80,
        LSTM_512,
        [*_copies(128, 3), net.NTM],
        [0.66, 0.56, 0.46, 0.66],
    ),
]

SETTINGS = [
    Group(
        "Inference on episodic copy",
        121,
        2,
        10,
        LSTM_128,
        _copies(128, **EMBEDDED),
        [None] * 3,
        training=False,
    ),
    Group(
        "Wikipedia's size",
        100,
        10,
        256,
        net.torch_lstm(256, 3),
        [net.associative(256, 1, layers=3, key_init="conjugate")],
        [None],
    ),
    Group("A large minibatch", 100, 64, 80, net.torch_lstm(256), [net.associative(256, 4)], [None]),
]


def measure(
    group: Group,
    count: int,
    seconds: float,
    seed: int = 0,
    *,
    least: int = 7,
    advance: Callable[[], None] = lambda: None,
    device: str = "cpu",
) -> dict[str, Any]:
    """The group on ``count`` threads, or on a GPU: equality of every fast path first, then times and ratios.

    Every network is timed ``least`` times or more; ``advance`` is called when one has been.
    """
    with threads(count):
        torch.manual_seed(seed)
        x = torch.randn(group.steps, group.batch, group.inputs).to(device)
        compared = [c for c in group.others if c.build is not nn.LSTM]  # which is its own reference
        agreement = {c.name: _checked(c, x) for c in compared}
        make_step: Callable[[nn.Module, torch.Tensor], Step] = (
            training_step if group.training else inference_step
        )
        base = make_step(group.base.make(group.inputs).to(device), x)
        rows: list[dict[str, Any]] = [{"network": group.base.name, "speed": 1.0, "paper": 1.0}]
        for candidate, paper in zip(group.others, group.paper, strict=True):
            steps = {"base": base, "other": make_step(candidate.make(group.inputs).to(device), x)}
            timings = in_turns(steps, seconds=seconds / len(group.others), least=least)
            advance()
            rows.append(
                {
                    "network": candidate.name,
                    "speed": timings["base"].over(timings["other"]),
                    "paper": paper,
                    "disagreement": agreement.get(candidate.name),
                    **_milliseconds(timings["other"]),
                    "against": _milliseconds(timings["base"]),
                }
            )
        rows[0] |= rows[1]["against"]
    return {
        "title": group.title,
        "what": "training step" if group.training else "inference",
        "against": group.base.name,
        "threads": count,
        "steps": group.steps,
        "batch": group.batch,
        "rows": rows,
    }


def _checked(candidate: net.Candidate, x: torch.Tensor) -> float:
    difference = net.disagreement(candidate, x)
    if not difference < TOLERANCE:
        raise ValueError(
            f"{candidate.name}: fast path and reference differ by {difference:.1e}, so its speed means nothing"
        )
    return difference


def _milliseconds(timing: Timing) -> dict[str, Any]:
    return {"milliseconds": 1e3 * timing.median, "quartiles": [1e3 * q for q in timing.quartiles]}


def against_itself(group: Group, count: int, seconds: float, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Every Associative LSTM of a group against the reference loop and against its own matrix products alone."""
    with threads(count):
        torch.manual_seed(seed)
        x = torch.randn(group.steps, group.batch, group.inputs)
        make_step = training_step if group.training else inference_step
        for candidate in group.others:
            if candidate.build is not ours.AssociativeLSTM:
                continue
            _checked(candidate, x)
            layer = candidate.make(group.inputs)
            timings = in_turns(
                {
                    "fused": make_step(layer, x),
                    "reference": make_step(candidate.make(group.inputs, "reference"), x),
                    "products": matrix_products(layer, x, training=group.training),
                },
                seconds=seconds,
                least=3,
            )
            fused = timings["fused"]
            yield {
                "network": candidate.name,
                "title": group.title,
                "threads": count,
                "milliseconds": 1e3 * fused.median,
                "over_reference": timings["reference"].over(fused),
                "of_products": timings["products"].over(fused),
            }


def matrix_products(layer: nn.Module, x: torch.Tensor, training: bool = True) -> Step:
    """The matrix products of a step of the layer and nothing else, by the routines that the layer itself uses.

    Input projection and weight gradients are PyTorch's, over all steps at once; the recurrent products, step by step,
    are the fused kernel's own, because they are faster than PyTorch's at these sizes.
    """
    from associative_lstm.kernels.compiler.matmul import multiply_repeatedly, pack
    from associative_lstm.kernels.compiler.threads import by_team

    steps, batch, _ = x.shape
    rows = steps * batch

    def of_layer(k: int) -> Step:
        w_ih, w_hh = (layer.get_parameter(f"weight_{kind}_l{k}").detach() for kind in ("ih", "hh"))
        below, above = torch.randn(rows, w_ih.shape[1]), torch.randn(rows, w_hh.shape[1])
        z = torch.randn(rows, w_ih.shape[0])
        h, dz = torch.randn(batch, w_hh.shape[1]).numpy(), torch.randn(batch, w_hh.shape[0]).numpy()

        def recurrent(rows: np.ndarray, w: np.ndarray) -> None:
            packed = pack(w)
            y = torch.empty(batch, packed.filled).numpy()
            by_team(multiply_repeatedly, batch, packed.numbers, y, rows, packed, steps)

        def step() -> None:
            torch.mm(below, w_ih.T)
            recurrent(h, w_hh.T.numpy())
            if training:
                recurrent(dz, w_hh.numpy())
                torch.mm(z.T, below)
                torch.mm(z.T[: w_hh.shape[0]], above)
                if k > 0:
                    torch.mm(z, w_ih)

        return step

    products = [of_layer(k) for k in range(int(getattr(layer, "num_layers", 1)))]

    def all_layers() -> None:
        for product in products:
            product()

    return all_layers
