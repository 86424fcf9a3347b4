"""What the Associative LSTM's cell and layer share: state, options as attributes, parameters, permutations."""

import inspect
import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from associative_lstm import functional as F
from associative_lstm.kernels.associative.rows import Rows
from associative_lstm.nn import start
from associative_lstm.nn.checks import check_dtype
from associative_lstm.nn.options import Options


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
    """The options of a cell and of a layer, and the parameters of one direction."""

    def __init__(self, options: Options, dtype: torch.dtype | None) -> None:
        super().__init__()
        check_dtype(dtype)
        self.options = options
        self.input_size = options.input_size
        self.hidden_size = options.hidden_size
        self.has_bias = options.bias
        self.num_copies = options.num_copies
        self.num_heads = options.num_heads
        self.recurrent_update = options.recurrent_update
        self.activation = options.activation
        self.start = options.start
        self.key_init = options.key_init
        self.forget_bias = options.forget_bias
        self.update_init = options.update_init
        self.horizon = options.horizon
        self.permutation = options.permutation
        self.rotation = options.rotation
        self.rows = Rows.of(options.hidden_size, options.num_heads)

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
        if self.rotation:  # a buffer that is None would be counted by torch.export
            self.register_buffer(f"angles{suffix}", torch.empty(self.hidden_size // 2, **factory))

    def _draw_permutations(self, suffix: str) -> None:
        permutations = getattr(self, f"permutations{suffix}")
        drawn = F.shift_permutations if self.permutation == "shift" else F.random_permutations
        permutations.copy_(drawn(*permutations.shape))

    def _draw_angles(self, suffix: str) -> None:
        if self.rotation:
            angles = self.get_buffer(f"angles{suffix}")
            turning = math.ceil(self.rotation * len(angles))
            angles.zero_()[:turning].uniform_(-math.pi, math.pi)

    def _reset_direction(self, suffix: str) -> None:
        weight_ih, weight_hh, bias = (
            getattr(self, f"{kind}{suffix}") for kind in ("weight_ih", "weight_hh", "bias")
        )
        start.draw(self.options, weight_ih, weight_hh, bias, first=suffix in ("", "_l0", "_l0_reverse"))

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        chosen = self.options.choices()
        ours = next(
            each for each in type(self).__mro__ if AssociativeBase in each.__bases__
        )  # not a subclass of it
        for name, parameter in list(inspect.signature(ours).parameters.items())[2:]:
            default = chosen.get(name, parameter.default)
            value = getattr(self.options, name, getattr(self, name, default))
            if value != default:
                parts.append(f"{name}={value!r}")
        return ", ".join(parts)
