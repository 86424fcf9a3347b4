"""The page says what the logs and the results say: all of it, nothing else, and as text."""

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from associative_lstm.lab import cli
from associative_lstm.lab.experiments.claim import (
    BEFORE,
    FAST,
    FAST_BEFORE,
    Reading,
    judge,
    read_claims,
    write_claims,
)
from associative_lstm.lab.experiments.learning.curves import curve
from associative_lstm.lab.experiments.learning.judging import LearningFigure, preparation
from associative_lstm.lab.experiments.learning.runs import Logs
from associative_lstm.lab.experiments.learning.wikipedia import NETWORKS
from associative_lstm.lab.experiments.registry import EXPERIMENTS
from associative_lstm.lab.report.learning import plots_of
from associative_lstm.lab.report.page import write_report
from associative_lstm.lab.report.runs import Runs
from associative_lstm.lab.report.sections import Section, section_of
from associative_lstm.lab.report.summary import (
    SENTENCES,
    as_markdown,
    by_the_fast_recipe,
    counts_in_words,
    sentences,
    waits,
)
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import read_log
from made_curves import write_curve, write_whole
from made_runs import sweep_run, write_lines, write_run

RESULTS = Path(__file__).parents[3] / "results"
FIGURES = {e.name: e for e in EXPERIMENTS if isinstance(e, LearningFigure) and e.in_all}
OTHERS = [e.name for e in EXPERIMENTS if not isinstance(e, LearningFigure)]
RECORDED = [e for e in EXPERIMENTS if isinstance(e, LearningFigure) or (RESULTS / e.name).is_dir()]


class Document(HTMLParser):
    """The tags, ids, links and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.ids, self.links, self.addresses, self.data = [], [], [], [], ""
        self.words: list[str] = []
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        self._inside.append(tag)
        if "id" in found:
            self.ids.append(found["id"])
        self.addresses += [found[name] for name in ("src", "href") if name in found]
        if tag == "a":
            self.links.append(found["href"])
        self.is_data = found.get("id") == "data"
        assert not any(name.startswith("on") for name in found)

    def handle_data(self, text):
        if self._inside and self._inside[-1] == "script":
            self.data += text if self.is_data else ""
        elif not (self._inside and self._inside[-1] == "style"):
            self.words.append(text)

    def handle_endtag(self, tag):
        while self._inside and self._inside.pop() != tag:
            pass

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def make(runs, out, results):
    write_report(runs, results, out)
    return Document(out.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory):
    return make(runs, tmp_path_factory.mktemp("page") / "report.html", RESULTS)


def test_lines_are_the_logs(page, runs):
    lines = json.loads(page.data)["lines"]
    folders = [config.parent for config in runs.rglob("config.toml")]
    names = {folder.relative_to(runs).as_posix() for folder in folders if "wikipedia" not in str(folder)}
    assert len(names) == 32
    assert names <= lines.keys()
    for name in names:
        log, line = read_log(runs / name), lines[name]
        every = -(-len(log) // 200)  # more than 200 are averaged
        for key in ("cost", "answer") if name.startswith("copy/") else ("cost",):
            logged = np.reshape([entry[key] for entry in log], (-1, every)).mean(1)
            np.testing.assert_allclose(line["y"][key], logged, rtol=5e-4)
        seconds = [entry["seconds"] for entry in log[every - 1 :: every]]
        np.testing.assert_allclose(line["x"]["seconds"], seconds, rtol=5e-4)
        assert line["x"]["minibatches"] == {"from": 100 * every, "by": 100 * every}
        assert line["window"] == 5 // every
        assert f"/lr{line['rate']:g}-seed" in name
        assert line["diverged"] == (name == "xml/lstm-512/lr0.01-seed0")


def test_a_long_log_is_averaged(page, runs):
    name = "wikipedia/lstm-3x256/lr0.001-seed0"
    line, log = json.loads(page.data)["lines"][name], read_log(runs / name)
    assert len(log) == 600
    assert line["x"]["minibatches"] == {"from": 300, "by": 300}
    assert len(line["y"]["cost"]) == 200
    assert line["y"]["cost"][-1] == pytest.approx(np.mean([entry["cost"] for entry in log[-3:]]), rel=5e-4)
    assert line["x"]["seconds"][-1] == pytest.approx(240.0)
    assert line["window"] == 1


def test_a_seed_that_ended_early_has_the_points_of_the_others(tmp_path):
    planned = curve("copy", "associative-lstm-1")
    for seed, logged in ((0, None), (1, 113)):
        config = planned.config(1e-3, seed, planned.steps)
        write_run(planned.folder(tmp_path / "runs", 1e-3, seed), config, logged, diverged="stopped" * seed)
    lines = json.loads(make(tmp_path / "runs", tmp_path / "a.html", tmp_path).data)["lines"]
    whole, short = (lines[f"copy/associative-lstm-1/lr0.001-seed{seed}"] for seed in (0, 1))
    assert whole["x"]["minibatches"] == {"from": 200, "by": 200}
    assert short["x"]["minibatches"][:3] == [200, 400, 600]
    assert whole["window"] == short["window"]


def test_plots_have_the_figures_networks_at_their_best_rates(page):
    plots = json.loads(page.data)["plots"]
    assert {"starts-copy", "starts-xml", "starts-assignment", "fig2-copies"} <= plots.keys()
    for panel in (panel for figure in FIGURES.values() for panel in figure.panels):
        assert len(plots[panel.stem]["series"]) == len(panel.curves)
    networks = ("lstm-128", "lstm-512", *(f"associative-lstm-{copies}" for copies in (1, 4, 8)))
    (panel,) = FIGURES["fig6"].panels
    shown = [c.network.name for c in panel.curves]
    lstm, large, one, four, eight = (plots["fig6"]["series"][shown.index(name)] for name in networks)
    assert lstm["label"] == "LSTM 128, rate 0.003"
    assert lstm["views"]["best"] == [f"xml/lstm-128/lr0.003-seed{seed}" for seed in (0, 1, 2)]
    assert lstm["views"]["sweep"] == [f"xml/lstm-128/lr{rate}-seed0" for rate in (0.0003, 0.001, 0.003, 0.01)]
    assert large["views"] == {"best": [], "sweep": ["xml/lstm-512/lr0.01-seed0"]}
    assert eight["views"]["best"] == []
    assert len(eight["views"]["sweep"]) == 2
    assert four["note"] == "2 of 3 seeds finished"
    assert eight["note"] == "sweep under way: 1 of 4 rates"
    assert one["note"] == ""
    same = {s["name"]: s for s in plots["fig5"]["series"]}
    assert (same["LSTM 128"]["colour"], same["LSTM 128"]["dash"]) == (lstm["colour"], lstm["dash"])
    looks = {(s["colour"], s["dash"]) for s in plots["fig3"]["series"]}
    assert len(looks) == len(plots["fig3"]["series"])


def wikipedia_run(folder, network, rate, steps, tests, **options):
    """A run of figure 10, with the cost of the test text after so many minibatches; its path under ``folder``."""
    values = next(n.values for n in NETWORKS if n.name == network)
    config = complete(dict(values) | {"task": "wikipedia", "learning_rate": rate, "steps": steps})
    run = write_run(folder / f"wikipedia/{network}/lr{rate:g}-seed0", config, **options)
    write_lines(run / "test.jsonl", [{"step": s, "cost": c, "symbols": 100} for s, c in tests.items()])
    return run.relative_to(folder).as_posix()


def wikipedia_results(folder, whole=12_000):
    """A folder of results in which figure 10 has been drawn, for passes of so many minibatches."""
    (folder / "fig10").mkdir(parents=True)
    write_claims(folder / "fig10" / "claims.json", [], minibatches_of_a_pass=whole)
    return folder


def test_wikipedia_has_its_test_text(page):
    data = json.loads(page.data)
    lstm = data["plots"]["fig10-test"]["series"][0]
    assert lstm["views"] == {"best": [], "sweep": ["wikipedia/lstm-3x256/lr0.001-seed0#test"]}
    assert lstm["note"] == "sweep under way: 1 of 4 rates"
    line = data["lines"]["wikipedia/lstm-3x256/lr0.001-seed0#test"]
    assert line["x"] == {"minibatches": {"from": 20_000, "by": 20_000}, "seconds": [80, 160]}
    assert line["y"]["cost"] == [2.3, 2.1]


def test_wikipedia_is_judged_from_the_logs_by_the_pass_that_its_results_have(tmp_path):
    """One network with its passes, one whose passes go on, one that diverged with both of its best rates."""
    runs, (lstm, one, four, *_) = tmp_path / "runs", (network.name for network in NETWORKS)
    for network in (lstm, one, four):
        for rate in (3e-4, 1e-2):
            wikipedia_run(runs, network, rate, 4000, {4000: 2.5}, level=30.0)
    chosen = wikipedia_run(runs, lstm, 1e-3, 12_000, {4000: 2.5, 12_000: 2.0}, level=1.0)
    wikipedia_run(runs, lstm, 3e-3, 12_000, {4000: 2.5, 12_000: 2.1}, level=3.0)
    for rate, level in ((1e-3, 1.0), (3e-3, 3.0)):
        wikipedia_run(runs, one, rate, 12_000, {4000: 2.4}, level=level, logged=60)
        wikipedia_run(runs, four, rate, 12_000, {4000: 2.4}, level=level, logged=60, diverged="not finite")
    page = make(runs, tmp_path / "report.html", wikipedia_results(tmp_path / "results"))
    assert "1 of 5 networks finished" in page.text
    data = json.loads(page.data)
    for plot in ("fig10-test", "fig10-training"):
        series = data["plots"][plot]["series"]
        assert series[0]["label"] == "LSTM, 3 x 256, rate 0.001"
        notes = [entry["note"] for entry in series]
        these = ["", "6,000 of 12,000 minibatches", "diverged after 6,000 minibatches"]
        assert notes == [*these, "not run yet", "not run yet"]
    assert data["plots"]["fig10-training"]["series"][0]["views"]["best"] == [chosen]
    assert data["plots"]["fig10-test"]["series"][0]["views"]["best"] == [f"{chosen}#test"]
    assert f"#run:{chosen}" in page.links
    assert "not yet run associative-lstm-3x256-1" in page.text
    assert "diverged associative-lstm-3x256-4" in page.text


def test_wikipedia_has_its_page_and_texts(runs, tmp_path):
    results = wikipedia_results(tmp_path / "results")
    (results / "fig10" / "README.md").write_text("# Figure 10\n\n## What others reach\n\nLess.\n")
    (results / "fig10" / "sample-lstm-3x256.txt").write_text("<page> & text")
    page = make(runs, tmp_path / "report.html", results)
    assert "What others reach Less." in page.text
    assert "What this network writes: LSTM, 3 x 256 <page> & text" in page.text


def test_it_says_what_is_not_finished(page):
    assert f"2 of {len(FIGURES['fig6'].panels[0].curves)} networks finished" in page.text
    assert f"0 of {len(FIGURES['fig8'].panels[0].curves)} networks finished" in page.text


def test_a_rate_beyond_the_sweep(tmp_path):
    for rate in (3e-4, 1e-3, 3e-3, 1e-2):
        sweep_run(tmp_path / "runs", "xml", "lstm-128", rate, level=0.01 / rate)
        sweep_run(tmp_path / "runs", "xml", "lstm-512", rate, logged=3, diverged="not finite")
    page = make(tmp_path / "runs", tmp_path / "a.html", tmp_path)
    lstm, large = (json.loads(page.data)["plots"]["fig6"]["series"][k] for k in (0, 2))
    assert lstm["note"] == "the best rate is not settled yet"
    assert large["note"] == "diverged with every rate"
    sweep_run(tmp_path / "runs", "xml", "lstm-128", 3e-2)
    page = make(tmp_path / "runs", tmp_path / "a.html", tmp_path)
    lstm = json.loads(page.data)["plots"]["fig6"]["series"][0]
    assert lstm["note"] == "1 of 3 seeds finished"
    assert lstm["views"]["sweep"][-1] == "xml/lstm-128/lr0.03-seed0"
    assert "0.0003 0.001 0.003 0.01 0.03 LSTM 128" in page.text


def all_claims(runs):
    """Every claim with its verdict, from logs and committed results, in the order of the experiments."""
    logs = Logs(runs)
    for experiment in RECORDED:
        if isinstance(experiment, LearningFigure):
            yield from (claim.judge(logs) for claim in experiment.claims)
        else:
            yield from read_claims(RESULTS / experiment.name / "claims.json")


def test_every_claim_has_its_verdict_in_plain_words_and_its_letters_are_an_anchor(page, runs):
    claims = list(all_claims(runs))
    for claim in claims:
        missing = " runs missing" if waits(claim) else ""
        assert f"{claim.verdict}{missing} {claim.sentence} Criterion: {claim.criterion}." in page.text
        if claim.key:
            assert f"claim-{claim.key}" in page.ids
        for name in claim.runs:
            assert f"#run:{name}" in map(unquote, page.links)
    verdicts = [claim.verdict for claim in claims]
    counts = " ".join(f"{v} {verdicts.count(v)}" for v in ("holds", "fails", "undecided"))
    assert f"{counts} of {len(verdicts)} claims" in page.text
    before, method = page.text.split("How it was measured Every figure")
    keys = {claim.key for claim in claims} - {""}
    words = set(re.findall(r"\w+(?![-+\w])", before))  # 2e+11 is a number, and no key
    assert not keys & words  # only where criteria were changed, at the end
    assert keys & set(re.findall(r"\w+", method))


def test_it_opens_with_what_came_out_and_a_wall_of_figures(page):
    opening = page.text[: page.text.index("Claim Verdict By the fast recipe Evidence")]
    assert re.search(r"Of the paper's \d+ claims \d+ hold", opening)
    assert re.search(r"\d+ of them are about learning: \d+ hold", opening)
    assert re.search(r"By the fast recipe \d+ of the \d+ are judged so far[^:]*: \d+ hold", opening)
    for words in (
        "failed as the paper trained, and holds by the fast recipe",
        "trained by the same recipe catches up",
    ):
        assert words in opening
    assert "Changed since" not in opening
    pictured = [e.name for e in RECORDED if isinstance(e, LearningFigure) or e.pictures or e.points]
    first = page.links.index(f"#{pictured[0]}")  # before it, links to claims
    assert all(link.startswith("#claim-") for link in page.links[:first])
    assert page.links[first : first + len(pictured)] == [f"#{name}" for name in pictured]
    assert {f"#{experiment.name}" for experiment in EXPERIMENTS} <= set(page.links)


def test_a_sentence_is_said_only_while_the_verdicts_that_it_rests_on_are_those():
    rests_on, text = SENTENCES[1]
    holds = {"holds": True, "fails": False, "undecided": None}
    claims = {name: judge("", "", holds[v]) for name, v in rests_on.items()}
    assert text in sentences(claims)
    for name, verdict in rests_on.items():
        other = judge("", "", True if verdict == "undecided" else None)
        assert text not in sentences(claims | {name: other})
    rests_on, text = SENTENCES[2]
    claims = {name: judge("", "", holds[v]) for name, v in rests_on.items() if not name.endswith("-fast")}
    assert text not in sentences(claims)
    again = {name.removesuffix("-fast"): v for name, v in rests_on.items() if name.endswith("-fast")}
    claims |= {
        name: replace(judge("", "", False), readings=(Reading(FAST, v, {}),)) for name, v in again.items()
    }
    assert text in sentences(claims)


def test_what_the_second_verdict_changes_is_said():
    def claim(first, second):
        return replace(judge("", "", first), readings=(Reading(FAST, second),))

    cases = {
        "a": claim(False, "holds"),
        "b": claim(None, "holds"),
        "c": claim(True, "fails"),
        "claim-1b": claim(True, "fails"),
        "d": replace(judge("", "", True), readings=(Reading(FAST, "undecided", runs=("a run",)),)),
        "e": claim(True, "undecided"),  # for want of runs
        "claim-4c": replace(
            judge("", "", True),
            readings=(
                Reading(FAST, "holds", runs=("a run",)),
                Reading(FAST_BEFORE, "fails", runs=("a run",)),
            ),
        ),
        "claim-7a": replace(claim(True, "holds"), readings=(Reading(BEFORE, "undecided"),)),  # none was run
        "claim-3b": claim(True, "holds"),
    }
    told = [[name for name, _ in named] for _, named in by_the_fast_recipe(cases)]
    otherwise, catches_up, open_, level, behind = ["claim-4c"], ["claim-1b"], [], ["claim-4c"], ["claim-3b"]
    assert told == [["a"], ["b"], ["c", "claim-1b"], ["d"], otherwise, catches_up, open_, level, behind]


def test_a_changed_criterion_is_shown_with_both_verdicts(tmp_path):
    was = Reading(BEFORE, "fails", criterion="it is solved")
    claim = replace(judge("It does well.", "a quarter", True), key="x", readings=(was,), lacks=("one seed",))
    path = write_claims(tmp_path / "claims.json", [claim])
    assert read_claims(path) == [claim]
    text = as_markdown([Section("fig3", "Figure 3", "alstm", claims={"claim-x": claim})])
    assert "| [It does well.](#claim-x) | fails | holds | it is solved |" in text
    assert "Stands on the runs there are: one seed." in text


def test_short_runs_are_said_to_be_short_and_counted():
    short = Reading(FAST, "holds", {"cost": 1.0}, runs=("a run",), short=True)
    claims = {str(k): replace(judge("It is so.", "", True), readings=(short,)) for k in range(2)}
    claims["1"] = replace(claims["1"], readings=(replace(short, short=False),))
    text = as_markdown([Section("fig3", "Figure 3", "alstm", claims=claims)])
    assert text.count("<br>By the fast recipe, in short runs: cost 1.") == 1
    assert text.count("<br>By the fast recipe: cost 1.") == 1
    assert "By the fast recipe 2 of the 2 are judged so far, 1 of them in short runs: 2 hold," in text


def test_a_table_tells_figure_by_figure_what_holds():
    claims = {f"claim-{k}": judge("It is so.", "", holds) for k, holds in enumerate((True, False, True))}
    ours = Section("fast", "Fast", "alstm", claims={"claim-9": judge("", "", True)}, ours=True)
    text = as_markdown([Section("fig3", "Figure 3: copy", "alstm", claims=claims), ours])
    assert "\n| Figure 3: copy | [0](#claim-0), [2](#claim-2) | [1](#claim-1) |  |\n" in text
    assert "| Fast |" not in text


def test_runs_that_are_missing_are_listed_with_the_claims_that_wait_for_them():
    def claim(key, lacks=(), **numbers):
        fast = Reading(
            FAST, "undecided", {"not_yet_run": "xml/fast-ntm, xml/fast-lstm"}, lacks=("copy/a: 1 of 2",)
        )
        return replace(judge("It is so.", "", None, **numbers), key=key, lacks=lacks, readings=(fast,))

    claims = {"claim-1": claim("1", ("copy/b: 1 of 3",)), "claim-2": claim("2", not_yet_run="xml/ntm")}
    claims["claim-3"] = replace(judge("", "", None, not_yet_run="another kind"), key="3", lacks=("copy/c",))
    text = as_markdown([Section("fig3", "Figure 3", "alstm", claims=claims)])
    both = "([1](#claim-1), [2](#claim-2))"
    for row in (
        f"copy/a: 1 of 2 {both}",
        "copy/b: 1 of 3 ([1](#claim-1))",
        f"xml/fast-lstm: none yet {both}",
        f"xml/fast-ntm: none yet {both}",
        "xml/ntm: none yet ([2](#claim-2))",
    ):
        assert f"\n- {row}\n" in text
    assert "another kind: none yet" not in text
    assert "\n- copy/c ([3](#claim-3))\n" in text
    assert "stands on the runs there are: copy/a: 1 of 2." in text
    whole = replace(judge("It is so.", "", True), readings=(Reading(FAST, "holds"),))
    assert "planned and missing" not in as_markdown([Section("x", "X", "", claims={"claim-1": whole})])
    unclaimed = ["xml/gru: none yet", "copy/c"]
    text = as_markdown([Section("fig3", "Figure 3", "alstm", claims=claims, unclaimed=unclaimed)])
    assert "\n- xml/gru: none yet (no claim rests on it)\n" in text
    assert "\n- copy/c ([3](#claim-3))\n" in text


def test_planned_networks_on_which_no_claim_rests_are_told_if_they_were_not_run(tmp_path):
    write_curve(tmp_path, "copy-variable", "lstm-128", 10.0)
    told = section_of(FIGURES["fig4"], Runs(Logs(tmp_path)), tmp_path / "none", {}).unclaimed
    assert told == [
        "copy-variable/lstm-128-forget-1: none yet",
        "copy-variable/permutation-rnn-256: none yet",
    ]


def test_a_claim_is_one_line_and_the_rest_is_folded_away():
    waits = Reading(FAST, "undecided", lacks=("one seed",))
    claim = replace(judge("It is so.", "it is", None, cost=0.5), readings=(waits,))
    text = as_markdown([Section("fig3", "Figure 3", "alstm", claims={"claim-1a": claim})])
    summary = "1a **undecided** (by the fast recipe: **undecided**, runs missing): It is so."
    item = f'- <a id="claim-1a"></a><details><summary>{summary}</summary>'
    assert f"{item}\n  Criterion: it is.\n  <br>Measured: cost 0.5.</details>\n" in text


def test_many_claims_are_linked_by_their_keys():
    held = replace(judge("It is so.", "", False), readings=(Reading(FAST, "holds"),))
    claims = {f"claim-{k}": held for k in range(3)}
    keys = "[0](#claim-0), [1](#claim-1), [2](#claim-2)"
    assert f"holds by the fast recipe: {keys}." in as_markdown([Section("x", "X", "", claims=claims)])
    del claims["claim-2"]
    few = "[It is so](#claim-0); [It is so](#claim-1)"
    assert f"holds by the fast recipe: {few}." in as_markdown([Section("x", "X", "", claims=claims)])


def test_every_run_has_its_configuration_and_command(page, runs):
    for config in runs.rglob("config.toml"):
        assert f"run:{config.parent.relative_to(runs).as_posix()}" in page.ids
        assert f"alstm train --config {config} --out runs/again" in page.text
        assert " ".join(config.read_text().split()) in page.text


def test_it_is_one_file_whose_links_lead_somewhere(page):
    assert len(page.ids) == len(set(page.ids))
    assert {unquote(link.removeprefix("#")) for link in page.links} <= set(page.ids)
    assert all(address.startswith(("#", "data:")) for address in page.addresses)


def test_the_same_logs_make_the_same_page(runs, tmp_path):
    for name in ("a.html", "b.html"):
        write_report(runs, RESULTS, tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_all_text_is_escaped(tmp_path):
    evil = '</script><img src=x onerror="alert(1)">'
    config = complete({"task": "xml", "steps": 1000})
    write_run(tmp_path / "runs" / "xml" / '"<b>&amp;' / "lr1-seed0", config, diverged=evil)
    results = tmp_path / "results"
    for folder in ("fig1", "table1"):
        (results / folder).mkdir(parents=True)
    write_claims(results / "fig1" / "claims.json", [judge(evil, evil, True, **{evil: evil})])
    (results / "table1" / "table1.md").write_text(f"| a |\n| --- |\n| {evil} |\n\n[x](javascript:alert(1))\n")
    document = make(tmp_path / "runs", tmp_path / "report.html", results)
    assert "img" not in document.tags
    assert document.tags.count("script") == 2
    assert (
        document.text.count(evil) == 7
    )  # two lists of claims, a criterion, a name, a number, a state, a table
    assert 'run:xml/"<b>&amp;/lr1-seed0' in document.ids
    assert not any("javascript" in address for address in document.addresses)
    json.loads(document.data)


def test_damaged_runs_are_named_and_the_rest_is_shown(runs, tmp_path):
    copied = tmp_path / "runs"
    shutil.copytree(runs, copied)
    (copied / "xml/lstm-128/lr0.003-seed1/config.toml").write_text("task = ")
    cut = copied / "xml/associative-lstm-1/lr0.003-seed0/log.jsonl"
    lines = cut.read_text().splitlines(keepends=True)
    lines[49] = "{garbage\n"
    cut.write_text("".join(lines))
    page = make(copied, tmp_path / "report.html", tmp_path / "nothing")
    assert "xml/lstm-128/lr0.003-seed1 is left out: configuration" in page.text
    assert "xml/associative-lstm-1/lr0.003-seed0: its log is damaged after minibatch 4,900" in page.text
    data = json.loads(page.data)
    assert len(data["lines"]["xml/associative-lstm-1/lr0.003-seed0"]["y"]["cost"]) == 49
    assert "xml/lstm-128/lr0.003-seed1" not in data["lines"]
    assert len(data["plots"]["fig6"]["series"][0]["views"]["sweep"]) == 4
    claim = r"undecided On XML the Associative LSTM with 1 copy beats .* a run cannot be read configuration"
    assert re.search(claim, page.text)


def test_without_results_the_page_says_how_to_make_them(runs, tmp_path):
    page = make(runs, tmp_path / "report.html", tmp_path / "nothing")
    for name in OTHERS:
        assert (
            f"There is no {tmp_path / 'nothing' / name} yet: `alstm reproduce {name}` makes it." in page.text
        )


def test_damaged_results_are_named(runs, tmp_path):
    results = tmp_path / "results"
    for name in ("fig1", "fig2", "table1"):
        (results / name).mkdir(parents=True)
        (results / name / "claims.json").write_text('{"claims": [{}]}')
    (results / "fig1" / "fig1.png").write_bytes(b"no picture")
    (results / "fig2" / "fig2.csv").write_text("panel,n\ncopies,1\n")
    page = make(runs, tmp_path / "report.html", results)
    for name in ("fig1/claims.json", "fig1/fig1.png", "fig2", "table1/table1.md"):
        assert f"{results / name} cannot be read and is left out" in page.text


def test_runs_without_log_or_times(tmp_path):
    folder = sweep_run(tmp_path / "runs", "xml", "lstm-128", 1e-3, logged=1)
    (folder / "log.jsonl").unlink()
    timeless = sweep_run(tmp_path / "runs", "xml", "lstm-128", 3e-3)
    (timeless / "times.jsonl").unlink()
    page = make(tmp_path / "runs", tmp_path / "report.html", tmp_path / "nothing")
    assert json.loads(page.data)["plots"]["fig6"]["series"][0]["views"]["sweep"] == [
        "xml/lstm-128/lr0.003-seed0"
    ]
    assert json.loads(page.data)["lines"]["xml/lstm-128/lr0.003-seed0"]["x"]["seconds"] == [None] * 200
    assert "run:xml/lstm-128/lr0.001-seed0" in page.ids


@pytest.mark.parametrize("exists", [True, False])
def test_no_runs_is_one_sentence_and_changes_nothing(tmp_path, capsys, exists):
    runs, out = tmp_path / "runs", tmp_path / "new" / "report.html"
    if exists:
        runs.mkdir()
    assert cli.main(["report", "--runs", str(runs), "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert error == (
        f"alstm: {runs} holds no runs: `alstm reproduce all` makes them, --runs names another folder\n"
    )
    assert not out.parent.exists()


def test_a_page_that_cannot_be_written_is_one_sentence(runs, tmp_path, capsys):
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "report.html"
    assert cli.main(["report", "--runs", str(runs), "--results", str(tmp_path), "--out", str(out)]) == 1
    *_, said = capsys.readouterr().err.splitlines()  # on a slow machine there are lines of progress before
    assert said.startswith(f"alstm: {out} could not be written: ")


def test_the_command(runs, tmp_path, capsys):
    out = tmp_path / "new" / "report.html"
    assert cli.main(["report", "--runs", str(runs), "--results", str(RESULTS), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert re.match(r"33 runs; claims: \d+ fails, \d+ holds, \d+ undecided\n", told)
    assert told.splitlines()[-1].startswith(f"written: {out} (")
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]
    assert cli.main(["report", "--help"]) == 0
    assert "Example: alstm report" in capsys.readouterr().out


def test_other_seeds(tmp_path):
    planned = preparation(seed=5)(curve("xml", "lstm-128"))
    for seed in planned.seeds:
        write_run(planned.folder(tmp_path / "runs", 3e-3, seed), planned.config(3e-3, seed, planned.steps))
    for rate in (3e-4, 1e-3, 1e-2):
        config = planned.config(rate, 5, planned.sweep_steps)
        write_run(planned.folder(tmp_path / "runs", rate, 5), config, level=2.0)
    arguments = [
        "--runs",
        tmp_path / "runs",
        "--results",
        tmp_path,
        "--out",
        tmp_path / "a.html",
        "--seed",
        5,
    ]
    assert cli.main(["report", *map(str, arguments)]) == 0
    plots = json.loads(Document((tmp_path / "a.html").read_text()).data)["plots"]
    chosen = plots["fig6"]["series"][0]["views"]["best"]
    assert chosen == [f"xml/lstm-128/lr0.003-seed{seed}" for seed in (5, 6, 7)]


def test_what_is_not_judged_by_the_fast_recipe_is_not_counted_as_run(tmp_path):
    [claim] = (claim for claim in FIGURES["choices"].claims if claim.not_fast)
    run = replace(judge("", "", True), readings=(Reading(FAST, "fails", runs=("a run",)),))
    judged = {"a": claim.judge(Logs(tmp_path)), "b": run}
    text = counts_in_words([Section("a", "A", "", claims=judged)])
    assert (
        "2 of them are about learning: 1 hold, 0 fail and 1 is undecided (1 of these for want of runs)."
        in text
    )
    assert "By the fast recipe 1 of the 2 are judged so far: 0 hold, 1 fail and 0 are undecided." in text
    judged["b"] = replace(run, lacks=("a run",))
    told = "1 is undecided (1 of these for want of runs; of those that hold, 1 lack planned runs)."
    assert told in counts_in_words([Section("a", "A", "", claims=judged)])


def test_long_runs_by_the_recipe_have_plots_of_their_own_with_captions(tmp_path):
    figure = FIGURES["fig7"]
    write_curve(tmp_path, "assignment", "associative-lstm-4", 0.1)
    [alone] = plots_of(figure, Runs(Logs(tmp_path)), {})
    assert alone.plot["caption"] == ""
    write_whole(tmp_path, "assignment", "associative-lstm-4", 0.1)
    both = plots_of(figure, Runs(Logs(tmp_path)), {})
    assert [plotted.plot["caption"] for plotted in both] == [
        figure.title,
        "Figure 7, by the fast recipe: assignment",
    ]
    assert both[1].rows[0].label.endswith("4 copies, fast, 40,000 minibatches")
