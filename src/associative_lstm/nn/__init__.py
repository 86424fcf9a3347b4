"""Recurrent networks: all are called ``output, state = net(x)`` or ``net(x, state)``."""

from associative_lstm.nn.associative_base import AssociativeLSTMState
from associative_lstm.nn.associative_lstm import AssociativeLSTM
from associative_lstm.nn.associative_lstm_cell import AssociativeLSTMCell
from associative_lstm.nn.lstm import LSTM
from associative_lstm.nn.neural_turing_machine import NeuralTuringMachine, NTMState
from associative_lstm.nn.permutation_rnn import PermutationRNN
from associative_lstm.nn.unitary_rnn import MultiplicativeUnitaryRNN, UnitaryRNN

__all__ = [
    "LSTM",
    "AssociativeLSTM",
    "AssociativeLSTMCell",
    "AssociativeLSTMState",
    "MultiplicativeUnitaryRNN",
    "NTMState",
    "NeuralTuringMachine",
    "PermutationRNN",
    "UnitaryRNN",
]
