"""Networks to be looked into."""

import torch

from associative_lstm.lab.inside.page import Reader
from associative_lstm.lab.run.config import complete, task_of
from associative_lstm.lab.run.evaluation import Trained
from associative_lstm.lab.run.model import build_model


def reader(seed=0, name="a-run", **config):
    """A network that has learned nothing, but whose gates, keys and states all differ."""
    torch.manual_seed(seed)
    complete_config = complete({"hidden_size": 16, "key_init": "conjugate", "copies": 4} | config)
    task = task_of(complete_config, symbols_only=True)
    model = build_model(complete_config, task)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return Reader(name, Trained(complete_config, task, model.eval(), 7))


def lstm(task, **config):
    return reader(task=task, model="lstm", key_init=None, copies=None, **config)
