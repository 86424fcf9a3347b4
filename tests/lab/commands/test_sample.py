"""`alstm sample`: text from a trained network, drawn as it says, safe to print."""

import pytest
import torch

from associative_lstm.lab import cli
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.evaluation import load_trained, write_text
from associative_lstm.lab.run.loop import train
from associative_lstm.lab.words import printable

TINY = {"model": "lstm", "hidden_size": 8, "window": 20, "log_every": 5, "steps": 10}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    text = folder / "text"
    text.write_bytes(b"the cat sat on the mat. " * 400)
    train(complete(TINY | {"task": "wikipedia", "data": str(text)}), folder / "wikipedia")
    train(complete(TINY | {"task": "xml"}), folder / "xml")
    train(complete({"task": "copy", "model": "lstm", "hidden_size": 8, "steps": 2}), folder / "copy")
    text.unlink()  # who writes has no need of it
    return folder


def sample(capsys, *arguments):
    code = cli.main(["sample", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_symbols_are_drawn_from_the_networks_distribution_with_the_state_carried(runs):
    trained = load_trained(runs / "wikipedia", symbols_only=True)
    options = {"seed": 3, "prompt": "the", "temperature": 0.7}
    written = write_text(trained, length=6, **options)
    generator = torch.Generator().manual_seed(3)
    text = list(b"the")
    for _ in range(6):
        with torch.no_grad():  # the whole text again, from the beginning
            logits = trained.model(torch.tensor(text).unsqueeze(1))[0][-1, 0]
        p = torch.softmax(logits.double() / 0.7, -1)
        text.append(int(torch.multinomial(p, 1, generator=generator)))
    assert written.tolist() == text[3:]


def test_careful_is_the_most_probable_symbol_and_seeds_decide(runs):
    trained = load_trained(runs / "xml", symbols_only=True)
    options = {"length": 30, "prompt": "<a>"}
    one, two = (write_text(trained, seed=seed, temperature=1e-6, **options) for seed in (0, 1))
    assert torch.equal(one, two)
    one, two, again = (write_text(trained, seed=seed, temperature=1.0, **options) for seed in (0, 1, 0))
    assert not torch.equal(one, two)
    assert torch.equal(one, again)


def test_exported_weights_write_what_the_run_writes(runs, capsys):
    arguments = ("--length", 40, "--prompt", "the cat", "--seed", 1)
    code, out, _ = sample(capsys, runs / "wikipedia", *arguments)
    assert code == 0
    assert out.startswith("the cat")
    assert sample(capsys, runs / "wikipedia" / "model.safetensors", *arguments)[:2] == (0, out)


def test_online_tasks_write_on_from_a_prompt_in_their_vocabulary(runs, capsys):
    code, out, _ = sample(capsys, runs / "xml", "--prompt", "<abc>", "--length", 20)
    assert code == 0
    assert out.startswith("<abc>")
    assert len(out) == len("<abc>") + 20 + 1
    code, _, err = sample(capsys, runs / "xml", "--prompt", "<é>")
    assert (code, err) == (1, "alstm: task 'xml': character 'é' is not in its vocabulary\n")
    code, _, err = sample(capsys, runs / "copy", "--prompt", "a")
    assert (code, err) == (1, "alstm: task 'copy' is no text that could be continued\n")
    assert write_text(load_trained(runs / "xml"), seed=0, length=3, prompt="", temperature=1.0).shape == (3,)


def test_nothing_is_printed_that_a_terminal_would_obey():
    everything = bytes(range(256)).decode("utf-8", "replace") + "\u200e\u202e\x9b"
    shown = printable(everything)
    assert len(shown) == len(everything)
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    assert "\x1b" not in shown


def test_files_that_are_not_weights_are_one_sentence(tmp_path, capsys):
    path = tmp_path / "model.safetensors"
    for content in (b"", b"not weights" * 100):
        path.write_bytes(content)
        code, _, err = sample(capsys, path)
        assert code == 1
        assert err.startswith(f"alstm: {path} is not a file of weights that a run has written (")
        assert err.count("\n") == 1
