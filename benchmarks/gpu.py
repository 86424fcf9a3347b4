"""The Triton kernels, compiled for GPUs that need not be there: what they take, and a prediction of their speed.

python benchmarks/gpu.py        writes results/bench/gpu.md (two minutes; needs Triton, no GPU)

Registers, spills, shared memory and barriers are read from the machine code. Bytes and operations are counted from
the loops. The time is a prediction from these and from published figures of the GPUs, and nothing was run on one.
"""

import argparse
import inspect
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.pop("TRITON_INTERPRET", None)  # before Triton is imported

import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from associative_lstm import AssociativeLSTM
from associative_lstm.kernels.associative import triton as host
from associative_lstm.kernels.associative import triton_loops as loops
from associative_lstm.lab.draw.tables import markdown_table
from associative_lstm.lab.files import write_atomically

OUT = Path(__file__).parent.parent / "results" / "bench" / "gpu.md"
SIZES, COPIES, ITEMS = (64, 128, 256), (1, 4, 8), (1, 16)
LAUNCH = 5e-6  # seconds of an operation of PyTorch's on a GPU, at least: what the CPU takes to launch it


class Gpu(NamedTuple):
    """What is known of a GPU, of one of its processors, per clock."""

    name: str
    target: GPUTarget
    clock: float  # Hz
    cache: int  # bytes a processor can get from the L2 cache
    multiplications: int  # float32, each with an addition
    latency: int  # clocks, of the L2 cache


GPUS = [
    Gpu("sm_80 (A100)", GPUTarget("cuda", 80, 32), 1.41e9, 64, 64, 250),
    Gpu("sm_90 (H100)", GPUTarget("cuda", 90, 32), 1.755e9, 64, 128, 270),
    Gpu("gfx942 (MI300X)", GPUTarget("hip", "gfx942", 64), 2.1e9, 64, 128, 400),
]


class Compiled(NamedTuple):
    """What a kernel takes."""

    registers: int
    spills: int  # bytes on NVIDIA, registers on AMD
    shared: int
    barriers: int  # all that the machine code has


class Missing(Exception):
    """A barrier of the source is not in the machine code."""


def compile_kernel(kernel: Any, gpu: Gpu, size: int, copies: int, items: int, **how: Any) -> Compiled:
    """The kernel for a layer of one head, float32, in full precision."""
    options = host.sizes_of(size, 1, items)
    build = {name: options.pop(name) for name in ("num_warps", "num_stages", "enable_fp_fusion")}
    own = {"keep": True} if kernel is loops.forward else {"above_cells": False}
    layer = {"copies": copies, "rows_h": 9 * size // 2, "PRECISION": "ieee"}
    flags = dict.fromkeys(("reverse", "smooth", "packed", "turning"), False)
    constants = options | own | layer | flags | how
    kinds = {"permutations": "*i32", "inverses": "*i32", "lengths": "*i64"}
    kinds |= dict.fromkeys(("times", "first", "steps", "batch"), "i32")
    signature = {
        name: "constexpr" if name in constants else kinds.get(name, "*fp32") for name in kernel.arg_names
    }
    aligned = {
        (k,): [["tt.divisibility", 16]]
        for k, name in enumerate(kernel.arg_names)
        if signature[name].startswith("*")
    }
    source = ASTSource(kernel, signature, constants, aligned)
    made = triton.compile(source, target=gpu.target, options=build)
    code = made.asm["amdgcn" if gpu.target.backend == "hip" else "ptx"]
    check_barriers(kernel, code)
    if gpu.target.backend == "hip":
        registers, spills = (
            int(re.search(rf"\.{name}:\s+(\d+)", code)[1]) for name in ("vgpr_count", "vgpr_spill_count")
        )
    else:
        registers, spills = _resources(made.asm["cubin"])
    barriers = len(re.findall(r"^\s+(?:bar\.sync|s_barrier)\b", code, re.MULTILINE))
    return Compiled(registers, spills, made.metadata.shared, barriers)


def check_barriers(kernel: Any, code: str) -> None:
    """Refuse machine code without one of the barriers of the source, each on a line of its own: `.loc` names it."""
    lines, first = inspect.getsourcelines(kernel.fn)
    wanted = {first + k for k, line in enumerate(lines) if "tl.debug_barrier()" in line}
    assert len(wanted) == 3
    here, found = 0, set()
    for line in code.splitlines():
        if match := re.match(r"\s+\.loc\s+1 (\d+) ", line.replace("\t", " ")):
            here = int(match[1])
        elif re.match(r"\s+(bar\.sync|s_barrier)\b", line):
            found.add(here)
    if wanted - found:
        raise Missing(f"no barrier for line {min(wanted - found)} of {Path(loops.__file__).name}")


def _resources(binary: bytes) -> tuple[int, int]:
    """Registers and bytes of spills of a program of NVIDIA's."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        command = [tool, "--dump-resource-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+) .*?LOCAL:(\d+)", text)
    return int(found[1]), int(found[2]) + int(found[3])


class Step(NamedTuple):
    """What a program does in a step."""

    weights: int  # bytes of weights
    others: int  # bytes of all else
    multiplications: int
    waits: int  # loads of which each waits for the one before


def count(kernel: Any, size: int, copies: int, items: int) -> Step:
    """Of a layer of one head, as the loops are written."""
    tile, n = host.sizes_of(size, 1, items), size // 2
    rows, width = 9 * n, size
    columns = triton.cdiv(n, tile["COLUMNS"])
    if kernel is loops.forward:
        tiles, depth = triton.cdiv(rows, tile["ROWS"]), triton.cdiv(width, tile["DEPTH"])
        # z in and out, gates and update; of every copy c in, out and kept, and two keys; h out twice
        numbers = tiles * width + 2 * rows + 5 * n + copies * 10 * n + 2 * width
        # of every copy its places, then what they point at; before it the gates, after it the output gate
        chain = columns * (2 + 2 * copies)
    else:
        tiles, depth = triton.cdiv(width, tile["ROWS"]), triton.cdiv(rows, tile["DEPTH"])
        first = 2 * n + 2 * n + n + 2 * n + n + 4 * n + n + 2 * n + copies * (4 * n + 4 * n + 6 * n)
        second = 5 * n + copies * (9 * n + 4 * n) + 4 * n
        numbers = first + second + tiles * rows + width
        chain = columns * (4 * copies + 3 + 2 * copies + 2)
    placed = copies * n * (1 if kernel is loops.forward else 3)
    return Step(4 * rows * width, 4 * (items * numbers + placed), items * rows * width, tiles * depth + chain)


def predict(gpu: Gpu, step: Step) -> float:
    """Seconds of a step: its bytes or its multiplications, whichever take longer, and one wait after another."""
    through = max((step.weights + step.others) / gpu.cache, step.multiplications / gpu.multiplications)
    return (through + step.waits * gpu.latency) / gpu.clock


class _Launches(TorchDispatchMode):
    """Counts operations that are not merely another view of their argument."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        views = [r.alias_info is not None and not r.alias_info.is_write for r in function._schema.returns]
        self.count += not any(views) and function is not torch.ops.aten.detach.default
        return function(*arguments, **options or {})


def launches_of_the_loop(copies: int) -> tuple[int, int]:
    """Operations of a step of the reference loop, forward and backward: of one step more."""

    def counted(steps: int) -> tuple[int, int]:
        layer = AssociativeLSTM(4, 8, num_copies=copies, backend="reference")
        with _Launches() as there:
            total = layer(torch.randn(steps, 2, 4))[0].sum()
        with _Launches() as back:
            total.backward()
        return there.count, back.count

    (a, b), (c, d) = counted(3), counted(4)
    return c - a, d - b


def table(
    sizes: tuple[int, ...], copies: tuple[int, ...], progress: Callable[[str], None]
) -> tuple[str, int]:
    """A row for every GPU and size, and the largest spill."""
    rows, most = [], 0
    for gpu, size, many, items in itertools.product(GPUS, sizes, copies, ITEMS):
        progress(f"{gpu.name}, N_h {size}, copies {many}, items {items}")
        row: list[Any] = [gpu.name, size, many, items]
        total = 0.0
        for kernel in (loops.forward, loops.backward):
            made, step = compile_kernel(kernel, gpu, size, many, items), count(kernel, size, many, items)
            seconds = predict(gpu, step)
            total, most = total + seconds, max(most, made.spills)
            row += [
                made.registers,
                made.spills,
                f"{made.shared / 1024:.0f}",
                f"{step.weights / 1024:.0f} + {step.others / 1024:.0f}",
                f"{1e6 * seconds:.1f}",
            ]
        there, back = launches_of_the_loop(many)
        loop = LAUNCH * (there + back)
        rows.append([*row, f"{1e6 * loop:.0f} ({there} + {back})", f"{loop / total:.0f}"])
    first, *others = ("registers", "spills", "shared, KiB", "weights + other, KiB", "predicted, µs")
    header = ["GPU", "N_h", "copies", "items", f"forward: {first}", *others, f"backward: {first}", *others]
    return markdown_table([*header, "the loop, µs (launches)", "the loop's / ours"], rows), most


PAGE = """# The Triton kernels, compiled for GPUs

**Nothing here was run on a GPU**: the kernels are {status}.
Made by `python benchmarks/gpu.py`, with Triton {version}.

Registers (of a thread), spills (bytes; registers on AMD) and shared memory are read from the machine code, in which
every barrier of the source was found too. Bytes are those that a program, which has so many items of the batch,
loads and stores in one step: the weights, read anew from the L2 cache at each step, and all else. One head, float32,
all rows recurrent.

**The times are predictions**, for a step of one program, of which a GPU runs one on every processor side by side:
its bytes from the L2 cache or its multiplications, whichever take longer, and then every load that has to wait for
another. Input projection and weight gradients, matrix products outside the loop, are not in them. Assumed:

{gpus}

The loop is what runs on a GPU otherwise: its operations for a step, counted, at {launch:.0f} µs each, which PyTorch
takes to launch one. All items of the batch are in that time.

{table}

The largest spill of one head is {spill} bytes: tiles do not grow with N_h. With one item a program waits for
its weights, so a step takes as long for one item as for a batch of as many as there are processors; with 16
items it multiplies, in full float32 precision (after `torch.set_float32_matmul_precision("high")` with the
matrix units of NVIDIA's GPUs).

cuDNN's LSTM, as published: with cuDNN 5 on a TITAN X, 128 units, batches of 32, 30 steps, 59.5 µs forward and
118.8 µs in training for each item (github.com/MaximumEntropy/cudnn_rnn_theano_benchmarks), which is 63 and 127 µs
for a step of the batch. Published times for these GPUs and sizes were not found.

The first measurement on a GPU will replace this page: `pytest -m gpu`, then `alstm bench --device cuda`.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="The file.")
    out = parser.parse_args().out
    lines, spill = table(SIZES, COPIES, lambda words: print(words, file=sys.stderr))
    gpus = [
        f"- {gpu.name}: {gpu.clock / 1e9:g} GHz; for a processor and clock, {gpu.cache} bytes from the L2 cache, "
        f"after {gpu.latency} clocks, and {gpu.multiplications} multiplications"
        for gpu in GPUS
    ]
    text = PAGE.format(
        status=host.STATUS,
        version=triton.__version__,
        gpus="\n".join(gpus),
        launch=LAUNCH * 1e6,
        table=lines,
        spill=spill,
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, text.encode())
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
