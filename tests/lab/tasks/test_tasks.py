"""The tasks: the paper's own examples, the form of random sequences, windows, lanes and exact positions."""

import collections
import gzip
import itertools
import json
import random
import re
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from associative_lstm.lab.tasks import (
    ONLINE_VOCABULARY,
    TASKS,
    XML,
    Arithmetic,
    Assignment,
    Copy,
    NTMCopy,
    OnlineTask,
    VariableCopy,
    Wikipedia,
    enwik8,
    make_task,
    register,
)

ONLINE = [XML, Assignment, Arithmetic]


@pytest.fixture
def text_file(tmp_path):
    file = tmp_path / "text"
    file.write_bytes(bytes(np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8)))
    return file


@pytest.fixture(params=sorted(TASKS))
def task(request, text_file):
    return make_task(request.param, **({"data": text_file} if request.param == "wikipedia" else {}))


def underlined(latex):
    r"""The text of the paper's example, and a ``^`` under every character inside ``\target{}``."""
    text = marks = ""
    for scored, plain in re.findall(r"\\target\{([^}]*)\}|([^\\]+)", latex):
        text += scored or plain
        marks += "^" * len(scored) + " " * len(plain)
    return text, marks


@pytest.mark.parametrize(
    ("task", "latex"),
    [
        (
            Assignment(),
            r"s(ml,a),s(qc,n),q(ml)\target{a.}s(ksxm,n),s(u,v),s(ikl,c),s(ol,n),q(ikl)\target{c.}s(",
        ),
        (
            Arithmetic(),
            r"-4-98308856=\target{06880389-]}-981+1721=\target{047]}-10+75723=\target{31757]}8824413+",
        ),
    ],
)
def test_the_papers_examples_are_scored_as_underlined(task, latex):
    text, marks = underlined(latex)
    assert task.marks(text) == marks


def test_the_papers_xml_example_is_scored_as_underlined_but_for_one_slip():
    text, marks = underlined(
        r"\target{<}xkw>\target{<}svgquspn>\target{<}oqrwxsln>\target{<}/\target{oqrwxsln>}\target{<}/"
        r"\target{svgquspn>}\target{<}jrcfcacaa>\target{<}/\target{jrcfcacaa}>\target{<}/\target{xk}"
    )
    # The paper underlines the > of the first two closing tags and not that of the third: we score all alike.
    slip = text.index("</jrcfcacaa>") + len("</jrcfcacaa")
    assert text[slip] == ">"
    assert marks[slip] == " "
    assert XML().marks(text) == marks[:slip] + "^" + marks[slip + 1 :]


def test_the_online_tasks_share_one_vocabulary_of_eighty_symbols():
    assert len(set(ONLINE_VOCABULARY)) == len(ONLINE_VOCABULARY) == 80
    for cls in ONLINE:
        assert cls().vocabulary == ONLINE_VOCABULARY
        assert cls().input_size == cls().output_size == 80
    assert (Copy().input_size, Copy().output_size) == (10, 10)


def lane_text(task, windows, lane=0, seed=0):
    stream = task.stream(2, seed)
    batches = [next(stream) for _ in range(windows)]
    return "".join(task.decode(batch.inputs[:, lane]) for batch in batches), batches


def test_xml_is_well_formed_at_most_four_deep_and_names_have_one_to_ten_letters():
    text, _ = lane_text(XML(), 300)
    opened, deepest, lengths = [], 0, set()
    for closing, name in re.findall(r"<(/?)([a-z]*)>", text):
        if closing:
            assert opened.pop() == name
        else:
            opened.append(name)
            lengths.add(len(name))
        deepest = max(deepest, len(opened))
    assert deepest == 4
    assert lengths == set(range(1, 11))
    assert re.sub(r"</?[a-z]{1,10}>", "", text[: text.rindex(">") + 1]) == ""


def test_assignments_answer_with_the_value_of_the_distinct_variable_asked_for():
    text, _ = lane_text(Assignment(), 300)
    counts = set()
    for sequence in text.split(".")[:-1]:
        body, asked, value = re.fullmatch(r"(.*),q\(([a-z]{1,4})\)([a-z])", sequence).groups()
        pairs = re.findall(r"s\(([a-z]{1,4}),([a-z])\)", body)
        assert body == ",".join(f"s({k},{v})" for k, v in pairs)
        assert len(dict(pairs)) == len(pairs)
        assert dict(pairs)[asked] == value
        counts.add(len(pairs))
    assert counts == {1, 2, 3, 4}


def test_arithmetic_is_right_reversed_and_has_no_leading_zeros():
    text, _ = lane_text(Arithmetic(), 300)
    lengths = set()
    for sequence in text.split("]")[:-1]:
        first, operator, second, result = re.fullmatch(r"(-?\d+)([+-])(\d+)=(\d+-?)", sequence).groups()
        assert all(number == str(int(number)) for number in (first, second))
        expected = int(first) + int(second) if operator == "+" else int(first) - int(second)
        digits = result.rstrip("-")[::-1]
        assert digits == str(int(digits))
        assert int(result[len(digits) :] + digits) == expected
        lengths |= {len(first.lstrip("-")), len(second)}
    assert lengths == set(range(1, 9))


@pytest.mark.parametrize("cls", ONLINE)
def test_windows_are_contiguous_and_targets_are_the_next_symbols(cls):
    task = cls(window=37)
    text, batches = lane_text(task, 400)
    marks = "".join(" ^"[m] for batch in batches for m in batch.mask[:, 0].tolist())
    targets = "".join(task.decode(batch.targets[:, 0]) for batch in batches)
    assert targets[:-1] == text[1:]
    # The mask belongs to the target: shifted by one, it is the marks of the text, also at windows' borders.
    assert marks[:-1] == task.marks(text)[1:]


@pytest.mark.parametrize("cls", ONLINE)
def test_lanes_differ_and_depend_on_seed_split_and_their_own_number_only(cls):
    task = cls()
    whole = next(task.stream(4, seed=3))
    columns = {tuple(whole.inputs[:, b].tolist()) for b in range(4)}
    assert len(columns) == 4
    second_half = next(task.stream(4, seed=3, rank=1, world_size=2))
    assert torch.equal(second_half.inputs, whole.inputs[:, 2:])
    assert torch.equal(second_half.mask, whole.mask[:, 2:])
    for other in (task.stream(4, seed=4), task.stream(4, seed=3, split="test")):
        assert not torch.equal(next(other).inputs, whole.inputs)


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("before", [0, 1, 41, 300])
def test_a_restored_stream_continues_exactly(task, before):
    stream = task.stream(2, seed=1)
    for _ in range(before):
        next(stream)
    state = json.loads(json.dumps(stream.state()))
    expected = [next(stream) for _ in range(60)]
    resumed = task.stream(2, seed=1)
    resumed.load_state(state)
    assert all(same(next(resumed), batch) for batch in expected)


def test_the_same_seed_gives_the_same_batches(task):
    first, second = task.stream(2, seed=5), task.stream(2, seed=5)
    assert all(same(next(first), next(second)) for _ in range(5))


def test_batches_have_the_promised_shapes_and_types(task):
    inputs, targets, mask = next(task.stream(2, seed=0))
    assert mask.dtype == torch.bool
    assert mask.any()
    if task.vocabulary is None:
        assert inputs.shape == (*mask.shape, task.input_size)
        assert targets.shape == (*mask.shape, task.output_size)
        assert inputs.dtype == targets.dtype == torch.float32
    else:
        several = (task.symbols_per_step,) if task.symbols_per_step > 1 else ()
        assert inputs.shape == (*mask.shape, *several)
        assert targets.shape == mask.shape
        assert inputs.dtype == targets.dtype == torch.int64
        assert len(task.vocabulary) == task.input_size
    online = "bits per character" if task.name == "wikipedia" else "bits per scored symbol"
    assert task.unit == ("bits per sequence" if task.per_sequence else online)


def test_copy_lays_out_characters_blanks_delimiter_and_answer():
    task = Copy()
    inputs, targets, mask = batch = next(task.stream(2, seed=0))
    text, answer = task.decode(inputs[:, 1]), task.decode(targets[:, 1])
    assert re.fullmatch(r"[a-h]{10}_{100}:_{10}", text)
    assert answer == "_" * 111 + text[:10]
    assert mask.all()
    assert task.answer(batch).nonzero()[:, 0].min() == 111
    assert task.chance == 30


def test_variable_copy_has_one_to_ten_characters_and_scores_no_padding():
    task, lengths = VariableCopy(), set()
    stream = task.stream(3, seed=0)
    for _ in range(40):
        batch = next(stream)
        for b in range(3):
            steps = int(batch.mask[:, b].sum())
            assert batch.mask[:steps, b].all()
            text, answer = task.decode(batch.inputs[:steps, b]), task.decode(batch.targets[:steps, b])
            characters = re.fullmatch(r"([a-h]+)_{100}:_+", text)[1]
            assert answer == "_" * (len(characters) + 101) + characters
            assert task.answer(batch)[:, b].sum() == len(characters)
            lengths.add(len(characters))
    assert lengths == set(range(1, 11))
    assert task.chance == 16.5


def test_ntm_copy_repeats_the_vectors_after_the_delimiter():
    task = NTMCopy()
    stream = task.stream(2, seed=0)
    lengths = set()
    for _ in range(100):
        inputs, targets, mask = next(stream)
        for b in range(2):
            [end] = inputs[:, b, 8].nonzero().flatten().tolist()
            assert torch.equal(targets[end + 1 : 2 * end + 1, b], inputs[:end, b, :8])
            assert mask[:, b].nonzero().flatten().tolist() == list(range(end + 1, 2 * end + 1))
            assert not inputs[end + 1 :, b].any()
            lengths.add(end)
    assert lengths == set(range(1, 21))


@pytest.mark.parametrize("cls", ONLINE[:2])
def test_chance_is_the_cost_of_the_form_alone(cls):
    """The mean over scored symbols of -log2 p, for a predictor that knows the grammar and no name."""
    text, _ = lane_text(cls(), 2000)
    scored = sum(mark == "^" for mark in cls().marks(text))
    if cls is Assignment:
        bits = text.count(".") * np.log2(26)
    else:
        names = re.findall(r"</([a-z]+)>", text)
        bits = sum(np.log2(10) + len(name) * np.log2(26) for name in names)
    assert bits / scored == pytest.approx(cls.chance, rel=0.01)


def test_chance_on_arithmetic_is_the_entropy_of_a_result_by_places():
    """Who knows how far the result is written, and whether its sign is, knows the form and no number."""
    rng, seen = random.Random(0), collections.defaultdict(collections.Counter)
    for _ in range(20_000):
        _, result = Arithmetic().sequence(rng).split("=")
        for place, (before, symbol) in enumerate(itertools.pairwise(f"={result}")):
            seen[place, before == "-"][symbol] += 1
    counts = [np.array(list(counter.values())) for counter in seen.values()]
    bits = -sum((n * np.log2(n / n.sum())).sum() for n in counts)
    assert bits / sum(n.sum() for n in counts) == pytest.approx(Arithmetic.chance, rel=0.01)


def test_wikipedia_splits_reads_in_lanes_and_wraps_around(text_file):
    data = text_file.read_bytes()
    task = Wikipedia(text_file, window=100)
    assert task.length("train") == 4800
    assert bytes(task.split("test")) == data[4800:]
    stream = task.stream(3, seed=0)
    batches = [next(stream) for _ in range(60)]
    for b in range(3):
        read = bytes(torch.cat([batch.inputs[:, b] for batch in batches]).tolist())
        lap = data[1600 * b : 4800] + data[: 1600 * b]
        assert read == (lap + lap)[:6000]
        targets = bytes(torch.cat([batch.targets[:, b] for batch in batches]).tolist())
        assert targets[:-1] == read[1:]
    assert all(batch.mask.all() for batch in batches)
    half = next(task.stream(4, seed=0, rank=1, world_size=2))
    assert torch.equal(half.inputs, next(task.stream(4, seed=0)).inputs[:, 2:])


def test_a_packed_corpus_is_unpacked_once_into_the_cache(tmp_path, text_file, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    packed = tmp_path / "text.gz"
    packed.write_bytes(gzip.compress(text_file.read_bytes()))
    said = []
    first = enwik8.find_corpus(packed, said.append)
    assert first.read_bytes() == text_file.read_bytes()
    assert enwik8.find_corpus(packed, said.append) == first
    assert len(said) == 1
    archive = tmp_path / "text.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.write(text_file, "text")
    assert enwik8.find_corpus(archive).read_bytes() == text_file.read_bytes()


def test_a_download_is_kept_only_if_its_hash_is_right(tmp_path, text_file, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = tmp_path / "enwik8.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.write(text_file, "enwik8")
    monkeypatch.setattr(enwik8, "ENWIK8_URL", archive.as_uri())
    with pytest.raises(ValueError, match="SHA-256"):
        enwik8.find_corpus()
    assert list((tmp_path / "cache" / "associative-lstm").iterdir()) == []
    monkeypatch.setattr(enwik8, "ENWIK8_SHA256", enwik8.hashlib.sha256(text_file.read_bytes()).hexdigest())
    assert enwik8.find_corpus().read_bytes() == text_file.read_bytes()
    monkeypatch.setattr(enwik8, "ENWIK8_URL", "file:///nowhere")
    assert enwik8.find_corpus().is_file()


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200), suffix=st.sampled_from([".gz", ".zip", ""]))
def test_a_broken_corpus_is_one_sentence(tmp_path_factory, content, suffix):
    file = tmp_path_factory.mktemp("corpus") / f"text{suffix}"
    file.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(file.parent / "cache"))
        if suffix == "" and len(content) >= 50:
            next(Wikipedia(file, window=10).stream(2, seed=0))
        else:
            with pytest.raises(ValueError, match=r"\Adata: .*\Z"):
                Wikipedia(file, window=10)


@pytest.mark.parametrize(
    "state",
    [None, {}, {"block": [0]}, {"block": [0, -1], "offset": [0, 0]}, {"block": "00", "offset": [0, 0]}],
)
def test_a_broken_position_is_refused(state):
    with pytest.raises(ValueError, match="stream state"):
        Assignment().stream(2, seed=0).load_state(state)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"unknown task 'xlm', did you mean 'xml'\?"):
        make_task("xlm")
    with pytest.raises(ValueError, match="window must be at least 1"):
        XML(window=0)
    with pytest.raises(ValueError, match="cannot be shared equally by 2"):
        XML().stream(3, seed=0, world_size=2)
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        XML().stream(0, seed=0)
    with pytest.raises(ValueError, match="is not a file"):
        Wikipedia("nowhere")
    with pytest.raises(ValueError, match="exists already"):
        register(type("Other", (XML,), {}))


def test_a_task_of_ones_own_is_checked():
    class Loud(OnlineTask):
        name = "loud"
        description = "writes what is not in the vocabulary"
        chance = 0.0
        said = "ß"

        def sequence(self, rng):
            return self.said

        def marks(self, text):
            return " " * len(text)

    class Foreign(Loud):
        vocabulary = "aλ"

    with pytest.raises(ValueError, match="vocabulary: 'λ' is beyond Latin-1"):
        Foreign()
    with pytest.raises(ValueError, match="character 'ß' is not in its vocabulary"):
        Loud().stream(1, seed=0)
    Loud.said = "a"
    Loud.marks = lambda self, text: " "
    with pytest.raises(ValueError, match="marks\\(\\) returned 1 characters"):
        Loud().stream(1, seed=0)
