"""What each process of a data-parallel test does: ``torchrun --nproc-per-node 2 parallel.py FOLDER``, or without."""

import os
import sys
from pathlib import Path

import torch

from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.loop import resume, train
from associative_lstm.lab.run.step import Trainer, make_fabric

SETTINGS = {"model": "lstm", "hidden_size": 8, "batch_size": 4, "log_every": 5, "checkpoint_every": 6}


def main(folder):
    first = os.environ.get("RANK", "0") == "0"
    for task in ("assignment", "copy-variable"):
        trainer = Trainer(complete(SETTINGS | {"task": task, "steps": 1}), make_fabric())
        trainer.backpropagate()
        if first:
            torch.save({k: p.grad for k, p in trainer.model.named_parameters()}, folder / f"{task}.pt")
    config = SETTINGS | {"task": "assignment"}
    train(complete(config | {"steps": 12}), folder / "whole")
    train(complete(config | {"steps": 6}), folder / "halves")
    resume(folder / "halves", steps=12)
    recipe = {"clip": 0.05, "schedule": "linear-end", "warmup": 3, "weight_decay": 0.1, "beta2": 0.9}
    train(complete(config | recipe | {"steps": 12}), folder / "recipe")
    if len(sys.argv) > 2:
        wikipedia(folder, sys.argv[2])


def wikipedia(folder, text):
    """An Associative LSTM on bytes, tested while it is trained; what every process then holds."""
    config = SETTINGS | {"task": "wikipedia", "data": text, "test_every": 4, "window": 20}
    config |= {"model": "associative-lstm", "copies": 2, "key_init": "conjugate"}
    trainer = Trainer(complete(config | {"steps": 3}), make_fabric())
    for _ in range(3):
        trainer.train_step()
    torch.save(trainer.weights(), folder / f"rank-{os.environ.get('RANK', '0')}.pt")
    train(complete(config | {"steps": 10}), folder / "wikipedia")
    train(complete(config | {"steps": 8}), folder / "wikipedia-halves")
    resume(folder / "wikipedia-halves", steps=10)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stderr.flush()
    os._exit(0)  # threads of PyTorch's group that outlive the interpreter abort the process now and then
