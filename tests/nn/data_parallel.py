"""One process of two that train the layer side by side: `data_parallel.py rank folder`."""

import os
import sys
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from associative_lstm import AssociativeLSTM


def main(rank: int, folder: Path) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(rank)
    layer = AssociativeLSTM(3, 16, num_copies=4)
    before = layer.permutations_l0.clone()
    model = DistributedDataParallel(layer)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(5, 2, 3)
    for _ in range(2):
        optimizer.zero_grad()
        model(x)[0].square().sum().backward()
        optimizer.step()
    saved = {
        "permutations_before": before,
        "permutations_after": layer.permutations_l0,
        "x": x,
        "gradient": layer.weight_hh_l0.grad,
        "weight": layer.weight_hh_l0.detach(),
    }
    torch.save(saved, folder / f"rank{rank}.pt")
    distributed.barrier()
    os._exit(0)  # to take the group down in order can hang when the other process is gone first


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
