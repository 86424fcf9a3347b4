"""What this CPU is, as the compiler sees it: the one place from which vectors, tiles and panels follow.

Numba's settings hold. With ``NUMBA_CPU_NAME=haswell`` and ``NUMBA_CPU_FEATURES=`` (empty) all is made for vectors of
32 bytes, and with ``x86-64`` for 16, on a CPU that has wider ones too.
"""

import platform
from pathlib import Path

import llvmlite.binding as llvm
import numba
from numba.core import codegen

_ADDITION = """
define <16 x float> @add(<16 x float> %a, <16 x float> %b) {
  %c = fadd <16 x float> %a, %b
  ret <16 x float> %c
}
"""


def _triple() -> str:
    """Which family of CPUs this is."""
    return llvm.get_process_triple()


def _assembly() -> str:
    """How 64 bytes of numbers are added here: the registers' names say how wide they are."""
    name, features = numba.config.CPU_NAME, numba.config.CPU_FEATURES
    if features is None:  # a CPU that is named has its own features, not those of the one we are on
        features = codegen.get_host_cpu_features() if name is None else ""
    codegen.initialize_llvm()
    machine = llvm.Target.from_triple(_triple()).create_target_machine(
        cpu=name or llvm.get_host_cpu_name(), features=features
    )
    return machine.emit_assembly(llvm.parse_assembly(_ADDITION))


def _describe(assembly: str) -> tuple[int, int]:
    if "zmm" in assembly:
        return 64, 32  # AVX-512
    if "ymm" in assembly:
        return 32, 16  # AVX, AVX2
    return 16, 16 if "xmm" in assembly else 32  # SSE; ARM and others


VECTOR_BYTES, VECTOR_REGISTERS = _describe(_assembly())


def described() -> dict[str, str | int]:
    """This machine's processor, and what is compiled for on it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):  # not Linux, or not x86
        model = platform.processor() or platform.machine()
    return {
        "CPU": model,
        "compiled for": numba.config.CPU_NAME or llvm.get_host_cpu_name(),
        "vector bytes": VECTOR_BYTES,
        "vector registers": VECTOR_REGISTERS,
    }
