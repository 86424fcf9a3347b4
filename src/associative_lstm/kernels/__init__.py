"""The recurrences, a folder per network: an obvious PyTorch loop, a fused CPU routine, the choice between them."""

from associative_lstm.kernels.backends import BACKENDS, choose_backend, fused_unavailable

__all__ = ["BACKENDS", "choose_backend", "fused_unavailable"]
