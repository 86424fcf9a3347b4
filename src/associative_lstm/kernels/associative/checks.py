"""What the operators refuse, before any compiled code runs: other shapes, types, devices than fit.

All operators look at everything they are given, at every call.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from associative_lstm.kernels.associative.inputs import Inputs
from associative_lstm.kernels.operators import CPU, Described, check_tensors


def check_inputs(inputs: Inputs, keep: int, device: torch.device = CPU) -> None:
    """Refuse what a forward pass on this device could not take."""
    x, h_0, c_0, weight_ih, weight_hh, bias, permutations, lengths, turns = inputs
    if (x.dim(), h_0.dim(), c_0.dim(), weight_hh.dim()) != (3, 2, 3, 2):
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in (x, h_0, c_0, weight_hh))
        raise ValueError(f"x, h_0, c_0, weight_hh: expected 3, 2, 3 and 2 dimensions, got shapes {shapes}")
    steps, batch, width = x.shape
    _, copies, N = c_0.shape
    if x.dtype not in (torch.float32, torch.float64) or steps < 1 or batch < 1:
        raise ValueError(
            f"x: expected float32 or float64 of at least one step and item, got {x.dtype} {tuple(x.shape)}"
        )
    if copies < 1 or N < 2 or N % 2:
        raise ValueError(
            f"c_0: expected at least one copy of a memory of even width, got shape {tuple(c_0.shape)}"
        )
    n, heads = N // 2, max(1, h_0.shape[1] // N)
    without_update = n + 2 * heads * n + 2 * heads * N
    rows = without_update + heads * N
    expected: Described = [
        ("x", x, x.shape),
        ("h_0", h_0, (batch, heads * N)),
        ("c_0", c_0, (batch, copies, N)),
        ("weight_ih", weight_ih, (rows, width)),
        ("weight_hh", weight_hh, (without_update if weight_hh.shape[0] < rows else rows, heads * N)),
        ("bias", bias, (rows,)),
        ("turns", turns, (copies, N)),
    ]
    check_tensors(expected, x.dtype, device)
    whole_numbers: Described = [("permutations", permutations, (copies, n)), ("lengths", lengths, (batch,))]
    check_tensors(whole_numbers, torch.int64, device)
    # The loops on the CPU themselves refuse a permutation with an index outside the memory. What is on another device
    # would have to be waited for.
    if lengths is not None and lengths.is_cpu:
        check_lengths(lengths, steps)
    if keep < 0:
        raise ValueError(f"keep: expected 0 or more, got {keep}")


def check_lengths(lengths: Tensor, steps: int) -> None:
    """Refuse lengths that are not in order, or beyond the sequence."""
    if lengths[-1] < 1 or lengths[0] > steps or (lengths[1:] > lengths[:-1]).any():
        raise ValueError(f"lengths: expected numbers from {steps} down to 1, the longest first")


def check_saved(
    inputs: Inputs,
    keep: int,
    output: Tensor,
    z: Tensor,
    cells: Tensor,
    above: Sequence[Tensor | None],
    needed: list[bool],
    device: torch.device = CPU,
) -> None:
    """Refuse what a backward pass could not take, beyond the inputs."""
    if keep < 1:
        raise ValueError(f"keep: expected at least 1 for a backward pass, got {keep}")
    if len(needed) != 6:
        raise ValueError(f"needed: expected 6 truth values, got {len(needed)}")
    steps, batch, _ = inputs.x.shape
    of_h, of_c = tuple(inputs.h_0.shape), tuple(inputs.c_0.shape)
    of_output = (steps, *of_h)
    of_cells = ((steps + keep - 1) // keep, *of_c)
    expected: Described = [
        ("output", output, of_output),
        ("z", z, (steps if keep == 1 else 0, batch, inputs.weight_ih.shape[0])),
        ("cells", cells, of_cells),
        *zip(
            ("d_output", "d_h_n", "d_c_n", "d_cells"), above, (of_output, of_h, of_c, of_cells), strict=True
        ),
    ]
    check_tensors(expected, inputs.x.dtype, device)


def check_devices(x: Tensor, *others: object) -> None:
    """Refuse tensors on several devices where nothing is computed, and the above does not look."""
    for other in others:
        if isinstance(other, Tensor) and other.device != x.device:
            raise ValueError(f"expected all tensors on {x.device}, as x is, got one on {other.device}")
