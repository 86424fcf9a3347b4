"""Symbols -> recurrent networks -> logits."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from associative_lstm.lab.files import RunError, memory_lacked
from associative_lstm.lab.networks import NETWORKS, state_size
from associative_lstm.lab.run.config import Config
from associative_lstm.lab.tasks.base import Task

State = tuple[Any, ...]


class SequenceModel(nn.Module):
    r"""Predict every step of a sequence from what came before.

    .. math::
        h^{(0)}_t &= \mathrm{onehot}(x_t) \\
        h^{(k)}_t &= \mathrm{network}_k(h^{(k-1)}_{1..t}) \\
        \mathrm{logits}_t &= W h^{(L)}_t + b

    Args:
        layers: recurrent networks, each reading the output of the one before.
        output_size: the number of logits.
        symbols: how many different symbols there are, presented as one-hot vectors (default: as wide as the first
            network reads); 0 if the inputs are vectors, presented as they are.
        embedding: symbols are presented as learned vectors of this size, which begin with about the length 1 that a
            one-hot vector has; 0 for one-hot vectors.
        previous: what was presented in the step before is presented beside, zeros in the first step.
        residual: every layer above the first adds what it reads to what it gives.
        positions: so many predictions are all made after the last step, from its h and what is learned of each
            position, by two hidden layers; 0 for a prediction at every step.

    Inputs: ``x``, ``(T, B)`` int64 symbols, ``(T, B, k)`` of which k are presented side by side, or
    ``(T, B, input_size)``; optionally the state; and ``scored``, ``(T, B)``, where logits are wanted (everywhere).

    Outputs: logits ``(T, B, output_size)``, or those of the scored steps in a row; and the state, a tuple of the
    networks' states and, with ``previous``, the last input.

    >>> from associative_lstm.nn import LSTM
    >>> model = SequenceModel([LSTM(10, 16), LSTM(16, 16)], output_size=10)
    >>> logits, state = model(torch.tensor([[1, 2], [3, 4], [5, 6]]))
    >>> logits.shape
    torch.Size([3, 2, 10])
    >>> logits, state = model(torch.tensor([[7, 8]]), state)  # the sequence goes on
    """

    _codes: Tensor

    def __init__(
        self,
        layers: list[Any],
        output_size: int,
        *,
        symbols: int | None = None,
        embedding: int = 0,
        previous: bool = False,
        residual: bool = False,
        positions: int = 0,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.residual = residual
        if residual and any(layer.output_size != layer.input_size for layer in layers[1:]):
            raise RunError(
                "residual: a network that gives as many numbers as it reads is expected above the first"
            )
        width = int(layers[-1].output_size)
        self.readout = nn.Linear(width, output_size)
        self.input_size = int(layers[0].input_size)
        self.symbols = self.input_size if symbols is None else symbols
        self.previous = previous
        self.embedding: nn.Embedding | None = None
        self.decoder: _Decoder | None = None
        # One-hot vectors are looked up: ten times as fast as torch's one_hot, which looks for the largest symbol.
        one_hot = torch.eye(self.symbols) if self.symbols and not embedding else None
        self.register_buffer("_codes", one_hot, persistent=False)
        nn.init.xavier_uniform_(self.readout.weight)
        nn.init.zeros_(self.readout.bias)
        if embedding and self.symbols:
            self.embedding = nn.Embedding(self.symbols, embedding)
            nn.init.normal_(self.embedding.weight, std=embedding**-0.5)
        if positions:
            self.decoder = _Decoder(width, positions)

    def forward(
        self, x: Tensor, state: State | None = None, scored: Tensor | None = None
    ) -> tuple[Tensor, State]:
        h = self._present(x)
        states: list[Any] = []
        if self.previous:
            before = torch.zeros_like(h[:1]) if state is None else self._present(state[-1])
            h = torch.cat([h, torch.cat([before, h[:-1]])], -1)
        for k, layer in enumerate(self.layers):
            below = h
            h, s = layer(h, None if state is None else state[k])
            if self.residual and k:
                h = h + below
            states.append(s)
        if self.previous:
            states.append(x[-1:])
        if self.decoder is not None:
            h = self.decoder(h[-1])
        return self.readout(h if scored is None else h[scored]), tuple(states)

    def _present(self, x: Tensor) -> Tensor:
        """The vectors that stand for the inputs; of several symbols in a step, side by side."""
        if not self.symbols:
            return x
        vectors = F.embedding(x, self._codes if self.embedding is None else self.embedding.weight)
        return vectors if x.dim() == 2 else vectors.flatten(2)


class _Decoder(nn.Module):
    """What is to be said of every position, from one vector that stands for the whole sequence."""

    def __init__(self, width: int, positions: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.empty(positions, 1, width))
        nn.init.normal_(self.positions)
        self.hidden = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU())

    def forward(self, last: Tensor) -> Tensor:
        return self.hidden(last + self.positions)


def build_model(config: Config, task: Task) -> SequenceModel:
    """The model of a complete configuration, initialised from PyTorch's random generator.

    >>> from associative_lstm.lab.run.config import complete
    >>> from associative_lstm.lab.tasks import make_task
    >>> model = build_model(complete({"task": "copy", "model": "permutation-rnn"}), make_task("copy"))
    >>> count_parameters(model)
    5642
    """
    try:
        return _build(config, task)
    except (RuntimeError, MemoryError, OverflowError, TypeError, AttributeError) as error:
        if isinstance(error, TypeError | AttributeError) and isinstance(NETWORKS[config.model].made_by, str):
            raise  # a fault of ours; in a user's own network, it cannot be called as the lab does
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        if "Storage size calculation overflowed" in reason:
            reason = "too large for any machine"
        raise RunError(f"the network cannot be made: {memory_lacked(error) or reason}") from error


def _build(config: Config, task: Task) -> SequenceModel:
    layers: list[Any] = []
    settings = dict(vars(config))
    symbols, embedding = 0 if task.vocabulary is None else task.input_size, config.embedding or 0
    width = (embedding or task.input_size) * task.symbols_per_step * (2 if config.previous else 1)
    for _ in range(1 if NETWORKS[config.model].stacked else config.layers):
        layers.append(NETWORKS[config.model].make(width, settings))
        width = int(layers[-1].output_size)
        # What is above the first starts as the layers of one network do.
        if isinstance(config.update_init, float):
            settings["update_init"] = "pass"
        if config.forget_bias == "mixed":
            settings["forget_bias"] = 0.0
        if config.key_init == "matched":
            settings["key_init"] = "conjugate"
    return SequenceModel(
        layers,
        task.output_size,
        symbols=symbols,
        embedding=embedding,
        previous=config.previous,
        residual=config.residual,
        positions=int(config.length or 0) if task.from_last_step else 0,
    )


def load_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Load saved weights; what does not fit is an error, also in the numbers of a permutation, which index memory."""
    for name, tensor in weights.items():
        if "permutation" in name:
            places = torch.arange(tensor.shape[-1], dtype=tensor.dtype, device=tensor.device).expand_as(
                tensor
            )
            if not torch.equal(tensor.sort(-1).values, places):
                raise ValueError(f"{name} is not a permutation")
    model.load_state_dict(weights)


def count_parameters(model: nn.Module) -> int:
    """How many numbers are learned."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def count_state(model: SequenceModel, steps: int = 1) -> int:
    """How many numbers are carried on to the next step, for one sequence, over all layers, after ``steps`` of it."""
    return sum(state_size(layer, steps) for layer in model.layers)


def device_of(model: nn.Module) -> torch.device:
    """Where a model computes; one without parameters, on the CPU."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def flatten_state(state: Any) -> list[Tensor]:
    """The tensors of a state, in order, whatever tuples they are in."""
    if isinstance(state, Tensor):
        return [state]
    if not isinstance(state, tuple):
        raise ValueError(f"a network's state must be tensors in tuples, got {type(state).__name__}")
    return [tensor for part in state for tensor in flatten_state(part)]


def map_state(state: Any, tensors: Any) -> Any:
    """A state like ``state`` with the tensors that ``tensors``, an iterator, gives one by one."""
    if isinstance(state, Tensor):
        return next(tensors)
    parts = [map_state(part, tensors) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def detach_state(state: Any) -> Any:
    """The state without its history: where the gradient is cut."""
    return map_state(state, iter([tensor.detach() for tensor in flatten_state(state)]))


def clone_like(template: Any, saved: list[Tensor], later: Any = None) -> Any:
    """The saved tensors in the form of ``template``; other shapes or dtypes are an error.

    ``later``: the state some steps later. A dimension that is larger there grows with time, and may have any size.
    """
    expected = flatten_state(template)
    grown = expected if later is None else flatten_state(later)
    if (
        not isinstance(saved, list)
        or len(saved) != len(expected)
        or not all(map(_fits, saved, expected, grown))
    ):
        raise ValueError("the recurrent state has another form than the network's")
    return map_state(
        template, iter([t.to(e.device, copy=True) for t, e in zip(saved, expected, strict=True)])
    )


def _fits(saved: Tensor, early: Tensor, late: Tensor) -> bool:
    sizes = zip(saved.shape, early.shape, late.shape, strict=False)
    same = (saved.dim(), saved.dtype) == (early.dim(), early.dtype)
    return same and all(size == before or before != after for size, before, after in sizes)
