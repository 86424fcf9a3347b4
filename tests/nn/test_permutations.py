"""Permutations are constants that machinery for parameters and buffers can spoil: drawn again, or refused."""

import pytest
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn

from associative_lstm import AssociativeLSTM, AssociativeLSTMCell
from associative_lstm.functional import are_shifts, bind, bound
from associative_lstm.nn import LSTM, MultiplicativeUnitaryRNN, PermutationRNN, UnitaryRNN

INPUT = 3
NETWORKS = {
    "AssociativeLSTM": lambda **options: AssociativeLSTM(
        INPUT, 64, 2, bidirectional=True, num_copies=3, key_init="conjugate", **options
    ),
    "PermutationRNN": lambda **options: PermutationRNN(INPUT, 32, learn_initial_state=True, **options),
    "UnitaryRNN": lambda **options: UnitaryRNN(INPUT, 64, learn_initial_state=True, **options),
    "MultiplicativeUnitaryRNN": lambda **options: MultiplicativeUnitaryRNN(INPUT, 64, **options),
}
WITH_CELL = NETWORKS | {"AssociativeLSTMCell": lambda **options: AssociativeLSTMCell(INPUT, 64, **options)}
EVERY = WITH_CELL | {"LSTM": lambda **options: LSTM(INPUT, 4, 2, **options)}
each_backend = pytest.mark.parametrize("backend", ["auto", "reference"])


def averaged(net, times, **options):
    average = AveragedModel(net, **options)
    for _ in range(times):
        average.update_parameters(net)
    return average


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("empty", ["on the meta device", "in its context", "as it is"])
def test_reset_parameters_gives_what_construction_gives(name, empty):
    """Deferred initialisation: the shapes first, memory later, and then the numbers of the seed."""
    torch.manual_seed(1)
    expected = EVERY[name]()
    if empty == "in its context":
        with torch.device("meta"):
            net = EVERY[name]()
    else:
        net = EVERY[name](device="meta" if empty == "on the meta device" else None)
    net = net.to_empty(device="cpu")
    for buffer in net.buffers():
        buffer.fill_(77)  # what memory happens to hold
    torch.manual_seed(1)
    net.reset_parameters()
    for ours, theirs in [(net.parameters(), expected.parameters()), (net.buffers(), expected.buffers())]:
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("kind", [PermutationRNN, UnitaryRNN, MultiplicativeUnitaryRNN])
def test_a_seed_gives_the_permutation_first_and_then_the_weights(kind):
    torch.manual_seed(1)
    net = kind(INPUT, 8)
    torch.manual_seed(1)
    assert torch.equal(net.permutation, torch.randperm(len(net.permutation)))
    assert torch.equal(net.weight, torch.nn.init.xavier_uniform_(torch.empty(8, INPUT)))


@pytest.mark.parametrize("copies", [4, 7])
def test_shifts_in_layer_and_cell(copies):
    """Distinct offsets, drawn for each direction of each layer, saved with the model like any permutation."""
    torch.manual_seed(1)
    options = {"num_copies": copies, "permutation": "shift"}
    layer, cell = (
        AssociativeLSTM(INPUT, 64, 2, bidirectional=True, **options),
        AssociativeLSTMCell(INPUT, 64, **options),
    )
    drawn = [*layer.buffers(), cell.permutations]
    for permutations in drawn:
        assert are_shifts(permutations).all()
        assert len(permutations[:, 0].unique()) == copies
    assert len({tuple(permutations[:, 0].tolist()) for permutations in drawn}) == len(drawn)
    assert repr(cell).endswith("permutation='shift')")
    other = AssociativeLSTM(INPUT, 64, 2, bidirectional=True, num_copies=copies)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(4, 2, INPUT)
    assert torch.equal(other(x)[0], layer(x)[0])
    layer.reset_parameters()
    assert are_shifts(layer.permutations_l0).all()
    assert not torch.equal(layer.permutations_l0, other.permutations_l0)


@each_backend
def test_with_shifts_a_copy_holds_the_update_under_the_shifted_key(backend):
    torch.manual_seed(1)
    layer = AssociativeLSTM(
        INPUT, 16, num_copies=3, permutation="shift", backend=backend, dtype=torch.float64
    )
    x = torch.randn(1, 1, INPUT, dtype=torch.float64)
    _, (_, c) = layer(x)
    z = layer.weight_ih_l0 @ x[0, 0] + layer.bias_l0
    g_i, r_i, u = (
        z[layer.rows.input].sigmoid().repeat(2),
        bound(z[layer.rows.input_key]),
        bound(z[layer.rows.update]),
    )
    for permutation, copy in zip(layer.permutations_l0, c[0, 0], strict=True):
        offset = int(permutation[0])
        key = torch.cat([half.roll(-offset) for half in r_i.chunk(2)])
        torch.testing.assert_close(copy, bind(key, g_i * u))


@pytest.mark.parametrize("name", WITH_CELL)
@pytest.mark.parametrize("average", [get_ema_multi_avg_fn, get_ema_avg_fn])
def test_an_average_of_whole_numbers_is_refused(name, average):
    """In single precision 0.9 * 3 + 0.1 * 3 is less than 3, and 2 as a whole number, which is there already."""
    net = WITH_CELL[name]()
    options = {"multi_avg_fn" if average is get_ema_multi_avg_fn else "avg_fn": average(0.9)}
    model = averaged(net, 3, use_buffers=True, **options)
    x = torch.randn(2, INPUT) if name.endswith("Cell") else torch.randn(4, 2, INPUT)
    with pytest.raises((ValueError, IndexError), match="use_buffers=False"):
        model(x)


@each_backend
@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_no_permutation_is_refused_with_a_way_out(name, backend):
    net, x = NETWORKS[name](backend=backend), torch.randn(4, 2, INPUT)
    buffer = next(net.buffers())
    buffer.view(-1)[:2] = 1
    for _ in range(2):  # every time
        with pytest.raises((ValueError, IndexError), match=r"permutation.* use_buffers=False"):
            net(x)
    with torch.inference_mode(), pytest.raises((ValueError, IndexError), match="permutation"):
        net(x)


@each_backend
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("average", [{}, {"use_buffers": True}, {"multi_avg_fn": get_ema_multi_avg_fn(0.9)}])
def test_averages_that_work(name, backend, average):
    """Equal weights, and moving averages of parameters alone: the permutations are those of the model."""
    net, x = NETWORKS[name](backend=backend), torch.randn(4, 2, INPUT)
    model = averaged(net, 3, **average)
    torch.testing.assert_close(model(x)[0], net(x)[0])
