"""Vectors of numbers as values in compiled code: explicit SIMD, portable because LLVM splits what is too wide.

The compiler vectorises simple loops by itself, but not a loop that reads through a permutation, nor one that holds
several results in registers while it goes over the copies of a memory. Those are written with these vectors.

A vector is what fits one register of this machine. Vectors are loaded from and stored to rows of one-dimensional
arrays: row k of ``count`` numbers begins at index k * count, and its numbers j, j + 1, ... are meant, as many as are
``left``; other lanes read as 0 and are not written. Where ``left`` is a constant, the width of a vector, the compiler
leaves out what tells lanes apart. Nothing here checks that a row is inside the array: callers do, once, before their
loops.
"""

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from associative_lstm.kernels.compiler.target import VECTOR_BYTES

_INT, _LONG = ir.IntType(32), ir.IntType(64)


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


def element_of(kind: types.Type) -> types.Type:
    """The type of a vector's numbers, or of a number itself."""
    return kind.element if isinstance(kind, Vector) else kind


def lanes_of(element: types.Type) -> int:
    """How many numbers of this type make a vector."""
    return VECTOR_BYTES // (element.bitwidth // 8)


def splat(builder, value, lanes):
    """The instructions for a vector of one number."""
    vector = ir.VectorType(value.type, lanes)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, _INT(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INT, lanes), None))


def call(builder, name, result, *args, **options):
    """The instructions for a function of LLVM's."""
    kind = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args, **options)


def suffix(vector):
    """How LLVM's functions are called for a type of vector."""
    bits = {"float": "f32", "double": "f64"}[str(vector.element)]
    return f"v{vector.count}{bits}"


def address(context, builder, array, value, *offsets):
    """The instructions for the address of a number of an array, whose index is the sum of the offsets."""
    pointer = context.make_array(array)(context, builder, value).data
    for offset in offsets:
        pointer = builder.gep(pointer, [offset])
    return pointer


def _numbers(values):
    return ir.Constant(ir.VectorType(_INT, len(values)), [_INT(value) for value in values])


def _below(builder, count, lanes):
    """Which of 0, 1, ... are below count."""
    return builder.icmp_signed("<", _numbers(range(lanes)), splat(builder, builder.trunc(count, _INT), lanes))


def _load(builder, pointer, vector, mask):
    pointer = builder.bitcast(pointer, vector.as_pointer())
    size, zeros = _INT(_bytes(vector)), ir.Constant(vector, None)
    return call(builder, f"llvm.masked.load.{suffix(vector)}.p0", vector, pointer, size, mask, zeros)


def _store(builder, pointer, x, mask):
    pointer = builder.bitcast(pointer, x.type.as_pointer())
    name = f"llvm.masked.store.{suffix(x.type)}.p0"
    call(builder, name, ir.VoidType(), x, pointer, _INT(_bytes(x.type)), mask)


def _bytes(vector):
    return {"float": 4, "double": 8}[str(vector.element)]


@intrinsic
def width(typingctx, array):
    """The number of lanes of a vector of the array's numbers, a constant."""
    lanes = lanes_of(array.dtype)
    return types.intp(array), lambda context, *_: context.get_constant(types.intp, lanes)


@intrinsic
def load(typingctx, array, k, j, count, left):
    """Numbers j, j + 1, ... of row k."""
    lanes = lanes_of(array.dtype)

    def codegen(context, builder, signature, args):
        value, k, j, count, left = args
        pointer = address(context, builder, array, value, builder.mul(k, count), j)
        vector = ir.VectorType(context.get_value_type(array.dtype), lanes)
        return _load(builder, pointer, vector, _below(builder, left, lanes))

    return Vector(array.dtype, lanes)(array, *(types.intp,) * 4), codegen


@intrinsic
def store(typingctx, array, k, j, count, left, vector):
    """Numbers j, j + 1, ... of row k become those of the vector."""

    def codegen(context, builder, signature, args):
        value, k, j, count, left, x = args
        pointer = address(context, builder, array, value, builder.mul(k, count), j)
        _store(builder, pointer, x, _below(builder, left, vector.lanes))
        return context.get_dummy_value()

    return types.void(array, *(types.intp,) * 4, vector), codegen


@intrinsic
def store_pairs(typingctx, array, k, j, count, left, re, im):
    """Store complex numbers with their two parts side by side: in row k and the next."""

    def codegen(context, builder, signature, args):
        value, k, j, count, left, x, y = args
        j, left = (builder.mul(number, number.type(2)) for number in (j, left))
        pointer = address(context, builder, array, value, builder.mul(k, count), j)
        _store(builder, pointer, _interleaved(builder, x, y, 1), _below(builder, left, 2 * re.lanes))
        return context.get_dummy_value()

    return types.void(array, *(types.intp,) * 4, re, im), codegen


@intrinsic
def store_fours(typingctx, array, k, j, count, left, p, q, r, s):
    """Store four rows for `load_fours`, in rows k to k + 3: the numbers of a column side by side."""

    def codegen(context, builder, signature, args):
        value, k, j, count, left, *parts = args
        j, left = (builder.mul(number, number.type(4)) for number in (j, left))
        pointer = address(context, builder, array, value, builder.mul(k, count), j)
        pairs = [_interleaved(builder, *two, 1) for two in (parts[:2], parts[2:])]
        fours = _interleaved(builder, *pairs, 2)
        _store(builder, pointer, fours, _below(builder, left, 4 * p.lanes))
        return context.get_dummy_value()

    return types.void(array, *(types.intp,) * 4, p, q, r, s), codegen


@intrinsic
def load_fours(typingctx, array, k, count, indices, at):
    """Four vectors of what `store_fours` has stored in row k: of the columns a quarter of indices[at], [at + 1], ...

    One load fetches the four numbers of a column. Indices have to be there for all lanes.
    """
    lanes = lanes_of(array.dtype)

    def codegen(context, builder, signature, args):
        value, k, count, indices_value, at = args
        base = address(context, builder, array, value, builder.mul(k, count))
        first = address(context, builder, indices, indices_value, at)
        four = ir.VectorType(context.get_value_type(array.dtype), 4)
        columns = []
        for lane in range(lanes):
            index = builder.sext(builder.load(builder.gep(first, [_LONG(lane)])), _LONG)
            pointer = builder.gep(base, [index])
            columns.append(
                builder.load(builder.bitcast(pointer, four.as_pointer()), align=array.dtype.bitwidth // 8)
            )
        parts = _transposed(builder, columns)
        return context.make_tuple(builder, signature.return_type, parts)

    part = Vector(array.dtype, lanes)
    return types.UniTuple(part, 4)(array, types.intp, types.intp, indices, types.intp), codegen


def _interleaved(builder, a, b, size):
    """``size`` numbers of a, as many of b, the next ones of a, ..."""
    lanes = a.type.count
    order = [
        lane + of * lanes
        for start in range(0, lanes, size)
        for of in (0, 1)
        for lane in range(start, start + size)
    ]
    return builder.shuffle_vector(a, b, _numbers(order))


def _joined(builder, vectors):
    """Vectors, 2^k of them, as one long one."""
    while len(vectors) > 1:
        lanes = vectors[0].type.count
        vectors = [
            _interleaved(builder, a, b, lanes) for a, b in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    return vectors[0]


def _transposed(builder, fours):
    """Of vectors of four numbers, all first ones, all second ones, and so on.

    In squares of four by four, each within 16 bytes of a register if it can be: only such shuffles are cheap.
    """
    if len(fours) < 4:
        both = _joined(builder, fours)
        return [
            builder.shuffle_vector(both, both, _numbers(range(part, both.type.count, 4))) for part in range(4)
        ]
    a, b, c, d = (_joined(builder, fours[k::4]) for k in range(4))
    lanes = len(fours)

    def pick(x, y, *order):
        squares = range(0, lanes, 4)
        return builder.shuffle_vector(
            x, y, _numbers([start + of * lanes + k for start in squares for of, k in order])
        )

    low, high = ((0, 0), (1, 0), (0, 1), (1, 1)), ((0, 2), (1, 2), (0, 3), (1, 3))
    first, second = ((0, 0), (0, 1), (1, 0), (1, 1)), ((0, 2), (0, 3), (1, 2), (1, 3))
    return [
        pick(pick(a, b, *half), pick(c, d, *half), *which)
        for half in (low, high)
        for which in (first, second)
    ]


@intrinsic
def fill(typingctx, array, number):
    """A vector for the array's numbers with ``number`` in all lanes."""
    lanes = lanes_of(array.dtype)

    def codegen(context, builder, signature, args):
        return splat(builder, context.cast(builder, args[1], number, array.dtype), lanes)

    return Vector(array.dtype, lanes)(array, number), codegen


@intrinsic
def spread(typingctx, number, like):
    """``number`` in all lanes of a vector like ``like``, or as a number of its type."""

    def codegen(context, builder, signature, args):
        value = context.cast(builder, args[0], number, element_of(like))
        return splat(builder, value, like.lanes) if isinstance(like, Vector) else value

    return like(number, like), codegen


def _overload_operator(symbol, instruction):
    """As an instruction of its own, not by `overload`, which compiles a function for each pair of types."""

    @infer_global(symbol)
    class _Typed(AbstractTemplate):
        def generic(self, args, kws):
            vectors = [arg for arg in args if isinstance(arg, Vector)]
            others = [arg for arg in args if arg not in vectors]
            if len(args) == 2 and vectors and all(isinstance(arg, types.Float) for arg in others):
                return signature(vectors[0], *args)
            return None

    def operate(context, builder, sig, args):
        vector, both = sig.return_type, zip(args, sig.args, strict=True)
        values = [
            value
            if isinstance(kind, Vector)
            else splat(builder, context.cast(builder, value, kind, vector.element), vector.lanes)
            for value, kind in both
        ]
        return getattr(builder, instruction)(*values, flags=["contract"])

    for kinds in ((Vector, Vector), (Vector, types.Float), (types.Float, Vector)):
        lower_builtin(symbol, *kinds)(operate)


_overload_operator(operator.add, "fadd")
_overload_operator(operator.sub, "fsub")
_overload_operator(operator.mul, "fmul")
_overload_operator(operator.truediv, "fdiv")


@intrinsic
def sqrt(typingctx, a):
    """The square root of each number."""

    def codegen(context, builder, signature, args):
        return call(builder, f"llvm.sqrt.{suffix(args[0].type)}", args[0].type, *args)

    return a(a), codegen


_APPROXIMATE = ("contract", "arcp", "afn", "reassoc")
"""Lets the compiler divide and take roots by an estimate and Newton's step: as exact in float32 but for the last bit
or two, and several times as fast. In float64 it does not."""


@intrinsic
def reciprocal(typingctx, a):
    """1 / a, of a vector or a number; approximate in a vector."""

    def codegen(context, builder, signature, args):
        one = context.get_constant(element_of(a), 1)
        if isinstance(a, Vector):
            return builder.fdiv(splat(builder, one, a.lanes), *args, flags=_APPROXIMATE)
        return builder.fdiv(one, *args)

    return a(a), codegen


@intrinsic
def reciprocal_sqrt(typingctx, a):
    """1 / sqrt(a), for a > 0, approximate."""

    def codegen(context, builder, signature, args):
        kind = args[0].type
        root = call(builder, f"llvm.sqrt.{suffix(kind)}", kind, *args, fastmath=_APPROXIMATE)
        one = splat(builder, context.get_constant(a.element, 1), a.lanes)
        return builder.fdiv(one, root, flags=_APPROXIMATE)

    return a(a), codegen


@intrinsic
def select_greater(typingctx, a, b, x, y):
    """x where a > b, and y elsewhere; a NaN is not greater. Of vectors or of numbers."""

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
        from_value, at, stride, rows, count, to_value, to, to_stride = args
        vector = ir.VectorType(context.get_value_type(source.dtype), lanes)
        columns = _below(builder, count, lanes)

        def times(step, i):
            return builder.mul(step, step.type(i))

        def these(i, limit):
            return splat(builder, builder.icmp_signed("<", limit.type(i), limit), lanes)

        block = []
        for i in range(lanes):
            pointer = address(context, builder, source, from_value, at, times(stride, i))
            block.append(_load(builder, pointer, vector, builder.and_(columns, these(i, rows))))
        step = 1
        while step < lanes:  # swap the two off-diagonal parts of every square of 2 step x 2 step
            first = _numbers([k if k & step == 0 else lanes + k - step for k in range(lanes)])
            second = _numbers([k + step if k & step == 0 else lanes + k for k in range(lanes)])
            for i in range(lanes):
                if i & step == 0:
                    pair = block[i], block[i + step]
                    block[i] = builder.shuffle_vector(*pair, first)
                    block[i + step] = builder.shuffle_vector(*pair, second)
            step *= 2
        for j in range(lanes):
            pointer = address(context, builder, target, to_value, to, times(to_stride, j))
            _store(builder, pointer, block[j], these(j, count))
        return context.get_dummy_value()

    return types.void(source, kind, kind, kind, kind, target, kind, kind), codegen
