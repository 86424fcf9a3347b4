"""What an Associative LSTM carries from one sequence to the next."""

from typing import NamedTuple

import torch
from torch import Tensor


class AssociativeLSTMState(NamedTuple):
    """What a sequence leaves behind: the last output h and the memory traces c of every layer.

    >>> AssociativeLSTMState(h=torch.zeros(1, 2, 8), c=torch.zeros(1, 2, 4, 8)).c.shape
    torch.Size([1, 2, 4, 8])
    """

    h: Tensor
    c: Tensor


# So that a program of torch.export, whose result is such a state, can be saved.
torch.utils._pytree._register_namedtuple(
    AssociativeLSTMState, serialized_type_name="associative_lstm.nn.AssociativeLSTMState"
)
