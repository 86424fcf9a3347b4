"""What the Associative LSTM's cell and layer share: options, their checks, parameters and initialisation."""

import contextlib
import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from associative_lstm import functional as F
from associative_lstm.kernels.associative import reference
from associative_lstm.kernels.associative.rows import Rows

KEY_INITS = ("glorot", "conjugate")


class AssociativeLSTMState(NamedTuple):
    """What a sequence leaves behind: the last output h and the memory traces c of every layer.

    >>> AssociativeLSTMState(h=torch.zeros(1, 2, 8), c=torch.zeros(1, 2, 4, 8)).c.shape
    torch.Size([1, 2, 4, 8])
    """

    h: Tensor
    c: Tensor


# So that a program of torch.export, whose result is such a state, can be saved.
torch.utils._pytree._register_namedtuple(
    AssociativeLSTMState, serialized_type_name="associative_lstm.nn.AssociativeLSTMState"
)


class AssociativeBase(nn.Module):
    """The options of a cell and of a layer, checked, and the parameters of one direction."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_copies: int,
        num_heads: int,
        recurrent_update: bool,
        activation: str,
        key_init: str,
        forget_bias: float,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        for name, value in [("input_size", input_size), ("num_copies", num_copies), ("num_heads", num_heads)]:
            check_positive_int(name, value)
        check_positive_int("hidden_size", hidden_size)
        if hidden_size % 2:
            raise ValueError(
                f"hidden_size: expected an even number (real and imaginary halves), got {hidden_size}"
            )
        check_choice("activation", activation, tuple(reference.ACTIVATIONS))
        check_choice("key_init", key_init, KEY_INITS)
        check_number("forget_bias", forget_bias)
        check_dtype(dtype)
        if not bias and (key_init == "conjugate" or forget_bias != 0):
            raise ValueError("bias: key_init='conjugate' and forget_bias set biases, so expected bias=True")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.has_bias = bias
        self.num_copies = num_copies
        self.num_heads = num_heads
        self.recurrent_update = recurrent_update
        self.activation = activation
        self.key_init = key_init
        self.forget_bias = forget_bias
        self.rows = Rows.of(hidden_size, num_heads)

    @property
    def read_size(self) -> int:
        """The width of h: what the heads read, side by side."""
        return self.num_heads * self.hidden_size

    def _add_direction(self, suffix: str, inputs: int, factory: dict[str, Any]) -> None:
        """Register the parameters and permutations of one layer in one direction, not yet initialised."""
        recurrent_rows = self.rows.total if self.recurrent_update else self.rows.without_update
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (self.rows.total, inputs),
            "weight_hh": (recurrent_rows, self.read_size),
            "bias": (self.rows.total,),
        }
        for kind, shape in shapes.items():
            parameter = (
                nn.Parameter(torch.empty(shape, **factory)) if kind != "bias" or self.has_bias else None
            )
            self.register_parameter(f"{kind}{suffix}", parameter)
        size = self.num_copies, self.hidden_size // 2
        self.register_buffer(
            f"permutations{suffix}", torch.empty(size, dtype=torch.int64, device=factory["device"])
        )

    def _draw_permutations(self, suffix: str) -> None:
        permutations = getattr(self, f"permutations{suffix}")
        permutations.copy_(F.random_permutations(*permutations.shape))

    @torch.no_grad()
    def _reset_direction(self, suffix: str) -> None:
        weights = getattr(self, f"weight_ih{suffix}"), getattr(self, f"weight_hh{suffix}")
        heads = self.num_heads
        for k, block in enumerate(self.rows):
            for part in _split(block, 1 if k == 0 else heads):
                for weight in weights:
                    if part.start < weight.shape[0]:
                        nn.init.xavier_uniform_(weight[part])
        if not self.has_bias:
            return
        bias = getattr(self, f"bias{suffix}")
        bias.zero_()
        bias[self.rows.forget] = self.forget_bias
        if self.key_init == "conjugate":
            key = F.random_key(self.hidden_size, heads, dtype=bias.dtype, device=bias.device)
            bias[self.rows.input_key] = key.flatten()
            bias[self.rows.output_key] = F.conjugate(key).flatten()

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {
            "num_layers": 1,
            "has_bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
            "num_copies": 1,
            "num_heads": 1,
            "recurrent_update": True,
            "activation": "bound",
            "key_init": "glorot",
            "forget_bias": 0.0,
            "learn_initial_state": False,
            "keep_states_every": 1,
            "backend": "auto",
        }
        for name, default in defaults.items():
            if getattr(self, name, default) != default:
                parts.append(f"{name.removeprefix('has_')}={getattr(self, name)!r}")
        return ", ".join(parts)


def _split(block: slice, parts: int) -> list[slice]:
    size = (block.stop - block.start) // parts
    return [slice(block.start + k * size, block.start + (k + 1) * size) for k in range(parts)]


def check_positive_int(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected an int, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name}: expected at least 1, got {value}")


def check_number(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, got {value}")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}")


def check_dtype(dtype: torch.dtype | None) -> None:
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(f"dtype: expected a floating-point type, got {dtype}")


def check_input(x: Tensor, input_size: int, weight: Tensor) -> None:
    """Refuse an x ``(..., input_size)`` that does not fit ``weight``."""
    if not x.is_floating_point():
        raise ValueError(f"x: expected a floating-point tensor, got {x.dtype}")
    if x.dtype != weight.dtype and not _autocast(x):
        raise ValueError(f"x: expected {weight.dtype}, the type of the weights, got {x.dtype}")
    _check_place("x", x, weight)
    if x.shape[-1] != input_size:
        raise ValueError(f"x: expected a last dimension of input_size={input_size}, got {x.shape[-1]}")


def check_steps(x: Tensor, dim: int) -> None:
    """Refuse a sequence without a time step. A batch may have no items."""
    if x.shape[dim] < 1:
        raise ValueError(f"x: expected at least one time step, got shape {tuple(x.shape)}")


def check_state(name: str, state: Tensor, shape: tuple[int, ...], weight: Tensor) -> None:
    """Refuse a state of another shape than this, or of another type or device than ``weight``."""
    if not isinstance(state, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(state).__name__}")
    if tuple(state.shape) != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {tuple(state.shape)}")
    if state.dtype != weight.dtype:
        raise ValueError(f"{name}: expected {weight.dtype}, the type of the weights, got {state.dtype}")
    _check_place(name, state, weight)


def check_pair(names: tuple[str, str], state: tuple[Tensor, Tensor]) -> None:
    """Refuse a state that is not a pair."""
    if not isinstance(state, tuple | list) or len(state) != 2:
        kind = type(state).__name__
        if isinstance(state, tuple | list):
            kind += f" of {len(state)}"
        raise TypeError(f"state: expected a tuple of two tensors ({', '.join(names)}), got {kind}")


def _check_place(name: str, tensor: Tensor, weight: Tensor) -> None:
    if tensor.device != weight.device:
        raise ValueError(
            f"{name}: expected a tensor on {weight.device}, where the weights are, got one on {tensor.device}"
        )
    if tensor.layout is not torch.strided:
        raise ValueError(f"{name}: expected a dense tensor, got {tensor.layout}")


def float_precision(x: Tensor) -> contextlib.AbstractContextManager:
    """Switches autocast off: a memory that is summed up over many steps wants the weights' own precision."""
    if _autocast(x):
        return torch.autocast(x.device.type, enabled=False)
    return contextlib.nullcontext()


def _autocast(x: Tensor) -> bool:
    return x.device.type != "meta" and torch.is_autocast_enabled(x.device.type)
