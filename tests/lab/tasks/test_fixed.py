"""Recall and state tracking: each definition against a parser of its own, what is scored, splits, odd options."""

import itertools
import json
import math

import numpy as np
import pytest
import torch

from associative_lstm.lab.run.config import complete, task_of
from associative_lstm.lab.tasks import (
    MQAR,
    Compression,
    FuzzyRecall,
    InContextRecall,
    ModularArithmetic,
    NoisyRecall,
    Parity,
    SelectiveCopying,
    StackedMQAR,
    SwapsOfFive,
    make_task,
)
from associative_lstm.lab.tasks.fixed import without_replacement

RECALL = ("mqar", "mqar-stacked", "mad-recall", "mad-fuzzy", "mad-noisy", "mad-copying", "mad-compression")
TRACKING = ("parity", "modular-arithmetic", "s5")


def drawn(task, count=200, split="test", seed=0):
    return task.draw(np.random.default_rng(seed), count, split)


def rows(task, **options):
    """Sequence by sequence: the symbols, and what is to be said at which step."""
    inputs, targets, scored = drawn(task, **options)
    for sequence, target, mask in zip(inputs, targets, scored, strict=True):
        yield sequence.tolist(), {int(t): int(target[t]) for t in np.flatnonzero(mask)}


@pytest.mark.parametrize(("vocabulary", "length", "pairs"), [(256, 64, 4), (64, 64, 16), (20, 36, 9)])
def test_mqar_asks_for_every_key_once_and_its_value_stands_after_it(vocabulary, length, pairs):
    half = vocabulary // 2
    for symbols, answers in rows(MQAR(vocabulary, length, pairs)):
        assert len(symbols) == length
        keys, values = symbols[0 : 2 * pairs : 2], symbols[1 : 2 * pairs : 2]
        assert len(set(keys)) == len(set(values)) == pairs
        assert set(keys) <= set(range(1, half))
        assert set(values) <= set(range(half, vocabulary))
        assert all(step >= 2 * pairs and step % 2 == 0 for step in answers)
        found = dict(zip(keys, values, strict=True))
        assert {symbols[step]: said for step, said in answers.items()} == found


def test_a_slot_of_mqar_is_drawn_by_a_power_law():
    """The first key's slot, drawn before any other: the i-th of n with i ** (a - 1), a = 0.01."""
    inputs, _, scored = drawn(MQAR(length=64, pairs=4), count=20_000)
    first = inputs[:, :1] == inputs  # its key; a symbol drawn at random may be the same, and is not scored
    slot = ((first & scored).argmax(1) - 8) // 2
    weight = np.arange(1, 29) ** -0.99
    expected = weight / weight.sum()
    found = np.bincount(slot, minlength=28) / len(slot)
    assert np.abs(found - expected).max() < 5 * math.sqrt(expected.max() / len(slot))


def test_what_mqar_does_not_ask_is_any_symbol():
    inputs, _, scored = drawn(MQAR(vocabulary=16, length=64, pairs=4), count=2000)
    rest = inputs[:, 8:][~scored[:, 8:]]
    counts = np.bincount(rest, minlength=16)
    assert np.abs(counts / len(rest) - 1 / 16).max() < 0.005


def test_numbers_drawn_without_replacement_have_the_chances_of_a_draw_one_after_the_other():
    weights = np.array([4.0, 2.0, 1.0, 1.0])
    found = without_replacement(np.random.default_rng(1), 40_000, weights, 2)
    for a, b in itertools.permutations(range(4), 2):
        expected = weights[a] / 8 * weights[b] / (8 - weights[a])
        assert ((found == (a, b)).all(1)).mean() == pytest.approx(expected, abs=0.01)


def test_stacked_mqar_presents_pairs_then_every_key_without_its_value():
    task = StackedMQAR(vocabulary=40, pairs=6)
    orders = set()
    for symbols, answers in rows(task):
        pairs, queries = symbols[:6], symbols[6:]
        assert sorted(answers) == list(range(6, 12))
        assert {key: answers[6 + k] for k, (key, _) in enumerate(queries)} == dict(pairs)
        assert all(value == 0 for _, value in queries)
        assert len({key for key, _ in pairs}) == len({value for _, value in pairs}) == 6
        orders.add(tuple([key for key, _ in pairs].index(key) for key, _ in queries))
    assert len(orders) > 100


@pytest.mark.parametrize("task", [InContextRecall(), NoisyRecall(), NoisyRecall(noise=0.6)])
def test_in_context_recall_scores_the_values_of_keys_that_have_come_before(task):
    noise, keys_asked_last = 0, set()
    for symbols, answers in rows(task):
        assert len(symbols) == 127
        known, expected = {}, {}
        for step in range(0, 126, 2):
            key, value = symbols[step : step + 2]
            if key >= 16:
                assert value >= 16
                noise += 1
                continue
            assert key < 8 <= value < 16
            if key in known:
                expected[step] = known[key]
            assert known.setdefault(key, value) == value
        assert answers.pop(126) == known[symbols[126]]
        assert answers == expected
        keys_asked_last.add(symbols[126])
    assert noise / (200 * 63) == pytest.approx(task.noise, abs=0.03)
    assert keys_asked_last == set(range(8))


def motifs(symbols):
    """Keys and values of a sequence of fuzzy recall, each with the step at which it begins."""
    at = 0
    for is_key, run in itertools.groupby(symbols, lambda symbol: symbol < 7):
        run = tuple(run)
        yield is_key, at, run
        at += len(run)


@pytest.mark.parametrize("split", ["train", "test"])
def test_fuzzy_recall_repeats_motifs_and_its_last_key_has_come_before(split):
    task, sizes, asked = FuzzyRecall(), set(), 0
    inputs, targets, scored = drawn(task, split=split)
    for symbols, target, mask in zip(inputs, targets, scored, strict=True):
        whole = [*symbols.tolist(), int(target[-1])]
        filled = whole.index(next(s for s in whole if s != 15))
        assert 15 not in whole[filled:]
        known, again = {}, set()
        found = list(motifs(whole[filled:]))
        assert len(found) % 2 == 0
        for (is_key, _, key), (_, at, value) in zip(found[::2], found[1::2], strict=True):
            assert is_key
            assert len(set(key)) == len(key)
            assert len(set(value)) == len(value) <= 3
            sizes.add(len(key))
            if key in known:
                again |= set(range(filled + at - 1, filled + at - 1 + len(value)))
            assert known.setdefault(key, value) == value
        assert len(whole) - 2 in again  # the last value is one of a key that has come before
        asked += len(again)
        if split == "test":
            assert set(np.flatnonzero(mask).tolist()) == again
        else:
            assert mask.all()
    assert sizes == ({3} if split == "test" else {1, 2, 3})


def test_selective_copying_repeats_the_symbols_between_blanks_in_their_order():
    task, blanks = SelectiveCopying(), []
    for symbols, answers in rows(task):
        assert symbols[239:] == [15] + [14] * 16
        assert symbols[238] < 14
        said = [answers[step] for step in range(240, 256)]
        assert said == [symbol for symbol in symbols[:239] if symbol != 14]
        blanks.append(symbols.index(said[0]))
    assert np.mean(blanks) == pytest.approx(223 / 16, rel=0.15)


def test_compression_asks_for_every_symbol_at_the_end():
    inputs, targets, scored = drawn(Compression())
    assert (inputs == targets).all()
    assert scored.all()
    assert (inputs[:, -1] == 15).all()
    assert set(np.unique(inputs[:, :-1])) == set(range(15))


@pytest.mark.parametrize("task", [Parity(), ModularArithmetic(), SwapsOfFive()])
@pytest.mark.parametrize("split", ["test", "longer"])
def test_the_state_is_what_step_by_step_reckoning_gives(task, split):
    lengths = set()
    orders = list(itertools.permutations(range(5)))
    for symbols, answers in rows(task, count=400, split=split):
        last = max(answers)
        first = task.length if split == "longer" else 0
        if task.name == "parity":
            expected = {step: sum(symbols[: step + 1]) % 2 for step in range(last + 1)}
        elif task.name == "modular-arithmetic":
            assert last % 2 == 0
            texts = {step: task.decode(torch.tensor(symbols[: step + 1])) for step in range(0, last + 1, 2)}
            expected = {step: eval(text) % 5 for step, text in texts.items()}
        else:
            things, expected = list("abcde"), {}
            for step, symbol in enumerate(symbols[: last + 1]):
                one, other = (place for place, to in enumerate(orders[symbol]) if place != to)
                things[one], things[other] = things[other], things[one]
                expected[step] = orders.index(tuple(map("abcde".index, things)))
        assert answers == {step: state for step, state in expected.items() if step >= first}
        lengths.add(last + 1)
    least, most = (task.length + 1, task.longest) if split == "longer" else (3, task.length)
    odd = task.name == "modular-arithmetic"
    assert min(lengths) >= least
    assert max(lengths) <= most
    assert max(lengths) >= 0.95 * most
    assert min(lengths) <= least + 5 + odd


@pytest.mark.parametrize("name", [*RECALL, *TRACKING])
def test_training_and_test_are_apart_and_the_test_is_the_same_for_every_seed(name):
    task, other = make_task(name, sequences=100), make_task(name, sequences=100)
    next(other.stream(4, seed=7))
    for one, same in zip(task.read_test(), other.read_test(), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    trained = next(task.stream(100, seed=0)).inputs
    tested = next(iter(task.read_test(lanes=100))).inputs
    steps = min(len(trained), len(tested))
    assert not torch.equal(trained[:steps], tested[:steps])
    assert (task.read_longer() is None) == (name in RECALL)


def test_every_sequence_is_trained_on_once_in_each_round_and_in_another_order():
    task = MQAR(sequences=10)
    stream = task.stream(4, seed=3)
    seen = [tuple(lane.tolist()) for _ in range(5) for lane in next(stream).inputs[:8].T]  # pairs alone
    assert len(set(seen)) == 10
    assert sorted(seen[:10]) == sorted(seen[10:])
    assert seen[:10] != seen[10:]
    halves = [next(task.stream(4, seed=3, rank=rank, world_size=2)).inputs[:8] for rank in range(2)]
    assert [tuple(lane.tolist()) for half in halves for lane in half.T] == seen[:4]


def test_a_test_is_read_once_by_however_many_processes():
    task = StackedMQAR(pairs=2)

    def lanes(**mine):
        for batch in task.read_test(lanes=48, **mine):
            yield from (
                tuple(lane)
                for lane, m in zip(batch.inputs[:, :, 0].T.tolist(), batch.mask.T, strict=True)
                if m.any()
            )

    whole = list(lanes())
    assert len(whole) == 1000
    shared = [list(lanes(rank=rank, world_size=3)) for rank in range(3)]
    assert sorted(itertools.chain(*shared)) == sorted(whole)
    assert len({len(task.read_test(lanes=48, rank=rank, world_size=3)) for rank in range(3)}) == 1


def test_a_batch_ends_with_the_last_step_that_is_scored():
    task = Parity(length=10, longest=11)
    for batch in itertools.islice(task.stream(2, seed=0), 20):
        assert batch.mask[-1].any()
        assert len(batch.inputs) == len(batch.mask) <= 10


@pytest.mark.parametrize("name", [*RECALL, *TRACKING])
def test_a_restored_stream_continues_in_the_middle_of_a_round(name):
    task = make_task(name, sequences=37)
    stream = task.stream(8, seed=1)
    for _ in range(11):
        next(stream)
    state = json.loads(json.dumps(stream.state()))
    resumed = make_task(name, sequences=37).stream(8, seed=1)
    resumed.load_state(state)
    for one, other in itertools.islice(zip(stream, resumed, strict=True), 12):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"task": "mqar", "pairs": 17}, "length must be even and at least 68 for 17 pairs"),
        ({"task": "mqar", "length": 63}, "length must be even and at least 16"),
        ({"task": "mqar", "vocabulary": 8}, "vocabulary 8 has 3 keys, too few for 4 pairs"),
        ({"task": "mqar-stacked", "vocabulary": 1}, "vocabulary 1 has 0 keys, too few for 4 pairs"),
        ({"task": "mad-recall", "length": 7}, "length must be even and at least 4"),
        ({"task": "mad-recall", "vocabulary": 1}, "vocabulary must be at least 2"),
        ({"task": "mad-noisy", "vocabulary": 16}, "vocabulary must be at least 18"),
        ({"task": "mad-fuzzy", "vocabulary": 6}, "vocabulary must be at least 7"),
        ({"task": "mad-fuzzy", "length": 20}, "length must be at least 24"),
        ({"task": "mad-copying", "copied": 128}, "length must be at least 258 to copy 128, got 256"),
        ({"task": "parity", "longest": 40}, "length must be at least 3 and below longest, got 40 and 40"),
        (
            {"task": "modular-arithmetic", "length": 39, "longest": 40},
            "length must be at least 3 and 2 below longest, got 39 and 40",
        ),
        ({"task": "s5", "length": 2}, "length must be at least 3 and below longest"),
        ({"task": "xml", "pairs": 4}, "pairs has no meaning for task 'xml'"),
        ({"task": "mqar", "noise": 0.2}, "noise has no meaning for task 'mqar'"),
        ({"task": "mad-noisy", "noise": 1.0}, "noise must be below 1"),
        (
            {"task": "parity", "window": 10},
            "window has no meaning for task 'parity', whose sequences are whole",
        ),
        ({"task": "ntm-copy", "embedding": 8}, "embedding has no meaning for task 'ntm-copy', whose inputs"),
    ],
)
def test_odd_options_are_refused_with_a_sentence(values, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        task_of(complete(values))


def test_a_configuration_has_the_small_published_setting_unless_told():
    config = complete({"task": "mqar"})
    assert (config.vocabulary, config.length, config.pairs, config.sequences) == (256, 64, 4, 10_000)
    assert complete({"task": "mad-noisy"}).noise == 0.2
    assert complete({"task": "xml"}).vocabulary is None
    assert "embedding = 0\n" in complete({"task": "mqar", "embedding": 0}).to_toml()
    assert "embedding" not in complete({"task": "xml"}).to_toml()
    task = task_of(complete({"task": "parity", "length": 20, "longest": 30, "sequences": 50}))
    assert (task.length, task.longest, task.sequences) == (20, 30, 50)


def test_chance_is_one_of_the_values():
    assert MQAR().chance == 7
    assert MQAR(vocabulary=8192).chance == 12
    assert NoisyRecall(vocabulary=48).chance == 4
    assert SelectiveCopying().chance == pytest.approx(math.log2(14))
