"""The networks of the learning curves: which learn which task, for how long, and where their runs are kept.

Every curve, a network on a task, is treated alike, but for those at ``ONE_RATE``. Each learning rate of ``RATES``
is trained for ``sweep_steps`` minibatches with the first seed; if the first or the last of them is best, the next
one beyond (``BEYOND``) too, and, where runs take minutes, one further (``FURTHER``). The one with the lowest mean
cost over the last fifth of the minibatches is the curve's. An early lead says little: rates that cost at most half as
much again (``CLOSE``) are trained twice as long and compared again, until one is left or their runs are whole; of
curves more than twice as long as is usual (``STEPS``) only the two best of them go on past that. A rate that diverges
on the way, or loses all that it has learned, is out, and the others are compared without it. The best one's run is
made as long as the curve (``steps``), and those of the other seeds.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from associative_lstm.lab.networks import Look
from associative_lstm.lab.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from associative_lstm.lab.run.config import Config, complete
from associative_lstm.lab.run.recipes import PRESETS
from associative_lstm.lab.words import counted

RATES = (3e-4, 1e-3, 3e-3, 1e-2)
FAST_RATES = (2e-3, 5e-3, 1e-2)
"""Of what is trained by the fast recipe, whose own is the middle one."""

ONE_RATE = 1e-3
"""The best one of 1 copy on copy; several copies are trained with it as well, to be compared at one rate."""

BEYOND = {3e-4: 1e-4, 1e-2: 3e-2, 2e-3: 1e-3}
FURTHER = {3e-2: 1e-1, 1e-4: 3e-5}
"""Beyond those, where a run takes minutes (``by_test``), if the task is not solved by then."""

CLOSE = 1.5
"""Rates whose cost is at most so many times the lowest go on."""

SEEDS = (0, 1, 2)
"""The seeds of a network with at most 200,000 parameters; a larger one has the first two, and is judged by one."""


@dataclass(frozen=True)
class Network:
    """A network of the figures: the name of its runs' folder, what a reader calls it, and its configuration."""

    name: str
    label: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    large: bool = False
    steps: Mapping[str, int] | None = field(default=None, hash=False)
    """By task, of a network of the fast recipe, whose learning rate falls towards the end of all of its runs."""
    rates: tuple[float, ...] = RATES
    look: Look | None = None
    """Colour and line, where those that the registry of networks has are not to tell it from its neighbours."""
    same_as: str = ""
    """The network that it is, at a rate of its own: their runs are the same."""


def _networks() -> Iterable[Network]:
    for size in (128, 512):
        yield Network(f"lstm-{size}", f"LSTM {size}", PRESETS[f"lstm-{size}"], large=size == 512)
    yield Network("lstm-128-forget-1", "LSTM 128, forget bias 1", PRESETS["lstm-128"] | {"forget_bias": 1.0})
    for copies in (1, 4, 8):
        so_many = counted(copies, "copy")
        preset, label = PRESETS[f"associative-lstm-{copies}"], f"Associative LSTM 128, {so_many}"
        yield Network(f"associative-lstm-{copies}", label, preset)
        for suffix, text, values in STARTS[1:]:
            yield Network(f"associative-lstm-{copies}{suffix}", f"{label}, {text}", preset | values)
        if copies > 1:
            name = f"associative-lstm-{copies}"
            words = f"{label}, rate of 1 copy"
            yield Network(f"{name}-at-one-rate", words, preset, rates=(ONE_RATE,), same_as=name)
        heads = PRESETS[f"associative-lstm-3-heads-{copies}"]
        label = f"Associative LSTM 128, 3 heads, {so_many}"
        yield Network(f"associative-lstm-3-heads-{copies}", label, heads, large=True)
        one, name = heads | {"batch_size": 1}, f"associative-lstm-3-heads-{copies}-batch-1"
        yield Network(name, label, one, large=True, look=(BLUE, "--") if copies == 4 else None)
        yield Network(f"{name}{_W_HU[0]}", f"{label}{_W_HU[1]}", one | _W_HU[2], large=True)
    preset, label = PRESETS["associative-lstm-4"], "Associative LSTM 128, 4 copies"
    name, with_w_hu = f"associative-lstm-4{_W_HU[0]}", preset | _W_HU[2]
    yield Network(name, f"{label}{_W_HU[1]}", with_w_hu, look=(ORANGE, "-"))
    tanh = preset | {"activation": "tanh"}
    yield Network("associative-lstm-4-tanh", f"{label}, tanh of the modulus", tanh, look=(PURPLE, "-"))
    heads, label = PRESETS["associative-lstm-3-heads-4"], "Associative LSTM 128, 3 heads, 4 copies"
    name = f"associative-lstm-3-heads-4{_W_HU[0]}"
    words = f"{label}{_W_HU[1]}, minibatches of 2"
    yield Network(name, words, heads | _W_HU[2], large=True, look=(ORANGE, "--"))
    yield Network("permutation-rnn-256", "Permutation RNN 256", PRESETS["permutation-rnn-256"])
    for size in (256, 1024):
        for kind, label in (
            ("unitary-rnn", "Unitary RNN"),
            ("multiplicative-unitary-rnn", "Multiplicative uRNN"),
        ):
            large = kind == "multiplicative-unitary-rnn" and size == 1024
            yield Network(f"{kind}-{size}", f"{label} {size}", PRESETS[f"{kind}-{size}"], large=large)
    yield Network("lstm-512-batch-1", "LSTM 512", PRESETS["lstm-512"] | {"batch_size": 1}, large=True)
    yield Network("ntm", "NTM", PRESETS["ntm"], large=True)


_W_HU: tuple[str, str, dict[str, Any]] = ("-whu", ", W_hu", {"recurrent_update": True})
"""With W_hu on tasks where the paper leaves it out: end of the name, of the label, configuration."""

STARTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("", "Glorot keys, forget bias 0", {}),
    ("-forget-1", "Glorot keys, forget bias 1", {"forget_bias": 1.0}),
    ("-conjugate", "conjugate keys, forget bias 0", {"key_init": "conjugate"}),
    ("-conjugate-forget-1", "conjugate keys, forget bias 1", {"key_init": "conjugate", "forget_bias": 1.0}),
)
"""How an Associative LSTM can start: end of its name, in words, configuration. The first is that of the figures."""

FAST_STEPS = {"copy": 3000, "copy-variable": 3000, "xml": 5000, "assignment": 5400, "arithmetic": 10_000}
"""A quarter and less of what is compared with, or a little more where that is to be solved in a tenth."""

FAST_SEEDS, FAST_SWEEP_SEED, LARGE_SEEDS = (20, 21, 22, 23, 24), 19, (10, 11)
"""None of them was looked at when the start and the recipe were chosen, by runs with seeds 0 to 3 (and 9 to 14,
on copy and XML, with keys of three times Glorot's weights). Learning rates are chosen by the seed of the sweep."""

WHOLE_SEEDS = (30, 31, 32)
"""Of runs by the fast recipe that are as long as those as the paper trained; large networks have the first two."""

WITHOUT: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("", "all of it", {}),
    ("-conjugate", "keys not matched", {"key_init": "conjugate"}),
    ("-glorot", "Glorot keys", {"key_init": "glorot"}),
    ("-forget-1", "forget bias 1", {"forget_bias": 1.0}),
    ("-update-glorot", "Glorot update", {"update_init": "glorot"}),
    ("-unclipped", "no clipping", {"clip": 0.0}),
    ("-constant", "constant rate", {"schedule": "constant"}),
    ("-beta2", "Adam's own beta2", {"beta2": 0.999}),
)
"""What the fast recipe is made of, each part taken out: end of the name, in words, configuration."""

FAST_LOOKS = {
    **{f"associative-lstm-{copies}": (colour, "--") for copies, colour in ((1, SKY), (4, BLUE), (8, GREEN))},
    "turning": (PURPLE, "--"),
    "shift": (PURPLE, ":"),
    "small": (ORANGE, "--"),
    "four-layers": (ORANGE, "--"),
    "four-layers-residual": (ORANGE, "-"),
    "3-heads-4": (ORANGE, "--"),
    "lstm-128": (VERMILION, "--"),
    "lstm-512": (BLACK, "--"),
}
"""The colours of the same networks elsewhere, whose lines are drawn through."""

ABLATION_TASKS = ("copy", "xml", "assignment")


def _fast_networks() -> Iterable[Network]:
    fast = {"recipe": "fast", "model": "associative-lstm"}

    def network(name: str, label: str, values: Mapping[str, Any], **more: Any) -> Network:
        more = {"steps": FAST_STEPS, "rates": FAST_RATES, "look": FAST_LOOKS.get(name)} | more
        return Network(f"fast-{name}", f"{label}, fast", values, **more)

    for copies in (1, 4, 8):
        label = f"Associative LSTM 128, {counted(copies, 'copy')}"
        yield network(f"associative-lstm-{copies}", label, fast | {"copies": copies})
    four, label = fast | {"copies": 4}, "Associative LSTM 128, 4 copies"
    yield network("turning", f"{label}, half of it turning", four | {"rotation": 0.5})
    yield network("shift", f"{label}, shifts", four | {"permutation": "shift"})
    small = {"key_init": "conjugate", "update_init": 0.3}
    yield network("small", f"{label}, conjugate keys, updates of 0.3", four | small)
    for size in (128, 512):
        values = {"recipe": "fast", "model": "lstm", "hidden_size": size}
        yield network(f"lstm-{size}", f"LSTM {size}", values, large=size == 512)
    fixed: dict[str, Any] = {"rates": FAST_RATES[1:2]}
    drawn_through = [(colour, "-") for colour in (BLUE, SKY, GREEN, ORANGE, PURPLE, VERMILION, BLACK)]
    for (suffix, text, values), look in zip(WITHOUT, [*drawn_through, (BLACK, ":")], strict=True):
        yield network(f"at-one-rate{suffix}", f"4 copies, {text}", four | values, look=look, **fixed)
    long = {"steps": {"assignment": 10_000}, "large": True} | fixed
    stack = four | {"layers": 4}
    yield network("four-layers", "Associative LSTM 4 x 128, 4 copies", stack, **long)
    residual = stack | {"residual": True}
    yield network("four-layers-residual", "Associative LSTM 4 x 128, 4 copies, residual", residual, **long)
    long = {"steps": {"arithmetic": 250_000}, "large": True} | fixed
    for copies in (4, 8):
        label = f"Associative LSTM 128, 3 heads, {counted(copies, 'copy')}"
        values = fast | {"copies": copies, "heads": 3}
        yield network(f"3-heads-{copies}", label, values, **long)
    trained_as_the_paper = {each.name: each for each in _networks()}
    for name, rates in _TWINS.items():
        its = trained_as_the_paper[name]
        values, steps = dict(its.values) | {"recipe": "fast"}, FAST_STEPS
        if name.endswith("1024"):
            steps = {"xml": FAST_STEPS["xml"]}
        yield network(name, its.label, values, rates=rates, large=its.large, steps=steps, look=its.look)


_UNITARY = [f"{kind}unitary-rnn-{size}" for kind in ("", "multiplicative-") for size in (256, 1024)]
_THREE_HEADS = [f"associative-lstm-3-heads-4{end}" for end in ("-batch-1", "-batch-1-whu")]
_TWINS = {
    **dict.fromkeys(["permutation-rnn-256", *_UNITARY, "ntm"], RATES),
    **dict.fromkeys(["associative-lstm-4-whu", "associative-lstm-4-tanh", *_THREE_HEADS], FAST_RATES),
}
"""What else is trained by the fast recipe, so that every claim can be judged by it: with which rates."""


NETWORKS: Mapping[str, Network] = MappingProxyType(
    {network.name: network for network in (*_networks(), *_fast_networks())}
)


def twin(network: str) -> str | None:
    """The same network by the fast recipe, which has its own forget bias; None if it is not among these.

    >>> twin("lstm-128-forget-1"), twin("associative-lstm-3-heads-4"), twin("associative-lstm-1-conjugate")
    ('fast-lstm-128', 'fast-3-heads-4', None)
    """
    name = network.removesuffix("-forget-1") if network.startswith("lstm") else network
    heads = "associative-lstm-3-heads-"
    if name in (f"{heads}4", f"{heads}8"):
        name = name.removeprefix("associative-lstm-")
    return f"fast-{name}" if f"fast-{name}" in NETWORKS else None


def fast_curve(task: str, network: str, steps: int | None = None) -> "Curve | None":
    """The same network by the fast recipe: its short runs, or others of ``steps`` minibatches, with other seeds.

    The rate of these is that which is best in the short runs, or a lower one: the rate falls towards the end of a
    run, so that a longer one is at its highest for longer, and may diverge.

    >>> short, whole = fast_curve("copy", "lstm-128"), fast_curve("copy", "lstm-128", 40_000)
    >>> short.steps, whole.steps, whole.sweep_steps
    (3000, 40000, 3000)
    """
    name = twin(network)
    if name is None:
        return None
    short = curve(task, name)
    if steps is None:
        return short
    longer = dataclasses.replace(short.network, label=f"{short.network.label}, {steps:,} minibatches")
    seeds = WHOLE_SEEDS[:2] if longer.large else WHOLE_SEEDS
    return dataclasses.replace(short, network=longer, steps=steps, seeds=seeds, doublings=0, retreats=True)


@dataclass(frozen=True)
class Curve:
    """A network on a task: how long its sweep and its runs are, with which rates and seeds.

    Rates whose cost is at most ``close`` times the lowest are trained twice as long and compared again, at most
    ``doublings`` times; after ``two_from`` minibatches only the two best of them. ``with_runner_up``: the first
    seed's run is made with the second best rate too. ``sweep_seed``: rates are compared with this seed and not with
    the first of the others. ``by_test``: they are compared by the cost on the test split at the end of the sweep.
    ``retreats``: a rate with which a seed diverges gives way to the next lower one. ``lower_of_two``: the curve's
    rate is the lower of the two best.
    """

    task: str
    network: Network
    steps: int
    sweep_steps: int
    seeds: tuple[int, ...]
    rates: tuple[float, ...] = RATES
    close: float = CLOSE
    doublings: int = 10
    two_from: int | None = None
    with_runner_up: bool = False
    sweep_seed: int | None = None
    by_test: bool = False
    retreats: bool = False
    lower_of_two: bool = False

    @property
    def name(self) -> str:
        """Task and network; and the length, if the network has runs of another one, too."""
        usual = (self.network.steps or {}).get(self.task, self.steps)
        more = "" if self.steps == usual else f" for {self.steps:,} minibatches"
        return f"{self.task}/{self.network.name}{more}"

    @property
    def swept_with(self) -> int:
        """The seed of the sweep: the first, if it has none of its own."""
        return self.seeds[0] if self.sweep_seed is None else self.sweep_seed

    @property
    def least_seeds(self) -> int:
        """The seeds that a verdict takes: all, but of a large network trained as the paper did one."""
        return 1 if self.network.large and self.network.steps is None else len(self.seeds)

    def config(self, rate: float, seed: int, steps: int) -> Config:
        """The configuration of one of its runs."""
        values = dict(self.network.values) | {"task": self.task, "learning_rate": rate, "seed": seed}
        return complete(values | {"steps": steps})

    def folder(self, runs: Path, rate: float, seed: int) -> Path:
        """Where that run is, under the folder of all ``runs``.

        >>> str(curve("xml", "lstm-128").folder(Path("results/runs"), 3e-3, 0))
        'results/runs/xml/lstm-128/lr0.003-seed0'
        """
        return runs / self.task / (self.network.same_as or self.network.name) / f"lr{rate:g}-seed{seed}"


def curve(task: str, network: str) -> Curve:
    """The curve of a network on a task.

    One length for all networks of a figure, ``STEPS``; ``LENGTHS`` has the others, each with its reason. A sweep has
    20,000 minibatches, and begins shorter where a run takes tens of minutes, and on copy, where curves are long.
    """
    chosen = NETWORKS[network]
    if chosen.steps is not None:
        steps, swept = chosen.steps[task], len(chosen.rates) > 1
        seeds = LARGE_SEEDS if chosen.large else FAST_SEEDS[: 5 if swept else 3]
        sweep_seed = FAST_SWEEP_SEED if swept else None
        return Curve(task, chosen, steps, steps, seeds, chosen.rates, sweep_seed=sweep_seed)
    alone = chosen.values.get("batch_size") == 1
    online = 2_500 if alone else 5_000 if chosen.large else 20_000
    sweep_steps = 10_000 if task.startswith("copy") else online
    variant = network.startswith("associative-lstm") and network.endswith(_VARIANTS)
    steps = ALONE_STEPS if alone else VARIANT_STEPS if variant else STEPS[task]
    steps, _ = LENGTHS.get((task, network), (steps, ""))
    seeds = SEEDS[:2] if chosen.large else SEEDS
    two_from = STEPS[task] if steps > 2 * STEPS[task] else None
    return Curve(task, chosen, steps, sweep_steps, seeds, chosen.rates, two_from=two_from)


STEPS = {"copy": 40_000, "copy-variable": 40_000, "xml": 20_000, "assignment": 40_000, "arithmetic": 40_000}
"""Minibatches of the networks that are compared in a figure."""

_VARIANTS = ("-forget-1", "-conjugate", "-whu", "-tanh")
VARIANT_STEPS = 20_000
"""Of other starts and choices of the Associative LSTM, which are compared with it as far as they go."""

ALONE_STEPS = 10_000
"""Of a network with minibatches of one sequence that no claim asks more of."""

ASSOCIATIVE = ("associative-lstm-1", "associative-lstm-4", "associative-lstm-8")

ON_COPY = (
    "lstm-128",
    "lstm-128-forget-1",
    *ASSOCIATIVE,
    "permutation-rnn-256",
    "unitary-rnn-256",
    "multiplicative-unitary-rnn-256",
)
"""The networks that are compared on both copy tasks."""


STEADY = ("associative-lstm-3-heads-4-batch-1-whu", "ntm")
"""The two networks that do well on the tasks of the NTM, and whose progress is compared there.

The appendix has one architecture for all three tasks, of the size with W_hu.
"""


_SLOW = "twice as long as the others, since it is asked whether it needs twice as long"
_SOLVES = "the paper says that it solves the task, and 40,000 minibatches are not enough"
_AGAINST_NTM = {"xml": 80_000, "assignment": 40_000, "arithmetic": 100_000}

LENGTHS: Mapping[tuple[str, str], tuple[int, str]] = MappingProxyType(
    {
        ("copy", "lstm-128"): (80_000, _SLOW),
        ("copy", "lstm-128-forget-1"): (80_000, _SLOW),
        ("copy-variable", "associative-lstm-1"): (
            80_000,
            "it is asked whether it needs 1.5 times as long as with fixed lengths, and that is more than 40,000",
        ),
        ("assignment", "lstm-512"): (100_000, _SOLVES),
        **{
            ("arithmetic", network): (
                300_000,
                "it is asked how well it does in the end, and after 40,000 minibatches it still improves",
            )
            for network in ASSOCIATIVE
        },
        ("arithmetic", "associative-lstm-3-heads-4"): (250_000, _SOLVES),
        ("arithmetic", "associative-lstm-3-heads-8"): (250_000, _SOLVES),
        **{
            (task, network): (
                steps,
                "it is asked how well it does in the end, and how steadily it gets there",
            )
            for task, steps in _AGAINST_NTM.items()
            for network in STEADY
        },
        **{
            (task, "associative-lstm-3-heads-4-batch-1"): (
                steps,
                "without W_hu: so it was run at first, in the place of the one with it",
            )
            for task, steps in {"xml": 40_000, "assignment": 20_000}.items()
        },
    }
)
"""Minibatches of the curves that are longer than the others of their figure, and why."""


def smoke(curve: Curve) -> Curve:
    """The same curve with a tiny network and a few minibatches: shows that everything works, and nothing else."""
    tiny = dict(curve.network.values) | {"hidden_size": 8, "log_every": 1, "checkpoint_every": 5}
    if curve.by_test:
        tiny["test_every"] = 5
    network = dataclasses.replace(curve.network, values=tiny)
    sweep_steps = 2 if curve.network.steps is None else 5
    rates = curve.rates[1:3] if len(curve.rates) > 3 else curve.rates[:2]
    return dataclasses.replace(
        curve, network=network, steps=5, sweep_steps=sweep_steps, seeds=(0,), rates=rates, sweep_seed=None
    )


START_TASKS = ("copy", "xml", "assignment")
START_COPIES = (1, 4)


def start_curves(task: str, copies: int) -> list[Curve]:
    """The curves that tell how much the start of keys and forget gate decides, in the order of ``STARTS``."""
    return [curve(task, f"associative-lstm-{copies}{suffix}") for suffix, _, _ in STARTS]
