"""The options that the Associative LSTM's layer and cell share, checked in one place."""

from dataclasses import dataclass
from typing import Any

from associative_lstm.functional import check_permutation_kind
from associative_lstm.kernels.associative import reference
from associative_lstm.nn.checks import check_choice, check_fraction, check_number_or, check_positive_int

KEY_INITS = ("glorot", "conjugate", "matched")
FORGET_BIASES = ("mixed", "chrono")
UPDATE_INITS = ("glorot", "pass")

UPDATE_MODULUS = 0.99
"""Of the fast start's codes of x: 1, but for the edge of the bound, where gradients jump and roundings decide."""

STARTS: dict[str, dict[str, Any]] = {
    "paper": {"key_init": "glorot", "forget_bias": 0.0, "update_init": "glorot"},
    "fast": {"key_init": "matched", "forget_bias": "mixed", "update_init": UPDATE_MODULUS},
}


@dataclass(frozen=True)
class Options:
    """What `AssociativeLSTM` says of each; what is None becomes the choice of the start."""

    input_size: int
    hidden_size: int
    bias: bool
    num_copies: int
    num_heads: int
    recurrent_update: bool
    activation: str
    start: str
    key_init: str | None
    forget_bias: float | str | None
    update_init: float | str | None
    horizon: int
    permutation: str
    rotation: float

    def __post_init__(self) -> None:
        for name in ("input_size", "hidden_size", "num_copies", "num_heads", "horizon"):
            check_positive_int(name, getattr(self, name))
        if self.hidden_size % 2:
            raise ValueError(
                f"hidden_size: expected an even number (real and imaginary halves), got {self.hidden_size}"
            )
        check_choice("activation", self.activation, tuple(reference.ACTIVATIONS))
        check_choice("start", self.start, tuple(STARTS))
        check_permutation_kind(self.permutation)
        check_fraction("rotation", self.rotation)
        if not self.bias and (self.key_init in ("conjugate", "matched") or self.forget_bias not in (None, 0)):
            raise ValueError(
                "bias: key_init other than 'glorot' and forget_bias set biases, so expected bias=True"
            )
        for name, choice in self.choices().items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, choice)
        check_choice("key_init", self.key_init, KEY_INITS)
        check_number_or(FORGET_BIASES, "forget_bias", self.forget_bias)
        check_number_or(UPDATE_INITS, "update_init", self.update_init)
        if self.update_init == "pass" and self.input_size % (self.num_heads * self.hidden_size):
            raise ValueError(
                f"update_init: 'pass' expects an input_size that is a multiple of num_heads * hidden_size="
                f"{self.num_heads * self.hidden_size}, the output of another layer, got {self.input_size}"
            )
        if isinstance(self.update_init, int | float) and self.update_init <= 0:
            raise ValueError(f"update_init: expected a modulus above 0, got {self.update_init}")

    def choices(self) -> dict[str, Any]:
        """What the start chooses; without biases, that they are zero."""
        no_biases = {name: STARTS["paper"][name] for name in ("key_init", "forget_bias")}
        return STARTS[self.start] | ({} if self.bias else no_biases)
