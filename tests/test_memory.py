"""The redundant memory: its equations, its four properties with numbers, and the prediction of its error."""

import copy
import itertools
import math

import pytest
import torch
import twin
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch.autograd import gradcheck, gradgradcheck

from associative_lstm import functional as hf
from associative_lstm import memory as memory_module
from associative_lstm.memory import HolographicMemory, expected_error

each_permutation = pytest.mark.parametrize("permutation", ["random", "shift"])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def filled(
    items: int,
    copies: int,
    size: int,
    seed: int = 0,
    batch: tuple[int, ...] = (),
    dtype: torch.dtype = torch.float64,
    permutation: str = "random",
) -> tuple[HolographicMemory, torch.Tensor, torch.Tensor]:
    g = generator(seed)
    options = {"generator": g, "dtype": dtype, "permutation": permutation}
    memory = HolographicMemory(size, copies, batch_shape=batch, **options)
    keys = hf.random_key(size, (*batch, items), generator=g, dtype=dtype)
    values = torch.randn(*batch, items, size, generator=g, dtype=dtype)
    memory.write(keys, values)
    return memory, keys, values


def mean_squared_error(memory: HolographicMemory, keys: torch.Tensor, values: torch.Tensor) -> float:
    return (memory.read(keys) - values).square().mean().item()


# --- the equations


@each_permutation
@pytest.mark.parametrize("block", [1, 100, memory_module.BLOCK])
@pytest.mark.parametrize(("copies", "items"), [(1, 1), (3, 5), (8, 2)])
def test_against_the_twin(copies, items, block, permutation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "BLOCK", block)
    memory, keys, values = filled(items, copies, size=10, permutation=permutation)
    traces = twin.to_complex(torch.zeros(copies, 10))
    for key, value in zip(keys, values, strict=True):
        traces = twin.memory_write(
            traces, memory.permutations.numpy(), twin.to_complex(key), twin.to_complex(value)
        )
    torch.testing.assert_close(memory.traces, torch.from_numpy(twin.to_pair(traces)), rtol=0, atol=1e-12)
    for key, read in zip(keys, memory.read(keys), strict=True):
        expected = twin.memory_read(traces, memory.permutations.numpy(), twin.to_complex(key))
        torch.testing.assert_close(read, torch.from_numpy(twin.to_pair(expected)), rtol=0, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(half=st.integers(1, 20), copies=st.integers(1, 6), seed=st.integers(0, 2**31))
def test_one_item_round_trips_exactly(half: int, copies: int, seed: int) -> None:
    memory, keys, values = filled(1, copies, 2 * half, seed)
    torch.testing.assert_close(memory.read(keys), values, rtol=1e-13, atol=1e-13)


@settings(max_examples=30, deadline=None)
@given(
    batch=st.lists(st.integers(1, 3), max_size=2).map(tuple),
    items=st.lists(st.integers(0, 3), max_size=2).map(tuple),
    copies=st.integers(1, 4),
    seed=st.integers(0, 2**31),
)
def test_a_batch_of_memories_is_that_many_memories(batch, items, copies: int, seed: int) -> None:
    g = generator(seed)
    together = HolographicMemory(6, copies, batch_shape=batch, generator=g, dtype=torch.float64)
    keys = hf.random_key(6, (*batch, *items), generator=g, dtype=torch.float64)
    values = torch.randn(*batch, *items, 6, generator=g, dtype=torch.float64)
    together.write(keys, values)
    reads = together.read(keys)
    assert reads.shape == keys.shape
    alone = HolographicMemory(6, copies, dtype=torch.float64)
    alone.permutations = together.permutations
    for index in itertools.product(*map(range, batch)):
        alone.clear()
        alone.write(keys[index], values[index])
        torch.testing.assert_close(together.traces[index], alone.traces)
        torch.testing.assert_close(reads[index], alone.read(keys[index]))


def test_gradients_reach_the_key_through_a_read() -> None:
    memory, keys, _ = filled(3, 2, size=6)
    partial = keys.clone()
    partial[:, 1] = partial[:, 4] = 0
    assert gradcheck(memory.read, [keys[0].clone().requires_grad_()])
    assert gradgradcheck(memory.read, [keys[0].clone().requires_grad_()])
    known = partial[0] != 0  # a read jumps when an element of the key becomes zero, so only the others vary
    assert gradcheck(
        lambda r: memory.read(partial[0].masked_scatter(known, r)),
        [partial[0][known].clone().requires_grad_()],
    )
    memory.write(keys.requires_grad_(), keys)
    assert not memory.traces.requires_grad


def test_memory_in_use_does_not_grow_with_the_items() -> None:
    memory, _, _ = filled(1, 4, size=8)
    before = {name: buffer.shape for name, buffer in memory.named_buffers()}
    for seed in range(50):
        memory.write(
            hf.random_key(8, 20, generator=generator(seed), dtype=torch.float64), torch.ones(20, 8).double()
        )
    assert {name: buffer.shape for name, buffer in memory.named_buffers()} == before
    assert memory.traces.untyped_storage().nbytes() == 4 * 8 * 8


def test_state_dict_restores_traces_permutations_and_the_number_of_copies() -> None:
    memory, keys, values = filled(3, 4, size=64)
    memory.resize(6)
    memory.write(keys[:1], values[:1])
    other = HolographicMemory(64, 2, dtype=torch.float64)
    other.load_state_dict(memory.state_dict())
    assert other.num_copies == 6
    assert other.read(keys).equal(memory.read(keys))
    assert copy.deepcopy(memory).read(keys).equal(memory.read(keys))
    assert memory.to(torch.float32).read(keys.float()).dtype == torch.float32
    small, its_keys, _ = filled(3, 4, size=32)
    before = small.read(its_keys)
    with pytest.raises(RuntimeError, match="size mismatch"):
        small.load_state_dict(memory.state_dict())
    assert small.read(its_keys).equal(before)


def test_permutations_are_reproducible_and_differ_between_copies() -> None:
    first, second = (HolographicMemory(64, 3, generator=generator(7)) for _ in range(2))
    assert first.permutations.equal(second.permutations)
    first.resize(5), second.resize(5)
    assert first.permutations.equal(second.permutations)
    assert len(first.permutations.unique(dim=0)) == 5


# --- property: the number of copies changes at any time


@each_permutation
def test_removing_copies_adds_noise_as_predicted(permutation: str) -> None:
    memory, keys, values = filled(20, 40, size=2000, permutation=permutation)
    for copies in (40, 20, 10, 5, 1):
        memory.resize(copies)
        assert memory.num_copies == copies
        error = mean_squared_error(memory, keys, values)
        predicted = expected_error(20, copies, size=2000, permutation=permutation)
        assert error == pytest.approx(predicted, rel=0.05)


def test_reading_from_fewer_copies_is_as_if_the_others_were_removed() -> None:
    memory, keys, _ = filled(4, 10, size=50)
    read = memory.read(keys, num_copies=3)
    memory.resize(3)
    assert memory.read(keys).equal(read)


@each_permutation
def test_items_before_and_after_a_growth_are_each_read_from_the_copies_that_hold_them(permutation) -> None:
    memory, keys, values = filled(20, 10, size=2000, permutation=permutation)
    before = memory.read(keys)
    memory.resize(40)
    assert memory.read(keys).equal(before)  # empty copies neither dilute nor disturb

    g = generator(99)
    new_keys = hf.random_key(2000, 10, generator=g, dtype=torch.float64)
    new_values = torch.randn(10, 2000, generator=g, dtype=torch.float64)
    memory.write(new_keys, new_values)
    # 10 copies hold all 30 items, 30 hold the new 10: the noise of the items' copies, averaged
    old_error = expected_error(30, 10, size=2000)
    new_error = (10 * 29 + 30 * 9) / 40**2
    assert mean_squared_error(memory, keys, values) == pytest.approx(old_error, rel=0.05)
    assert mean_squared_error(memory, new_keys, new_values) == pytest.approx(new_error, rel=0.05)

    # unbiased: the read's component along the value is the whole value, where a plain mean would give a quarter
    gain = (memory.read(keys) * values).sum() / values.square().sum()
    assert gain.item() == pytest.approx(1, abs=0.05)  # four standard deviations

    memory.resize(5)  # what holds the old items holds the new ones too
    for k, v in ((keys, values), (new_keys, new_values)):
        assert mean_squared_error(memory, k, v) == pytest.approx(expected_error(30, 5, size=2000), rel=0.05)


@each_permutation
@pytest.mark.parametrize("others", [0, 10])
@pytest.mark.parametrize(
    ("before", "after"),
    [((1, 0), (-1, 1)), ((1, 0), (1, 0)), ((1, 0), (0, 1)), ((1, 0), (-1, 0))],
    ids=["replaced", "twice", "added to", "taken out"],
)
def test_a_key_written_before_and_after_a_growth_reads_as_the_sum(before, after, others, permutation) -> None:
    memory, _, _ = filled(others, 40, size=1000, permutation=permutation)
    g = generator(5)
    key, *_ = hf.random_key(1000, 1, generator=g, dtype=torch.float64)
    v = torch.randn(2, 1000, generator=g, dtype=torch.float64)
    first, second = torch.tensor([before, after], dtype=torch.float64) @ v
    memory.write(key, first)
    memory.resize(80)
    memory.write(key, second)
    assert memory.read(key).equal(memory.read(key, num_copies=40))  # the part in the new copies stays out
    error = (memory.read(key) - first - second).square().mean().item()
    predicted = expected_error(others + 1, 40, size=1000, permutation=permutation)
    assert error == pytest.approx(predicted, rel=0.2, abs=1e-12)


def offsets_of(memory: HolographicMemory) -> list[int]:
    assert hf.are_shifts(memory.permutations).all()
    return memory.permutations[:, 0].tolist()


def test_shifts_stay_distinct_while_copies_come_and_go() -> None:
    memory = HolographicMemory(64, 5, permutation="shift", generator=generator())
    assert len(set(offsets_of(memory))) == 5
    for copies in (20, 32, 9, 31):
        before = offsets_of(memory)
        memory.resize(copies)
        assert offsets_of(memory)[: len(before)] == before[:copies]
        assert len(set(offsets_of(memory))) == copies
    memory.resize(75)  # 32 offsets, each twice, and 11 once more
    counts = torch.tensor(offsets_of(memory)).bincount(minlength=32)
    assert counts.bincount().tolist() == [0, 0, 21, 11]
    assert repr(memory) == "HolographicMemory(64, num_copies=75, permutation='shift')"


@each_permutation
def test_a_memory_grows_as_what_was_loaded_into_it(permutation: str) -> None:
    memory, keys, _ = filled(3, 4, size=64, permutation=permutation)
    for other in ("random", "shift"):
        loaded = HolographicMemory(64, 2, permutation=other, dtype=torch.float64)
        loaded.load_state_dict(memory.state_dict())
        assert loaded.permutation == permutation
        assert loaded.read(keys).equal(memory.read(keys))
        loaded.resize(30)
        assert hf.are_shifts(loaded.permutations).all() == (permutation == "shift")


@each_permutation
@pytest.mark.parametrize("copies", [2, 16, 20, 50])
def test_how_often_two_copies_have_the_same_element_of_a_key_at_a_place(
    copies: int, permutation: str
) -> None:
    """What the comparison of old and new copies takes for the noise that they have in common."""
    shares = []
    for seed in range(300):
        memory, _, _ = filled(0, copies, 32, seed, permutation=permutation)
        same = (memory.permutations[:, None] == memory.permutations).double().mean(-1)
        shares.append(((same.sum() - copies) / (copies * (copies - 1))).item())
    if permutation == "shift":
        assert shares == pytest.approx([memory._meeting()] * 300, rel=1e-12)
        assert (memory._meeting() == 0) == (copies <= 16)
    else:
        assert abs(z_score(shares, memory._meeting())) < 4


@pytest.mark.parametrize("others", [0, 20])
def test_with_shifts_a_read_after_growth_takes_all_copies_that_hold_the_item(others: int) -> None:
    size, held = 128, []
    for seed in range(100):
        memory, _, _ = filled(others, 10, size, seed, permutation="shift")
        memory.resize(40)
        g = generator(1000 + seed)
        key = hf.random_key(size, generator=g, dtype=torch.float64)
        memory.write(key, torch.randn(size, generator=g, dtype=torch.float64))
        held.append(not memory.read(key).equal(memory.read(key, num_copies=10)))
    assert sum(held) >= (100 if others == 0 else 90)


def test_generations_count_growths_with_writes_between_them() -> None:
    memory = HolographicMemory(8, 2)
    memory.resize(3)
    assert memory.born.tolist() == [0, 0, 0]
    memory.write(torch.ones(8), torch.ones(8))
    memory.resize(4)
    memory.resize(5)
    assert memory.born.tolist() == [0, 0, 0, 1, 1]
    memory.write(torch.ones(8), torch.ones(8))
    memory.resize(6)
    assert memory.born.tolist() == [0, 0, 0, 1, 1, 2]
    memory.resize(2)
    memory.resize(3)
    assert memory.born.tolist() == [0, 0, 1]
    memory.clear()
    assert memory.born.tolist() == [0, 0, 0]
    assert memory.traces.eq(0).all()


@each_permutation
@pytest.mark.parametrize("spread", [0.1, 1.0])
@pytest.mark.parametrize("added", [1, 30])
def test_evidence_of_a_key_that_was_not_written_is_standard_normal(spread, added, permutation) -> None:
    """Also for values like photographs': of one sign, nearly constant, and much alike."""
    g = generator(3)
    options = {"generator": g, "dtype": torch.float64, "permutation": permutation}
    memory = HolographicMemory(256, 2, batch_shape=(400,), **options)
    keys, others = hf.random_key(256, 2, 400, 5, generator=g, dtype=torch.float64)
    values = (spread * torch.randn(400, 5, 256, generator=g, dtype=torch.float64)).exp()
    memory.write(keys, values)
    memory.resize(2 + added)
    memory.write(others, values.flip(1))
    _, new = memory._generations()
    z = memory._evidence(keys[:, :1], values[:, :1], new)
    assert stats.kstest(z.flatten().numpy(), "norm").pvalue > 0.01
    # The value as read shares some noise with the new copies, where a permutation of each meets: a little bias.
    z = memory._evidence(keys[:, :1], memory.read(keys[:, :1], num_copies=2), new)
    assert z.mean().abs() < 0.5
    assert z.std().item() == pytest.approx(1, abs=0.15)
    z = memory._evidence(others[:, :1], memory.read(others[:, :1], num_copies=2), new)
    assert z.mean() > (5 if added == 30 else 1)  # and of a key that was written, it is there


# --- property: partial keys


def forget(keys: torch.Tensor, known: int, seed: int = 0) -> torch.Tensor:
    half = keys.shape[-1] // 2
    mask = torch.zeros(half, dtype=keys.dtype)
    mask[torch.randperm(half, generator=generator(seed))[:known]] = 1
    return keys * mask.repeat(2)


def test_partial_key_recovers_the_whole_value() -> None:
    size, copies = 2000, 100
    memory, keys, values = filled(1, copies, size)
    known = 10 * size // copies // 2  # ten times N/copies: missing everywhere has probability exp(-10)
    partial = forget(keys, known)
    assert (memory.coverage(partial) > 0).all()
    torch.testing.assert_close(memory.read(partial), values)  # a fifth of the key, and no error at all
    assert partial.ne(0).sum() == 2 * known


def test_positions_that_no_copy_knows_are_zero_and_reported() -> None:
    memory, keys, values = filled(1, 3, size=40)
    partial = forget(keys, known=4)
    coverage = memory.coverage(partial)
    assert coverage.sum() == 3 * 4
    unknown = torch.cat([coverage, coverage], dim=-1) == 0
    assert unknown.any()
    read = memory.read(partial)
    assert read[unknown].eq(0).all()
    torch.testing.assert_close(read[~unknown], values[~unknown])


@each_permutation
@pytest.mark.parametrize("known", [0.1, 0.3, 0.7])
@pytest.mark.parametrize(("copies", "size"), [(1, 400), (10, 400), (60, 400), (10, 40), (15, 40), (50, 40)])
def test_error_of_partial_keys_is_predicted(known: float, copies: int, size: int, permutation: str) -> None:
    items, errors = 6, []
    for seed in range(60 if size == 400 else 300):
        memory, keys, values = filled(items, copies, size, seed, permutation=permutation)
        partial = forget(keys, round(known * size / 2), seed)
        errors.append(mean_squared_error(memory, partial, values))
    predicted = expected_error(items, copies, size=size, known=known, permutation=permutation)
    assert abs(z_score(errors, predicted)) < 4
    if size == 40 and copies > 1 and known > 0.1:  # so it would tell one kind from the other
        other = "random" if permutation == "shift" else "shift"
        predicted = expected_error(items, copies, size=size, known=known, permutation=other)
        assert abs(z_score(errors, predicted)) > 4


# --- property: writing is an addition


def test_order_does_not_matter_and_writing_can_be_undone() -> None:
    memory, keys, values = filled(6, 3, size=20)
    traces = memory.traces
    memory.clear()
    for k in (3, 1, 5, 0, 4, 2):
        memory.write(keys[k], values[k])
    torch.testing.assert_close(memory.traces, traces)
    memory.write(keys[1:], -values[1:])
    torch.testing.assert_close(memory.read(keys[0]), values[0])


def test_key_and_value_are_broadcast() -> None:
    memory, keys, values = filled(3, 2, size=6)
    traces = memory.traces
    memory.write(keys, values[0])
    added = memory.traces - traces
    memory.clear()
    memory.write(keys.sum(0), values[0])
    torch.testing.assert_close(added, memory.traces)


def test_broadcasting_never_mixes_the_memories_of_a_batch() -> None:
    g = generator()
    memory = HolographicMemory(6, 2, batch_shape=(3,), generator=g, dtype=torch.float64)
    keys = hf.random_key(6, 3, 3, generator=g, dtype=torch.float64)  # as many items as memories
    value = torch.randn(3, 6, generator=g, dtype=torch.float64)  # one for each memory, under all of its keys
    memory.write(keys, value)
    traces = memory.traces
    memory.clear()
    memory.write(keys, value.unsqueeze(1).expand(3, 3, 6))
    assert memory.traces.equal(traces)


# --- property: more items than copies, and the prediction of the error


def z_score(errors: list[float], predicted: float) -> float:
    sample = torch.tensor(errors, dtype=torch.float64)
    return ((sample.mean() - predicted) / (sample.std() / math.sqrt(len(errors)))).item()


GRID = [1, 2, 5, 10, 30, 100]


Grid = dict[tuple[int, int], list[float]]


@pytest.fixture(
    scope="module",
    params=[(32, 240, "random"), (512, 40, "random"), (32, 240, "shift"), (512, 40, "shift")],
    ids="{0[2]}, size {0[0]}".format,
)
def measured_grid(request: pytest.FixtureRequest) -> tuple[dict, Grid]:
    """Errors over independent draws of keys, values and permutations; size 32 brings out the effect of small N."""
    size, draws, permutation = request.param
    seeds = itertools.count()

    def error(items: int, copies: int) -> float:
        return mean_squared_error(*filled(items, copies, size, next(seeds), permutation=permutation))

    grid = {
        (items, copies): [error(items, copies) for _ in range(draws)] for items in GRID for copies in GRID
    }
    return {"size": size, "permutation": permutation}, grid


def chi_square_p_value(kind: dict, grid: Grid, factor: float = 1.0) -> float:
    """Probability of deviations this large over the grid, if the prediction (times ``factor``) is right."""
    normal = [
        # z is Student-t distributed; as normal deviates with the same tail probabilities their squares add to chi²
        stats.norm.isf(
            stats.t.sf(z_score(errors, factor * expected_error(items, copies, **kind)), len(errors) - 1)
        )
        for (items, copies), errors in grid.items()
        if items > 1
    ]
    return float(stats.chi2.sf(sum(z * z for z in normal), len(normal)))


def test_expected_error_agrees_with_measurement_over_the_grid(measured_grid) -> None:
    kind, grid = measured_grid
    for copies in GRID:
        assert max(grid[1, copies]) < 1e-25  # a single item has no noise
        assert expected_error(1, copies, **kind) == 0
    assert chi_square_p_value(kind, grid) > 0.001


def test_the_grid_would_tell_a_prediction_off_by_three_percent(measured_grid) -> None:
    kind, grid = measured_grid
    for factor in (0.97, 1.03):
        assert chi_square_p_value(kind, grid, factor) < 1e-6


def test_the_grid_would_tell_a_prediction_that_ignores_the_size(measured_grid) -> None:
    kind, grid = measured_grid
    if kind["permutation"] == "random" or kind["size"] == 32:  # shifts: only beyond as many copies as offsets
        assert chi_square_p_value(kind | {"size": 10**9}, grid) < 1e-6


def test_the_grid_would_tell_shifts_from_random_permutations(measured_grid) -> None:
    kind, grid = measured_grid
    other = "random" if kind["permutation"] == "shift" else "shift"
    assert chi_square_p_value(kind | {"permutation": other}, grid) < 1e-6


def test_with_distinct_shifts_the_error_is_items_over_copies_exactly() -> None:
    for copies in (1, 7, 64):
        predicted = expected_error(16, copies, size=128, permutation="shift")
        assert predicted == pytest.approx(15 / copies, rel=1e-12)
    assert expected_error(16, 64, size=128) == pytest.approx(
        0.465, abs=0.001
    )  # random permutations level off
    twice = expected_error(16, 128, size=128, permutation="shift")
    assert twice == pytest.approx(15 / 64, rel=1e-12)  # every offset twice is no better than once


def test_expected_error_is_the_papers_law_for_large_vectors() -> None:
    assert expected_error(101, 50) == 2
    assert expected_error(101, 50, size=10**9) == pytest.approx(2, rel=1e-6)
    assert expected_error(101, 50, power=0.25) == 0.5
    assert expected_error(7, 5, size=20, known=1 - 1e-15) == pytest.approx(expected_error(7, 5, size=20))


# --- bad input


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: HolographicMemory(7, 2), ValueError, "size: expected an even number"),
        (lambda: HolographicMemory(8, 0), ValueError, "num_copies: expected at least 1, got 0"),
        (
            lambda: HolographicMemory(8, 2, batch_shape=(0,)),
            ValueError,
            "batch_shape: expected at least 1, got 0",
        ),
        (lambda: HolographicMemory(8, 2.0), TypeError, "num_copies: expected an int"),
        (
            lambda: HolographicMemory(8, 2, dtype=torch.complex64),
            TypeError,
            "dtype: expected a real floating-point",
        ),
        (lambda: HolographicMemory(8, 2).resize(0), ValueError, "num_copies: expected at least 1, got 0"),
        (
            lambda: HolographicMemory(8, 2).read(torch.ones(6)),
            ValueError,
            r"key: expected shape \(..., 8\), got \(6,\)",
        ),
        (lambda: HolographicMemory(8, 2).read([1.0] * 8), TypeError, "key: expected a tensor, got list"),
        (
            lambda: HolographicMemory(8, 2).read(torch.ones(8), num_copies=3),
            ValueError,
            "num_copies: expected at most 2",
        ),
        (
            lambda: HolographicMemory(8, 2, batch_shape=(4,)).read(torch.ones(3, 8)),
            ValueError,
            r"key: expected shape \(4, ..., 8\), got \(3, 8\)",
        ),
        (
            lambda: HolographicMemory(8, 2, batch_shape=(4,)).read(torch.ones(8)),
            ValueError,
            "key: expected shape",
        ),
        (
            lambda: HolographicMemory(8, 2, permutation="shifts"),
            ValueError,
            "permutation: expected one of 'random', 'shift', got 'shifts'",
        ),
        (lambda: expected_error(1, 1, permutation="none"), ValueError, "permutation: expected one of"),
        (lambda: expected_error(0, 1), ValueError, "items: expected at least 1"),
        (lambda: expected_error(1, 0), ValueError, "copies: expected at least 1"),
        (lambda: expected_error(1, 1, size=3), ValueError, "size: expected an even"),
        (lambda: expected_error(1, 1, known=0), ValueError, "known: expected a fraction"),
    ],
)
def test_bad_input_is_named(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        (torch.ones(8), torch.full((8,), torch.nan), ValueError, "value: expected finite numbers"),
        (torch.full((8,), torch.inf), torch.ones(8), ValueError, "key: expected finite numbers"),
        (torch.ones(8), torch.ones(6), ValueError, "value: expected shape"),
        (torch.ones(8), [1.0] * 8, TypeError, "value: expected a tensor, got list"),
        ([1.0] * 8, torch.ones(8), TypeError, "key: expected a tensor, got list"),
        (torch.ones(3, 8), torch.ones(2, 8), ValueError, "value: expected a shape that fits key"),
        (
            torch.ones(8).double(),
            torch.ones(8),
            TypeError,
            "key: expected torch.float32 on cpu, as the memory",
        ),
    ],
)
def test_a_refused_write_leaves_the_memory_unchanged(
    key, value, error: type[Exception], message: str
) -> None:
    memory = HolographicMemory(8, 2)
    memory.write(torch.ones(8), torch.ones(8))
    before = memory.traces.clone()
    with pytest.raises(error, match=message):
        memory.write(key, value)
    assert memory.traces.equal(before)
