"""What both compiled ways share, on the CPU and on a GPU: what is saved, its shapes, and the way on to the reference.

A routine gives output, h_n, c_n, and what is kept for the backward pass: z and cells. keep = 1 keeps z and the cells
after every step; keep = k > 1 the cells before every k-th step; keep = 0 nothing. The routine of the way back gives
the gradients of x, h_0, c_0, weight_ih, weight_hh and bias; an empty tensor for one that is not needed.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from associative_lstm.kernels.associative import reference
from associative_lstm.kernels.associative.checks import check_devices, check_inputs, check_saved
from associative_lstm.kernels.associative.inputs import Inputs
from associative_lstm.kernels.fallback import beyond_the_kernel, by_reference
from associative_lstm.kernels.operators import differentiable, needs_gradient, operator

_INPUTS = (
    "Tensor x, Tensor h_0, Tensor c_0, Tensor weight_ih, Tensor weight_hh, Tensor? bias, Tensor permutations, "
    "Tensor? lengths, Tensor? turns, bool smooth, bool reverse, SymInt keep"
)
_SAVED = (
    "Tensor output, Tensor z, Tensor cells, "
    "Tensor? d_output, Tensor? d_h_n, Tensor? d_c_n, Tensor? d_cells, bool[] needed"
)


def register(
    name: str, routine: Callable, backward: Callable, device: torch.device | None
) -> tuple[Any, Any, Callable]:
    """Both routines as operators of PyTorch's, and what `sequence` calls; None for any device."""

    def checked_backward(*arguments):
        inputs, keep = Inputs(*arguments[:9]), arguments[11]
        output, z, cells, *above, needed = arguments[12:]
        there = device or inputs.x.device
        check_inputs(inputs, keep, there)
        check_saved(inputs, keep, output, z, cells, above, needed, there)
        return backward(*arguments)

    forward_op = operator(name, routine, _empty, f"({_INPUTS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)")
    schema = f"({_INPUTS}, {_SAVED}) -> Tensor[]"
    backward_op = operator(f"{name}_backward", checked_backward, _empty_gradients, schema)
    run = differentiable(forward_op, routine, _save, _differentiate, (backward_op, backward))
    return forward_op, backward_op, run


def sequence(
    run: Callable,
    inputs: Inputs,
    num_heads: int,
    activation: str,
    reverse: bool,
    keep_states_every: int,
    return_cells: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """What `reference.sequence` computes. Without gradients nothing is kept for a backward pass."""
    keep = keep_states_every if needs_gradient(*inputs[:6]) else 0
    if return_cells:
        keep = 1
    width = num_heads * inputs.c_0.shape[-1]
    if inputs.h_0.shape[-1] != width:
        raise ValueError(f"h_0: expected a width of {width}, got {inputs.h_0.shape[-1]}")
    output, h_n, c_n, _, cells = run(keep, *inputs, activation == "tanh", reverse, keep)
    return output, h_n, c_n, cells if return_cells else None


def _empty(x, h_0, c_0, weight_ih, *rest):
    check_devices(x, h_0, c_0, weight_ih, *rest)
    (steps, batch, _), keep = x.shape, rest[-1]
    return (
        x.new_empty(steps, batch, h_0.shape[1]),
        h_0.new_empty(h_0.shape),
        c_0.new_empty(c_0.shape),
        x.new_empty(steps if keep == 1 else 0, batch, weight_ih.shape[0]),
        x.new_empty(kept_cells(steps, keep), *c_0.shape),
    )


def _empty_gradients(x, h_0, c_0, weight_ih, weight_hh, bias, *rest):
    check_devices(x, h_0, c_0, weight_ih, weight_hh, bias, *rest)
    needed = rest[-1]
    need_x, _, _, need_ih, need_hh, need_bias = needed
    return [
        x.new_empty(x.shape if need_x else 0),
        h_0.new_empty(h_0.shape),
        c_0.new_empty(c_0.shape),
        x.new_empty(weight_ih.shape if need_ih else 0),
        x.new_empty(weight_hh.shape if need_hh else 0),
        x.new_empty(weight_ih.shape[0] if need_bias else 0),
    ]


def _save(ctx, inputs, output):
    *tensors, smooth, reverse, keep = inputs
    result, _, _, z, cells = output
    ctx.save_for_backward(*tensors, result, z, cells)
    ctx.options = smooth, reverse, keep
    ctx.set_materialize_grads(False)


def _differentiate(ctx, gradients, backward):
    *inputs, output, z, cells = ctx.saved_tensors
    d_output, d_h_n, d_c_n, _, d_cells = gradients
    above, needed = (d_output, d_h_n, d_c_n, d_cells), list(ctx.needs_input_grad[:6])
    if beyond_the_kernel(above):
        found = by_reference(_reference(*inputs[6:], *ctx.options), inputs[:6], needed, above)
    else:
        found = backward(*inputs, *ctx.options, output, z, cells, *above, needed)
    return *(d if need else None for d, need in zip(found, needed, strict=True)), *(None,) * 6


def _reference(permutations, lengths, turns, smooth, reverse, keep):
    """The same results of the same differentiable inputs, as a loop of PyTorch operations."""

    def sequence(x, h_0, c_0, weight_ih, weight_hh, bias):
        heads, activation = h_0.shape[-1] // c_0.shape[-1], "tanh" if smooth else "bound"
        inputs = Inputs(x, h_0, c_0, weight_ih, weight_hh, bias, permutations, lengths, turns)
        return reference.sequence(inputs, heads, activation, reverse)

    return sequence


def before_segment(times, all_of_it, initial, lengths, reverse):
    """Output or cells before a segment. In reverse, an item that has not begun yet still has its initial ones."""
    if not reverse:
        return all_of_it[times.start - 1] if times.start > 0 else initial
    if times.stop == len(all_of_it):
        return initial
    later = all_of_it[times.stop]
    if lengths is None:
        return later
    begun = (lengths > times.stop).view(-1, *(1,) * (initial.dim() - 1))
    return torch.where(begun, later, initial)


def times_of(first, last, steps, reverse):
    """The times of steps first to last - 1 in the direction of reading."""
    return slice(steps - last, steps - first) if reverse else slice(first, last)


def kept_cells(steps, keep):
    """How many states are kept."""
    return 0 if keep == 0 else (steps + keep - 1) // keep


def copy(tensor):
    """A copy that is contiguous."""
    return tensor.clone(memory_format=torch.contiguous_format)
