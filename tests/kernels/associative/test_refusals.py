"""What the fused operators are given wrongly never reaches compiled code, and compiled code stays in bounds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from associative_lstm import AssociativeLSTM
from associative_lstm.kernels.associative import fused
from associative_lstm.kernels.associative.reference import turns_of
from closeness import allowed, assert_close
from waiting import HANGS

T, B, INPUT, N, COPIES = 5, 3, 4, 6, 2
forward = fused._sequence_op
backward = fused._sequence_backward_op


def arguments(keep=1, lengths=None):
    torch.manual_seed(0)
    layer = AssociativeLSTM(INPUT, N, num_copies=COPIES, rotation=0.5)
    named = {
        "x": torch.randn(T, B, INPUT),
        "h_0": torch.randn(B, N),
        "c_0": torch.randn(B, COPIES, N),
        "weight_ih": layer.weight_ih_l0.detach(),
        "weight_hh": layer.weight_hh_l0.detach(),
        "bias": layer.bias_l0.detach(),
        "permutations": layer.permutations_l0,
        "lengths": lengths,
        "turns": turns_of(layer.angles_l0, layer.permutations_l0),
        "smooth": False,
        "reverse": False,
        "keep": keep,
    }
    return named


def backward_arguments(keep=1):
    named = arguments(keep)
    output, h_n, c_n, z, cells = forward(**named)
    gradients = {"d_output": output, "d_h_n": h_n, "d_c_n": c_n, "d_cells": cells}
    named |= {"output": output, "z": z, "cells": cells}
    return (
        named | {name: torch.ones_like(value) for name, value in gradients.items()} | {"needed": [True] * 6}
    )


def spoilt(tensor):
    """The tensor with a dimension one longer or shorter, with one more or fewer, of other types, elsewhere."""
    for k in range(tensor.dim()):
        yield tensor.narrow(k, 0, tensor.shape[k] - 1)
        yield torch.cat([tensor, tensor.narrow(k, 0, 1)], k)
    yield tensor[0]
    yield tensor[None]
    yield tensor.new_empty([0] * tensor.dim())
    yield tensor.to(torch.float16 if tensor.is_floating_point() else torch.int32)
    yield tensor.to(torch.float64)
    yield tensor.to("meta")
    yield tensor.to_sparse()


def refused(operator, named, name, value):
    """The operator says no in words, whichever tensor the wrong one no longer fits."""
    with pytest.raises((ValueError, NotImplementedError)) as caught:
        operator(**named | {name: value})
    assert value.is_sparse or "expected" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["x", "h_0", "c_0", "weight_ih", "weight_hh", "bias", "permutations", "turns"]
)
def test_forward_refuses_every_tensor_that_does_not_fit(name):
    named = arguments()
    forward(**named)
    for value in spoilt(named[name]):
        if name == "x" and value.shape[1:] == (B, INPUT) and len(value) and value.dtype == torch.float32:
            continue  # of another length only: that is no mistake
        refused(forward, named, name, value)


BACKWARD = "x h_0 c_0 weight_ih weight_hh bias permutations output z cells d_output d_h_n d_c_n d_cells"


@pytest.mark.parametrize("keep", [1, 2])
@pytest.mark.parametrize("name", BACKWARD.split())
def test_backward_refuses_every_tensor_that_does_not_fit(name, keep):
    named = backward_arguments(keep)
    backward(**named)
    if name == "z" and keep == 2:  # where it is not kept, there must be none
        refused(backward, named, name, torch.zeros(T, B, len(named["bias"])))
        return
    for value in spoilt(named[name]):
        refused(backward, named, name, value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("keep", -1, "keep: expected 0 or more, got -1"),
        ("lengths", torch.tensor([5, 5, 6]), "lengths: expected numbers from 5 down to 1"),
        ("lengths", torch.tensor([6, 5, 5]), "lengths: expected numbers from 5 down to 1"),
        ("lengths", torch.tensor([5, 3, 0]), "lengths: expected numbers from 5 down to 1"),
        ("lengths", torch.tensor([5, 3, -(2**63)]), "lengths: expected numbers from 5 down to 1"),
        ("lengths", torch.tensor([3, 5, 1]), "lengths: expected numbers from 5 down to 1"),
        ("lengths", torch.tensor([5, 3]), r"lengths: expected shape \(3,\), got \(2,\)"),
        ("lengths", torch.tensor([5.0, 3.0, 1.0]), "lengths: expected torch.int64, got torch.float32"),
        ("c_0", torch.zeros(B, 0, N), "c_0: expected at least one copy of a memory of even width"),
        ("c_0", torch.zeros(B, COPIES, 0), "c_0: expected at least one copy of a memory of even width"),
        ("c_0", torch.zeros(B, COPIES, 5), "c_0: expected at least one copy of a memory of even width"),
        ("x", torch.zeros(0, B, INPUT), "x: expected float32 or float64 of at least one step and item"),
        ("x", torch.zeros(T, 0, INPUT), "x: expected float32 or float64 of at least one step and item"),
    ],
)
def test_values_that_no_size_shows(name, value, words):
    with pytest.raises(ValueError, match=words):
        forward(**arguments() | {name: value})
    with pytest.raises(ValueError, match=words):
        backward(**backward_arguments() | {name: value})


def test_backward_refuses_what_was_not_kept():
    named = backward_arguments()
    with pytest.raises(ValueError, match="keep: expected at least 1 for a backward pass, got 0"):
        backward(**named | {"keep": 0})
    with pytest.raises(ValueError, match="needed: expected 6 truth values, got 2"):
        backward(**named | {"needed": [True, False]})


@pytest.mark.parametrize("index", [-1, N // 2, 2**31, 2**32, -(2**31), 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("place", [(0, 0), (COPIES - 1, N // 2 - 1)])
def test_a_permutation_that_points_outside_the_memory(index, place):
    spoilt = arguments()["permutations"].clone()
    spoilt[place] = index
    with pytest.raises(IndexError, match="permutations: an index outside the memory"):
        forward(**arguments() | {"permutations": spoilt})
    with pytest.raises(IndexError, match="permutations: an index outside the memory"):
        backward(**backward_arguments() | {"permutations": spoilt})
    layer = AssociativeLSTM(INPUT, N, num_copies=COPIES, backend="fused")
    layer.load_state_dict(layer.state_dict() | {"permutations_l0": spoilt})
    with pytest.raises(IndexError, match="permutations"):
        layer(torch.randn(T, B, INPUT))


@pytest.mark.parametrize("needed", range(64))
def test_gradients_of_any_subset_are_those_of_all(needed):
    """Whatever requires a gradient, of x, h_0, c_0, weight_ih, weight_hh and bias, gets the same one."""
    named = backward_arguments()
    wanted = [bool(needed >> k & 1) for k in range(6)]
    everything, some = backward(**named), backward(**named | {"needed": wanted})
    for own, all_of_it, want in zip(some, everything, wanted, strict=True):
        if want:
            assert torch.equal(own, all_of_it)


def test_what_is_no_permutation():
    """An index that is there twice stays inside, but has no inverse for the gradients to go back through."""
    wrong = torch.zeros_like(arguments()["permutations"])
    with pytest.raises(IndexError, match="permutations: an index twice in one copy"):
        forward(**arguments() | {"permutations": wrong})


def test_inputs_of_any_strides_give_the_same_numbers():
    named = backward_arguments()
    scattered = {}
    for name, value in named.items():
        scattered[name] = value
        if isinstance(value, torch.Tensor):
            wide = torch.stack([value, value], -1)  # every second number
            scattered[name] = wide[..., 0]
            assert not scattered[name].is_contiguous()
    for call, first in ((backward, named), (forward, {name: named[name] for name in arguments()})):

        def run(*values, call=call, names=tuple(first)):
            return call(**dict(zip(names, values, strict=True)))

        ours = run(*(scattered[name] for name in first))
        assert_close(ours, run(*first.values()), allowed(run, *first.values()))


def test_with_bounds_checking_switched_on(tmp_path):
    """Compiled anew with Numba's own checks of every index, over many sizes; and it says that it compiles."""
    script = Path(__file__).with_name("checked_bounds.py")
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "checked"
    for direction in ("forward", "backward"):
        message = f"associative-lstm: compiling the fused Associative LSTM, {direction}, torch.float32"
        assert done.stderr.count(message) == 1
