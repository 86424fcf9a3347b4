"""Bad input to the layer and the cell: one exception that names the argument and what was expected."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from associative_lstm import AssociativeLSTM, AssociativeLSTMCell

each_kind = pytest.mark.parametrize("kind", [AssociativeLSTM, AssociativeLSTMCell])
each_backend = pytest.mark.parametrize("backend", ["reference", "fused"])


@each_kind
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"input_size": 0}, ValueError, "input_size: expected at least 1, got 0"),
        ({"input_size": 2.0}, TypeError, "input_size: expected an int, got float"),
        ({"hidden_size": 7}, ValueError, "hidden_size: expected an even number .* got 7"),
        ({"hidden_size": 0}, ValueError, "hidden_size: expected at least 1, got 0"),
        ({"hidden_size": -2}, ValueError, "hidden_size: expected at least 1, got -2"),
        ({"hidden_size": "8"}, TypeError, "hidden_size: expected an int, got str"),
        ({"num_copies": 0}, ValueError, "num_copies: expected at least 1, got 0"),
        ({"num_copies": True}, TypeError, "num_copies: expected an int, got bool"),
        ({"num_heads": 0}, ValueError, "num_heads: expected at least 1, got 0"),
        ({"num_heads": -1}, ValueError, "num_heads: expected at least 1, got -1"),
        ({"activation": "relu"}, ValueError, "activation: expected one of 'bound', 'tanh', got 'relu'"),
        ({"activation": None}, ValueError, "activation: expected one of 'bound', 'tanh', got None"),
        (
            {"key_init": "ones"},
            ValueError,
            "key_init: expected one of 'glorot', 'conjugate', 'matched', got 'ones'",
        ),
        (
            {"key_init": []},
            ValueError,
            r"key_init: expected one of 'glorot', 'conjugate', 'matched', got \[\]",
        ),
        ({"forget_bias": float("nan")}, ValueError, "forget_bias: expected a finite number, got nan"),
        (
            {"forget_bias": "one"},
            ValueError,
            "forget_bias: expected a number or 'mixed' or 'chrono', got 'one'",
        ),
        ({"forget_bias": [1.0]}, TypeError, "forget_bias: expected a number, got list"),
        ({"start": "slow"}, ValueError, "start: expected one of 'paper', 'fast', got 'slow'"),
        ({"start": None}, ValueError, "start: expected one of 'paper', 'fast', got None"),
        (
            {"update_init": "ones"},
            ValueError,
            "update_init: expected a number or 'glorot' or 'pass', got 'ones'",
        ),
        (
            {"update_init": "pass"},
            ValueError,
            "update_init: 'pass' expects .* num_heads \\* hidden_size=8, .* got 3",
        ),
        ({"update_init": 0}, ValueError, "update_init: expected a modulus above 0, got 0"),
        ({"update_init": True}, TypeError, "update_init: expected a number, got bool"),
        ({"permutation": "none"}, ValueError, "permutation: expected one of 'random', 'shift', got 'none'"),
        ({"rotation": -0.1}, ValueError, "rotation: expected a number between 0 and 1, got -0.1"),
        ({"rotation": "half"}, TypeError, "rotation: expected a number, got str"),
        ({"horizon": 0}, ValueError, "horizon: expected at least 1, got 0"),
        ({"horizon": 1.5}, TypeError, "horizon: expected an int, got float"),
        ({"bias": False, "forget_bias": "mixed"}, ValueError, "bias: .*forget_bias.* expected bias=True"),
        ({"bias": False, "forget_bias": 1.0}, ValueError, "bias: .*forget_bias.* expected bias=True"),
        ({"bias": False, "key_init": "conjugate"}, ValueError, "bias: .*key_init.* expected bias=True"),
        ({"dtype": torch.int64}, TypeError, "dtype: expected a floating-point type, got torch.int64"),
        ({"dtype": torch.complex64}, TypeError, "dtype: expected a floating-point type, got torch.complex64"),
    ],
)
def test_options_of_both(kind, options, error, words):
    with pytest.raises(error, match=words):
        kind(**{"input_size": 3, "hidden_size": 8} | options)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"num_layers": 0}, ValueError, "num_layers: expected at least 1, got 0"),
        ({"num_layers": 1.5}, TypeError, "num_layers: expected an int, got float"),
        ({"dropout": 1.5}, ValueError, "dropout: expected a number between 0 and 1, got 1.5"),
        ({"dropout": -0.1}, ValueError, "dropout: expected a number between 0 and 1, got -0.1"),
        ({"dropout": float("nan")}, ValueError, "dropout: expected a finite number, got nan"),
        ({"dropout": True}, TypeError, "dropout: expected a number, got bool"),
        (
            {"backend": "cuda"},
            ValueError,
            "backend: expected one of 'auto', 'reference', 'fused', 'triton', got 'cuda'",
        ),
        ({"keep_states_every": 0}, ValueError, "keep_states_every: expected at least 1, got 0"),
    ],
)
def test_options_of_the_layer(options, error, words):
    with pytest.raises(error, match=words):
        AssociativeLSTM(3, 8, **options)


@pytest.mark.parametrize("options", [{"dropout": 0.5}, {"residual": True}])
def test_what_acts_between_layers_says_so_if_there_is_one(options):
    with pytest.warns(
        UserWarning, match=f"{next(iter(options))}: acts between layers, and there is only one"
    ):
        AssociativeLSTM(3, 8, **options)


@each_backend
@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        ([[1.0]], TypeError, "x: expected a tensor or a PackedSequence, got list"),
        (None, TypeError, "x: expected a tensor or a PackedSequence, got NoneType"),
        (torch.zeros(3), ValueError, "x: expected 3 dimensions, or 2 for a single sequence"),
        (torch.zeros(4, 2, 3, 1), ValueError, "x: expected 3 dimensions, or 2 for a single sequence"),
        (torch.zeros(4, 2, 5), ValueError, "x: expected a last dimension of input_size=3, got 5"),
        (torch.zeros(4, 5), ValueError, "x: expected a last dimension of input_size=3, got 5"),
        (torch.zeros(0, 2, 3), ValueError, r"x: expected at least one time step, got shape \(0, 2, 3\)"),
        (torch.zeros(0, 3), ValueError, "x: expected at least one time step"),
        (torch.zeros(4, 2, 3, dtype=torch.int64), ValueError, "x: expected a floating-point .* torch.int64"),
        (torch.zeros(4, 2, 3, dtype=torch.complex64), ValueError, "x: expected a floating-point"),
        (
            torch.zeros(4, 2, 3, dtype=torch.float64),
            ValueError,
            "x: expected torch.float32.* got torch.float64",
        ),
        (torch.zeros(4, 2, 3, device="meta"), ValueError, "x: expected a tensor on cpu.* got one on meta"),
        (torch.zeros(4, 2, 3).to_sparse(), ValueError, "x: expected a dense tensor, got torch.sparse_coo"),
        (
            pack_padded_sequence(torch.zeros(4, 2, 5), torch.tensor([4, 2])),
            ValueError,
            "x: expected a last dimension of input_size=3, got 5",
        ),
        (
            pack_padded_sequence(torch.zeros(4, 2, 3).double(), torch.tensor([4, 2])),
            ValueError,
            "x: expected torch.float32",
        ),
    ],
)
def test_x(backend, x, error, words):
    with pytest.raises(error, match=words):
        AssociativeLSTM(3, 8, backend=backend)(x)


def test_batch_first_names_the_shape_that_was_given():
    layer = AssociativeLSTM(3, 8, batch_first=True)
    with pytest.raises(ValueError, match=r"at least one time step, got shape \(4, 0, 3\)"):
        layer(torch.zeros(4, 0, 3))


h, c = torch.zeros(2, 2, 8), torch.zeros(2, 2, 3, 8)  # of two layers, for a batch of two
STATES = [
    (h, TypeError, r"state: expected a tuple of two tensors \(h_0, c_0\), got Tensor"),
    ((h,), TypeError, r"state: expected a tuple of two tensors \(h_0, c_0\), got tuple of 1"),
    ((h, c, c), TypeError, r"state: expected a tuple of two tensors \(h_0, c_0\), got tuple of 3"),
    ("hc", TypeError, r"state: expected a tuple of two tensors \(h_0, c_0\), got str"),
    ((h, None), TypeError, "c_0: expected a tensor, got NoneType"),
    (([0.0], c), TypeError, "h_0: expected a tensor, got list"),
    ((h[:1], c), ValueError, r"h_0: expected shape \(2, 2, 8\), got \(1, 2, 8\)"),
    ((h[:, :1], c), ValueError, r"h_0: expected shape \(2, 2, 8\), got \(2, 1, 8\)"),
    ((h[..., :4], c), ValueError, r"h_0: expected shape \(2, 2, 8\), got \(2, 2, 4\)"),
    ((h[0], c), ValueError, r"h_0: expected shape \(2, 2, 8\), got \(2, 8\)"),
    ((h, c[:, :, 0]), ValueError, r"c_0: expected shape \(2, 2, 3, 8\), got \(2, 2, 8\)"),
    ((h, c[:, :, :2]), ValueError, r"c_0: expected shape \(2, 2, 3, 8\), got \(2, 2, 2, 8\)"),
    ((h, c.repeat(1, 2, 1, 1)), ValueError, r"c_0: expected shape \(2, 2, 3, 8\), got \(2, 4, 3, 8\)"),
    ((h.double(), c), ValueError, "h_0: expected torch.float32.* got torch.float64"),
    ((h, c.long()), ValueError, "c_0: expected torch.float32.* got torch.int64"),
    ((h, c.to("meta")), ValueError, "c_0: expected a tensor on cpu, .* got one on meta"),
    ((h.to_sparse(), c), ValueError, "h_0: expected a dense tensor, got torch.sparse_coo"),
]


@each_backend
@pytest.mark.parametrize(("state", "error", "words"), STATES)
@pytest.mark.parametrize("packed", [False, True])
def test_state(backend, state, error, words, packed):
    layer = AssociativeLSTM(3, 8, 2, num_copies=3, backend=backend)
    x = torch.zeros(4, 2, 3)
    fed = pack_padded_sequence(x, torch.tensor([2, 4]), enforce_sorted=False) if packed else x
    with pytest.raises(error, match=words):
        layer(fed, state)
    layer(fed, (h, c))


def test_state_of_a_single_sequence():
    layer = AssociativeLSTM(3, 8, 2, num_copies=3)
    x = torch.zeros(4, 3)
    with pytest.raises(ValueError, match=r"h_0: expected shape \(2, 8\), got \(2, 2, 8\)"):
        layer(x, (h, c))
    with pytest.raises(ValueError, match=r"c_0: expected shape \(2, 3, 8\), got \(2, 2, 3, 8\)"):
        layer(x, (h[:, 0], c))
    with pytest.raises(TypeError, match="state: expected a tuple of two tensors"):
        layer(x, h[:, 0])


@pytest.mark.parametrize(
    ("x", "state", "error", "words"),
    [
        ([1.0], None, TypeError, "x: expected a tensor, got list"),
        (torch.zeros(2, 2, 3), None, ValueError, r"x: expected \(B, input_size\) or \(input_size,\)"),
        (torch.zeros(2, 4), None, ValueError, "x: expected a last dimension of input_size=3, got 4"),
        (torch.zeros(2, 3).long(), None, ValueError, "x: expected a floating-point"),
        (torch.zeros(2, 3), torch.zeros(2, 2, 8), TypeError, "state: expected a tuple of two tensors"),
        (torch.zeros(2, 3), (h[0],), TypeError, "state: expected a tuple of two tensors"),
        (torch.zeros(2, 3), (h[0, :1], c[0]), ValueError, r"h: expected shape \(2, 8\), got \(1, 8\)"),
        (torch.zeros(2, 3), (h[0], c[0, 0]), ValueError, r"c: expected shape \(2, 3, 8\), got \(3, 8\)"),
        (torch.zeros(2, 3), (h[0].double(), c[0]), ValueError, "h: expected torch.float32"),
        (torch.zeros(3), (h[0], c[0]), ValueError, r"h: expected shape \(8,\), got \(2, 8\)"),
    ],
)
def test_cell(x, state, error, words):
    with pytest.raises(error, match=words):
        AssociativeLSTMCell(3, 8, num_copies=3)(x, state)


def test_the_fused_backend_says_why_it_cannot_serve():
    layer = AssociativeLSTM(3, 8, backend="fused", device="meta")
    with pytest.raises(RuntimeError, match=r"backend='fused': .* runs on the CPU, not on meta"):
        layer(torch.zeros(4, 2, 3, device="meta"))
