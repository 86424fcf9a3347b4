"""The page in Chromium: it loads without an error, draws what the data say, and obeys its buttons."""

import itertools
import json
import re
from pathlib import Path

import pytest

from associative_lstm.lab.experiments.learning.curves import curve
from associative_lstm.lab.report.page import write_report
from made_runs import write_curve, write_run
from waiting import HANGS

RESULTS = Path(__file__).parents[3] / "results"
FIG6 = "[data-plot=fig6]"


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_report(runs, RESULTS, out)
    return out


@pytest.fixture
def load(browser):
    """``load(page)`` opens a file in a tab of its own; no test leaves an error behind there."""
    tabs = []

    def open_tab(page, width=1200, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(1000 * HANGS)
        tabs.append(context.new_page())
        tabs[-1].goto(page.resolve().as_uri())
        return tabs[-1]

    yield open_tab
    for tab in tabs:
        assert tab.page_errors() == []
        said = [
            message for message in tab.console_messages() if message.type in ("error", "warning", "assert")
        ]
        assert [message.text for message in said] == []
        tab.context.close()


@pytest.fixture
def tab(load, report):
    return load(report)


def texts(tab, selector):
    return tab.locator(f"{FIG6} {selector}").all_text_contents()


def choose(tab, choice):
    tab.click(f'{FIG6} [data-choice="{choice}"]')


def data(tab):
    """What the page draws."""
    return json.loads(tab.text_content("#data"))


def curves(tab):
    """How many lines are drawn of each network."""
    name = "DATA.plots.fig6.series[g.dataset.series].name"
    pairs = f"(all) => all.map((g) => [{name}, g.querySelectorAll('path').length])"
    return dict(tab.eval_on_selector_all(f"{FIG6} g[data-series]", pairs))


def legend(tab, network):
    """The button of a network."""
    return tab.locator(f"{FIG6} .legend button").filter(has_text=re.compile(f"^{network}")).first


def point_at(tab, path, share=1):
    """Put the mouse on a curve where this ``share`` of its length is behind, and give where that is."""
    tab.eval_on_selector(FIG6, "(figure) => figure.scrollIntoView({block: 'center'})")
    x, y = path.evaluate(
        "(p, share) => { const q = p.getPointAtLength(share * p.getTotalLength())"
        ".matrixTransform(p.ownerSVGElement.getScreenCTM()); return [q.x, q.y]; }",
        share,
    )
    tab.mouse.move(x, y)
    return x, y


LSTM, LARGE = "LSTM 128", "LSTM 512"
ONE, FOUR, EIGHT = (f"Associative LSTM 128, {copies}" for copies in ("1 copy", "4 copies", "8 copies"))


def test_it_loads_by_itself_and_draws_every_plot(tab, report):
    asked = [request.url for request in tab.requests()]
    assert asked[0] == report.resolve().as_uri()
    assert all(url.startswith("data:") for url in asked[1:])
    plots = data(tab)["plots"]
    assert tab.locator("[data-plot]").count() == len(plots)
    for name, plot in plots.items():
        expected = [len(series["views"]["best"]) for series in plot["series"]]
        drawn = tab.locator(f'[data-plot="{name}"] g[data-series] path').count()
        assert drawn == sum(n + (n > 1) for n in expected)  # and the mean of several


def test_a_click_on_the_legend_hides_and_shows_a_network(tab):
    assert curves(tab) == {LSTM: 4, ONE: 4, FOUR: 3}
    button = legend(tab, LSTM)
    button.click()
    assert curves(tab) == {ONE: 4, FOUR: 3}
    assert button.get_attribute("aria-pressed") == "false"
    button.press("Enter")
    assert curves(tab) == {LSTM: 4, ONE: 4, FOUR: 3}
    assert button.get_attribute("aria-pressed") == "true"
    for network in (LSTM, ONE, FOUR):
        legend(tab, network).click()
    assert texts(tab, "svg.chart text") == ["nothing is chosen"]
    assert legend(tab, LARGE).is_enabled()  # it is in the sweep
    assert legend(tab, "LSTM 128, forget bias 1").is_disabled()


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
    assert texts(tab, "[data-choice][aria-pressed=true]") == ["best rate", "log", "seconds"]


def test_the_whole_sweep(tab):
    rates = tab.locator(f"{FIG6} [aria-label=rates]")
    assert rates.is_hidden()
    choose(tab, "view:sweep")
    assert curves(tab) == {LSTM: 4, LARGE: 1, ONE: 4, FOUR: 4, EIGHT: 2}
    assert texts(tab, "g[data-series] text") == ["✕"]  # it diverged
    rates.get_by_text("0.003", exact=True).click()
    assert curves(tab) == {LSTM: 3, LARGE: 1, ONE: 3, FOUR: 3, EIGHT: 2}


def test_the_copy_task_shows_the_answer_or_everything(tab):
    plot = tab.locator("[data-plot=fig3]")
    label = plot.locator(".y-label")
    assert label.text_content() == "bits on the answer, per sequence"
    plot.locator('[data-choice="y:cost"]').click()
    assert label.text_content() == "bits per whole sequence"


def test_pointing_shows_run_place_and_value(tab):
    tip = tab.locator(f"{FIG6} .tip")
    assert tip.is_hidden()
    for network in (LSTM, ONE):  # leave the Associative LSTM with 4 copies alone
        legend(tab, network).click()
    x, y = point_at(tab, tab.locator(f"{FIG6} g[data-series] path.single").nth(1))
    assert tip.is_visible()
    last = data(tab)["lines"]["xml/associative-lstm-4/lr0.003-seed1"]["y"]["cost"][-5:]
    shown = texts(tab, ".tip > *")
    assert shown[:3] == [
        "Associative LSTM 128, 4 copies",
        "rate 0.003, seed 1",
        "minibatch 20,000, 81 s",
    ]
    assert float(re.fullmatch(r"([\d.]+) bits", shown[3])[1]) == pytest.approx(sum(last) / 5, rel=1e-3)
    assert shown[4] == f"as logged: {last[-1]:.4g}"
    box = tip.bounding_box()
    assert box["x"] >= 0
    assert (
        abs(box["x"] + box["width"] - x) < 20
    )  # beside the point, towards the middle of the page, and above it
    assert 0 < y - (box["y"] + box["height"]) < 20
    tab.mouse.move(2, 2)
    assert tip.is_hidden()


def test_the_mean_leaves_out_a_seed_that_diverged(load, tmp_path):
    write_curve(tmp_path / "runs", "xml", "lstm-128", level=1.2, seeds=(0, 1))
    planned = curve("xml", "lstm-128")
    folder, config = planned.folder(tmp_path / "runs", 3e-3, 2), planned.config(3e-3, 2, planned.steps)
    write_run(folder, config, logged=30, level=50.0, diverged="stopped at step 3001: not finite")
    write_report(tmp_path / "runs", RESULTS, tmp_path / "report.html")
    tab = load(tmp_path / "report.html")
    lines = data(tab)["lines"]
    costs = [lines[f"xml/lstm-128/lr0.003-seed{seed}"]["y"]["cost"] for seed in (0, 1)]
    ends = (0, "minibatch 500, 2.5 s", slice(0, 5)), (1, "minibatch 20,000, 80.5 s", slice(-5, None))
    for share, place, part in ends:
        point_at(tab, tab.locator(f"{FIG6} g[data-series] path.mean"), share)
        shown = texts(tab, ".tip > *")
        assert shown[1:3] == ["mean of 2 seeds", place]
        expected = sum(sum(cost[part]) for cost in costs) / 10
        assert float(re.match(r"([\d.]+) bits", shown[3])[1]) == pytest.approx(expected, rel=1e-3)


def test_arrow_keys_walk_along_a_curve(tab):
    chart = tab.locator(f"{FIG6} svg.chart")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        chart.press(key)
    (shown,) = texts(tab, ".tip")
    assert "seed 1" in shown
    assert "minibatch 600" in shown


def test_a_link_to_a_run_opens_what_hides_it(tab):
    tab.evaluate(
        "new Promise((done) => { addEventListener('hashchange', () => requestAnimationFrame(done), {once: true});"
        "location.hash = '#run:xml/lstm-128/lr0.003-seed2'; })"
    )
    row = tab.locator('[id="run:xml/lstm-128/lr0.003-seed2"]')
    assert row.is_visible()
    assert 0 <= row.bounding_box()["y"] <= 900


@pytest.mark.parametrize("width", [320, 360, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_need_not_scroll_sideways(load, report, width, scheme):
    tab = load(report, width, 740, is_mobile=True, color_scheme=scheme)
    tab.eval_on_selector_all("details", "(all) => all.forEach((d) => { d.open = true; })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("innerWidth") == width
    right = "(all) => all.map((e) => e.getBoundingClientRect().right)"
    assert max(tab.eval_on_selector_all("svg.chart", right)) <= width
    style = "(e) => { const style = getComputedStyle(e); return [style.backgroundColor, style.color]; }"
    colours = tab.eval_on_selector("body", style)
    brightness = [sum(map(int, re.findall(r"\d+", colour))) for colour in colours]
    assert (brightness[0] > brightness[1]) == (scheme == "light")


@pytest.mark.parametrize("width", [360, 1200])
def test_labels_of_an_axis_do_not_overlap(load, report, width):
    tab = load(report, width)
    for scale in ("log", "linear"):
        choose(tab, f"scale:{scale}")
        for selector, near, far in ((".x-tick", "left", "right"), (".y-tick", "top", "bottom")):
            ends = f"(all) => all.map((e) => e.getBoundingClientRect()).map((b) => [b.{near}, b.{far}])"
            boxes = sorted(tab.eval_on_selector_all(f"{FIG6} {selector}", ends))
            assert len(boxes) >= 3
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(boxes))


def test_on_paper_everything_is_open_and_no_button_is_left(load, report):
    tab = load(report, color_scheme="dark")
    assert tab.pdf(print_background=True).startswith(b"%PDF")
    shut = "[...document.querySelectorAll('details:not([open])')].filter((d) => !d.closest('.screen')).length"
    width = f"document.querySelector('{FIG6} svg.chart').viewBox.baseVal.width"
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate(shut) == 0
    assert tab.locator(".controls").count() > 0
    assert not any(controls.is_visible() for controls in tab.locator(".controls").all())
    assert tab.evaluate(width) == 660
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.emulate_media(media="null")
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate(shut) > 0
    assert tab.evaluate(width) > 660
