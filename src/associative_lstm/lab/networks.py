"""The registry of networks: all that the lab knows of each, in one entry. Names are there without PyTorch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from associative_lstm.lab import palette
from associative_lstm.lab.words import counted

Settings = Mapping[str, Any]
"""The keys of a configuration, or some of them."""

Look = tuple[str, str]
"""Colour and line style."""


@dataclass(frozen=True)
class Entry:
    """What is true of a network, whatever it is trained on."""

    made_by: str | Callable[..., Any]
    """A class of ``associative_lstm.nn`` or of ``associative_lstm.lab.rivals`` by its name, or the class itself.

    It is called with the input size, the hidden size and the options; it has ``input_size`` and ``output_size``, and
    is called ``output, state = network(x, state)``, time first, the state None at the start, else tensors in tuples.
    """
    label: str
    hidden_size: int = 128
    """N_h, if nothing else is asked for: the paper's."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those of ``ARGUMENTS`` that it understands, each with its default; None leaves it to the start or the task."""
    starts: Callable[[], Mapping[str, Settings]] = dict
    """What it can begin from, by name (``paper``, ``fast``): the options that each decides."""
    stacked: bool = False
    """Whether it takes ``num_layers`` and stacks them itself; the lab stacks the others, network upon network."""
    even: bool = False
    """Whether N_h real numbers are half as many complex ones."""
    kernel: str | None = None
    """Its fused kernel, in ``associative_lstm.kernels``."""
    details: Callable[[Settings], list[str]] = lambda settings: []
    """What its label adds to the size."""
    look: Callable[[Settings], Look] = lambda settings: (palette.BLACK, "-")
    """How it is drawn, the same in every figure: the kind of network has the colour, its size or start the line."""
    milliseconds: Callable[[Settings], float] = lambda settings: 2 * _units(settings)
    """About how long a minibatch takes, for the estimate of the time left."""

    def make(self, input_size: int, settings: Settings) -> Any:
        """The network of a complete configuration; PyTorch is imported here."""
        from associative_lstm import nn
        from associative_lstm.lab import rivals

        made_by = self.made_by
        if isinstance(made_by, str):
            made_by = getattr(rivals if made_by in rivals.__all__ else nn, made_by)
        arguments = {ARGUMENTS[key]: settings[key] for key in self.options}
        if self.stacked:
            arguments["num_layers"] = settings["layers"]
        return made_by(input_size, settings["hidden_size"], **arguments)


def _units(settings: Settings) -> float:
    return (settings.get("hidden_size") or 128) / 128


def _associative_details(settings: Settings) -> list[str]:
    heads = settings.get("heads") or 1
    copies = counted(settings.get("copies") or 1, "copy")
    return [copies, *([counted(heads, "head")] if heads > 1 else [])]


def _associative_starts() -> Mapping[str, Settings]:
    from associative_lstm.nn.options import STARTS

    return STARTS


def _associative_look(settings: Settings) -> Look:
    start = (settings.get("key_init", "glorot"), settings.get("forget_bias", 0.0))
    line = {("glorot", 0.0): "-", ("glorot", 1.0): "--", ("conjugate", 0.0): "-."}.get(start, ":")
    return {1: palette.SKY, 4: palette.BLUE, 8: palette.GREEN}.get(settings["copies"], palette.PURPLE), line


def _lstm_look(settings: Settings) -> Look:
    colour = palette.BLACK if settings.get("hidden_size") == 512 else palette.VERMILION
    return colour, "--" if settings.get("forget_bias") else "-"


_TASKS_CHOICE: dict[str, Any] = {"learn_initial_state": None}


def _unitary(made_by: str, label: str, colour: str) -> Entry:
    return Entry(
        made_by,
        label,
        hidden_size=256,
        options=_TASKS_CHOICE,
        even=True,
        kernel="unitary.fused",
        look=lambda settings: (colour, ":" if settings.get("hidden_size") == 1024 else "--"),
    )


def _associative(made_by: str, label: str, look: Callable[[Settings], Look], **options: Any) -> Entry:
    start: dict[str, Any] = {"key_init": None, "forget_bias": None, "update_init": None, "horizon": 120}
    return Entry(
        made_by,
        label,
        options={"copies": 1, "heads": 1, "permutation": "random"} | start | options,
        starts=_associative_starts,
        even=True,
        kernel="associative.fused",
        details=_associative_details,
        look=look,
        milliseconds=lambda s: 3 * (_units(s) * (s.get("heads") or 1)) ** 2 * s.get("layers", 1),
    )


def _rival(made_by: str, label: str, colour: str, heads: int = 2, **options: Any) -> Entry:
    """A network of residual blocks, whose state is as large as heads and their size say."""
    return Entry(
        made_by,
        label,
        hidden_size=64,
        options={"heads": heads, "head_size": 32} | options | {"mlp": 0},
        stacked=True,
        details=lambda s: [f"{counted(s.get('heads') or heads, 'head')} of {s.get('head_size') or 32}"],
        look=lambda settings: (colour, "-"),
        milliseconds=lambda s: 8 * _units(s) * s.get("layers", 1),
    )


NETWORKS: dict[str, Entry] = {
    "associative-lstm": _associative(
        "AssociativeLSTM",
        "Associative LSTM",
        _associative_look,
        activation="bound",
        rotation=0.0,
        recurrent_update=None,
        **_TASKS_CHOICE,
    ),
    "lstm": Entry(
        "LSTM",
        "LSTM",
        options={"forget_bias": None, "horizon": 120} | _TASKS_CHOICE,
        starts=lambda: {"paper": {"forget_bias": 0.0}, "fast": {"forget_bias": "chrono"}},
        look=_lstm_look,
        milliseconds=lambda s: 3.5 * _units(s) ** 2 * s.get("layers", 1),
    ),
    "permutation-rnn": Entry(
        "PermutationRNN",
        "Permutation RNN",
        hidden_size=256,
        options=_TASKS_CHOICE,
        kernel="permutation.fused",
        look=lambda settings: (palette.PURPLE, "-"),
    ),
    "unitary-rnn": _unitary("UnitaryRNN", "Unitary RNN", palette.ORANGE),
    "multiplicative-unitary-rnn": _unitary("MultiplicativeUnitaryRNN", "Multiplicative uRNN", palette.PURPLE),
    "ntm": Entry(
        "NeuralTuringMachine",
        "NTM",
        hidden_size=384,
        options={"heads": 4} | _TASKS_CHOICE,
        kernel="ntm.fused",
        look=lambda settings: (palette.ORANGE, "-"),
        milliseconds=lambda s: 5 * _units(s) ** 2,
    ),
    "open-associative-lstm": _associative(
        "OpenAssociativeLSTM", "Associative LSTM, open loop", lambda settings: (palette.SKY, ":")
    ),
    "gru": Entry(
        "GRU",
        "GRU",
        options=_TASKS_CHOICE,
        look=lambda settings: (palette.GREY, "-"),
        milliseconds=lambda s: 3.5 * _units(s) ** 2 * s.get("layers", 1),
    ),
    "attention": _rival("Attention", "Attention", palette.ROSE, convolution=0, span=1024),
    "mlstm": _rival("MLSTM", "mLSTM", palette.INDIGO, convolution=4),
    "mamba2": _rival("Mamba2", "Mamba-2", palette.TEAL, heads=4, convolution=4),
    "deltanet": _rival("DeltaNet", "DeltaNet", palette.OLIVE, convolution=4, negative_eigenvalues=False),
    "gated-deltanet": _rival(
        "GatedDeltaNet", "Gated DeltaNet", palette.WINE, convolution=4, negative_eigenvalues=False
    ),
}
"""Every network by name."""

ARGUMENTS = {
    key: {"copies": "num_copies", "heads": "num_heads"}.get(key, key)
    for entry in NETWORKS.values()
    for key in entry.options
}
"""The keys of a configuration that a network may understand, and the argument of its class that each becomes."""


def register(name: str, *, label: str | None = None, **entry: Any) -> Callable[[type], type]:
    """Make a network of your own known by a name (a class decorator); the rest is as in :class:`Entry`.

    >>> @register("mine", hidden_size=64, options={"forget_bias": 1.0})
    ... class Mine: ...
    >>> NETWORKS.pop("mine").label
    'mine'
    """

    def enter(made_by: type) -> type:
        if name in NETWORKS and NETWORKS[name].made_by is not made_by:
            raise ValueError(f"a network named {name!r} exists already")
        new = Entry(made_by, label or name, **entry)
        if unknown := [key for key in new.options if key not in ARGUMENTS]:
            raise ValueError(
                f"network {name!r}: {unknown[0]!r} is no option of a network: there are {', '.join(ARGUMENTS)}"
            )
        NETWORKS[name] = new
        return made_by

    return enter


def state_size(network: Any, steps: int = 1) -> int:
    """How many numbers a network carries on to the next step, for one sequence, after ``steps`` of it.

    Counted in the state that it gives. Only attention's grows with the steps.

    >>> from associative_lstm.nn import LSTM, AssociativeLSTM
    >>> state_size(LSTM(10, 128)), state_size(AssociativeLSTM(10, 128, num_copies=4))
    (256, 640)
    """
    import torch

    def count(state: Any) -> int:
        return state.numel() if isinstance(state, torch.Tensor) else sum(map(count, state))

    like = next(network.parameters())
    with torch.no_grad():
        return count(network(like.new_zeros(steps, 1, network.input_size))[1])


def label_of(model: str, settings: Settings) -> str:
    """A short name of a network, with what tells it from its neighbours.

    >>> label_of("associative-lstm", {"copies": 4, "hidden_size": 128})
    'Associative LSTM 128, 4 copies'
    """
    entry, layers = NETWORKS[model], settings.get("layers", 1)
    stacked = [counted(layers, "layer")] if layers > 1 else []
    stacked += ["residual"] if settings.get("residual") else []
    return ", ".join([f"{entry.label} {settings['hidden_size']}", *stacked, *entry.details(settings)])
