"""What the baselines have in common: arguments checked, ``batch_first``, the initial state."""

from typing import Any

import torch
from torch import Tensor

from associative_lstm.nn.checks import (
    check_input,
    check_positive_int,
    check_state,
    check_steps,
    float_precision,
)


class RecurrentNetwork(torch.nn.Module):
    """A network called ``output, state = net(x)`` or ``net(x, state)``, for a sequence of any length.

    A subclass gives the shapes of its state's parts and the recurrence, and calls
    :meth:`_learn_initial_state` if its initial state is learned. Nothing changes the module during a call,
    so a sequence can be split anywhere: the state that comes out of one piece goes into the next.
    """

    batch_dim = 0  #: the dimension of the batch in every part of the state

    def __init__(self, input_size: int, hidden_size: int, output_size: int, *, batch_first: bool) -> None:
        super().__init__()
        check_positive_int("input_size", input_size)
        check_positive_int("hidden_size", hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.output_size = output_size
        self.batch_first = batch_first
        self.learn_initial_state = False

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and the shape, without the batch, of every part of the state."""
        raise NotImplementedError

    def _state(self, parts: list[Tensor]) -> Any:
        """The parts as the user sees them."""
        return tuple(parts)

    def _sequence(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The recurrence: ``x``, ``(T, B, input_size)``, gives the output and the state's parts at last."""
        raise NotImplementedError

    def _learn_initial_state(self, **factory: Any) -> None:
        self.learn_initial_state = True
        for name, shape in self._state_shapes().items():
            self.register_parameter(f"{name}_0", torch.nn.Parameter(torch.empty(shape, **factory)))

    def initial_state(self, batch_size: int) -> Any:
        """The state before the first symbol, for ``batch_size`` sequences: learned, or zero."""
        return self._state(self._initial_parts(batch_size))

    def _initial_parts(self, batch_size: int) -> list[Tensor]:
        like = next(self.parameters())
        parts = []
        for name, shape in self._state_shapes().items():
            whole = (*shape[: self.batch_dim], batch_size, *shape[self.batch_dim :])
            if self.learn_initial_state:
                parts.append(getattr(self, f"{name}_0").unsqueeze(self.batch_dim).expand(whole))
            else:
                parts.append(like.new_zeros(whole))
        return parts

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        self._check_input(x)
        x = x.to(next(self.parameters()).dtype)
        if self.batch_first:
            x = x.transpose(0, 1)
        batch_size = x.shape[1]
        parts = self._initial_parts(batch_size) if state is None else self._check_state(state, batch_size)
        with float_precision(x):
            output, parts = self._sequence(x, parts)
        return output.transpose(0, 1) if self.batch_first else output, self._state(parts)

    def _check_input(self, x: Tensor) -> None:
        layout = "(batch, time, input_size)" if self.batch_first else "(time, batch, input_size)"
        if not isinstance(x, Tensor):
            raise TypeError(f"x: expected a tensor of shape {layout}, got {type(x).__name__}")
        if x.dim() != 3:
            raise ValueError(f"x: expected shape {layout}, got {tuple(x.shape)}")
        check_input(x, self.input_size, next(self.parameters()))
        check_steps(x, 1 if self.batch_first else 0)

    def _check_state(self, state: Any, batch_size: int) -> list[Tensor]:
        shapes = self._state_shapes()
        parts = list(state) if isinstance(state, tuple | list) else [state]
        if len(parts) != len(shapes):
            raise ValueError(f"state: expected the parts {', '.join(shapes)}, got {len(parts)} parts")
        for part, (name, shape) in zip(parts, self._fitted(shapes, parts).items(), strict=True):
            whole = (*shape[: self.batch_dim], batch_size, *shape[self.batch_dim :])
            check_state(name, part, whole, next(self.parameters()))
        return parts

    def _fitted(self, shapes: dict[str, tuple[int, ...]], parts: list[Any]) -> dict[str, tuple[int, ...]]:
        """The shapes that the parts of a given state must have: those of any, unless a state can grow."""
        return shapes

    def extra_repr(self) -> str:
        options = "".join(
            f", {name}=True" for name in ("batch_first", "learn_initial_state") if getattr(self, name)
        )
        return f"{self.input_size}, {self.hidden_size}{options}"


def draw_permutation(permutation: Tensor) -> None:
    permutation.copy_(torch.randperm(len(permutation), device=permutation.device))
