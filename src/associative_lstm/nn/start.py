"""The numbers that the weights and biases of an Associative LSTM start from; times to keep for, of an LSTM too.

What ``start="paper"`` and ``"fast"`` stand for is ``STARTS`` in ``options.py``.
"""

import torch
from torch import Tensor, nn

from associative_lstm import functional as F
from associative_lstm.kernels.associative.rows import Rows
from associative_lstm.nn.options import Options


def context(num_copies: int, num_heads: int) -> float:
    """Times Glorot's weights, for what matched keys take from h: the more, the sooner keys tell histories apart.

    As much as the memory's noise, which falls with the square root of the copies and grows with the heads, allows for
    differences not to grow from step to step; and no more than twice: with three times, assignment is learned sooner
    yet, but some runs on XML stay on a plateau.
    """
    return min(2.0, 1.5 * num_copies**0.5 / num_heads)


@torch.no_grad()
def draw(options: Options, weight_ih: Tensor, weight_hh: Tensor, bias: Tensor | None, first: bool) -> None:
    """Fill the parameters of one direction of a layer: the ``first``, whose input is x, or one that reads another."""
    size, heads = options.hidden_size, options.num_heads
    rows = Rows.of(size, heads)
    for k, block in enumerate(rows):
        part = (block.stop - block.start) // (1 if k == 0 else heads)
        for start in range(block.start, block.stop, part):
            for weight in (weight_ih, weight_hh):
                if start < len(weight):
                    nn.init.xavier_uniform_(weight[start : start + part])
    if bias is not None:
        bias.zero_()
        _draw_forget_bias(options, bias, rows, first)
        if options.key_init != "glorot":
            key = F.random_key(size, heads, dtype=bias.dtype, device=bias.device)
            bias[rows.input_key] = key.flatten()
            bias[rows.output_key] = F.conjugate(key).flatten()
    if options.key_init == "matched" and first:
        _match_keys(weight_hh, rows, heads, context(options.num_copies, heads))
    _draw_update(options, weight_ih[rows.update], first)


def _match_keys(weight_hh: Tensor, rows: Rows, heads: int, context: float) -> None:
    """What the output key takes from h is the conjugate of what the input key does: ``context`` times as much."""
    written = weight_hh[rows.input_key].mul_(context)
    real, imaginary = written.unflatten(0, (heads, 2, -1)).unbind(1)
    weight_hh[rows.output_key] = torch.stack([real, -imaginary], 1).flatten(0, 2)


def _draw_update(options: Options, weight: Tensor, first: bool) -> None:
    rows, inputs = weight.shape
    if options.update_init == "pass" or (not first and options.update_init != "glorot"):
        directions = inputs // rows
        # Gates start half open: what is written and read again has a quarter of its size.
        weight.copy_(4 / directions * torch.eye(rows).repeat(1, directions))
    elif isinstance(options.update_init, int | float):
        codes = F.random_key(
            options.hidden_size, inputs, options.num_heads, dtype=weight.dtype, device=weight.device
        )
        weight.copy_(options.update_init * codes.flatten(1).T)


def _draw_forget_bias(options: Options, bias: Tensor, rows: Rows, first: bool) -> None:
    forget = bias[rows.forget]
    if isinstance(options.forget_bias, int | float):
        forget.fill_(options.forget_bias)
    elif options.forget_bias == "chrono":
        draw_log_times(forget, options.horizon)
        bias[rows.input] = -forget.repeat(options.num_heads)
    elif first:
        half = len(forget) // 2
        forget[:half] = 1.0
        draw_log_times(forget[half:], options.horizon)


def draw_log_times(bias: Tensor, horizon: int) -> None:
    """Biases of forget gates that keep for a time, from 1 to ``horizon`` steps with equal chance: its logarithm.

    >>> bias = torch.empty(5)
    >>> draw_log_times(bias, horizon=100)
    >>> bool((bias.exp() >= 1).all() and (bias.exp() < 101).all())
    True
    """
    bias.uniform_(1, horizon).log_()
