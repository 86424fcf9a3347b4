"""Where a compiled routine does not serve, because PyTorch has to see the operations inside: one place for all.

A fused kernel knows its first derivatives. All further ones come from the reference, a loop of PyTorch operations.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad


def looks_inside() -> str | None:
    """What is under way that has to see every operation, in words, or None."""
    if torch._C._are_functorch_transforms_active():
        return "a transformation of torch.func"
    if in_forward_mode():
        return "forward-mode differentiation"
    if torch.jit.is_tracing():
        return "torch.jit.trace"
    return None


def in_forward_mode() -> bool:
    """Whether tensors may carry tangents: also in a backward pass whose forward pass came before."""
    return forward_ad._current_level >= 0


def wants_operator(x: Tensor) -> bool:
    """Whether something follows operators one by one, as torch.compile does: then a kernel has to be one."""
    return (
        torch.compiler.is_compiling()
        or isinstance(x, FakeTensor)
        or torch._C._len_torch_dispatch_stack() > 0  # make_fx, and counters of operations
    )


def is_batched(gradients: Sequence[Tensor | None]) -> bool:
    """Whether a backward pass is given many gradients at once (``is_grads_batched=True``, or inside vmap)."""
    functorch = torch._C._functorch
    return any(
        gradient is not None
        and (functorch.is_batchedtensor(gradient) or functorch.is_legacy_batchedtensor(gradient))
        for gradient in gradients
    )


def beyond_the_kernel(gradients: Sequence[Tensor | None]) -> bool:
    """Whether a backward pass has to be differentiable (``create_graph=True``, forward mode), or is one of many."""
    return torch.is_grad_enabled() or in_forward_mode() or is_batched(gradients)


def by_reference(
    reference: Callable[..., Sequence[Tensor]],
    inputs: Sequence[Tensor | None],
    needed: Sequence[bool],
    gradients: Sequence[Tensor | None],
) -> list[Tensor | None]:
    """The gradients of the inputs that need one, by a new pass through ``reference(*inputs)``: differentiable again.

    ``gradients`` are those of the results of ``reference``, or None.
    """
    device = next(tensor.device.type for tensor in inputs if tensor is not None)
    with torch.enable_grad(), torch.autocast(device, enabled=False):
        # Views, because one input may be computed from another: each has the derivative at its own place only.
        views = [tensor if tensor is None else tensor.view_as(tensor) for tensor in inputs]
        ends = [
            (result, gradient)
            for result, gradient in zip(reference(*views), gradients, strict=True)
            if gradient is not None and result.requires_grad
        ]
        found = iter(
            torch.autograd.grad(
                [result for result, _ in ends],
                [view for view, need in zip(views, needed, strict=True) if need and view is not None],
                [gradient for _, gradient in ends],
                create_graph=torch.is_grad_enabled(),
                materialize_grads=True,
            )
        )
    return [next(found) if need else None for need in needed]
