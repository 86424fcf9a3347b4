"""The study of trained networks: which write an answer should be read from, what is counted, and how it is judged."""

import json
import re

import pytest
import torch

from associative_lstm import AssociativeLSTM, inside
from associative_lstm.functional import conjugate, random_key
from associative_lstm.lab import cli
from associative_lstm.lab.experiments.inside import measure, study
from associative_lstm.lab.experiments.inside.meant import ALIKE, MEANT, Answer
from associative_lstm.lab.experiments.learning.curves import curve
from associative_lstm.lab.run.model import SequenceModel
from made_networks import reader


def test_a_queried_value_is_meant_to_be_read_from_where_it_was_set():
    text = "q(a)b.s(ml,a),s(qc,n),q(ml)a.s(abx,x),s(ac,y),q(ac)y.s(ab,x),s(abc,y),q(abc)y."
    first, second, third = MEANT["assignment"](text)
    assert (first.place, first.meant) == (27, (11,))
    assert first.others["values of other variables"] == (19,)
    assert [text[k] for k in first.others["the variable's name"]] == ["m", "l"]
    others = second.others["values of other variables"]
    assert [text[k] for k in (second.place, *second.meant, *others)] == ["y", "y", "x"]
    assert second.others["values of earlier sequences"] == (11, 19)
    assert (first.group, second.group, third.group) == ALIKE


def test_a_closing_letter_is_meant_to_be_read_from_the_opening_one():
    text = "</lost><ab><cde></cde><fg></fg></ab>"
    found = list(MEANT["xml"](text))
    assert [(text[a.place], a.meant[0], a.group) for a in found] == [
        ("c", 12, "depth 2"),
        ("d", 13, "depth 2"),
        ("e", 14, "depth 2"),
        ("f", 23, "depth 2"),
        ("g", 24, "depth 2"),
        ("a", 8, "depth 1"),
        ("b", 9, "depth 1"),
    ]
    assert all(text[a.place] == text[a.meant[0]] for a in found)
    of_g = {kind.split(",")[0]: [text[k] for k in places] for kind, places in found[4].others.items()}
    assert of_g["tags open around it"] == ["b"]
    assert of_g["closed tags of this depth"] == ["d"]
    assert [text[k] for k in found[1].others["this tag, the letter before"]] == ["c"]
    assert [text[k] for k in found[1].others["this tag, the letter after"]] == ["e"]
    assert [text[k] for k in found[5].others["closed tags of other depths, the same letter"]] == ["c", "f"]


def test_a_digit_is_meant_to_be_read_from_those_in_its_place():
    text = "7]-981+1721=047]"
    answers = list(MEANT["arithmetic"](text))
    assert [text[a.place] for a in answers] == ["0", "4", "7"]
    assert [[text[k] for k in a.meant] for a in answers] == [["1", "1"], ["8", "2"], ["9", "7"]]
    for a in answers:
        places = [k for some in a.kinds.values() for k in some]
        assert len(places) == len(set(places))
        assert a.place - 1 in places
    assert [text[k] for k in answers[1].kinds["second number, the place above"]] == ["7"]
    assert [text[k] for k in answers[1].kinds["first number, the place below"]] == ["1"]


def test_a_copied_character_is_meant_to_be_read_from_itself():
    answers = list(MEANT["copy"]("cah____:___"))
    assert [(a.place, a.meant) for a in answers] == [(8, (0,)), (9, (1,)), (10, (2,))]


@pytest.mark.parametrize("task", ["assignment", "xml", "arithmetic", "copy"])
def test_what_an_answer_is_made_of(task):
    trained = reader(task=task, heads=2, layers=2).trained
    found = list(measure.look_at(trained, answers=12, seed=3))
    assert len(found) == 12
    for one in found:
        assert (
            one.recalled == (one.bits > one.next) or one.bits > one.next
        )  # of two writes meant, one may be less
        assert not (one.mistaken and one.right)
        if task == "arithmetic":
            assert sum(map(sum, one.shares.values())) <= 1 + 1e-9
        else:
            assert one.votes["what was meant"] == pytest.approx(one.bits) or not one.right
    again = list(measure.look_at(trained, answers=12, seed=3))
    assert torch.equal(torch.tensor([a.bits for a in found]), torch.tensor([a.bits for a in again]))


class Closes:
    """A model of XML that answers by rule what comes after a text that ends within a closing tag."""

    def __init__(self, task, rule):
        self.task, self.rule = task, rule

    def double(self):
        return self

    def __call__(self, x):
        text = self.task.decode(x[:, 0])
        said = [self._next(text[: t + 1]) for t in range(len(text))]
        symbols = torch.tensor(self.task.encode("".join(said)).tolist())
        return torch.nn.functional.one_hot(symbols, 80).unsqueeze(1).double(), None

    def _next(self, text):
        closing = re.search("</([a-z]+)$", text)
        if closing is None:
            return "<"
        opened = []
        for tag in re.finditer("<(/?)([a-z]+)>", text):
            opened = opened[:-1] if tag[1] else [*opened, tag[2]]
        return self.rule(opened[-1] if opened else "", closing[1])


def test_a_queue_is_told_from_a_chain_by_wrong_letters():
    trained = reader(task="xml").trained
    rules = {
        "queue": lambda name, given: name[len(given) : len(given) + 1] or ">",
        "chain": lambda name, given: (name + ">")[name.find(given[-1]) + 1],
    }
    found = {
        kind: measure.given_wrong_letters(trained._replace(model=Closes(trained.task, rule)), 200, seed=0)
        for kind, rule in rules.items()
    }
    assert found["queue"]["letters"] >= 200
    assert (found["queue"]["right"], found["queue"]["wrong"]) == (1, 1)
    assert found["chain"]["right"] > 0.8
    assert found["chain"]["wrong"] < 0.2


@pytest.mark.parametrize("copies", [1, 16])
def test_the_law_of_the_memory_is_found_where_it_is_put(copies):
    """Every step writes a random value under a random key, the last reads one of them: items / copies."""
    torch.manual_seed(0)
    steps, size, meant = 60, 512, range(0, 40, 4)
    layer = AssociativeLSTM(steps, size, num_copies=copies).double()
    keys, values = random_key(size, steps).double(), random_key(size, steps).double()
    errors = []
    for k in meant:
        with torch.no_grad():
            layer.weight_hh_l0.zero_()
            layer.bias_l0.zero_()
            layer.weight_ih_l0.fill_(50.0)  # gates open
            layer.weight_ih_l0[layer.rows.input_key] = keys.T
            layer.weight_ih_l0[layer.rows.update] = values.T
            layer.weight_ih_l0[layer.rows.output_key] = conjugate(keys[k]).unsqueeze(1).expand(-1, steps)
        x = torch.eye(steps, dtype=torch.float64)
        [seen] = inside.look(layer, x)
        model = SequenceModel([layer], steps).double()
        [[items, error, answer]] = measure._noise(model, x, seen, [steps - 1], [Answer(steps, (k,), {}, "")])
        assert items == pytest.approx(steps - 1)
        assert answer > 0
        errors.append(error)
    assert sum(errors) / len(errors) == pytest.approx((steps - 1) / copies, rel=0.15)


def rows(task, network, copies=4, **changed):
    """A run as it is written down: everything as the claims have it."""
    group = {"answers": 9, "right": 0.9, "recalled": 0.95, "found": 1.0, "wrong": 1, "mistaken": 1.0}
    group |= {"bits": 9.0, "next": 2.0}
    kinds = [
        "what was meant",
        *("tags open around it", "closed tags of this depth", "closed tags of other depths"),
    ]
    votes = {kinds[0]: 10.0} | {f"{kind}, the same letter": 0.5 for kind in kinds[1:]}
    noise = {"items": 10.0, "error": 10.0 / copies, "error by item": 1 / copies, "exponent of items": 1.1}
    noise |= {"error of the answer": 0.1}
    row = {
        "task": task,
        "network": network,
        "run": f"{task}/{network}/lr0.005-seed10",
        "seed": 10,
        "groups": {"all": group} | {name: group for name in ALIKE if task == "assignment"},
        "votes": votes,
        "noise": noise | {"copies": copies},
    }
    if task == "xml":
        row["wrong letters"] = {"letters": 100, "right": 0.9, "wrong": 0.85}
    if task == "arithmetic":
        row["shares"] = {"first": [0.3, 0.1, 0.1], "second": [0.1, 0.3, 0.1], "little": [0.0, 0.0, 0.001]}
        del row["votes"]
    return [row | changed]


def everything():
    copies = {f"fast-associative-lstm-{n}": n for n in (1, 4, 8)}
    return {which: rows(*which, copies=copies.get(which[1], 4)) for which in study.STUDIED}


def verdicts(measured):
    return {claim.key: claim.verdict for claim in study.judge_all(measured)}


def test_every_claim_can_hold_fail_and_be_undecided(tmp_path):
    whole = {which: some * len(curve(*which).seeds) for which, some in everything().items()}
    assert set(verdicts(whole).values()) == {"holds"}
    assert set(verdicts(everything()).values()) == set(verdicts({}).values()) == {"undecided"}
    bad = {
        "groups": {name: rows("xml", "")[0]["groups"]["all"] | {"recalled": 0.5} for name in ("all", *ALIKE)}
    }
    bad["groups"][ALIKE[2]] = bad["groups"]["all"] | {"right": 0.5}
    bad["wrong letters"] = {"letters": 100, "right": 0.9, "wrong": 0.2}
    bad["votes"] = rows("xml", "")[0]["votes"] | {"tags open around it, the same letter": 5.0}
    bad["shares"] = {"first": [0.3, 0.1, 0.1], "second": [0.3, 0.1, 0.1]}
    bad["noise"] = {"error by item": 1.0, "copies": 4, "exponent of items": 0.2}
    broken = everything()
    for which in broken:
        # The law needs different numbers of copies.
        noise = bad["noise"] | {"copies": broken[which][0]["noise"]["copies"]}
        broken[which] = [*broken[which], broken[which][0] | bad | {"noise": noise}]
    assert set(verdicts(broken).values()) - {"undecided"} == {"fails"}
    assert [key for key, verdict in verdicts(broken).items() if verdict == "undecided"] == ["11c"]
    for which in broken:
        broken[which] = broken[which][1:]
    assert verdicts(broken)["11c"] == "fails"


def test_the_page_has_every_claim(tmp_path):
    outcome = study.write(tmp_path, [row for some in everything().values() for row in some], smoke=True)
    page = (tmp_path / "README.md").read_text()
    assert all(claim.sentence in page for claim in outcome.claims)
    assert "| what was meant | 10.0 |" in page
    assert "| xml | 8 | 1 | 10 | 1.25 | 0.125 | 1.1 | 0.1 |" in page
    assert study.page_of(study.read(tmp_path), outcome.claims) == page


def test_the_command_makes_the_runs_and_looks_into_them(tmp_path, capsys):
    command = [
        "reproduce",
        "inside",
        "--smoke",
        "--runs",
        str(tmp_path / "runs"),
        "--out",
        str(tmp_path / "out"),
    ]
    assert cli.main(command) == 0
    written = json.loads((tmp_path / "out" / "inside" / "measured.json").read_text())
    assert {(row["task"], row["network"]) for row in written} == set(study.STUDIED)
    capsys.readouterr()
    for path in (tmp_path / "runs").rglob("*/checkpoint-*.pt"):
        path.unlink()
    assert cli.main(command) == 1
    assert "has no weights: choose --runs where the runs can be made anew" in capsys.readouterr().err
