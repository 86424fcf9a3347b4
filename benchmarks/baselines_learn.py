"""What the baselines learn: recorded runs of the copy tasks, and long runs of the NTM that must stay finite.

python benchmarks/baselines_learn.py train [NAME ...]   train (or resume) runs in runs/baselines
python benchmarks/baselines_learn.py collect            copy their logs to results/baselines, and test the NTM
python benchmarks/baselines_learn.py table              results/baselines -> results/baselines/README.md
"""

import argparse
import json
import math
import shutil
from pathlib import Path

import torch

from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.cost import cost_of
from associative_lstm.lab.run.evaluation import load_trained
from associative_lstm.lab.run.folder import read_config, read_log
from associative_lstm.lab.sweep.jobs import Job, make_run

RUNS_FOLDER = Path("runs/baselines")
RESULTS = Path(__file__).parent.parent / "results" / "baselines"
KEPT = ("config.toml", "versions.json", "log.jsonl", "times.jsonl")
LENGTHS = (1, 5, 10, 20, 40, 80)
SEQUENCES = 200  # per length
BITS_PER_SEQUENCE = 8 * 10.5  # 1 to 20 vectors of eight bits

NTM_COPY = {
    "task": "ntm-copy",
    "model": "ntm",
    "hidden_size": 100,
    "heads": 1,
    "steps": 40_000,
    "log_every": 500,
}
RUNS: dict[str, dict] = {
    "permutation-rnn-lr1e-3": {"task": "copy", "model": "permutation-rnn", "learning_rate": 1e-3},
    "permutation-rnn-lr3e-3": {"task": "copy", "model": "permutation-rnn", "learning_rate": 3e-3},
    "unitary-rnn-lr1e-3": {"task": "copy", "model": "unitary-rnn", "learning_rate": 1e-3},
    "multiplicative-unitary-rnn-lr1e-3": {
        "task": "copy",
        "model": "multiplicative-unitary-rnn",
        "learning_rate": 1e-3,
    },
    "ntm-copy-lr1e-4": NTM_COPY | {"learning_rate": 1e-4},
    "ntm-copy-lr3e-4": NTM_COPY | {"learning_rate": 3e-4},
    "ntm-copy-lr1e-3": NTM_COPY | {"learning_rate": 1e-3},
    "ntm-copy-lr1e-3-seed1": NTM_COPY | {"learning_rate": 1e-3, "seed": 1},
    "ntm-copy-lr1e-3-seed2": NTM_COPY | {"learning_rate": 1e-3, "seed": 2},
    **{
        f"ntm-{task}": {"task": task, "model": "ntm", "batch_size": 1, "learning_rate": 1e-3}
        for task in ("xml", "assignment", "arithmetic")
    },
}


def run(name: str) -> None:
    folder = RUNS_FOLDER / name
    print(make_run(Job(complete(RUNS[name]), folder)) or folder)


@torch.no_grad()
def bits_per_bit(folder: Path) -> dict[str, float]:
    """The cost of fresh sequences of each length, and the share of sequences without a wrong bit."""
    trained = load_trained(folder)
    generator = torch.Generator().manual_seed(20)
    results = {"step": trained.step}
    for length in LENGTHS:
        contents = torch.randint(2, (SEQUENCES, length, 8), generator=generator).float()
        batch = trained.task.lay_out(list(contents.numpy()))
        logits, _ = trained.model(batch.inputs)
        bits = cost_of(trained.task, logits, batch).bits.sum().item()
        wrong = (((logits > 0) != (batch.targets > 0.5)).any(-1) & batch.mask).any(0)
        results[f"length {length}"] = bits / contents.numel()
        results[f"without error {length}"] = 1 - wrong.float().mean().item()
    return results


def collect() -> None:
    for name in RUNS:
        source, target = RUNS_FOLDER / name, RESULTS / name
        if not (source / "log.jsonl").exists():
            continue
        target.mkdir(parents=True, exist_ok=True)
        for file in KEPT:
            shutil.copy(source / file, target / file)
        if read_config(source).task == "ntm-copy":
            (target / "lengths.json").write_text(json.dumps(bits_per_bit(source), indent=2) + "\n")
        print(target)


def first(log: list[dict], key: str, limit: float) -> str:
    """The first logged interval whose mean is below ``limit``."""
    return next((f"{line['step']:,}" for line in log if line[key] < limit), "never")


def page() -> str:
    """The tables as Markdown, from the recorded logs alone."""
    logs = {path.parent.name: read_log(path.parent) for path in sorted(RESULTS.glob("*/log.jsonl"))}
    configs = {name: read_config(RESULTS / name) for name in logs}
    lines = [
        "# What the baselines learn",
        "",
        "Made by `python benchmarks/baselines_learn.py table` from the logs beside this file. Adam, no clipping.",
        "Every run that was made of these networks is here, also where it stopped early.",
        "",
        "## Copy: 10 of 8 characters, 100 blanks, minibatch 2, cost over the whole sequence",
        "",
        "| network | learning rate | answer below 1 bit (chance: 30) at minibatch | answer at the end, bits |",
        "| --- | --- | --- | --- |",
    ]
    for name, log in logs.items():
        config = configs[name]
        if config.task == "copy":
            answer = f"{log[-1]['answer']:.2g} at {log[-1]['step']:,}"
            lines.append(
                f"| {config.model} | {config.learning_rate:g} | {first(log, 'answer', 1)} | {answer} |"
            )
    lengths = [f"{length}" for length in LENGTHS]
    lines += [
        "",
        "## The NTM's own copy task: 1 to 20 vectors of 8 bits, minibatch 1, controller 100, one head, 128 x 20",
        "",
        "Bits per bit in training: the mean of an interval of 500 sequences. After training, on 200 fresh sequences",
        "of each length: bits per bit, and how many of the sequences have no wrong bit. Lengths above 20 were never",
        "trained.",
        "",
        "| learning rate, seed | below 0.01 at sequence | at the end | length "
        + " | length ".join(lengths)
        + " |",
        "| --- | --- | --- |" + " --- |" * len(LENGTHS),
    ]
    for name, log in logs.items():
        config = configs[name]
        if config.task != "ntm-copy":
            continue
        tested = json.loads((RESULTS / name / "lengths.json").read_text())
        cells = [f"{tested[f'length {k}']:.2g} ({tested[f'without error {k}']:.0%})" for k in LENGTHS]
        end = f"{log[-1]['cost'] / BITS_PER_SEQUENCE:.2g} at {log[-1]['step']:,}"
        below = first(log, "cost", 0.01 * BITS_PER_SEQUENCE)
        lines.append(
            f"| {config.learning_rate:g}, {config.seed} | {below} | {end} | " + " | ".join(cells) + " |"
        )
    lines += [
        "",
        "## The paper's NTM on the online tasks: controller 384, four heads, minibatch 1",
        "",
        "Training stops at the first cost or gradient that is not finite.",
        "",
        "| task | minibatches | all finite | cost, bits per scored symbol | largest mean gradient norm |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, log in logs.items():
        config = configs[name]
        if config.model != "ntm" or config.task == "ntm-copy":
            continue
        finite = all(math.isfinite(value) for line in log for value in line.values() if value is not None)
        norm = max(line["gradient_norm"] for line in log)
        lines.append(
            f"| {config.task} | {log[-1]['step']:,} | {'yes' if finite else 'no'} "
            f"| {log[-1]['cost']:.3f} | {norm:.3g} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("train", "collect", "table"))
    parser.add_argument("names", nargs="*", help=f"runs to train (default: all): {', '.join(RUNS)}")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in RUNS:
            parser.error(f"unknown run {name!r}: there are {', '.join(RUNS)}")
    if arguments.what == "train":
        for name in arguments.names or RUNS:
            run(name)
    elif arguments.what == "collect":
        collect()
    else:
        (RESULTS / "README.md").write_text(page())
        print(RESULTS / "README.md")


if __name__ == "__main__":
    main()
