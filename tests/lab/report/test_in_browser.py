"""The page in Chromium: it loads without an error, draws what the data say, and obeys its buttons."""

import itertools
import json
import re
import tempfile
from pathlib import Path

import pytest

from associative_lstm.lab.experiments.learning.curves import curve
from associative_lstm.lab.report.page import write_report
from browser import CHROMIUM, Browser
from made_runs import write_curve, write_run

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)"
)

RESULTS = Path(__file__).parents[3] / "results"
FIG6 = "document.querySelector('[data-plot=fig6]')"


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_report(runs, RESULTS, out)
    return out


@pytest.fixture(scope="module")
def browser():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        opened = Browser(Path(profile))
        yield opened
        opened.close()


@pytest.fixture
def tab(browser, report):
    """The page, loaded anew; no test leaves an error behind."""
    browser.errors.clear()
    browser.requests.clear()
    browser.screen(1200)
    browser.open(report)
    yield browser
    assert browser.errors == []


def texts(tab, selector):
    return tab.run(f"[...{FIG6}.querySelectorAll('{selector}')].map((e) => e.textContent)")


def choose(tab, choice):
    tab.click(f"""{FIG6}.querySelector('[data-choice="{choice}"]')""")


def curves(tab):
    """How many lines are drawn of each network."""
    groups = f"[...{FIG6}.querySelectorAll('g[data-series]')]"
    name = "DATA.plots.fig6.series[g.dataset.series].name"
    return dict(tab.run(f"{groups}.map((g) => [{name}, g.querySelectorAll('path').length])"))


def legend(network):
    """The button of a network."""
    return (
        f"[...{FIG6}.querySelectorAll('.legend button')].find((b) => b.textContent.startsWith('{network}'))"
    )


def point_at(tab, path, share=1):
    """Put the mouse on a curve where this ``share`` of its length is behind, and give where that is."""
    x, y = tab.run(
        f"(() => {{ {FIG6}.scrollIntoView({{block: 'center'}}); const p = {path}; const s = p.ownerSVGElement;"
        f"const q = p.getPointAtLength({share} * p.getTotalLength()).matrixTransform(s.getScreenCTM());"
        "return [q.x, q.y]; })()"
    )
    tab.mouse(x, y)
    return x, y


LSTM, LARGE = "LSTM 128", "LSTM 512"
ONE, FOUR, EIGHT = (f"Associative LSTM 128, {copies}" for copies in ("1 copy", "4 copies", "8 copies"))


def test_it_loads_by_itself_and_draws_every_plot(tab, report):
    assert tab.requests[0] == report.resolve().as_uri()
    assert all(request.startswith("data:") for request in tab.requests[1:])
    plots = json.loads(tab.run("document.getElementById('data').textContent"))["plots"]
    assert tab.run("document.querySelectorAll('[data-plot]').length") == len(plots)
    for name, plot in plots.items():
        drawn = tab.run(f"document.querySelectorAll('[data-plot=\"{name}\"] g[data-series] path').length")
        expected = [len(series["views"]["best"]) for series in plot["series"]]
        assert drawn == sum(n + (n > 1) for n in expected)  # and the mean of several


def test_a_click_on_the_legend_hides_and_shows_a_network(tab):
    assert curves(tab) == {LSTM: 4, ONE: 4, FOUR: 3}
    button = legend(LSTM)
    tab.click(button)
    assert curves(tab) == {ONE: 4, FOUR: 3}
    assert tab.run(f"{button}.getAttribute('aria-pressed')") == "false"
    tab.run(f"{button}.focus()")
    tab.key("Enter")
    assert curves(tab) == {LSTM: 4, ONE: 4, FOUR: 3}
    assert tab.run(f"{button}.getAttribute('aria-pressed')") == "true"
    for network in (LSTM, ONE, FOUR):
        tab.click(legend(network))
    assert texts(tab, "svg.chart text") == ["nothing is chosen"]
    assert tab.run(f"{legend(LARGE)}.disabled") is False  # it is in the sweep
    assert tab.run(f"{legend('LSTM 128, forget bias 1')}.disabled") is True


def test_axes_can_be_chosen(tab):
    assert texts(tab, ".y-tick")[0] == "0"
    assert texts(tab, ".x-label") == ["minibatches"]
    assert texts(tab, ".x-tick")[-1] == "20,000"
    assert texts(tab, ".y-label") == ["bits per scored symbol"]
    choose(tab, "scale:log")
    assert texts(tab, ".y-tick") == ["0.05", "0.1", "0.2", "0.5", "1", "2"]
    choose(tab, "x:seconds")
    assert texts(tab, ".x-label") == ["wall-clock seconds of training"]
    assert texts(tab, ".x-tick")[-1] == "80"
    pressed = tab.run(
        f"[...{FIG6}.querySelectorAll('[data-choice][aria-pressed=true]')].map((e) => e.textContent)"
    )
    assert pressed == ["best rate", "log", "seconds"]


def test_the_whole_sweep(tab):
    rates = f"{FIG6}.querySelector('[aria-label=rates]')"
    assert tab.run(f"{rates}.hidden") is True
    choose(tab, "view:sweep")
    assert curves(tab) == {LSTM: 4, LARGE: 1, ONE: 4, FOUR: 4, EIGHT: 2}
    assert texts(tab, "g[data-series] text") == ["✕"]  # it diverged
    tab.click(f"[...{rates}.querySelectorAll('button')].find((b) => b.textContent === '0.003')")
    assert curves(tab) == {LSTM: 3, LARGE: 1, ONE: 3, FOUR: 3, EIGHT: 2}


def test_the_copy_task_shows_the_answer_or_everything(tab):
    plot = "document.querySelector('[data-plot=fig3]')"
    label = f"{plot}.querySelector('.y-label').textContent"
    assert tab.run(label) == "bits on the answer, per sequence"
    tab.click(f"{plot}.querySelector('[data-choice=\"y:cost\"]')")
    assert tab.run(label) == "bits per whole sequence"


def test_pointing_shows_run_place_and_value(tab, report):
    tip = f"{FIG6}.querySelector('.tip')"
    assert tab.run(f"{tip}.hidden") is True
    for network in (LSTM, ONE):  # leave the Associative LSTM with 4 copies alone
        tab.click(legend(network))
    path = f"{FIG6}.querySelectorAll('g[data-series] path.single')[1]"
    x, y = point_at(tab, path)
    assert tab.run(f"{tip}.hidden") is False
    line = json.loads(tab.run("document.getElementById('data').textContent"))["lines"][
        "xml/associative-lstm-4/lr0.003-seed1"
    ]
    last = line["y"]["cost"][-5:]
    shown = tab.run(f"[...{tip}.children].map((e) => e.textContent)")
    assert shown[:3] == [
        "Associative LSTM 128, 4 copies",
        "rate 0.003, seed 1",
        "minibatch 20,000, 81 s",
    ]
    assert float(re.fullmatch(r"([\d.]+) bits", shown[3])[1]) == pytest.approx(sum(last) / 5, rel=1e-3)
    assert shown[4] == f"as logged: {last[-1]:.4g}"
    box = tab.run(
        f"(() => {{ const b = {tip}.getBoundingClientRect(); return [b.left, b.right, b.bottom]; }})()"
    )
    assert box[0] >= 0
    assert abs(box[1] - x) < 20  # beside the point, towards the middle of the page, and above it
    assert 0 < y - box[2] < 20
    tab.mouse(2, 2)
    assert tab.run(f"{tip}.hidden") is True


def test_the_mean_leaves_out_a_seed_that_diverged(browser, tmp_path):
    write_curve(tmp_path / "runs", "xml", "lstm-128", level=1.2, seeds=(0, 1))
    planned = curve("xml", "lstm-128")
    folder, config = planned.folder(tmp_path / "runs", 3e-3, 2), planned.config(3e-3, 2, planned.steps)
    write_run(folder, config, logged=30, level=50.0, diverged="stopped at step 3001: not finite")
    write_report(tmp_path / "runs", RESULTS, tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    lines = json.loads(browser.run("document.getElementById('data').textContent"))["lines"]
    costs = [lines[f"xml/lstm-128/lr0.003-seed{seed}"]["y"]["cost"] for seed in (0, 1)]
    ends = (0, "minibatch 500, 2.5 s", slice(0, 5)), (1, "minibatch 20,000, 80.5 s", slice(-5, None))
    for share, place, part in ends:
        point_at(browser, f"{FIG6}.querySelector('g[data-series] path.mean')", share)
        shown = browser.run(f"[...{FIG6}.querySelector('.tip').children].map((e) => e.textContent)")
        assert shown[1:3] == ["mean of 2 seeds", place]
        expected = sum(sum(cost[part]) for cost in costs) / 10
        assert float(re.match(r"([\d.]+) bits", shown[3])[1]) == pytest.approx(expected, rel=1e-3)


def test_arrow_keys_walk_along_a_curve(tab):
    tab.run(f"{FIG6}.querySelector('svg.chart').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        tab.key(key)
    shown = tab.run(f"{FIG6}.querySelector('.tip').textContent")
    assert "seed 1" in shown
    assert "minibatch 600" in shown


def test_a_link_to_a_run_opens_what_hides_it(tab):
    tab.run(
        "new Promise((done) => { addEventListener('hashchange', () => requestAnimationFrame(done), {once: true});"
        "location.hash = '#run:xml/lstm-128/lr0.003-seed2'; })"
    )
    row = "document.getElementById('run:xml/lstm-128/lr0.003-seed2')"
    assert tab.run(f"{row}.closest('details').open") is True
    top = tab.run(f"{row}.getBoundingClientRect().top")
    assert 0 <= top <= 900


@pytest.mark.parametrize("width", [320, 360, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_need_not_scroll_sideways(tab, width, scheme):
    tab.screen(width, 740, phone=True, scheme=scheme)
    tab.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("innerWidth") == width
    charts = "[...document.querySelectorAll('svg.chart')]"
    assert tab.run(f"{charts}.every((e) => e.getBoundingClientRect().right <= innerWidth)")
    colours = tab.run(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    brightness = [sum(map(int, re.findall(r"\d+", colour))) for colour in colours]
    assert (brightness[0] > brightness[1]) == (scheme == "light")


@pytest.mark.parametrize("width", [360, 1200])
def test_labels_of_an_axis_do_not_overlap(tab, width):
    tab.screen(width)
    for scale in ("log", "linear"):
        choose(tab, f"scale:{scale}")
        for selector, near, far in ((".x-tick", "left", "right"), (".y-tick", "top", "bottom")):
            boxes = tab.run(
                f"[...{FIG6}.querySelectorAll('{selector}')].map((e) => e.getBoundingClientRect())"
                f".map((b) => [b.{near}, b.{far}])"
            )
            boxes.sort()
            assert len(boxes) >= 3
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(boxes))


def test_on_paper_everything_is_open_and_no_button_is_left(tab):
    tab.screen(1200, scheme="dark")
    assert tab.print().startswith(b"%PDF")
    tab.send("Emulation.setEmulatedMedia", media="print")
    tab.run("dispatchEvent(new Event('beforeprint'))")
    shut = "[...document.querySelectorAll('details:not([open])')].filter((d) => !d.closest('.screen')).length"
    assert tab.run(shut) == 0
    assert tab.run("[...document.querySelectorAll('.controls')].every((e) => !e.offsetParent)")
    assert tab.run(f"{FIG6}.querySelector('svg.chart').viewBox.baseVal.width") == 660
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.send("Emulation.setEmulatedMedia", media="")
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert tab.run(shut) > 0
    assert tab.run(f"{FIG6}.querySelector('svg.chart').viewBox.baseVal.width") > 660
