"""The unitary RNN and its multiplicative variant: recurrent matrices that keep the length of what they carry."""

import math
from typing import Any

import torch
from torch import Tensor

from associative_lstm.kernels import BACKENDS, unitary
from associative_lstm.kernels.unitary import reference
from associative_lstm.nn.baseline import RecurrentNetwork, draw_permutation
from associative_lstm.nn.checks import check_choice


class _UnitaryBase(RecurrentNetwork):
    """What both networks have: input weights, reflections, a permutation, a modulus bias."""

    permutation: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        batch_first: bool = False,
        learn_initial_state: bool = False,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, hidden_size, batch_first=batch_first)
        if hidden_size % 2:
            raise ValueError(
                f"hidden_size: expected an even number (real and imaginary halves), got {hidden_size}"
            )
        check_choice("backend", backend, BACKENDS)
        self.backend = backend
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        half = hidden_size // 2
        self.weight = torch.nn.Parameter(torch.empty(hidden_size, input_size, **factory))
        self.bias = torch.nn.Parameter(torch.empty(hidden_size, **factory))
        self.reflections = torch.nn.Parameter(torch.empty(2, hidden_size, **factory))
        self.modulus_bias = torch.nn.Parameter(torch.empty(half, **factory))
        self.register_buffer("permutation", torch.empty(half, dtype=torch.int64, device=device))
        if learn_initial_state:
            self._learn_initial_state(**factory)
        self._add_phases(3 * half, factory)
        self.reset_parameters()

    def _add_phases(self, rows: int, factory: dict[str, Any]) -> None:
        """The parameters from which the angles of the three diagonal matrices come."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Glorot-uniform weights, zero biases, reflections in (-1, 1), a learned h_0 of length about 1.

        The permutation is drawn anew, too.
        """
        draw_permutation(self.permutation)
        for parameter in self.parameters():
            torch.nn.init.zeros_(parameter)
        torch.nn.init.xavier_uniform_(self.weight)
        torch.nn.init.uniform_(self.reflections, -1, 1)
        if self.learn_initial_state:
            limit = math.sqrt(3 / self.hidden_size)
            torch.nn.init.uniform_(self.get_parameter("h_0"), -limit, limit)

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"h": (self.hidden_size,)}

    def _state(self, parts: list[Tensor]) -> Tensor:
        return parts[0]

    def _run(self, x: Tensor, h_0: Tensor, angles: Tensor) -> tuple[Tensor, list[Tensor]]:
        u = torch.nn.functional.linear(x, self.weight, self.bias)
        output = unitary.sequence(
            u, h_0, angles, self.reflections, self.permutation, self.modulus_bias, self.backend
        )
        return output, [output[-1]]


class UnitaryRNN(_UnitaryBase):
    r"""Apply the unitary RNN of Arjovsky, Shah and Bengio (2016).

    .. math::
        W &= D_3 R_2 F^{-1} D_2 P R_1 F D_1 \\
        h_t &= f(W h_{t-1} + V x_t + b), \qquad f(z) = (|z| + b_f)_+ \, z / |z|

    on N_h/2 complex numbers: D are diagonals of :math:`e^{i \theta}` with learned phases :math:`\theta`, R the
    reflections :math:`I - 2 v v^\dagger / |v|^2` of learned vectors v, F the unitary discrete Fourier
    transformation, P a constant random permutation, f a rectifier of the modulus with a learned bias (see
    :func:`associative_lstm.kernels.unitary.reference.modrelu` for what it does at 0). A product of unitary matrices
    is unitary, so W is, whatever was learned. A size that is twice a power of two is
    the fastest: the transformations take n log n operations.

    Phases start uniform on the circle, v uniform in (-1, 1), a learned h_0 uniform in
    :math:`\pm\sqrt{3 / N_h}`, as in that paper; V is Glorot-uniform and the biases are zero.

    Args:
        input_size: the number n of features of ``x``.
        hidden_size: N_h, the real numbers of the state; even.
        batch_first: ``x`` and ``output`` are ``(B, T, ...)``.
        learn_initial_state: h_0 is a parameter, instead of zero.
        backend: ``"fused"`` (compiled, CPU), ``"reference"`` (a loop), or ``"auto"``. The numbers are the same.

    Inputs: ``x`` of shape ``(T, B, input_size)``, and optionally the state ``h``, ``(B, hidden_size)``.

    Outputs: ``output`` of shape ``(T, B, hidden_size)``, ``[real half, imaginary half]``, and the state ``h``,
    which is the last output.

    Attributes:
        permutation: ``(hidden_size / 2,)``, int64, with ``(P h)[j] = h[permutation[j]]`` on each half.

    Example:
        >>> net = UnitaryRNN(10, 256)
        >>> output, h = net(torch.randn(7, 2, 10))
        >>> output.shape, h.shape
        (torch.Size([7, 2, 256]), torch.Size([2, 256]))
        >>> W = net.recurrent_matrix()
        >>> torch.allclose(W.T @ W, torch.eye(256), atol=1e-5)
        True
    """

    def _add_phases(self, rows: int, factory: dict[str, Any]) -> None:
        self.phases = torch.nn.Parameter(torch.empty(3, rows // 3, **factory))

    def reset_parameters(self) -> None:
        super().reset_parameters()
        torch.nn.init.uniform_(self.phases, -math.pi, math.pi)

    def recurrent_matrix(self) -> Tensor:
        """W as the real ``(hidden_size, hidden_size)`` matrix that acts on real pairs: orthogonal."""
        inner, outer = reference.constant_parts(self.reflections, self.permutation)
        d_1, d_2, d_3 = (
            reference.real_form(torch.cat([d.cos().diag(), d.sin().diag()])) for d in self.phases
        )
        return d_3 @ outer @ d_2 @ inner @ d_1

    def _sequence(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        return self._run(x, parts[0], self.phases[None, None])


class MultiplicativeUnitaryRNN(_UnitaryBase):
    r"""Apply the unitary RNN whose diagonal matrices depend on the input.

    .. math::
        \theta_1, \theta_2, \theta_3 &= W_{xr} x_t + b_r, \qquad D_k = \mathrm{diag}(e^{i \theta_k}) \\
        h_t &= f(D_3 R_2 F^{-1} D_2 P R_1 F D_1 h_{t-1} + V x_t + b)

    All else is as in :class:`UnitaryRNN`, which this is if :math:`W_{xr} = 0`. W_xr is Glorot-uniform and b_r uniform
    on the circle at the start. Arguments, inputs and outputs are the same.

    Example:
        >>> net = MultiplicativeUnitaryRNN(10, 256)
        >>> output, h = net(torch.randn(7, 2, 10))
        >>> output.shape, h.shape
        (torch.Size([7, 2, 256]), torch.Size([2, 256]))
    """

    def _add_phases(self, rows: int, factory: dict[str, Any]) -> None:
        self.phase_weight = torch.nn.Parameter(torch.empty(rows, self.input_size, **factory))
        self.phase_bias = torch.nn.Parameter(torch.empty(rows, **factory))

    def reset_parameters(self) -> None:
        super().reset_parameters()
        torch.nn.init.xavier_uniform_(self.phase_weight)
        torch.nn.init.uniform_(self.phase_bias, -math.pi, math.pi)

    def _sequence(self, x: Tensor, parts: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        angles = torch.nn.functional.linear(x, self.phase_weight, self.phase_bias)
        return self._run(x, parts[0], angles.unflatten(-1, (3, -1)))
