"""The Associative LSTM over sequences, called like `torch.nn.LSTM`."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from associative_lstm.kernels import ALL_BACKENDS, associative
from associative_lstm.kernels.associative import reference
from associative_lstm.nn.associative_base import AssociativeBase, AssociativeLSTMState
from associative_lstm.nn.checks import (
    check_choice,
    check_fraction,
    check_input,
    check_pair,
    check_positive_int,
    check_state,
    check_steps,
    float_precision,
)
from associative_lstm.nn.options import Options

State = tuple[Tensor, Tensor]


class AssociativeLSTM(AssociativeBase):
    r"""Apply an Associative LSTM, of one or several layers, to a sequence.

    An LSTM whose cells are a redundant holographic memory: at each step it stores the update :math:`u` under the
    key :math:`r_i` and reads what is stored under the key :math:`r_o`, in :math:`N_{copies}` copies of the memory,
    each with its own constant permutation :math:`P_s` of the keys.

    .. math::
        \hat g_f, \hat g_i, \hat g_o, \hat r_i, \hat r_o &= W_{xh} x_t + W_{hh} h_{t-1} + b_h \\
        \hat u &= W_{xu} x_t + W_{hu} h_{t-1} + b_u \\
        g_f, g_i, g_o &= \sigma(\hat g_f), \sigma(\hat g_i), \sigma(\hat g_o) \\
        u, r_i, r_o &= \mathrm{bound}(\hat u), \mathrm{bound}(\hat r_i), \mathrm{bound}(\hat r_o) \\
        c_{s,t} &= g_f \odot c_{s,t-1} + \sum_{heads} (P_s r_i) \circledast (g_i \odot u) \\
        h_t &= g_o \odot \mathrm{bound}\Big(\frac{1}{N_{copies}} \sum_{s} (P_s r_o) \circledast c_{s,t}\Big)

    A complex vector of N/2 numbers is stored as N real ones, ``[real half, imaginary half]``;
    :math:`\mathrm{bound}(z) = z / \max(1, |z|)`, :math:`\circledast` multiplies complex numbers element by element,
    and a gate (N/2 numbers) acts on both halves. Each head has its own input and output gate, keys and update; all
    heads share the forget gate and the one memory, and :math:`h_t` is what the heads read, side by side.

    Args:
        input_size: width of x.
        hidden_size: N, the real numbers of one copy of the memory: even.
        num_layers: layers, each reading the output of the one below.
        bias: whether there are biases.
        batch_first: x and output are ``(B, T, ...)`` instead of ``(T, B, ...)``. States are not affected.
        dropout: probability of dropout on the output of every layer but the last, in training.
        bidirectional: also read the sequence from its end; the outputs of both directions side by side.
        residual: every layer above the first adds what it reads to what it gives; h_n has what it gives before that.
        num_copies: copies of the memory. More copies give a less noisy memory and no more parameters.
        num_heads: items written and read at each step.
        recurrent_update: False leaves out W_hu, so that the update is an embedding of x.
        activation: ``"bound"``, or ``"tanh"`` for :math:`\tanh` of the modulus.
        start: the numbers that learning starts from, never the equations: ``"fast"``, or ``"paper"`` (Glorot weights,
            zero biases). Each of the next three is chosen by the start unless it is given.
        key_init: ``"glorot"`` starts key biases at zero; ``"conjugate"`` starts them on the unit circle with
            random phases, those of the output key the conjugates of the input key's, so that the layer starts as
            an LSTM that reads what it has just written; ``"matched"`` (fast) makes what the output key takes from h
            the conjugate of what the input key does, too: what was written after a like history is found (in the
            first layer; those above are conjugate).
        forget_bias: where the biases of the forget gate start: a number; ``"chrono"``, the logarithms of times drawn
            uniformly from 1 to ``horizon`` steps, those of the input gates their negatives; ``"mixed"`` (fast), such
            logarithms for half of the units of the first layer and 1 for the others, zero for layers above it and
            for input gates.
        update_init: ``"glorot"``; the modulus a (fast: 0.99) of random codes: every column of W_xu has numbers of
            modulus a and random phases, so that a one-hot x is written as a code of its symbol (dense inputs add up
            such codes and are cut by the bound); or ``"pass"``, which passes on what another layer gives: W_xu is
            the identity times 4, because two gates start half open. With codes, so start all layers above the
            first: signal and gradient do not fade with depth.
        horizon: the longest time of these forget gates, in steps: about as long as what is to be remembered.
        permutation: ``"random"`` (the paper's), or ``"shift"``: cyclic shifts by distinct offsets, drawn at random.
            No unit then meets the same element of a key in two copies, so that copies average noise best.
        rotation: the fraction of units whose memory turns: :math:`g_f \odot (P_s e^{i \theta}) \circledast c_{s,t-1}`
            stands in place of :math:`g_f \odot c_{s,t-1}`, with constant angles drawn uniformly from the circle, 0
            for the other units. A read meets a write of k steps ago under the factor :math:`e^{i k \theta}`: a clock,
            as in unitary networks and in rotary position embeddings.
        learn_initial_state: learn the state that a sequence starts from when none is given; one c shared by the
            copies.
        keep_states_every: keep the states of every k-th step only, for the backward pass, and compute those
            between again: the same gradients, with less memory and more time (the reference keeps all).
        backend: ``"reference"``, a loop of PyTorch operations; ``"fused"``, one compiled routine for the whole
            sequence on the CPU; ``"triton"``, the same on a GPU (checked in Triton's interpreter and compiled for
            sm_80, sm_90 and gfx942; not yet run on a GPU); ``"auto"``, the one of them that can serve, or else the
            loop. The numbers are the same. Second derivatives, forward mode, `torch.func` and `torch.jit.trace` go
            through the reference.

    Weights are drawn from the Glorot-uniform distribution of each gate, key and update by itself, biases are zero
    but for the above. From the paper's start keys are small, so that a write followed by a read leaves about a
    hundredth of a signal: one layer learns nevertheless, three do not. So it is without biases, which both
    ``"conjugate"`` keys and forget biases need: the fast start then leaves them out.

    Permutations and angles are drawn at construction and by `reset_parameters`, are never trained, and are saved with
    the model.

    Inputs: x, and optionally the state ``(h_0, c_0)``.
        * x ``(T, B, input_size)``, ``(T, input_size)`` for a single sequence, or a `PackedSequence`.
        * h_0 ``(D * num_layers, B, num_heads * hidden_size)``, D = 2 if bidirectional and 1 otherwise.
        * c_0 ``(D * num_layers, B, num_copies, hidden_size)``.

    Outputs: output and the state ``(h_n, c_n)``, to be passed in for the sequence to go on.
        * output ``(T, B, D * num_heads * hidden_size)``, or a `PackedSequence`.
        * h_n and c_n like h_0 and c_0.
        * with ``return_cells=True``, a third: the memory after every step,
          ``(D * num_layers, T, B, num_copies, hidden_size)`` (B first with batch_first; zero beyond the end of a
          packed item).

    Parameters of layer k (and the same with ``_reverse``): ``weight_ih_l{k}`` (rows, input), ``weight_hh_l{k}``
    (rows, heads * N), ``bias_l{k}`` (rows,), and with learn_initial_state ``h_0_l{k}`` (heads * N,), ``c_0_l{k}``
    (N,). Rows: forget gate (N/2), input gates (heads * N/2), output gates (heads * N/2), input keys (heads * N),
    output keys (heads * N), updates (heads * N; absent from ``weight_hh`` without recurrent_update). Buffer
    ``permutations_l{k}`` (copies, N/2): ``(P_s r)[j] = r[permutations[s, j]]`` on each half. With rotation,
    buffer ``angles_l{k}`` (N/2).

    >>> layer = AssociativeLSTM(10, 64, num_copies=4)
    >>> output, (h, c) = layer(torch.randn(20, 2, 10))
    >>> output.shape, h.shape, c.shape
    (torch.Size([20, 2, 64]), torch.Size([1, 2, 64]), torch.Size([1, 2, 4, 64]))
    >>> output, (h, c) = layer(torch.randn(20, 2, 10), (h, c))  # the sequence goes on
    """

    weight_ih_l0: Tensor
    residual: bool = False

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        residual: bool = False,
        num_copies: int = 1,
        num_heads: int = 1,
        recurrent_update: bool = True,
        activation: str = "bound",
        start: str = "fast",
        key_init: str | None = None,
        forget_bias: float | str | None = None,
        update_init: float | str | None = None,
        horizon: int = 120,
        permutation: str = "random",
        rotation: float = 0.0,
        learn_initial_state: bool = False,
        keep_states_every: int = 1,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        options = Options(
            input_size, hidden_size, bias, num_copies, num_heads, recurrent_update, activation,
            start, key_init, forget_bias, update_init, horizon, permutation, rotation,
        )  # fmt: skip
        super().__init__(options, dtype)
        check_positive_int("num_layers", num_layers)
        check_positive_int("keep_states_every", keep_states_every)
        check_choice("backend", backend, ALL_BACKENDS)
        check_fraction("dropout", dropout)
        for name, between in (("dropout", dropout), ("residual", residual)):
            if between and num_layers == 1:
                warnings.warn(
                    f"{name}: acts between layers, and there is only one", UserWarning, stacklevel=2
                )
        self.num_layers = num_layers
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.residual = residual
        self.learn_initial_state = learn_initial_state
        self.keep_states_every = keep_states_every
        self.backend = backend
        self._suffixes = [
            f"_l{k}{direction}"
            for k in range(num_layers)
            for direction in (("", "_reverse") if bidirectional else ("",))
        ]
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        for suffix in self._suffixes:
            inputs = input_size if suffix in ("_l0", "_l0_reverse") else self.output_size
            self._add_direction(suffix, inputs, factory)
            if learn_initial_state:
                self.register_parameter(f"h_0{suffix}", nn.Parameter(torch.empty(self.read_size, **factory)))
                self.register_parameter(f"c_0{suffix}", nn.Parameter(torch.empty(hidden_size, **factory)))
        self.reset_parameters()

    @property
    def bias(self) -> bool:
        """Whether there are biases."""
        return self.has_bias

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights and biases, a list for each direction of each layer."""
        kinds = ("weight_ih", "weight_hh", "bias") if self.bias else ("weight_ih", "weight_hh")
        return [[getattr(self, f"{kind}{suffix}") for kind in kinds] for suffix in self._suffixes]

    def flatten_parameters(self) -> None:
        """Do nothing: weights need no arrangement here as those of `torch.nn.LSTM` do on a GPU."""

    @property
    def output_size(self) -> int:
        """The width of the output."""
        return self.read_size * (2 if self.bidirectional else 1)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw the permutations, then the weights, then angles anew: with the same seed, those of a new layer."""
        for suffix in self._suffixes:
            self._draw_permutations(suffix)
        for suffix in self._suffixes:
            self._reset_direction(suffix)
            if self.learn_initial_state:
                self.get_parameter(f"h_0{suffix}").zero_()
                self.get_parameter(f"c_0{suffix}").zero_()
        for suffix in self._suffixes:
            self._draw_angles(suffix)

    def forward(
        self, x: Tensor | PackedSequence, state: State | None = None, *, return_cells: bool = False
    ) -> tuple:
        self._check_input(x)
        if isinstance(x, PackedSequence):
            return self._forward_packed(x, state, return_cells)
        unbatched = x.dim() == 2
        check_steps(x, 1 if self.batch_first and not unbatched else 0)
        if state is not None:
            self._check_state(state, () if unbatched else (x.shape[0 if self.batch_first else 1],))
        if unbatched:
            x = x.unsqueeze(1)
            state = None if state is None else (state[0].unsqueeze(1), state[1].unsqueeze(1))
        elif self.batch_first:
            x = x.transpose(0, 1)
        output, h_n, c_n, cells = self._run(x, state, None, return_cells)
        if unbatched:
            output, h_n, c_n = output.squeeze(1), h_n.squeeze(1), c_n.squeeze(1)
            cells = None if cells is None else cells.squeeze(2)
        elif self.batch_first:
            output = output.transpose(0, 1)
            cells = None if cells is None else cells.transpose(1, 2)
        final = AssociativeLSTMState(h_n, c_n)
        return (output, final) if cells is None else (output, final, cells)

    def _forward_packed(self, x: PackedSequence, state: State | None, return_cells: bool) -> tuple:
        # The batch is worked on in the pack's order, longest item first; states and cells keep the caller's.
        padded, lengths = pad_packed_sequence(PackedSequence(x.data, x.batch_sizes))
        if state is not None:
            self._check_state(state, (padded.shape[1],))
        if state is not None and x.sorted_indices is not None:
            state = (state[0].index_select(1, x.sorted_indices), state[1].index_select(1, x.sorted_indices))
        output, h_n, c_n, cells = self._run(padded, state, lengths, return_cells)
        packed = pack_padded_sequence(output, lengths)
        packed = PackedSequence(packed.data, packed.batch_sizes, x.sorted_indices, x.unsorted_indices)
        if x.unsorted_indices is not None:
            h_n, c_n = h_n.index_select(1, x.unsorted_indices), c_n.index_select(1, x.unsorted_indices)
            cells = None if cells is None else cells.index_select(2, x.unsorted_indices)
        final = AssociativeLSTMState(h_n, c_n)
        if cells is None:
            return packed, final
        return packed, final, cells.transpose(1, 2) if self.batch_first else cells

    def _run(
        self, x: Tensor, state: State | None, lengths: Tensor | None, return_cells: bool
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """All layers and directions over x ``(T, B, input)``, with the state ``(D * num_layers, B, ...)``."""
        weight = self.weight_ih_l0
        directions = 2 if self.bidirectional else 1
        outputs: list[Tensor] = []
        h_n: list[Tensor] = []
        c_n: list[Tensor] = []
        cells: list[Tensor] = []
        with float_precision(x):
            x = x.to(weight.dtype)
            for k, suffix in enumerate(self._suffixes):
                h_0, c_0 = (
                    self._initial_state(suffix, x.shape[1]) if state is None else (state[0][k], state[1][k])
                )
                names = ("weight_ih", "weight_hh", "bias", "permutations")
                weight_ih, weight_hh, bias, permutations = (
                    getattr(self, f"{name}{suffix}") for name in names
                )
                turns = reference.turns_of(getattr(self, f"angles{suffix}", None), permutations)
                output, h, c, all_c = associative.sequence(
                    associative.Inputs(x, h_0, c_0, weight_ih, weight_hh, bias, permutations, lengths, turns),
                    num_heads=self.num_heads,
                    activation=self.activation,
                    reverse=suffix.endswith("_reverse"),
                    keep_states_every=self.keep_states_every,
                    return_cells=return_cells,
                    backend=self.backend,
                )
                outputs.append(output)
                h_n.append(h)
                c_n.append(c)
                if all_c is not None:
                    cells.append(all_c)
                if len(outputs) == directions:  # a layer is complete: it is the next one's input
                    below, x = x, outputs[0] if directions == 1 else torch.cat(outputs, -1)
                    outputs = []
                    if self.dropout and k + 1 < len(self._suffixes):
                        x = nn.functional.dropout(x, self.dropout, self.training)
                    if self.residual and k >= directions:
                        x = x + below
        return x, _stack(h_n), _stack(c_n), _stack(cells) if return_cells else None

    def _initial_state(self, suffix: str, batch: int) -> State:
        weight = self.weight_ih_l0
        if self.learn_initial_state:
            h_0, c_0 = getattr(self, f"h_0{suffix}"), getattr(self, f"c_0{suffix}")
            return h_0.expand(batch, -1), c_0.expand(batch, self.num_copies, -1)
        return weight.new_zeros(batch, self.read_size), weight.new_zeros(
            batch, self.num_copies, self.hidden_size
        )

    def _check_input(self, x: Tensor | PackedSequence) -> None:
        if not isinstance(x, Tensor | PackedSequence):
            raise TypeError(f"x: expected a tensor or a PackedSequence, got {type(x).__name__}")
        if isinstance(x, Tensor) and x.dim() not in (2, 3):
            raise ValueError(
                f"x: expected 3 dimensions, or 2 for a single sequence, got shape {tuple(x.shape)}"
            )
        check_input(x.data if isinstance(x, PackedSequence) else x, self.input_size, self.weight_ih_l0)

    def _check_state(self, state: State, batch: tuple[int, ...]) -> None:
        check_pair(("h_0", "c_0"), state)
        lead = len(self._suffixes), *batch
        check_state("h_0", state[0], (*lead, self.read_size), self.weight_ih_l0)
        check_state("c_0", state[1], (*lead, self.num_copies, self.hidden_size), self.weight_ih_l0)

    @classmethod
    def from_lstm(cls, lstm: nn.LSTM, num_copies: int = 1) -> "AssociativeLSTM":
        r"""The Associative LSTM that computes what a trained `torch.nn.LSTM` computes.

        With input and output keys of ones and imaginary parts of zero, the cell update is the LSTM's, and with
        ``activation="tanh"`` so is everything else: :math:`\tanh(|u|) u / |u| = \tanh(u)`. The result has
        ``hidden_size`` twice the LSTM's; in each direction's output the real half is the LSTM's output and the
        imaginary half is zero. A key of ones is the same under every permutation, so any number of copies serves.

        >>> lstm = nn.LSTM(3, 5)
        >>> x = torch.randn(7, 2, 3)
        >>> output, _ = AssociativeLSTM.from_lstm(lstm)(x)
        >>> torch.allclose(output[..., :5], lstm(x)[0], atol=1e-6)
        True
        """
        if not isinstance(lstm, nn.LSTM):
            raise TypeError(f"lstm: expected a torch.nn.LSTM, got {type(lstm).__name__}")
        if lstm.proj_size:
            raise ValueError(f"lstm: expected one without projections, got proj_size={lstm.proj_size}")
        width = lstm.hidden_size
        weight = lstm.get_parameter("weight_ih_l0")
        layer = cls(
            lstm.input_size,
            2 * width,
            lstm.num_layers,
            batch_first=lstm.batch_first,
            dropout=lstm.dropout,
            bidirectional=lstm.bidirectional,
            num_copies=num_copies,
            activation="tanh",
            start="paper",
            device=weight.device,
            dtype=weight.dtype,
        )
        layer.train(lstm.training)
        rows = layer.rows
        real = slice(rows.update.start, rows.update.start + width)
        torch_order = (rows.input, rows.forget, real, rows.output)  # nn.LSTM's gates: i, f, g, o
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.zero_()
            for suffix in layer._suffixes:
                w_ih, w_hh = (
                    layer.get_parameter(f"weight_ih{suffix}"),
                    layer.get_parameter(f"weight_hh{suffix}"),
                )
                bias = layer.get_parameter(f"bias{suffix}")
                for gate, block in enumerate(torch_order):
                    source = slice(gate * width, (gate + 1) * width)
                    below = lstm.get_parameter(f"weight_ih{suffix}")[source]
                    if suffix.startswith("_l0"):
                        w_ih[block] = below
                    else:  # the layer below gives [real, imaginary] per direction
                        w_ih[block].unflatten(-1, (-1, 2, width))[..., 0, :] = below.unflatten(
                            -1, (-1, width)
                        )
                    w_hh[block, :width] = lstm.get_parameter(f"weight_hh{suffix}")[source]
                    if lstm.bias:
                        both = lstm.get_parameter(f"bias_ih{suffix}") + lstm.get_parameter(f"bias_hh{suffix}")
                        bias[block] = both[source]
                for key in (rows.input_key, rows.output_key):
                    bias[key.start : key.start + width] = 20.0  # tanh(20) is 1 in float64
        return layer


def _stack(tensors: list[Tensor]) -> Tensor:
    return (
        torch.stack(tensors) if len(tensors) > 1 else tensors[0].unsqueeze(0)
    )  # a view: no copy in the usual case
