"""The recurrences, a folder per network: an obvious PyTorch loop, compiled routines, the choice between them."""

from associative_lstm.kernels.backends import ALL_BACKENDS, BACKENDS, choose_backend, fused_unavailable

__all__ = ["ALL_BACKENDS", "BACKENDS", "choose_backend", "fused_unavailable"]
