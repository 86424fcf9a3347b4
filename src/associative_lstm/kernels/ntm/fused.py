"""The Neural Turing Machine's recurrence as one operator each way, around the compiled `loops`."""

import numpy as np
import torch
from torch import Tensor

from associative_lstm.kernels.compiler.runtime import announce_compilation
from associative_lstm.kernels.compiler.threads import over_batch
from associative_lstm.kernels.fallback import beyond_the_kernel, by_reference
from associative_lstm.kernels.ntm import loops, reference
from associative_lstm.kernels.ntm.reference import NTMState
from associative_lstm.kernels.operators import (
    check_floating,
    check_tensors,
    differentiable,
    needs_gradient,
    operator,
)


def _check(z_x: Tensor, state: NTMState, weight_hh: Tensor, weight_heads: Tensor, bias_heads: Tensor) -> None:
    _, B, rows = z_x.shape
    heads, width = state.reads.shape[1:]
    H, N = rows // 4, state.memory.shape[1]
    head_rows = heads * (4 * width + 12)
    expected = [
        ("z_x", z_x, (z_x.shape[0], B, 4 * H)),
        ("h", state.h, (B, H)),
        ("c", state.c, (B, H)),
        ("reads", state.reads, (B, heads, width)),
        ("memory", state.memory, (B, N, width)),
        ("weights", state.weights, (B, 2 * heads, N)),
        ("weight_hh", weight_hh, (4 * H, H + heads * width)),
        ("weight_heads", weight_heads, (head_rows, H)),
        ("bias_heads", bias_heads, (head_rows,)),
    ]
    check_floating("z_x", z_x)
    check_tensors(expected, z_x.dtype)
    for name, tensor, _ in expected:
        if tensor.numel() == 0:
            raise ValueError(f"{name}: expected numbers, got none in shape {tuple(tensor.shape)}")


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.contiguous().numpy()


def _sequence(
    z_x: Tensor,
    h: Tensor,
    c: Tensor,
    reads: Tensor,
    memory: Tensor,
    weights: Tensor,
    weight_hh: Tensor,
    weight_heads: Tensor,
    bias_heads: Tensor,
    keep: bool,
) -> list[Tensor]:
    """The output, the final c, memory and weights, and what `loops` keeps: of every step if ``keep``."""
    _check(z_x, NTMState(h, c, reads, memory, weights), weight_hh, weight_heads, bias_heads)
    output, c_n, memory_n, weights_n, *history = results = _empty(
        z_x, h, c, reads, memory, weights, weight_hh, weight_heads, bias_heads, keep
    )
    _, cells, _, _, all_weights, all_memory, _ = history
    cells[0], all_weights[0], all_memory[0] = c, weights, memory
    with announce_compilation("the Neural Turing Machine, forward,", str(z_x.dtype)):
        over_batch(
            loops.forward,
            z_x.shape[1],
            _array(z_x),
            _array(torch.cat([h, reads.flatten(1)], dim=-1)),
            _array(weight_hh.T),
            _array(weight_heads.T),
            _array(bias_heads),
            output.numpy(),
            loops.History(*(tensor.numpy() for tensor in history)),
        )
    c_n.copy_(cells[-1])
    memory_n.copy_(all_memory[-1])
    weights_n.copy_(all_weights[-1])
    return results


def _empty(z_x, h, c, reads, memory, weights, weight_hh, weight_heads, bias_heads, keep):
    T, B, rows = z_x.shape
    heads, (N, width) = reads.shape[1], memory.shape[1:]
    steps, states = (T, T + 1) if keep else (1, 1)
    return [
        z_x.new_empty(T, B, weight_hh.shape[1]),
        z_x.new_empty(c.shape),
        z_x.new_empty(memory.shape),
        z_x.new_empty(weights.shape),
        z_x.new_empty(steps, B, rows),
        z_x.new_empty(states, B, rows // 4),
        z_x.new_empty(steps, B, heads * (4 * width + 12)),
        z_x.new_empty(steps, B, 2 * heads, 4, N),
        z_x.new_empty(states, B, 2 * heads, N),
        z_x.new_empty(states, B, N, width),
        z_x.new_empty(steps, B, N),
    ]


def _sequence_backward(
    grad_output: Tensor,
    grad_c: Tensor,
    grad_memory: Tensor,
    grad_weights: Tensor,
    hr_0: Tensor,
    weight_hh: Tensor,
    weight_heads: Tensor,
    output: Tensor,
    history: list[Tensor],
) -> list[Tensor]:
    """The gradients of z_x, h and reads side by side, c, memory, weights, weight_hh, weight_heads, bias_heads."""
    (T, B, _), H = output.shape, weight_heads.shape[1]
    gates, cells, p, *_ = history
    if len(gates) != T or len(cells) != T + 1:
        raise ValueError(
            f"history: expected {T} steps, got {len(gates)}: was the forward pass recorded without gradients?"
        )
    grad_z, grad_p, grad_hr = torch.empty_like(gates), torch.zeros_like(p), torch.zeros_like(hr_0)
    carried = [
        grad.clone(memory_format=torch.contiguous_format) for grad in (grad_c, grad_memory, grad_weights)
    ]
    with announce_compilation("the Neural Turing Machine, backward,", str(output.dtype)):
        over_batch(
            loops.backward,
            B,
            _array(grad_output),
            _array(weight_hh),
            _array(weight_heads),
            loops.History(*(tensor.numpy() for tensor in history)),
            grad_z.numpy(),
            grad_p.numpy(),
            loops.Carried(*(grad.numpy() for grad in (grad_hr, *carried))),
        )
    entering = torch.cat([hr_0.unsqueeze(0), output[:-1]])
    grad_p = grad_p.flatten(0, 1)
    return [
        grad_z,
        grad_hr,
        *carried,
        grad_z.flatten(0, 1).T @ entering.flatten(0, 1),
        grad_p.T @ output.flatten(0, 1)[:, :H],
        grad_p.sum(0),
    ]


def _empty_gradients(
    grad_output, grad_c, grad_memory, grad_weights, hr_0, weight_hh, weight_heads, output, history
):
    like = (history[0], hr_0, grad_c, grad_memory, grad_weights, weight_hh, weight_heads, weight_heads[:, 0])
    return [grad_output.new_empty(tensor.shape) for tensor in like]


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:9], output[0], *output[4:])
    ctx.set_materialize_grads(False)


def _reference(z_x, h, c, reads, memory, weights, *parameters):
    output, state = reference.sequence(z_x, NTMState(h, c, reads, memory, weights), *parameters)
    return output, state.c, state.memory, state.weights


def _differentiate(ctx, gradients, backward):
    inputs, (output, *history) = ctx.saved_tensors[:9], ctx.saved_tensors[9:]
    if beyond_the_kernel(gradients[:4]):
        return *by_reference(_reference, inputs, ctx.needs_input_grad[:9], gradients[:4]), None
    _, h, c, reads, memory, weights, weight_hh, weight_heads, _ = inputs
    above = [
        torch.zeros_like(result) if gradient is None else gradient
        for gradient, result in zip(gradients[:4], (output, c, memory, weights), strict=True)
    ]
    hr_0 = torch.cat([h, reads.flatten(1)], dim=-1)
    grad_z, grad_hr, grad_c, grad_memory, grad_weights, *grad_parameters = backward(
        *above, hr_0, weight_hh, weight_heads, output, history
    )
    grad_h, grad_reads = grad_hr[:, : h.shape[1]], grad_hr[:, h.shape[1] :].reshape(reads.shape)
    return grad_z, grad_h, grad_c, grad_reads, grad_memory, grad_weights, *grad_parameters, None


_sequence_op = operator("ntm_sequence", _sequence, _empty)
_sequence_backward_op = operator("ntm_sequence_backward", _sequence_backward, _empty_gradients)
_run = differentiable(
    _sequence_op, _sequence, _save, _differentiate, (_sequence_backward_op, _sequence_backward)
)


def sequence(
    z_x: Tensor, state: NTMState, weight_hh: Tensor, weight_heads: Tensor, bias_heads: Tensor
) -> tuple[Tensor, NTMState]:
    """All outputs and the state after the last step; see `reference.sequence`."""
    inputs = (z_x, *state, weight_hh, weight_heads, bias_heads)
    keep = needs_gradient(*inputs)
    output, c, memory, weights, *_ = _run(keep, *inputs, keep)
    h, reads = output[-1].split([c.shape[-1], output.shape[-1] - c.shape[-1]], dim=-1)
    return output, NTMState(h, c, reads.unflatten(-1, state.reads.shape[1:]), memory, weights)
