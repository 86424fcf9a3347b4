"""A trained network on fresh data: its cost with an interval, its predictions symbol by symbol, its own text."""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor

from associative_lstm.lab.files import Diverged, RunError
from associative_lstm.lab.run.checkpoint import usable_checkpoints
from associative_lstm.lab.run.config import Config, complete, task_of
from associative_lstm.lab.run.cost import cost_of, of_every_step
from associative_lstm.lab.run.folder import read_config
from associative_lstm.lab.run.model import SequenceModel, build_model, device_of, load_weights
from associative_lstm.lab.tasks.base import Batch, Task


class Trained(NamedTuple):
    """A network as a run has left it, and what it was trained on."""

    config: Config
    task: Task
    model: SequenceModel
    step: int


def load_trained(
    run: str | Path,
    *,
    symbols_only: bool = False,
    progress: Callable[[str], None] = lambda message: None,
    device: str = "cpu",
) -> Trained:
    """The network of a run, as its last good checkpoint has it (the run may be going on), or of exported weights.

    Args:
        run: the run's folder, or a ``model.safetensors``.
        symbols_only: do without Wikipedia's text, which is not needed to write.
        progress: hears of that text's download.
        device: where the network is to compute.
    """
    if device != "cpu" and not torch.cuda.is_available():
        raise RunError(f"device is {device}, but PyTorch finds no GPU here")
    trained = _load(run, symbols_only, progress)
    return trained._replace(model=trained.model.to(device))


def _load(run: str | Path, symbols_only: bool, progress: Callable[[str], None]) -> Trained:
    if Path(run).is_file():
        return _load_exported(Path(run), symbols_only, progress)
    config = read_config(run)
    task = task_of(config, progress, symbols_only=symbols_only)
    model = build_model(config, task)
    damaged: dict[Path, str] = {}
    for path, content in usable_checkpoints(Path(run), damaged):
        try:
            load_weights(model, content["trainer"]["model"])
            step = int(content["trainer"]["step"])
        except Exception as error:  # whatever a foreign checkpoint leads to
            damaged[path] = (str(error).splitlines() or [""])[0]
        else:
            return Trained(config, task, model.eval(), step)
    if damaged:
        path, reason = next(iter(damaged.items()))
        raise RunError(f"no checkpoint can be used: {path} is damaged ({reason})")
    raise RunError(f"{run} has no checkpoint yet")


def _load_exported(path: Path, symbols_only: bool, progress: Callable[[str], None]) -> Trained:
    try:
        with safe_open(path, "pt") as file:
            described = json.loads(file.metadata()["run"])
            names = file.keys()
            weights = {name: file.get_tensor(name) for name in names}
        config, step = complete(described["config"]), int(described["step"])
        model = build_model(config, task_of(config, symbols_only=True))
        load_weights(model, weights)
    except Exception as error:  # whatever a foreign file leads to
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RunError(f"{path} is not a file of weights that a run has written ({reason})") from error
    return Trained(config, task_of(config, progress, symbols_only=symbols_only), model.eval(), step)


class Evaluation(NamedTuple):
    """Mean cost in the task's unit, with a 95% confidence interval from the spread between the lanes."""

    cost: float
    interval: tuple[float, float]
    answer: float | None
    accuracy: float
    """Of what is scored (on tasks with an answer: of the answer), the share whose most probable symbol is right."""
    symbols: int


@torch.inference_mode()
def read(
    model: SequenceModel, task: Task, batches: Iterable[Batch], *, everywhere: bool = False
) -> Iterator[tuple[Batch, Tensor]]:
    """Every batch and the logits that it gets, the state carried through if the task is online.

    Of a sparse task only what is scored has logits, unless they are wanted ``everywhere``.
    """
    state = None
    device = device_of(model)
    for batch in batches:
        batch = batch.on(device)
        scored = [batch.mask] if task.sparse and not everywhere else []
        logits, state = model(batch.inputs, None if task.episodic else state, *scored)
        yield batch, logits


def held_out(task: Task, lanes: int, seed: int, batches: int | None) -> tuple[Iterable[Batch], int]:
    """What a network is evaluated on: so many batches that it has not been trained on.

    Unless told how many, the whole test split where the task has one, else 20.
    """
    if batches is None and (whole := task.read_test(lanes=lanes)) is not None:
        return whole, len(whole)
    return task.stream(lanes, seed, split="test"), batches or 20


def evaluate(
    model: SequenceModel,
    task: Task,
    stream: Iterable[Batch],
    batches: int,
    advance: Callable[[], None] = lambda: None,
) -> Evaluation:
    r"""The cost on the next ``batches`` of ``stream``.

    With bits :math:`b_i` and units :math:`u_i` of lane i of n, the cost is :math:`r = \sum b_i / \sum u_i` and its
    standard error :math:`\sqrt{\frac{n}{n-1} \sum (b_i - r u_i)^2} / \sum u_i`: lanes are independent, windows of one
    lane are not.
    """
    bits = units = answers = torch.zeros(())
    right, scored, symbols, has_answer = 0, 0, 0, False
    for batch, logits in read(model, task, islice(stream, batches)):
        cost = cost_of(task, logits, batch)
        bits, units = bits + cost.bits.double(), units + cost.units.double()
        if cost.answer is not None:
            has_answer, answers = True, answers + cost.answer.double()
        correct, counted = right_of(task, logits, batch)
        right, scored = right + int(correct.sum()), scored + int(counted.sum())
        symbols += batch.mask.numel()
        advance()
    total = float(units.sum())
    r = float(bits.sum()) / max(total, 1.0)
    if not math.isfinite(r):
        raise Diverged(
            "the cost is not finite: the network, which has diverged, says nothing that could be measured"
        )
    n = len(bits)
    error = math.inf
    if n > 1:
        error = math.sqrt(n / (n - 1) * float(((bits - r * units) ** 2).sum())) / max(total, 1.0)
    return Evaluation(
        r,
        (r - 1.96 * error, r + 1.96 * error),
        float(answers.sum()) / max(total, 1.0) if has_answer else None,
        right / max(scored, 1),
        symbols,
    )


def cost_of_reading(
    model: SequenceModel, task: Task, batches: Iterable[Batch], advance: Callable[[], None] = lambda: None
) -> tuple[float, int, int]:
    """The bits of all that is scored in ``batches``, how many symbols that is, and how many of them are right."""
    bits, symbols, right = 0.0, 0, 0
    for batch, logits in read(model, task, batches):
        bits += float(cost_of(task, logits, batch).bits.double().sum())
        symbols += int(batch.mask.sum())
        right += int(right_of(task, logits, batch)[0].sum())
        advance()
    return bits, symbols, right


def right_of(task: Task, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Where the most probable prediction is right, and where that counts, both ``(T, B)``."""
    answer = task.answer(batch)
    counted = batch.mask if answer is None else answer
    if logits.dim() == 2:
        hit = of_every_step(logits.argmax(-1) == batch.targets[batch.mask], batch.mask)
    elif task.loss == "sigmoid":
        hit = ((logits > 0) == (batch.targets > 0.5)).all(-1)
    else:
        hit = logits.argmax(-1) == batch.targets
    return hit & counted, counted


def predict(trained: Trained, *, seed: int, symbols: int) -> tuple[Batch, Tensor]:
    """One fresh lane of so many symbols (an episodic task: one sequence), and the predicted logits."""
    task, batches, logits, length = trained.task, [], [], 0
    for batch, piece in read(trained.model, task, task.stream(1, seed, split="test"), everywhere=True):
        batches.append(batch)
        logits.append(_finite(piece))
        length += len(piece)
        if task.episodic or length >= symbols:
            break
    most = length if task.episodic else symbols
    return Batch(*(torch.cat(parts)[:most] for parts in zip(*batches, strict=True))), torch.cat(logits)[:most]


def _finite(logits: Tensor) -> Tensor:
    if not logits.isfinite().all():
        raise Diverged(
            "the network says nothing that could be shown: its output is not finite, it has diverged"
        )
    return logits


@torch.inference_mode()
def write_text(
    trained: Trained,
    *,
    seed: int,
    length: int,
    prompt: str,
    temperature: float,
    advance: Callable[[], None] = lambda: None,
) -> Tensor:
    r"""Draw ``length`` symbols after ``prompt``, each with probability :math:`\mathrm{softmax}(\mathrm{logits} / T)`.

    T is the temperature; the state is carried on. An empty prompt is a line's end for Wikipedia, and for other tasks
    whatever a lane of their own begins with.
    """
    task = trained.task
    if task.episodic:
        raise ValueError(f"task {task.name!r} is no text that could be continued")
    generator = torch.Generator().manual_seed(seed)
    if prompt := prompt or task.beginning:
        symbols = torch.tensor(task.encode(prompt), dtype=torch.int64)
    else:
        symbols = next(task.stream(1, seed, split="test")).inputs[:1, 0]
    symbol, written, state = symbols.unsqueeze(1), [], None
    device = device_of(trained.model)
    for _ in range(length):
        logits, state = trained.model(symbol.to(device), state)
        probabilities = torch.softmax(_finite(logits[-1, 0]).double().cpu() / temperature, dim=-1)
        symbol = torch.multinomial(probabilities, 1, generator=generator).unsqueeze(1)
        written.append(symbol[0])
        advance()
    return torch.cat(written)
