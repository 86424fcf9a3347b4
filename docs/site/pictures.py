"""The pictures of the pages on the layer and on the memory: each is measured or drawn from the code it explains.

python docs/site/pictures.py             # writes docs/images/*.png
"""

import argparse
import math
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from PIL import Image, ImageDraw, ImageFont

from associative_lstm import AssociativeLSTM, HolographicMemory, expected_error
from associative_lstm import functional as F
from associative_lstm.lab.draw.pictures import save_figure, style
from associative_lstm.lab.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from associative_lstm.lab.words import counted

LETTERS = "ABCDEFGHIJ"
SIDE = 32
SIZE = SIDE * SIDE


def letters() -> torch.Tensor:
    """Ten values: pictures of letters, 1 where there is ink and -1 elsewhere, ``(10, SIZE)``."""
    pictures = []
    for letter in LETTERS:
        image = Image.new("L", (SIDE, SIDE), 0)
        ImageDraw.Draw(image).text(
            (SIDE / 2, SIDE / 2), letter, fill=255, anchor="mm", font=ImageFont.load_default(26)
        )
        pictures.append(torch.from_numpy(np.asarray(image, dtype=np.float32) / 127.5 - 1).flatten())
    return torch.stack(pictures)


def show(axes: Axes, value: torch.Tensor) -> None:
    axes.imshow(value.reshape(SIDE, SIDE).numpy(), cmap="gray_r", vmin=-1.6, vmax=1.6)
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def filled(copies: int, seed: int, permutation: str = "random") -> tuple[HolographicMemory, torch.Tensor]:
    """A memory with the ten letters in it, and their keys."""
    g = torch.Generator().manual_seed(seed)
    memory = HolographicMemory(SIZE, copies, permutation=permutation, generator=g)
    keys = F.random_key(SIZE, len(LETTERS), generator=g)
    memory.write(keys, letters())
    return memory, keys


def binding(seed: int) -> Figure:
    """A key, a value and their product, as arrows in the complex plane; and back."""
    g = torch.Generator().manual_seed(seed)
    key = F.random_key(10, generator=g)
    value = F.random_key(10, generator=g) * torch.rand(5, generator=g).add(0.3).div(1.3).repeat(2)
    bound = F.bind(key, value)
    steps = {
        "key r": key,
        "value x": value,
        r"bound: r $\circledast$ x": bound,
        r"unbound: $\bar{r}$ $\circledast$ (r $\circledast$ x)": F.unbind(key, bound),
    }
    figure = Figure(figsize=(10, 2.9), layout="constrained")
    for axes, (title, numbers) in zip(figure.subplots(1, 4), steps.items(), strict=True):
        axes.add_patch(Circle((0, 0), 1, fill=False, color="0.8"))
        for colour, re, im in zip(
            [BLUE, VERMILION, GREEN, ORANGE, PURPLE], *numbers.reshape(2, 5).tolist(), strict=True
        ):
            axes.annotate(
                "",
                (re, im),
                (0, 0),
                arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.8, "shrinkA": 0, "shrinkB": 0},
            )
        axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[], yticks=[], title=title)
        for spine in axes.spines.values():
            spine.set_visible(False)
    return figure


def copies(seed: int) -> Figure:
    """What is read of ten letters from one trace, and from more copies of it."""
    counts = (1, 4, 20, 100)
    figure = Figure(figsize=(10, 5.2), layout="constrained")
    grid = figure.subplots(len(counts) + 1, len(LETTERS))
    rows = [("written", letters(), None)]
    for count in counts:
        memory, keys = filled(count, seed)
        read = memory.read(keys)
        error = (read - letters()).square().mean().item()
        rows.append((counted(count, "copy"), read, error))
    for line, (label, values, error) in zip(grid, rows, strict=True):
        for axes, value in zip(line, values, strict=True):
            show(axes, value)
        words = label if error is None else f"{label}\nerror {error:.2f}"
        line[0].set_ylabel(words, rotation=0, ha="right", va="center")
    return figure


def partial_keys(seed: int) -> Figure:
    """One letter from 100 copies by ever less of its key."""
    memory, keys = filled(100, seed)
    g = torch.Generator().manual_seed(seed)
    order = torch.randperm(SIZE // 2, generator=g)
    fractions = (1.0, 0.2, 0.05, 0.02, 0.01, 0.002)
    figure = Figure(figsize=(10, 2.7), layout="constrained")
    for axes, fraction in zip(figure.subplots(1, len(fractions)), fractions, strict=True):
        known = torch.zeros(SIZE // 2)
        known[order[: max(1, round(fraction * SIZE / 2))]] = 1
        key = keys[0] * known.repeat(2)
        show(axes, memory.read(key))
        answered = (memory.coverage(key) > 0).float().mean()
        axes.set_title(f"{fraction:.1%} of the key")
        axes.set_xlabel(f"{answered:.0%} of places\nanswered")
    return figure


def noise(seed: int) -> Figure:
    """The error, measured and predicted, by copies and by items, for permutations and shifts."""
    g = torch.Generator().manual_seed(seed)
    size, items = 256, 20
    values, keys = torch.randn(items, size, generator=g), F.random_key(size, items, generator=g)
    counts = [1, 2, 4, 8, 16, 32, 64, 128]
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for kind, colour in (("random", BLUE), ("shift", VERMILION)):
        measured = []
        for count in counts:
            tries = []
            for _ in range(20):
                memory = HolographicMemory(size, count, permutation=kind, generator=g)
                memory.write(keys, values)
                tries.append((memory.read(keys) - values).square().mean().item())
            measured.append(np.mean(tries))
        predicted = [expected_error(items, count, size=size, permutation=kind) for count in counts]
        left.loglog(counts, predicted, color=colour, label=f'permutation="{kind}"')
        left.loglog(counts, measured, "o", color=colour)
    left.set(xlabel="copies", ylabel="mean squared error", title=f"{items} items of {size} numbers")
    left.legend()
    for count, colour in ((1, SKY), (4, BLUE), (16, GREEN)):
        stored = range(1, 41)
        right.plot(
            stored, [expected_error(n, count) for n in stored], color=colour, label=counted(count, "copy")
        )
    right.set(xlabel="items", ylabel="expected error", title="error = (items - 1) / copies", ylim=(0, 12))
    right.legend()
    return figure


def one_step() -> Figure:
    """The way of one step through the layer."""
    figure = Figure(figsize=(10, 4.1), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0, 100), ylim=(0, 41))
    axes.set_axis_off()

    def box(x, y, width, height, text, colour, size=11):
        for face in ("white", f"{colour}22"):
            axes.add_patch(
                FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0.3", fc=face, ec=colour)
            )
        axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=size)

    def arrow(start, end, colour="0.3", bend=0.0):
        curve = f"arc3,rad={bend}"
        axes.add_patch(
            FancyArrowPatch(
                start, end, arrowstyle="-|>", mutation_scale=12, color=colour, connectionstyle=curve
            )
        )

    box(1, 27, 9, 6, "$x_t$", BLACK)
    box(1, 9, 9, 6, "$h_{t-1}$", BLACK)
    box(17, 32, 16, 5, "update $u$", GREEN)
    box(17, 24, 16, 5, "input gate $g_i$", "#777777")
    box(17, 16, 16, 5, "input key $r_i$", BLUE)
    box(17, 8, 16, 5, "output key $r_o$", VERMILION)
    box(17, 0.6, 16, 5, "gates $g_f$, $g_o$", "#777777")
    for y in (34, 26, 18, 10, 3):
        arrow((11, 30), (16.4, y), "0.75")
        arrow((11, 12), (16.4, y), "0.75")
    for k in (2, 1, 0):
        box(47 + 2 * k, 10 + 2.5 * k, 20, 17, "", ORANGE)
    axes.text(57, 24, "memory, copy $s$", ha="center", fontsize=11)
    axes.text(57, 19.5, r"$c_s \leftarrow g_f\, c_s$", ha="center", fontsize=13)
    axes.text(57, 14, r"$+\ (P_s r_i) \circledast (g_i u)$", ha="center", fontsize=13)
    axes.text(61, 35, "$N_{copies}$ copies, each with\nits own permutation $P_s$", ha="center", fontsize=10)
    for y in (34, 26, 18):
        arrow((34, y), (46.4, 20), "0.45")
    arrow((34, 3), (46.4, 12), "0.45")
    box(76, 14, 22, 9, "read\n" + r"mean over $s$ of $(P_s r_o) \circledast c_s$", VERMILION, 10)
    arrow((71.8, 18.5), (75.4, 18.5), "0.3")
    arrow((34, 9.6), (82, 13.4), VERMILION, 0.18)
    arrow((34, 2), (77.4, 4.5), "0.45", 0.06)
    arrow((88, 13.4), (88, 8.4), "0.3")
    box(78, 3, 20, 5, r"$h_t = g_o\,\mathrm{bound}(\ldots)$", BLACK)
    return figure


def arguments(seed: int) -> Figure:
    """What the arguments of a layer choose: taken from layers that were made with them."""
    torch.manual_seed(seed)
    figure = Figure(figsize=(10, 10.6), layout="constrained")
    panels = iter(figure.subplots(4, 2).flat)

    axes = next(panels)
    m = torch.linspace(0, 3, 301)
    pair = torch.stack([m, torch.zeros_like(m)], -1)
    axes.plot(m, F.bound(pair)[:, 0], label='"bound"')
    axes.plot(m, F.bound_tanh(pair)[:, 0], label='"tanh"')
    axes.set(title="activation", xlabel="modulus before", ylabel="after")
    axes.legend()

    axes = next(panels)
    for place, kind in enumerate(("glorot", "conjugate", "matched")):
        layer = AssociativeLSTM(8, 64, key_init=kind)
        bias = layer.bias_l0.detach()
        for rows, colour, name in (
            (layer.rows.input_key, BLUE, "input key"),
            (layer.rows.output_key, VERMILION, "output key"),
        ):
            re, im = bias[rows].chunk(2)
            axes.plot(
                re[:6] + 2.6 * place, im[:6], "o" if colour == BLUE else "x", color=colour, ms=7,
                label=name if not place else None,
            )  # fmt: skip
        axes.add_patch(Circle((2.6 * place, 0), 1, fill=False, color="0.8"))
        axes.text(2.6 * place, -1.75, f'"{kind}"', ha="center")
    axes.set(title="key_init: biases of six units", xlim=(-1.6, 6.8), ylim=(-2, 2), aspect="equal")
    axes.set(xticks=[], yticks=[])
    axes.legend(loc="upper center", ncols=2)

    axes = next(panels)
    for kind, colour in ((0.0, SKY), (1.0, GREEN), ("mixed", BLUE), ("chrono", VERMILION)):
        layer = AssociativeLSTM(8, 512, forget_bias=kind)
        bias = layer.bias_l0.detach()[layer.rows.forget]
        kept = 1 / (1 - torch.sigmoid(bias))  # steps after which about a third is left
        share = torch.arange(1, len(kept) + 1) / len(kept)
        axes.semilogx(kept.sort().values, share, color=colour, label=f"{kind!r}".replace("'", '"'))
    axes.set(title="forget_bias (horizon=120)", xlabel="a unit keeps for steps", ylabel="share of units")
    axes.legend()

    axes = next(panels)
    for kind, colour in (("glorot", SKY), (0.99, BLUE)):
        layer = AssociativeLSTM(20, 256, update_init=kind)
        re, im = layer.weight_ih_l0.detach()[layer.rows.update][:, 0].chunk(2)
        axes.plot(re, im, ".", color=colour, label=f"{kind!r}".replace("'", '"'))
    axes.set(title="update_init: what one symbol writes", xlabel="real", ylabel="imaginary", aspect="equal")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))

    axes = next(panels)
    gap, n = 4, 24
    both = np.full((n, 2 * n + gap), np.nan)
    for place, draw in enumerate((F.random_permutations, F.shift_permutations)):
        for row, index in enumerate(draw(n, n)):
            both[row, place * (n + gap) : place * (n + gap) + n] = index
    axes.imshow(both, cmap="viridis", aspect="auto")
    axes.set(title='permutation: "random", "shift"', ylabel="copy", xlabel="place in the copy")
    axes.set(xticks=[], yticks=[])
    axes.grid(False)

    axes = next(panels)
    steps = torch.arange(0, 25)
    layer = AssociativeLSTM(8, 16, rotation=0.5)
    for angle, colour in zip(layer.angles_l0[2:5].tolist(), (BLUE, VERMILION, GREEN), strict=True):
        axes.plot(steps, torch.cos(angle * steps), ".-", lw=0.8, color=colour)
    axes.set(
        title="rotation: two units turn, one does not",
        xlabel="steps since the write",
        ylabel="real part read back",
    )

    axes = next(panels)
    for row, every in enumerate((1, 4, 8)):
        kept = torch.arange(0, 33) % every == 0
        axes.plot(torch.arange(33)[kept], [row] * int(kept.sum()), "o", color=BLUE)
        axes.plot(torch.arange(33)[~kept], [row] * int((~kept).sum()), "|", color="0.6")
    axes.set(title="keep_states_every: kept, and computed again", xlabel="step", ylim=(-0.6, 2.6))
    axes.set_yticks([0, 1, 2], ["1", "4", "8"])

    axes = next(panels)
    counts = [2**k for k in range(8)]
    for items, colour in ((5, SKY), (20, BLUE), (80, VERMILION)):
        ratio = [math.sqrt(expected_error(items, count, size=128)) for count in counts]
        axes.loglog(counts, ratio, color=colour, label=f"{items} items held")
    axes.set(title="num_copies (hidden_size=128)", xlabel="copies", ylabel="noise / signal of a read")
    axes.legend()
    return figure


def draw(folder: Path, seed: int = 0) -> list[Path]:
    """All pictures, into ``folder``."""
    with style():
        pictures = {
            "memory-binding": binding(seed),
            "memory-copies": copies(seed),
            "memory-partial-keys": partial_keys(seed),
            "memory-noise": noise(seed),
            "layer-step": one_step(),
            "layer-arguments": arguments(seed),
        }
        return [save_figure(figure, folder / f"{name}.png") for name, figure in pictures.items()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "images")
    parser.add_argument("--seed", type=int, default=0)
    arguments_ = parser.parse_args()
    for path in draw(arguments_.out, arguments_.seed):
        print(path)
