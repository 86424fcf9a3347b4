"""The learning rate over a run."""

import math

from associative_lstm.lab.run.config import Config

_FALL = 0.6
"""The share of a run, its end, in which the schedule "linear-end" takes the learning rate down."""


def rate_factor(config: Config, step: int) -> float:
    """What the learning rate is multiplied by in the step after ``step`` others.

    >>> from associative_lstm.lab.run.config import complete
    >>> config = complete({"task": "xml", "schedule": "linear-end", "steps": 1000, "warmup": 4})
    >>> [round(rate_factor(config, step), 4) for step in (0, 3, 400, 700, 999)]
    [0.25, 1.0, 1.0, 0.5, 0.0017]
    """
    factor = min(1.0, (step + 1) / config.warmup) if config.warmup else 1.0
    if config.schedule == "linear-end":
        return factor * min(1.0, (config.steps - step) / (_FALL * config.steps))
    if config.schedule == "cosine":
        return factor * (1 + math.cos(math.pi * step / config.steps)) / 2
    return factor


def told_by_length(config: Config, steps: int) -> float:
    """After how many of ``steps`` steps the learning rate begins to depend on how many there are."""
    return {"linear-end": (1 - _FALL) * steps, "cosine": 0.0}.get(config.schedule, math.inf)
