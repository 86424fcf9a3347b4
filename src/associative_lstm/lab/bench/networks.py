"""The networks that are timed, each with the slow twin that it must agree with."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from associative_lstm import nn as ours
from associative_lstm.lab.words import counted


class Candidate(NamedTuple):
    """A network by name: how to build it, for an input width, with a backend where it has several."""

    name: str
    build: Callable[..., nn.Module]
    options: dict[str, Any]

    def make(self, inputs: int, backend: str | None = None) -> nn.Module:
        """The network, from the same weights at every call."""
        torch.manual_seed(0)
        options = self.options if backend is None else self.options | {"backend": backend}
        return self.build(inputs, **options)


def torch_lstm(hidden_size: int, layers: int = 1) -> Candidate:
    """What a user would pick instead."""
    name = f"nn.LSTM {hidden_size}" if layers == 1 else f"nn.LSTM {layers} x {hidden_size}"
    return Candidate(name, nn.LSTM, {"hidden_size": hidden_size, "num_layers": layers})


def associative(hidden_size: int, copies: int, heads: int = 1, layers: int = 1, **options: Any) -> Candidate:
    """An Associative LSTM, from the paper's start: where small differences do not grow from step to step, so that the
    fast path can be held against the reference over a whole sequence.
    """
    size = f"{hidden_size}" if layers == 1 else f"{layers} x {hidden_size}"
    name = f"Associative LSTM {size}" + (f", {heads} heads" if heads > 1 else "")
    name += f", {counted(copies, 'copy', 'copies')}"
    options = {
        "hidden_size": hidden_size,
        "num_copies": copies,
        "num_heads": heads,
        "num_layers": layers,
        "start": "paper",
    } | options
    return Candidate(name, ours.AssociativeLSTM, options)


PERMUTATION = Candidate("Permutation RNN 256", ours.PermutationRNN, {"hidden_size": 256})
UNITARY = Candidate("Unitary RNN 256", ours.UnitaryRNN, {"hidden_size": 256})
MULTIPLICATIVE = Candidate("Multiplicative uRNN 256", ours.MultiplicativeUnitaryRNN, {"hidden_size": 256})
NTM = Candidate("NTM 384, 4 heads", ours.NeuralTuringMachine, {"hidden_size": 384, "num_heads": 4})


def disagreement(candidate: Candidate, x: Tensor) -> float:
    """The largest relative difference between fast path and reference, over output and all gradients, on x.

    On a GPU the fast path is Triton's where there is one, and else the reference itself.
    """
    results = []
    for backend in ("reference", "fused" if x.is_cpu else "auto"):
        network = candidate.make(x.shape[-1], backend).to(x.device)
        output, _ = network(x)
        output.square().mean().backward()
        results.append([output.detach()] + [p.grad for p in network.parameters() if p.grad is not None])
    pairs = zip(*results, strict=True)
    return max(((a - b).abs().max() / a.abs().max().clamp(min=1e-30)).item() for a, b in pairs)
