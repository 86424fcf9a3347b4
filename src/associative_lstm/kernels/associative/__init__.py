"""The Associative LSTM."""

from torch import Tensor

from associative_lstm.functional import check_permutations
from associative_lstm.kernels.associative import reference
from associative_lstm.kernels.associative.inputs import Inputs
from associative_lstm.kernels.backends import serving, widened

__all__ = ["Inputs", "sequence"]


def sequence(
    inputs: Inputs,
    *,
    num_heads: int,
    activation: str,
    reverse: bool = False,
    keep_states_every: int = 1,
    return_cells: bool = False,
    backend: str = "auto",
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """One layer in one direction over a whole sequence, by the backend that can serve; see `reference.sequence`."""
    path = serving(backend, inputs.x)
    if path == "reference":
        check_permutations("permutations", inputs.permutations)
        output, h_n, c_n, cells = reference.sequence(inputs, num_heads, activation, reverse)
        return output, h_n, c_n, cells if return_cells else None
    if path == "triton":
        from associative_lstm.kernels.associative.triton import sequence as compiled
    else:
        from associative_lstm.kernels.associative.fused import sequence as compiled

    options = num_heads, activation, reverse, keep_states_every, return_cells
    if inputs.x.dtype.itemsize > 2:
        return compiled(inputs, *options)
    *results, all_c = compiled(Inputs(*widened(*inputs)), *options)
    output, h_n, c_n = (result.to(inputs.x.dtype) for result in results)
    return output, h_n, c_n, None if all_c is None else all_c.to(inputs.x.dtype)
