"""The rivals as networks: what they compute, what they see, what they carry, where they start, what they refuse."""

import math

import pytest
import torch
from torch.nn import functional as F

from associative_lstm.lab import rivals
from associative_lstm.lab.networks import NETWORKS, state_size
from associative_lstm.lab.rivals import attention, deltanet, mamba2, mlstm
from associative_lstm.lab.rivals.stack import ShortConvolution, Stack
from associative_lstm.lab.run.config import complete, task_of
from associative_lstm.lab.run.model import build_model, count_state, flatten_state

SMALL = {"num_heads": 2, "head_size": 4}
BLOCKS = {name: getattr(rivals, name) for name in rivals.__all__ if issubclass(getattr(rivals, name), Stack)}
each_network = pytest.mark.parametrize("name", BLOCKS)


def make(name, layers=2, **options):
    torch.manual_seed(0)
    network = BLOCKS[name](5, 6, layers, **SMALL | options).double()
    with torch.no_grad():
        for parameter in network.parameters():  # far from where gates and maps start
            parameter.add_(0.5 * torch.randn_like(parameter))
    return network


@pytest.mark.parametrize(
    ("name", "module"),
    [("MLSTM", mlstm), ("Mamba2", mamba2), ("DeltaNet", deltanet), ("GatedDeltaNet", deltanet)],
)
@pytest.mark.parametrize("options", [{}, {"convolution": 0, "mlp": 2}])
def test_a_network_is_the_same_step_by_step(monkeypatch, name, module, options):
    network, x = make(name, **options), torch.randn(70, 2, 5).double()
    fast, last = network(x)
    gradients = torch.autograd.grad(fast.square().sum(), list(network.parameters()))
    monkeypatch.setattr(module, "chunks", module.steps)
    slow, end = network(x)
    torch.testing.assert_close(slow, fast)
    torch.testing.assert_close(end, last)
    torch.testing.assert_close(
        torch.autograd.grad(slow.square().sum(), list(network.parameters())), gradients
    )


@each_network
@pytest.mark.parametrize("convolution", [0, 1, 4])
def test_a_step_sees_what_was_and_nothing_that_comes(name, convolution):
    network, x = make(name, convolution=convolution), torch.randn(6, 2, 5).double()
    other = x.clone()
    other[3, 0] += 1
    output, changed = network(x)[0], network(other)[0]
    differs = (output != changed).any(-1)
    assert differs[3:, 0].all()
    assert not differs[:3].any()
    assert not differs[:, 1].any()


@each_network
def test_one_step_at_a_time_is_the_whole(name):
    network, x = make(name), torch.randn(6, 2, 5).double()
    whole, last = network(x)
    state, outputs = None, []
    for step in x.split(1):
        output, state = network(step, state)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs), whole)
    torch.testing.assert_close(state, last)


def test_attention_is_softmax_over_turned_keys():
    network, x = make("Attention", layers=1), torch.randn(6, 1, 5).double()
    mixer = network.blocks[0].mixer
    h = network.embedding(x)
    q, k, v = mixer.project(network.blocks[0].norm(h))[:, 0].view(6, 3, 2, 4).unbind(1)
    expected = torch.zeros(6, 2, 4).double()
    rates = torch.tensor([1.0, 0.01]).double()
    for t in range(6):
        for head in range(2):
            scores = []
            for j in range(t + 1):  # as complex numbers, keys are turned by their distance
                pair = torch.complex(*q[t, head].view(2, 2)) * torch.complex(*k[j, head].view(2, 2)).conj()
                turn = torch.polar(torch.ones(2).double(), rates * (t - j))
                scores.append((pair * turn).real.sum() / 2)
            expected[t, head] = torch.stack(scores).softmax(0) @ v[: t + 1, head]
    torch.testing.assert_close(network(x)[0][:, 0], network.norm(h[:, 0] + mixer.out(expected.flatten(1))))


@pytest.mark.parametrize("cut", [0, 1, 5])
def test_attention_looks_back_as_far_as_its_span(cut):
    network, x = make("Attention", layers=1, span=3), torch.randn(10, 1, 5).double()
    state = network(x[:cut])[1] if cut else None
    output, (keys, _) = network(x[cut:], state)
    assert keys.shape[2] == 3
    for t in range(cut, 10):  # alone with what it can see, a step has the same output
        torch.testing.assert_close(network(x[max(t - 3, 0) : t + 1])[0][-1], output[t - cut])


def test_the_gru_is_pytorchs():
    torch.manual_seed(0)
    ours = rivals.GRU(5, 6, 2)
    x = torch.randn(7, 3, 5)
    output, h = ours(x)
    expected, last = ours.gru(x)
    assert torch.equal(output, expected)
    assert torch.equal(h, last)
    learned = rivals.GRU(5, 6, learn_initial_state=True)
    assert torch.equal(learned.h_0, torch.zeros(1, 6))
    learned(x)[0].sum().backward()
    assert learned.h_0.grad.any()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_short_convolution_is_pytorchs(size):
    torch.manual_seed(0)
    convolution = ShortConvolution(6, size, bias=True).double()
    x = torch.randn(9, 2, 6).double()
    before = [torch.zeros(2, *shape).double() for shape in convolution.state_shapes().values()]
    weight = convolution.weight.T.unsqueeze(1)
    expected = F.conv1d(F.pad(x.permute(1, 2, 0), (size - 1, 0)), weight, convolution.bias, groups=6)
    output, last = convolution(x, before)
    torch.testing.assert_close(output, F.silu(expected).permute(2, 0, 1))
    assert [part.shape for part in last] == [part.shape for part in before]


SIZES = {
    "associative-lstm": ({"copies": 4, "heads": 2, "hidden_size": 8, "layers": 3}, 3 * (2 * 8 + 4 * 8)),
    "lstm": ({"hidden_size": 8, "layers": 3}, 3 * 2 * 8),
    "permutation-rnn": ({"hidden_size": 8}, 8),
    "unitary-rnn": ({"hidden_size": 8}, 8),
    "multiplicative-unitary-rnn": ({"hidden_size": 8}, 8),
    "ntm": ({"hidden_size": 8, "heads": 2}, None),  # as large as its memory, whose sizes are the paper's
    "gru": ({"hidden_size": 8, "layers": 3}, 3 * 8),
    "attention": ({"heads": 3, "head_size": 4, "layers": 2}, 2 * 2 * 3 * 4),  # a step's keys and values
    "mlstm": ({"hidden_size": 8, "heads": 3, "head_size": 4, "layers": 2}, 2 * (3 * (16 + 4 + 1) + 3 * 8)),
    "mamba2": ({"heads": 3, "head_size": 4, "layers": 2}, 2 * (3 * 16 + 3 * (3 * 4 + 2 * 4))),
    "open-associative-lstm": ({"hidden_size": 6, "copies": 4}, 4 * 6),
    "deltanet": ({"heads": 3, "head_size": 4, "layers": 2}, 2 * (3 * 16 + 3 * 3 * 3 * 4)),
    "gated-deltanet": ({"heads": 3, "head_size": 4, "layers": 2, "convolution": 0}, 2 * 3 * 16),
}


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_the_size_of_the_state_is_that_of_the_state_returned(name):
    settings, size = SIZES[name]
    config = complete({"task": "assignment", "model": name} | settings)
    model = build_model(config, task_of(config))
    for steps in (1, 5):
        _, state = model(torch.zeros(steps, 1, dtype=torch.int64))
        numbers = sum(tensor.numel() for tensor in flatten_state(state))
        assert count_state(model, steps) == sum(state_size(layer, steps) for layer in model.layers) == numbers
        assert size is None or numbers == size * (steps if name == "attention" else 1)


def test_gates_start_where_their_authors_have_them():
    torch.manual_seed(0)
    mixer = rivals.MLSTM(5, 64, num_heads=4).blocks[0].mixer
    assert mixer.gates.bias[4:].tolist() == pytest.approx([3, 4, 5, 6])
    assert not mixer.gates.weight.any()
    assert mixer.gates.bias[:4].abs().max() < 0.5
    for made, lowest in (
        (rivals.Mamba2(5, 64, num_heads=64), 1),
        (rivals.GatedDeltaNet(5, 64, num_heads=64), 0),
    ):
        mixer = made.blocks[0].mixer
        times, rates = F.softplus(mixer.time_step), mixer.log_rate.exp()
        assert 0.00099 < times.min() < 0.002
        assert 0.05 < times.max() < 0.101
        assert lowest <= rates.min() < lowest + 2
        assert 14 < rates.max() <= 16


def test_maps_start_as_their_authors_have_them():
    torch.manual_seed(0)
    mixer = rivals.MLSTM(5, 64, head_size=32).blocks[0].mixer
    for made in (mixer.project_qk, mixer.project_vz):
        assert made.weight.std().item() == pytest.approx(math.sqrt(2 / (5 * 64)), rel=0.1)
    assert mixer.out.weight.std().item() == pytest.approx(2 / math.sqrt(64), rel=0.1)
    mixer = rivals.Mamba2(5, 64, head_size=32).blocks[0].mixer
    for made, inputs in ((mixer.project, 64), (mixer.out, 128)):  # uniform, as torch.nn.Linear's
        assert made.weight.abs().max().item() == pytest.approx(1 / math.sqrt(inputs), rel=0.01)
        assert made.weight.std().item() == pytest.approx(1 / math.sqrt(3 * inputs), rel=0.1)


def test_a_single_head_starts_with_a_long_memory():
    """At the slow end of what its authors draw for many: one draw alone may keep nothing."""
    for seed in range(5):
        torch.manual_seed(seed)
        assert rivals.MLSTM(5, 64, num_heads=1).blocks[0].mixer.gates.bias.tolist()[1] == 6
        mixer = rivals.GatedDeltaNet(5, 64, num_heads=1).blocks[0].mixer
        assert F.softplus(mixer.time_step).item() == pytest.approx(0.001)
        assert (F.softplus(mixer.time_step) * mixer.log_rate.exp()).item() < 1 / 60


def test_maps_that_add_to_the_stream_start_smaller_the_more_they_are():
    torch.manual_seed(0)
    network = rivals.DeltaNet(50, 64, 8, mlp=2)
    assert network.embedding.weight.std().item() == pytest.approx(0.02, rel=0.1)
    for block in network.blocks:
        for last in block.last():
            assert last.weight.std().item() == pytest.approx(0.02 / math.sqrt(16), rel=0.1)


@each_network
@pytest.mark.parametrize("option", ["num_layers", "num_heads", "head_size"])
def test_a_bad_size_is_one_sentence(name, option):
    with pytest.raises(ValueError, match=f"^{option}: expected at least 1, got 0$"):
        BLOCKS[name](5, 6, **SMALL | {option: 0})
    with pytest.raises(TypeError, match=f"^{option}: expected an int, got float$"):
        BLOCKS[name](5, 6, **SMALL | {option: 1.5})


def test_other_bad_arguments_are_one_sentence():
    with pytest.raises(
        ValueError, match=r"^head_size: expected an even number, whose pairs are turned, got 3$"
    ):
        rivals.Attention(5, 6, head_size=3)
    with pytest.raises(ValueError, match=r"^mlp: expected at least 0, got -1$"):
        rivals.DeltaNet(5, 6, mlp=-1)
    with pytest.raises(ValueError, match=r"^convolution: expected at least 0, got -1$"):
        rivals.DeltaNet(5, 6, convolution=-1)
    network = rivals.Attention(5, 6, **SMALL)
    _, (keys, values) = network(torch.randn(4, 2, 5))
    with pytest.raises(ValueError, match="as many steps in every block"):
        network(torch.randn(4, 2, 5), (keys, values[:, :, 1:]))
    with pytest.raises(ValueError, match="expected the parts keys_0, values_0, got 1 parts"):
        network(torch.randn(4, 2, 5), (keys,))
    with pytest.raises(ValueError, match=r"keys_0: expected shape \(3, 2, 4, 4\), got \(2, 2, 4, 4\)"):
        network(torch.randn(4, 3, 5), (keys, values))


def test_a_sign_can_be_turned_with_negative_eigenvalues():
    mixer = make("DeltaNet", layers=1, negative_eigenvalues=True).blocks[0].mixer
    assert (mixer.largest_beta, make("DeltaNet", layers=1).blocks[0].mixer.largest_beta) == (2.0, 1.0)
    k = torch.tensor([1.0, 0.0]).view(1, 1, 1, 2)
    S = torch.eye(2).view(1, 1, 2, 2)
    turned = deltanet.chunks(k, k, 0 * k, torch.full((1, 1, 1), 2.0), torch.zeros(1, 1, 1), S)[1]
    assert torch.equal(turned, torch.diag(torch.tensor([-1.0, 1.0])).view(1, 1, 2, 2))


def test_rotation_starts_anywhere():
    x = torch.randn(5, 4).double()
    torch.testing.assert_close(attention.rotate(x, 0)[2:], attention.rotate(x[2:], 2))


def first_step(name):
    """A block's mixer without convolution, a normalised first step, and what comes out of it."""
    mixer = make(name, layers=1, convolution=0).blocks[0].mixer
    x = torch.randn(1, 1, 6).double()
    output, _ = mixer(x, [torch.zeros(1, *shape).double() for shape in mixer.state_shapes().values()])
    return mixer, x[0, 0], output[0, 0]


def test_the_first_step_of_mamba2_is_written_out():
    mixer, u, output = first_step("Mamba2")
    z, x, b, c, time = (mixer.project.weight @ u).split([8, 8, 4, 4, 2])
    x, b, c = F.silu(x).view(2, 4), F.silu(b), F.silu(c)
    time = F.softplus(time + mixer.time_step)
    y = ((time * (b @ c) + mixer.skip)[:, None] * x).flatten() * F.silu(z)
    y = y / y.square().mean().sqrt() * mixer.norm.weight
    torch.testing.assert_close(output, mixer.out.weight @ y, rtol=1e-3, atol=1e-5)


def test_the_first_step_of_gated_deltanet_is_written_out():
    mixer, x, output = first_step("GatedDeltaNet")
    q, k, v = F.silu(mixer.project.weight @ x).view(3, 2, 4)
    alike = torch.cosine_similarity(q, k, dim=-1)
    o = ((mixer.beta.weight @ x).sigmoid() * alike)[:, None] * v
    o = o / o.square().mean(-1, keepdim=True).sqrt() * mixer.norm.weight
    y = o.flatten() * F.silu(mixer.gate.weight @ x)
    torch.testing.assert_close(output, mixer.out.weight @ y, rtol=1e-3, atol=1e-5)


def test_the_first_step_of_mlstm_is_written_out():
    mixer, x, output = first_step("MLSTM")
    q, k = (mixer.project_qk.weight @ x).view(2, 2, 4)
    v, z = (mixer.project_vz.weight @ x).split(8)
    i, _ = mixer.gates(torch.cat([q.flatten(), k.flatten(), v])).view(2, 2)
    read = i.exp() * (q * k).sum(-1) / 2
    h = (read / read.abs().clamp(min=1))[:, None] * v.view(2, 4)
    h = (h - h.mean(-1, keepdim=True)) / h.std(-1, correction=0, keepdim=True)
    y = F.silu(z) * h.flatten() * mixer.norm
    torch.testing.assert_close(output, mixer.out.weight @ y, rtol=1e-3, atol=1e-5)
