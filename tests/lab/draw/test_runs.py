"""The pictures of `alstm compare`: colours of the figures, and two runs of a network told apart."""

from associative_lstm.lab.draw.runs import labels_of, looks_of
from associative_lstm.lab.experiments.learning.curves import NETWORKS
from associative_lstm.lab.experiments.learning.drawing import look_of
from associative_lstm.lab.run.config import complete

NAMES = ("lstm-128", "lstm-512", "associative-lstm-1", "associative-lstm-4", "associative-lstm-8", "ntm")


def config(name, **more):
    return complete(dict(NETWORKS[name].values) | {"task": "xml"} | more)


def test_networks_have_the_looks_of_the_figures():
    assert looks_of([config(name) for name in NAMES]) == [look_of(NETWORKS[name]) for name in NAMES]


def test_runs_of_one_network_have_its_colour_and_lines_of_their_own():
    looks = looks_of([config("lstm-128", seed=seed) for seed in range(6)])
    assert len(set(looks)) == 6
    assert len({colour for colour, _ in looks[:4]}) == 1
    assert not {colour for colour, _ in looks[4:]} & {looks[0][0]}


def test_any_number_of_copies_has_a_look():
    looks = looks_of([config("associative-lstm-4", copies=copies) for copies in (2, 4)])
    assert len({colour for colour, _ in looks}) == 2


def test_runs_that_differ_in_nothing_are_told_apart_by_their_folders():
    one, other = config("lstm-128"), config("lstm-128", seed=1)
    assert labels_of([one, other], ["a", "b"]) == ["LSTM 128, seed 0", "LSTM 128, seed 1"]
    assert labels_of([one, one], ["x/a", "y/a"]) == ["LSTM 128, x/a", "LSTM 128, y/a"]
    assert labels_of([one, one, other], ["x/a", "y/b", "c"]) == [
        "LSTM 128, seed 0, a",
        "LSTM 128, seed 0, b",
        "LSTM 128, seed 1",
    ]
