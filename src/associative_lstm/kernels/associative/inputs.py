"""What a layer computes from, in one direction."""

from typing import NamedTuple

from torch import Tensor


class Inputs(NamedTuple):
    """The tensors of one layer in one direction; B items, N = ``hidden_size``, rows as in `rows.Rows`.

    Item b is read for its ``lengths[b]`` first steps, all T if there are no lengths. The fused kernel wants the
    longest items first.
    """

    x: Tensor  # (T, B, input)
    h_0: Tensor  # (B, heads * N)
    c_0: Tensor  # (B, copies, N)
    weight_ih: Tensor  # (rows, input)
    weight_hh: Tensor  # (rows, or without those of the update, heads * N)
    bias: Tensor | None  # (rows,)
    permutations: Tensor  # (copies, N/2)
    lengths: Tensor | None = None  # (B,)
    turns: Tensor | None = (
        None  # (copies, N): the memory is multiplied by them at each step, see `reference.turns_of`
    )
