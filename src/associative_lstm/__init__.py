"""Associative Long Short-Term Memory (Danihelka, Wayne, Uria, Kalchbrenner, Graves, 2016)."""

from associative_lstm import functional
from associative_lstm.nn import AssociativeLSTM, AssociativeLSTMCell

__all__ = ["AssociativeLSTM", "AssociativeLSTMCell", "functional"]
