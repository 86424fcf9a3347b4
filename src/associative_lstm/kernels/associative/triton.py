"""The whole sequence in one Triton kernel each way, for GPUs, as a custom PyTorch operator.

Checked in Triton's interpreter and compiled for sm_80, sm_90 and gfx942; not yet run on a GPU.

As in `fused`, input projection and weight gradients are large matrix products outside the time loop, and a long
sequence is gone through in segments where its pre-activations would take much memory.
"""

import contextlib

import torch
import triton
from torch import Tensor
from torch.nn.functional import linear

from associative_lstm.functional import check_permutations
from associative_lstm.kernels.associative import routines, triton_loops
from associative_lstm.kernels.associative.checks import check_inputs, check_lengths
from associative_lstm.kernels.associative.inputs import Inputs
from associative_lstm.kernels.associative.routines import before_segment, copy, kept_cells, times_of

STATUS = "checked in Triton's interpreter and compiled for sm_80, sm_90 and gfx942; not yet run on a GPU"
INTERPRETED = not isinstance(triton_loops.forward, triton.runtime.JITFunction)

SEGMENT_BYTES = (
    2**26
)  # of pre-activations that are not kept: beside them a launch, some microseconds, is little
MOST_ITEMS = 16  # of a program; the fewest rows that a matrix unit takes


def _sequence(*arguments):
    """See `routines`."""
    *tensors, smooth, reverse, keep = arguments
    inputs = Inputs(*tensors)
    check_inputs(inputs, keep, inputs.x.device)
    x, h, c, weight_ih, _, bias, *_ = inputs
    x, h = x.contiguous(), copy(h)
    steps, batch, _ = x.shape
    output = x.new_empty(steps, batch, h.shape[1])
    cells = x.new_empty(kept_cells(steps, keep), *c.shape)
    z = _linear(x, weight_ih, bias) if keep == 1 else x.new_empty(0, batch, weight_ih.shape[0])
    segment = steps if keep == 1 else _segment(x, weight_ih, keep)
    c = torch.stack([c, c])
    launch = _Launch(inputs, smooth, reverse)
    for first in range(0, steps, segment):
        times = times_of(first, min(first + segment, steps), steps, reverse)
        if keep > 1:
            cells[first // keep] = c[first % 2]
        segment_z = z if keep == 1 else _linear(x[times], weight_ih, bias)
        launch.forward(first, segment_z, h, c, output[times], cells if keep == 1 else None)
    return output, h, c[steps % 2].clone(), z, cells


def _sequence_backward(*arguments):
    """See `routines`. What is given here was checked by `_sequence`."""
    *tensors, smooth, reverse, keep, output, z, cells, d_output, d_h_n, d_c_n, d_cells, needed = arguments
    inputs = Inputs(*tensors)
    x, h_0, c_0, weight_ih, weight_hh, bias, _, lengths, _ = inputs
    x, h_0, c_0, output, z, cells = (tensor.contiguous() for tensor in (x, h_0, c_0, output, z, cells))
    steps, rows_h = len(x), len(weight_hh)
    need_x, _, _, need_ih, need_hh, need_bias = needed
    dh = torch.zeros_like(h_0) if d_h_n is None else copy(d_h_n)
    dc = torch.zeros_like(c_0) if d_c_n is None else copy(d_c_n)
    dx = torch.empty_like(x) if need_x else x.new_empty(0)
    d_ih = torch.zeros_like(weight_ih) if need_ih else x.new_empty(0)
    d_hh = torch.zeros_like(weight_hh) if need_hh else x.new_empty(0)
    d_bias = x.new_zeros(len(weight_ih)) if need_bias else x.new_empty(0)
    launch = _Launch(inputs, smooth, reverse)
    segment = _segment(x, weight_ih, keep)
    for first in reversed(range(0, steps, segment)):
        last = min(first + segment, steps)
        times = times_of(first, last, steps, reverse)
        if keep > 1:  # compute the segment once more, from the state before it
            before = cells[first // keep]
            segment_z = _linear(x[times], weight_ih, bias)
            segment_cells = x.new_empty(last - first, *c_0.shape)
            h = copy(before_segment(times, output, h_0, lengths, reverse))
            again = x.new_empty(last - first, *h_0.shape)
            launch.forward(first, segment_z, h, torch.stack([before, before]), again, segment_cells)
        else:
            before = before_segment(times, cells, c_0, lengths, reverse)
            segment_z, segment_cells = z[times], cells[times]
        above = x.new_zeros(last - first, *h_0.shape) if d_output is None else d_output[times].contiguous()
        above_cells = None if d_cells is None or keep > 1 else d_cells[times].contiguous()
        dz = launch.backward(first, segment_z, segment_cells, before, above, above_cells, dh, dc)
        flat = dz.flatten(0, 1)
        if need_x:
            torch.mm(flat, weight_ih, out=dx[times].flatten(0, 1))
        if need_ih:
            d_ih.addmm_(flat.T, x[times].flatten(0, 1))
        if need_hh:
            d_hh.addmm_(flat[:, :rows_h].T, _seen(times, output, h_0, lengths, reverse).flatten(0, 1))
        if need_bias:
            d_bias += flat.sum(0)
    return [dx, dh, dc, d_ih, d_hh, d_bias]


_sequence_op, _sequence_backward_op, _run = routines.register(
    "triton_sequence", _sequence, _sequence_backward, None
)


def sequence(inputs: Inputs, *options) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """See `routines.sequence`."""
    check_permutations("permutations", inputs.permutations)
    if inputs.lengths is not None:  # those of a pack are on the CPU always
        check_lengths(inputs.lengths, len(inputs.x))
        inputs = inputs._replace(lengths=inputs.lengths.to(inputs.x.device))
    return routines.sequence(_run, inputs, *options)


class _Launch:
    """What all launches for a sequence have in common."""

    def __init__(self, inputs, smooth, reverse):
        x, h, c, _, weight_hh, _, permutations, lengths, turns = inputs
        self.steps, self.batch, _ = x.shape
        _, copies, N = c.shape
        self.w, self.w_transposed = weight_hh.contiguous(), weight_hh.T.contiguous()
        self.permutations = permutations.to(torch.int32)
        places = torch.arange(N // 2, dtype=torch.int32, device=x.device).expand_as(permutations)
        self.inverses = torch.empty_like(self.permutations).scatter_(1, permutations, places)
        self.lengths = self.w if lengths is None else lengths.contiguous()  # any tensor: it is not read
        self.turns = self.w if turns is None else turns.contiguous()
        self.device = torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext()
        sizes = sizes_of(N, h.shape[1] // N, items_of(self.batch, processors(x.device)))
        self.programs = (triton.cdiv(self.batch, sizes["ITEMS"]),)
        self.options = sizes | {
            "copies": copies,
            "rows_h": len(weight_hh),
            "reverse": reverse,
            "smooth": smooth,
            "packed": lengths is not None,
            "turning": turns is not None,
            "PRECISION": precision(x.device),
        }

    def forward(self, first, z, h, c, output, cells):
        """One segment: z becomes gates and sums, h and c the state after it, output and cells are filled."""
        with self.device:
            triton_loops.forward[self.programs](
                z,
                self.w_transposed,
                h,
                c,
                output,
                z if cells is None else cells,
                self.permutations,
                self.lengths,
                self.turns,
                len(z),
                first,
                self.steps,
                self.batch,
                keep=cells is not None,
                **self.options,
            )

    def backward(self, first, z, cells, before, above, above_cells, dh, dc):
        """The gradient of a segment's pre-activations; dh and dc become those of the state before it."""
        dz = torch.empty_like(z)
        with self.device:
            triton_loops.backward[self.programs](
                z,
                self.w,
                cells,
                before.contiguous(),
                above,
                above if above_cells is None else above_cells,
                dh,
                dc,
                torch.empty_like(dc),
                torch.empty_like(dh),
                dz,
                self.permutations,
                self.inverses,
                self.lengths,
                self.turns,
                len(z),
                first,
                self.steps,
                self.batch,
                above_cells=above_cells is not None,
                **self.options,
            )
        return dz


def processors(device: torch.device) -> int:
    """How many programs run side by side."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).multi_processor_count
    return 1  # the interpreter


def items_of(batch: int, processors: int) -> int:
    """The items of a program: as few as keep every processor at work, because fewer are through a step sooner."""
    return min(MOST_ITEMS, triton.next_power_of_2(triton.cdiv(batch, processors)))


def precision(device: torch.device) -> str:
    """How float32 is multiplied: as PyTorch was told by `torch.set_float32_matmul_precision`; in full by default."""
    exact = torch.get_float32_matmul_precision() == "highest" or device.type != "cuda" or torch.version.hip
    return "ieee" if exact else "tf32"


def sizes_of(hidden_size: int, heads: int, items: int) -> dict[str, int]:
    """The sizes of a program: what the layer says, then its tiles, in powers of two, and its warps."""
    n, HEADS = hidden_size // 2, triton.next_power_of_2(heads)
    # A tile of columns has 2048 numbers or fewer, all heads together; the products of one of weights, 16384 or fewer.
    columns = min(triton.next_power_of_2(n), max(16, 2048 // (items * HEADS)))
    width, depth = (64, 32) if items >= 16 else (min(128, 256 // items), 64)
    return {
        "n": n,
        "heads": heads,
        "ITEMS": items,
        "HEADS": HEADS,
        "COLUMNS": columns,
        "ROWS": width,
        "DEPTH": depth,
        "num_warps": 8,
        "num_stages": 1,  # loads stand where they are written: none is moved ahead of a barrier
        "enable_fp_fusion": True,
    }


def _seen(times, output, h_0, lengths, reverse):
    """The h that each step of a segment has seen, ``(times, B, heads N)``."""
    before = before_segment(times, output, h_0, lengths, reverse).unsqueeze(0)
    if not reverse:
        return torch.cat([before, output[times.start : times.stop - 1]])
    seen = torch.cat([output[times.start + 1 : times.stop], before])
    if lengths is None:
        return seen
    t = torch.arange(times.start, times.stop, device=output.device)[:, None]
    return torch.where((t == lengths - 1)[..., None], h_0, seen)


def _segment(x, weight_ih, keep):
    return keep if keep > 1 else max(16, SEGMENT_BYTES // (x.shape[1] * len(weight_ih) * x.element_size()))


def _linear(x, weight, bias):
    with torch.autocast(x.device.type, enabled=False):  # a backward pass may run inside autocast
        return linear(x, weight, bias)
