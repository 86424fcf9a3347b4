"""How many copies a memory needs: from the error that is wanted back to the copies, and what they cost."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from associative_lstm.functional import check_count, check_permutation_kind, check_size, random_key
from associative_lstm.lab.bench.timing import threads
from associative_lstm.memory import HolographicMemory, expected_error

_LARGEST = 10**15  # a double counts so far, and nobody's memory
CHUNK = 100
READ = 100
"""Items written at a time, and items read back to measure the error, when a plan is tried out."""


@dataclass(frozen=True)
class Plan:
    """A memory for so many items of so many real numbers, with the error that is expected of it.

    ``floor`` is the error that no number of copies goes below, ``enough`` whether the wanted one is reached.
    """

    items: int
    size: int
    power: float
    copies: int
    expected: float
    floor: float
    enough: bool
    permutation: str = "random"

    @property
    def bytes(self) -> int:
        """Single precision traces, and the permutations: 8 bytes for each complex number of a copy."""
        return self.copies * self.size * 4 + self.copies * (self.size // 2) * 8


@dataclass(frozen=True)
class Trial:
    """A plan tried out: the measured error with its standard deviation, and seconds to write and to read one item."""

    error: float
    deviation: float
    write_seconds: float
    read_seconds: float


def plan(items: int, size: int, error: float, power: float = 1.0, permutation: str = "random") -> Plan:
    r"""The fewest copies that bring the mean squared error down to ``error``.

    Solving `expected_error` for the copies, with :math:`a = (N_{items} - 1) \, p`,

    .. math::
        E = \frac{a}{C} \left(1 + \frac{C - 1}{N/2}\right) \le error
        \quad\Leftrightarrow\quad
        C \ge \frac{a \, (1 - 2/N)}{error - 2a/N}

    if the error is above the floor :math:`2a/N`. If not, the plan has N/2 copies, which give twice the floor. With
    shifts :math:`C \ge a / error`, and N/2 copies give the floor itself.

    >>> plan(items=100, size=1024, error=0.5).copies
    323
    >>> plan(items=100, size=1024, error=0.5, permutation="shift").copies
    198
    >>> plan(items=1000, size=1024, error=0.05).enough
    False
    """
    check_count("items", items, least=1)
    check_size("size", size)
    check_permutation_kind(permutation)
    if items > _LARGEST:
        raise ValueError(f"items: expected at most {_LARGEST:,}, got {items}")
    for name, number in (("error", error), ("power", power)):
        if not 1e-30 <= number <= 1e30:
            raise ValueError(f"{name}: expected a number from 1e-30 to 1e30, got {number}")
    a = (items - 1) * power
    floor = 2 * a / size
    shifts = permutation == "shift"
    enough = error >= floor if shifts else error > floor
    copies = size // 2
    if enough:  # the tolerance keeps rounding from asking for a copy too many
        least = a / error if shifts else a * (1 - 2 / size) / (error - floor)
        copies = max(1, math.ceil(least - 1e-9))
    expected = expected_error(items, copies, size=size, power=power, permutation=permutation)
    return Plan(items, size, power, copies, expected, floor, enough, permutation)


def size_needed(items: int, error: float, power: float = 1.0, permutation: str = "random") -> int:
    r"""The size at which copies for this error take the least memory: :math:`N = 4a/error`, with N/2 copies.

    Copies times size is :math:`a N^2 / (error \, N - 2a)` for large N, smallest there; below half of it, no number of
    copies is enough. With shifts it is the least size at which there are enough: :math:`N = 2a/error`.

    >>> size = size_needed(items=1000, error=0.05)
    >>> size, plan(1000, size, 0.05).copies
    (79920, 39959)
    """
    halves = 1 if permutation == "shift" else 2
    return max(2, 2 * math.ceil(halves * (items - 1) * power / error))


def tried_chunks(plan: Plan) -> int:
    """How many times `try_out` calls ``advance``."""
    return -(-plan.items // CHUNK) + 1


@threads(1)  # a memory works through blocks that are too small to be split well among threads
def try_out(plan: Plan, *, seed: int = 0, advance: Callable[[], None] = lambda: None) -> Trial:
    """Write that many random items to such a memory, and read some of them back."""
    generator = torch.Generator().manual_seed(seed)
    memory = HolographicMemory(plan.size, plan.copies, permutation=plan.permutation, generator=generator)
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    seconds = 0.0
    for start in range(0, plan.items, CHUNK):
        count = min(CHUNK, plan.items - start)
        keys = random_key(plan.size, count, generator=generator)
        values = math.sqrt(plan.power) * torch.randn(count, plan.size, generator=generator)
        started = time.perf_counter()
        memory.write(keys, values)
        seconds += time.perf_counter() - started
        every = -(-plan.items // READ)
        kept.append((keys[::every], values[::every]))
        advance()
    keys, values = (torch.cat(parts) for parts in zip(*kept, strict=True))
    started = time.perf_counter()
    errors = (memory.read(keys) - values).square().mean(-1)
    read_seconds = (time.perf_counter() - started) / len(keys)
    advance()
    deviation = 0.0
    if len(errors) > 1:
        # Two items that are both read disturb each other by the same phases, so their errors are no two witnesses.
        shared = (len(errors) - 1) / (plan.items - 1)
        deviation = (errors.std() * math.sqrt((1 + shared) / len(errors))).item()
    return Trial(errors.mean().item(), deviation, seconds / plan.items, read_seconds)
