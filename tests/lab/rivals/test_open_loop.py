"""The Associative LSTM without feedback: the layer's own equations, linear in its memory, fewer parameters."""

import torch

from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.rivals import OpenAssociativeLSTM
from associative_lstm.nn import AssociativeLSTM


def pair():
    torch.manual_seed(0)
    network = OpenAssociativeLSTM(6, 16, num_copies=4).double()
    layer = AssociativeLSTM(6, 16, num_copies=4, recurrent_update=False).double()
    layer.load_state_dict(network.layer.state_dict() | {"weight_hh_l0": torch.zeros_like(layer.weight_hh_l0)})
    return network, layer


def test_it_is_the_layer_without_what_comes_from_h():
    network, layer = pair()
    x = torch.randn(9, 3, 6, dtype=torch.float64)
    output, (c,) = network(x)
    expected, (_, expected_c) = layer(x)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(c, expected_c)
    first, state = network(x[:4])
    torch.testing.assert_close(torch.cat([first, network(x[4:], state)[0]]), expected)


def test_its_memory_is_linear_in_the_memory_before():
    network, _ = pair()
    x, c = torch.randn(5, 2, 6, dtype=torch.float64), torch.randn(1, 2, 4, 16, dtype=torch.float64)
    without, once, twice = (network(x, (k * c,))[1][0] for k in (0, 1, 2))
    torch.testing.assert_close(twice - without, 2 * (once - without))
    assert not torch.allclose(once, without)


def test_no_weight_of_h_is_learned_and_all_others_are():
    network, layer = pair()
    names = {name.removeprefix("layer.") for name, _ in network.named_parameters()}
    assert names == {name for name, _ in layer.named_parameters()} - {"weight_hh_l0"}
    network(torch.randn(5, 2, 6, dtype=torch.float64))[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())


def test_a_start_is_chosen_by_name_as_for_the_layer():
    assert NETWORKS["open-associative-lstm"].starts() == NETWORKS["associative-lstm"].starts()
