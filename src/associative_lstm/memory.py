r"""A key-value memory without locations: holographic traces in redundant copies (section 3 of the paper).

Copy s keeps one trace, the sum of all items bound to their keys as that copy permutes them; reading unbinds
with the conjugate key and averages over the copies:

.. math::
    c_s = \sum_k (P_s r_k) \circledast x_k
    \qquad
    \tilde x_k = \frac{1}{N_{copies}} \sum_s \overline{(P_s r_k)} \circledast c_s = x_k + noise

Keys and values are real pairs, as in `associative_lstm.functional`.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from associative_lstm.functional import (
    are_shifts,
    check_count,
    check_permutation_kind,
    check_size,
    random_permutations,
    shift_permutations,
)

__all__ = ["HolographicMemory", "expected_error"]

# Permuted keys are gathered for so many numbers at a time: few enough to stay in a core's cache.
BLOCK = 1 << 18

# Copies added later join the average when they lead from the value back to its key by so many deviations.
EVIDENCE = 5.0

# ... unless what they read differs from what the older copies read by so many deviations, and by such a part of it.
DIFFERENCE = 3.0
PART = 0.1


class _Sums(NamedTuple):
    """Over some copies: of what they read, of its squared modulus, and of the copies that know each position."""

    total: Tensor
    squares: Tensor
    known_by: Tensor


class HolographicMemory(nn.Module):
    r"""Store key-value pairs in ``num_copies`` superposed traces; more copies, less noise.

    Writing is an addition: there is no search for a free location, the order of writes does not matter,
    writing ``-value`` under the same key takes an item out again (`resize` says what becomes of this when
    copies were added in between), and any number of items fits, at the cost of noise: `expected_error` tells
    how much. What is kept is the traces alone, however many items were
    written. Nothing is learned here: traces and permutations are buffers (saved by ``state_dict``, moved by
    ``to``), and gradients flow through `read` to the key but not into what was written.

    Args:
        size: N, the real numbers of a key or a value, half of them real parts and half imaginary; even.
        num_copies: the number of traces, each with its own constant permutation of the key.
        permutation: ``"random"`` (the paper's), or ``"shift"``: cyclic shifts by distinct offsets. No two copies then
            have the same element of a key at the same place, and as many copies as complex numbers in a key average
            noise without a floor: see `expected_error`.
        batch_shape: a batch of independent memories (with the same permutations) in one object; by default one
            memory.
        generator: draws the permutations, now and in `resize`.
        dtype, device: of the traces.

    Shapes: keys and values ``(*batch_shape, *items, N)``. The leading dimensions of the batch choose the
    memory; all dimensions between them and N are items of that memory, any number of them, written or read in
    one call. ``traces``: ``(*batch_shape, num_copies, N)``. ``permutations``: ``(num_copies, N/2)``, int64.

    >>> from associative_lstm import functional
    >>> g = torch.Generator().manual_seed(0)
    >>> memory = HolographicMemory(1000, num_copies=50, generator=g)
    >>> keys, values = functional.random_key(1000, 10, generator=g), torch.randn(10, 1000, generator=g)
    >>> memory.write(keys, values)
    >>> error = (memory.read(keys) - values).square().mean()
    >>> print(f"{error:.2f} measured, {expected_error(items=10, copies=50, size=1000):.2f} expected")
    0.20 measured, 0.20 expected
    """

    traces: Tensor
    permutations: Tensor
    born: Tensor  # the generation of each copy, ascending: see `resize`

    def __init__(
        self,
        size: int,
        num_copies: int,
        *,
        permutation: str = "random",
        batch_shape: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        check_size("size", size)
        check_count("num_copies", num_copies, least=1)
        check_permutation_kind(permutation)
        for length in batch_shape:
            check_count("batch_shape", length, least=1)
        self.size = size
        self.permutation = permutation
        self.batch_shape = tuple(batch_shape)
        self.generator = generator
        traces = torch.zeros(*self.batch_shape, num_copies, size, dtype=dtype, device=device)
        if not traces.is_floating_point():
            raise TypeError(f"dtype: expected a real floating-point dtype, got {dtype}")
        self.register_buffer("traces", traces)
        self.register_buffer("permutations", self._draw_permutations(num_copies, taken=None))
        self.register_buffer("born", torch.zeros(num_copies, dtype=torch.int64, device=traces.device))

    @property
    def num_copies(self) -> int:
        """Copies in use now."""
        return self.traces.shape[-2]

    @torch.no_grad()
    def write(self, key: Tensor, value: Tensor) -> None:
        r"""Add items to every copy: :math:`c_s \leftarrow c_s + \sum_k (P_s r_k) \circledast x_k`.

        The items of key and value are broadcast against each other. On bad input, NaN and infinity included,
        the memory stays as it was.

        Shapes: key and value ``(*batch_shape, *items, N)``.
        """
        self._check("key", key)
        self._check("value", value)
        for name, tensor in (("key", key), ("value", value)):
            if not tensor.isfinite().all():
                raise ValueError(f"{name}: expected finite numbers, got NaN or infinity; nothing was written")
        # Aligned behind the batch: without items of its own, one side serves all items of the other.
        dims = max(key.dim(), value.dim())
        key, value = (
            h.reshape(*self.batch_shape, *[1] * (dims - h.dim()), *h.shape[len(self.batch_shape) :])
            for h in (key, value)
        )
        try:
            key, value = torch.broadcast_tensors(key, value)
        except RuntimeError:
            raise ValueError(
                f"value: expected a shape that fits key {tuple(key.shape)}, got {tuple(value.shape)}"
            ) from None
        x = self._items_last(value)  # (N/2, B, 2, K)
        added = x.new_empty(self.size // 2, x.shape[1], self.num_copies, 2)
        for block, r in self._permuted(key, self.permutations):
            products = r.flatten(2, 3) @ x[block].mT  # (J, B, C * 2, 2): parts of r times parts of x
            re_x, im_x = products.unflatten(2, (-1, 2)).unbind(3)
            added[block] = torch.stack([re_x[..., 0] - im_x[..., 1], re_x[..., 1] + im_x[..., 0]], dim=-1)
        self.traces = self.traces + added.permute(1, 2, 3, 0).reshape(self.traces.shape)

    def read(self, key: Tensor, *, num_copies: int | None = None) -> Tensor:
        r"""Retrieve the values stored under keys, averaged over the copies that hold them.

        **Partial keys.** Elements of the key set to zero are unknown. Each copy's permutation routes them to
        other positions of the value, and the average at a position counts only the copies that know it:

        .. math::
            \tilde x[j] = \frac{1}{n_j} \sum_s \overline{(P_s r)[j]} \, c_s[j], \qquad
            n_j = |\{s : (P_s r)[j] \ne 0\}|

        Where no copy knows (`coverage` is 0) the result is 0. On the order of N / num_copies known elements
        are enough to recover the whole value.

        **After growth** an item is read from the copies that hold it: see `resize`.

        Args:
            num_copies: average over the oldest so many copies, instead of those that hold the item.

        Shapes: key and the result ``(*batch_shape, *items, N)``.
        """
        self._check("key", key)
        if num_copies is not None:
            check_count("num_copies", num_copies, least=1)
            if num_copies > self.num_copies:
                raise ValueError(f"num_copies: expected at most {self.num_copies}, got {num_copies}")
            generations = [slice(0, num_copies)]
        else:
            generations = self._generations()
        total, known_by = self._read_sum(key, generations[0])
        if len(generations) == 1:
            return _mean(total, known_by)
        squares = self._square_sum(key, generations[0])
        held = torch.ones_like(key[..., :1], dtype=torch.bool)
        for generation in generations[1:]:
            more, more_known_by = self._read_sum(key, generation)
            more_squares = self._square_sum(key, generation)
            with torch.no_grad():
                old, new = _Sums(total, squares, known_by), _Sums(more, more_squares, more_known_by)
                held &= self._evidence(key, _mean(total, known_by), generation) > EVIDENCE
                held &= ~(_differs(old, new, self._meeting()) | _differs(new, old, self._meeting()))
            total = torch.where(held, total + more, total)
            squares = torch.where(held, squares + more_squares, squares)
            known_by = torch.where(held, known_by + more_known_by, known_by)
        return _mean(total, known_by)

    forward = read

    def coverage(self, key: Tensor) -> Tensor:
        """How many copies know each position of the value, given the zeros in the key: 0 means none does.

        Shapes: key ``(*batch_shape, *items, N)``; the result ``(*batch_shape, *items, N/2)``.

        >>> memory = HolographicMemory(8, num_copies=3)
        >>> memory.coverage(torch.ones(8))
        tensor([3., 3., 3., 3.])
        >>> memory.coverage(torch.tensor([1.0, 0, 0, 0, 1, 0, 0, 0])).sum()  # each copy knows one position
        tensor(3.)
        """
        self._check("key", key)
        return self._known_by(key, slice(None))

    def resize(self, num_copies: int) -> None:
        r"""Change the number of copies, with everything in them, at any time.

        *Fewer*: the newest copies go; every item stays, read with more noise.

        *More*: copies with new permutations (shifts by offsets not yet in use) and empty traces are added. They
        hold what is written from now on, and nothing of earlier items: no function of the old traces could supply
        it. An earlier item must therefore be averaged over the older copies only (the mean over all would scale it
        down by old/new), a later one over all. Fixed weights cannot serve both: they would have to sum to one over
        the old copies and over all of them, so to zero over the new. `read` therefore asks the copies. A copy's
        *generation* counts the growths (with writes between them) before it was made. The oldest generation holds
        every item. From its read x̃, the next one is made to give back the key, as it gives a value from a key:

        .. math::
            \tilde r = \sum_s P_s^{-1} (\overline{\tilde x} \circledast c_s)
            \qquad
            \mathrm{Re} \sum_m \overline{r_m} \, \tilde r_m > 5 \sqrt{\tfrac12 \sum_m |r_m|^2 |\tilde r_m|^2}

        If these copies do not hold the item, nothing in :math:`\tilde r` knows the random phases of r, and
        the right side is five standard deviations of the left: they join the average wrongly a few times in a
        million reads. If evidence is lacking (a short vector under heavy noise), the item is read from the older
        copies.

        *A key written both before and after a growth* has the sum of its writes in the older copies, and in
        the newer ones only a part of it, which must not join the average. With a the older read, b the newer
        and :math:`\sigma_a^2, \sigma_b^2` the variance of their noise, estimated from how the copies of each
        scatter,

        .. math::
            \sum_j \mathrm{Re} \, \overline{a_j} (a_j - b_j) - \sigma_{a,j}^2
            \qquad
            \sum_j \mathrm{Re} \, \overline{b_j} (b_j - a_j) - \sigma_{b,j}^2

        both are zero on average if both hold the same; their sum is on average the squared length of what was
        written before the growth. If either is off by more than three of its standard deviations, and by more than
        a tenth of the squared length of the read itself, the older copies are read. (Deviations alone would not do:
        they are estimated as if noise were independent between places. It is not where values have a mean in common,
        as photographs have brightness: an element of the keys acts at another place in every copy, and summed over
        all places, noise along such a value is the same in every copy.)

        *What is guaranteed.* The oldest copies hold everything, whenever it was written: ``read(key,
        num_copies=n)`` with the number of copies before the first growth is always unbiased. `read` without it
        gives the same for items written before a growth, for keys written on both sides of it, also to take
        an item out again (what the newer copies then hold of it is noise to others, in these copies), and the
        average over all for items written after it. With two exceptions: a part written before may be overlooked
        if its squared length is less than a tenth of the whole's, or small against the noise of the older read
        (below about :math:`3 \sqrt{4/N}` of its variance); and a generation of a single copy shows no scatter,
        so that its half of the comparison is left out.

        >>> from associative_lstm import functional
        >>> g = torch.Generator().manual_seed(0)
        >>> memory = HolographicMemory(1000, num_copies=10, generator=g)
        >>> keys, values = functional.random_key(1000, 20, generator=g), torch.randn(20, 1000, generator=g)
        >>> memory.write(keys[:10], values[:10])
        >>> memory.resize(40)
        >>> memory.write(keys[10:], values[10:])
        >>> error = (memory.read(keys) - values).square().mean(-1)
        >>> print(f"{error[:10].mean():.1f} with 10 copies, {error[10:].mean():.1f} with 40")
        2.0 with 10 copies, 0.3 with 40
        """
        check_count("num_copies", num_copies, least=1)
        added = num_copies - self.num_copies
        if added <= 0:
            self.traces = self.traces[..., :num_copies, :].clone()
            self.permutations = self.permutations[:num_copies].clone()
            self.born = self.born[:num_copies].clone()
            return
        permutations = self._draw_permutations(added, taken=self.permutations)
        # An empty newest trace means that nothing was written since that copy was made: the same generation.
        generation = self.born[-1] + self.traces[..., -1, :].any()
        empty = self.traces.new_zeros(*self.batch_shape, added, self.size)
        self.traces = torch.cat([self.traces, empty], dim=-2)
        self.permutations = torch.cat([self.permutations, permutations])
        self.born = torch.cat([self.born, generation.expand(added)])

    def clear(self) -> None:
        """Forget every item; copies and permutations stay."""
        self.traces = torch.zeros_like(self.traces)
        self.born = torch.zeros_like(self.born)

    def extra_repr(self) -> str:
        kind = f", permutation={self.permutation!r}" if self.permutation != "random" else ""
        batch = f", batch_shape={self.batch_shape}" if self.batch_shape else ""
        return f"{self.size}, num_copies={self.num_copies}{kind}{batch}"

    def _draw_permutations(self, copies: int, taken: Tensor | None) -> Tensor:
        options: dict[str, Any] = {"generator": self.generator, "device": self.traces.device}
        if self.permutation == "shift":
            return shift_permutations(copies, self.size // 2, taken=taken, **options)
        return random_permutations(copies, self.size // 2, **options)

    def _generations(self) -> list[slice]:
        counts = self.born.unique_consecutive(return_counts=True)[1].tolist()
        edges = [0, *itertools.accumulate(counts)]
        return [slice(a, b) for a, b in itertools.pairwise(edges)]

    def _items_last(self, h: Tensor) -> Tensor:
        """``(*batch_shape, *items, N)`` as ``(N/2, B, 2, K)``: what a copy gathers is contiguous."""
        h = h.reshape(math.prod(self.batch_shape), -1, 2, self.size // 2)
        return h.permute(3, 0, 2, 1).contiguous()

    def _permuted(self, key: Tensor, permutations: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """P_s r for all copies and keys, a block of positions at a time: ``(J, B, C, 2, K)``.

        Items x copies x N numbers at once would be gigabytes for a hundred images in a hundred copies.
        """
        r = self._items_last(key)
        step = max(1, BLOCK // max(1, len(permutations) * r[0].numel()))
        for start in range(0, self.size // 2, step):
            block = slice(start, start + step)
            index = permutations[:, block].T
            yield block, r.index_select(0, index.flatten()).unflatten(0, index.shape).transpose(1, 2)

    def _unbind_and_sum(self, key: Tensor, permutations: Tensor, traces: Tensor) -> Tensor:
        r""":math:`\sum_s \overline{(P_s r)} \circledast c_s`, shaped like the key."""
        c = self._items_last(traces)  # (N/2, B, 2, C)
        total = key.new_empty(*c.shape[:2], 2, key.numel() // (c.shape[1] * self.size))  # (N/2, B, 2, K)
        for block, r in self._permuted(key, permutations):
            products = c[block] @ r.flatten(3, 4)  # (J, B, 2, 2 * K): parts of c times parts of r
            c_re, c_im = products.unflatten(3, (2, -1)).unbind(2)
            total[block] = torch.stack([c_re[:, :, 0] + c_im[:, :, 1], c_im[:, :, 0] - c_re[:, :, 1]], dim=2)
        return total.permute(1, 3, 2, 0).reshape(key.shape)

    def _read_sum(self, key: Tensor, copies: slice) -> tuple[Tensor, Tensor]:
        """The sum over copies of what they read, and how many of them know each position."""
        total = self._unbind_and_sum(key, self.permutations[copies], self.traces[..., copies, :])
        return total, self._known_by(key, copies)

    def _known_by(self, key: Tensor, copies: slice) -> Tensor:
        permutations = self.permutations[copies]
        known = (key.detach().unflatten(-1, (2, -1)) != 0).any(-2)  # (*batch_shape, *items, N/2)
        if known.all():
            return torch.full_like(known, len(permutations), dtype=key.dtype)
        pair = torch.cat([known, known], dim=-1).to(key.dtype)
        counts = torch.cat([r[..., 0, :].sum(2) for _, r in self._permuted(pair, permutations)])
        return counts.permute(1, 2, 0).reshape(known.shape)

    @torch.no_grad()
    def _square_sum(self, key: Tensor, copies: slice) -> Tensor:
        """The sum over copies of the squared moduli that they read, ``(..., N/2)``."""
        r, c = (
            torch.cat([square, torch.zeros_like(square)], dim=-1)
            for square in (_squared_modulus(key), _squared_modulus(self.traces[..., copies, :]))
        )
        return self._unbind_and_sum(r, self.permutations[copies], c)[..., : self.size // 2]

    def _meeting(self) -> float:
        """How probable it is that two copies have the same element of a key at the same place."""
        if self.permutation == "random":
            return 2 / self.size
        times = self.permutations[:, 0].bincount()  # two shifts meet everywhere if their offsets are equal
        return (times * (times - 1)).sum().item() / max(1, self.num_copies * (self.num_copies - 1))

    def _evidence(self, key: Tensor, value: Tensor, copies: slice) -> Tensor:
        """How surely these copies lead from the value back to the key, in deviations, ``(..., 1)``: see `resize`."""
        inverse = self.permutations[copies].argsort(-1)
        both = torch.cat([inverse, inverse + self.size // 2], dim=-1)
        traces = self.traces[..., copies, :]
        unpermuted = traces.gather(-1, both.expand_as(traces))  # P_s^-1 c_s
        found = self._unbind_and_sum(value, inverse, unpermuted)
        power = (_squared_modulus(key) * _squared_modulus(found)).sum(-1, keepdim=True)
        return (key * found).sum(-1, keepdim=True) / (power / 2).sqrt()

    def _check(self, name: str, h: Tensor) -> None:
        if not isinstance(h, Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(h).__name__}")
        if h.shape[-1:] != (self.size,) or h.shape[:-1][: len(self.batch_shape)] != self.batch_shape:
            expected = ", ".join(map(str, (*self.batch_shape, "...", self.size)))
            raise ValueError(f"{name}: expected shape ({expected}), got {tuple(h.shape)}")
        if h.dtype != self.traces.dtype or h.device != self.traces.device:
            raise TypeError(
                f"{name}: expected {self.traces.dtype} on {self.traces.device}, as the memory, "
                f"got {h.dtype} on {h.device}"
            )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # The number of copies is part of the state, so buffers take the saved one before they are filled.
        saved = state_dict.get(prefix + "born")
        traces = state_dict.get(prefix + "traces")
        fits = traces is not None and traces.shape[-1] == self.size and traces.shape[:-2] == self.batch_shape
        if saved is not None and saved.shape != self.born.shape and fits:
            copies = len(saved)
            self.traces = self.traces.new_zeros(*self.batch_shape, copies, self.size)
            self.permutations = self.permutations.new_zeros(copies, self.size // 2)
            self.born = self.born.new_zeros(copies)
        super()._load_from_state_dict(state_dict, prefix, *args)
        if self.size > 4 and self.num_copies > 1 and not self.permutations.is_meta:  # else any may be a shift
            self.permutation = "shift" if are_shifts(self.permutations).all() else "random"


def expected_error(
    items: int,
    copies: int,
    *,
    size: int | None = None,
    power: float = 1.0,
    known: float = 1.0,
    permutation: str = "random",
) -> float:
    r"""Predict the mean squared error, per real number, of a value read from a `HolographicMemory`.

    .. math::
        E = (N_{items} - 1) \, \frac{p}{N_{copies}} \left(1 + \frac{N_{copies} - 1}{N/2}\right)

    *Derivation*, exact for fixed values, unit-modulus keys of independent uniform phases and independent
    uniform permutations. At position j, item k' adds :math:`x_{k'}[j] \, \frac1C \sum_s e^{i
    \theta_{k'}[\pi_s(j)]}` to the read of item k, where the :math:`\theta_{k'}` are differences of the keys'
    phases: uniform, and independent between items and between elements. The expected square of the sum over s
    is :math:`\sum_{s,s'} \Pr[\pi_s(j) = \pi_{s'}(j)]`: any other pair of phases is independent and averages
    to zero. That is C terms of 1 and C (C - 1) terms of 2/N, because two random permutations meet at j with
    probability 1/(N/2). Between items nothing is correlated, so their squares add: of the :math:`N_{items} -
    1` others, each with mean square p.

    The paper's items/copies is the limit of large N. The second term is a floor, 2p/N per item: once all N/2
    elements of a key are in use at a position, further copies bring nothing new.

    With a *partial key* of which :math:`m = f N/2` elements are known, n of the C copies know a position, n
    binomial with probability f. Then copies meet with probability 1/m, and where none knows, 0 is read
    instead of the value:

    .. math::
        E = (1 - f)^C p + (N_{items} - 1) \, p \sum_{n=1}^{C} \binom{C}{n} f^n (1-f)^{C-n}
            \frac1n \left(1 + \frac{n - 1}{m}\right)

    With *shifts* no two copies meet, up to as many copies as offsets: :math:`E = (N_{items} - 1) \, p / N_{copies}`
    without a floor. Every place sees distinct elements of the key, so that of a partial key n is hypergeometric, the
    known ones among C of N/2. Of :math:`C = q N/2 + C'` copies, q see each element and C' some of them once more;
    with n' of these known, :math:`n = q m + n'` copies know a place and the noise there is
    :math:`(q^2 m + (2 q + 1) n') / n^2` instead of 1/n.

    Args:
        items: the number of items in the memory, with the one that is read.
        copies: the number of copies averaged.
        size: N, real numbers of a value; ``None`` is the limit of large N.
        power: p, the mean square of a real number of the values.
        known: f, the fraction of the key's elements that is known.
        permutation: ``"random"``, or ``"shift"`` for distinct shifts.

    >>> expected_error(items=51, copies=10)
    5.0
    >>> expected_error(items=51, copies=10, size=100, power=0.5)
    2.95
    >>> expected_error(items=51, copies=10, size=100, power=0.5, permutation="shift")
    2.5
    """
    check_count("items", items, least=1)
    check_count("copies", copies, least=1)
    if not 0 < known <= 1:
        raise ValueError(f"known: expected a fraction above 0 and at most 1, got {known}")
    check_permutation_kind(permutation)
    meeting = 0.0
    if size is not None:
        check_size("size", size)
        if permutation == "shift":
            nobody, noise = _noise_of_shifts(copies, size // 2, max(1, round(known * size / 2)))
            return nobody * power + (items - 1) * power * noise
        meeting = min(1.0, 1 / (known * size / 2))
    nobody, mean_inverse = 0.0, 1 / copies
    if known < 1:
        nobody = (1 - known) ** copies
        mean_inverse = sum(_binomial(n, copies, known) / n for n in range(1, copies + 1))
    # 1/n (1 + (n - 1) / m), averaged over the n >= 1 that occur
    noise = mean_inverse * (1 - meeting) + (1 - nobody) * meeting
    return nobody * power + (items - 1) * power * noise


def _binomial(n: int, trials: int, f: float) -> float:
    return math.exp(_log_choose(trials, n) + n * math.log(f) + (trials - n) * math.log1p(-f))


def _noise_of_shifts(copies: int, half: int, known: int) -> tuple[float, float]:
    """The probability that no copy knows a place, and the noise of one item there: see `expected_error`."""
    rounds, rest = divmod(copies, half)
    nobody = noise = 0.0
    for n in range(max(0, known + rest - half), min(known, rest) + 1):
        log = _log_choose(known, n) + _log_choose(half - known, rest - n) - _log_choose(half, rest)
        if counted := rounds * known + n:
            noise += math.exp(log) * (rounds**2 * known + (2 * rounds + 1) * n) / counted**2
        else:
            nobody = math.exp(log)
    return nobody, noise


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _mean(total: Tensor, known_by: Tensor) -> Tensor:
    n = known_by.clamp(min=1)
    return total / torch.cat([n, n], dim=-1)


def _differs(a: _Sums, b: _Sums, meeting: float) -> Tensor:
    """Whether the read of b is another than the one of a along the latter, ``(..., 1)``: see `resize`.

    False where no two copies of a know a position, so that their noise cannot be told from the value.
    """
    x = _mean(a.total, a.known_by)
    along = (x * (x - _mean(b.total, b.known_by))).unflatten(-1, (2, -1)).sum(-2)
    noise, other = _noise_of_a_copy(a), _noise_of_a_copy(b)
    # Where permutations of two copies meet, noise does not average out: of what both hold, it is in b as well.
    shared = (_average(noise, a.known_by >= 2) - _average(other, b.known_by >= 2).nan_to_num(0)).clamp(min=0)
    t = along - noise / a.known_by.clamp(min=1) - shared * meeting
    compared = (a.known_by >= 2) & (b.known_by >= 1)
    mean = _average(t, compared)
    variance = _average((t - mean).square(), compared) / compared.sum(-1, keepdim=True)
    power = _average(_squared_modulus(x) - noise / a.known_by.clamp(min=1), compared)
    return (mean.abs() > DIFFERENCE * variance.sqrt()) & (mean.abs() > PART * power)


def _noise_of_a_copy(sums: _Sums) -> Tensor:
    """The variance of what single copies read at a position, where at least two of them know it."""
    x, n = _mean(sums.total, sums.known_by), sums.known_by.clamp(min=2)
    return (sums.squares - n * _squared_modulus(x)) / (n - 1)


def _average(h: Tensor, where: Tensor) -> Tensor:
    return h.where(where, 0).sum(-1, keepdim=True) / where.sum(-1, keepdim=True)


def _squared_modulus(h: Tensor) -> Tensor:
    return h.square().unflatten(-1, (2, -1)).sum(-2)
