"""Compiled routines on the threads of PyTorch's own OpenMP library.

Those threads keep their cores busy for some milliseconds after every parallel operation of PyTorch's, waiting for the
next: other threads would have to share the cores with them. So the compiled routine itself asks the library to run
it, as a compiler does for a loop marked ``omp parallel``.
"""

import ctypes
import functools
from pathlib import Path
from typing import NamedTuple

import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.callconv import excinfo_ptr_t
from numba.extending import intrinsic


class Team(NamedTuple):
    """Where the library's functions are, by their names, and how many threads to ask for."""

    GOMP_parallel: int
    GOMP_barrier: int
    omp_get_thread_num: int
    omp_get_num_threads: int
    fegetenv: int
    fesetenv: int
    threads: int


class Turn(NamedTuple):
    """A thread's place among those that go through a loop together."""

    member: int
    members: int
    barrier: int  # the function with which they `wait` for each other, or 0


ALONE = Turn(0, 1, 0)


@functools.cache
def addresses() -> list[int] | None:
    """Where the functions are in the libraries that PyTorch itself uses; None if it has no such OpenMP."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        functions = [getattr(library, name) for name in Team._fields[:-1]]
    except (OSError, AttributeError):
        return None
    return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]


_VOID, _INT, _LONG, _POINTER = ir.VoidType(), ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
_ENVIRONMENT = ir.ArrayType(_LONG, 32)  # larger than any system's fenv_t
_TEAM, _SLICES, _STOP, _ARGS, _CODE, _ERROR, _CALLERS = range(7)
"""What the threads share: what `in_team` was given, a kernel's error, and the caller's environment."""


def _call_address(builder, address, result, *args):
    kind = ir.FunctionType(result, [arg.type for arg in args]).as_pointer()
    return builder.call(builder.inttoptr(address, kind), args)


def _field(builder, shared, k):
    return builder.gep(shared, [_INT(0), _INT(k)], inbounds=True)


def _environment(builder, shared):
    return builder.bitcast(_field(builder, shared, _CALLERS), _POINTER)


def _member(context, module, shared_type, compiled):
    """The function that every thread of the team calls."""
    function = ir.Function(module, ir.FunctionType(_VOID, [_POINTER]), module.get_unique_name("member"))
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    shared = builder.bitcast(function.args[0], shared_type.as_pointer())
    team, slices, stop, args = (builder.load(_field(builder, shared, k)) for k in range(_CODE))
    _, barrier, number, count, get, set_, _ = cgutils.unpack_tuple(builder, team)
    number, count = (builder.sext(_call_address(builder, f, _INT), _LONG) for f in (number, count))
    own = builder.bitcast(builder.alloca(_ENVIRONMENT), _POINTER)
    _call_address(builder, get, _INT, own)
    _call_address(builder, set_, _INT, _environment(builder, shared))

    def call(start, stop, *turn):
        turn = context.make_tuple(builder, compiled.signature.args[2], turn)
        status, _ = context.call_internal_no_propagate(
            builder,
            compiled.fndesc,
            compiled.signature,
            [start, stop, turn, *cgutils.unpack_tuple(builder, args)],
        )
        with builder.if_then(status.is_error, likely=False):
            builder.store(status.code, _field(builder, shared, _CODE))
            builder.store(status.excinfoptr, _field(builder, shared, _ERROR))

    with builder.if_else(builder.icmp_signed(">", slices, _LONG(0))) as (apart, together):
        with apart, cgutils.for_range_slice(builder, number, slices, count, _LONG) as (k, _):
            edges = (builder.sdiv(builder.mul(stop, e), slices) for e in (k, builder.add(k, _LONG(1))))
            call(*edges, *(_LONG(value) for value in ALONE))
        with together:
            call(_LONG(0), stop, number, count, barrier)
    _call_address(builder, set_, _INT, own)
    builder.ret_void()
    return function


@intrinsic
def in_team(typingctx, kernel, team, slices, stop, args):
    """``kernel(a, b, turn, *args)`` for the slices of ``range(stop)``, side by side on the threads of the team.

    There may be more or fewer slices than threads. With 0 slices every thread calls ``kernel(0, stop, turn, *args)``,
    and its turn says which one it is; else the turn is `ALONE`.

    An exception is raised here when all have ended. A kernel that raises one and waits for others must do so in every
    thread, after as many waits: the others would wait for ever. What a thread does with denormal numbers, and the
    rest of its floating-point environment, is the caller's for as long as it works here.
    """
    turn = types.NamedUniTuple(types.intp, len(Turn._fields), Turn)
    of_kernel = kernel.get_call_type(typingctx, (types.intp, types.intp, turn, *args.types), {})

    def codegen(context, builder, signature, values):
        compiled = kernel.dispatcher.get_compile_result(of_kernel)
        context.active_code_library.add_linking_library(compiled.library)
        given = [*values[1:], _INT(0), ir.Constant(excinfo_ptr_t, None)]
        shared_type = ir.LiteralStructType([value.type for value in given] + [_ENVIRONMENT])
        member = _member(context, builder.module, shared_type, compiled)
        shared = cgutils.alloca_once(builder, shared_type)
        for k, value in enumerate(given):
            builder.store(value, _field(builder, shared, k))
        parallel, _, _, _, get, _, threads = cgutils.unpack_tuple(builder, values[1])
        _call_address(builder, get, _INT, _environment(builder, shared))
        data, everyone = builder.bitcast(shared, _POINTER), builder.trunc(threads, _INT)
        _call_address(builder, parallel, _VOID, member, data, everyone, _INT(0))
        code, error = (builder.load(_field(builder, shared, k)) for k in (_CODE, _ERROR))
        status = context.call_conv._get_return_status(builder, code, error)
        with builder.if_then(status.is_error, likely=False):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(kernel, team, types.intp, types.intp, args), codegen


@intrinsic
def wait(typingctx, turn):
    """Go on when every thread of the team has come here, and see what each has written before."""

    def codegen(context, builder, signature, values):
        barrier = builder.extract_value(values[0], 2)
        with builder.if_then(builder.icmp_unsigned("!=", barrier, _LONG(0)), likely=False):
            _call_address(builder, barrier, _VOID)
        return context.get_dummy_value()

    return types.void(turn), codegen
