"""The learning curves as a whole: what is planned, every figure in small."""

import csv
import dataclasses
import shutil

from associative_lstm.lab.cli import main
from associative_lstm.lab.experiments.claim import read_claims
from associative_lstm.lab.experiments.learning import runs as runs_module
from associative_lstm.lab.experiments.learning.curves import FAST_RATES, NETWORKS, RATES, curve, smoke
from associative_lstm.lab.experiments.learning.runs import Logs, make_runs
from associative_lstm.lab.run.config import task_of
from associative_lstm.lab.run.model import build_model, count_parameters
from associative_lstm.lab.sweep.local import local
from made_curves import CLAIMS, IN_ALL, write_curve, write_run


def test_networks_are_large_where_they_say_so():
    for network in NETWORKS.values():
        task = next(iter(network.steps or ["arithmetic"]))
        config = curve(task, network.name).config(1e-3, 0, 1)
        assert (count_parameters(build_model(config, task_of(config))) > 200_000) == network.large, (
            network.name
        )


def test_small_networks_have_three_seeds_and_the_same_rates_but_at_one_rate():
    planned = [c for figure in IN_ALL.values() for panel in figure.panels for c in panel.curves]
    fast = [c for c in planned if c.network.steps is not None]
    planned = [c for c in planned if c not in fast]
    for c in fast:
        assert len(c.seeds) == (2 if c.network.large else 5 if len(c.rates) > 1 else 3)
        assert min(c.seeds) > (3 if c.network.large else 14)  # others chose the recipe
        assert c.rates == (5e-3,) or (c.rates == FAST_RATES and c.sweep_seed not in c.seeds)
        assert c.sweep_steps == c.steps  # the rate falls towards the end
    for c in planned:
        assert len(c.seeds) == (2 if c.network.large else 3)
        assert c.rates == ((1e-3,) if c.network.name.endswith("-at-one-rate") else RATES)
    assert {rate for c in planned for rate in c.rates} >= {3e-4, 1e-3, 3e-3, 1e-2}


def test_runs_at_one_rate_are_among_those_of_the_network_itself(tmp_path):
    """Its contest, which had ended early, is decided by whole runs, however they came to be made."""
    write_curve(tmp_path, "copy", "associative-lstm-4", 2.0, best=3e-3)
    shutil.rmtree(curve("copy", "associative-lstm-4").folder(tmp_path, 1e-3, 0))
    write_curve(tmp_path, "copy", "associative-lstm-4-at-one-rate", 1.0)
    assert Logs(tmp_path).curve(curve("copy", "associative-lstm-4")).rate == 1e-3


def test_a_run_that_two_curves_ask_for_is_made_once_and_as_long_as_the_longer(tmp_path):
    """The contest asks for a part of the run that is made to compare copies at one rate."""
    network, at_one_rate = (curve("copy", f"associative-lstm-4{end}") for end in ("", "-at-one-rate"))
    for rate, cost in zip(network.rates, (50.0, 2.2, 2.0, 50.0), strict=True):
        write_run(network, tmp_path, rate, 0, lambda step, cost=cost: cost, network.sweep_steps)
    grids = []
    make_runs(tmp_path, [network, at_one_rate], lambda jobs: grids.append(list(jobs)) or [None for _ in jobs])
    shared = network.folder(tmp_path, 1e-3, 0)
    assert [job.config.steps for job in grids[0] if job.folder == shared] == [at_one_rate.steps]


def test_all_that_claims_need_is_made_by_some_figure():
    shown = {c for figure in IN_ALL.values() for panel in figure.panels for c in panel.curves}
    for claim in CLAIMS.values():
        assert set(claim.needed) <= shown, claim.key
    assert {key[0] for key in CLAIMS} == set("123456789")
    assert len(CLAIMS) == sum(len(figure.claims) for figure in IN_ALL.values())


def test_a_figure_is_drawn_while_only_its_last_panel_has_runs(tmp_path):
    write_curve(tmp_path / "runs", "assignment", "associative-lstm-4", 0.5)
    IN_ALL["starts"].draw(tmp_path / "out", Logs(tmp_path / "runs"))
    assert len(list(csv.DictReader((tmp_path / "out" / "starts.csv").read_text().splitlines()))) == 6


def test_smoke_never_writes_among_results(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for options in (["--out", "results"], ["--runs", str(tmp_path / "results" / "runs")]):
        expected = 0 if options[0] == "--out" else 1
        assert main(["reproduce", "fig9", "--smoke", *options]) == expected
    assert "outside" in capfd.readouterr().err
    assert not (tmp_path / "results").exists()


def test_one_progress_for_sweep_and_seeds(tmp_path):
    planned = dataclasses.replace(smoke(curve("xml", "lstm-128")), seeds=(0, 1))
    shown = []
    assert make_runs(tmp_path, [planned], local(1), shown.append) == []
    done = [progress.steps_done for progress in shown]
    assert done == sorted(done)
    assert shown[-1].steps_done == shown[-1].steps
    assert shown[-1].runs_done == shown[-1].runs == 3  # two rates, and the best one with another seed
    expected = 2 * planned.steps + planned.sweep_steps
    assert shown[0].steps == expected <= shown[-1].steps


def test_every_figure_in_small(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "all", "--smoke", "--jobs", "2"]) == 0
    for name, figure in IN_ALL.items():
        folder = tmp_path / "runs/smoke" / name
        pictures = list(folder.glob("*.png"))
        least = 2 * len(figure.panels)  # and of the longer runs by the recipe, where others have made some
        assert least <= len(pictures) <= least + len(figure.long_panels)
        assert all(picture.stat().st_size > 10_000 for picture in pictures)
        claims = read_claims(folder / "claims.json")
        assert [claim.key for claim in claims] == [claim.key for claim in figure.claims]
        rows = list(csv.DictReader((folder / f"{name}.csv").read_text().splitlines()))
        planned = [c for panel in figure.panels for c in panel.curves]
        expected = [c.network.name for c in planned for _ in c.rates[:2]]  # rates, with one seed
        assert [row["network"] for row in rows[: len(expected)]] == expected
        assert not any("not_yet_run" in claim.numbers for claim in claims)
    assert not (tmp_path / "results").exists()
    capfd.readouterr()
    assert main(["reproduce", "fig6", "--smoke"]) == 0  # nothing is left to do
    assert "written: runs/smoke/fig6/fig6.png" in capfd.readouterr().out


def test_figures_are_drawn_from_the_runs_there_are_and_none_is_made(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_curve(tmp_path / "results/runs", "xml", "associative-lstm-4", 0.5)
    before = sorted((tmp_path / "results/runs").rglob("*"))
    assert main(["reproduce", "fig6", "--draw"]) == 0
    assert (tmp_path / "results/fig6/fig6.png").stat().st_size > 10_000
    assert main(["reproduce", "all", "--draw"]) == 0
    drawn = {path.parent.name for path in (tmp_path / "results").glob("*/claims.json")}
    assert drawn == {*IN_ALL, "fig10"}
    assert sorted((tmp_path / "results/runs").rglob("*")) == before
    capfd.readouterr()
    assert main(["reproduce", "fig10", "--draw", "--out", "elsewhere"]) == 0
    assert "written: elsewhere/fig10.png" in capfd.readouterr().out
    for choice in (
        ["fig10", "--smoke"],
        ["fig10", "--steps", "3"],
        ["fig6", "--network", "lstm-128"],
        ["all", "--cluster", "ray"],
    ):
        assert main(["reproduce", choice[0], "--draw", *choice[1:]]) == 1
        assert "--draw makes no runs: leave out what chooses them" in capfd.readouterr().err
    assert main(["reproduce", "fig6", "--draw", "--runs", "nowhere"]) == 1
    assert "nowhere is not a folder of runs" in capfd.readouterr().err


def test_the_fast_recipe_of_one_network_is_made_alone(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chosen = ["--recipe", "fast", "--network", "fast-associative-lstm-4"]
    assert main(["reproduce", "fig6", "--smoke", *chosen]) == 0
    made = {path.parent.parent.name for path in (tmp_path / "runs/smoke/runs").rglob("config.toml")}
    assert made == {"fast-associative-lstm-4"}
    capfd.readouterr()
    assert main(["reproduce", "fig6", "--smoke", "--network", "fast-associative-lstm-4"]) == 1
    assert "network must be one of lstm-128, " in capfd.readouterr().err


def test_a_curve_is_read_once_for_picture_and_claims(tmp_path, monkeypatch):
    for copies in (1, 4, 8):
        write_curve(tmp_path / "runs", "xml", f"associative-lstm-{copies}", 1.0 / copies)
    read = []
    original = runs_module.read_log
    monkeypatch.setattr(runs_module, "read_log", lambda folder: read.append(folder) or original(folder))
    IN_ALL["fig6"].draw(tmp_path / "out", Logs(tmp_path / "runs"))
    assert len(read) == len(set(read)) == 18  # four rates, and two more seeds of the best, of three networks
