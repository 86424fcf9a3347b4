"""Figure 10: its runs in a tiny form, its verdicts, and the text it is about."""

import dataclasses
import gzip
import hashlib
import json
import re
import shutil

import pytest

from associative_lstm.lab import cli
from associative_lstm.lab.experiments.claim import BEFORE, FAST, read_claims
from associative_lstm.lab.experiments.learning import wikipedia
from associative_lstm.lab.experiments.learning.runs import Logs, make_runs, read_curve
from associative_lstm.lab.experiments.learning.wikipedia import NETWORKS, Passes, figure_10
from associative_lstm.lab.files import RunError
from associative_lstm.lab.run.folder import read_config, read_log, read_tests
from associative_lstm.lab.sweep.local import local
from associative_lstm.lab.tasks import enwik8
from made_curves import lengthen, write_run


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fig10")
    return folder, run(folder)


def run(folder):
    figure, logs = figure_of(folder), Logs(folder / "runs")
    assert make_runs(logs.folder, figure.needed, local(1)) == []
    return figure.draw(folder / "out", logs)


def figure_of(folder):
    return figure_10(smoke_in=folder / "runs")


def curves_of(folder):
    return figure_of(folder).panels[0].curves


def judged(runs, *curves, whole):
    """The claim about two networks."""
    claim, _ = figure_10().claims
    return dataclasses.replace(claim, curves=curves, fast=curves, whole=whole).judge(Logs(runs))


def test_it_sweeps_trains_one_pass_tests_draws_and_judges(smoke):
    folder, outcome = smoke
    whole = wikipedia.one_pass(str(folder / "runs" / "text"), window=10)
    for network in NETWORKS:
        rates = sorted((folder / "runs" / "wikipedia" / network.name).iterdir())
        assert {f"lr{rate}-seed0" for rate in (0.0003, 0.001, 0.003, 0.01)} <= {rate.name for rate in rates}
        lengths = sorted(read_log(rate)[-1]["step"] for rate in rates)
        assert set(lengths) <= {4, 8, 16, whole}  # close rates go on to twice the sweep, and again
        passes = 2 if network.name in ("lstm-3x256", "associative-lstm-3x256-1") else 1
        assert (
            lengths[-2:].count(whole) == passes
        )  # the best rate and the second best, or the lower of the two
        long = next(rate for rate in rates if read_log(rate)[-1]["step"] == whole)
        assert len(read_tests(long)) >= 6
        assert read_config(long).layers == 3
        assert (folder / "out" / f"sample-{network.name}.txt").stat().st_size > 100
    assert all(path.stat().st_size for path in outcome.written)
    assert [claim.verdict == "undecided" for claim in outcome.claims] == [False, False]
    assert read_claims(folder / "out" / "claims.json")[0].runs[0].startswith("wikipedia/lstm-3x256/lr0.0")
    text = (folder / "out" / "README.md").read_text()
    assert "1.67" in text
    assert text.count("| **") == 2 + len(NETWORKS)  # the rates of the passes
    assert "not whole" not in text
    assert "Not yet run" not in text


def test_a_second_time_nothing_is_trained_and_everything_is_the_same(smoke):
    folder, outcome = smoke
    before = {path: path.read_bytes() for path in outcome.written}
    times = {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*.jsonl")}
    run(folder)
    assert {path: path.read_bytes() for path in before} == before
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_it_is_comparable_up_to_a_twentieth_of_a_bit_and_undecided_before_the_pass_is_over(
    smoke, monkeypatch
):
    folder, _ = smoke
    lstm, one, four, *_ = curves_of(folder)
    costs = {"lstm-3x256": 1.8, "associative-lstm-3x256-1": 1.849, "associative-lstm-3x256-4": 1.851}
    with monkeypatch.context() as patch:
        patch.setattr(Passes, "test_cost", lambda passes, run: costs[run.folder.parent.name])
        claims = [judged(folder / "runs", lstm, ours, whole=lstm.steps) for ours in (one, four)]
    assert [claim.verdict for claim in claims] == ["holds", "fails"]
    assert claims[0].numbers["difference"] == pytest.approx(0.049)
    longer = judged(folder / "runs", lstm, one, whole=lstm.steps + 1)
    assert longer.verdict == "undecided"


def test_a_lead_is_not_comparable_and_is_told_from_a_lag(smoke, monkeypatch):
    folder, _ = smoke
    lstm, one, four, *_ = curves_of(folder)
    costs = {"lstm-3x256": 1.8, "associative-lstm-3x256-1": 1.749, "associative-lstm-3x256-4": 1.851}
    monkeypatch.setattr(Passes, "test_cost", lambda passes, run: costs[run.folder.parent.name])
    claims = [judged(folder / "runs", lstm, ours, whole=lstm.steps) for ours in (one, four)]
    assert [claim.verdict for claim in claims] == ["fails", "fails"]
    assert [claim.numbers["the Associative LSTM is"] for claim in claims] == ["better", "worse"]
    assert [claim.read(BEFORE).verdict for claim in claims] == ["holds", "fails"]
    waiting = property(lambda passes: passes.runs[:1] * (passes.found.curve == lstm))
    monkeypatch.setattr(Passes, "awaited", waiting)  # the LSTM has a pass to finish
    claims = [judged(folder / "runs", lstm, ours, whole=lstm.steps) for ours in (one, four)]
    assert [claim.verdict for claim in claims] == ["undecided", "fails"]


def test_the_better_of_the_lstms_is_compared_with(smoke, tmp_path, monkeypatch):
    folder, _ = smoke
    lstm, one, _, biased, _ = curves_of(folder)
    runs = shutil.copytree(folder / "runs", tmp_path / "runs")
    costs = {"lstm-3x256": 1.9, "lstm-3x256-forget-1": 1.78, "associative-lstm-3x256-1": 1.75}
    monkeypatch.setattr(Passes, "test_cost", lambda passes, run: costs[run.folder.parent.name])
    claim = judged(runs, lstm, biased, one, whole=lstm.steps)
    assert claim.verdict == "holds"
    assert next(iter(claim.numbers)).startswith("LSTM, forget bias 1 at rate ")
    shutil.rmtree(runs / "wikipedia" / "lstm-3x256-forget-1")  # which might be as good
    claim = judged(runs, lstm, biased, one, whole=lstm.steps)
    assert (claim.verdict, claim.numbers["not yet run:"]) == ("undecided", "LSTM, 3 x 256, forget bias 1")
    assert judged(runs, lstm, one, whole=lstm.steps).verdict == "fails"


def test_a_network_without_runs_is_named(smoke, tmp_path):
    folder, _ = smoke
    runs = shutil.copytree(folder / "runs", tmp_path / "runs")
    shutil.rmtree(runs / "wikipedia" / "lstm-3x256")
    lstm, one, *_ = curves_of(folder)
    assert judged(runs, lstm, one, whole=lstm.steps).numbers == {"not_yet_run": "lstm-3x256"}


def test_the_cost_of_a_pass_is_that_of_its_last_test_and_of_no_other(smoke, tmp_path):
    folder, _ = smoke
    runs = shutil.copytree(folder / "runs", tmp_path / "runs")
    curve = curves_of(folder)[0]
    [run] = read_curve(runs, curve).runs
    *others, last = (run.folder / "test.jsonl").read_text().splitlines(keepends=True)
    passes = Passes(read_curve(runs, curve), curve.steps)
    assert passes.test_cost(passes.runs[0]) == json.loads(last)["cost"]
    (run.folder / "test.jsonl").write_text("".join(others))
    passes = Passes(read_curve(runs, curve), curve.steps)
    assert passes.test_cost(passes.runs[0]) is None


def test_a_network_that_came_later_makes_its_pass_with_the_lower_of_its_two_best_rates(smoke):
    folder, _ = smoke
    for curve in curves_of(folder)[2:]:
        both = read_curve(
            folder / "runs", dataclasses.replace(curve, with_runner_up=True, lower_of_two=False)
        )
        found = read_curve(folder / "runs", curve)
        assert found.rate in (both.rate, both.runner_up)
        assert found.rate <= both.rate
        assert [run.config.learning_rate for run in Passes(found, curve.steps).runs] == [found.rate]
        assert found.finished


@pytest.mark.parametrize(
    ("costs", "rate", "rates_of_passes"),
    [
        ({3e-4: 4.5, 1e-3: 2.1, 3e-3: 2.0, 1e-2: 5.0}, 1e-3, [1e-3]),  # two that are close
        ({3e-4: 4.5, 1e-3: 4.0, 3e-3: 2.0, 1e-2: 5.0}, 3e-3, [3e-3]),  # one that is far ahead
    ],
)
def test_the_lower_of_two_rates_is_one_of_those_that_are_close(tmp_path, costs, rate, rates_of_passes):
    planned = figure_10().panels[0].curves[2]
    for each, cost in costs.items():
        write_run(planned, tmp_path, each, 0, lambda step, cost=cost: cost, planned.sweep_steps)
    close = [each for each, cost in costs.items() if cost < 2.2]
    found = read_curve(tmp_path, planned)
    if len(close) > 1:
        assert (found.settled, Passes(found, planned.steps).runs) == (False, [])  # a contest is no pass
        for each in close:
            lengthen(planned, tmp_path, each, lambda step, each=each: costs[each], 16_000)
        found = read_curve(tmp_path, planned)
    assert found.rate == rate
    assert [job.config.learning_rate for job in found.needed] == rates_of_passes
    lengthen(planned, tmp_path, rate, lambda step: 9.0 if step > 16_000 else costs[rate], planned.steps)
    assert read_curve(tmp_path, planned).rate == rate  # whatever comes of the pass


def test_by_the_fast_recipe_a_network_makes_a_pass_and_is_judged_again(smoke, tmp_path):
    folder, outcome = smoke
    assert outcome.claims[0].read(FAST).numbers == {
        "not_yet_run": "fast-lstm-3x256, fast-associative-lstm-3x256-1"
    }
    runs = shutil.copytree(folder / "runs", tmp_path / "runs")
    chosen = ["fast-lstm-3x256", "fast-associative-lstm-3x256-1"]
    figure = figure_10(networks=chosen, recipe="fast", smoke_in=runs)
    assert make_runs(runs, figure.needed, local(1)) == []
    one, four = figure.draw(tmp_path / "out", Logs(runs)).claims
    again = one.read(FAST)
    assert again.verdict != "undecided"
    assert again.runs[0].endswith("-seed30")
    assert [run.split("/")[1] for run in again.runs] == chosen
    assert one.verdict == outcome.claims[0].verdict
    assert four.read(FAST).numbers == {"not_yet_run": "fast-associative-lstm-3x256-4"}
    config = read_config(runs / again.runs[1])
    assert (config.key_init, config.clip, config.schedule, config.layers) == ("matched", 1.0, "linear-end", 3)
    text = (tmp_path / "out" / "README.md").read_text()
    assert "LSTM, 3 x 256, fast" in text
    assert "4 copies, fast" not in text


def test_a_network_is_judged_by_the_better_of_its_two_passes(smoke, tmp_path):
    folder, _ = smoke
    runs = shutil.copytree(folder / "runs", tmp_path / "runs")
    curve = curves_of(folder)[0]
    for better in ("rate", "runner_up"):
        found = read_curve(runs, curve)
        for name in ("rate", "runner_up"):
            test = {"step": curve.steps - curve.steps % (curve.steps // 6), "cost": 1 + (name != better)}
            (found.sweep[getattr(found, name)].folder / "test.jsonl").write_text(json.dumps(test) + "\n")
        found = read_curve(runs, curve)
        assert Passes(found, curve.steps).best == (1, found.sweep[getattr(found, better)])


@pytest.mark.parametrize("whole", ["rate", "runner_up"])
def test_a_verdict_without_one_of_the_passes_says_so(smoke, tmp_path, whole):
    folder, outcome = smoke
    assert "not judged, because not whole:" not in outcome.claims[0].numbers
    runs = shutil.copytree(folder / "runs", tmp_path / "runs")
    curves = curves_of(folder)
    found = read_curve(runs, curves[1])
    made, missing = found.rate, found.runner_up
    if whole == "runner_up":
        made, missing = missing, made
    (found.sweep[missing].folder / "test.jsonl").unlink()
    first, second = figure_of(folder).draw(tmp_path / "out", Logs(runs)).claims
    assert "difference" in first.numbers
    assert first.runs[1] == f"wikipedia/associative-lstm-3x256-1/lr{made:g}-seed0"
    assert list(first.numbers)[1] == f"Associative LSTM at rate {made:g}"
    steps = f"{curves[0].steps} of {curves[0].steps} minibatches"
    awaited = f"Associative LSTM, 3 x 256, 1 copy at rate {missing:g} ({steps})"
    assert first.numbers["not judged, because not whole:"] == awaited
    assert "not judged, because not whole:" not in second.numbers
    text = (tmp_path / "out" / "README.md").read_text()
    assert f"Not judged, because not whole: {awaited}." in text
    assert text.count("not whole: ") == 2  # there and in the table of rates


def test_a_network_whose_best_rate_diverged_is_judged_by_the_second_best(smoke, tmp_path):
    folder, _ = smoke
    runs = shutil.copytree(folder / "runs", tmp_path / "runs")
    curves = curves_of(folder)
    found = read_curve(runs, curves[1])
    best, second = (found.sweep[rate].folder for rate in (found.rate, found.runner_up))
    (best / "diverged.txt").write_text("stopped at its last step: the cost is not finite\n")

    def judged_and_page():
        outcome = figure_of(folder).draw(tmp_path / "out", Logs(runs))
        return outcome.claims[0], (tmp_path / "out" / "README.md").read_text()

    assert "diverged after" not in judged_and_page()[1]  # it was in a later pass
    (best / "test.jsonl").unlink()
    claim, text = judged_and_page()
    assert list(claim.numbers)[1:3] == [f"Associative LSTM at rate {found.runner_up:g}", "difference"]
    assert f"| diverged after {curves[0].steps} |" in text
    assert "not whole" not in text
    (second / "test.jsonl").unlink()
    claim, _ = judged_and_page()
    assert claim.numbers == {"not_yet_run": "associative-lstm-3x256-1"}
    assert claim.runs[1] == second.relative_to(runs).as_posix()  # the one that goes on is shown


def test_a_network_that_diverged_is_not_awaited(smoke, tmp_path):
    folder, _ = smoke
    runs = shutil.copytree(folder / "runs", tmp_path / "runs")
    curves = curves_of(folder)
    found = read_curve(runs, curves[1])
    for rate in (found.rate, found.runner_up):
        run = found.sweep[rate].folder
        log = (run / "log.jsonl").read_text().splitlines(keepends=True)
        (run / "log.jsonl").write_text("".join(log[:-1]))
        (run / "diverged.txt").write_text("stopped at its last step: the cost is not finite\n")
    claims = figure_of(folder).draw(tmp_path / "out", Logs(runs)).claims
    assert (claims[0].verdict, claims[0].numbers) == ("undecided", {"diverged": "associative-lstm-3x256-1"})
    assert claims[1].verdict != "undecided"
    assert "| diverged |" in (tmp_path / "out" / "README.md").read_text()


def test_runs_on_another_text_are_refused_and_the_figure_stays(smoke, tmp_path):
    folder, outcome = smoke
    before = {path: path.read_bytes() for path in outcome.written}
    text = tmp_path / "text"
    text.write_bytes(b"another text " * 200)
    for networks in ([], ["lstm-3x256"]):
        with pytest.raises(RunError, match=rf"is a run on .*text, not on {text}: choose another --runs"):
            figure_10(str(text), networks=networks).refuse_other_texts(folder / "runs")
    assert {path: path.read_bytes() for path in before} == before


def test_a_text_without_a_minibatch_is_one_sentence(tmp_path):
    text = tmp_path / "text"
    text.write_bytes(b"short " * 100)
    with pytest.raises(ValueError, match="data: a minibatch reads 1,000 characters, there are 576 to train"):
        figure_10(str(text))


def test_every_network_is_treated_alike():
    for network in NETWORKS:
        assert network.values["hidden_size"] * network.values.get("heads", 1) == 256
        assert network.values["layers"] == 3
        assert not {"learning_rate", "batch_size", "window", "steps"} & set(network.values)


def test_an_unknown_network_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"network must be one of lstm-3x256, .*got 'lstm'"):
        figure_10(networks=["lstm"], smoke_in=tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_runs_the_figure_says_so(tmp_path):
    outcome = figure_10().draw(tmp_path / "out", Logs(tmp_path / "runs"))
    assert [claim.verdict for claim in outcome.claims] == ["undecided"] * 2
    assert "Not yet run: LSTM, 3 x 256;" in (tmp_path / "out" / "README.md").read_text()


def test_a_pass_over_enwik8_is_known_without_its_text():
    assert 96_000_000 // (10 * 100) == wikipedia.PASS == figure_10().whole
    assert figure_10().panels[0].curves[0].steps == wikipedia.PASS


def test_the_command_makes_chosen_networks_and_writes_what_there_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["reproduce", "fig10", "--smoke", "--jobs", "1", "--steps", "5", "--network", "lstm-3x256"]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert len(re.findall("^undecided", out, re.MULTILINE)) == 2
    assert "written: runs/smoke/fig10/fig10.png" in out
    assert [path.name for path in (tmp_path / "runs/smoke/runs/wikipedia").iterdir()] == ["lstm-3x256"]
    claims = json.loads((tmp_path / "runs/smoke/fig10/claims.json").read_text())["claims"]
    assert claims[0]["numbers"] == {"not_yet_run": "lstm-3x256, associative-lstm-3x256-1"}
    text = (tmp_path / "runs/smoke/fig10/README.md").read_text()
    assert "Not yet run: Associative LSTM, 3 x 256, 1 copy; Associative LSTM, 3 x 256, 4 copies; " in text


def test_enwik8_is_known_by_its_content_and_kept_where_every_run_finds_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = b"a text " * 30
    packed = tmp_path / "e.gz"
    packed.write_bytes(gzip.compress(text))
    assert enwik8.keep_enwik8(packed) == str(packed)
    monkeypatch.setattr(enwik8, "ENWIK8_SHA256", hashlib.sha256(text).hexdigest())
    for _ in range(2):
        assert enwik8.keep_enwik8(packed) is None
        assert enwik8.find_corpus(None).read_bytes() == text
    assert {path.name for path in enwik8.cache_folder().iterdir()} == {
        "enwik8",
        enwik8.find_corpus(packed).name,
    }
