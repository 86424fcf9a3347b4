"""What each network costs on one machine in one run: a training step, one token, and memory; checked before timed."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from associative_lstm.lab.bench.memory import peak_bytes
from associative_lstm.lab.bench.timing import in_turns, inference_step, threads, training_step
from associative_lstm.lab.experiments.recall.grid import SEEDS, SETTINGS, Point
from associative_lstm.lab.run.config import task_of
from associative_lstm.lab.run.loop import own_settings
from associative_lstm.lab.run.model import SequenceModel, build_model
from associative_lstm.lab.run.step import Trainer, make_fabric

SETTING = SETTINGS["mqar"]
BATCH = 64
TOLERANCE = 1e-4
"""How far what a network says token by token may be from what it says of the whole sequence, for it to be timed."""


def points() -> list[Point]:
    """Of every kind that is compared, on stacked pairs all, the largest network, and that of about 1,024 numbers."""
    compared = SETTINGS["stacked"].points
    largest = {point.kind: point for point in compared}.values()
    return [point for point in compared if point in largest or point.size == "medium"]


def measure(seconds: float, advance: Callable[[], None] = lambda: None) -> list[dict[str, Any]]:
    """A row for each network; ``seconds`` are spent on each, on one thread."""
    with own_settings(), threads(1):
        rows = []
        for point in points():
            rows.append(_row(point, seconds))
            advance()
        return rows


def _row(point: Point, seconds: float) -> dict[str, Any]:
    torch.manual_seed(0)
    config = SETTING.curve(point).config(SETTING.rates[0], SEEDS[0], SETTING.minibatches)
    task = task_of(config)
    model = build_model(config, task)
    x = next(task.stream(BATCH, 0)).inputs
    one = x[:, :1]
    difference = disagreement(model, one)
    if not difference < TOLERANCE:
        raise ValueError(
            f"{point.label}: token by token differs by {difference:.1e}, so its speed means nothing"
        )
    with torch.no_grad():
        _, read = model(one)  # a sequence, after which one token more is timed
    token = inference_step(lambda token: model(token, read), one[-1:])
    timings = in_turns({"step": training_step(model, x), "token": token}, seconds=seconds)
    state, parameters = SETTING.sizes(point)
    return {
        "network": point.name,
        "label": point.label,
        "state": state,
        "parameters": parameters,
        "steps": len(x),
        "batch": BATCH,
        "step_milliseconds": 1e3 * timings["step"].median,
        "token_microseconds": 1e6 * timings["token"].median,
        "peak_bytes": peak_bytes(model, x),
        "disagreement": difference,
    }


@torch.no_grad()
def disagreement(model: SequenceModel, x: Tensor) -> float:
    """The largest difference between logits of the whole sequence and those token by token, by the largest of all."""
    whole, state, said = model(x)[0], None, []
    for token in x.split(1):
        logits, state = model(token, state)
        said.append(logits)
    return float((torch.cat(said) - whole).abs().max() / whole.abs().max())


def plan(name: str, steps: int = 8) -> Iterator[tuple[str, float, int, float]]:
    """How long a setting will take, from so many steps: of each network milliseconds, runs, hours of one core."""
    setting = SETTINGS[name]
    for point in setting.points:
        curve = setting.curve(point)
        with own_settings():
            trainer = Trainer(curve.config(setting.rates[0], SEEDS[0], setting.minibatches), make_fabric())
            for _ in range(2):  # the first compiles
                trainer.train_step()
            begun = time.process_time()
            for _ in range(steps):
                trainer.train_step()
            seconds = (time.process_time() - begun) / steps
        runs = len(SEEDS) + (len(setting.rates) if len(setting.rates) > 1 else 0)
        yield point.label, 1e3 * seconds, runs, runs * setting.minibatches * seconds / 3600
