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
        symbols: the inputs are integers, presented as one-hot vectors; otherwise vectors, presented as they are.

    Inputs: ``x``, ``(T, B)`` int64 symbols or ``(T, B, input_size)``, and optionally the state.

    Outputs: logits ``(T, B, output_size)`` and the state, a tuple of the networks' states.

    >>> from associative_lstm.nn import LSTM
    >>> model = SequenceModel([LSTM(10, 16), LSTM(16, 16)], output_size=10)
    >>> logits, state = model(torch.tensor([[1, 2], [3, 4], [5, 6]]))
    >>> logits.shape
    torch.Size([3, 2, 10])
    >>> logits, state = model(torch.tensor([[7, 8]]), state)  # the sequence goes on
    """

    _codes: Tensor

    def __init__(self, layers: list[Any], output_size: int, *, symbols: bool = True) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.readout = nn.Linear(layers[-1].output_size, output_size)
        self.input_size = int(layers[0].input_size)
        self.symbols = symbols
        # One-hot vectors are looked up: ten times as fast as torch's one_hot, which looks for the largest symbol.
        self.register_buffer("_codes", torch.eye(self.input_size) if symbols else None, persistent=False)
        nn.init.xavier_uniform_(self.readout.weight)
        nn.init.zeros_(self.readout.bias)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        h = F.embedding(x, self._codes) if self.symbols else x
        states = []
        for k, layer in enumerate(self.layers):
            h, s = layer(h, None if state is None else state[k])
            states.append(s)
        return self.readout(h), tuple(states)


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
    width, settings = task.input_size, dict(vars(config))
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
    return SequenceModel(layers, task.output_size, symbols=task.vocabulary is not None)


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
