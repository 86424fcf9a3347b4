"""Two networks side by side on variable assignment, with the same N_h and nearly the same number of parameters."""

import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from associative_lstm.lab.files import Interrupted, RunError
from associative_lstm.lab.run.config import Config, complete
from associative_lstm.lab.run.packed import is_run
from associative_lstm.lab.sweep.jobs import Job, run_grid
from associative_lstm.lab.sweep.local import local

if TYPE_CHECKING:
    from associative_lstm.lab.run.evaluation import Trained

NETWORKS: dict[str, dict[str, Any]] = {
    "associative-lstm": {"model": "associative-lstm", "copies": 4},
    "lstm": {"model": "lstm"},
}


def demo_configs(steps: int, seed: int) -> dict[str, Config]:
    """The two runs of the demo by name, both by the fast recipe."""
    shared = {"task": "assignment", "recipe": "fast", "steps": steps, "seed": seed}
    return {name: complete(shared | network) for name, network in NETWORKS.items()}


def compile_kernels(config: Config) -> None:
    """Take a step that nobody keeps: what has to be compiled is told now, and not across the live table."""
    from associative_lstm.lab.run.step import Trainer, make_fabric

    Trainer(config, make_fabric()).train_step()


def train_side_by_side(
    configs: dict[str, Config], folder: Path, show: Callable[[object], None]
) -> dict[str, Path]:
    """Train every run in a process of its own and return their folders; ``show`` is called every second."""
    folders = {name: folder / name for name in configs}
    jobs = [Job(configs[name], folders[name]) for name in configs]
    try:
        failed = run_grid(jobs, local(len(jobs)), show)
    except Interrupted as stopped:
        commands = " and ".join(f"alstm resume {quote(str(run))}" for run in folders.values() if is_run(run))
        how = f"; continue with: {commands}" if commands else " before anything was trained"
        raise Interrupted(f"stopped{how}", stopped.code - 128) from None
    if failed:
        raise RunError(failed[0])
    return folders


def share_of_values_right(trained: "Trained", *, seed: int, lanes: int, batches: int) -> float:
    """Of the values asked for, the share that the network says (full stops, which nobody misses, aside)."""
    from associative_lstm.lab.run.evaluation import read

    task, right, asked = trained.task, 0, 0
    assert task.vocabulary is not None
    stop = task.vocabulary.index(".")
    for batch, logits in read(trained.model, task, islice(task.stream(lanes, seed, split="test"), batches)):
        values = batch.mask & (batch.targets != stop)
        right += int((values & (logits.argmax(-1) == batch.targets)).sum())
        asked += int(values.sum())
    return right / max(asked, 1)


class Query(NamedTuple):
    """A sequence of assignments and a query, the right answer, and what each network answers."""

    text: str
    right: str
    answers: dict[str, str]


def ask(folders: dict[str, Path], *, count: int, seed: int) -> list[Query]:
    """The first ``count`` sequences of fresh data with at least three variables, and every network's answers."""
    from associative_lstm.lab.run.evaluation import load_trained, predict

    texts, answers = "", {}
    for name, folder in folders.items():
        trained = load_trained(folder)
        batch, logits = predict(trained, seed=seed, symbols=150 * count)
        texts = trained.task.decode(batch.inputs[:, 0])
        # The logits at the ")" of a query are the prediction of the value after it.
        answers[name] = trained.task.decode(logits[:, 0].argmax(-1))
    queries = []
    for match in re.finditer(r"(?:s\([a-z]+,[a-z]\),){3,}q\([a-z]+\)(?=([a-z])\.)", texts):
        said = {name: answer[match.end() - 1] for name, answer in answers.items()}
        queries.append(Query(match[0], match[1], said))
    return queries[:count]
