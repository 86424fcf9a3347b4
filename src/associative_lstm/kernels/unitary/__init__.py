"""The unitary networks."""

from torch import Tensor

from associative_lstm.functional import check_permutations
from associative_lstm.kernels.backends import serves_fused, widened
from associative_lstm.kernels.unitary import reference


def sequence(
    u: Tensor,
    h_0: Tensor,
    angles: Tensor,
    reflections: Tensor,
    permutation: Tensor,
    bias: Tensor,
    backend: str = "auto",
) -> Tensor:
    """All h_t, by the backend that can serve; see `reference.sequence`."""
    if not serves_fused(backend, u, kernel="unitary.fused"):
        check_permutations("permutation", permutation)
        return reference.sequence(u, h_0, angles, reflections, permutation, bias)
    from associative_lstm.kernels.unitary import fused

    return fused.sequence(*widened(u, h_0, angles, reflections, permutation, bias)).to(u.dtype)
