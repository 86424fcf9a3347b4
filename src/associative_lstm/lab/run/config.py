"""The configuration of a run: every choice by name, checked, complete, and readable as TOML."""

import dataclasses
import difflib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from associative_lstm.lab.networks import ARGUMENTS, NETWORKS
from associative_lstm.lab.run.packed import read_bytes

if TYPE_CHECKING:  # tasks are made of tensors: who only wants names need not wait for PyTorch
    from associative_lstm.lab.tasks.base import Task
    from associative_lstm.lab.tasks.corpus import Progress

# With Glorot keys and zero biases a layer's output is a product of three small numbers (update and two keys). Three
# layers make it the ninth power and more: the output and every gradient are zero in float32, and nothing is learned.
_THREE_LAYERS = {"model": "associative-lstm", "hidden_size": 256, "layers": 3, "key_init": "conjugate"}

PRESETS: dict[str, dict[str, Any]] = {
    "lstm-128": {"model": "lstm"},
    "lstm-512": {"model": "lstm", "hidden_size": 512},
    "associative-lstm-1": {"model": "associative-lstm", "copies": 1},
    "associative-lstm-4": {"model": "associative-lstm", "copies": 4},
    "associative-lstm-8": {"model": "associative-lstm", "copies": 8},
    "associative-lstm-3-heads-1": {"model": "associative-lstm", "copies": 1, "heads": 3},
    "associative-lstm-3-heads-4": {"model": "associative-lstm", "copies": 4, "heads": 3},
    "associative-lstm-3-heads-8": {"model": "associative-lstm", "copies": 8, "heads": 3},
    "permutation-rnn-256": {"model": "permutation-rnn"},
    "unitary-rnn-256": {"model": "unitary-rnn"},
    "unitary-rnn-1024": {"model": "unitary-rnn", "hidden_size": 1024},
    "multiplicative-unitary-rnn-256": {"model": "multiplicative-unitary-rnn"},
    "multiplicative-unitary-rnn-1024": {"model": "multiplicative-unitary-rnn", "hidden_size": 1024},
    "ntm": {"model": "ntm", "batch_size": 1},
    "wikipedia-lstm": {"model": "lstm", "hidden_size": 256, "layers": 3},
    "wikipedia-associative-lstm-1": {"copies": 1} | _THREE_LAYERS,
    "wikipedia-associative-lstm-4": {"copies": 4} | _THREE_LAYERS,
}
"""The paper's networks by name: the number at the end is N_h, or of an Associative LSTM (N_h 128) the copies."""


@dataclass(frozen=True)
class Config:
    """All that decides a run. None stands for the paper's choice, which :func:`complete` fills in.

    >>> config = complete({"task": "assignment", "copies": 4})
    >>> config.hidden_size, config.copies, config.recurrent_update, config.batch_size
    (128, 4, False, 2)
    """

    task: str
    data: str | None = None  # Wikipedia: the file, None for enwik8 (downloaded once)
    window: int | None = None  # online tasks: symbols between cuts of the gradient
    model: str = "associative-lstm"
    hidden_size: int | None = None  # N_h
    layers: int = 1
    copies: int | None = None
    heads: int | None = None
    key_init: str | None = None
    forget_bias: float | None = None
    recurrent_update: bool | None = None
    learn_initial_state: bool | None = None
    batch_size: int | None = None
    learning_rate: float = 3e-3
    steps: int = 20_000
    seed: int = 0
    log_every: int = 100
    checkpoint_every: int = 1000
    test_every: int | None = None  # Wikipedia: steps between evaluations on the whole test text
    threads: int = 1

    def to_toml(self) -> str:
        """The text of a TOML file that gives this configuration."""
        lines = []
        for key, value in dataclasses.asdict(self).items():
            if value is not None:
                # A JSON string is a TOML string, but for one control character that JSON leaves as it is.
                text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
                lines.append(f"{key} = {text}\n")
        return "".join(lines)


_TYPES = get_type_hints(Config)
_AT_LEAST_ONE = [
    "window",
    "hidden_size",
    "layers",
    "copies",
    "heads",
    "batch_size",
    "steps",
    "log_every",
    "checkpoint_every",
    "test_every",
    "threads",
]
_LARGEST = LARGEST_SEED = 2**31 - 1
_LARGEST_FILE = 2**20
_OWN = "(one of your own is made known by --from FILE)"
_LARGEST_FLOAT = 3.4e38  # of single precision, in which networks are trained
_AT_MOST = {"batch_size": 10_000, "window": 1_000_000, "layers": 1000, "threads": 1024}


def nearest(name: object, known: Mapping[str, Any] | list[str]) -> str:
    """A few words that help who wrote ``name`` and meant one of ``known``."""
    near = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"


def complete(values: Mapping[str, Any]) -> Config:
    """A configuration with every choice made and checked; what is missing is the paper's, or the default."""
    from associative_lstm.lab.tasks import TASKS

    for key in values:
        if key not in _TYPES:
            raise ValueError(f"unknown key {key!r} in the configuration, {nearest(key, _TYPES)}")
    if "task" not in values:
        raise ValueError(f"the configuration names no task: there are {', '.join(TASKS)}")
    config = Config(**{key: _checked(key, value) for key, value in values.items()})
    if config.task not in TASKS:
        raise ValueError(f"unknown task {config.task!r}, {nearest(config.task, list(TASKS))} {_OWN}")
    if config.model not in NETWORKS:
        raise ValueError(f"unknown model {config.model!r}, {nearest(config.model, NETWORKS)} {_OWN}")
    return _with_the_papers_choices(config)


def _checked(key: str, value: Any) -> Any:
    """``value`` if ``key`` may have it: of its type, and in its range."""
    allowed = get_args(_TYPES[key]) or (_TYPES[key],)
    if value is None and type(None) in allowed:
        return None
    kind = next(t for t in allowed if t is not type(None))
    if kind is float and type(value) is int and abs(value) <= _LARGEST:
        value = float(value)
    if type(value) is not kind:
        raise ValueError(f"{key} must be {_NAMES[kind]}, got {value!r}")
    if kind is int and value > (largest := _AT_MOST.get(key, _LARGEST)):
        raise ValueError(f"{key} must be at most {largest}, got {value}")
    if key in _AT_LEAST_ONE and value < 1:
        raise ValueError(f"{key} must be at least 1, got {value}")
    if key == "seed" and value < 0:
        raise ValueError(f"seed must not be negative, got {value}")
    if kind is float and not math.isfinite(value):
        raise ValueError(f"{key} must be a finite number, got {value}")
    if kind is float and abs(value) > _LARGEST_FLOAT:
        raise ValueError(f"{key} must be at most {_LARGEST_FLOAT:g} in size, got {value}")
    if key == "learning_rate" and value <= 0:
        raise ValueError(f"learning_rate must be positive, got {value}")
    if key == "key_init" and value not in ("glorot", "conjugate"):
        raise ValueError(f"key_init must be 'glorot' or 'conjugate', got {value!r}")
    if kind is str and "\0" in value:
        raise ValueError(f"{key} must not contain the character zero")
    return value


_NAMES = {int: "an integer", float: "a number", str: "a string", bool: "true or false"}


def _with_the_papers_choices(config: Config) -> Config:
    """Fill in what is None, and refuse options that the task or the network would ignore."""
    from associative_lstm.lab.tasks import TASKS

    network, task = NETWORKS[config.model], TASKS[config.task]
    choices: dict[str, Any] = {
        "hidden_size": network.hidden_size,
        "batch_size": task.batch_size,
        "test_every": task.test_every,
    }
    if "window" in task.settings:
        choices["window"] = 100
    else:
        _refuse(config, ("window",), f"task {config.task!r}, whose sequences are whole")
    own = f"task {config.task!r}, which makes its own data"
    if "data" not in task.settings:
        _refuse(config, ("data",), own)
    if task.test_every is None:
        _refuse(config, ("test_every",), own)
    _refuse(config, sorted(set(ARGUMENTS) - set(network.options)), f"model {config.model!r}")
    for option, default in network.options.items():
        choices[option] = getattr(task, option) if default is None else default
    config = dataclasses.replace(
        config, **{key: value for key, value in choices.items() if getattr(config, key) is None}
    )
    assert config.hidden_size is not None
    if network.even and config.hidden_size % 2:
        raise ValueError(
            f"hidden_size must be even for {config.model!r}, which has half as many complex numbers, "
            f"got {config.hidden_size}"
        )
    return config


def _refuse(config: Config, keys: tuple[str, ...] | list[str], owner: str) -> None:
    for key in keys:
        if getattr(config, key) is not None:
            raise ValueError(f"{key} has no meaning for {owner}")


def read_toml(path: str | Path) -> dict[str, Any]:
    """The keys and values of a TOML file; a file that is not TOML is one sentence."""
    try:
        content = read_bytes(path, _LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise ValueError("it is longer than any configuration")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise ValueError(f"configuration {str(path)!r} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # tomllib's own error and that of UTF-8 are ValueErrors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"configuration {str(path)!r} is not valid TOML: {reason}") from error


def task_of(
    config: Config, progress: "Progress" = lambda message: None, *, symbols_only: bool = False
) -> "Task":
    """The task that a complete configuration describes; ``progress`` hears of a download.

    ``symbols_only``: without Wikipedia's text, for those who only write.
    """
    from associative_lstm.lab.tasks import TASKS, make_task

    settings = TASKS[config.task].settings
    options: dict[str, Any] = {key: getattr(config, key) for key in settings}
    if "data" in settings:
        options |= {"progress": progress, "symbols_only": symbols_only}
    return make_task(config.task, **options)
