"""The configuration: complete, checked, and the same after a trip through TOML."""

import dataclasses
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.run.config import Config, complete, read_toml
from associative_lstm.lab.tasks import TASKS


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "the configuration names no task: there are copy, "),
        ({"task": "asignment"}, "unknown task 'asignment', did you mean 'assignment'?"),
        (
            {"task": "xml", "learnin_rate": 1},
            "unknown key 'learnin_rate' in the configuration, did you mean 'learning_rate'?",
        ),
        ({"task": "xml", "model": "lsmt"}, "unknown model 'lsmt', did you mean 'lstm'?"),
        ({"task": "xml", "copies": 0}, "copies must be at least 1, got 0"),
        ({"task": "xml", "copies": True}, "copies must be an integer, got True"),
        ({"task": "xml", "copies": 2.0}, "copies must be an integer, got 2.0"),
        ({"task": "xml", "steps": None}, "steps must be an integer, got None"),
        ({"task": "xml", "steps": 10**12}, "steps must be at most 2147483647"),
        ({"task": "xml", "seed": -1}, "seed must not be negative, got -1"),
        ({"task": "xml", "learning_rate": 0}, "learning_rate must be positive, got 0"),
        ({"task": "xml", "learning_rate": float("nan")}, "learning_rate must be a finite number, got nan"),
        ({"task": "xml", "learning_rate": "1e-3"}, "learning_rate must be a number, got '1e-3'"),
        (
            {"task": "xml", "key_init": "random"},
            "key_init must be 'glorot', 'conjugate' or 'matched', got 'random'",
        ),
        ({"task": "xml", "recurrent_update": 1}, "recurrent_update must be true or false, got 1"),
        ({"task": "xml", "hidden_size": 7}, "hidden_size must be even for 'associative-lstm'"),
        ({"task": "xml", "model": "lstm", "copies": 4}, "copies has no meaning for model 'lstm'"),
        ({"task": "xml", "residual": True}, "residual has no meaning for a single layer"),
        (
            {"task": "xml", "model": "deltanet", "layers": 2, "residual": True},
            "residual has no meaning for model 'deltanet', which stacks its layers itself",
        ),
        ({"task": "copy", "window": 50}, "window has no meaning for task 'copy'"),
        ({"task": "xml", "data": "file"}, "data has no meaning for task 'xml'"),
    ],
)
def test_a_mistake_is_named_with_what_was_expected(values, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        complete(values)


@pytest.mark.parametrize(
    ("task", "recurrent_update", "learn_initial_state", "batch_size"),
    [
        ("copy", False, True, 2),
        ("copy-variable", False, True, 2),
        ("xml", False, False, 2),
        ("assignment", False, False, 2),
        ("arithmetic", True, False, 2),
        ("wikipedia", True, False, 10),
    ],
)
def test_what_is_not_said_is_the_papers_choice(task, recurrent_update, learn_initial_state, batch_size):
    config = complete({"task": task})
    assert config.hidden_size == 128
    assert config.recurrent_update is recurrent_update
    assert config.learn_initial_state is learn_initial_state
    assert config.batch_size == batch_size
    assert config.window == (None if TASKS[task].episodic else 100)
    assert complete(dataclasses.asdict(config)) == config


valid = st.fixed_dictionaries(
    {
        "task": st.sampled_from(["xml", "assignment", "arithmetic"]),
        "model": st.sampled_from(sorted(NETWORKS)),
    },
    optional={
        "hidden_size": st.integers(1, 1000).map(lambda n: 2 * n),
        "learning_rate": st.floats(1e-9, 1e3),
        "seed": st.integers(0, 2**31 - 1),
        "learn_initial_state": st.booleans(),
        "threads": st.integers(1, 8),
    },
)


@settings(max_examples=100, deadline=None)
@given(valid)
def test_a_configuration_survives_toml(tmp_path_factory, values):
    if "learn_initial_state" not in NETWORKS[values["model"]].options:
        values.pop("learn_initial_state", None)
    config = complete(values)
    path = tmp_path_factory.mktemp("toml") / "config.toml"
    path.write_text(config.to_toml())
    assert complete(read_toml(path)) == config


@settings(max_examples=50, deadline=None)
@given(st.text().filter(lambda text: "\0" not in text))
def test_any_path_survives_toml(tmp_path_factory, text):
    config = Config(task="wikipedia", data=text.encode("utf-8", "ignore").decode())
    path = tmp_path_factory.mktemp("toml") / "config.toml"
    path.write_text(config.to_toml(), encoding="utf-8", newline="")
    assert read_toml(path)["data"] == config.data
