"""Which path serves, a compiled kernel or the obvious loop, and why."""

import functools
import importlib
import os
import warnings
from typing import Any

import torch
from torch import Tensor

from associative_lstm.kernels.fallback import looks_inside

BACKENDS = ("auto", "reference", "fused")
ALL_BACKENDS = (*BACKENDS, "triton")  # of networks that have a kernel for GPUs
_HALF = (torch.bfloat16, torch.float16)


@torch.compiler.assume_constant_result
def fused_unavailable(kernel: str = "associative.fused") -> str | None:
    """Why the kernel of this name cannot be used in this process, or None if it can."""
    return _import_error(kernel)


@functools.cache
def _import_error(kernel: str) -> str | None:
    try:
        importlib.import_module(f"associative_lstm.kernels.{kernel}")
    except (
        Exception
    ) as error:  # Numba or Triton is missing, does not fit this Python, or has nowhere to keep its cache
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


@torch.compiler.assume_constant_result  # nothing for torch.compile to trace: a choice, made once
def choose_backend(
    backend: str, device: torch.device, dtype: torch.dtype, kernel: str = "associative.fused"
) -> tuple[str, str]:
    """The path that a layer takes, ``"fused"``, ``"triton"`` or ``"reference"``, and the reason in words.

    >>> choose_backend("reference", torch.device("cpu"), torch.float32)
    ('reference', 'asked for')
    >>> choose_backend("auto", torch.device("cpu"), torch.float8_e5m2)
    ('reference', 'the fused kernel takes 16, 32 and 64 bits of floating point, not torch.float8_e5m2')
    """
    if backend == "reference":
        return "reference", "asked for"
    on_a_gpu = device.type == "cuda" and kernel == "associative.fused"  # ROCm's devices are called so too
    path = "triton" if backend == "triton" or (backend == "auto" and on_a_gpu) else "fused"
    reason = _misfit(path, device, dtype)
    if reason is None and (observer := looks_inside()) is not None:
        reason = f"{observer} has to see every operation, which backend='reference' shows"
    if reason is None and (error := fused_unavailable(kernel.replace("fused", path))) is not None:
        reason = f"{'Triton' if path == 'triton' else 'Numba'} cannot be used here ({error})"
        if backend == "auto":
            _warn_once(f"associative-lstm runs its slow reference loop: {reason}")
    if reason is None:
        where = "a GPU" if path == "triton" else "CPU"
        return path, "asked for" if backend == path else f"{where} and a floating-point type it knows"
    if backend == path:
        raise RuntimeError(f"backend={path!r}: {reason}")
    return "reference", reason


def _misfit(path: str, device: torch.device, dtype: torch.dtype) -> str | None:
    """Why a kernel does not fit what it would be given, or None."""
    if path == "fused":
        if device.type != "cpu":
            return f"the fused kernel runs on the CPU, not on {device.type}"
        if dtype not in (torch.float32, torch.float64, *_HALF):
            return f"the fused kernel takes 16, 32 and 64 bits of floating point, not {dtype}"
    else:
        if device.type != "cuda" and not (device.type == "cpu" and _interpreted()):
            return f"the Triton kernel runs on a GPU, not on {device.type}"
        if dtype not in (torch.float32, *_HALF):
            return f"the Triton kernel takes 16 and 32 bits of floating point, not {dtype}"
    return None


def _interpreted() -> bool:
    """Whether Triton's interpreter runs its kernels, on the CPU: TRITON_INTERPRET=1 before it is imported."""
    if "TRITON_INTERPRET" not in os.environ or fused_unavailable("associative.triton") is not None:
        return False
    return importlib.import_module("associative_lstm.kernels.associative.triton").INTERPRETED


def serving(backend: str, x: Tensor, kernel: str = "associative.fused") -> str:
    """The path that computes what ``x``, ``(T, B, ...)``, asks for; the reference for a batch of 0."""
    return choose_backend(backend, x.device, x.dtype, kernel)[0] if x.shape[1] > 0 else "reference"


def serves_fused(backend: str, x: Tensor, kernel: str = "associative.fused") -> bool:
    """Whether the fused kernel of this name computes what ``x``, ``(T, B, ...)``, asks for; not for a batch of 0."""
    return serving(backend, x, kernel) == "fused"


def widened(*tensors: Tensor | None) -> list[Any]:
    """bfloat16 and float16 as float32, in which the kernels compute: all else is as it was.

    What comes out, and every gradient, is rounded once at the end. The reference rounds after every operation.
    """
    return [tensor.float() if tensor is not None and tensor.dtype in _HALF else tensor for tensor in tensors]


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
