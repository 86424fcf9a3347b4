"""The kernels as CPUs with narrower vectors run them: told to the compiler before it starts, in their own processes.

All other tests run at this machine's own width.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from associative_lstm.kernels.compiler import target
from waiting import HANGS

HERE = Path(__file__).parent
TESTS = [
    "compiler/test_simd.py::test_arithmetic_on_a_row_and_on_nothing_beside_it",
    "compiler/test_simd.py::test_four_numbers_of_a_column_are_fetched_through_a_permutation",
    "compiler/test_matmul.py",
    "associative/test_fused.py::test_vectors_whole_and_in_part",
]


@pytest.mark.skipif("x86" not in target._triple(), reason="these are names of CPUs of the x86-64 family")
@pytest.mark.parametrize(("width", "cpu"), [(32, "haswell"), (16, "x86-64")])
def test_the_same_numbers_with_narrower_vectors(width, cpu):
    if width >= target.VECTOR_BYTES:
        pytest.skip("the other tests run at this width, or the CPU has none that wide")
    settings = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": "", "OMP_NUM_THREADS": "1"}
    check = f"from associative_lstm.kernels.compiler import target; assert target.VECTOR_BYTES == {width}; "
    run = f"import pytest, sys; sys.exit(pytest.main({['-q', '-p', 'no:cacheprovider', *TESTS]!r}))"
    done = subprocess.run(
        [sys.executable, "-c", check + run],
        cwd=HERE,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
