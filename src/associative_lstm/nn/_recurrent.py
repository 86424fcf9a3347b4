"""What the baselines have in common: arguments checked, ``batch_first``, the initial state."""

from typing import Any

import torch
from torch import Tensor


def positive(name: str, value: int) -> int:
    """``value``, if it is a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return value


class RecurrentNetwork(torch.nn.Module):
    """A network called ``output, state = net(x)`` or ``net(x, state)``, for a sequence of any length.

    A subclass gives the shapes of its state's parts and the recurrence, and calls
    :meth:`_learn_initial_state` if its initial state is learned. Nothing changes the module during a call,
    so a sequence can be split anywhere: the state that comes out of one piece goes into the next.
    """

    batch_dim = 0  #: the dimension of the batch in every part of the state

    def __init__(self, input_size: int, hidden_size: int, output_size: int, *, batch_first: bool) -> None:
        super().__init__()
        self.input_size = positive("input_size", input_size)
        self.hidden_size = positive("hidden_size", hidden_size)
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
            part = getattr(self, f"{name}_0") if self.learn_initial_state else like.new_zeros(shape)
            part = part.unsqueeze(self.batch_dim)
            sizes = [-1] * part.dim()
            sizes[self.batch_dim] = batch_size
            parts.append(part.expand(sizes))
        return parts

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        self._check_input(x)
        if self.batch_first:
            x = x.transpose(0, 1)
        batch_size = x.shape[1]
        parts = (
            self._initial_parts(batch_size)
            if state is None
            else self._check_state(state, batch_size, x.dtype)
        )
        output, parts = self._sequence(x, parts)
        return output.transpose(0, 1) if self.batch_first else output, self._state(parts)

    def _check_input(self, x: Tensor) -> None:
        layout = "(batch, time, input_size)" if self.batch_first else "(time, batch, input_size)"
        if not isinstance(x, Tensor):
            raise TypeError(f"the input must be a tensor of shape {layout}, got {type(x).__name__}")
        if x.dim() != 3:
            raise RuntimeError(f"the input must have shape {layout}, got {tuple(x.shape)}")
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size: expected {self.input_size}, got {x.shape[-1]}"
            )
        if x.shape[0] == 0 or x.shape[1] == 0:
            raise RuntimeError(
                f"the input must have at least one time step and one sequence, got {tuple(x.shape)}"
            )
        dtype = next(self.parameters()).dtype
        if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
            raise RuntimeError(f"the input must have the parameters' dtype {dtype}, got {x.dtype}")

    def _check_state(self, state: Any, batch_size: int, dtype: torch.dtype) -> list[Tensor]:
        parts = [state] if isinstance(state, Tensor) else list(state)
        shapes = self._state_shapes()
        if len(parts) != len(shapes):
            raise RuntimeError(f"the state must have the parts {', '.join(shapes)}, got {len(parts)} parts")
        for part, (name, shape) in zip(parts, shapes.items(), strict=True):
            if not isinstance(part, Tensor):
                raise TypeError(f"{name} of the state must be a tensor, got {type(part).__name__}")
            expected = (*shape[: self.batch_dim], batch_size, *shape[self.batch_dim :])
            if tuple(part.shape) != expected:
                raise RuntimeError(f"{name} of the state must have shape {expected}, got {tuple(part.shape)}")
            if part.dtype != dtype:
                raise RuntimeError(
                    f"{name} of the state must have the input's dtype {dtype}, got {part.dtype}"
                )
        return parts

    def extra_repr(self) -> str:
        options = "".join(
            f", {name}=True" for name in ("batch_first", "learn_initial_state") if getattr(self, name)
        )
        return f"{self.input_size}, {self.hidden_size}{options}"
