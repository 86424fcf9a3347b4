"""The paper's networks by name, and how they are trained: the paper's way, and a faster one."""

from typing import Any

# With Glorot keys and zero biases a layer's output is a product of three small numbers (update and two keys). Three
# layers make it the ninth power and more: the output and every gradient are zero in float32, and nothing is learned.
_THREE_LAYERS = {"model": "associative-lstm", "hidden_size": 256, "layers": 3, "key_init": "conjugate"}

_PRESETS: dict[str, dict[str, Any]] = {
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
PRESETS = {name: {"recipe": "paper", **values} for name, values in _PRESETS.items()}
"""The paper's networks by name: the number at the end is N_h, or of an Associative LSTM (N_h 128) the copies."""

RECIPES: dict[str, dict[str, Any]] = {
    "paper": {"start": "paper"},
    "fast": {"start": "fast", "clip": 1.0, "schedule": "linear-end", "beta2": 0.99, "learning_rate": 5e-3},
}
"""How to train: the paper's way, as far as it tells, which is meant where a configuration names none; and one that
learns in fewer minibatches. What recipe and start choose is written into the configuration, key by key."""
