"""How far apart two ways to compute the same numbers may come out: what follows from their conditioning.

Other orders of the same sums, other libraries' products and other processors round otherwise, at every step. What a
step makes of that is about what it makes of inputs and weights that differ in their last place. So every input and
every parameter is changed by one unit there, with random signs, and ROUNDINGS times as much as that changes a result
is allowed between two computations of it. A mistake in a formula is a thousand million times as large.
"""

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

ROUNDINGS = 64
"""A step rounds some hundred times, in its sums and its elementary functions, by up to half a unit each. With random
signs they come to ten or so. Between two correct ways of this project, 1 is common, 6 rare and 17 the most seen."""

_STEP = 2.0**-26  # in float64, where it is well above the roundings; what it changes is scaled down
_SHAKES = 3  # of few numbers, what one draw of the signs does to them may cancel


def allowed(run: Callable[..., Iterable[Tensor]], *arguments: Any) -> list[float]:
    """How far another way to compute each of the results of ``run(*arguments)`` may be from it, at any place.

    ``arguments``: tensors, modules, tuples of them, or anything else, which is passed on. Modules are asked for their
    reference loop.
    """
    unit = max(torch.finfo(tensor.dtype).eps for argument in arguments for tensor in _floats(argument))
    generator = torch.Generator().manual_seed(0)
    results = list(run(*(_shaken(argument, None) for argument in arguments)))
    changed = [0.0] * len(results)
    for _ in range(_SHAKES):
        others = run(*(_shaken(argument, generator) for argument in arguments))
        changed = list(map(max, changed, map(_difference, others, results)))
    return [ROUNDINGS * unit * (by / _STEP + _largest(b)) for by, b in zip(changed, results, strict=True)]


def assert_close(ours: Iterable[Any], expected: Iterable[Any], limits: Iterable[float]) -> None:
    """Each of ``ours`` is ``expected``, but for its limit."""
    for k, (a, b, limit) in enumerate(zip(ours, expected, limits, strict=True)):
        error = _difference(torch.as_tensor(a), torch.as_tensor(b))
        assert error <= limit, f"result {k}: off by {error:.2g}, allowed {limit:.2g}"


def _difference(a: Tensor, b: Tensor) -> float:
    assert a.shape == b.shape
    return _largest(a.double() - b.double())


def _largest(tensor: Tensor) -> float:
    return tensor.detach().abs().max().item() if tensor.numel() else 0.0


def _floats(argument: Any) -> Iterable[Tensor]:
    if isinstance(argument, nn.Module):
        yield from argument.parameters()
    elif isinstance(argument, tuple | list):
        for part in argument:
            yield from _floats(part)
    elif isinstance(argument, Tensor) and argument.is_floating_point():
        yield argument


def _shaken(argument: Any, generator: torch.Generator | None) -> Any:
    if isinstance(argument, nn.Module):
        module = copy.deepcopy(argument).double()
        if hasattr(module, "backend"):
            module.backend = "reference"
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(_shaken(parameter, generator))
        return module
    if isinstance(argument, tuple | list):
        parts = [_shaken(part, generator) for part in argument]
        return type(argument)(*parts) if hasattr(argument, "_fields") else type(argument)(parts)
    if not isinstance(argument, Tensor) or not argument.is_floating_point():
        return argument
    values = argument.detach().double()
    if generator is None:
        return values
    signs = 2 * torch.randint(2, values.shape, generator=generator).double() - 1
    return values * (1 + _STEP * signs)
