"""`alstm inside`: the page that is written, and what it is not written of."""

import base64
import os
import re

import numpy as np
import pytest
import torch

from associative_lstm.lab import cli
from associative_lstm.lab.inside.page import LONGEST, data_of, fitting, load, render, samples
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.loop import train
from associative_lstm.lab.tasks import make_task
from made_networks import lstm, reader

TINY = {"hidden_size": 8, "log_every": 1, "steps": 1}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, config in {
        "assignment": {"task": "assignment", "copies": 2, "window": 20},
        "lstm": {"task": "assignment", "model": "lstm", "window": 20},
        "rnn": {"task": "assignment", "model": "permutation-rnn", "window": 20},
        "copy": {"task": "copy"},
        "bits": {"task": "ntm-copy"},
    }.items():
        train(complete(TINY | config), folder / name)
    return folder


@pytest.fixture
def alstm(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = cli.main(["inside", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_a_page_of_one_run(alstm, runs, tmp_path):
    code, out, err = alstm(runs / "assignment")
    assert (code, err) == (0, "")
    assert re.fullmatch(r"written: inside.html \(0\.\d MB\)\n", out)
    data = data_of((tmp_path / "inside.html").read_text())
    assert len(data["text"]) == 120
    assert len(data["examples"]) == 4
    assert len({data["text"], *data["examples"]}) == 5
    model = load(runs / "assignment").trained.model
    [layer] = data["networks"][0]["layers"]
    weights = np.frombuffer(base64.b64decode(layer["weight_hh"]), "<f4")
    assert np.array_equal(weights, model.layers[0].weight_hh_l0.detach().numpy().ravel())
    assert layer["permutations"] == model.layers[0].permutations_l0.tolist()


def test_two_runs_an_exported_one_and_a_text_of_ones_own(alstm, runs, tmp_path):
    exported = runs / "assignment" / "model.safetensors"
    code, _, err = alstm(exported, runs / "lstm", "--text", "s(a,b)", "--out", "new/page.html")
    assert (code, err) == (0, "")
    data = data_of((tmp_path / "new" / "page.html").read_text())
    assert data["text"] == "s(a,b)"
    assert [one["name"] for one in data["networks"]] == ["assignment", "lstm"]
    assert [one["layers"][0]["kind"] for one in data["networks"]] == ["associative", "lstm"]
    assert alstm(runs / "lstm", exported)[0] == 0  # in either order


def test_the_same_seed_gives_the_same_page(alstm, runs, tmp_path):
    pages = []
    for seed in (0, 0, 1):
        assert alstm(runs / "copy", "--seed", seed)[0] == 0
        pages.append((tmp_path / "inside.html").read_bytes())
    assert pages[0] == pages[1] != pages[2]


def test_of_a_long_text_the_part_that_fits(alstm, runs, tmp_path):
    code, _, err = alstm(runs / "assignment", "--text", "s(a,b)" * 20_000)
    assert code == 0
    assert err == (
        f"the page reads at most {LONGEST:,} symbols: it has the first {LONGEST:,} of 120,000 characters\n"
    )
    assert len(data_of((tmp_path / "inside.html").read_text())["text"]) == LONGEST
    wikipedia = make_task("wikipedia", symbols_only=True)
    text = fitting(wikipedia, "€" * LONGEST)
    assert text == "€" * (LONGEST // 3)
    assert len(wikipedia.encode(text)) <= LONGEST


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lstm"], "lstm is not an Associative LSTM, the network whose reads fall into what was written"),
        (["lstm", "lstm"], "lstm is not an Associative LSTM"),
        (["rnn"], "RUNS/rnn: the page can show an Associative LSTM, or an LSTM beside it; this is neither"),
        (["assignment", "rnn"], "RUNS/rnn: the page can show an Associative LSTM"),
        (["bits"], "RUNS/bits: task 'ntm-copy' has no text that could be shown"),
        (["assignment", "copy"], "the runs are of different tasks, assignment and copy"),
        (["assignment", "--text", "s(é)"], "task 'assignment': character 'é' is not in its vocabulary"),
        (["copy", "--text=abz"], "task 'copy': character 'z' is not in its vocabulary"),
        (["assignment", "--text", ""], "the text is empty: there is nothing to read"),
        (["assignment", "--length", "0"], "Invalid value for '--length'"),
        (["nothing"], "RUNS/nothing"),
    ],
)
def test_what_has_no_page_is_one_sentence(alstm, runs, tmp_path, arguments, sentence):
    paths = [runs / a if a.isalpha() else a for a in arguments]
    code, out, err = alstm(*paths)
    assert (code in (1, 2), out, err.count("\n")) == (True, "", 1)
    assert err.startswith(f"alstm: {sentence.replace('RUNS', str(runs))}")
    assert os.listdir(tmp_path) == []


def test_a_network_that_has_diverged_or_is_of_a_kind_that_is_not_shown(runs, monkeypatch):
    from associative_lstm.lab.inside import page

    network = reader(task="copy")
    with torch.no_grad():
        network.trained.model.readout.bias[0] = torch.nan
    monkeypatch.setattr(page, "load_trained", lambda *_, **__: network.trained)
    with pytest.raises(RuntimeError, match="the network has diverged: its weights are not finite"):
        load(runs)
    network = reader(task="copy")
    network.trained.model.layers[0].bidirectional = True
    with pytest.raises(ValueError, match="also reads from the end"):
        load(runs)
    network = reader(task="copy")
    network.trained.model.residual = True
    with pytest.raises(ValueError, match="can show no network whose layers add what they read"):
        load(runs)


def test_a_page_that_cannot_be_written_leaves_the_old_one(alstm, runs, tmp_path):
    (tmp_path / "file").write_text("mine")
    code, _, err = alstm(runs / "assignment", "--out", "file/page.html")
    assert (code, err) == (1, "alstm: file/page.html could not be written: File exists\n")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_task_without_texts_of_its_own_asks_for_one():
    with pytest.raises(ValueError, match="say with --text what shall be read"):
        samples(make_task("wikipedia", symbols_only=True), 0, 100)


def test_whatever_comes_from_outside_is_escaped():
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"
    network = reader(task="wikipedia", name=hostile)
    html = render([network, lstm("wikipedia")._replace(name=hostile)], hostile, [hostile])
    assert hostile not in html
    assert html.count("<script") == 2
    assert "<img" not in html
    data = data_of(html)
    assert [data["text"], data["examples"], data["networks"][0]["name"]] == [hostile, [hostile], hostile]
