"""What the rivals share: residual blocks, heads, the short convolution, the ways they are initialised."""

import math
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from associative_lstm.functional import check_count
from associative_lstm.nn.baseline import RecurrentNetwork
from associative_lstm.nn.checks import check_positive_int

EPSILON = 1e-6
CHUNK = 32
"""Steps that are computed at once: of 16, 32 and 64, what trained fastest on a CPU."""


class Mixer(nn.Module):
    """What mixes the steps of a sequence inside a block, with a state of its own."""

    out: nn.Linear  #: its last map

    def __init__(self, num_heads: int, head_size: int) -> None:
        super().__init__()
        check_positive_int("num_heads", num_heads)
        check_positive_int("head_size", head_size)
        self.heads, self.size, self.inner = num_heads, head_size, num_heads * head_size

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and the shape, without the batch, of every part of the state."""
        raise NotImplementedError

    def forward(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """``x``, ``(T, B, width)``, gives as much, and the state's parts at last."""
        raise NotImplementedError


class Stack(RecurrentNetwork):
    r"""Apply blocks that normalise, mix and add: the pre-norm residual network that all rivals are published in.

    .. math::
        h &= W x \\
        h &\leftarrow h + \mathrm{mixer}_k(\mathrm{RMSNorm}(h)) \quad \text{and, if there is one,} \quad
        h \leftarrow h + \mathrm{MLP}_k(\mathrm{RMSNorm}(h)) \\
        y &= \mathrm{RMSNorm}(h)

    Args:
        input_size: the number of features of ``x``.
        hidden_size: the width of h.
        num_layers: blocks.
        mlp: the width of the MLP (GELU) as a multiple of h's; 0 is none, as in the blocks of Mamba-2 and xLSTM, and
            in the comparisons on multi-query associative recall (Arora et al., 2023).
        batch_first: ``x`` and ``output`` are ``(B, T, ...)``.
        options: the mixers'.

    Inputs: ``x`` of shape ``(T, B, input_size)``, and optionally the state.

    Outputs: ``output`` of shape ``(T, B, hidden_size)`` and the state: what the mixers carry, block by block.

    Matrices start normal with standard deviation 0.02 (GPT-2), a mixer's and its gates as its authors have them; all
    that add to h are divided by the square root of how many do.
    """

    mixer: type[Mixer]  #: what the blocks mix by, called with their width and the options

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        mlp: int = 0,
        batch_first: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(input_size, hidden_size, hidden_size, batch_first=batch_first)
        check_positive_int("num_layers", num_layers)
        check_count("mlp", mlp, least=0)
        self.num_layers = num_layers
        self.mlp = mlp
        self.embedding = linear(input_size, hidden_size)
        mixers = (self.mixer(hidden_size, **options) for _ in range(num_layers))
        self.blocks = cast("list[Block]", nn.ModuleList(Block(mixer, hidden_size, mlp) for mixer in mixers))
        self.norm = nn.RMSNorm(hidden_size, EPSILON)
        with torch.no_grad():
            for block in self.blocks:
                for last in block.last():
                    last.weight /= math.sqrt(num_layers * len(block.last()))

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            f"{name}_{k}": shape
            for k, block in enumerate(self.blocks)
            for name, shape in block.mixer.state_shapes().items()
        }

    def _sequence(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        h, left, last = self.embedding(x), iter(parts), []
        for block in self.blocks:
            h, own = block(h, [next(left) for _ in block.mixer.state_shapes()])
            last += own
        return self.norm(h), last


class Block(nn.Module):
    """One mixer, and perhaps an MLP, each on normalised input and added to it."""

    def __init__(self, mixer: Mixer, width: int, mlp: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width, EPSILON)
        self.mixer = mixer
        self.mlp: nn.Sequential | None = None
        if mlp:
            up, down = linear(width, mlp * width), linear(mlp * width, width)
            self.mlp = nn.Sequential(nn.RMSNorm(width, EPSILON), up, nn.GELU(), down)

    def last(self) -> list[Any]:
        """The maps whose results are added to x."""
        return [self.mixer.out] if self.mlp is None else [self.mixer.out, self.mlp[-1]]

    def forward(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        mixed, parts = self.mixer(self.norm(x), parts)
        x = x + mixed
        return x if self.mlp is None else x + self.mlp(x), parts


class ShortConvolution(nn.Module):
    """Every channel as a weighted sum of its last few steps, then SiLU; the state is the steps before.

    Weights and biases start uniform, as those of ``torch.nn.Conv1d``. With ``size`` 0 there is SiLU alone.
    """

    def __init__(self, channels: int, size: int, *, bias: bool = False) -> None:
        super().__init__()
        check_count("convolution", size, least=0)
        self.channels, self.size = channels, size
        if size:
            limit = 1 / math.sqrt(size)
            self.weight = nn.Parameter(torch.empty(size, channels).uniform_(-limit, limit))
            self.bias = nn.Parameter(torch.empty(channels).uniform_(-limit, limit)) if bias else None

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"before": (self.size - 1, self.channels)} if self.size > 1 else {}

    def forward(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """``x``: ``(T, B, channels)``."""
        if not self.size:
            return F.silu(x), []
        steps = len(x)
        if parts:
            x = torch.cat([parts[0].transpose(0, 1), x])
        y = self.weight[0] * x[:steps]
        for k in range(1, self.size):
            y = torch.addcmul(y, x[k : k + steps], self.weight[k])
        if self.bias is not None:
            y = y + self.bias
        return F.silu(y), [x[steps:].transpose(0, 1)] if parts else []


def linear(inputs: int, outputs: int, deviation: float = 0.02) -> nn.Linear:
    """A linear map without bias, its weights normal with a standard deviation (0.02 is GPT-2's)."""
    made = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(made.weight, std=deviation)
    return made


def split_heads(x: Tensor, heads: int) -> Tensor:
    """``(T, B, heads * size)`` as ``(B, heads, T, size)``."""
    return x.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)


def join_heads(x: Tensor) -> Tensor:
    """``(B, heads, T, size)`` as ``(T, B, heads * size)``."""
    return x.permute(2, 0, 1, 3).flatten(2)


def in_chunks(
    chunk_of: Callable[..., Any], sequences: list[Tensor], state: Any, size: int
) -> tuple[Tensor, Any]:
    """``output, state = chunk_of(*chunks, state)``, ``size`` steps at a time, at last fewer; time is dimension 2."""
    outputs = []
    for chunks in zip(*(sequence.split(size, 2) for sequence in sequences), strict=True):
        output, state = chunk_of(*chunks, state)
        outputs.append(output)
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 2), state


def in_steps(step_of: Callable[..., Any], sequences: list[Tensor], state: Any) -> tuple[Tensor, Any]:
    """``output, state = step_of(*steps, state)``, one step at a time; time is dimension 2."""
    outputs = []
    for steps in zip(*(sequence.unbind(2) for sequence in sequences), strict=True):
        output, state = step_of(*steps, state)
        outputs.append(output)
    return torch.stack(outputs, 2), state


def decays(log_decay: Tensor) -> tuple[Tensor, Tensor]:
    """The logarithms of what is left at step i: of what was before, ``(..., T)``, and of step j, ``(..., T, T)``.

    ``log_decay``: ``(..., T)``. Of later steps nothing is there: minus infinity.
    """
    total = log_decay.cumsum(-1)
    later = torch.ones(total.shape[-1], total.shape[-1], dtype=torch.bool, device=total.device).triu(1)
    return total, (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(later, -math.inf)


def draw_decay_rates(rates: Tensor, lowest: float, highest: float) -> None:
    """Fill with the logarithms of numbers drawn uniformly: how fast a head forgets (Mamba-2's A)."""
    with torch.no_grad():
        rates.uniform_(lowest, highest).log_()


def draw_time_steps(biases: Tensor) -> None:
    """Fill such that softplus gives times from 0.001 to 0.1, uniform in their logarithm (Mamba's).

    A single head, whose whole memory would be as short as that one draw, begins with the slowest.
    """
    with torch.no_grad():
        times = biases.uniform_(math.log(0.001), math.log(0.1)).exp()
        if len(biases) == 1:
            times = torch.full_like(times, 0.001)
        biases.copy_(times + (-(-times).expm1()).log())
