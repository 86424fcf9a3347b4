"""`make torture`, or ``PYTHONPATH=tests python -m torture --kills 1000 --inputs 10000``.

Ctrl-C ends it with its summary. A broken rule is kept in the folder --out and can be repeated by its case:
``python -m torture --repeat inputs:0:17``.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import random
import re
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from torture import inputs, kills
from torture.server import Place, Server, die_with_parent, entry_point


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000, help="kills in all")
    parser.add_argument("--inputs", type=int, default=10_000, help="inputs in all")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after so long at the latest")
    parser.add_argument("--seed", type=int, default=0, help="decides what is tried")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--runs", default=",".join(kills.RUNS), help="the runs to be killed (default: all)")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/torture"), help="a folder for the broken rules"
    )
    parser.add_argument("--repeat", nargs="+", default=[], metavar="CASE", help="only these cases")
    parser.add_argument("--entry", default=entry_point(), help="the command, as module:function")
    return parser.parse_args()


class Worker:
    """A process that takes cases, one at a time, and reports each."""

    def __init__(self, chosen: argparse.Namespace, server: Server, scratch: Path, shared: Any) -> None:
        self.chosen, self.server, self.scratch, (self.references, self.templates) = (
            chosen,
            server,
            scratch,
            shared,
        )
        theirs, self.cases = os.pipe()
        self.reports, ours = os.pipe()
        self.busy, self.text = 0, b""
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()  # Ctrl-C is for the harness, which then ends its workers
            die_with_parent(signal.SIGTERM)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            try:
                with open(theirs) as cases:
                    for line in cases:
                        os.write(ours, json.dumps(self.report(line.strip())).encode() + b"\n")
            except SystemExit:
                pass
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(theirs)
        os.close(ours)

    def report(self, case: str) -> dict[str, Any]:
        try:
            return self.work(case)
        except Exception as error:
            traceback.print_exc()
            broken = [f"the harness itself: {error!r}"]
            kind = case.partition(":")[0]
            return {"kind": kind, "case": case, "what": "harness", "broken": broken, "counts": {}}

    def work(self, case: str) -> dict[str, Any]:
        kind = case.partition(":")[0]
        rng = random.Random(case)
        if kind == "kills":
            told = kills.story(self.server, self.references, self.scratch, rng, rng.randint(4, 14))
            place, broken, about, counts, what = told.place, told.broken, told.events, told.counts, told.name
        else:
            one, what, broken, counts = inputs.one(self.server, self.templates, self.scratch, rng)
            place, about = one.place, [f"alstm {' '.join(map(repr, one.arguments))}", *one.doings]
        if broken:
            target = self.chosen.out / case.replace(":", "-")
            self.keep(place, target, {"case": case, "broken": broken, "what": what, "about": about})
        place.remove()
        return {"kind": kind, "case": case, "what": what, "broken": broken, "counts": counts}

    @staticmethod
    def keep(place: Place, target: Path, description: dict[str, Any]) -> None:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        (target / "case.json").write_text(json.dumps(description, indent=1))
        with contextlib.suppress(shutil.Error):  # pipes are not copied
            shutil.copytree(place.folder, target / "place", symlinks=True)


class Harness:
    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen = chosen
        self.begun = time.monotonic()
        self.counts: Counter[str] = Counter()
        self.broken: dict[str, list[str]] = {}
        self.done: Counter[str] = Counter()
        self.given: Counter[str] = Counter()
        self.cases = list(chosen.repeat)

    def next_case(self) -> str | None:
        """The case to be tried next: of the kind of which a smaller share is done."""
        chosen = self.chosen
        if chosen.repeat:
            return self.cases.pop(0) if self.cases else None
        if time.monotonic() - self.begun > 60 * chosen.minutes:
            return None
        # A run that is being killed counts as the kills it will probably come to.
        due = {"kills": self.done["kills"] + 5 * self.given["kills open"], "inputs": self.given["inputs"]}
        shares = {kind: due[kind] / wanted for kind, wanted in vars(chosen).items() if kind in due and wanted}
        kind = min(shares, key=lambda kind: shares[kind], default=None)
        if kind is None or shares[kind] >= 1:
            return None
        self.given[kind] += 1
        self.given[f"{kind} open"] += 1
        return f"{kind}:{chosen.seed}:{self.given[kind]}"

    def report(self, text: bytes) -> None:
        told = json.loads(text)
        kind, counts = told["kind"], Counter(told["counts"])
        self.given[f"{kind} open"] -= 1
        self.counts.update({f"{kind}: {name}": count for name, count in counts.items()})
        self.done[kind] += sum(counts[s.name] for s in kills.SIGNALS) if kind == "kills" else 1
        self.done["runs"] += counts["runs compared"]
        for sentence in dict.fromkeys(told["broken"]):
            known = f"{kind if kind == 'kills' else told['what']}: {re.sub(r'[0-9]+', 'N', sentence)}"
            if known not in self.broken:
                print(f"BROKEN {told['case']} ({told['what']}): {sentence}", flush=True)
            self.broken.setdefault(known, []).append(told["case"])

    def line(self) -> str:
        minutes = (time.monotonic() - self.begun) / 60
        found = sum(map(len, self.broken.values()))
        return (
            f"{minutes:.1f} min: {self.done['kills']:,} kills, {self.done['runs']:,} killed runs finished and "
            f"compared, {self.done['inputs']:,} inputs; rules broken: {found}"
        )

    def run(self, workers: list[Worker]) -> None:
        spoken = time.monotonic()
        for worker in workers:
            self.give(worker)
        while any(worker.busy for worker in workers):
            readable, _, _ = select.select([w.reports for w in workers if w.busy], [], [], 1.0)
            for worker in workers:
                if worker.reports in readable:
                    piece = os.read(worker.reports, 2**16)
                    if not piece:
                        raise SystemExit("a worker died")
                    worker.text += piece
                    while b"\n" in worker.text:
                        line, _, worker.text = worker.text.partition(b"\n")
                        self.report(line)
                        self.give(worker)
            if time.monotonic() - spoken > 15:
                spoken = time.monotonic()
                print(self.line(), flush=True)

    def give(self, worker: Worker) -> None:
        case = self.next_case()
        worker.busy = case is not None
        if case:
            os.write(worker.cases, f"{case}\n".encode())

    def summary(self) -> str:
        """What was done and found: a table that can be pasted, then every rule that was broken."""
        rows = [("kills", self.done["kills"])]
        rows += [(f"- by {s.name}", self.counts[f"kills: {s.name}"]) for s in kills.SIGNALS]
        moments = {
            "delay": "after a delay",
            "event": "as a file changed",
            "operation": "before a file operation",
        }
        rows += [(f"- {words}", self.counts[f"kills: {kind}"]) for kind, words in moments.items()]
        rows += [
            ("killed runs finished, and equal to the bit", self.done["runs"]),
            ("inputs", self.done["inputs"]),
        ]
        rows += [(f"- {family}", self.counts[f"inputs: {family}"]) for family in inputs.FAMILIES]
        ends: Counter[str] = Counter()
        for name, count in self.counts.items():
            ends[name.rpartition(": ")[2]] += count * name.startswith("inputs: ")
        rows += [(f"- {how}", ends[how]) for how in ("done", "refused", "stopped")]
        rows += [("rules broken", sum(map(len, self.broken.values())))]
        minutes = (time.monotonic() - self.begun) / 60
        date = datetime.datetime.now(datetime.UTC).date()
        where = (
            f"{date}, {_processor()}, {os.cpu_count()} cores, {minutes:.0f} minutes, seed {self.chosen.seed}"
        )
        lines = [
            f"| {where} | count |",
            "| --- | ---: |",
            *(f"| {name} | {count:,} |" for name, count in rows),
        ]
        if self.broken:
            lines += [
                "",
                f"Rules broken (kept in {self.chosen.out}; repeat with: python -m torture --repeat CASE):",
            ]
        for known, cases in self.broken.items():
            lines.append(f"- {known}: {len(cases)} times, e.g. {' '.join(cases[:3])}")
        return "\n".join(lines)


def _processor() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def main() -> int:
    chosen = options()
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has it ignored, as in the background
        signal.signal(number, signal.default_int_handler)
    chosen.out = chosen.out.resolve()
    scratch = Path(tempfile.mkdtemp(prefix="torture-"))
    os.environ["MPLCONFIGDIR"] = str(scratch / "matplotlib")
    workers: list[Worker] = []
    harness = Harness(chosen)
    try:
        print("importing everything, compiling kernels, making runs to compare with", flush=True)
        server = Server(chosen.entry)
        server.load()
        references = templates = None
        (scratch / "references").mkdir()
        (scratch / "templates").mkdir()
        wanted = [case.partition(":")[0] for case in chosen.repeat]
        wanted = wanted or [kind for kind in ("kills", "inputs") if vars(chosen)[kind]]
        if "kills" in wanted:
            references = kills.make_references(server, scratch / "references", chosen.runs.split(","))
        if "inputs" in wanted:
            templates = inputs.make_templates(server, scratch / "templates")
        print(f"ready after {time.monotonic() - harness.begun:.0f} seconds", flush=True)
        harness.begun = time.monotonic()
        workers = [
            Worker(chosen, server, scratch, (references, templates)) for _ in range(max(1, chosen.jobs))
        ]
        harness.run(workers)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    finally:
        for worker in workers:
            os.kill(worker.pid, signal.SIGTERM)
            os.waitpid(worker.pid, 0)
        shutil.rmtree(scratch, ignore_errors=True)
    text = harness.summary()
    print(f"{harness.line()}\n\n{text}", flush=True)
    if harness.broken:
        (chosen.out / "summary.md").write_text(text + "\n")
    return 1 if harness.broken else 0


if __name__ == "__main__":
    sys.exit(main())
