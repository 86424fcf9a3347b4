"""What the Associative LSTM's cell and layer share: options, their checks, parameters and initialisation."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from associative_lstm import functional as F
from associative_lstm.kernels.associative import reference
from associative_lstm.kernels.associative.rows import Rows
from associative_lstm.nn.checks import check_choice, check_dtype, check_number, check_positive_int

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
