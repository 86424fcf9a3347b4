"""Vectors of numbers as values in compiled code: explicit SIMD, portable because LLVM splits what is too wide.

The compiler vectorises simple loops by itself, but not a loop that gathers through a permutation, nor one that holds
several results in registers while it goes over the copies of a memory. Those are written with these vectors.

A vector is what fits one register of this machine. Vectors are loaded from and stored to rows in one-dimensional
arrays: a row begins at index ``row`` and has ``count`` numbers, of which j, j + 1, ... are meant; lanes beyond
``count`` read as 0 and are not written. Nothing here checks that a row is inside the array: callers do, once, before
their loops.
"""

import operator

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

VECTOR_BYTES = 64 if llvm.get_host_cpu_features().get("avx512f") else 32


class Vector(types.Type):
    """As many numbers of one type as fit a register."""

    def __init__(self, element: types.Type, lanes: int) -> None:
        self.element = element
        self.lanes = lanes
        super().__init__(name=f"Vector({element}, {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        element = manager.lookup(vector.element).get_value_type()
        super().__init__(manager, vector, ir.VectorType(element, vector.lanes))


def lanes_of(element: types.Type) -> int:
    """How many numbers of this type make a vector."""
    return VECTOR_BYTES // (element.bitwidth // 8)


def _splat(builder, value, lanes):
    vector = ir.VectorType(value.type, lanes)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None))


def _mask(builder, j, count, lanes):
    """Which lanes j + 0, j + 1, ... are below count."""
    integer = ir.IntType(32)
    left = builder.trunc(builder.sub(count, j), integer)
    numbers = ir.Constant(ir.VectorType(integer, lanes), [integer(k) for k in range(lanes)])
    return builder.icmp_signed("<", numbers, _splat(builder, left, lanes))


def _call(builder, name, result, *args):
    kind = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


def _suffix(vector):
    bits = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64"}[str(vector.element)]
    return f"v{vector.count}{bits}"


def _pointer(context, builder, kind, value, row, j):
    array = context.make_array(kind)(context, builder, value)
    return builder.gep(array.data, [builder.add(row, j)])


@intrinsic
def width(typingctx, array):
    """The number of lanes of a vector of the array's numbers, a constant."""
    lanes = lanes_of(array.dtype)

    def codegen(context, builder, signature, args):
        return context.get_constant(types.intp, lanes)

    return types.intp(array), codegen


def _load(lanes, element):
    def codegen(context, builder, signature, args):
        value, row, j, count = args
        pointer = _pointer(context, builder, signature.args[0], value, row, j)
        vector = ir.VectorType(context.get_value_type(element), lanes)
        pointer = builder.bitcast(pointer, vector.as_pointer())
        size = ir.IntType(32)(element.bitwidth // 8)
        zeros = ir.Constant(vector, None)
        mask = _mask(builder, j, count, lanes)
        return _call(builder, f"llvm.masked.load.{_suffix(vector)}.p0", vector, pointer, size, mask, zeros)

    return codegen


@intrinsic
def load(typingctx, array, row, j, count):
    """array[row + j : row + j + lanes]."""
    lanes = lanes_of(array.dtype)
    return Vector(array.dtype, lanes)(array, types.intp, types.intp, types.intp), _load(lanes, array.dtype)


@intrinsic
def load_indices(typingctx, indices, row, j, count, like):
    """indices[row + j : row + j + lanes], int32, as many as there are lanes in a vector of the array ``like``."""
    lanes = lanes_of(like.dtype)
    signature = Vector(types.int32, lanes)(indices, types.intp, types.intp, types.intp, like)
    codegen = _load(lanes, types.int32)
    return signature, lambda context, builder, sig, args: codegen(context, builder, sig, args[:4])


@intrinsic
def store(typingctx, array, row, j, count, vector):
    """array[row + j : row + j + lanes] = vector."""

    def codegen(context, builder, signature, args):
        value, row, j, count, x = args
        pointer = _pointer(context, builder, signature.args[0], value, row, j)
        pointer = builder.bitcast(pointer, x.type.as_pointer())
        size = ir.IntType(32)(array.dtype.bitwidth // 8)
        mask = _mask(builder, j, count, vector.lanes)
        _call(builder, f"llvm.masked.store.{_suffix(x.type)}.p0", ir.VoidType(), x, pointer, size, mask)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.intp, vector), codegen


def _lanes(first, step, count):
    """The constant vector first, first + step, ..., for shuffles."""
    integer = ir.IntType(32)
    return ir.Constant(ir.VectorType(integer, count), [integer(first + step * k) for k in range(count)])


@intrinsic
def store_pairs(typingctx, array, row, j, count, re, im):
    """Store complex numbers with their two parts side by side, for `gather_pairs`: 2 count numbers from row on."""

    def codegen(context, builder, signature, args):
        value, row, j, count, x, y = args
        lanes = re.lanes
        two = row.type(2)
        pointer = _pointer(context, builder, signature.args[0], value, row, builder.mul(j, two))
        order = [k // 2 + (k % 2) * lanes for k in range(2 * lanes)]
        integer = ir.IntType(32)
        order = ir.Constant(ir.VectorType(integer, 2 * lanes), [integer(k) for k in order])
        pairs = builder.shuffle_vector(x, y, order)
        pointer = builder.bitcast(pointer, pairs.type.as_pointer())
        size = integer(array.dtype.bitwidth // 8)
        mask = _mask(builder, builder.mul(j, two), builder.mul(count, two), 2 * lanes)
        _call(
            builder, f"llvm.masked.store.{_suffix(pairs.type)}.p0", ir.VoidType(), pairs, pointer, size, mask
        )
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.intp, re, im), codegen


@intrinsic
def gather_pairs(typingctx, array, row, indices):
    """The complex numbers with these indices of what `store_pairs` has stored, as vectors of both parts.

    A pair of float32 is fetched as one number of 64 bits, which halves the work.
    """
    lanes = indices.lanes
    together = array.dtype == types.float32

    def codegen(context, builder, signature, args):
        value, row, index = args
        integer, wide = ir.IntType(64), ir.VectorType(ir.IntType(64), lanes)
        size = array.dtype.bitwidth // 8
        base = builder.ptrtoint(
            _pointer(context, builder, signature.args[0], value, row, integer(0)), integer
        )
        offsets = builder.mul(builder.sext(index, wide), _splat(builder, integer(2 * size), lanes))
        element = integer if together else context.get_value_type(array.dtype)
        vector = ir.VectorType(element, lanes)
        all_lanes = ir.Constant(ir.VectorType(ir.IntType(1), lanes), [ir.IntType(1)(1)] * lanes)

        def fetch(start):
            addresses = builder.add(_splat(builder, start, lanes), offsets)
            pointers = builder.inttoptr(addresses, ir.VectorType(element.as_pointer(), lanes))
            name = f"llvm.masked.gather.{_suffix(vector)}.v{lanes}p0"
            alignment = ir.IntType(32)(size)
            return _call(builder, name, vector, pointers, alignment, all_lanes, ir.Constant(vector, None))

        if together:
            pairs = builder.bitcast(fetch(base), ir.VectorType(ir.FloatType(), 2 * lanes))
            nothing = ir.Constant(pairs.type, ir.Undefined)
            parts = [builder.shuffle_vector(pairs, nothing, _lanes(k, 2, lanes)) for k in (0, 1)]
        else:
            parts = [fetch(base), fetch(builder.add(base, integer(size)))]
        return context.make_tuple(builder, signature.return_type, parts)

    part = Vector(array.dtype, lanes)
    return types.UniTuple(part, 2)(array, types.intp, indices), codegen


@intrinsic
def fill(typingctx, array, number):
    """A vector for the array's numbers with ``number`` in all lanes."""
    lanes = lanes_of(array.dtype)

    def codegen(context, builder, signature, args):
        return _splat(builder, context.cast(builder, args[1], signature.args[1], array.dtype), lanes)

    return Vector(array.dtype, lanes)(array, number), codegen


def _arithmetic(instruction):
    @intrinsic
    def operate(typingctx, a, b):
        def codegen(context, builder, signature, args):
            return getattr(builder, instruction)(*args, flags=["contract"])

        return a(a, b), codegen

    return operate


@intrinsic
def spread(typingctx, number, vector):
    """A vector like ``vector`` with ``number`` in all lanes."""

    def codegen(context, builder, signature, args):
        return _splat(builder, context.cast(builder, args[0], number, vector.element), vector.lanes)

    return vector(number, vector), codegen


def _overload_operator(symbol, instruction):
    operate = _arithmetic(instruction)

    @overload(symbol)
    def implementation(a, b):
        if isinstance(a, Vector) and isinstance(b, Vector):
            return lambda a, b: operate(a, b)
        if isinstance(a, Vector) and isinstance(b, types.Float):
            return lambda a, b: operate(a, spread(b, a))
        if isinstance(a, types.Float) and isinstance(b, Vector):
            return lambda a, b: operate(spread(a, b), b)
        return None


_overload_operator(operator.add, "fadd")
_overload_operator(operator.sub, "fsub")
_overload_operator(operator.mul, "fmul")
_overload_operator(operator.truediv, "fdiv")


@intrinsic
def sqrt(typingctx, a):
    """The square root of each number."""

    def codegen(context, builder, signature, args):
        return _call(builder, f"llvm.sqrt.{_suffix(args[0].type)}", args[0].type, args[0])

    return a(a), codegen


_APPROXIMATE = ("contract", "arcp", "afn", "reassoc")
"""Lets the compiler divide and take roots by an estimate and Newton's step: as exact in float32 but for the last bit
or two, and several times as fast. In float64 it does not."""


@intrinsic
def reciprocal(typingctx, a):
    """1 / a."""

    def codegen(context, builder, signature, args):
        one = _splat(builder, context.get_constant(a.element, 1), a.lanes)
        return builder.fdiv(one, args[0], flags=_APPROXIMATE)

    return a(a), codegen


@intrinsic
def reciprocal_sqrt(typingctx, a):
    """1 / sqrt(a), for a > 0."""

    def codegen(context, builder, signature, args):
        kind = args[0].type
        name = f"llvm.sqrt.{_suffix(kind)}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
        root = builder.call(function, args, fastmath=_APPROXIMATE)
        one = _splat(builder, context.get_constant(a.element, 1), a.lanes)
        return builder.fdiv(one, root, flags=_APPROXIMATE)

    return a(a), codegen


@intrinsic
def select_greater(typingctx, a, b, x, y):
    """x where a > b, and y elsewhere; a NaN is not greater."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return x(a, b, x, y), codegen


@intrinsic
def transpose(typingctx, source, at, stride, rows, count, target, target_at, target_stride):
    """target[target_at + j * target_stride + i] = source[at + i * stride + j], a square block of lanes x lanes.

    Only i < rows and j < count are read; what would come from other rows is written as 0, other j are not written.
    """
    lanes = lanes_of(source.dtype)
    kind = types.intp

    def codegen(context, builder, signature, args):
        source_value, at, stride, rows, count, target_value, target_at, target_stride = args
        integer = ir.IntType(32)
        vector = ir.VectorType(context.get_value_type(source.dtype), lanes)
        size, zeros = integer(source.dtype.bitwidth // 8), ir.Constant(vector, None)
        columns = _mask(builder, at.type(0), count, lanes)

        def pointer(array_kind, value, start, step, k):
            offset = builder.mul(step, step.type(k))
            return builder.bitcast(
                _pointer(context, builder, array_kind, value, start, offset), vector.as_pointer()
            )

        def these(k, limit):
            return _splat(builder, builder.icmp_signed("<", limit.type(k), limit), lanes)

        block = [
            _call(
                builder,
                f"llvm.masked.load.{_suffix(vector)}.p0",
                vector,
                pointer(signature.args[0], source_value, at, stride, i),
                size,
                builder.and_(columns, these(i, rows)),
                zeros,
            )
            for i in range(lanes)
        ]
        step = 1
        while step < lanes:  # swap the two off-diagonal parts of every square of 2 step x 2 step
            first = [k if k & step == 0 else lanes + k - step for k in range(lanes)]
            second = [k + step if k & step == 0 else lanes + k for k in range(lanes)]
            for i in range(lanes):
                if i & step == 0:
                    a, b = block[i], block[i + step]
                    block[i], block[i + step] = (
                        builder.shuffle_vector(
                            a, b, ir.Constant(ir.VectorType(integer, lanes), [integer(k) for k in order])
                        )
                        for order in (first, second)
                    )
            step *= 2
        for j in range(lanes):
            to = pointer(signature.args[5], target_value, target_at, target_stride, j)
            name = f"llvm.masked.store.{_suffix(vector)}.p0"
            _call(builder, name, ir.VoidType(), block[j], to, size, these(j, count))
        return context.get_dummy_value()

    return types.void(source, kind, kind, kind, kind, target, kind, kind), codegen
