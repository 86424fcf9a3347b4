# %% [markdown]
# # Distributed training
#
# The layer under `DistributedDataParallel`, as any other; two processes of one machine:
#
#     torchrun --nproc-per-node 2 examples/distributed.py
#
# Run without `torchrun` it is one process of a group of one. Every process draws other data; gradients are averaged,
# and permutations, which are buffers, are those of the first process, as the weights are.

# %%
import os
import sys
import tempfile

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from associative_lstm import AssociativeLSTM

SMALL = "--small" in sys.argv
STEPS = 3 if SMALL else 300
SYMBOLS, LENGTH = 8, 10
torch.set_num_threads(1)

if "RANK" in os.environ:
    distributed.init_process_group("gloo")
else:
    store = f"file://{tempfile.mkdtemp()}/store"
    distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
rank, world = distributed.get_rank(), distributed.get_world_size()


# %%
class Copier(nn.Module):
    """Reads symbols, then a blank for each, at which it is to say them again."""

    def __init__(self):
        super().__init__()
        self.network = AssociativeLSTM(SYMBOLS + 1, 64, num_copies=4, recurrent_update=False)
        self.readout = nn.Linear(64, SYMBOLS)

    def forward(self, symbols):  # (LENGTH, B)
        shown = torch.cat([symbols, torch.full_like(symbols, SYMBOLS)])
        output, _ = self.network(nn.functional.one_hot(shown, SYMBOLS + 1).float())
        return self.readout(output[LENGTH:])


# %%
torch.manual_seed(rank)  # other data in each; the weights are the first one's
model = DistributedDataParallel(Copier())
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(STEPS):
    symbols = torch.randint(SYMBOLS, (LENGTH, 16))
    loss = nn.functional.cross_entropy(model(symbols).flatten(0, 1), symbols.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if rank == 0 and (step + 1) % 100 == 0:
        print(f"step {step + 1}: loss {loss.item():.3f}")

# %% [markdown]
# All processes end with the same weights.

# %%
weight = model.module.network.weight_hh_l0.detach()
summed = weight.clone()
distributed.all_reduce(summed)
assert torch.allclose(summed, world * weight)
if rank == 0:
    print(f"{world} process(es), loss {loss.item():.3f}, the same weights in each")
distributed.barrier()
distributed.destroy_process_group()
if world > 1:  # threads of the group that outlive the interpreter abort it now and then
    sys.stdout.flush()
    os._exit(0)
