"""Rivals in runs: their state goes on from window to window, and through checkpoints; bad sizes are a sentence."""

import copy

import pytest
import torch

from associative_lstm.lab import cli
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.model import clone_like, flatten_state
from associative_lstm.lab.run.step import Trainer, make_fabric

RIVALS = ["gru", "attention", "mlstm", "mamba2", "deltanet", "gated-deltanet"]


def trainer_of(model, **settings):
    sizes = {} if model == "gru" else {"head_size": 4}
    tiny = {"task": "assignment", "model": model, "hidden_size": 8, "window": 5, "layers": 2}
    return Trainer(complete(tiny | sizes | settings), make_fabric())


@pytest.mark.parametrize("window", [1, 5])
@pytest.mark.parametrize("model", RIVALS)
def test_a_run_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(model, window):
    run = trainer_of(model, window=window)
    for _ in range(3):
        run.train_step()
    saved = copy.deepcopy(run.save())
    run.train_step()
    again = trainer_of(model, window=window)
    again.load(saved)
    again.train_step()
    expected, ours = flatten_state(run.state), flatten_state(again.state)
    assert all(torch.equal(a, b) for a, b in zip(ours, expected, strict=True))
    assert all(
        torch.equal(a, b) for a, b in zip(run.model.parameters(), again.model.parameters(), strict=True)
    )


def test_what_attention_has_seen_is_carried_on_up_to_its_span():
    run, lengths = trainer_of("attention", span=12), []
    for _ in range(3):
        run.train_step()
        lengths.append(run.state[0][0].shape[2])
    assert lengths == [5, 10, 12]


def test_a_state_may_only_grow_where_a_step_makes_it_grow():
    early, late = (torch.zeros(2, 3, 1, 4), torch.zeros(2)), (torch.zeros(2, 3, 2, 4), torch.zeros(2))
    saved = [torch.ones(2, 3, 9, 4), torch.ones(2)]
    assert torch.equal(clone_like(early, saved, late)[0], saved[0])
    for other in (
        [torch.ones(2, 4, 9, 4), torch.ones(2)],
        [saved[0], torch.ones(3)],
        [saved[0]],
        saved[:1] * 2,
    ):
        with pytest.raises(ValueError, match="another form"):
            clone_like(early, other, late)
    with pytest.raises(ValueError, match="another form"):
        clone_like(early, saved)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            "--model attention --head-size 3",
            "head_size: expected an even number, whose pairs are turned, got 3",
        ),
        ("--model deltanet --head-size 0", "head_size must be at least 1, got 0"),
        ("--model deltanet --copies 2", "copies has no meaning for model 'deltanet'"),
        ("--model mamba2 --negative-eigenvalues", "negative_eigenvalues has no meaning for model 'mamba2'"),
        ("--model gru --heads 2", "heads has no meaning for model 'gru'"),
        ("--model mlstm --mlp -1", "mlp must not be negative, got -1"),
        ("--head-size 8", "head_size has no meaning for model 'associative-lstm'"),
    ],
)
def test_bad_options_are_one_sentence(capsys, tmp_path, options, sentence):
    code = cli.main(["train", "assignment", *options.split(), "--out", str(tmp_path / "run")])
    captured = capsys.readouterr().err
    assert code == 1
    assert captured.count("\n") == 1
    assert sentence in captured
    assert not (tmp_path / "run").exists()
