"""Compiled routines on the threads of PyTorch's own OpenMP library.

Those threads keep their cores busy for some milliseconds after every parallel operation of PyTorch's, waiting for the
next: other threads would have to share the cores with them. So the compiled routine itself asks the library to run
it, as a compiler does for a loop marked ``omp parallel``.
"""

import ctypes
import functools
from pathlib import Path

import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.callconv import excinfo_ptr_t
from numba.extending import intrinsic

_FUNCTIONS = (
    "GOMP_parallel",
    "GOMP_barrier",
    "omp_get_thread_num",
    "omp_get_num_threads",
    "fegetenv",
    "fesetenv",
)


@functools.cache
def addresses() -> tuple[int, ...] | None:
    """Where the functions are in the libraries that PyTorch itself uses; None if it has no such OpenMP."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        return tuple(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS)
    except (OSError, AttributeError):
        return None


ALONE = (0, 1, 0)
"""The turn of a thread that shares its work with no other: number, how many there are, where they wait."""

_VOID, _INT, _LONG, _POINTER = ir.VoidType(), ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
_ENVIRONMENT = ir.ArrayType(_LONG, 32)  # larger than any system's fenv_t
_ARGS, _STOP, _NUMBER, _COUNT, _GET, _SET, _BARRIER, _SLICES, _CODE, _ERROR, _CALLERS = range(11)
"""What the threads share: from the caller up to _SLICES, then a kernel's error, and the caller's environment."""


def _call_address(builder, address, result, *args):
    kind = ir.FunctionType(result, [arg.type for arg in args]).as_pointer()
    return builder.call(builder.inttoptr(address, kind), args)


def _field(builder, shared, k):
    return builder.gep(shared, [_INT(0), _INT(k)], inbounds=True)


def _environment(builder, shared):
    return builder.bitcast(_field(builder, shared, _CALLERS), _POINTER)


def _member(context, module, shared_type, compiled, share):
    """The function that every thread of the team calls. ``share`` makes its calls of the kernel."""
    function = ir.Function(module, ir.FunctionType(_VOID, [_POINTER]), module.get_unique_name("member"))
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    shared = builder.bitcast(function.args[0], shared_type.as_pointer())
    args, stop, number, count, get, set_, barrier, slices = (
        builder.load(_field(builder, shared, k)) for k in range(_CODE)
    )
    number, count = (builder.sext(_call_address(builder, f, _INT), _LONG) for f in (number, count))
    own = builder.bitcast(builder.alloca(_ENVIRONMENT), _POINTER)
    _call_address(builder, get, _INT, own)
    _call_address(builder, set_, _INT, _environment(builder, shared))

    def call(*first):
        status, _ = context.call_internal_no_propagate(
            builder, compiled.fndesc, compiled.signature, [*first, *cgutils.unpack_tuple(builder, args)]
        )
        with builder.if_then(status.is_error, likely=False):
            builder.store(status.code, _field(builder, shared, _CODE))
            builder.store(status.excinfoptr, _field(builder, shared, _ERROR))

    share(builder, call, stop, number, count, barrier, slices)
    _call_address(builder, set_, _INT, own)
    builder.ret_void()
    return function


def _in_team(context, builder, compiled, share, team, stop, args, slices):
    """Have every thread of the team call its `_member`; raise what a kernel has raised when all have ended."""
    parallel, barrier, number, count, get, set_, threads = team
    context.active_code_library.add_linking_library(compiled.library)
    given = [args, stop, number, count, get, set_, barrier, slices]
    given += [_INT(0), ir.Constant(excinfo_ptr_t, None)]
    shared_type = ir.LiteralStructType([value.type for value in given] + [_ENVIRONMENT])
    member = _member(context, builder.module, shared_type, compiled, share)
    shared = cgutils.alloca_once(builder, shared_type)
    for k, value in enumerate(given):
        builder.store(value, _field(builder, shared, k))
    _call_address(builder, get, _INT, _environment(builder, shared))
    data, everyone = builder.bitcast(shared, _POINTER), builder.trunc(threads, _INT)
    _call_address(builder, parallel, _VOID, member, data, everyone, _INT(0))
    code, error = (builder.load(_field(builder, shared, k)) for k in (_CODE, _ERROR))
    status = context.call_conv._get_return_status(builder, code, error)
    with builder.if_then(status.is_error, likely=False):
        context.call_conv.return_status_propagate(builder, status)
    return context.get_dummy_value()


@intrinsic
def in_slices(typingctx, kernel, team, slices, stop, args):
    """``kernel(a, b, *args)`` for the slices of ``range(stop)``, side by side.

    ``team``: the `addresses` and the threads to ask for, which may be more or fewer than the slices. An exception in
    a slice is raised here when all have ended. What a thread does with denormal numbers, and the rest of its
    floating-point environment, is the caller's for as long as it works here.
    """
    of_kernel = kernel.get_call_type(typingctx, (types.intp, types.intp, *args.types), {})

    def share(builder, call, stop, number, count, barrier, slices):
        with cgutils.for_range_slice(builder, number, slices, count, _LONG) as (k, _):
            call(*(builder.sdiv(builder.mul(stop, edge), slices) for edge in (k, builder.add(k, _LONG(1)))))

    def codegen(context, builder, signature, values):
        _, team, slices, stop, args = values
        compiled = kernel.dispatcher.get_compile_result(of_kernel)
        team = cgutils.unpack_tuple(builder, team)
        return _in_team(context, builder, compiled, share, team, stop, args, slices)

    return types.void(kernel, team, types.intp, types.intp, args), codegen


@intrinsic
def together(typingctx, kernel, team, stop, args):
    """``kernel(0, stop, turn, *args)`` on every thread of the team at once; the rest as in `in_slices`.

    ``turn``: the thread's number, how many there are, and where they `wait` for each other. A kernel that raises an
    exception must do so in every thread, after as many waits: the others would wait for ever.
    """
    turn = types.UniTuple(types.intp, 3)
    of_kernel = kernel.get_call_type(typingctx, (types.intp, types.intp, turn, *args.types), {})

    def codegen(context, builder, signature, values):
        _, team, stop, args = values

        def share(builder, call, stop, number, count, barrier, slices):
            call(_LONG(0), stop, context.make_tuple(builder, turn, (number, count, barrier)))

        compiled = kernel.dispatcher.get_compile_result(of_kernel)
        team = cgutils.unpack_tuple(builder, team)
        return _in_team(context, builder, compiled, share, team, stop, args, _LONG(0))

    return types.void(kernel, team, types.intp, args), codegen


@intrinsic
def wait(typingctx, turn):
    """Go on when every thread of the team has come here, and see what each has written before."""

    def codegen(context, builder, signature, values):
        barrier = builder.extract_value(values[0], 2)
        with builder.if_then(builder.icmp_unsigned("!=", barrier, _LONG(0)), likely=False):
            _call_address(builder, barrier, _VOID)
        return context.get_dummy_value()

    return types.void(turn), codegen
