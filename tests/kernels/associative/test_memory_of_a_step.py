"""What a training step holds in memory, against the pre-activations and traces that it has to save."""

import pytest
import torch

from associative_lstm import AssociativeLSTM
from associative_lstm.lab.bench.memory import saved_bytes, step_memory

T, B = 1600, 8  # long enough for the sequence, not the weights, to fill the memory


@pytest.mark.parametrize(
    "options",
    [
        {"hidden_size": 128},
        {"hidden_size": 128, "num_copies": 8},
        {"hidden_size": 128, "num_heads": 3, "num_copies": 4},
        {"hidden_size": 64, "num_copies": 4, "num_layers": 2, "bidirectional": True},
    ],
)
def test_at_most_half_as_much_again_as_must_be_saved(options):
    torch.manual_seed(0)
    memory = step_memory(AssociativeLSTM(10, **options), torch.randn(T, B, 10))
    assert 1 < memory.ratio <= 1.5


def test_keeping_fewer_states_takes_less_memory():
    torch.manual_seed(0)
    x = torch.randn(T, B, 10)
    whole, thinned = (
        step_memory(AssociativeLSTM(10, 64, num_copies=8, keep_states_every=k), x).peak for k in (1, 20)
    )
    assert thinned < whole / 3


def test_memory_grows_no_faster_than_the_length():
    peaks = [
        step_memory(AssociativeLSTM(10, 64, num_copies=4), torch.randn(400 * k, B, 10)).peak for k in (1, 2)
    ]
    assert 1.5 < peaks[1] / peaks[0] <= 2.0


def test_bytes_that_must_be_saved():
    x = torch.zeros(100, 2, 10, dtype=torch.float64)
    layer = AssociativeLSTM(10, 128, 2, bidirectional=True, num_copies=4, dtype=torch.float64)
    output, _ = layer(x)
    kept = 0
    for node in (output.grad_fn, *(edge for edge, _ in output.grad_fn.next_functions)):
        if "Eager" in type(node).__name__:
            *_, z, cells = node.saved_tensors
            kept += z.nbytes + cells.nbytes
    assert 2 * kept == saved_bytes(layer, x)  # two layers, of which the upper is next to the output
