"""The Neural Turing Machine."""

from torch import Tensor

from associative_lstm.kernels.backends import serves_fused, widened
from associative_lstm.kernels.ntm import reference
from associative_lstm.kernels.ntm.reference import NTMState

__all__ = ["NTMState", "sequence"]


def sequence(
    z_x: Tensor,
    state: NTMState,
    weight_hh: Tensor,
    weight_heads: Tensor,
    bias_heads: Tensor,
    backend: str = "auto",
) -> tuple[Tensor, NTMState]:
    """All outputs and the state after the last step, by the backend that can serve; see `reference.sequence`."""
    if not serves_fused(backend, z_x, kernel="ntm.fused"):
        return reference.sequence(z_x, state, weight_hh, weight_heads, bias_heads)
    from associative_lstm.kernels.ntm import fused

    inputs = widened(z_x, weight_hh, weight_heads, bias_heads)
    output, after = fused.sequence(inputs[0], NTMState(*widened(*state)), *inputs[1:])
    return output.to(z_x.dtype), NTMState(*(part.to(z_x.dtype) for part in after))
