"""Associative Long Short-Term Memory (Danihelka, Wayne, Uria, Kalchbrenner, Graves, 2016)."""

from associative_lstm import functional
from associative_lstm.memory import HolographicMemory, expected_error
from associative_lstm.nn import AssociativeLSTM, AssociativeLSTMCell

__all__ = ["AssociativeLSTM", "AssociativeLSTMCell", "HolographicMemory", "expected_error", "functional"]
