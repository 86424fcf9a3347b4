"""What layers refuse, in one sentence each: options, inputs and states that do not fit."""

import contextlib
import math
from typing import Any

import torch
from torch import Tensor

from associative_lstm.functional import check_count


def check_positive_int(name: str, value: int) -> None:
    check_count(name, value, least=1)


def check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, got {value}")


def check_number_or(words: tuple[str, ...], name: str, value: Any) -> None:
    if isinstance(value, str) and value not in words:
        raise ValueError(f"{name}: expected a number or {' or '.join(map(repr, words))}, got {value!r}")
    if not isinstance(value, str):
        check_number(name, value)


def check_fraction(name: str, value: Any) -> None:
    check_number(name, value)
    if not 0 <= value <= 1:
        raise ValueError(f"{name}: expected a number between 0 and 1, got {value}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
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
