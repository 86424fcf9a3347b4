r"""The recurrence of the permutation RNN: :math:`h_t = P h_{t-1} + u_t`."""

import torch
from torch import Tensor


def powers(permutation: Tensor, count: int) -> Tensor:
    """Column t - 1 is the order of P^t, for t from 1 to ``count``, found by doubling.

    >>> powers(torch.tensor([1, 2, 0]), 4)
    tensor([[1, 2, 0, 1],
            [2, 0, 1, 2],
            [0, 1, 2, 0]])
    """
    found = permutation.unsqueeze(1)
    while (done := found.shape[1]) < count:
        more = found[:, : count - done].index_select(0, found[:, -1])  # P^(t + done) h = P^t P^done h
        found = torch.cat([found, more], dim=1)
    return found


def sequence(u: Tensor, h_0: Tensor, permutation: Tensor) -> Tensor:
    r"""All h_t as a cumulative sum in coordinates that turn with the sequence.

    .. math:: g_t = P^{-t} h_t = g_{t-1} + P^{-t} u_t

    Shapes: u ``(T, B, H)``, h_0 ``(B, H)``, permutation ``(H,)`` with ``(P h)[j] = h[permutation[j]]``; the result
    ``(T, B, H)``.
    """
    T, B, H = u.shape
    orders = powers(permutation, T).T.unsqueeze(1).expand(T, B, H)
    turned = torch.zeros_like(u).scatter(2, orders, u)  # P^-t
    return (turned.cumsum(0) + h_0).gather(2, orders)  # P^t
