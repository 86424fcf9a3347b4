"""What people use today, small enough for a CPU, to compare with: called ``output, state = network(x, state)``.

Each network is a file: first the recurrence, one step at a time as its paper has it, then the same in chunks of time,
which is what is trained, then the network. ``stack.py`` has the blocks that all but the GRU stand in; in
``open_loop.py`` is ours as these are: linear in its state.
"""

from associative_lstm.lab.rivals.attention import Attention
from associative_lstm.lab.rivals.deltanet import DeltaNet
from associative_lstm.lab.rivals.gated_deltanet import GatedDeltaNet
from associative_lstm.lab.rivals.gru import GRU
from associative_lstm.lab.rivals.mamba2 import Mamba2
from associative_lstm.lab.rivals.mlstm import MLSTM
from associative_lstm.lab.rivals.open_loop import OpenAssociativeLSTM

__all__ = ["GRU", "MLSTM", "Attention", "DeltaNet", "GatedDeltaNet", "Mamba2", "OpenAssociativeLSTM"]
