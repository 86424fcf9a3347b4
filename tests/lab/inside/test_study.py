"""The study of trained networks: which write an answer should be read from, and what is counted of it."""

import importlib.util
from pathlib import Path

import pytest
import torch

from made_networks import reader

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "inside.py"


@pytest.fixture(scope="module")
def script():
    specification = importlib.util.spec_from_file_location("inside_study", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_a_queried_value_is_meant_to_be_read_from_where_it_was_set(script):
    text = "q(a)b.s(ml,a),s(qc,n),q(ml)a.s(ab,x),s(ac,y),q(ac)y."
    first, second = script.MEANT["assignment"](text)
    assert (first.place, first.meant, first.rivals) == (27, (11,), (19,))
    assert [text[k] for k in (second.place, *second.meant, *second.rivals)] == ["y", "y", "x"]
    assert (first.group, second.group) == ("2 variables", "another variable begins alike")


def test_a_closing_letter_is_meant_to_be_read_from_the_opening_one(script):
    text = "</lost><ab><cde></cde></ab>"
    found = [(a.place, a.meant, a.rivals, a.group) for a in script.MEANT["xml"](text)]
    assert found == [
        (18, (12,), (8,), "depth 2"),
        (19, (13,), (9,), "depth 2"),
        (20, (14,), (), "depth 2"),
        (24, (8,), (), "depth 1"),
        (25, (9,), (), "depth 1"),
    ]
    assert all(text[place] == text[meant] for place, (meant,), *_ in found)


def test_a_digit_is_meant_to_be_read_from_those_in_its_place(script):
    text = "7]-981+1721=047]"
    answers = list(script.MEANT["arithmetic"](text))
    assert [text[a.place] for a in answers] == ["0", "4", "7"]
    assert [[text[k] for k in a.meant] for a in answers] == [["1", "1"], ["8", "2"], ["9", "7"]]
    assert all(not set(a.meant) & set(a.rivals) for a in answers)


def test_a_copied_character_is_meant_to_be_read_from_itself(script):
    answers = list(script.MEANT["copy"]("cah____:___"))
    assert [(a.place, a.meant) for a in answers] == [(8, (0,)), (9, (1,)), (10, (2,))]


@pytest.mark.parametrize("task", ["assignment", "xml", "arithmetic", "copy"])
def test_every_task_has_its_table(script, task):
    trained = reader(task=task, heads=2, layers=2).trained
    found = list(script.study(trained, answers=12, seed=3))
    assert len(found) == 12
    for one in found:
        assert one.bits == pytest.approx(sum(one.by_head))
        assert one.recalled or one.others > 0
        assert one.noise >= 0
    rows = list(script.table("name", found))
    assert rows[0].startswith("| name | all | 12 | ")
    assert len(rows) == 1 + len({one.group for one in found})
    again = list(script.study(trained, answers=12, seed=3))
    assert torch.equal(torch.tensor([a.bits for a in found]), torch.tensor([a.bits for a in again]))
