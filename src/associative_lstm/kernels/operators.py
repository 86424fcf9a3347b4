"""A compiled routine and its gradient as PyTorch sees them, and what every one of them refuses."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from associative_lstm.kernels.fallback import wants_operator

CPU = torch.device("cpu")
Described = Iterable[tuple[str, Tensor | None, tuple[int, ...]]]


def operator(name: str, routine: Callable, empty: Callable, schema: str | None = None) -> Any:
    """The routine as an operator of PyTorch's; ``empty`` makes tensors like its results.

    The schema says what it takes and gives, if its signature does not.
    """
    made = torch.library.custom_op(f"associative_lstm::{name}", routine, mutates_args=(), schema=schema)
    made.register_fake(empty)
    return made


def differentiable(
    operator: Any,
    routine: Callable,
    save: Callable,
    differentiate: Callable,
    backward: tuple[Callable, Callable],
) -> Callable:
    """``f(keep, *inputs)``: the routine, for autograd to go through if ``keep``.

    That is the operator where something follows operators one by one, and elsewhere the same without its dispatch,
    which takes 0.2 ms a call. ``save(ctx, inputs, results)`` keeps what ``differentiate(ctx, gradients, backward)``
    needs; ``backward`` are the operator and the routine of the way back.
    """
    backward_operator, backward_routine = backward

    def through_operator(ctx: Any, *gradients: Any) -> Any:
        if isinstance(gradients[0], list | tuple):  # of an operator that gives a list
            (gradients,) = gradients
        return differentiate(ctx, gradients, backward_operator)

    operator.register_autograd(through_operator, setup_context=save)

    class _Eager(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            results = routine(*inputs)
            save(ctx, inputs, results)
            return tuple(results) if isinstance(results, list) else results

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return differentiate(ctx, gradients, backward_routine)

    def call(keep: Any, *inputs: Any) -> Any:
        if wants_operator(inputs[0]):
            return operator(*inputs)
        return _Eager.apply(*inputs) if keep else routine(*inputs)

    return call


def needs_gradient(*tensors: Tensor | None) -> bool:
    """Whether a backward pass may follow."""
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def check_tensors(expected: Described, dtype: torch.dtype, device: torch.device = CPU) -> None:
    """Refuse tensors of other shapes, types or devices: compiled code trusts its sizes."""
    dense = torch.strided
    for name, tensor, shape in expected:
        if tensor is None:
            continue
        if tensor.shape != shape:
            raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")
        if tensor.dtype is not dtype:
            raise ValueError(f"{name}: expected {dtype}, got {tensor.dtype}")
        if tensor.device != device or tensor.layout is not dense:
            raise ValueError(f"{name}: expected {dense} on {device}, got {tensor.layout} on {tensor.device}")


def check_floating(name: str, tensor: Tensor) -> None:
    """Refuse a type that no kernel computes in."""
    if tensor.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name}: expected float32 or float64, got {tensor.dtype}")
