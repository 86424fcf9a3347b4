"""Which path serves, the fused kernel or the obvious loop, and why."""

import functools
import importlib
import warnings
from typing import Any

import torch
from torch import Tensor

from associative_lstm.kernels.derivatives import looks_inside

BACKENDS = ("auto", "reference", "fused")
_HALF = (torch.bfloat16, torch.float16)


@torch.compiler.assume_constant_result
def fused_unavailable(kernel: str = "associative.fused") -> str | None:
    """Why the fused kernel of this name cannot be used in this process, or None if it can."""
    return _import_error(kernel)


@functools.cache
def _import_error(kernel: str) -> str | None:
    try:
        importlib.import_module(f"associative_lstm.kernels.{kernel}")
    except Exception as error:  # Numba is missing, does not fit this Python, or has nowhere to keep its cache
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


@torch.compiler.assume_constant_result  # nothing for torch.compile to trace: a choice, made once
def choose_backend(
    backend: str, device: torch.device, dtype: torch.dtype, kernel: str = "associative.fused"
) -> tuple[str, str]:
    """The path that a layer takes, ``"fused"`` or ``"reference"``, and the reason in words.

    >>> choose_backend("reference", torch.device("cpu"), torch.float32)
    ('reference', 'asked for')
    >>> choose_backend("auto", torch.device("cpu"), torch.float8_e5m2)
    ('reference', 'the fused kernel takes 16, 32 and 64 bits of floating point, not torch.float8_e5m2')
    """
    if backend == "reference":
        return "reference", "asked for"
    if device.type != "cpu":
        reason = f"the fused kernel runs on the CPU, not on {device.type}"
    elif dtype not in (torch.float32, torch.float64, *_HALF):
        reason = f"the fused kernel takes 16, 32 and 64 bits of floating point, not {dtype}"
    elif (observer := looks_inside()) is not None:
        reason = f"{observer} has to see every operation, which backend='reference' shows"
    elif (error := fused_unavailable(kernel)) is not None:
        reason = f"Numba cannot be used here ({error})"
        if backend == "auto":
            _warn_once(f"associative-lstm runs its slow reference loop: {reason}")
    else:
        return "fused", "asked for" if backend == "fused" else "CPU and a floating-point type it knows"
    if backend == "fused":
        raise RuntimeError(f"backend='fused': {reason}")
    return "reference", reason


def serves_fused(backend: str, x: Tensor, kernel: str = "associative.fused") -> bool:
    """Whether the fused kernel of this name computes what ``x``, ``(T, B, ...)``, asks for; not for a batch of 0."""
    path, _ = choose_backend(backend, x.device, x.dtype, kernel)
    return path == "fused" and x.shape[1] > 0


def widened(*tensors: Tensor | None) -> list[Any]:
    """bfloat16 and float16 as float32, in which the kernels compute: all else is as it was.

    What comes out, and every gradient, is rounded once at the end. The reference rounds after every operation.
    """
    return [tensor.float() if tensor is not None and tensor.dtype in _HALF else tensor for tensor in tensors]


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
