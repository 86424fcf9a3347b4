"""A small folder of runs with everything a page must cope with."""

import pytest

from associative_lstm.lab.run.config import complete
from made_runs import sweep_run, write_curve, write_lines, write_run


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Finished curves on copy and XML; one with a seed missing, one in its sweep, one diverging; and Wikipedia."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    write_curve(folder, "copy", "permutation-rnn-256", level=0.01)
    write_curve(folder, "copy", "lstm-128", level=60.0)
    write_curve(folder, "xml", "lstm-128", level=1.2)
    write_curve(folder, "xml", "associative-lstm-1", level=0.3)
    write_curve(folder, "xml", "associative-lstm-4", level=0.05, seeds=(0, 1))
    sweep_run(folder, "xml", "associative-lstm-8", 3e-4)
    sweep_run(folder, "xml", "associative-lstm-8", 1e-3, logged=20)
    sweep_run(folder, "xml", "lstm-512", 1e-2, logged=30, diverged="stopped at step 3001: not finite")
    wikipedia = {"task": "wikipedia", "model": "lstm", "hidden_size": 256, "layers": 3, "steps": 60_000}
    run = write_run(folder / "wikipedia/lstm-3x256/lr0.001-seed0", complete(wikipedia), level=2.0)
    write_lines(
        run / "test.jsonl", [{"step": s, "cost": 2.5 - s / 1e5, "symbols": 100} for s in (20_000, 40_000)]
    )
    return folder
