"""The benchmark end to end in a tiny form, and its refusal to tell the speed of something wrong."""

import json
import os
import subprocess
import sys

import pytest
import torch

from associative_lstm.kernels.compiler import target
from associative_lstm.lab.bench import narrow_vectors, networks, speed
from associative_lstm.lab.bench.growth import exponent
from associative_lstm.lab.bench.timing import Timing
from associative_lstm.lab.cli import main


def tiny(title="tiny", training=True):
    others = [networks.associative(8, 2), networks.associative(8, 2, heads=2, layers=2)]
    return speed.Group(title, 5, 3, 4, networks.torch_lstm(8), others, [0.5, None], training)


@pytest.mark.parametrize("training", [True, False])
def test_a_group_is_measured_against_its_first_network(training):
    result = speed.measure(tiny(training=training), 1, 0.01)
    assert [row["network"] for row in result["rows"]] == [
        "nn.LSTM 8",
        "Associative LSTM 8, 2 copies",
        "Associative LSTM 2 x 8, 2 heads, 2 copies",
    ]
    base, first, second = result["rows"]
    assert base["speed"] == 1
    assert first["speed"] > 0
    assert (first["paper"], second["paper"]) == (0.5, None)
    assert first["disagreement"] < 1e-5
    for row in speed.against_itself(tiny(training=training), 1, 0.01):
        assert row["over_reference"] > 0
        assert row["of_products"] > 0


def test_a_machine_that_slows_down_between_turns_counts_for_neither(monkeypatch):
    slower = {"base": Timing((0.004, 0.040, 0.090)), "other": Timing((0.002, 0.020, 0.030))}
    monkeypatch.setattr(speed, "in_turns", lambda *_, **__: slower)
    row = speed.measure(tiny(), 1, 0.01)["rows"][1]
    assert row["speed"] == pytest.approx(2)
    assert row["milliseconds"] == pytest.approx(20)
    assert row["against"]["milliseconds"] == pytest.approx(40)


def test_no_speed_is_told_when_fast_path_and_reference_differ(monkeypatch):
    monkeypatch.setattr(networks, "disagreement", lambda candidate, x: 0.01)
    with pytest.raises(
        ValueError, match=r"Associative LSTM 8, 2 copies: fast path and reference differ by 1.0e-02"
    ):
        speed.measure(tiny(), 1, 0.01)


def test_disagreement_sees_a_wrong_fast_path():
    class Wrong(networks.ours.AssociativeLSTM):
        def forward(self, x, state=None):
            output, state = super().forward(x, state)
            return (output * 1.001 if self.backend == "fused" else output), state

    wrong = networks.Candidate("wrong", Wrong, {"hidden_size": 8})
    assert networks.disagreement(wrong, torch.randn(5, 2, 3)) > 5e-4


def test_exponent_of_a_square_law():
    assert exponent([1, 2, 4], [1.0, 4.0, 16.0]) == pytest.approx(2)


def test_the_command_writes_figures_and_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "TABLES", [tiny()])
    out = tmp_path / "bench"
    assert main(["bench", "--part", "tables", "--threads", "1", "--seconds", "0.01", "--out", str(out)]) == 0
    results = json.loads((out / "bench.json").read_text())
    (group,) = results["groups"]
    assert group["against"] == "nn.LSTM 8"
    assert "| Associative LSTM 8, 2 copies |" in (out / "bench.md").read_text()
    assert {"CPU", "compiled for", "vector bytes", "vector registers", "commit"} <= results["versions"].keys()
    assert results["versions"]["vector bytes"] == target.VECTOR_BYTES


def test_narrower_vectors_are_measured_and_said_to_be(tmp_path, monkeypatch):
    group = speed.measure(tiny(), 1, 0.01) | {"vector_bytes": 32}
    monkeypatch.setattr(narrow_vectors, "possible", lambda: True)
    monkeypatch.setattr(narrow_vectors, "groups", lambda *asked: [group])
    assert main(["bench", "--part", "narrower", "--threads", "1", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "bench.md").read_text()
    assert "## tiny: training step, T 5, B 3, 1 thread, held to vectors of 32 bytes" in page
    assert "measured on this same machine" in page


@pytest.mark.skipif(
    not narrow_vectors.possible(), reason="the CPU has no wider vectors, or is not of that family"
)
def test_a_process_is_held_to_narrower_vectors():
    program = """
import torch
from associative_lstm.kernels.compiler.target import VECTOR_BYTES
from associative_lstm.lab.bench import narrow_vectors
print(VECTOR_BYTES, torch.backends.cpu.get_cpu_capability(), narrow_vectors.possible())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | narrow_vectors.AVX2,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["32", "AVX2", "False"]


def test_what_fails_there_is_told():
    with pytest.raises(
        RuntimeError, match=r"the benchmark with narrower vectors failed: .*expected one of tables"
    ):
        narrow_vectors.groups(["no such part"], [1], 0.01, 0)


def test_an_unknown_part_is_named(capsys):
    assert main(["bench", "--part", "speeed"]) == 1
    assert "expected one of tables" in capsys.readouterr().err
