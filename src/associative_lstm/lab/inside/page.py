"""The page: the weights and a text as JSON, and scripts that read the one with the other, in the reader's browser."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from torch import Tensor, nn

from associative_lstm.lab.files import Diverged, as_run_error, write_atomically
from associative_lstm.lab.networks import label_of
from associative_lstm.lab.palette import NAMED
from associative_lstm.lab.run.evaluation import Trained, load_trained
from associative_lstm.lab.tasks.base import Task, fresh
from associative_lstm.lab.tasks.wikipedia import Wikipedia
from associative_lstm.nn import LSTM, AssociativeLSTM

LONGEST = 1000
"""Symbols of a text that the page reads at most: its whole map takes seconds then."""
_EXAMPLES = 4


class Reader(NamedTuple):
    """A trained network and what its page calls it."""

    name: str
    trained: Trained


def load(run: Path) -> Reader:
    """The network of a run; one that the page cannot compute is a ValueError."""
    trained = load_trained(run, symbols_only=True)
    task, layers = trained.task, list(trained.model.layers)
    if task.vocabulary is None:
        raise ValueError(f"{run}: task {task.name!r} has no text that could be shown")
    if trained.config.embedding or trained.config.previous or task.symbols_per_step > 1:
        raise ValueError(
            f"{run}: the page can present symbols one by one, as one-hot vectors, and no otherwise"
        )
    if not all(isinstance(layer, AssociativeLSTM | LSTM) for layer in layers):
        raise ValueError(
            f"{run}: the page can show an Associative LSTM, or an LSTM beside it; this is neither"
        )
    if any(getattr(each, "residual", False) for each in (trained.model, *layers)):
        raise ValueError(
            f"{run}: the page can show no network whose layers add what they read to what they give"
        )
    if any(getattr(layer, "bidirectional", False) for layer in layers):
        raise ValueError(
            f"{run}: the network also reads from the end, which a text being typed does not have"
        )
    if not all(parameter.isfinite().all() for parameter in trained.model.parameters()):
        raise Diverged(f"{run}: the network has diverged: its weights are not finite")
    folder = run.resolve()
    return Reader(folder.parent.name if folder.is_file() else folder.name, trained)


def check(readers: list[Reader]) -> None:
    """Refuse networks that have no page together."""
    if not any(isinstance(r.trained.model.layers[-1], AssociativeLSTM) for r in readers):
        raise ValueError(
            f"{readers[0].name} is not an Associative LSTM, the network whose reads fall into what was written"
        )
    tasks = [r.trained.config.task for r in readers]
    if len(set(tasks)) > 1:
        raise ValueError(
            f"the runs are of different tasks, {tasks[0]} and {tasks[1]}: they read no text in common"
        )


def fitting(task: Task, text: str) -> str:
    """As much of a text as the page reads; what it has not in its alphabet is an error."""
    if not text:
        raise ValueError("the text is empty: there is nothing to read")
    if isinstance(task, Wikipedia):
        return text.encode()[:LONGEST].decode("utf-8", "ignore")
    task.encode(text)
    return text[:LONGEST]


def samples(task: Task, seed: int, length: int = 120) -> list[str]:
    """Fresh texts of a task that makes its own: the first to be shown, the others to be chosen."""
    if "data" in task.settings:
        raise ValueError(f"task {task.name!r} makes no texts of its own: say with --text what shall be read")
    lanes = (fresh(task, seed + lane, length).inputs[:, 0] for lane in range(1 + _EXAMPLES))
    return [task.decode(symbols) for symbols in lanes]


def write_page(readers: list[Reader], text: str, examples: list[str], out: Path) -> None:
    """Write the page of one network, or of two beside each other, reading ``text``."""
    content = render(readers, text, examples).encode()
    with as_run_error(f"{out} could not be written"):
        out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, content)


def render(readers: list[Reader], text: str, examples: list[str]) -> str:
    """The HTML text of readers and what they read."""
    check(readers)
    task = readers[0].trained.task
    data = {
        "task": task.name,
        "vocabulary": list(task.vocabulary or ""),
        "bytes": isinstance(task, Wikipedia),
        # An online task asks for the next symbol, an episodic one for an answer beside each.
        "ahead": 0 if task.episodic else 1,
        "longest": LONGEST,
        "text": text,
        "examples": examples,
        "networks": [_network(reader) for reader in readers],
    }
    return html_of(task, data)


def environment(folder: str) -> Environment:
    """Templates in a ``folder`` of the lab that escape every text; their JSON is short, and has numbers only."""
    made = Environment(
        loader=PackageLoader("associative_lstm.lab", folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def html_of(task: Task, data: Mapping[str, Any]) -> str:
    """The HTML text. Whatever comes from outside is escaped, and no script but the page's own may run."""
    here = files("associative_lstm.lab.inside")
    css, *js = ((here / name).read_text(encoding="utf-8") for name in ("inside.css", "network.js", "page.js"))
    colours = "".join(f"--{name}: {value}; " for name, value in NAMED.items())
    style, script = f"\n:root {{ {colours}}}\n{css}", "\n" + "\n".join(js)
    return (
        environment("inside")
        .get_template("template.html")
        .render(task=task, networks=data["networks"], data=data, style=style, script=script, allowed=_hash)
    )


def data_of(html: str) -> dict[str, Any]:
    """What a page holds: with it and today's scripts the page can be made anew."""
    found = re.search('<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    if found is None:
        raise ValueError("this is no page that `alstm inside` has written")
    data: dict[str, Any] = json.loads(found[1])
    return data


def _hash(text: str) -> str:
    """How a content security policy names the one script, or style, that is allowed."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _network(reader: Reader) -> dict[str, Any]:
    config, _, model, step = reader.trained
    return {
        "name": reader.name,
        "label": label_of(config.model, vars(config)),
        "step": step,
        "layers": [one for layer in model.layers for one in _layers(layer)],
        "readout": {"weight": _base64(model.readout.weight), "bias": _base64(model.readout.bias)},
    }


def _layers(layer: nn.Module) -> list[dict[str, Any]]:
    """Each layer of a network as the scripts want it."""
    layers = []
    for k in range(int(layer.num_layers)):  # type: ignore[arg-type]  # a module's attribute may be anything to mypy
        weights = {
            name: _base64(getattr(layer, f"{name}_l{k}", None)) for name in ("weight_ih", "weight_hh", "bias")
        }
        shape = {"inputs": getattr(layer, f"weight_ih_l{k}").shape[1], "size": layer.hidden_size}
        if isinstance(layer, AssociativeLSTM):
            learned = {
                name: _base64(getattr(layer, f"{name}_l{k}", None)) for name in ("h_0", "c_0", "angles")
            }
            own = {
                "kind": "associative",
                "heads": layer.num_heads,
                "copies": layer.num_copies,
                "activation": layer.activation,
                "permutations": getattr(layer, f"permutations_l{k}").tolist(),
            }
        else:
            learned = {
                name: _base64(getattr(layer, name)[k] if layer.learn_initial_state else None)
                for name in ("h_0", "c_0")
            }
            own = {"kind": "lstm"}
        layers.append(own | shape | weights | learned)
    return layers


def _base64(tensor: Tensor | None) -> str | None:
    """The numbers as little-endian float32."""
    if tensor is None:
        return None
    return base64.b64encode(tensor.detach().cpu().numpy().astype("<f4").tobytes()).decode()
