"""The rivals beside well-kept packages (`pip install '.[rivals]'`), on a CPU: the same weights, the same numbers."""

import importlib.util
import os
import warnings
from importlib import metadata
from pathlib import Path

import pytest
import torch

from associative_lstm.lab import rivals
from associative_lstm.lab.rivals import deltanet, mlstm

T, B, HEADS, SIZE = 11, 2, 3, 4


absent = pytest.fail if "RIVALS" in os.environ else pytest.skip
"""Where the packages are asked for, as by `make test-rivals`, a test without its package fails."""


def package(name):
    """The module, or a skip that says why: not installed, or not for a CPU."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError as error:
        absent(f"{name} cannot be imported ({error}): see the extra `rivals`")


def fla(path):
    """A file of fla-core, whose package as a whole wants Triton; its plain functions do not."""
    package("einops")  # fla-core's functions want it
    try:
        found = next(file for file in metadata.files("fla-core") or [] if str(file) == path)
    except (metadata.PackageNotFoundError, StopIteration):
        absent(f"fla-core with {path} is not installed: see the extra `rivals`")
    spec = importlib.util.spec_from_file_location(Path(path).stem, found.locate())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def sequences(dtype):
    q, k, v = (draw(B, HEADS, T, SIZE, dtype=dtype) for _ in range(3))
    return q, torch.nn.functional.normalize(k, dim=-1), v


def test_mlstm_beside_mlstm_kernels():
    theirs = package("mlstm_kernels.torch.recurrent.native_sequence").mlstm_recurrent_sequence__native_fw
    torch.manual_seed(0)
    q, k, v = sequences(torch.float64)
    i, f = 3 * draw(B, HEADS, T), 3 * draw(B, HEADS, T)
    C, n, m = draw(B, HEADS, SIZE, SIZE), draw(B, HEADS, SIZE), draw(B, HEADS)
    named = {"c_initial": C, "n_initial": n, "m_initial": m.unsqueeze(-1)}
    how = {"return_last_states": True, "eps": 0.0, "dtype_state": torch.float64}
    expected, last = theirs(q, k, v, i, f, **named, **how)
    output, state = mlstm.chunks(q, k * SIZE**-0.5, v, i, f, (C * SIZE**-0.5, n * SIZE**-0.5, m), size=4)
    torch.testing.assert_close(output, expected)
    scales = SIZE**-0.5, SIZE**-0.5, 1.0  # theirs scales the queries
    for ours, other, scale in zip(state, last, scales, strict=True):
        torch.testing.assert_close(ours, other.reshape(ours.shape) * scale)


def test_mamba2_beside_transformers():
    """The whole mixer: projection, convolution, state space, norm and gate."""
    modeling = package("transformers.models.mamba2.modeling_mamba2")
    torch.manual_seed(0)
    options = {"num_heads": 4, "head_dim": 8, "hidden_size": 16, "expand": 2, "state_size": 8, "n_groups": 1}
    config = modeling.Mamba2Config(**options, num_hidden_layers=1, layer_norm_epsilon=1e-6, chunk_size=4)
    theirs = modeling.Mamba2Mixer(config, layer_idx=0)
    ours = rivals.Mamba2(5, 16, num_heads=4, head_size=8).blocks[0].mixer
    with torch.no_grad():
        theirs.norm.weight.uniform_(0.5, 2)
        theirs.D.normal_()
        theirs.A_log.normal_()
        theirs.dt_bias.normal_()
        weights = {
            "project.weight": theirs.in_proj.weight,
            "convolution.weight": theirs.conv1d.weight.squeeze(1).T,
            "convolution.bias": theirs.conv1d.bias,
            "time_step": theirs.dt_bias,
            "log_rate": theirs.A_log,
            "skip": theirs.D,
            "norm.weight": theirs.norm.weight,
            "out.weight": theirs.out_proj.weight,
        }
        ours.load_state_dict(weights)
    x = torch.randn(T, B, 16, requires_grad=True)
    parts = [torch.zeros(B, *shape) for shape in ours.state_shapes().values()]
    output, _ = ours(x, parts)
    expected = theirs(x.transpose(0, 1)).transpose(0, 1)
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)
    (gradient,) = torch.autograd.grad(output.square().sum(), x)
    (their_gradient,) = torch.autograd.grad(expected.square().sum(), x)
    torch.testing.assert_close(gradient, their_gradient, rtol=1e-3, atol=1e-4)


def test_deltanet_beside_fla():
    theirs = fla("fla/ops/delta_rule/naive.py").delta_rule_recurrence
    torch.manual_seed(0)
    q, k, v = sequences(torch.float32)
    beta, S = (
        draw(B, HEADS, T, dtype=torch.float32).sigmoid(),
        draw(B, HEADS, SIZE, SIZE, dtype=torch.float32),
    )
    expected, last = theirs(q, k, v, beta, initial_state=S)
    output, state = deltanet.chunks(q * SIZE**-0.5, k, v, beta, torch.zeros_like(beta), S, size=4)
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state, last, rtol=1e-4, atol=1e-5)


def _fla_gated():
    return fla("fla/ops/gated_delta_rule/naive.py").naive_recurrent_gated_delta_rule


def _transformers_gated():
    return package("transformers.models.qwen3_next.modeling_qwen3_next").torch_recurrent_gated_delta_rule


@pytest.mark.parametrize("theirs", [_fla_gated, _transformers_gated], ids=["fla", "transformers"])
def test_gated_deltanet_beside(theirs):
    theirs = theirs()
    torch.manual_seed(0)
    q, k, v = sequences(torch.float32)
    beta, S = (
        draw(B, HEADS, T, dtype=torch.float32).sigmoid(),
        draw(B, HEADS, SIZE, SIZE, dtype=torch.float32),
    )
    log_decay = -draw(B, HEADS, T, dtype=torch.float32).abs()
    time_first = [x.transpose(1, 2) for x in (q, k, v, beta, log_decay)]
    names = ("beta", "g")
    how = dict(zip(names, time_first[3:], strict=True)) | {"initial_state": S, "output_final_state": True}
    expected, last = theirs(*time_first[:3], **how)
    output, state = deltanet.chunks(q * SIZE**-0.5, k, v, beta, log_decay, S, size=4)
    torch.testing.assert_close(output.transpose(1, 2), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state, last, rtol=1e-4, atol=1e-5)
