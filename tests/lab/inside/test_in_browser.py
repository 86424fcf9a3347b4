"""The page in Chromium: its network computes what Python's does, and the page shows it and obeys."""

import base64
import copy
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from associative_lstm import AssociativeLSTM, inside
from associative_lstm.lab.inside.page import LONGEST, data_of, html_of, write_page
from associative_lstm.lab.run.model import SequenceModel
from associative_lstm.lab.tasks import make_task
from made_networks import lstm, reader

NEAR = 1e-5
"""What the page may differ by. Both compute in double precision, so most of it is room."""

WHOLE = 'canvas[aria-busy="false"]'
"""The map, when all of it has been computed."""

KINDS = {
    "copies": {"copies": 4},
    "heads": {"copies": 2, "heads": 3},
    "layers": {"copies": 3, "layers": 2},
    "recurrent update": {"recurrent_update": True},
    "initial state": {"learn_initial_state": True},
}
TASKS = ["copy", "copy-variable", "xml", "assignment", "arithmetic", "wikipedia"]


def text_of(task, seed, length=80):
    """Any symbols that the task has: a network is asked about more than it was trained on."""
    draw = random.Random(seed)
    alphabet = "äß€ \n<A" if task.name == "wikipedia" else task.vocabulary
    return "".join(draw.choice(alphabet) for _ in range(length))


def in_double(trained):
    return copy.deepcopy(trained.model).double()


def run(model, symbols):
    """What the model says, in double precision."""
    h = torch.eye(model.layers[0].input_size, dtype=torch.float64)[torch.tensor(symbols)].unsqueeze(1)
    with torch.no_grad():
        for layer in model.layers:
            if hasattr(layer, "backend"):
                layer.backend = "reference"
            h, _ = layer(h)
        return model.readout(h)[:, 0]


READ = """([k, text]) => {
    const network = NETWORKS[k], { symbols } = encode(text);
    network.read(symbols);
    const rows = symbols.map((_, t) => network.logits[t].indexOf(Math.max(...network.logits[t])));
    const plain = ({ writes, initial, bias }) => ({ writes: [...writes], initial, bias });
    return {
        symbols,
        logits: network.logits.map((row) => [...row]),
        probabilities: symbols.map((_, t) => [...network.probabilities(t)]),
        bits: network.recalls ? rows.map((symbol, t) => plain(network.bits(t, symbol))) : [],
        shares: network.recalls ? rows.map((_, t) => plain(network.shares(t))) : [],
        summaries: network.recalls ? rows.map((_, t) => network.summary(t)) : [],
    };
}"""


def near(ours, theirs):
    ours, theirs = torch.as_tensor(ours, dtype=torch.float64), torch.as_tensor(theirs).detach()
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().max().item() <= NEAR


def agrees(tab, k, trained, text):
    """Logits, parts and shares of the page's network k are Python's."""
    said = tab.evaluate(READ, [k, text])
    assert said["symbols"] == trained.task.encode(text).tolist()
    model = in_double(trained)
    logits = run(model, said["symbols"])
    near(said["logits"], logits)
    near(said["probabilities"], torch.softmax(logits, -1))
    if not isinstance(model.layers[-1], AssociativeLSTM):
        return
    x = torch.tensor(said["symbols"])
    parts = inside.attribute(model, x, logits.argmax(-1), against="mean")
    writes = parts.writes.sum((1, 3))
    for t, ours in enumerate(said["bits"]):
        near(ours["writes"], writes[t, : t + 1])
    near([ours["initial"] for ours in said["bits"]], parts.initial.sum(1))
    near([ours["bias"] for ours in said["bits"]], parts.bias)
    h = torch.eye(model.layers[0].input_size, dtype=torch.float64)[x]
    for layer in model.layers[:-1]:
        [seen] = inside.look(layer, h)
        h = seen.h.flatten(1)
    [shares] = inside.recall(model.layers[-1], h)
    for t, ours in enumerate(said["shares"]):
        near(ours["writes"], shares.writes[t].mean(0).sum(-1)[: t + 1])
    near([ours["initial"] for ours in said["shares"]], shares.initial.mean(1))
    [seen] = inside.look(model.layers[-1], h)
    for name, gate in {"input": seen.g_i, "forget": seen.g_f, "output": seen.g_o}.items():
        near([one[name] for one in said["summaries"]], gate.flatten(1).mean(1))
    near([one["load"] for one in said["summaries"]], 2 * seen.c.square().mean((1, 2)))


@pytest.mark.parametrize("task", TASKS)
def test_the_page_computes_what_python_does(load, tmp_path, task):
    networks = [reader(task=task), lstm(task)]
    write_page(networks, text_of(networks[0].trained.task, 0), [], tmp_path / "page.html")
    tab = load(tmp_path / "page.html")
    for seed in range(2):
        for k, network in enumerate(networks):
            agrees(tab, k, network.trained, text_of(network.trained.task, seed))


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_computes_every_kind_of_network(load, tmp_path, kind):
    network = reader(task="assignment", **KINDS[kind])
    write_page([network], "s(a,b)", [], tmp_path / "page.html")
    agrees(load(tmp_path / "page.html"), 0, network.trained, text_of(network.trained.task, 3))


ODD = {
    "tanh": {"activation": "tanh"},
    "no bias": {"bias": False},
    "rotation": {"rotation": 0.7},
    "shifts": {"permutation": "shift"},
}


@pytest.mark.parametrize("kind", [*ODD, "stacked in one", "an LSTM below"])
def test_the_page_computes_networks_that_no_preset_makes(load, tmp_path, kind):
    network = reader(task="copy")
    torch.manual_seed(1)
    layers = [AssociativeLSTM(10, 16, num_copies=3, **ODD.get(kind, {}))]
    if kind == "an LSTM below":
        layers = [lstm("copy").trained.model.layers[0], AssociativeLSTM(16, 16)]
    if kind == "stacked in one":
        layers = [AssociativeLSTM(10, 16, num_layers=2)]
    for parameter in layers[-1].parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model = SequenceModel(layers, 10)
    trained = network.trained._replace(model=model)
    write_page([network._replace(trained=trained)], "ab", [], tmp_path / "page.html")
    tab, text = load(tmp_path / "page.html"), text_of(trained.task, 5)
    if kind in ODD:
        agrees(tab, 0, trained, text)
        return
    said = tab.evaluate(READ, [0, text])
    x = torch.tensor(said["symbols"])
    logits = run(in_double(trained), said["symbols"])
    near(said["logits"], logits)
    parts = inside.attribute(model, x.unsqueeze(1), logits.argmax(-1, keepdim=True), against="mean")
    for t, ours in enumerate(said["bits"]):
        near(ours["writes"], parts.writes[t, 0, :, : t + 1].sum((0, 2)))


PAGES = sorted((Path(__file__).parents[3] / "docs" / "inside").glob("*.html"))


def numbers(text):
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), "<f4").copy())


def trained_in(page):
    """The network of a page of one layer, made from what the page has of it."""
    data = data_of(page.read_text(encoding="utf-8"))
    [network] = data["networks"]
    [spec] = network["layers"]
    rows, rows_h = (
        len(numbers(spec[f"weight_{name}"])) // width
        for name, width in (("ih", spec["inputs"]), ("hh", spec["heads"] * spec["size"]))
    )
    options = {"num_copies": spec["copies"], "num_heads": spec["heads"], "activation": spec["activation"]}
    learned = spec["c_0"] is not None
    layer = AssociativeLSTM(
        spec["inputs"],
        spec["size"],
        recurrent_update=rows == rows_h,
        learn_initial_state=learned,
        **options,
    )
    model = SequenceModel([layer], len(data["vocabulary"]))
    with torch.no_grad():
        for name in ("weight_ih", "weight_hh", "bias", *(("h_0", "c_0") if learned else ())):
            parameter = getattr(layer, f"{name}_l0")
            parameter.copy_(numbers(spec[name]).view_as(parameter))
        layer.permutations_l0.copy_(torch.tensor(spec["permutations"]))
        model.readout.weight.copy_(numbers(network["readout"]["weight"]).view_as(model.readout.weight))
        model.readout.bias.copy_(numbers(network["readout"]["bias"]))
    assert spec["angles"] is None
    return reader(task=data["task"]).trained._replace(model=model), data["text"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_of_the_documentation_computes_what_python_does(load, page):
    trained, text = trained_in(page)
    tab = load(page)
    tab.wait_for_selector(WHOLE)
    agrees(tab, 0, trained, text)
    agrees(tab, 0, trained, text_of(trained.task, 0))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_of_the_documentation_has_the_scripts_of_today(page):
    html = page.read_text(encoding="utf-8")
    data = data_of(html)
    assert html == html_of(make_task(data["task"]), data), "python benchmarks/inside.py makes it anew"


@pytest.fixture
def page(tmp_path):
    def make(*networks, text="s(ml,a),s(qc,n),q(ml)a.", examples=("s(x,y),q(x)y.",)):
        out = tmp_path / "page.html"
        write_page(list(networks) or [reader(task="assignment")], text, list(examples), out)
        return out

    return make


def lit(tab, k=0):
    """The characters that are lit up: place, for or against, and how much."""
    return tab.evaluate(
        f"[...document.querySelectorAll('#text-{k} .cell.for, #text-{k} .cell.against')].map((cell) =>"
        "[+cell.dataset.place, cell.classList.contains('for'), +cell.style.getPropertyValue('--w')])"
    )


def expected_parts(trained, text, place):
    """The parts of what is expected at a place of the text, as Python has them."""
    model = in_double(trained)
    x = torch.tensor(trained.task.encode(text).tolist())
    t = place - 1
    said = run(model, x.tolist())[t].argmax().item()
    return inside.attribute(model, x, said, reads=[t], against="mean").writes[0].sum((0, 2))[: t + 1]


def shows(tab, trained, text, place):
    parts = expected_parts(trained, text, place)
    strength = parts / parts.abs().max()
    wanted = [(k, v > 0, abs(v)) for k, v in enumerate(strength.tolist()) if abs(v) >= 0.04]
    seen = lit(tab)
    assert [(k, positive) for k, positive, _ in seen] == [(k, positive) for k, positive, _ in wanted]
    near([w for *_, w in seen], torch.tensor([w for *_, w in wanted]).mul(1000).round().div(1000))
    listed = tab.locator(".parts li .number").all_text_contents()
    largest = parts[parts.abs().argmax()].item()
    assert listed[0] == f"{'+' if largest > 0 else '−'}{abs(largest):.1f}"
    assert tab.locator("#text-0 .selected").get_attribute("data-place") == str(place)


def test_a_touched_character_lights_up_what_it_was_recalled_from(load, page):
    network, text = reader(task="assignment"), "s(ml,a),s(qc,n),q(ml)a."
    tab = load(page(network, text=text), has_touch=True)
    tab.tap("#cell-0-21")
    shows(tab, network.trained, text, 21)
    tab.click("#cell-0-23")  # the one that comes next
    shows(tab, network.trained, text, 23)
    tab.click("#cell-0-0")
    assert lit(tab) == []
    assert "nothing has been read" in tab.text_content(".detail")


def test_the_mouse_shows_and_a_click_keeps(load, page):
    network, text = reader(task="assignment"), "s(ml,a),s(qc,n),q(ml)a."
    tab = load(page(network, text=text))
    tab.click("#cell-0-8")
    tab.hover("#cell-0-17")
    shows(tab, network.trained, text, 17)
    tab.hover("h1")
    shows(tab, network.trained, text, 8)


def test_the_keyboard_walks_through_the_text(load, page):
    tab = load(page(), width=320)
    tab.click("#cell-0-5")
    place = "+document.querySelector('#text-0 .selected').dataset.place"
    for key, expected in [("ArrowRight", 6), ("ArrowLeft", 5), ("End", 23), ("ArrowRight", 23), ("Home", 0)]:
        tab.press("#text-0", key)
        assert tab.evaluate(place) == expected
    tab.press("#text-0", "ArrowDown")
    below = tab.evaluate(place)
    boxes = [tab.locator(f"#cell-0-{k}").bounding_box() for k in (0, below)]
    assert boxes[0]["x"] == boxes[1]["x"]
    assert boxes[0]["y"] < boxes[1]["y"]
    tab.press("#text-0", "ArrowUp")
    assert tab.evaluate(place) == 0
    tab.click("#cell-0-5")
    tab.press("canvas", "ArrowDown")
    assert tab.evaluate(place) == 6


def test_what_is_typed_is_read(load, page):
    network = reader(task="assignment")
    tab = load(page(network))
    tab.fill("#text", "")
    assert tab.locator("#text-0 .cell").count() == 1
    assert "nothing is expected" in tab.text_content(".detail")
    tab.type("#text", "q(x)")
    shows(tab, network.trained, "q(x)", 4)
    tab.press("#text", "Backspace")
    shows(tab, network.trained, "q(x", 3)
    tab.fill("#text", "s(u,v),q(u)")
    shows(tab, network.trained, "s(u,v),q(u)", 11)
    task = network.trained.task
    said = task.decode(run(in_double(network.trained), task.encode("s(u,v),q(u)").tolist())[-1:].argmax(-1))
    tab.click("text=Write on")
    assert tab.input_value("#text") == "s(u,v),q(u)" + said
    tab.click("text=Another text")
    assert tab.input_value("#text") == "s(x,y),q(x)y."
    assert tab.locator("#text-0 .cell").count() == 14


def test_the_parts_of_an_alternative(load, page):
    network, text = reader(task="assignment"), "s(ml,a),s(qc,n),q(ml)a."
    tab = load(page(network, text=text))
    tab.click("#cell-0-21")
    second = tab.locator(".choices button").nth(1)
    symbol = int(network.trained.task.encode(second.locator("b").text_content())[0])
    second.click()
    assert tab.locator(".choices button").nth(1).get_attribute("aria-pressed") == "true"
    x = torch.tensor(network.trained.task.encode(text).tolist())
    parts = inside.attribute(in_double(network.trained), x, symbol, reads=[20], against="mean")
    assert f"{abs(parts.total.item()):.1f} bits" in tab.text_content(".total")


def test_every_map_and_head(load, page):
    network = reader(task="assignment", heads=3, copies=2)
    tab = load(page(network))
    tab.wait_for_selector(WHOLE)
    model, text = in_double(network.trained), "s(ml,a),s(qc,n),q(ml)a."
    x = torch.tensor(network.trained.task.encode(text).tolist())
    said = run(model, x.tolist()).argmax(-1)
    bits = inside.attribute(model, x, said, against="mean").writes.sum(-1)
    h = torch.eye(80, dtype=torch.float64)[x]
    [shares], [seen] = inside.recall(model.layers[0], h), inside.look(model.layers[0], h)

    def cosine(a, b):
        return torch.nn.functional.cosine_similarity(a.flatten(1)[:, None], b.flatten(1)[None], dim=-1)

    conjugate = torch.cat([seen.r_o[..., :8], -seen.r_o[..., 8:]], -1)
    expected = {
        "answer": bits.sum(1),
        "read": shares.writes.mean(1).sum(-1),
        "opens": cosine(conjugate, seen.r_i),
        "keys": cosine(seen.r_i, seen.r_i),
    }
    shown = "page.views[0].map.rows[page.views[0].map.kind].map((row) => [...row])"
    pictures = set()
    for kind, rows in expected.items():
        tab.click(f'[data-choice="show:{kind}"]')
        tab.wait_for_selector(WHOLE)
        for t, row in enumerate(tab.evaluate(shown)):
            near(row, rows[t, : t + 1])
        pictures.add(tab.evaluate("document.querySelector('canvas').toDataURL()"))
    assert len(pictures) == 4
    tab.click('[data-choice="show:answer"]')
    tab.click('[data-choice="reading head:1"]')
    tab.wait_for_selector(WHOLE)
    for t, row in enumerate(tab.evaluate(shown)):
        near(row, bits[t, 1, : t + 1])


def test_a_point_of_the_map_says_its_number(load, page):
    tab = load(page())
    tab.wait_for_selector(WHOLE)
    left, top, side = tab.evaluate("(({left, top, side}) => [left, top, side])(page.views[0].map.geometry())")
    where = {"x": left + 7.5 * side, "y": top + 12.5 * side}
    tab.hover("canvas", position=where)
    value = tab.evaluate("signed(page.views[0].map.rows.answer[12][7])")
    assert tab.text_content(".tip").startswith(f"{value} bits from 8, ")
    tab.click("canvas", position=where)
    assert tab.locator("#text-0 .selected").get_attribute("data-place") == "13"
    tab.hover(
        "canvas", position={"x": left + 12.5 * side, "y": top + 7.5 * side}
    )  # what has not been written yet
    assert "bits" not in tab.text_content(".tip")


def test_two_networks_read_the_same_text_and_an_lstm_shows_its_answers(load, page):
    tab = load(page(reader(task="assignment"), lstm("assignment")))
    assert tab.locator(".network").count() == 2
    tab.click("#cell-1-9")
    assert tab.locator("#text-0 .selected").get_attribute("data-place") == "9"
    assert lit(tab, 0) != []
    assert lit(tab, 1) == []
    assert tab.locator("canvas").count() == 1
    assert "only its answers" in tab.locator(".network").nth(1).text_content()
    assert tab.locator(".network").nth(1).locator(".choices button").count() >= 5
    tab.fill("#text", "s(")
    assert [tab.locator(f"#text-{k} .cell").count() for k in (0, 1)] == [3, 3]


def test_what_the_task_does_not_have_is_left_out_and_said(load, page):
    tab = load(page())
    tab.fill("#text", "s(é,a)🙂")
    assert tab.text_content("#message") == "“é”, “🙂”: not in the alphabet of this task, and left out."
    assert tab.locator("#text-0 .cell").count() == len("s(,a)") + 1
    tab.fill("#text", "ab" * LONGEST)
    assert tab.text_content("#message") == f"Only the first {LONGEST:,} symbols are read."
    assert tab.locator("#text-0 .cell").count() == LONGEST + 1
    tab.fill("#text", "ab")
    assert tab.text_content("#message") == ""


def test_answers_stand_beside_what_is_asked_of_an_episodic_task(load, page):
    network = reader(task="copy")
    tab = load(page(network, text="abc___:___"))
    assert tab.locator("#text-0 .cell").count() == 10
    task = network.trained.task
    said = task.decode(run(in_double(network.trained), task.encode("abc___:___").tolist()).argmax(-1))
    assert "".join(tab.locator("#text-0 .cell i").all_text_contents()) == said
    assert tab.locator("text=Write on").count() == 0
    assert "the initial state" in tab.text_content(".parts")


HOSTILE = "</script><script>document.title=1</script><img src=x onerror=alert(1)>"


def test_nothing_that_comes_with_the_text_or_the_name_is_run(load, page):
    network = reader(task="wikipedia", name=HOSTILE + "'\"{{ 7 * 7 }}\u2028")
    tab = load(page(network, text=HOSTILE, examples=[HOSTILE]))
    assert tab.title() == f"Inside {network.name}"
    assert tab.input_value("#text") == HOSTILE
    assert tab.locator("img, iframe, script:not(#data)").count() == 1
    tab.fill("#text", HOSTILE * 2)
    tab.click("text=Another text")
    tab.click("#how summary")
    assert HOSTILE in tab.text_content("#how")
    assert tab.locator("img, iframe, script:not(#data)").count() == 1


def test_a_script_that_got_in_would_not_run(browser, page):
    """Not the escaping but the policy: only the page's own script and style are allowed."""
    path = page()
    path.write_text(path.read_text().replace("<main>", "<main><script>window.got = 1</script>"))
    tab = browser.new_page()
    tab.goto(path.resolve().as_uri())
    assert tab.evaluate("[typeof NETWORKS, typeof window.got]") == ["object", "undefined"]
    tab.close()


@pytest.mark.parametrize("width", [320, 375, 800, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off(load, page, width, scheme):
    networks = reader(task="assignment", heads=3), lstm("assignment")
    tab = load(page(*networks, text="s(ml,a),s(qc,n),q(ml)a." * 5), width=width, color_scheme=scheme)
    tab.wait_for_selector(WHOLE)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.evaluate(
        "[...document.querySelectorAll('button')].every((b) => b.scrollWidth <= b.clientWidth + 1)"
    )
    assert tab.evaluate(CONTRASTS) >= 4.5


# The least contrast of any text with what is behind it; text whose faintness has a meaning is left out.
CONTRASTS = """() => {
    const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const light = (layers) => {
        pen.clearRect(0, 0, 1, 1);
        for (const colour of layers) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
        const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map((v) => v / 255)
            .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => (element
        ? [...behind(element.parentElement), getComputedStyle(element).backgroundColor] : []);
    const ratios = [];
    for (const element of document.querySelectorAll("body *")) {
        if (element.matches(".cell i, .strips *, script, canvas, noscript, noscript *")) continue;
        if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
        const back = behind(element), [a, b] = [light([...back, getComputedStyle(element).color]), light(back)];
        ratios.push((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
    }
    return Math.min(...ratios);
}"""
