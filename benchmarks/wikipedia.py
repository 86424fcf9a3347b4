"""What a training step on Wikipedia costs as a whole, beside one with torch.nn.LSTM, and what the corpus costs.

python benchmarks/wikipedia.py --data enwik8.gz       writes results/scaling/wikipedia.json and prints it

The step is everything that training does: the window from the file, forward, backward, Adam, the cost as a number. On
torch.nn.LSTM's side it is the loop that a user would write. The Associative LSTM's fast path is compared with its
reference first: the speed of something that computes another thing means nothing.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from associative_lstm.lab.bench import networks as net
from associative_lstm.lab.bench.speed import TOLERANCE
from associative_lstm.lab.bench.timing import Step, in_turns, threads
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import versions
from associative_lstm.lab.run.recipes import PRESETS
from associative_lstm.lab.run.step import Trainer, make_fabric
from associative_lstm.lab.tasks import Wikipedia
from associative_lstm.lab.tasks.enwik8 import find_corpus

OUT = Path(__file__).parent.parent / "results" / "scaling" / "wikipedia.json"
SYMBOLS = 10 * 100  # of a minibatch


class Plain(nn.Module):
    """One-hot symbols, torch.nn.LSTM, a linear readout."""

    def __init__(self, size: int = 256, layers: int = 3) -> None:
        super().__init__()
        self.register_buffer("codes", torch.eye(256))
        self.lstm = nn.LSTM(256, size, layers)
        self.readout = nn.Linear(size, 256)

    def forward(self, x: torch.Tensor, state: tuple | None) -> tuple[torch.Tensor, tuple]:
        h, state = self.lstm(F.embedding(x, self.codes), state)
        return self.readout(h), state


def plain_step(task: Wikipedia) -> Step:
    """The loop that a user of torch.nn.LSTM would write."""
    torch.manual_seed(0)
    model, stream = Plain(), task.stream(10, 0)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    state = None

    def step() -> None:
        nonlocal state
        batch = next(stream)
        logits, state = model(batch.inputs, state)
        state = tuple(s.detach() for s in state)
        bits = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()) / math.log(2)
        adam.zero_grad()
        bits.backward()
        adam.step()
        float(bits.detach())

    return step


def step_rows(data: str, seconds: float) -> list[dict]:
    """The whole steps in turns with torch.nn.LSTM's, and the loader's share of each."""
    task, rows = Wikipedia(data), []
    torch.manual_seed(0)
    x = torch.randn(100, 10, 256)
    stream = task.stream(10, 0)
    for copies in (1, 4):
        candidate = net.associative(256, copies, layers=3, key_init="conjugate")
        difference = net.disagreement(candidate, x)
        if not difference < TOLERANCE:
            sys.exit(f"{candidate.name}: fast path and reference differ by {difference:.1e}")
        config = complete(
            {"task": "wikipedia", "data": data} | PRESETS[f"wikipedia-associative-lstm-{copies}"]
        )
        trainer = Trainer(config, make_fabric(), task)
        steps = {"plain": plain_step(task), "ours": trainer.train_step, "loader": stream.__next__}
        timings = in_turns(steps, seconds=seconds)
        ours, plain, loader = (timings[name].median for name in ("ours", "plain", "loader"))
        rows.append(
            {
                "network": candidate.name,
                "symbols_per_second": SYMBOLS / ours,
                "torch_lstm_symbols_per_second": SYMBOLS / plain,
                "speed_over_torch_lstm": timings["plain"].over(timings["ours"]),
                "milliseconds": 1e3 * ours,
                "quartiles": [1e3 * q for q in timings["ours"].quartiles],
                "loader_microseconds": 1e6 * loader,
                "loader_share": timings["loader"].over(timings["ours"]),
                "disagreement_with_reference": difference,
            }
        )
    return rows


_START = """
import json, sys, time
from associative_lstm.lab.tasks import Wikipedia
def memory():
    lines = dict(line.split(":") for line in open("/proc/self/status"))
    return {key: int(lines[key].split()[0]) / 1024 for key in ("RssAnon", "RssFile")}
before = memory()
begin = time.perf_counter()
task = Wikipedia(sys.argv[1])
stream = task.stream(10, 0)
next(stream)
seconds = time.perf_counter() - begin
opened = memory()
for _ in range(5000):
    next(stream)
after = memory()
mib = lambda new, key: round(new[key] - before[key], 2)
print(json.dumps({"seconds_to_first_minibatch": seconds, "corpus_mib": task.path.stat().st_size / 2**20,
    "private_mib_when_opened": mib(opened, "RssAnon"), "private_mib_after_5000_minibatches": mib(after, "RssAnon"),
    "shared_file_pages_mib_after_5000_minibatches": mib(after, "RssFile")}))
"""


def start(plain: str) -> dict:
    """Opening the corpus in a new process: the time, and what it adds to the memory that the process alone holds."""
    done = subprocess.run([sys.executable, "-c", _START, plain], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True)
    parser.add_argument("--seconds", type=float, default=12.0, help="per network")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    plain = str(find_corpus(arguments.data))
    with threads(1):
        rows = step_rows(plain, arguments.seconds)
    result = {"versions": versions(), "threads": 1, "steps": rows, "start": start(plain)}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
