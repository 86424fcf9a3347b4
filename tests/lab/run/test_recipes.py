"""The recipes, the start, and what they choose: clipping, schedules, Adam's second moment, weight decay."""

import signal
import tomllib
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch

from associative_lstm import AssociativeLSTM
from associative_lstm.kernels.associative.reference import ACTIVATIONS
from associative_lstm.lab import cli
from associative_lstm.lab.files import Interrupted, RunError
from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.run.checkpoint import find_checkpoints, load_checkpoint, save_checkpoint
from associative_lstm.lab.run.config import LATER, Config, complete
from associative_lstm.lab.run.folder import read_config, read_log
from associative_lstm.lab.run.loop import resume, train
from associative_lstm.lab.run.model import build_model
from associative_lstm.lab.run.recipes import PRESETS
from associative_lstm.lab.run.schedule import rate_factor
from associative_lstm.lab.run.step import Trainer, make_fabric
from associative_lstm.lab.tasks import make_task
from associative_lstm.nn.options import FORGET_BIASES, KEY_INITS, STARTS, UPDATE_INITS, UPDATE_MODULUS

TINY = {"task": "assignment", "model": "lstm", "hidden_size": 8, "window": 20, "log_every": 5}
ALL_OF_IT = {"clip": 0.5, "warmup": 4, "beta2": 0.9, "weight_decay": 0.1, "schedule": "linear-end"}


def config(**changes):
    return complete(TINY | changes)


def trainer_of(**changes):
    return Trainer(config(**changes), make_fabric())


def test_without_a_recipe_it_is_the_papers_and_nothing_new_is_written():
    for model in NETWORKS:
        paper = complete({"task": "xml", "model": model})
        assert paper == complete({"task": "xml", "model": model, "recipe": "paper"})
        assert {key: getattr(paper, key) for key in LATER} == LATER
        assert not {*LATER, "recipe", "start"} & tomllib.loads(paper.to_toml()).keys()
    assert all(preset["recipe"] == "paper" for preset in PRESETS.values())


def test_what_the_fast_recipe_chooses_is_written_key_by_key():
    fast = complete({"task": "xml", "recipe": "fast", "copies": 4})
    written = tomllib.loads(fast.to_toml())
    chosen = {"clip": 1.0, "schedule": "linear-end", "beta2": 0.99, "learning_rate": 5e-3}
    assert chosen.items() <= written.items()
    assert {key: getattr(fast, key) for key in STARTS["fast"]} == STARTS["fast"]
    assert not {"recipe", "start"} & written.keys()
    assert complete(written) == fast
    torch.manual_seed(0)
    ours = build_model(fast, make_task("xml")).layers[0]
    torch.manual_seed(0)
    options = {"num_copies": 4, "recurrent_update": False, "start": "fast"}
    layer = type(ours)(80, 128, **options)
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), layer.parameters(), strict=True))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("key_init", KEY_INITS),
        ("forget_bias", FORGET_BIASES),
        ("update_init", UPDATE_INITS),
        ("start", tuple(STARTS)),
        ("activation", tuple(ACTIVATIONS)),
    ],
)
def test_the_words_are_those_that_the_layer_knows(key, words):
    kinds = get_args(get_type_hints(Config)[key]) or (get_type_hints(Config)[key],)
    known = [get_args(kind) for kind in kinds if get_origin(kind) is Literal]
    assert (known or [kinds]) == [words]


def test_what_is_given_goes_before_the_recipe_and_the_start():
    given = {"clip": 0, "schedule": "constant", "learning_rate": 1e-3, "beta2": 0.999, "forget_bias": 2}
    chosen = complete({"task": "xml", "recipe": "fast", "start": "paper", "key_init": "conjugate", **given})
    assert chosen == complete(
        {"task": "xml", "learning_rate": 1e-3, "forget_bias": 2, "key_init": "conjugate"}
    )
    assert complete(tomllib.loads(chosen.to_toml())) == chosen


def test_the_other_networks_have_as_much_of_it_as_they_can():
    lstm = complete({"task": "xml", "model": "lstm", "recipe": "fast"})
    assert (lstm.forget_bias, lstm.clip, lstm.schedule) == ("chrono", 1.0, "linear-end")
    assert complete({"task": "xml", "model": "lstm", "start": "fast"}).forget_bias == "chrono"
    assert complete({"task": "xml", "model": "unitary-rnn", "recipe": "fast"}).clip == 1.0
    with pytest.raises(ValueError, match="start has no meaning for model 'unitary-rnn'"):
        complete({"task": "xml", "model": "unitary-rnn", "start": "fast"})


@pytest.mark.parametrize(
    ("arguments", "clip"),
    [
        ([], 1.0),
        (["--recipe", "paper"], 0.0),
        (["--clip", "2.5"], 2.5),
        (["--preset", "lstm-128"], 0.0),
        (["--preset", "lstm-128", "--recipe", "fast"], 1.0),
        (["--config", "old.toml"], 0.0),
        (["--config", "old.toml", "--recipe", "fast"], 1.0),
    ],
)
def test_the_command_trains_by_the_fast_recipe_unless_told(tmp_path, monkeypatch, arguments, clip):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.toml").write_text('model = "lstm"\n')
    sizes = ["--hidden-size", "8", "--window", "20", "--steps", "2", "--out", "run"]
    assert cli.main(["train", "assignment", *sizes, *arguments]) == 0
    assert read_config("run").clip == clip


def test_half_a_recipe_over_a_run_that_was_made_by_another_is_refused(tmp_path, capfd):
    (tmp_path / "run.toml").write_text(complete({"task": "assignment"}).to_toml())
    files = ["--config", str(tmp_path / "run.toml"), "--out", str(tmp_path / "run")]
    assert cli.main(["train", *files, "--recipe", "fast"]) != 0
    said = " ".join(capfd.readouterr().err.split())
    assert "says how it is trained (key_init, forget_bias), and half of a recipe is none" in said
    assert not (tmp_path / "run").exists()


def test_an_option_may_be_a_number_or_a_word(tmp_path):
    sizes = ["train", "assignment", "--hidden-size", "8", "--window", "20", "--steps", "2"]
    for number, (bias, update) in enumerate([("1.5", "glorot"), ("chrono", "0.5")]):
        run = tmp_path / str(number)
        options = [
            "--forget-bias",
            bias,
            "--update-init",
            update,
            "--activation",
            "tanh",
            "--permutation",
            "shift",
        ]
        assert cli.main([*sizes, "--out", str(run), *options]) == 0
        found = read_config(run)
        assert (str(found.forget_bias), str(found.update_init)) == (bias, update)
        assert (found.activation, found.permutation) == ("tanh", "shift")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"forget_bias": "mix"}, "forget_bias must be a number or 'mixed' or 'chrono', got 'mix'"),
        ({"forget_bias": float("inf")}, "forget_bias must be a finite number, got inf"),
        ({"update_init": -1.0}, "update_init must be positive, got -1.0"),
        ({"beta2": 1}, "beta2 must be below 1.0, got 1"),
        ({"clip": -1}, "clip must not be negative, got -1"),
        ({"schedule": "step"}, "schedule must be 'constant', 'linear-end' or 'cosine', got 'step'"),
        ({"recipe": "slow"}, "recipe must be 'paper' or 'fast', got 'slow'"),
        ({"warmup": 1.5}, "warmup must be an integer, got 1.5"),
        ({"model": "lstm", "activation": "tanh"}, "activation has no meaning for model 'lstm'"),
    ],
)
def test_a_mistake_is_named(values, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        complete({"task": "xml"} | values)


def test_schedules():
    def factors(**changes):
        return [rate_factor(config(steps=100, **changes), step) for step in range(100)]

    assert factors() == [1.0] * 100
    falling = factors(schedule="linear-end")
    assert falling[:41] == [1.0] * 41
    assert falling[41:] == pytest.approx([(100 - step) / 60 for step in range(41, 100)])
    cosine = factors(schedule="cosine")
    assert (cosine[0], cosine[50]) == pytest.approx((1, 0.5))
    assert cosine == sorted(cosine, reverse=True)
    assert min(cosine) > 0
    assert factors(warmup=4)[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]


@pytest.mark.parametrize("update", [UPDATE_MODULUS, "glorot"])
def test_networks_above_the_first_start_as_the_layers_of_one_network_do(update):
    values = {"task": "xml", "recipe": "fast", "layers": 3, "hidden_size": 8, "copies": 2}
    chosen = complete(values | {"update_init": update})
    first, *above = build_model(chosen, make_task("xml")).layers
    assert (first.update_init, first.forget_bias) == (update, "mixed")
    coded = update != "glorot"
    assert [layer.key_init for layer in above] == ["conjugate"] * 2
    assert [layer.update_init for layer in above] == ["pass" if coded else "glorot"] * 2
    whole = AssociativeLSTM(first.input_size, 8, 3, num_copies=2, update_init=update)
    for k, layer in enumerate(above, start=1):
        rows = layer.rows
        updates = layer.weight_ih_l0[rows.update], getattr(whole, f"weight_ih_l{k}")[rows.update]
        assert torch.equal(*updates) == coded  # else drawn
        assert torch.equal(layer.bias_l0[rows.forget], getattr(whole, f"bias_l{k}")[rows.forget])


def test_every_step_is_taken_at_the_rate_of_the_schedule():
    trainer = trainer_of(steps=10, schedule="cosine", learning_rate=0.01, beta2=0.9)
    for step in range(3):
        trainer.train_step()
        [group] = trainer.optimizer.param_groups
        assert group["lr"] == 0.01 * rate_factor(trainer.config, step)
        assert group["betas"] == (0.9, 0.9)


def test_a_clipped_gradient_has_the_norm_asked_for_and_the_log_its_own():
    norms = {}
    for clip in (0.0, 1e-3, 1e6):
        trainer = trainer_of(clip=clip, seed=3)
        step = trainer.optimizer.step

        def look(trainer=trainer, step=step, clip=clip):
            gradients = [p.grad.flatten() for p in trainer.model.parameters()]
            norms[clip] = float(torch.cat(gradients).norm())
            step()

        trainer.optimizer.step = look
        trainer.train_step()
        norms[clip] = norms[clip], trainer.totals.gradient_norm
    unclipped = norms[0.0][0]
    assert norms[0.0] == norms[1e6]
    assert norms[0.0][1] == pytest.approx(unclipped)
    assert norms[1e-3] == (pytest.approx(1e-3), norms[0.0][1])
    assert unclipped > 2e-3


def test_weight_decay_is_adamws_on_matrices():
    ours, plain = trainer_of(weight_decay=0.5, learning_rate=0.1), trainer_of(learning_rate=0.1)
    before = {name: p.detach().clone() for name, p in plain.model.named_parameters()}
    ours.train_step()
    plain.train_step()
    others = dict(plain.model.named_parameters())
    for name, parameter in ours.model.named_parameters():
        decay = 0.1 * 0.5 * before[name] if parameter.dim() > 1 else torch.zeros(())
        torch.testing.assert_close(parameter, others[name] - decay)


def stopped_after(steps):
    """What asks a run to stop after so many steps."""
    calls = iter([0] * (steps - 1))
    return lambda: next(calls, signal.SIGTERM)


@pytest.mark.parametrize("schedule", ["linear-end", "cosine"])
def test_a_run_goes_on_exactly_with_all_of_it(tmp_path, schedule):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    chosen = config(steps=20, **ALL_OF_IT | {"schedule": schedule})
    train(chosen, whole)
    with pytest.raises(Interrupted):
        train(chosen, cut, asked=stopped_after(3))  # while it warms up
    with pytest.raises(Interrupted):
        resume(cut, asked=stopped_after(14))  # while the rate falls
    resume(cut)
    for name in ("log.jsonl", "model.safetensors", "config.toml"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()


def test_a_run_is_lengthened_as_long_as_its_rate_does_not_know_its_length(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(config(steps=40, **ALL_OF_IT), whole)
    with pytest.raises(Interrupted):
        train(config(steps=20, **ALL_OF_IT), cut, asked=stopped_after(9))
    resume(cut, steps=40)
    for name in ("log.jsonl", "model.safetensors", "config.toml"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(("schedule", "made"), [("linear-end", 20), ("linear-end", 10), ("cosine", 2)])
def test_a_run_whose_rate_has_begun_to_fall_keeps_its_length(tmp_path, schedule, made):
    chosen = config(steps=20, **ALL_OF_IT | {"schedule": schedule})
    if made == 20:
        train(chosen, tmp_path)
    else:
        with pytest.raises(Interrupted):
            train(chosen, tmp_path, asked=stopped_after(made))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    sentence = f"begun with 20 steps and cannot have 40: by its schedule, '{schedule}', the learning rate"
    with pytest.raises(RunError, match=sentence):
        resume(tmp_path, steps=40)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    resume(tmp_path)
    assert read_log(tmp_path)[-1]["step"] == 20


def test_a_checkpoint_from_before_there_were_such_keys_is_the_papers(tmp_path):
    train(config(steps=10), tmp_path)
    [path, *_] = find_checkpoints(tmp_path)
    content = load_checkpoint(path)
    content["config"] = {k: v for k, v in content["config"].items() if k not in (*LATER, "recipe", "start")}
    path.unlink()
    save_checkpoint(tmp_path, 10, content)
    text = (tmp_path / "config.toml").read_text()
    (tmp_path / "config.toml").write_text(f"{text}clip = 1.0\n")
    with pytest.raises(RunError, match=r"is not what the run was begun with: clip is 1\.0 and was 0\.0"):
        resume(tmp_path, steps=20)
    (tmp_path / "config.toml").write_text(text)
    resume(tmp_path, steps=20)
    assert read_log(tmp_path)[-1]["step"] == 20
