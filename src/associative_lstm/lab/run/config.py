"""The configuration of a run: every choice by name, checked, complete, and readable as TOML."""

import functools
import json
import operator
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from associative_lstm.lab.networks import ARGUMENTS, NETWORKS
from associative_lstm.lab.run.packed import read_bytes
from associative_lstm.lab.run.recipes import RECIPES
from associative_lstm.lab.words import nearest

if TYPE_CHECKING:  # tasks are made of tensors: who only wants names need not wait for PyTorch
    from pydantic import BaseModel

    from associative_lstm.lab.tasks.base import Task
    from associative_lstm.lab.tasks.enwik8 import Progress

LARGEST = 2**31 - 1
_LARGEST_FILE = 2**20
_LARGEST_FLOAT = 3.4e38  # of single precision, in which networks are trained
_OWN = "(one of your own is made known by --from FILE)"
_LIMITS: dict[type, dict[str, Any]] = {
    int: {"le": LARGEST},
    float: {"ge": -_LARGEST_FLOAT, "le": _LARGEST_FLOAT},
    str: {"pattern": r"^[^\x00]*$"},
}
"""What every key of a type has to keep within, in pydantic's words."""

_EXPECTED = {
    "int_type": "be an integer",
    "float_type": "be a number",
    "string_type": "be a string",
    "bool_type": "be true or false",
    "finite_number": "be a finite number",
    "greater_than": "be positive",
    "greater_than_equal": "be at least {ge}",
    "less_than": "be below {lt}",
    "less_than_equal": "be at most {le}",
    "literal_error": "be {expected}",
    "string_pattern_mismatch": "not contain the character zero",
    "string_unicode": "be text in UTF-8",
}
"""What a key must, by the name that pydantic has for the lack of it."""


def _key(default: Any, help: str, *, later: bool = False, **limits: Any) -> Any:
    """A key: its default, what the command line says of it, and its limits in pydantic's words.

    ``later``: there are configurations from before there was such a key. One without it means the default, and it is
    written only where it is another.
    """
    return field(default=default, metadata={"help": help, "limits": limits, "later": later})


def _count(default: int | None, help: str, most: int = LARGEST) -> Any:
    return _key(default, help, ge=1, le=most)


@dataclass(frozen=True)
class Config:
    """All that decides a run. None stands for the paper's choice, which :func:`complete` fills in.

    >>> config = complete({"task": "assignment", "copies": 4})
    >>> config.hidden_size, config.copies, config.recurrent_update, config.batch_size
    (128, 4, False, 2)
    """

    task: str
    data: str | None = _key(None, "Wikipedia: the file (plain, .gz or .zip); enwik8 is downloaded if absent.")
    window: int | None = _count(None, "Symbols between cuts of the gradient (default 100).", 1_000_000)
    vocabulary: int | None = _count(None, "Recall tasks: how many symbols there are.", 10_000)
    length: int | None = _count(None, "Recall and state tracking: steps of a (longest) sequence.", 10_000)
    longest: int | None = _count(None, "State tracking: steps of the longest sequence tested on.", 10_000)
    pairs: int | None = _count(None, "MQAR: keys with a value each.", 10_000)
    copied: int | None = _count(None, "Selective copying: symbols to be copied.", 10_000)
    noise: float | None = _key(None, "Noisy recall: the share of pairs that are noise.", ge=0, lt=1)
    sequences: int | None = _count(None, "Recall and state tracking: how many are trained on.", 10_000_000)
    model: str = _key("associative-lstm", f"{', '.join([*NETWORKS][:-1])} or {[*NETWORKS][-1]}.")
    hidden_size: int | None = _count(None, "N_h: real numbers of one copy of the memory.")
    layers: int = _count(1, "Networks stacked.", 1000)
    residual: bool = _key(False, "Networks above the first add what they read to what they give.", later=True)
    embedding: int | None = _key(
        None,
        "Symbols are learned vectors of this size; 0 is one-hot (default: the task's).",
        ge=0,
        le=1_000_000,
    )
    previous: bool = _key(False, "Present the symbol before beside the current one.", later=True)
    copies: int | None = _count(None, "Copies of the memory.")
    heads: int | None = _count(None, "Items written and read per step.")
    activation: Literal["bound", "tanh"] = _key(
        "bound", "What bounds keys and memory: bound or tanh.", later=True
    )
    start: Literal["paper", "fast"] | None = _key(
        None, "Where the weights begin: paper or fast, unless told below."
    )
    key_init: Literal["glorot", "conjugate", "matched"] | None = _key(
        None, "Keys start as glorot, conjugate or matched."
    )
    forget_bias: float | Literal["mixed", "chrono"] | None = _key(
        None, "Where the forget gates' biases start: a number, mixed or chrono (times up to --horizon)."
    )
    update_init: float | Literal["glorot", "pass"] = _key(
        "glorot", "The update starts as glorot, pass, or random codes of this modulus.", later=True, gt=0
    )
    horizon: int = _key(120, "The longest time that a forget gate's bias stands for.", later=True, ge=1)
    permutation: Literal["random", "shift"] = _key(
        "random", "Copies are permuted at random or by shifts.", later=True
    )
    rotation: float = _key(0.0, "The fraction of units whose memory turns.", later=True, ge=0, le=1)
    recurrent_update: bool | None = _key(
        None, "Feed h to the update (W_hu); the default is the paper's for the task."
    )
    learn_initial_state: bool | None = _key(None, "Learn the initial state (default: on copy tasks).")
    head_size: int | None = _count(
        None, "Rivals: of keys and values; a head's memory is its square.", 100_000
    )
    convolution: int | None = _key(
        None, "Rivals: steps that keys and values are made of; 0 is one.", ge=0, le=1000
    )
    negative_eigenvalues: bool | None = _key(
        None, "DeltaNets: a step can turn the memory's sign along a key."
    )
    span: int | None = _count(None, "Attention: steps that it looks back.")
    mlp: int | None = _key(None, "Rivals: the width of an MLP, as a multiple; 0 is none.", ge=0, le=1000)
    batch_size: int | None = _count(None, "Lanes of a minibatch (default: the paper's).", 10_000)
    recipe: Literal["paper", "fast"] | None = _key(
        None, "The paper's way or the fast one: defaults of what follows and of --start; fast unless told."
    )
    learning_rate: float = _key(3e-3, "Adam's.", gt=0)
    beta2: float = _key(0.999, "Adam's.", later=True, ge=0, lt=1)
    weight_decay: float = _key(0.0, "Of matrices, decoupled from Adam; 0 is none.", later=True, ge=0)
    clip: float = _key(0.0, "The largest norm of the gradient; 0 is any.", later=True, ge=0)
    schedule: Literal["constant", "linear-end", "cosine"] = _key(
        "constant",
        "Of the learning rate: constant, linear-end (down to 0 in the last 60 %) or cosine.",
        later=True,
    )
    warmup: int = _key(0, "Steps in which the learning rate rises from 0.", later=True, ge=0)
    steps: int = _count(20_000, "Minibatches (default 20000).")
    seed: int = _key(0, "Decides weights and data.", ge=0)
    log_every: int = _count(100, "Steps per line of the log.")
    checkpoint_every: int = _count(1000, "Steps between checkpoints.")
    test_every: int | None = _count(None, "Where there is a test split: steps between tests.")
    threads: int = _count(1, "Threads per process (default 1).", 1024)
    device: Literal["cpu", "cuda"] = _key(
        "cpu", "What computes: cpu, or cuda for a GPU (ROCm's too).", later=True
    )

    def to_toml(self) -> str:
        """The text of a TOML file that gives this configuration."""
        lines = []
        for key, value in vars(self).items():
            if value is not None and value != LATER.get(key):
                # A JSON string is a TOML string, but for one control character that JSON leaves as it is.
                text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
                lines.append(f"{key} = {text}\n")
        return "".join(lines)


LATER = {f.name: f.default for f in fields(Config) if f.metadata.get("later")}
"""What the keys are of a configuration from before they came."""


TASK_OPTIONS = ("vocabulary", "length", "longest", "pairs", "copied", "noise", "sequences")
"""The keys that some tasks are made with: see ``Task.options``."""


def complete(values: Mapping[str, Any]) -> Config:
    """A configuration with every choice made and checked; what is missing is the recipe's, or the default."""
    from associative_lstm.lab.tasks import TASKS

    for key in values:
        if key not in Config.__dataclass_fields__:
            raise ValueError(
                f"unknown key {key!r} in the configuration, {nearest(key, Config.__dataclass_fields__)}"
            )
    if "task" not in values:
        raise ValueError(f"the configuration names no task: there are {', '.join(TASKS)}")
    config = _checked(values)
    if config.task not in TASKS:
        raise ValueError(f"unknown task {config.task!r}, {nearest(config.task, TASKS)} {_OWN}")
    if config.model not in NETWORKS:
        raise ValueError(f"unknown model {config.model!r}, {nearest(config.model, NETWORKS)} {_OWN}")
    given = {key: getattr(config, key) for key in values if values[key] is not None}
    return _with_every_choice(config, given)


@functools.cache
def _checker() -> "type[BaseModel]":
    """The keys as pydantic checks them. It is imported here: help has no use for it."""
    from pydantic import ConfigDict, Field, create_model

    keys: dict[str, Any] = {}
    for name, hint in get_type_hints(Config).items():
        key = Config.__dataclass_fields__[name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]
        limits = key.metadata.get("limits", {})
        limited = [Annotated[k, Field(**_LIMITS[k] | limits)] if k in _LIMITS else k for k in kinds]
        kind = functools.reduce(operator.or_, limited)
        keys[name] = kind, ... if key.default is MISSING else key.default
    return create_model("Checker", __config__=ConfigDict(strict=True, allow_inf_nan=False), **keys)


def _checked(values: Mapping[str, Any]) -> Config:
    """The configuration, if every key has a value of its type and in its range: nothing is made to fit."""
    from pydantic import ValidationError

    try:
        return Config(**vars(_checker().model_validate(values)))
    except ValidationError as error:
        first, *_ = found = error.errors()
        of_it = [each for each in found if each["loc"][0] == first["loc"][0]]
        if isinstance(first["input"], int | float):  # a number is not told which words there are
            of_it = of_it[:1]
        expected = " or ".join(map(_expected, of_it))
        expected = expected.replace(" or be ", " or ")
        raise ValueError(f"{first['loc'][0]} must {expected}, got {first['input']!r}") from None


def _expected(error: Any) -> str:
    if error["type"] == "greater_than_equal" and error["ctx"]["ge"] == 0:
        return "not be negative"
    return _EXPECTED.get(error["type"], error["msg"]).format(**error.get("ctx", {}))


def _with_every_choice(config: Config, given: Mapping[str, Any]) -> Config:
    """Fill in what is not ``given``, and refuse options that the task or the network would ignore."""
    from associative_lstm.lab.tasks import TASKS

    network, task = NETWORKS[config.model], TASKS[config.task]
    size = config.hidden_size or network.hidden_size
    choices = {"hidden_size": size, "batch_size": task.batch_size, "test_every": task.test_every}
    choices |= RECIPES[config.recipe or "paper"]
    starts = network.starts()
    begun = starts.get(given.get("start", choices["start"]), {})
    for option, default in network.options.items():
        if option in begun:
            choices[option] = begun[option]
        else:
            choices[option] = getattr(task, option) if default is None else default
    ignored_by = {key: f"model {config.model!r}" for key in ARGUMENTS if key not in network.options}
    if not starts:
        ignored_by["start"] = f"model {config.model!r}"
    if network.stacked:
        ignored_by["residual"] = f"model {config.model!r}, which stacks its layers itself"
    elif config.layers == 1:
        ignored_by["residual"] = "a single layer"
    if "window" in task.settings:
        choices["window"] = 100
    else:
        ignored_by["window"] = f"task {config.task!r}, whose sequences are whole"
    for key in TASK_OPTIONS:
        if key in task.options:
            choices[key] = task.options[key]
        else:
            ignored_by[key] = f"task {config.task!r}"
    choices["embedding"] = task.embedding
    if getattr(task, "vocabulary", "") is None:
        ignored_by["embedding"] = f"task {config.task!r}, whose inputs are no symbols"
    if "data" not in task.settings:
        ignored_by["data"] = f"task {config.task!r}, which makes its own data"
    if task.test_every is None:
        ignored_by["test_every"] = f"task {config.task!r}, which has no end to be tested on"
    for key, owner in ignored_by.items():
        if given.get(key, LATER.get(key)) != LATER.get(key):
            raise ValueError(f"{key} has no meaning for {owner}")
    if network.even and size % 2:
        half = "which has half as many complex numbers"
        raise ValueError(f"hidden_size must be even for {config.model!r}, {half}, got {size}")
    return Config(**{**choices, **given, "recipe": None, "start": None})


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

    settings, options = TASKS[config.task].settings, TASKS[config.task].options
    reading = {"progress": progress, "symbols_only": symbols_only} if "data" in settings else {}
    return make_task(config.task, **{key: getattr(config, key) for key in (*settings, *options)}, **reading)
