r"""What an Associative LSTM wrote, kept and recalled: every gate and key, and which write each read recalls.

Before the bound, a read is linear in what was written. With :math:`G_{k \to t}` the product of the forget gates of
steps k + 1 to t,

.. math::
    q_t = \frac{1}{N_{copies}} \sum_s (P_s r_{o,t}) \circledast c_{s,t}
        = \sum_{k \le t} \underbrace{G_{k \to t} \odot (g_{i,k} \odot u_k) \circledast
          \frac{1}{N_{copies}} \sum_s (P_s r_{o,t}) \circledast (P_s r_{i,k})}_{\text{part}(t, k)}
        + \text{what the initial state left}

so a read falls into one vector per earlier write and head, and these add up to it. Given the bound's divisor and the
output gate, which are the same for all of them, so do the output and, through a linear readout, every logit. None of
it is an approximation.

Everything here is computed in float64, whatever the layer's type, without gradients, and without dropout.

Time and batch stand where they stand in the layer's output: ``(T, B, ...)``; ``(B, T, ...)`` with ``batch_first``;
``(T, ...)`` for a single sequence. A packed input gives what a padded one would, zero beyond the end of an item.
Where a layer is several, stacked or in two directions, there is one result for each, in the order of ``h_n``.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from associative_lstm import functional as F
from associative_lstm.kernels.associative import Inputs, reference
from associative_lstm.nn import AssociativeLSTM
from associative_lstm.nn.checks import check_steps, float_precision

__all__ = [
    "Attribution",
    "Inside",
    "Recall",
    "Split",
    "attribute",
    "last_layer",
    "look",
    "recall",
    "separate",
]

State = tuple[Tensor, Tensor]
Reads = int | slice | Sequence[int]


class Inside(NamedTuple):
    """One layer in one direction, step by step, by the letters of its equations."""

    g_f: Tensor
    """Forget gate, ``(T, B, N/2)``."""
    g_i: Tensor
    """Input gates, ``(T, B, heads, N/2)``."""
    g_o: Tensor
    """Output gates, ``(T, B, heads, N/2)``."""
    r_i: Tensor
    """Input keys, ``(T, B, heads, N)``."""
    r_o: Tensor
    """Output keys, ``(T, B, heads, N)``."""
    u: Tensor
    """Updates, ``(T, B, heads, N)``."""
    c: Tensor
    """The memory after the step, ``(T, B, copies, N)``."""
    q: Tensor
    """What is read of it, before the bound, ``(T, B, heads, N)``."""
    h: Tensor
    """The output, ``(T, B, heads, N)``."""


class Recall(NamedTuple):
    """Of every read, the share of every write; what comes later has none."""

    writes: Tensor
    """``(reads, B, heads, T, heads)``: the head that reads, the step that wrote, and the head that wrote then."""
    initial: Tensor
    """The share of what the initial state left, ``(reads, B, heads)``."""


class Attribution(NamedTuple):
    """A logit by the writes it was read from, in bits. D = 2 directions if the layer is bidirectional, else 1."""

    writes: Tensor
    """``(reads, B, D * heads, T, heads)``: the head that reads, the step that wrote, and the head that wrote then."""
    initial: Tensor
    """What the initial state left, ``(reads, B, D * heads)``."""
    bias: Tensor
    """The readout's own, and in a residual stack what comes to it around the last layer, ``(reads, B)``."""

    @property
    def total(self) -> Tensor:
        """The logit, ``(reads, B)``."""
        return self.writes.sum((-3, -2, -1)) + self.initial.sum(-1) + self.bias


class Split(NamedTuple):
    """A read as two vectors that add up to it, each ``(reads, B, heads, N)``."""

    signal: Tensor
    """What the write that was meant has given."""
    interference: Tensor
    """What all the others, and the initial state, have added."""


def look(layer: AssociativeLSTM, x: Tensor | PackedSequence, state: State | None = None) -> list[Inside]:
    """Gates, keys, updates, memory, reads and outputs of every step.

    >>> layer = AssociativeLSTM(10, 64, num_copies=4, num_heads=3)
    >>> [inside] = look(layer, torch.randn(20, 2, 10))
    >>> inside.g_f.shape, inside.r_i.shape, inside.c.shape
    (torch.Size([20, 2, 32]), torch.Size([20, 2, 3, 64]), torch.Size([20, 2, 4, 64]))
    """
    fed = _Fed(layer, x, state)
    return [Inside(*(fed.give(fed.turn(tensor, p.reverse)) for tensor in p.inside)) for p in fed.passes()]


def recall(
    layer: AssociativeLSTM,
    x: Tensor | PackedSequence,
    state: State | None = None,
    reads: Reads | None = None,
) -> list[Recall]:
    r"""Of every read, the share of every earlier write: its projection on the read, :math:`\langle q_t,
    \text{part}(t, k) \rangle / |q_t|^2`.

    Shares are signed, and those of a read add up to 1, with that of the initial state (to 0 where the read is zero).

    Args:
        layer, x, state: as they would be called.
        reads: the steps whose reads are asked for; all if not given. The result is as large as they are many.

    >>> layer = AssociativeLSTM(10, 64, num_copies=4)
    >>> [shares] = recall(layer, torch.randn(20, 10), reads=[-1])
    >>> shares.writes.shape
    torch.Size([1, 1, 20, 1])
    >>> round(shares.writes.sum().item(), 9)
    1.0
    """
    fed = _Fed(layer, x, state)
    steps = _steps(reads, fed.steps)

    def shares(p: _Pass) -> Recall:
        q = _complex(fed.turn(p.inside.q, p.reverse))[steps]
        square = q.abs().square().sum(-1, keepdim=True)
        return Recall(*fed.project(p, steps, q / square.masked_fill(square == 0, 1)))

    return [Recall(*map(fed.give, shares(p))) for p in fed.passes()]


def attribute(
    model: Any,
    x: Tensor | PackedSequence,
    symbol: int | Tensor,
    state: Sequence[Any] | None = None,
    reads: Reads | None = None,
    *,
    against: int | str | None = None,
) -> Attribution:
    r"""Of a symbol's logit at every read, what each earlier write has given to it, in bits.

    With w the symbol's row of the readout and d what the bound divides the read by, it is :math:`\langle w \odot
    g_{o,t} \oslash d_t, \text{part}(t, k) \rangle`. The writes are those of the last layer.

    Args:
        model: has ``layers``, networks each reading the output of the one before, the last an `AssociativeLSTM`, and
            ``readout``, an `nn.Linear` on it: such as the lab's SequenceModel. If it is ``residual``, the layers
            above the first add what they read to what they give.
        x: what the model reads: vectors, or symbols (whole numbers), which become one-hot vectors.
        symbol: one for all reads, or a tensor with one for each, ``(reads, B)``.
        state: the states of the ``layers``.
        reads: the steps whose logits are asked for; all if not given.
        against: the logit less that of another symbol (their odds), or with ``"mean"`` less the mean of all logits.

    >>> model = nn.Module()
    >>> model.layers = nn.ModuleList([AssociativeLSTM(10, 64, num_copies=4)])
    >>> model.readout = nn.Linear(64, 10)
    >>> parts = attribute(model, torch.tensor([3, 1, 4, 1, 5]), symbol=4, reads=[-1])
    >>> parts.writes.shape, parts.total.shape
    (torch.Size([1, 1, 5, 1]), torch.Size([1]))
    """
    layer, *given = last_layer(model, x, state)
    fed = _Fed(layer, *given)
    steps = _steps(reads, fed.steps)
    weight, bias = _rows(model.readout, fed.take(symbol, len(steps)), against)
    passes = list(fed.passes())[-(2 if layer.bidirectional else 1) :]
    if fed.around is not None:
        bias = bias + (weight * fed.around[steps]).sum(-1)
    if _is_residual(model):
        bias = bias + (weight * fed.x[steps]).sum(-1)
    parts = []
    for p, w in zip(passes, weight.chunk(len(passes), -1), strict=True):
        q, g_o = (fed.turn(tensor, p.reverse)[steps] for tensor in (p.inside.q, p.inside.g_o))
        m = F.modulus(q)
        scale = torch.where(m == 0, 1, F.modulus(reference.ACTIVATIONS[layer.activation](q)) / m)
        d = g_o * scale * _complex(w.unflatten(-1, (layer.num_heads, -1)))
        parts.append(fed.project(p, steps, d))
    writes, initial = (torch.cat(both, 2) for both in zip(*parts, strict=True))
    return Attribution(*(fed.give(tensor) / math.log(2) for tensor in (writes, initial, bias)))


def separate(
    layer: AssociativeLSTM,
    x: Tensor | PackedSequence,
    meant: Tensor,
    state: State | None = None,
    reads: Reads | None = None,
) -> list[Split]:
    """Every read as signal and interference: what the write that was meant gives to it, and all the others.

    Args:
        layer, x, state, reads: as of `recall`.
        meant: of every read the step whose write was meant, ``(reads, B)``. One that has not been made by then gives
            nothing.

    >>> layer = AssociativeLSTM(10, 64, num_copies=4)
    >>> [split] = separate(layer, torch.randn(20, 10), meant=torch.tensor([7]), reads=[-1])
    >>> split.signal.shape, split.interference.shape
    (torch.Size([1, 1, 64]), torch.Size([1, 1, 64]))
    """
    fed = _Fed(layer, x, state)
    steps = _steps(reads, fed.steps)
    which = fed.take(meant, len(steps))
    if bool(((which < 0) | (which >= fed.steps)).any()):
        raise ValueError(f"meant: expected steps from 0 to {fed.steps - 1}")
    results = []
    for p in fed.passes():
        q = fed.turn(p.inside.q, p.reverse)[steps]
        signal = torch.zeros_like(q)
        for b in range(q.shape[1]):
            for i, t, parts, _ in fed.parts(p, b, steps):
                k = fed.place(int(which[i, b]), b, p.reverse)
                if 0 <= k <= t:
                    signal[i, b] = _pair(parts[:, k].sum(1))
        results.append(Split(fed.give(signal), fed.give(q - signal)))
    return results


class _Pass(NamedTuple):
    """One layer in one direction, its steps in the order in which it reads them."""

    inside: Inside
    c_0: Tensor
    permutations: Tensor
    angles: Tensor | None
    reverse: bool


class _Fed:
    """A layer and its input: ``(T, B, input)``, the length of every item, and the way back to the caller's layout."""

    def __init__(self, layer: AssociativeLSTM, x: Tensor | PackedSequence, state: State | None) -> None:
        if not isinstance(layer, AssociativeLSTM):
            raise TypeError(f"layer: expected an AssociativeLSTM, got {type(layer).__name__}")
        layer._check_input(x)
        self.layer = layer
        self._single = isinstance(x, Tensor) and x.dim() == 2
        self._batch_first = layer.batch_first and not self._single
        lengths = None
        if isinstance(x, PackedSequence):
            padded, lengths = pad_packed_sequence(x)
        elif self._single:
            padded = x.unsqueeze(1)
        else:
            padded = x.transpose(0, 1) if layer.batch_first else x
        check_steps(padded, 0)
        self.x = padded.detach().double()
        self.steps, batch = self.x.shape[:2]
        self.lengths = torch.full((batch,), self.steps) if lengths is None else lengths
        t = torch.arange(self.steps).unsqueeze(1)
        self._mirror = torch.where(t < self.lengths, self.lengths - 1 - t, t).to(self.x.device)
        self._read = (t < self.lengths).to(self.x.device)  # (T, B)
        self.state = None if state is None else self._checked(state, batch)
        self.around: Tensor | None = None  # what is added to what the last layer gives

    def _checked(self, state: State, batch: int) -> State:
        self.layer._check_state(state, () if self._single else (batch,))
        h, c = (part.detach().double() for part in state)
        return (h.unsqueeze(1), c.unsqueeze(1)) if self._single else (h, c)

    def turn(self, tensor: Tensor, reverse: bool) -> Tensor:
        """Between the order of time and the order in which a direction reads, either way."""
        if not reverse:
            return tensor
        index = self._mirror.view(*self._mirror.shape, *[1] * (tensor.dim() - 2))
        return tensor.gather(0, index.expand_as(tensor))

    def place(self, t: int, b: int, reverse: bool) -> int:
        """Where step t of item b stands in the order in which a direction reads; -1 where the item has ended."""
        length = int(self.lengths[b])
        return -1 if t >= length else length - 1 - t if reverse else t

    def give(self, tensor: Tensor) -> Tensor:
        """From ``(T, B, ...)`` to the caller's layout."""
        return tensor.squeeze(1) if self._single else tensor.transpose(0, 1) if self._batch_first else tensor

    def take(self, numbers: int | Tensor, reads: int) -> Tensor:
        """A whole number for every read, ``(reads, B)``, from the caller's layout or from one for all."""
        shape = reads, self.x.shape[1]
        if not isinstance(numbers, Tensor):
            return torch.full(shape, numbers)
        expected = shape[:1] if self._single else (shape[1], shape[0]) if self._batch_first else shape
        if tuple(numbers.shape) != expected or numbers.is_floating_point():
            raise ValueError(
                f"expected whole numbers of shape {expected}, one for every read, "
                f"got {numbers.dtype} of shape {tuple(numbers.shape)}"
            )
        numbers = numbers.unsqueeze(1) if self._single else numbers
        return numbers.transpose(0, 1) if self._batch_first else numbers

    @torch.no_grad()
    def passes(self) -> Iterator[_Pass]:
        """All layers and directions, each fed by those below."""
        layer, x = self.layer, self.x
        directions = ("", "_reverse") if layer.bidirectional else ("",)
        for k in range(layer.num_layers):
            outputs = []
            for d, direction in enumerate(directions):
                p = self._follow(x, f"_l{k}{direction}", k * len(directions) + d, bool(direction))
                outputs.append(self.turn(p.inside.h.flatten(2), p.reverse))
                yield p
            below, x = x, torch.cat(outputs, -1)
            if layer.residual and k:
                self.around, x = below, x + below

    def _follow(self, x: Tensor, suffix: str, index: int, reverse: bool) -> _Pass:
        """The layer's recurrence, and from the outputs before each step everything that was in it."""
        layer, batch = self.layer, x.shape[1]

        def own(name: str) -> Any:
            tensor = getattr(layer, f"{name}{suffix}", None)
            return None if tensor is None else tensor.detach().double()

        weight_ih, weight_hh, bias, angles = map(own, ("weight_ih", "weight_hh", "bias", "angles"))
        permutations = getattr(layer, f"permutations{suffix}")
        F.check_permutations("permutations", permutations)
        if self.state is not None:
            h, c_0 = self.state[0][index], self.state[1][index]
        else:
            h, c_0 = (part.detach().double() for part in layer._initial_state(suffix, batch))
        x, rows, heads = self.turn(x, reverse), layer.rows, layer.num_heads
        turns = reference.turns_of(angles, permutations)
        with float_precision(x):
            inputs = Inputs(x, h, c_0, weight_ih, weight_hh, bias, permutations, None, turns)
            all_h, _, _, c = reference.sequence(inputs, heads, layer.activation, reverse=False)
            before = torch.cat([h.unsqueeze(0), all_h[:-1]])
            z = nn.functional.linear(x, weight_ih, bias) + reference.recurrent(before, weight_hh, rows.total)
            blocks = (rows.input, rows.output, rows.input_key, rows.output_key, rows.update)
            g_i, g_o, *pairs = (z[..., block].unflatten(-1, (heads, -1)) for block in blocks)
            r_i, r_o, u = map(reference.ACTIVATIONS[layer.activation], pairs)
            q = F.bind(F.permute(r_o, permutations), c.unsqueeze(-3)).mean(-2)
            gates = map(torch.sigmoid, (z[..., rows.forget], g_i, g_o))
            kept = (*gates, r_i, r_o, u, c, q, all_h.unflatten(-1, (heads, -1)))
        beyond = ~self._read
        inside = Inside(*(tensor.masked_fill(_like(beyond, tensor), 0) for tensor in kept))
        return _Pass(inside, c_0, permutations, angles, reverse)

    def parts(self, p: _Pass, b: int, steps: Sequence[int]) -> Iterator[tuple[int, int, Tensor, Tensor]]:
        """The vectors that a read of item b is the sum of.

        Gives, for every one of ``steps`` (of time) that the item has, where it stands among them, its place t in the
        order of reading, the parts ``(heads, t + 1, heads, N/2)``, complex, of the writes in that order, and what the
        initial state left, ``(heads, N/2)``.
        """
        wanted: dict[int, list[int]] = {}
        for i, step in enumerate(steps):
            wanted.setdefault(self.place(step, b, p.reverse), []).append(i)
        g_f, g_i, _, r_i, r_o, u, *_ = (tensor[:, b] for tensor in p.inside)
        r_i, r_o, v = _complex(r_i), _complex(r_o), g_i * _complex(u)
        half = r_i.shape[-1]
        if p.angles is not None:  # a write turns as long as it is kept: by the read's angle less its own
            turned = torch.outer(torch.arange(1, len(r_i) + 1).to(p.angles), p.angles)[:, None]
            r_i = r_i * torch.polar(torch.ones_like(turned), -turned)
            r_o = r_o * torch.polar(torch.ones_like(turned), turned)
        # (1/S) sum_s (P_s a)[j] = (a @ mix)[j]
        mix = torch.zeros(half, half, dtype=g_f.dtype, device=g_f.device)
        ones = torch.ones_like(p.permutations, dtype=g_f.dtype)
        columns = torch.arange(half, device=mix.device).expand_as(ones)
        mix.index_put_((p.permutations, columns), ones / len(p.permutations), accumulate=True)
        kept, left = torch.ones_like(g_f), _complex(p.c_0[b])
        for t in range(max(wanted, default=-1) + 1):
            kept[:t] *= g_f[t]
            left = g_f[t] * left
            if t not in wanted:
                continue
            keys = r_o[t, :, None, None] * r_i[: t + 1]
            parts = torch.complex(keys.real @ mix, keys.imag @ mix) * (kept[: t + 1, None] * v[: t + 1])
            initial = (r_o[t][:, p.permutations] * left).mean(1)
            for i in wanted[t]:
                yield i, t, parts, initial

    @torch.no_grad()
    def project(self, p: _Pass, steps: Sequence[int], d: Tensor) -> tuple[Tensor, Tensor]:
        """Re<d, part> for every part of every read, d ``(reads, B, heads, N/2)``.

        Of the writes, in the order of time, ``(reads, B, heads, T, heads)``, and of the initial state.
        """
        heads = d.shape[2]
        writes = torch.zeros(*d.shape[:2], heads, self.steps, heads, dtype=self.x.dtype, device=self.x.device)
        initials = writes.new_zeros(d.shape[:3])
        for b in range(d.shape[1]):
            length = int(self.lengths[b])
            for i, t, parts, initial in self.parts(p, b, steps):
                row = torch.einsum("hn,hkwn->hkw", d[i, b].conj(), parts).real
                where = slice(length - 1 - t, length) if p.reverse else slice(t + 1)
                writes[i, b, :, where] = row.flip(1) if p.reverse else row
                initials[i, b] = (d[i, b].conj() * initial).sum(-1).real
        return writes, initials


def last_layer(
    model: Any, x: Tensor | PackedSequence, state: Sequence[Any] | None = None
) -> tuple[Any, Any, Any]:
    """The last layer of a model, what it reads, and its state, in float64; arguments as of `attribute`.

    >>> model = nn.Module()
    >>> model.layers = nn.ModuleList([AssociativeLSTM(10, 64), AssociativeLSTM(64, 32)])
    >>> model.readout = nn.Linear(32, 10)
    >>> layer, read, _ = last_layer(model, torch.tensor([3, 1, 4, 1, 5]))
    >>> layer.hidden_size, read.shape
    (32, torch.Size([5, 64]))
    """
    if not hasattr(model, "layers") or not isinstance(getattr(model, "readout", None), nn.Linear):
        raise TypeError(f"model: expected `layers` and a linear `readout`, got {type(model).__name__}")
    weight = model.readout.weight
    if not x.data.is_floating_point():
        codes = torch.eye(model.layers[0].input_size, dtype=weight.dtype, device=weight.device)
        x = _mapped(x, lambda symbols: codes[symbols.long()])
    x = _mapped(x, Tensor.double)
    *below, last = (copy.deepcopy(layer).double().eval() for layer in model.layers)
    states = [None] * len(model.layers) if state is None else [_doubled(part) for part in state]
    for k, (layer, given) in enumerate(zip(below, states, strict=False)):
        with torch.no_grad():
            before, x = x, layer(x, given)[0]
        if _is_residual(model) and k:
            x = _mapped(x, before.data.add)
    return last, x, states[-1]


def _is_residual(model: Any) -> bool:
    """Whether its layers above the first add what they read to what they give."""
    return getattr(model, "residual", False) is True and len(model.layers) > 1


def _rows(readout: nn.Linear, symbols: Tensor, against: int | str | None) -> tuple[Tensor, Tensor]:
    """The rows and biases of the readout that make the logits asked for."""
    weight = readout.weight.detach().double()
    bias = weight.new_zeros(len(weight)) if readout.bias is None else readout.bias.detach().double()
    asked = [symbols] if not isinstance(against, int) else [symbols, torch.tensor(against)]
    if any(bool(((number < 0) | (number >= len(weight))).any()) for number in asked):
        raise ValueError(f"symbol: expected numbers from 0 to {len(weight) - 1}, the logits that there are")
    rows, biases = weight[symbols], bias[symbols]
    if against is None:
        return rows, biases
    if against == "mean":
        return rows - weight.mean(0), biases - bias.mean()
    if not isinstance(against, int):
        raise ValueError(f"against: expected a symbol, 'mean' or None, got {against!r}")
    return rows - weight[against], biases - bias[against]


def _steps(reads: Reads | None, steps: int) -> list[int]:
    if reads is None:
        return list(range(steps))
    if isinstance(reads, slice):
        return list(range(steps)[reads])
    numbers = [reads] if isinstance(reads, int) else [int(t) for t in reads]
    if strange := [t for t in numbers if not -steps <= t < steps]:
        raise ValueError(f"reads: expected steps of a sequence of {steps}, got {strange[0]}")
    return [t % steps for t in numbers]


def _mapped(x: Any, change: Callable[[Tensor], Tensor]) -> Any:
    return x._replace(data=change(x.data)) if isinstance(x, PackedSequence) else change(x)


def _doubled(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.double()
    return tuple(_doubled(part) for part in state)


def _complex(pair: Tensor) -> Tensor:
    return torch.complex(*(half.contiguous() for half in pair.chunk(2, -1)))


def _pair(z: Tensor) -> Tensor:
    return torch.cat([z.real, z.imag], -1)


def _like(mask: Tensor, tensor: Tensor) -> Tensor:
    return mask.view(*mask.shape, *[1] * (tensor.dim() - 2))
