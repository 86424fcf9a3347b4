"""The Associative LSTM."""

from torch import Tensor

from associative_lstm.functional import check_permutations
from associative_lstm.kernels.associative import reference
from associative_lstm.kernels.backends import serves_fused


def sequence(
    x: Tensor,
    h_0: Tensor,
    c_0: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None,
    permutations: Tensor,
    lengths: Tensor | None = None,
    *,
    num_heads: int,
    activation: str,
    reverse: bool = False,
    keep_states_every: int = 1,
    return_cells: bool = False,
    backend: str = "auto",
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """One layer in one direction over a whole sequence, by the backend that can serve; see `reference.sequence`."""
    if not serves_fused(backend, x):
        check_permutations("permutations", permutations)
        output, h_n, c_n, cells = reference.sequence(
            x, h_0, c_0, weight_ih, weight_hh, bias, permutations, lengths, num_heads, activation, reverse
        )
        return output, h_n, c_n, cells if return_cells else None
    from associative_lstm.kernels.associative import fused

    return fused.sequence(
        x,
        h_0,
        c_0,
        weight_ih,
        weight_hh,
        bias,
        permutations,
        lengths,
        num_heads,
        activation,
        reverse,
        keep_states_every,
        return_cells,
    )
