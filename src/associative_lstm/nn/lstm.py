"""The LSTM that the paper compares with: forget gates, no peepholes, one bias per gate."""

from typing import Any

import torch
from torch import Tensor

from associative_lstm.nn.baseline import RecurrentNetwork
from associative_lstm.nn.checks import check_number_or, check_positive_int
from associative_lstm.nn.start import draw_log_times

_KINDS = ("weight_ih", "weight_hh", "bias")


class LSTM(RecurrentNetwork):
    r"""Apply an LSTM with forget gates, without peepholes and with one bias per gate.

    .. math::
        \hat g_i, \hat g_f, \hat u, \hat g_o &= W_{xh} x_t + W_{hh} h_{t-1} + b_h \\
        c_t &= \sigma(\hat g_f) \odot c_{t-1} + \sigma(\hat g_i) \odot \tanh(\hat u) \\
        h_t &= \sigma(\hat g_o) \odot \tanh(c_t)

    It stands on the routine of :class:`torch.nn.LSTM`, keeps its row order (input gate, forget gate, update,
    output gate), and gives the same numbers where that class's second bias is zero. One bias makes
    :math:`4 N_h (N_h + n + 1)` parameters.

    Args:
        input_size: the number n of features of ``x``.
        hidden_size: N_h.
        num_layers: layers stacked, each reading the output of the one below.
        batch_first: ``x`` and ``output`` are ``(B, T, ...)``. The state is not affected.
        forget_bias: where the biases of the forget gates start, the others being zero; or ``"chrono"``: the
            logarithms of times drawn from 1 to ``horizon``, and the biases of the input gates their negatives.
        horizon: the longest of these times, in steps.
        learn_initial_state: h_0 and c_0 are parameters, instead of zero.

    Inputs: ``x`` of shape ``(T, B, input_size)``, and optionally the state ``(h, c)``.

    Outputs: ``output`` of shape ``(T, B, hidden_size)`` and the state ``(h, c)``, each of shape
    ``(num_layers, B, hidden_size)``.

    Example:
        >>> net = LSTM(10, 128, forget_bias=1.0)
        >>> output, (h, c) = net(torch.randn(5, 2, 10))
        >>> output.shape, h.shape, c.shape
        (torch.Size([5, 2, 128]), torch.Size([1, 2, 128]), torch.Size([1, 2, 128]))
        >>> sum(p.numel() for p in net.parameters()) == 4 * 128 * (128 + 10 + 1)
        True
    """

    batch_dim = 1
    bias = True  #: there are biases, as `torch.nn.LSTM` says it
    _no_bias: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        batch_first: bool = False,
        forget_bias: float | str = 0.0,
        horizon: int = 120,
        learn_initial_state: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, hidden_size, batch_first=batch_first)
        check_positive_int("num_layers", num_layers)
        check_number_or(("chrono",), "forget_bias", forget_bias)
        check_positive_int("horizon", horizon)
        self.num_layers = num_layers
        self.forget_bias = forget_bias
        self.horizon = horizon
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        rows = 4 * hidden_size
        for k in range(num_layers):
            width = input_size if k == 0 else hidden_size
            for name, shape in zip(_KINDS, ((rows, width), (rows, hidden_size), (rows,)), strict=True):
                self.register_parameter(f"{name}_l{k}", torch.nn.Parameter(torch.empty(shape, **factory)))
        # The routine underneath wants two biases: the second is a constant, neither learned nor saved.
        self.register_buffer("_no_bias", torch.zeros(rows, **factory), persistent=False)
        if learn_initial_state:
            self._learn_initial_state(**factory)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot-uniform weights gate by gate, zero biases and states, ``forget_bias`` at forget gates."""
        with torch.no_grad():
            self._no_bias.zero_()
            for parameter in self.parameters():
                parameter.zero_()
            for *weights, bias in self.all_weights:
                for weight in weights:
                    for gate in weight.chunk(4):
                        torch.nn.init.xavier_uniform_(gate)
                i, f, _, _ = bias.chunk(4)
                if isinstance(self.forget_bias, str):
                    draw_log_times(f, self.horizon)
                    i.copy_(-f)
                else:
                    f.fill_(self.forget_bias)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights and biases, a list for each layer."""
        return [[getattr(self, f"{kind}_l{k}") for kind in _KINDS] for k in range(self.num_layers)]

    def flatten_parameters(self) -> None:
        """Do nothing: the weights stay as they are."""

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("h", "c"), (self.num_layers, self.hidden_size))

    def _sequence(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        weights = [weight for own in self.all_weights for weight in (*own, self._no_bias)]
        h_0, c_0 = (part.contiguous() for part in parts)
        output, h, c = torch.lstm(
            x,
            (h_0, c_0),
            weights,
            has_biases=True,
            num_layers=self.num_layers,
            dropout=0.0,
            train=self.training,
            bidirectional=False,
            batch_first=False,
        )
        return output, [h, c]

    @torch.compiler.disable  # as torch.compile does with torch.nn.LSTM: it cannot trace the routine's gradient
    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        return super().forward(x, state)
