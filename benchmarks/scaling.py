"""What it costs to send runs to a cluster or to share one out, and what the whole reproduction would take.

python benchmarks/scaling.py ray        the overhead of a run, and of its steps, on a Ray cluster of this machine
python benchmarks/scaling.py torchrun   steps of one run by one process and by two
python benchmarks/scaling.py plan       processor time, traffic and storage of every run of the paper, with 10 seeds

Each writes results/scaling/PART.json and prints it. Times are of the machine that the script runs on.
"""

import argparse
import io
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from associative_lstm.lab.experiments.learning.curves import Curve
from associative_lstm.lab.experiments.learning.figures import FIGURES
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import read_log, versions
from associative_lstm.lab.run.recipes import PRESETS
from associative_lstm.lab.run.step import Trainer, make_fabric
from associative_lstm.lab.sweep import cluster
from associative_lstm.lab.sweep.jobs import Job, run_grid
from associative_lstm.lab.sweep.local import local
from associative_lstm.lab.tasks import Wikipedia

OUT = Path(__file__).parent.parent / "results" / "scaling"
SEEDS, MACHINES = 10, 100
NETWORK = PRESETS["associative-lstm-4"] | {"task": "assignment", "log_every": 100, "checkpoint_every": 200}


def ray_overhead() -> dict[str, Any]:
    """Wall time of runs of one step here and there, and the training seconds of longer ones, in turns."""
    received = [0]
    original = cluster.apply

    def counted(changes: cluster.Changes, folder: Path) -> None:
        received[0] += sum(len(data) for _, data in changes.grown.values())
        original(changes, folder)

    cluster.apply = counted
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)

        def timed(execute: Any, steps: int, name: str) -> float:
            job = Job(complete(NETWORK | {"steps": steps}), base / name)
            start = time.perf_counter()
            assert run_grid([job], execute) == []
            return time.perf_counter() - start

        def per_step(name: str) -> float:
            log = {line["step"]: line["seconds"] for line in read_log(base / name)}
            return (log[800] - log[100]) / 700

        timed(local(1), 1, "warm")
        start = time.perf_counter()
        with cluster.ray_cluster(workers=1) as there:
            started = time.perf_counter() - start
            first = timed(there, 1, "first")
            runs = {"local": [], "ray": []}
            for k in range(7):
                runs["local"].append(timed(local(1), 1, f"local-{k}"))
                runs["ray"].append(timed(there, 1, f"ray-{k}"))
            received[0] = 0
            steps = {"local": [], "ray": []}
            for k in range(3):
                for name, execute in (("local", local(1)), ("ray", there)):
                    timed(execute, 800, f"{name}-long-{k}")
                    steps[name].append(per_step(f"{name}-long-{k}"))
    run, step = ({k: statistics.median(v) for k, v in d.items()} for d in (runs, steps))
    return {
        "seconds_to_start_the_cluster": started,
        "seconds_of_a_run_of_one_step_local": run["local"],
        "seconds_of_a_run_of_one_step_ray": run["ray"],
        "overhead_of_a_run_seconds": run["ray"] - run["local"],
        "overhead_of_a_run_in_a_new_worker_seconds": first - run["local"],
        "milliseconds_of_a_step_local": 1e3 * step["local"],
        "milliseconds_of_a_step_ray": 1e3 * step["ray"],
        "step_ratio": step["ray"] / step["local"],
        "bytes_received_per_run_of_800_steps": received[0] // 3,
    } | _driver()


def _driver() -> dict[str, float]:
    """Milliseconds that the driver takes to write what a worker sends: lines of a log, and checkpoints."""
    found = {}
    with tempfile.TemporaryDirectory(dir=".") as temporary:
        folder = Path(temporary)
        (folder / "log.jsonl").write_bytes(bytes(10_000))
        for label, size in (
            ("log_lines", 0),
            ("checkpoint_of_1_4_MB", 1_400_000),
            ("checkpoint_of_22_MB", 22_000_000),
        ):
            times = []
            for k in range(15):
                name = f"checkpoint-{k:08d}-{k:016x}.pt"
                grown = {"log.jsonl": (10_000, bytes(300))} | ({name: (0, bytes(size))} if size else {})
                start = time.perf_counter()
                cluster.apply(cluster.Changes(grown, [name] if size else []), folder)
                times.append(time.perf_counter() - start)
            found[f"driver_milliseconds_per_{label}"] = 1e3 * statistics.median(times)
    return found


def torchrun_steps() -> dict[str, Any]:
    """Milliseconds of a step on Wikipedia by one process and by two that share its minibatch of 10."""
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        for copies in (1,):
            for processes in (1, 2):
                folder = Path(temporary) / f"{copies}-{processes}"
                options = (
                    f"--preset wikipedia-associative-lstm-{copies} --steps 60 --log-every 10 --out {folder}"
                )
                launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
                command = [sys.executable, *(launcher if processes > 1 else [])]
                command += ["-m", "associative_lstm.lab.cli", "train", "wikipedia", *options.split()]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(done.stderr)
                log = {line["step"]: line["seconds"] for line in read_log(folder)}
                found[f"milliseconds_{processes}_processes"] = 1e3 * (log[60] - log[10]) / 50
        one, two = found["milliseconds_1_processes"], found["milliseconds_2_processes"]
        config = complete({"task": "wikipedia"} | PRESETS["wikipedia-associative-lstm-1"])
        parameters = sum(p.numel() for p in Trainer(config, make_fabric()).model.parameters())
    return found | {"speedup": one / two, "gradient_bytes_per_step": 4 * parameters}


def plan() -> dict[str, Any]:
    """Processor seconds of a step and the size of a checkpoint of every curve, and what they add up to."""
    curves = list(dict.fromkeys(c for figure in FIGURES for panel in figure.panels for c in panel.curves))
    rows = [_row(curve) for curve in curves]
    for row in rows:
        print(json.dumps(row), file=sys.stderr, flush=True)
    runs = [time for row in rows for time in row["run_hours"]]
    hours = sum(runs)
    longest = max(row["sweep_run_hours"] + row["whole_run_hours"] for row in rows)
    return {
        "seeds": SEEDS,
        "curves": len(rows),
        "runs": len(runs),
        "processor_hours": hours,
        "longest_chain_hours": longest,
        "hours_on_machines_of_one_core_at_best": max(hours / MACHINES, longest),
        "machines": MACHINES,
        "checkpoint_traffic_gigabytes": sum(row["checkpoint_bytes"] * row["checkpoints"] for row in rows)
        / 1e9,
        "storage_with_two_checkpoints_gigabytes": sum(
            2 * row["checkpoint_bytes"] * len(row["run_hours"]) for row in rows
        )
        / 1e9,
        "log_megabytes": sum(row["log_lines"] for row in rows) * 150 / 1e6,
        "rows": [{k: v for k, v in row.items() if k != "run_hours"} for row in rows],
    }


def _row(curve: Curve) -> dict[str, Any]:
    config = curve.config(curve.rates[0], 0, curve.steps)
    trainer = Trainer(config, make_fabric())
    times = []
    for _ in range(12):
        start = time.process_time()
        trainer.train_step()
        times.append(time.process_time() - start)
    seconds = statistics.median(times[2:])
    buffer = io.BytesIO()
    torch.save({"trainer": trainer.save()}, buffer)
    tests = 0.0
    if isinstance(trainer.task, Wikipedia):
        tests = (
            6 * trainer.task.length("test") / 1000 * seconds / 3
        )  # forward alone is about a third of a step
    sweep = curve.sweep_steps * seconds / 3600
    whole = (curve.steps * seconds + tests) / 3600
    # One run of the sweep becomes the first seed's whole run.
    run_hours = [sweep] * (len(curve.rates) - 1) + [whole] * SEEDS
    steps = curve.sweep_steps * (len(curve.rates) - 1) + curve.steps * SEEDS
    return {
        "task": curve.task,
        "network": curve.network.name,
        "milliseconds_of_a_step": 1e3 * seconds,
        "sweep_run_hours": sweep,
        "whole_run_hours": whole,
        "checkpoint_bytes": buffer.getbuffer().nbytes,
        "checkpoints": steps // config.checkpoint_every,
        "log_lines": steps // config.log_every,
        "run_hours": run_hours,
    }


def main() -> None:
    parts = {"ray": ray_overhead, "torchrun": torchrun_steps, "plan": plan}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=parts)
    part = parser.parse_args().part
    torch.set_num_threads(1)
    result = parts[part]() | {"versions": versions()}
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{part}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k not in ("rows", "versions")}, indent=1))
    print(f"wrote {OUT / f'{part}.json'}")


if __name__ == "__main__":
    main()
