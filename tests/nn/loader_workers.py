"""The layer in the workers of a DataLoader, after its parent has used two threads: ``loader_workers.py METHOD``."""

import sys

import torch
from torch.utils.data import DataLoader, Dataset

from associative_lstm import AssociativeLSTM


class Outputs(Dataset):
    """What the layer makes of each of some inputs, computed by whoever asks."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.layer, self.inputs = AssociativeLSTM(4, 8, backend="fused"), torch.randn(6, 5, 4, 4)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> torch.Tensor:
        output, _ = self.layer(self.inputs[index])
        self.layer.zero_grad()
        output.sum().backward()
        return torch.cat([output.detach().flatten(), self.layer.weight_ih_l0.grad.flatten()])


def main(method: str) -> None:
    torch.set_num_threads(2)
    outputs = Outputs()
    for k in range(len(outputs)):
        outputs[k]
    loaded = list(DataLoader(outputs, batch_size=None, num_workers=2, multiprocessing_context=method))
    torch.set_num_threads(1)  # as in the workers
    assert all(torch.equal(own, outputs[k]) for k, own in enumerate(loaded))
    print(len(loaded))


if __name__ == "__main__":
    main(sys.argv[1])
