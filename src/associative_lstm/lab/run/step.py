"""One run in memory: model, optimiser, stream and recurrent state, moved a step at a time, saved and restored."""

import math
import os
import random
import sys
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor

from associative_lstm.lab.files import Diverged, RunError
from associative_lstm.lab.run.config import Config, task_of
from associative_lstm.lab.run.cost import cost_in_all
from associative_lstm.lab.run.model import (
    State,
    build_model,
    clone_like,
    detach_state,
    flatten_state,
    load_weights,
)
from associative_lstm.lab.run.schedule import rate_factor
from associative_lstm.lab.tasks.base import Task
from associative_lstm.lab.words import counted

_FORMAT = 1


def make_fabric(device: str = "cpu") -> Fabric:
    """One process, or under `torchrun` data-parallel over all of its processes; ``"cuda"``: each with a GPU."""
    if device == "cuda" and not torch.cuda.is_available():
        raise RunError("device is cuda, but PyTorch finds no GPU here")
    if torch.distributed.is_available() and torch.distributed.is_torchelastic_launched():
        world, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
        fabric = Fabric(accelerator=device, strategy="ddp", devices=local, num_nodes=world // local)
    else:
        fabric = Fabric(accelerator=device, devices=1)
    fabric.launch()
    return fabric


def most_of(fabric: Fabric, here: int) -> int:
    """The largest of the numbers that the processes have, which all must ask."""
    if fabric.world_size == 1:
        return here
    anywhere = torch.tensor(int(here), device=fabric.device)
    torch.distributed.all_reduce(anywhere, op=torch.distributed.ReduceOp.MAX)
    return int(anywhere)


@dataclass
class Totals:
    """Sums since the last line of the log."""

    bits: float = 0.0
    units: float = 0.0
    answer: float = 0.0
    symbols: float = 0.0
    steps: int = 0
    gradient_norm: float = 0.0

    def record(self, step: int, has_answer: bool) -> dict[str, Any]:
        """The line of the log."""
        line = {"step": step, "cost": self.bits / max(self.units, 1.0)}
        if has_answer:
            line["answer"] = self.answer / max(self.units, 1.0)
        line["gradient_norm"] = self.gradient_norm / max(self.steps, 1)
        return line


class Trainer:
    """Adam on truncated backpropagation through time; gradients are clipped by their norm where the run says so.

    The loss is the cost as the paper measures it, in bits: per sequence on its episodic tasks; per scored symbol on
    online tasks, whose state is carried from window to window and whose gradient is cut there. Every batch of an
    episodic task starts from the initial state.
    """

    def __init__(self, config: Config, fabric: Fabric, task: Task | None = None) -> None:
        assert config.batch_size is not None
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)  # the same weights and permutations in every process
        self.config, self.fabric = config, fabric
        self.task = task or task_of(config, lambda message: print(message, file=sys.stderr, flush=True))
        self.stream = self.task.stream(
            config.batch_size, config.seed, rank=fabric.global_rank, world_size=fabric.world_size
        )
        self.model = build_model(config, self.task).to(
            fabric.device
        )  # drawn on the CPU: the same on any device
        betas = 0.9, config.beta2
        adam = torch.optim.Adam(self.model.parameters(), lr=config.learning_rate, betas=betas, fused=True)
        # Fabric's wrapper of the model is what sums gradients over processes. One process has no need of it, nor of
        # the optimiser's: their hooks cost as much as a twentieth of a small network's step.
        self._module: Any = self.model
        self.optimizer: Any = adam
        if fabric.world_size > 1:
            self._module, self.optimizer = fabric.setup(self.model, adam)
        self._parameters = dict(self.model.named_parameters())
        self._matrices: list[Tensor] = [p for p in self._parameters.values() if p.dim() > 1]
        self.has_answer = self.task.answer(next(self.task.stream(1, 0))) is not None
        self.step = 0
        self.state: State | None = None
        self.totals = Totals()

    def train_step(self) -> None:
        """One minibatch: predict, score, backpropagate, update."""
        (bits, units, answer), symbols, state = self.backpropagate()
        gradients = [p.grad for p in self._parameters.values() if p.grad is not None]
        gradient_norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients))))
        if not (math.isfinite(bits) and math.isfinite(gradient_norm)):
            raise Diverged(self._diverged(bits / max(units, 1.0)))
        if 0 < self.config.clip < gradient_norm:
            torch._foreach_mul_(gradients, self.config.clip / gradient_norm)
        rate = self.config.learning_rate * rate_factor(self.config, self.step)
        self.optimizer.param_groups[0]["lr"] = rate
        if self.config.weight_decay:
            with torch.no_grad():
                torch._foreach_mul_(self._matrices, 1 - rate * self.config.weight_decay)
        self.optimizer.step()
        for parameter in self._parameters.values():
            parameter.grad = None
        self.state = None if self.task.episodic else detach_state(state)
        self.step += 1
        totals = self.totals
        totals.bits += bits
        totals.units += units
        totals.answer += answer
        totals.gradient_norm += gradient_norm
        totals.symbols += symbols * self.fabric.world_size
        totals.steps += 1

    def backpropagate(self) -> tuple[list[float], int, State]:
        """The gradients of the next minibatch; its bits, units and bits of the answer; its symbols; the new state."""
        batch = next(self.stream).on(self.fabric.device)
        scored = [batch.mask] if self.task.sparse else []
        logits, state = self._module(batch.inputs, self.state, *scored)
        cost = cost_in_all(self.task, logits, batch)
        sums = [float(cost.bits.detach()), cost.units, cost.answer]
        processes = self.fabric.world_size
        if processes > 1:
            everywhere = torch.tensor(sums, dtype=torch.float64, device=self.fabric.device)
            torch.distributed.all_reduce(everywhere)
            sums = everywhere.tolist()
        # Data-parallel training averages gradients over the processes; their sum is meant.
        cost.bits.backward(torch.tensor(processes / max(sums[1], 1.0), device=cost.bits.device))
        return sums, batch.mask.numel(), state

    def _diverged(self, cost: float) -> str:
        """What happened at a step that must not be taken, and why it probably did."""
        what = "the cost is not finite" if not math.isfinite(cost) else "the gradient is not finite"
        broken = [
            name for name, p in self._parameters.items() if p.grad is not None and not p.grad.isfinite().all()
        ]
        where = f" (in {broken[0]} and {len(broken) - 1} more)" if len(broken) > 1 else ""
        norm = self.totals.gradient_norm / max(self.totals.steps, 1)
        grown = self.totals.bits / max(self.totals.units, 1.0) > 2 * max(self.task.chance, 1.0)
        rate = self.config.learning_rate
        if grown or norm > 1e3:
            cause = f"training diverged (mean gradient norm {norm:.3g}), learning_rate {rate:g} is too high"
        else:
            cause = f"a number overflowed in {self.config.model}; try a learning_rate below {rate:g}"
        return f"stopped at step {self.step + 1}: {what}{where}; likely cause: {cause}"

    def save(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on, as tensors and plain values."""
        mine = {
            "state": None if self.state is None else [t.clone() for t in flatten_state(self.state)],
            "stream": self.stream.state(),
            "random": random_states(self.fabric.device),
        }
        ranks: list[Any] = [mine]
        if self.fabric.world_size > 1:
            ranks = [None] * self.fabric.world_size
            torch.distributed.all_gather_object(ranks, mine)
        return {
            "format": _FORMAT,
            "step": self.step,
            "model": self.model.state_dict(),
            "moments": self.optimizer.state_dict()["state"],
            "totals": asdict(self.totals),
            "ranks": ranks,
        }

    def load(self, content: dict[str, Any]) -> None:
        """Continue from what :meth:`save` gave; anything else is an error (and leaves the trainer unusable)."""
        if content.get("format") != _FORMAT:
            raise ValueError(f"its format is {content.get('format')!r}, expected {_FORMAT}")
        ranks, processes = content["ranks"], self.fabric.world_size
        if len(ranks) != processes:
            raise RunError(
                f"the run was made by {counted(len(ranks), 'process')} "
                f"and cannot be continued by {processes}: "
                f"start it with `torchrun --nproc-per-node` so that there are {len(ranks)} in all"
            )
        mine = ranks[self.fabric.global_rank]
        step, totals = content["step"], content["totals"]
        if type(step) is not int or not 0 <= step <= 2**53:
            raise ValueError(f"its step is {step!r}")
        if set(totals) != {f.name for f in fields(Totals)} or not all(
            type(v) in (int, float) for v in totals.values()
        ):
            raise ValueError("its totals are not numbers")
        self.state = None
        if mine["state"] is not None:
            early, late = self._two_states()
            self.state = clone_like(early, mine["state"], late)
        # now: the call that showed the form of a state may have left its mark
        load_weights(self.model, content["model"])
        self._load_moments(content["moments"])
        self.stream.load_state(mine["stream"])
        self.step, self.totals = step, Totals(**totals)
        restore_random_states(mine["random"], self.fabric.device)

    def _load_moments(self, moments: dict[int, dict[str, Tensor]]) -> None:
        """Adam's moments of every parameter: checked here, because its compiled routine takes them as they are."""
        parameters = list(self._parameters.values())
        if moments and list(moments) != list(range(len(parameters))):
            raise ValueError("its moments belong to other parameters")
        for number, moment in moments.items():
            like = {"step": torch.zeros(()), "exp_avg": parameters[number], "exp_avg_sq": parameters[number]}
            if moment.keys() != like.keys() or any(
                moment[name].shape != t.shape or moment[name].dtype != t.dtype for name, t in like.items()
            ):
                raise ValueError("its moments have other shapes than the parameters")
        self.optimizer.load_state_dict(
            {"state": moments, "param_groups": self.optimizer.state_dict()["param_groups"]}
        )

    def _two_states(self) -> tuple[State, State]:
        """The states after a step and after two: what differs in form grows with time."""
        lanes = next(self.task.stream(self.config.batch_size or 1, 0, world_size=self.fabric.world_size))
        x = lanes.inputs[:1].to(self.fabric.device)
        with torch.no_grad():
            early = self.model(x)[1]
            return early, self.model(x, early)[1]

    def weights(self) -> dict[str, Tensor]:
        """The model's weights and buffers by name."""
        return self.model.state_dict()


def random_states(device: torch.device) -> dict[str, Any]:
    """The states of the three global random generators, and of a GPU's own, as tensors and plain values.

    NumPy's legacy one is among them: nothing here draws from it, but a user's task may, and a resumed run is to draw
    what it would have drawn. Its newer interface does not tell the half of a pair of normal numbers that it keeps.
    """
    version, numbers, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002 (kept, not drawn from)
    own = {"device": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {}
    return own | {
        "torch": torch.get_rng_state(),
        "python": [version, list(numbers), gauss],
        "numpy": [name, torch.from_numpy(np.asarray(keys, dtype=np.int64)), position, has_gauss, cached],
    }


def restore_random_states(states: dict[str, Any], device: torch.device) -> None:
    """Set the random generators to states that :func:`random_states` gave."""
    version, numbers, gauss = states["python"]
    name, keys, position, has_gauss, cached = states["numpy"]
    if name != "MT19937" or keys.shape != (624,) or type(position) is not int or not 0 <= position <= 624:
        raise ValueError("the state of NumPy's random generator is not one")  # NumPy itself does not check it
    torch.set_rng_state(states["torch"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states["device"], device)
    random.setstate((version, tuple(numbers), gauss))
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))  # noqa: NPY002 (put back, not drawn from)
