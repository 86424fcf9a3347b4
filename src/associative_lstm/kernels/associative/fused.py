"""The whole sequence in one compiled routine each way, for the CPU, as a custom PyTorch operator.

Input projection and weight gradients are large matrix products outside the time loop. Where memory could grow with
the sequence, the loop goes through it in segments, so that what is not saved exists for one segment at a time.
"""

import functools

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from associative_lstm.kernels.associative import loops, routines
from associative_lstm.kernels.associative.checks import check_inputs
from associative_lstm.kernels.associative.inputs import Inputs
from associative_lstm.kernels.associative.routines import before_segment, copy, kept_cells, times_of
from associative_lstm.kernels.compiler.matmul import pack
from associative_lstm.kernels.compiler.runtime import announce_compilation
from associative_lstm.kernels.compiler.target import VECTOR_BYTES
from associative_lstm.kernels.compiler.threads import by_team
from associative_lstm.kernels.operators import CPU

# A segment has as many steps as fit pre-activations into this many bytes: enough rows for efficient matrix products,
# few enough to stay in the cache and to add little to a step's memory.
SEGMENT_BYTES = 2**20
NARROW = 32


def _sequence(*arguments):
    """See `routines`."""
    *tensors, smooth, reverse, keep = arguments
    check_inputs(Inputs(*tensors), keep)
    x, h, c, weight_ih, weight_hh, bias, permutations, lengths, turns = tensors
    x, h, c = x.contiguous(), copy(h), copy(c)
    steps, batch, _ = x.shape
    output = x.new_empty(steps, batch, h.shape[1])
    cells = x.new_empty(kept_cells(steps, keep), *c.shape)
    z = _linear(x, weight_ih, bias) if keep == 1 else x.new_empty(0, batch, weight_ih.shape[0])
    segment = steps if keep == 1 else _segment(x, weight_ih, keep)
    whole = _whole(x, (h, c), permutations, lengths, turns, smooth, reverse)
    product = _product(x, weight_hh.T)
    with announce_compilation("the fused Associative LSTM, forward,", x.dtype):
        for first in range(0, steps, segment):
            times = times_of(first, min(first + segment, steps), steps, reverse)
            if keep > 1:
                cells[first // keep] = c
            segment_z = z if keep == 1 else _linear(x[times], weight_ih, bias)
            kept = segment_z, output[times], cells if keep == 1 else cells[:0]
            _forward(whole, first, product, (h, c), kept)
    return output, h, c, z, cells


def _sequence_backward(*arguments):
    """See `routines`.

    d_cells counts if the cells of every step were kept. A result of keep > 1 is there for this routine only.
    Nothing is checked here: autograd gives back what `_sequence` has checked, and gradients of the same shapes.
    """
    x, h_0, c_0, weight_ih, weight_hh, bias, permutations, lengths, turns, *rest = arguments
    smooth, reverse, keep, *saved = rest
    output, z, cells, d_output, d_h_n, d_c_n, d_cells, needed = saved
    x, h_0, c_0, z, cells = (tensor.contiguous() for tensor in (x, h_0, c_0, z, cells))
    steps, batch, _ = x.shape
    whole = _whole(x, (h_0, c_0), permutations, lengths, turns, smooth, reverse)
    product = _product(x, weight_hh)
    segment = min(steps, _segment(x, weight_ih, keep))
    dz_segment, first_dz = x.new_empty(segment, *z.shape[1:]), x.new_zeros(z.shape[1:])
    dh = torch.zeros_like(h_0) if d_h_n is None else copy(d_h_n)
    dc = torch.zeros_like(c_0) if d_c_n is None else copy(d_c_n)
    no_cells = x.new_empty(0, *c_0.shape)
    gradients = _WeightGradients(x, output, h_0, weight_ih, weight_hh, reverse, needed)
    with announce_compilation("the fused Associative LSTM, backward,", x.dtype):
        for first in reversed(range(0, steps, segment)):
            last = min(first + segment, steps)
            times = times_of(first, last, steps, reverse)
            if keep > 1:  # compute the segment once more, from the state before it
                before = cells[first // keep]
                segment_z = _linear(x[times], weight_ih, bias)
                segment_cells = x.new_empty(last - first, *c_0.shape)
                kept = segment_z, x.new_empty(last - first, *h_0.shape), segment_cells
                state = copy(before_segment(times, output, h_0, lengths, reverse)), copy(before)
                _forward(whole, first, _product(x, weight_hh.T), state, kept)
            else:
                before = before_segment(times, cells, c_0, lengths, reverse)
                segment_z, segment_cells = z[times], cells[times]
            dz = dz_segment[: last - first]
            # What comes from above may be one number expanded: it is copied a segment at a time.
            above = x.new_zeros(len(dz), *h_0.shape) if d_output is None else d_output[times].contiguous()
            above_cells = no_cells if d_cells is None or keep > 1 else d_cells[times].contiguous()
            by_team(
                loops.backward,
                batch,
                product.w.numbers,
                whole,
                first,
                product,
                loops.Saved(*_arrays(segment_z, segment_cells, before)),
                loops.Above(*_arrays(above, above_cells)),
                loops.State(*_arrays(dh, dc)),
                loops.Gradients(*_arrays(dz, first_dz)),
            )
            gradients.add(times, dz)
    dx, d_ih, d_hh, d_bias = gradients.finish(first_dz)
    return [dx, dh, dc, d_ih, d_hh, d_bias]


class _WeightGradients:
    """The gradients of x and of the weights, from those of the pre-activations, a segment at a time, last ones first.

    What is not needed stays an empty tensor.
    """

    def __init__(self, x, output, h_0, weight_ih, weight_hh, reverse, needed):
        self.x, self.output, self.h_0, self.weight_ih, self.reverse = x, output, h_0, weight_ih, reverse
        self.rows_h = weight_hh.shape[0]
        self.need_x, _, _, self.need_ih, self.need_hh, self.need_bias = needed
        self.dx = torch.empty_like(x) if self.need_x else x.new_empty(0)
        # PyTorch's library takes four times as long for a result of few columns as for one of few rows.
        self.narrow = x.shape[-1] < NARROW
        of_ih = weight_ih.shape[::-1] if self.narrow else weight_ih.shape
        self.d_ih = x.new_empty(of_ih if self.need_ih else 0)
        self.d_hh = torch.empty_like(weight_hh) if self.need_hh else x.new_empty(0)
        self.d_bias = x.new_zeros(weight_ih.shape[0]) if self.need_bias else x.new_empty(0)
        self.so_far = 0  # the first segment overwrites what is not initialised

    def add(self, times, dz):
        flat_dz, flat_x = dz.flatten(0, 1), self.x[times].flatten(0, 1)
        if self.need_x:
            torch.mm(flat_dz, self.weight_ih, out=self.dx[times].flatten(0, 1))
        if self.need_ih:
            product = (flat_x.T, flat_dz) if self.narrow else (flat_dz.T, flat_x)
            self.d_ih.addmm_(*product, beta=self.so_far)
        if self.need_bias:
            self.d_bias += flat_dz.sum(0)
        if self.need_hh:  # a step has seen the output of the step before it; its very first step, h_0
            if self.reverse:
                seen = self.output[times.start + 1 : times.stop + 1]
                its_dz = dz[: len(seen)]
            else:
                seen = self.output[max(times.start - 1, 0) : times.stop - 1]
                its_dz = dz[len(dz) - len(seen) :]
            flat_dz = its_dz.flatten(0, 1)[:, : self.rows_h]
            self.d_hh.addmm_(flat_dz.T, seen.flatten(0, 1), beta=self.so_far)
        self.so_far = 1

    def finish(self, first_dz):
        if self.need_hh:
            self.d_hh.addmm_(first_dz[:, : self.rows_h].T, self.h_0)
        d_ih = self.d_ih.T.contiguous() if self.need_ih and self.narrow else self.d_ih
        return self.dx, d_ih, self.d_hh, self.d_bias


_sequence_op, _sequence_backward_op, _run = routines.register("sequence", _sequence, _sequence_backward, CPU)


def sequence(inputs: Inputs, *options) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """See `routines.sequence`."""
    return routines.sequence(_run, inputs, *options)


def _forward(whole, first, product, state, kept):
    """`loops.forward` on tensors."""
    by_team(
        loops.forward,
        len(product.y),
        product.w.numbers,
        whole,
        first,
        product,
        loops.State(*_arrays(*state)),
        loops.Kept(*_arrays(*kept)),
    )


def _segment(x, weight_ih, keep):
    return (
        keep if keep > 1 else max(16, SEGMENT_BYTES // (x.shape[1] * weight_ih.shape[0] * x.element_size()))
    )


def _linear(x, weight, bias):
    if torch.is_autocast_enabled("cpu"):  # a backward pass may run inside autocast
        with torch.autocast("cpu", enabled=False):
            return linear(x, weight, bias)
    return linear(x, weight, bias)


def _arrays(*tensors):
    return (tensor.numpy() for tensor in tensors)


def _whole(x, state, permutations, lengths, turns, smooth, reverse):
    ends = _all_at(*x.shape[:2]) if lengths is None else lengths.contiguous().numpy()
    (h, c), (_, n) = state, permutations.shape
    usual = h.shape[1] == c.shape[2] and n * x.element_size() % VECTOR_BYTES == 0
    permutations = permutations.contiguous().numpy()
    turns = None if turns is None else turns.contiguous().view(-1).numpy()
    return loops.Sequence(len(x), reverse, ends, permutations, turns, smooth, None if usual else True)


def _product(x, w):
    """The recurrent product with these weights."""
    packed = pack(w.detach().numpy())
    return loops.Product(packed, x.new_empty(x.shape[1], packed.filled).numpy())


@functools.lru_cache(maxsize=16)
def _all_at(steps, batch):
    return np.full(batch, steps, np.int64)
