"""Runs the fused layer over sizes that are no multiple of anything, against the reference loop."""

import itertools

import torch
from torch.nn.utils.rnn import pack_sequence

from associative_lstm import AssociativeLSTM


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(2)
    # half of N around the widths of vectors and panels, items around the rows of a tile
    for half, batch, heads, copies in itertools.product((1, 5, 16, 33), (1, 7), (1, 3), (1, 4)):
        layers = [
            AssociativeLSTM(
                3,
                2 * half,
                bidirectional=True,
                num_heads=heads,
                num_copies=copies,
                keep_states_every=k,
                backend=backend,
            )
            for backend, k in [("reference", 1), ("fused", 1 + half % 2)]
        ]
        layers[1].load_state_dict(layers[0].state_dict())
        items = pack_sequence([torch.randn(1 + b % 4, 3) for b in range(batch)], enforce_sorted=False)
        results = []
        for layer in layers:
            output, (h_n, c_n) = layer(items)
            (output.data.square().sum() + h_n.sum() + c_n.sum()).backward()
            results.append([output.data, h_n, c_n, *(parameter.grad for parameter in layer.parameters())])
        for expected, ours in zip(*results, strict=True):
            # what is read outside an array is anything: no reason to look at last places here
            torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)
    print("checked")


if __name__ == "__main__":
    main()
