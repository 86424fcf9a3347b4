"""The Neural Turing Machine (Graves, Wayne and Danihelka, 2014) with an LSTM controller."""

from typing import Any

import torch
from torch import Tensor

from associative_lstm.kernels import BACKENDS, ntm
from associative_lstm.kernels.ntm import NTMState
from associative_lstm.nn.baseline import RecurrentNetwork
from associative_lstm.nn.checks import check_choice, check_positive_int


class NeuralTuringMachine(RecurrentNetwork):
    r"""Apply a Neural Turing Machine: an LSTM that reads and writes a memory of N locations, each W wide.

    The controller sees the input and what the heads read one step before:

    .. math::
        \hat g_i, \hat g_f, \hat u, \hat g_o &= W_x x_t + W_h [h_{t-1}, r_{t-1}] + b \\
        c_t &= \sigma(\hat g_f) \odot c_{t-1} + \sigma(\hat g_i) \odot \tanh(\hat u), \qquad
        h_t = \sigma(\hat g_o) \odot \tanh(c_t)

    Every head has a place to write at and a place to read from. Their parameters, and what to erase and to
    add, are :math:`W_p h_t + b_p`. A place w moves by its key k, strength :math:`\beta`, gate g, shift s and
    sharpening :math:`\gamma`:

    .. math::
        k &= \tanh(\hat k), \quad \beta = \mathrm{softplus}(\hat \beta), \quad g = \sigma(\hat g), \quad
        s = \mathrm{softmax}(\hat s), \quad \gamma = 1 + \mathrm{softplus}(\hat \gamma) \\
        w^c_t &= \mathrm{softmax}_i(\beta \cos(k, M_{t-1}(i))), \qquad w^g_t = g w^c_t + (1 - g) w_{t-1} \\
        \tilde w_t(i) &= \sum_{j=-1}^{1} s(j) w^g_t(i - j), \qquad
        w_t(i) = \tilde w_t(i)^\gamma / \sum_j \tilde w_t(j)^\gamma

    All heads write at once, then read:

    .. math::
        M_t(i) &= M_{t-1}(i) \odot \prod_{heads} (1 - w^{write}_t(i) \sigma(\hat e))
            + \sum_{heads} w^{write}_t(i) \tanh(\hat a) \\
        r_t &= \sum_i w^{read}_t(i) M_t(i)

    **Choices.** The paper that this project reproduces gives four heads, a controller of 384, a memory of
    128 x 20 and 1,097,340 parameters in all, and no more. Here a head writes and reads at places of its own
    (with one place for both, it would have to jump back to what it wrote before it could read it in order);
    shifts reach one location to either side; key and added vector are bounded by tanh; the controller has one
    bias per gate; and the network's output is :math:`[h_t, r_t]`. With
    80 symbols in and out that makes 1,016,000 parameters with the readout: 837,120 of the controller, 141,680
    of the heads, 37,200 of the readout. ``benchmarks/ntm_parameters.py`` looks for the paper's number.

    **Stability.** The softplus of :math:`\beta` and :math:`\gamma` ends at 50, where a weighting has long been
    one location, and both enter only through a softmax: sharpening is
    :math:`\mathrm{softmax}(\gamma \log \tilde w)`, with :math:`\tilde w` not taken below 1e-30. Squared lengths
    in the cosine have 1e-8 added. So nothing overflows or divides by zero.

    **Initial state.** All zero, except that head k of K writes and reads at location
    :math:`\lfloor k N / K \rfloor`: an even weighting over an even memory would stay even for ever. With
    ``learn_initial_state`` all parts are learned, the weights as logits of a softmax, from the same start.

    Args:
        input_size: the number n of features of ``x``.
        hidden_size: H, the width of the controller.
        num_heads: heads, each of which writes and reads.
        memory_size: N and W: the number of locations and their width.
        batch_first: ``x`` and ``output`` are ``(B, T, ...)``. The state is not affected.
        learn_initial_state: the initial state is learned.
        backend: ``"fused"`` (compiled, CPU), ``"reference"`` (a loop), or ``"auto"``. The numbers are the same.

    Inputs: ``x`` of shape ``(T, B, input_size)``, and optionally the state.

    Outputs: ``output`` of shape ``(T, B, hidden_size + num_heads * W)`` and the state, a named tuple with
    ``h`` and ``c`` ``(B, hidden_size)``, ``reads`` ``(B, num_heads, W)``, ``memory`` ``(B, N, W)`` and
    ``weights`` ``(B, 2 * num_heads, N)``, the places to write at and then those to read from.

    Example:
        >>> net = NeuralTuringMachine(80, 384, num_heads=4, memory_size=(128, 20))
        >>> output, state = net(torch.randn(3, 2, 80))
        >>> output.shape, state.memory.shape
        (torch.Size([3, 2, 464]), torch.Size([2, 128, 20]))
        >>> readout = torch.nn.Linear(net.output_size, 80)
        >>> sum(p.numel() for part in (net, readout) for p in part.parameters())
        1016000
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_heads: int = 1,
        memory_size: tuple[int, int] = (128, 20),
        *,
        batch_first: bool = False,
        learn_initial_state: bool = False,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_positive_int("num_heads", num_heads)
        if not isinstance(memory_size, tuple | list) or len(memory_size) != 2:
            raise TypeError(f"memory_size: expected two ints, locations and width, got {memory_size!r}")
        locations, width = memory_size
        check_positive_int("memory_size[0]", locations)
        check_positive_int("memory_size[1]", width)
        check_choice("backend", backend, BACKENDS)
        super().__init__(input_size, hidden_size, hidden_size + num_heads * width, batch_first=batch_first)
        self.num_heads = num_heads
        self.memory_size = (locations, width)
        self.backend = backend
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        rows, head_rows = 4 * hidden_size, num_heads * (4 * width + 12)
        self.weight_ih = torch.nn.Parameter(torch.empty(rows, input_size, **factory))
        self.weight_hh = torch.nn.Parameter(torch.empty(rows, self.output_size, **factory))
        self.bias = torch.nn.Parameter(torch.empty(rows, **factory))
        self.weight_heads = torch.nn.Parameter(torch.empty(head_rows, hidden_size, **factory))
        self.bias_heads = torch.nn.Parameter(torch.empty(head_rows, **factory))
        if learn_initial_state:
            self._learn_initial_state(**factory)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Glorot-uniform weights, gate by gate; zero biases; the initial state as above."""
        for parameter in self.parameters():
            parameter.zero_()
        for weight, blocks in ((self.weight_ih, 4), (self.weight_hh, 4), (self.weight_heads, 1)):
            for block in weight.chunk(blocks):
                torch.nn.init.xavier_uniform_(block)
        if self.learn_initial_state:
            self.get_parameter("weights_0").copy_(
                10 * self._first_places()
            )  # softmax: 0.99 there, with N = 128

    def _first_places(self) -> Tensor:
        """One row for each place of every head, 1 where it starts and 0 elsewhere."""
        heads, locations = self.num_heads, self.memory_size[0]
        places = torch.tensor([k * locations // heads for k in range(heads)] * 2, device=self.bias.device)
        return torch.nn.functional.one_hot(places, locations).to(self.bias.dtype)

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        heads, (locations, width) = self.num_heads, self.memory_size
        return {
            "h": (self.hidden_size,),
            "c": (self.hidden_size,),
            "reads": (heads, width),
            "memory": (locations, width),
            "weights": (2 * heads, locations),
        }

    def _state(self, parts: list[Tensor]) -> NTMState:
        return NTMState(*parts)

    def _initial_parts(self, batch_size: int) -> list[Tensor]:
        *parts, weights = super()._initial_parts(batch_size)
        weights = (
            torch.softmax(weights, dim=-1) if self.learn_initial_state else weights + self._first_places()
        )
        return [*parts, weights]

    def _sequence(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        z_x = torch.nn.functional.linear(x, self.weight_ih, self.bias)
        output, state = ntm.sequence(
            z_x, NTMState(*parts), self.weight_hh, self.weight_heads, self.bias_heads, self.backend
        )
        return output, list(state)
