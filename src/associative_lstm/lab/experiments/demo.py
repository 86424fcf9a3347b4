"""Two networks side by side on variable assignment, with the same N_h and nearly the same number of parameters."""

import re
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from associative_lstm.lab.files import Interrupted, RunError
from associative_lstm.lab.run.config import Config, complete
from associative_lstm.lab.run.signals import listening
from associative_lstm.lab.sweep.workers import told_to_stop, workers

if TYPE_CHECKING:
    from associative_lstm.lab.run.evaluation import Trained
    from associative_lstm.lab.run.loop import Progress

# Each network has the settings that serve it best on this task: keys that start as conjugates of each other for the
# Associative LSTM, a forget gate that starts open for the LSTM; one learning rate, which suits both.
NETWORKS: dict[str, dict[str, Any]] = {
    "associative-lstm": {"model": "associative-lstm", "copies": 4, "key_init": "conjugate"},
    "lstm": {"model": "lstm", "forget_bias": 1.0},
}


def demo_configs(steps: int, seed: int) -> dict[str, Config]:
    """The two runs of the demo by name."""
    shared = {"task": "assignment", "learning_rate": 3e-3, "steps": steps, "seed": seed}
    return {name: complete(shared | network) for name, network in NETWORKS.items()}


def train_side_by_side(
    configs: dict[str, Config], folder: Path, show: Callable[[str, Any], None], say: Callable[[str], None]
) -> dict[str, Path]:
    """Train every run in a process of its own and return their folders.

    ``show`` gets a run's name and its progress, ``say`` what a process has to tell.
    """
    failures: list[BaseException] = []
    arguments = [(config, folder / name) for name, config in configs.items()]
    with listening() as asked, workers(_train_one, arguments) as started:
        readers = {worker.connection: name for worker, name in zip(started, configs, strict=True)}
        stopping = 0
        while readers:
            for reader in cast("list[Connection]", wait(list(readers), timeout=0.2)):
                try:
                    kind, content = reader.recv()
                except (EOFError, OSError):
                    del readers[reader]
                    continue
                if kind == "progress":
                    show(readers[reader], content)
                elif kind == "say":
                    say(content)
                else:
                    failures.append(content)
            if asked() and not stopping:
                stopping = asked()
                for worker in started:
                    worker.stop()
    if stopping:
        begun = [folder / name for name in configs if (folder / name / "config.toml").exists()]
        commands = " and ".join(f"alstm resume {quote(str(run))}" for run in begun)
        how = f"; continue with: {commands}" if begun else " before anything was trained"
        raise Interrupted(f"stopped{how}", stopping)
    if failures:
        raise failures[0]
    if any(worker.process.exitcode for worker in started):
        raise RunError(f"a training process ended with code {[w.process.exitcode for w in started]}")
    return {name: folder / name for name in configs}


class _Teller:
    """Stands in for stderr, so that what a process says does not tear the live display."""

    def __init__(self, writer: Connection) -> None:
        self._writer = writer

    def write(self, text: str) -> None:
        if text.strip():
            self._writer.send(("say", text.strip()))

    def flush(self) -> None: ...


def _train_one(config: Config, folder: Path, writer: Connection) -> None:
    sys.stderr = _Teller(writer)
    try:
        from associative_lstm.lab.run.loop import train

        def show(progress: "Progress") -> None:
            writer.send(("progress", tuple(progress)))

        train(config, folder, show=show, asked=told_to_stop(writer))
    except (Interrupted, BrokenPipeError):
        pass  # the process that shows the demo has asked for it and speaks for both, or is gone
    except Exception as error:
        writer.send(("failure", RunError(str(error) or type(error).__name__)))
    finally:
        writer.close()


def share_of_values_right(trained: "Trained", *, seed: int, lanes: int, batches: int) -> float:
    """Of the values asked for, the share that the network says (full stops, which nobody misses, aside)."""
    import torch

    task, state, right, asked = trained.task, None, 0, 0
    assert task.vocabulary is not None
    stop = task.vocabulary.index(".")
    stream = task.stream(lanes, seed, split="test")
    with torch.inference_mode():
        for _ in range(batches):
            batch = next(stream)
            logits, state = trained.model(batch.inputs, state)
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
