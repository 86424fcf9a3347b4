"""Where the gates, keys and updates stand among the rows of a layer's weights."""

from typing import NamedTuple


class Rows(NamedTuple):
    r"""The blocks of rows of ``weight_ih``, ``weight_hh`` and ``bias``, in their order.

    With N = ``hidden_size`` real numbers: one forget gate (N/2), and for each head an input gate (N/2), an output
    gate (N/2), an input key (N), an output key (N) and an update (N).

    >>> Rows.of(hidden_size=128, num_heads=3).total
    1600
    """

    forget: slice
    input: slice
    output: slice
    input_key: slice
    output_key: slice
    update: slice

    @classmethod
    def of(cls, hidden_size: int, num_heads: int) -> "Rows":
        half = hidden_size // 2
        sizes = (half, *(num_heads * half,) * 2, *(num_heads * hidden_size,) * 3)
        edges = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
        return cls(*(slice(edges[k], edges[k + 1]) for k in range(len(sizes))))

    @property
    def total(self) -> int:
        """All rows."""
        return self.update.stop

    @property
    def without_update(self) -> int:
        """The rows of ``weight_hh`` if the update is not recurrent (W_hu = 0)."""
        return self.update.start
