"""A memory that turns by constant angles: which units, by how much, and what a read makes of it."""

import math

import pytest
import torch
from scipy import stats

from associative_lstm import AssociativeLSTM, AssociativeLSTMCell
from associative_lstm import functional as F

each_kind = pytest.mark.parametrize("kind", [AssociativeLSTM, AssociativeLSTMCell])


def seeded(kind, *sizes, **options):
    torch.manual_seed(0)
    return kind(*sizes, **options)


@each_kind
def test_without_rotation_there_are_no_angles(kind):
    assert not any("angles" in name for name in kind(3, 8).state_dict())


@each_kind
@pytest.mark.parametrize(("rotation", "turning"), [(0.001, 1), (0.125, 50), (1.0, 400)])
def test_a_fraction_of_the_units_turns_by_angles_all_round_the_circle(kind, rotation, turning):
    module, still = (seeded(kind, 3, 800, rotation=share) for share in (rotation, 0.0))
    (angles,) = (value for name, value in module.state_dict().items() if "angles" in name)
    assert angles.shape == (400,)
    assert angles[:turning].ne(0).all()
    assert angles[turning:].eq(0).all()
    if turning > 1:
        circle = stats.uniform(-math.pi, 2 * math.pi).cdf
        assert stats.kstest(angles[:turning].numpy(), circle).pvalue > 0.01
    for name, value in still.state_dict().items():  # all else is what the seed gives without it
        assert torch.equal(module.state_dict()[name], value)
    assert repr(module).endswith(f"rotation={rotation})")


def test_angles_are_saved_kept_out_of_training_and_drawn_again():
    layer, other = (AssociativeLSTM(3, 8, 2, bidirectional=True, rotation=0.5) for _ in range(2))
    x = torch.randn(4, 2, 3)
    assert not torch.equal(layer(x)[0], other(x)[0])
    other.load_state_dict(layer.state_dict())
    assert torch.equal(layer(x)[0], other(x)[0])
    assert not any("angles" in name for name, _ in layer.named_parameters())
    other.reset_parameters()
    for suffix in ("l0", "l0_reverse", "l1", "l1_reverse"):
        assert not torch.equal(layer.get_buffer(f"angles_{suffix}"), other.get_buffer(f"angles_{suffix}"))
    assert layer.double().angles_l0.dtype == torch.float64


@pytest.mark.parametrize("num_copies", [1, 5])
def test_a_read_meets_a_write_of_k_steps_ago_under_k_turns(num_copies):
    """From conjugate keys, without weights but the update's: one output key undoes the turns of all copies alike."""
    options = {"num_copies": num_copies, "rotation": 1.0, "dtype": torch.float64}
    layer = seeded(AssociativeLSTM, 3, 8, update_init=0.5, **options)
    with torch.no_grad():
        layer.weight_hh_l0.zero_()
        layer.weight_ih_l0[: layer.rows.update.start] = 0
        layer.bias_l0[layer.rows.forget] = 30.0  # nothing is forgotten
        layer.angles_l0.fill_(layer.angles_l0[0])  # or each copy would turn a place by another angle
    x = torch.zeros(6, 1, 3, dtype=torch.float64)
    x[0, 0, 1] = 1  # one write, and then nothing
    output, _ = layer(x)
    u = layer.weight_ih_l0[layer.rows.update, 1]
    for k in range(6):
        angle = k * layer.angles_l0
        expected = 0.25 * F.bind(torch.cat([angle.cos(), angle.sin()]), u)
        torch.testing.assert_close(output[k, 0], expected)


def test_an_output_key_can_undo_the_turns_of_all_copies_at_once():
    """Angles are permuted like keys: read with the conjugate key turned back, a write k steps old is as written."""
    layer = seeded(AssociativeLSTM, 3, 8, update_init=0.5, num_copies=5, rotation=1.0, dtype=torch.float64)
    k, rows = 4, layer.rows
    with torch.no_grad():
        layer.weight_hh_l0.zero_()
        layer.weight_ih_l0[: rows.update.start] = 0
        layer.bias_l0[rows.forget] = 30.0
        back = -k * layer.angles_l0
        key = layer.bias_l0[rows.output_key].clone()
        layer.bias_l0[rows.output_key] = F.bind(torch.cat([back.cos(), back.sin()]), key)
    x = torch.zeros(k + 1, 1, 3, dtype=torch.float64)
    x[0, 0, 1] = 1
    output, _ = layer(x)
    torch.testing.assert_close(output[k, 0], 0.25 * layer.weight_ih_l0[rows.update, 1])
