"""The layer in larger machinery: torch.compile, torch.export, autocast, threads, processes."""

import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from associative_lstm import AssociativeLSTM, AssociativeLSTMCell
from associative_lstm.kernels import fused_unavailable
from associative_lstm.kernels.compiler.threads import over_batch
from closeness import allowed, assert_close
from waiting import HANGS

T, B, INPUT, N = 5, 3, 4, 8
assert fused_unavailable() is None  # and the operator is registered


def make(backend="fused", **options):
    torch.manual_seed(0)
    return AssociativeLSTM(INPUT, N, num_copies=2, backend=backend, **options)


def operators(graph):
    return [str(node.target) for node in graph.nodes if "associative_lstm" in str(node.target)]


def gradients(call, layer, x):
    layer.zero_grad()
    x = x.clone().requires_grad_()
    output, (h_n, c_n) = call(x)
    (output.square().sum() + h_n.sum() + c_n.sin().sum()).backward()
    return [output.detach(), x.grad, *(parameter.grad.clone() for parameter in layer.parameters())]


def limits(layer, x):
    return allowed(lambda layer, x: gradients(layer, layer, x), layer, x)


@pytest.fixture
def compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("grad", [True, False])
def test_compiled_it_is_one_graph_with_one_node_per_layer_and_direction(grad):
    layer, x = make(num_layers=2, bidirectional=True), torch.randn(T, B, INPUT)
    graphs = []

    def record(module, example):
        graphs.append(module.graph)
        return module

    compiled = torch.compile(layer, fullgraph=True, backend=record)
    with torch.set_grad_enabled(grad):
        output, state = compiled(x)
        expected, expected_state = layer(x)
    assert [operators(graph) for graph in graphs] == [["associative_lstm.sequence.default"] * 4]
    assert torch.equal(output, expected)
    assert all(torch.equal(a, b) for a, b in zip(state, expected_state, strict=True))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("backend", "num_layers", "steps"), [("fused", 2, T), ("reference", 1, 2)])
def test_compiled_gradients_are_the_same(backend, num_layers, steps):
    layer = make(backend, num_layers=num_layers, learn_initial_state=True)
    x = torch.randn(steps, B, INPUT)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert_close(gradients(compiled, layer, x), gradients(layer, layer, x), limits(layer, x))


@pytest.mark.usefixtures("compiler")
def test_compiled_once_for_all_lengths():
    layer = make()
    counter = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=counter)
    for steps in (5, 9, 31):
        x = torch.randn(steps, B, INPUT)
        assert torch.equal(compiled(x)[0], layer(x)[0])
    assert counter.frame_count == 1


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("strict", [False, True])
def test_exported_it_is_one_node_and_serves_any_length_and_batch(strict):
    layer = make(num_layers=3, residual=True).eval()
    dynamic = {"x": {0: torch.export.Dim("T", min=1, max=1000), 1: torch.export.Dim("B", min=1, max=1000)}}
    program = torch.export.export(layer, (torch.randn(T, B, INPUT),), dynamic_shapes=dynamic, strict=strict)
    assert operators(program.graph) == ["associative_lstm.sequence.default"] * 3
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for steps, batch in [(T, B), (11, 6), (1, 1)]:
        x = torch.randn(steps, batch, INPUT)
        assert torch.equal(loaded(x)[0], layer(x)[0])


def operator_arguments(
    *, lengths=None, turns=None, keep=1, smooth=False, reverse=False, bias=True, grad=True
):
    torch.manual_seed(0)
    layer = make()
    tensors = [torch.randn(T, B, INPUT), torch.randn(B, N), torch.randn(B, 2, N)]
    tensors += [layer.weight_ih_l0.detach(), layer.weight_hh_l0.detach(), torch.randn(len(layer.bias_l0))]
    tensors = [tensor.clone().requires_grad_(grad) for tensor in tensors]
    bias = tensors[5] if bias else None
    return (*tensors[:5], bias, layer.permutations_l0, lengths, turns, smooth, reverse, keep)


@pytest.mark.filterwarnings("ignore")  # the check itself uses deprecated parts of PyTorch
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"keep": 2, "reverse": True, "smooth": True},
        {"keep": 0, "grad": False, "bias": False},
        {"lengths": torch.tensor([5, 3, 3]), "reverse": True},
        {"turns": torch.full((2, N), 0.5)},
    ],
)
def test_the_operator_keeps_the_rules_of_operators(options):
    torch.library.opcheck(torch.ops.associative_lstm.sequence.default, operator_arguments(**options))


def test_the_operator_gives_what_the_direct_call_gives():
    """Outside torch.compile the layer calls the routines without the operator, which costs time."""
    layer, x = make(), torch.randn(T, B, INPUT)
    zeros = torch.zeros(B, N), torch.zeros(B, 2, N)
    weights = layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_l0, layer.permutations_l0

    def call(x):
        output, h_n, c_n, *_ = torch.ops.associative_lstm.sequence(
            x, *zeros, *weights, None, None, False, False, 1
        )
        return output, (h_n, c_n)

    for ours, expected in zip(gradients(call, layer, x), gradients(layer, layer, x), strict=True):
        assert torch.equal(ours, expected)


@pytest.mark.parametrize(("backend", "every"), [("fused", 1), ("fused", 2), ("reference", 1)])
def test_autocast_computes_in_the_type_of_the_weights(backend, every):
    layer, x = make(backend, num_layers=2, keep_states_every=every), torch.randn(T, B, INPUT)

    def in_autocast(x):
        with torch.autocast("cpu", torch.bfloat16):
            return layer(x)

    for ours, expected in zip(gradients(in_autocast, layer, x), gradients(layer, layer, x), strict=True):
        assert ours.dtype == torch.float32
        assert torch.equal(ours, expected)
    output, (h_n, c_n) = in_autocast(x.bfloat16())
    assert output.dtype == h_n.dtype == c_n.dtype == torch.float32
    assert torch.equal(output, layer(x.bfloat16().float())[0])


@pytest.mark.parametrize("every", [1, 2])
def test_a_backward_pass_inside_autocast_too(every):
    layer, x = make(keep_states_every=every), torch.randn(T, B, INPUT)
    expected = gradients(layer, layer, x)
    with torch.autocast("cpu", torch.bfloat16):
        ours = gradients(layer, layer, x)
    assert all(torch.equal(a, b) for a, b in zip(ours, expected, strict=True))


@pytest.mark.usefixtures("compiler")
def test_autocast_around_the_compiled_layer():
    layer, x = make(), torch.randn(T, B, INPUT)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")

    def in_autocast(x):
        with torch.autocast("cpu", torch.bfloat16):
            return compiled(x)

    assert_close(gradients(in_autocast, layer, x), gradients(layer, layer, x), limits(layer, x))


def test_autocast_of_the_cell():
    torch.manual_seed(0)
    cell, x = AssociativeLSTMCell(INPUT, N, num_copies=2), torch.randn(B, INPUT)
    with torch.autocast("cpu", torch.bfloat16):
        h, c = cell(x)
    assert h.dtype == c.dtype == torch.float32
    assert torch.equal(h, cell(x).h)


@pytest.mark.parametrize(("threads", "batch"), [(1, 7), (2, 7), (3, 7), (4, 5), (4, 2), (2, 1)])
def test_the_batch_is_split_once_among_the_threads_that_torch_may_use(threads, batch):
    slices, lock = [], threading.Lock()

    def kernel(start, stop, word):
        with lock:
            slices.append((start, stop, word))

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        over_batch(kernel, batch, "word")
    finally:
        torch.set_num_threads(before)
    slices.sort()
    assert len(slices) == max(1, min(threads, batch // 2))
    assert [k for start, stop, _ in slices for k in range(start, stop)] == list(range(batch))
    sizes = [stop - start for start, stop, _ in slices]
    assert max(sizes) - min(sizes) <= 1


def test_an_error_in_one_thread_is_raised_when_all_have_ended():
    ended = []

    def kernel(start, stop):
        if start == 0:
            raise IndexError("here")
        time.sleep(0.2)  # if nobody waits for this slice, it ends too late
        ended.append(start)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(IndexError, match="here"):
            over_batch(kernel, 4)
    finally:
        torch.set_num_threads(before)
    assert ended == [2]


def test_several_python_threads_at_once():
    layers = [make(num_layers=2) for _ in range(4)]  # the same weights; gradients of its own for each
    inputs = [torch.randn(40, 4, INPUT) for _ in layers]
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        expected = [gradients(layer, layer, x) for layer, x in zip(layers, inputs, strict=True)]
        with ThreadPoolExecutor(len(layers)) as pool:
            for _ in range(5):
                jobs = [
                    pool.submit(gradients, layer, layer, x) for layer, x in zip(layers, inputs, strict=True)
                ]
                for job, own in zip(jobs, expected, strict=True):
                    assert all(torch.equal(a, b) for a, b in zip(job.result(), own, strict=True))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_in_the_workers_of_a_loader(method):
    script = Path(__file__).with_name("loader_workers.py")
    done = subprocess.run(
        [sys.executable, str(script), method], capture_output=True, text=True, timeout=HANGS, check=False
    )
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_after_a_fork_on_one_thread():
    """With more, PyTorch's own products may wait for ever in the child for threads that are the parent's."""
    program = """
import os, torch
from associative_lstm import AssociativeLSTM
torch.set_num_threads(2)
layer, x = AssociativeLSTM(4, 8, backend="fused"), torch.randn(5, 4, 4)
layer(x)[0].sum().backward()
child = os.fork()
torch.set_num_threads(1)
output = layer(x)[0]
output.sum().backward()
if child == 0:
    torch.save(output, "child.pt")
    os._exit(0 if layer.weight_ih_l0.grad.isfinite().all() else 3)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
assert torch.equal(torch.load("child.pt"), output)
"""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", program], check=True, timeout=HANGS, cwd=folder)


def test_data_parallel_processes_agree(tmp_path):
    """Two processes of other seeds: other permutations before DistributedDataParallel, the same after."""
    script = Path(__file__).with_name("data_parallel.py")
    ranks = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(tmp_path)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    assert [rank.wait(timeout=HANGS) for rank in ranks] == [0, 0]
    first, second = (torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in range(2))
    assert not torch.equal(first["permutations_before"], second["permutations_before"])
    assert not torch.equal(first["x"], second["x"])
    for name in ("permutations_after", "gradient", "weight"):
        assert torch.equal(first[name], second[name]), name
    assert first["gradient"].abs().max() > 0
