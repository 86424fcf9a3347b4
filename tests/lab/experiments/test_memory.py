"""The reproduction of section 3 and of the tables, in a tiny form, through the command where it has one."""

import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from associative_lstm.lab import cli
from associative_lstm.lab.bench import speed
from associative_lstm.lab.bench.timing import Timing
from associative_lstm.lab.experiments import tables
from associative_lstm.lab.experiments.claim import judge, read_claims, write_claims
from associative_lstm.lab.experiments.memory import capacity, fig1_images, fig2_error, properties
from associative_lstm.lab.experiments.memory.bindings import BINDINGS, retrieve
from associative_lstm.lab.experiments.registry import EXPERIMENTS
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.recipes import PRESETS
from associative_lstm.memory import HolographicMemory, expected_error


def picture(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_figure_1(tmp_path: Path) -> None:
    outcome = fig1_images.run(tmp_path / "new" / "folder", count=3)
    png, data, claims = outcome.written
    assert picture(png)[0] > 900
    assert png.stat().st_size < 1_000_000
    table = rows(data)
    assert len(table) == 3
    for row in table:
        assert float(row["mse_20_copies"]) < float(row["mse_4_copies"]) < float(row["mse_1_copies"])
    assert read_claims(claims) == outcome.claims
    assert outcome.claims[0].verdict == "holds"


def test_figure_1_from_a_folder_through_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "images").mkdir()
    arguments = ["reproduce", "fig1", "--images", str(tmp_path / "images"), "--out", str(tmp_path / "out")]
    assert cli.main(arguments) == 1
    assert "20 photographs are needed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    for k in range(20):
        Image.new("RGB", (30, 20), (10 * k, 100, 200)).save(tmp_path / "images" / f"{k}.png")
    (tmp_path / "images" / "broken.png").write_bytes(b"")
    assert cli.main([*arguments, "--seed", "3"]) == 0
    printed = capsys.readouterr()
    assert "holds" in printed.out
    assert printed.out.rstrip().endswith("claims.json")


def test_figure_2(tmp_path: Path) -> None:
    done: list[None] = []
    outcome = fig2_error.run(tmp_path, draws=2, largest=6, advance=lambda: done.append(None))
    assert len(done) == 2
    assert picture(tmp_path / "fig2.png")[0] > 900
    table = rows(tmp_path / "fig2.csv")
    assert len(table) == 3 * 6 * 2
    for row in table:
        assert float(row["mse"]) == pytest.approx(float(row["expected"]), rel=0.05, abs=1e-9)
    slope, _, flat, agrees = outcome.claims
    assert slope.verdict == agrees.verdict == "holds"
    assert slope.numbers["slope"] == pytest.approx(-1, abs=0.02)
    assert flat.verdict == "undecided"  # six images do not reach the plateau
    assert json.loads((tmp_path / "cost.json").read_text()) == outcome.cost
    assert set(outcome.cost) == {"seconds", "processor_seconds", "peak_mebibytes"}
    assert 10 < outcome.cost["peak_mebibytes"] < 2**20  # the unit is right
    claims = (tmp_path / "claims.json").read_bytes()
    fig2_error.run(tmp_path, draws=2, largest=6)
    assert (tmp_path / "claims.json").read_bytes() == claims  # nothing in it depends on the clock


def test_the_verdicts_of_figure_2_can_fail() -> None:
    grid = [1, 2, 4, 8, 50, 100]
    wrong = {
        "copies": {n: [(n**-0.5, 1 / n)] for n in grid},  # the error falls too slowly
        "images": {n: [(n**2.0, float(n))] for n in grid},  # not linear
        "both": {n: [(float(n), 1.0)] for n in grid},  # not flat
    }
    assert [claim.verdict for claim in fig2_error.judge_panels(wrong, 50)] == ["fails"] * 4


def test_properties(tmp_path: Path) -> None:
    scale = properties.Scale(images=8, copies=20, draws=1, fractions=(0.01, 0.05, 0.25, 1.0))
    outcome = properties.run(tmp_path, scale=scale)
    assert {path.name for path in outcome.written} == {
        *(
            f"{name}.{kind}"
            for name in ("copies", "partial_keys", "items", "binding")
            for kind in ("csv", "png")
        ),
        "claims.json",
    }
    assert all(picture(path)[0] > 800 for path in outcome.written if path.suffix == ".png")
    assert [claim.verdict for claim in outcome.claims] == ["holds"] * 4
    for row in rows(tmp_path / "copies.csv"):
        assert float(row["gain"]) == pytest.approx(1, abs=0.05)
    for row in rows(tmp_path / "partial_keys.csv"):
        assert float(row["mse"]) == pytest.approx(float(row["expected"]), rel=0.1, abs=0.02)


@pytest.mark.parametrize("name", BINDINGS)
def test_bindings_read_what_was_written(name: str) -> None:
    """The read is the value plus noise of no preference: its component along the value is the value."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 2000, generator=generator)
    reads = torch.stack([retrieve(name, x, 10, generator) for _ in range(20)])
    gain = (reads * x[0]).sum(-1) / x[0].square().sum()
    assert gain.mean().item() == pytest.approx(1, abs=0.05)
    if "inverse" in name or "unit" in name:
        torch.testing.assert_close(retrieve(name, x[:1], 3, generator), x[0], atol=1e-3, rtol=1e-3)


def test_parameters_are_the_papers_but_for_the_known_remainder() -> None:
    ours = {1: [72_714, 1_077_258, *[65_226] * 3, 5_642, 6_666, 10_506]}
    ours[2] = [117_328, 1_255_504, *[130_704] * 3, *[774_800] * 3]
    for number, counts in ours.items():
        entries = tables.TABLES[number - 1].measure(steps=0, seed=0)
        assert [entry.parameters for entry in entries] == counts
        assert "unknown" not in {entry.known for entry in entries}
        by_verdict = {
            claim.sentence: claim.verdict for claim in tables.judge_entries(entries, embedded=number == 1)
        }
        assert (
            by_verdict.pop("The networks are as fast, relative to each other, as in the table.")
            == "undecided"
        )
        assert set(by_verdict.values()) == {"holds"}


def test_a_table_is_counted_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reproduce", "table3", "--steps", "0", "--out", str(tmp_path)]) == 0
    assert "NTM" in capsys.readouterr().out
    entries = json.loads((tmp_path / "table3.json").read_text())
    assert entries[0]["parameters"] == 1_255_504
    assert (tmp_path / "table3.md").read_text().count("\n| ") == len(entries) + 2
    assert len(read_claims(tmp_path / "claims.json")) == 3


def test_a_table_is_timed_by_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """In turns with the first network: however fast it was beside the others, a ratio is to what it was then."""
    turns = itertools.count(1)

    def in_turns(steps: dict, *, seconds: float, least: int) -> dict[str, Timing]:
        assert list(steps) == ["base", "other"]
        assert least == 3
        k = next(turns)
        return {"base": Timing((1.0, 2.0, 3.0)), "other": Timing((k * 1.0, k * 2.0, k * 3.0))}

    monkeypatch.setattr(speed, "in_turns", in_turns)
    monkeypatch.setattr(speed, "_checked", lambda candidate, x: 0.0)
    done: list[None] = []
    entries = tables.TABLES[0].measure(steps=3, seed=0, advance=lambda: done.append(None))
    assert [entry.speed for entry in entries] == pytest.approx([1.0, *(1 / k for k in range(1, 8))])
    assert [entry.seconds for entry in entries] == pytest.approx([2.0, *(2.0 * k for k in range(1, 8))])
    assert [entry.paper_speed for entry in entries] == [1.0, 0.18, 0.22, 0.16, 0.12, 2.05, 0.24, 0.23]
    assert len(done) == 7


@pytest.mark.parametrize("table", tables.TABLES)
def test_the_networks_of_a_table_are_those_that_the_benchmark_times(table: tables.Table) -> None:
    timed = [table.timed.base, *table.timed.others]
    for row, candidate in zip(table.rows, timed, strict=True):
        config = complete({"task": table.task, **PRESETS[row.preset]})
        assert candidate.options["hidden_size"] == config.hidden_size
        if config.model == "associative-lstm":
            kept = {"copies": "num_copies", "heads": "num_heads"}
            assert all(candidate.options[theirs] == (getattr(config, o) or 1) for o, theirs in kept.items())
            assert candidate.options.get("recurrent_update", True) == config.recurrent_update


def test_claims_survive_the_disk(tmp_path: Path) -> None:
    claims = [judge("a", "b", None), judge("c", "d", True, x=1.5), judge("e", "f", False, what="ever")]
    assert read_claims(write_claims(tmp_path / "claims.json", claims, seed=1)) == claims
    assert [claim.verdict for claim in claims] == ["undecided", "holds", "fails"]


@pytest.mark.parametrize("permutation", ["random", "shift"])
@pytest.mark.parametrize(
    ("items", "size", "error", "power"), [(50, 1000, 0.3, 1.0), (2, 10, 0.5, 0.1), (1, 2, 1.0, 1.0)]
)
def test_capacity_is_the_fewest_copies(
    items: int, size: int, error: float, power: float, permutation: str
) -> None:
    plan = capacity.plan(items, size, error, power, permutation)
    about: Any = {"size": size, "power": power, "permutation": permutation}
    assert plan.enough
    assert expected_error(items, plan.copies, **about) <= error
    if plan.copies > 1:
        assert expected_error(items, plan.copies - 1, **about) > error


def test_capacity_of_shifts_ends_with_as_many_copies_as_there_are() -> None:
    plan = capacity.plan(11, 64, 0.2, permutation="shift")
    assert not plan.enough
    assert plan.copies == 32
    assert plan.expected == pytest.approx(plan.floor) == pytest.approx(10 / 32)
    size = capacity.size_needed(11, 0.2, permutation="shift")
    assert capacity.plan(11, size, 0.2, permutation="shift").enough
    assert not capacity.plan(11, size - 2, 0.2, permutation="shift").enough


def test_capacity_counts_the_bytes_of_a_memory() -> None:
    plan = capacity.plan(50, 200, 0.7)
    memory = HolographicMemory(plan.size, plan.copies, dtype=torch.float32)
    assert plan.bytes == memory.traces.nbytes + memory.permutations.nbytes


def test_capacity_knows_what_no_number_of_copies_can_do() -> None:
    plan = capacity.plan(1000, 1024, 0.05)
    assert not plan.enough
    assert expected_error(1000, 10**9, size=1024) == pytest.approx(plan.floor, rel=1e-3)
    assert plan.floor > 0.05
    size = capacity.size_needed(1000, 0.05)
    best = capacity.plan(1000, size, 0.05)
    assert best.enough
    for other in (size * 3 // 4 // 2 * 2, size * 4 // 3 // 2 * 2):
        assert best.bytes <= capacity.plan(1000, other, 0.05).bytes


def test_capacity_tried_out_gives_the_expected_error() -> None:
    z = []
    for seed in range(12):
        plan = capacity.plan(30, 400, 0.7, 2.0, ("random", "shift")[seed % 2])
        trial = capacity.try_out(plan, seed=seed)
        z.append((trial.error - plan.expected) / trial.deviation)
    assert abs(sum(z)) / math.sqrt(len(z)) < 3.5
    assert (
        0.3 < sum(value**2 for value in z) / len(z) < 2.5
    )  # the deviation is neither too large nor too small


def test_capacity_through_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["capacity", "--items", "20", "--size", "200", "--error", "0.5"]) == 0
    assert "error measured" in capsys.readouterr().out
    assert cli.main(["capacity", "--items", "1000", "--size", "64", "--error", "0.05"]) == 0
    assert "No number of copies" in capsys.readouterr().out
    assert cli.main(["capacity", "--items", "20", "--size", "200", "--error", "0.5", "--limit", "0"]) == 0
    assert "not tried out" in capsys.readouterr().out
    for bad in (
        ["--size", "201", "--error", "0.5"],
        ["--size", "200", "--error", "-1"],
        ["--size", "200", "--error", "nan"],
        ["--size", "200", "--error", "1", "--permutation", "reverse"],
    ):
        assert cli.main(["capacity", "--items", "20", *bad]) == 1
        assert capsys.readouterr().err.count("\n") == 1


def test_every_figure_and_table_has_help_with_an_example_and_a_seed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["reproduce"]) == 0
    assert "fig1" in capsys.readouterr().out
    for command in [experiment.name for experiment in EXPERIMENTS]:
        assert cli.main(["reproduce", command, "--help"]) == 0
        text = capsys.readouterr().out
        assert f"Example: alstm reproduce {command}" in text
        assert "--seed" in text
