"use strict";

// Draws the plots of the page from the JSON in #data (lab/report/lines.py says what is in it), as SVG.

const DATA = JSON.parse(document.getElementById("data").textContent);
const PRINT_WIDTH = 660;

const format = (value, digits = 4) =>
  value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) >= 1000 ? 6 : digits });

function html(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function svg(tag, attributes = {}, text = null) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  return element;
}

// ---- lines --------------------------------------------------------------------------------------------------------

const column = (values, count) =>
  Array.isArray(values) ? values : Array.from({ length: count }, (_, i) => values.from + i * values.by);

// The mean over the last `window` values before each; the line begins where it has that many.
function smooth(values, window) {
  const width = Math.min(window, values.length);
  const means = [];
  for (let end = width; end <= values.length; end++) {
    let sum = 0;
    for (let k = end - width; k < end; k++) sum = values[k] === null ? NaN : sum + values[k];
    means.push(sum / width);
  }
  return means;
}

// The points of one run: {x, y, raw, at}, where `at` has the other columns of x for the tooltip.
function pointsOf(id, xKey, yKey) {
  const line = DATA.lines[id];
  const raw = line.y[yKey] ?? [];
  const y = smooth(raw, line.window);
  const skipped = raw.length - y.length;
  const columns = Object.entries(line.x).map(([key, values]) => [key, column(values, raw.length)]);
  const points = y.map((value, i) => {
    const at = Object.fromEntries(columns.map(([key, values]) => [key, values[i + skipped]]));
    return { x: at[xKey], y: value, raw: raw[i + skipped], at };
  });
  return points.filter((p) => p.x !== null && Number.isFinite(p.y));
}

// The mean of several runs, as far as all of them go.
function meanOf(runs) {
  const length = Math.min(...runs.map((points) => points.length));
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  return Array.from({ length }, (_, i) => {
    const here = runs.map((points) => points[i]);
    const ys = here.map((p) => p.y);
    const keys = Object.keys(here[0].at);
    const at = Object.fromEntries(keys.map((key) => [key, mean(here.map((p) => p.at[key]))]));
    return { x: mean(here.map((p) => p.x)), y: mean(ys), low: Math.min(...ys), high: Math.max(...ys), at };
  });
}

// ---- axes ---------------------------------------------------------------------------------------------------------

function linearTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((multiple) => multiple * power >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); k++) ticks.push(k * step + 0);  // never -0
  return ticks;
}

function logTicks(low, high) {
  const multiples = Math.log10(high / low) > 2.6 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    for (const multiple of multiples) ticks.push(multiple * 10 ** power);
  }
  const inside = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  return inside.length >= 2 ? inside : linearTicks(low, high, 4);
}

// ---- a plot -------------------------------------------------------------------------------------------------------

class Plot {
  constructor(figure, name) {
    this.figure = figure;
    this.spec = DATA.plots[name];
    this.hidden = new Set();
    this.hiddenRates = new Set();
    this.state = { view: this.spec.views[0].key, y: this.spec.y[0].key, x: this.spec.x[0].key, scale: "linear" };
    this.width = 0;
    this.controls = html("div", { className: "controls" });
    this.chart = svg("svg", { class: "chart", tabindex: 0, role: "img" });
    this.legend = html("div", { className: "legend" });
    this.tip = html("div", { className: "tip", hidden: true });
    this.tip.setAttribute("role", "status");
    figure.replaceChildren(this.controls, this.chart, this.legend, this.tip);
    if (this.spec.caption) figure.prepend(html("figcaption", {}, this.spec.caption));
    this.makeControls();
    this.makeLegend();
    this.chart.addEventListener("pointermove", (event) => this.point(event));
    this.chart.addEventListener("pointerdown", (event) => this.point(event));
    this.chart.addEventListener("pointerleave", () => this.leave());
    this.chart.addEventListener("blur", () => this.leave());
    this.chart.addEventListener("keydown", (event) => this.walk(event));
  }

  makeControls() {
    const choose = (key) => (value) => { this.state[key] = value; this.update(); };
    const scales = [{ key: "linear", name: "linear" }, { key: "log", name: "log" }];
    this.choice("runs", this.spec.views, "view", choose("view"));
    this.choice("cost of", this.spec.y, "y", choose("y"));
    this.choice("y", scales, "scale", choose("scale"));
    this.choice("x", this.spec.x, "x", choose("x"));
    const ids = this.spec.series.flatMap((series) => series.views.sweep ?? []);
    this.rates = [...new Set(ids.map((id) => DATA.lines[id].rate))].sort((a, b) => a - b);
    this.rateGroup = html("div", { className: "group" }, html("span", {}, "rates"));
    for (const rate of this.rates) {
      const button = html("button", { type: "button" }, String(rate));
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => this.toggle(this.hiddenRates, rate, button));
      this.rateGroup.append(button);
    }
    this.rateGroup.setAttribute("role", "group");
    this.rateGroup.setAttribute("aria-label", "learning rates shown");
    this.controls.append(this.rateGroup);
  }

  // A row of buttons of which one is pressed; none where there is nothing to choose.
  choice(label, options, key, choose) {
    if (options.length < 2) return;
    const group = html("div", { className: "group" }, html("span", {}, label));
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", label);
    for (const option of options) {
      const button = html("button", { type: "button" }, option.name);
      button.dataset.choice = `${key}:${option.key}`;
      button.setAttribute("aria-pressed", String(this.state[key] === option.key));
      button.addEventListener("click", () => {
        for (const other of group.querySelectorAll("button")) {
          other.setAttribute("aria-pressed", String(other === button));
        }
        choose(option.key);
      });
      group.append(button);
    }
    this.controls.append(group);
  }

  makeLegend() {
    this.spec.series.forEach((series, index) => {
      const swatch = svg("svg", { width: 30, height: 10, "aria-hidden": "true" });
      swatch.append(svg("path", { d: "M0 5H30", class: "mean", ...this.ink(series) }));
      const label = html("span", {}, series.label);
      if (series.note) label.append(" ", html("small", {}, `(${series.note})`));
      const button = html("button", { type: "button" }, swatch, label);
      button.setAttribute("aria-pressed", "true");
      button.disabled = !Object.values(series.views).some((ids) => ids.length);
      button.addEventListener("click", () => this.toggle(this.hidden, index, button));
      for (const [event, value] of [["pointerenter", index], ["pointerleave", null]]) {
        button.addEventListener(event, () => this.emphasise(value));
      }
      this.legend.append(button);
    });
  }

  ink(series) {
    return { style: `stroke: var(--${series.colour})`, "stroke-dasharray": series.dash };
  }

  toggle(hidden, value, button) {
    if (!hidden.delete(value)) hidden.add(value);
    button.setAttribute("aria-pressed", String(!hidden.has(value)));
    this.update();
  }

  emphasise(index) {
    for (const group of this.chart.querySelectorAll("g[data-series]")) {
      const other = index !== null && !this.hidden.has(index) && Number(group.dataset.series) !== index;
      group.classList.toggle("dim", other);
    }
  }

  // Everything that is to be seen: {series, index, kind, name, points, diverged}.
  lines() {
    const { view, x, y } = this.state;
    const found = [];
    this.spec.series.forEach((series, index) => {
      if (this.hidden.has(index)) return;
      const best = new Set(series.views.best);
      const ids = series.views[view].filter((id) => view !== "sweep" || !this.hiddenRates.has(DATA.lines[id].rate));
      const runs = ids.map((id) => ({ id, points: pointsOf(id, x, y) })).filter((run) => run.points.length);
      for (const { id, points } of runs) {
        const kind = view === "sweep" && !best.has(id) ? "swept" : view === "sweep" || runs.length === 1 ? "mean" : "single";
        const { name, diverged } = DATA.lines[id];
        found.push({ series, index, kind, name, points, diverged });
      }
      if (view !== "sweep" && runs.length > 1) {
        const points = meanOf(runs.map((run) => run.points));
        found.push({ series, index, kind: "mean", name: `mean of ${runs.length} ${this.spec.of}`, points });
      }
    });
    return found;
  }

  update(width = this.figure.clientWidth) {
    this.width = Math.max(240, width);
    this.height = Math.round(Math.min(420, Math.max(230, this.width * 0.5)));
    this.drawn = this.lines();
    this.rateGroup.hidden = this.state.view !== "sweep" || this.rates.length < 2;
    this.leave();
    const quantity = this.spec.y.find((y) => y.key === this.state.y);
    const abscissa = this.spec.x.find((x) => x.key === this.state.x);
    this.chart.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.chart.setAttribute("aria-label", `${this.spec.title}: ${quantity.label} against ${abscissa.label}`);
    this.chart.replaceChildren();
    if (!this.drawn.length) {
      const empty = this.hidden.size ? "nothing is chosen" : "no finished sweep yet: see the whole sweep";
      this.chart.append(svg("text", { x: this.width / 2, y: this.height / 2, "text-anchor": "middle" }, empty));
      return;
    }
    this.scale(quantity);
    this.drawAxes(quantity, abscissa);
    this.drawLines();
  }

  scale(quantity) {
    const xs = this.drawn.flatMap((line) => line.points.map((p) => p.x));
    const ys = this.drawn.flatMap((line) => line.points.map((p) => p.y)).filter((y) => y > 0 || this.state.scale === "linear");
    const right = xs.reduce((a, b) => Math.max(a, b), 0) || 1;
    const highest = Math.min(ys.reduce((a, b) => Math.max(a, b), 0) * 1.04, quantity.top ?? Infinity) || 1;
    const log = this.state.scale === "log";
    const least = ys.reduce((a, b) => Math.min(a, b), Infinity) * (log ? 0.9 : 0.98);
    const lowest = log || quantity.zero === false ? Math.max(least, log ? quantity.bottom ?? 0 : 0) : 0;
    this.yTicks = log ? logTicks(lowest, highest) : linearTicks(lowest, highest, this.height / 48);
    const room = Math.max(...this.yTicks.map((tick) => format(tick).length));
    this.box = { left: 14 + 7 * room, right: this.width - 22, top: 26, bottom: this.height - 40 };
    this.xTicks = linearTicks(0, right, (this.box.right - this.box.left) / 80);
    const { left, top, bottom } = this.box;
    this.toX = (x) => left + (x / right) * (this.box.right - left);
    const share = log
      ? (y) => Math.log(y / lowest) / Math.log(highest / lowest)
      : (y) => (y - lowest) / (highest - lowest);
    this.toY = (y) => bottom - share(y) * (bottom - top);
    this.inside = (y) => y >= lowest && y <= highest;
  }

  drawAxes(quantity, abscissa) {
    const { left, right, top, bottom } = this.box;
    const axes = svg("g");
    for (const tick of this.yTicks) {
      const y = this.toY(tick);
      axes.append(svg("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
      axes.append(svg("text", { x: left - 6, y: y + 4, "text-anchor": "end", class: "y-tick" }, format(tick)));
    }
    for (const tick of this.xTicks) {
      const x = this.toX(tick);
      axes.append(svg("line", { class: "axis", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
      axes.append(svg("text", { x, y: bottom + 17, "text-anchor": "middle", class: "x-tick" }, format(tick)));
    }
    axes.append(svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    axes.append(svg("text", { x: 2, y: 14, class: "y-label" }, quantity.label));
    axes.append(svg("text", { x: (left + right) / 2, y: this.height - 5, "text-anchor": "middle", class: "x-label" }, abscissa.label));
    this.chart.append(axes);
    for (const mark of quantity.marks ?? []) {
      if (!this.inside(mark.value)) continue;
      const y = this.toY(mark.value);
      this.chart.append(svg("line", { class: "mark", x1: left, x2: right, y1: y, y2: y }));
      const [x, anchor] = mark.side === "left" ? [left + 4, "start"] : [right - 2, "end"];
      const text = `${mark.label}: ${format(mark.value, 3)}`;
      this.chart.append(svg("text", { x, y: y - 5, "text-anchor": anchor, class: "mark-label" }, text));
    }
  }

  drawLines() {
    const { left, right, top, bottom } = this.box;
    const clip = `clip-${this.figure.dataset.plot}`;
    const path = svg("clipPath", { id: clip });
    path.append(svg("rect", { x: left - 2, y: top - 2, width: right - left + 4, height: bottom - top + 4 }));
    this.chart.append(path);
    const groups = new Map();
    const order = ["single", "swept", "mean"];
    for (const line of [...this.drawn].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))) {
      if (!groups.has(line.index)) groups.set(line.index, svg("g", { "data-series": line.index, "clip-path": `url(#${clip})` }));
      const d = line.points
        .filter((p) => p.y > 0 || this.state.scale === "linear")
        .map((p, i) => `${i ? "L" : "M"}${this.toX(p.x).toFixed(1)} ${this.toY(p.y).toFixed(1)}`)
        .join("");
      line.path = svg("path", { d, class: line.kind, ...this.ink(line.series) });
      groups.get(line.index).append(line.path);
      if (line.diverged) {
        const end = line.points.at(-1);
        const at = { x: this.toX(end.x), y: Math.max(top + 8, this.toY(end.y)) + 5, "text-anchor": "middle" };
        groups.get(line.index).append(svg("text", { ...at, style: `fill: var(--${line.series.colour})` }, "✕"));
      }
    }
    this.chart.append(...groups.values());
    this.dot = svg("circle", { r: 4.5, visibility: "hidden", style: "stroke: var(--paper); stroke-width: 1.5" });
    this.chart.append(this.dot);
  }

  // ---- pointing ---------------------------------------------------------------------------------------------------

  point(event) {
    if (!this.drawn.length) return;
    const bounds = this.chart.getBoundingClientRect();
    const zoom = this.width / bounds.width;
    const [x, y] = [(event.clientX - bounds.left) * zoom, (event.clientY - bounds.top) * zoom];
    let nearest = { distance: Infinity };
    for (const line of this.drawn) {
      line.points.forEach((p, i) => {
        if (!this.inside(p.y)) return;
        const distance = Math.hypot(this.toX(p.x) - x, this.toY(p.y) - y);
        if (distance < nearest.distance) nearest = { distance, line, i };
      });
    }
    if (nearest.distance < 60) this.show(nearest.line, nearest.i);
    else this.leave();
  }

  // Arrow keys: left and right along a line, up and down from line to line.
  walk(event) {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!(event.key in moves) || !this.drawn.length) return;
    event.preventDefault();
    const [lines, points] = moves[event.key];
    const here = this.shown ?? { line: this.drawn[0], i: -1 };
    const count = this.drawn.length;
    const line = this.drawn[(this.drawn.indexOf(here.line) + lines + count) % count];
    this.show(line, Math.min(line.points.length - 1, Math.max(0, here.i + points)));
  }

  show(line, i) {
    const p = line.points[i];
    if (this.shown) this.shown.line.path.classList.remove("pointed");
    this.shown = { line, i };
    line.path.classList.add("pointed");
    const [x, y] = [this.toX(p.x), Math.max(this.box.top, this.toY(p.y))];
    for (const [name, value] of Object.entries({ cx: x, cy: y, visibility: "visible" })) this.dot.setAttribute(name, value);
    this.dot.style.fill = `var(--${line.series.colour})`;
    const unit = this.spec.y.find((q) => q.key === this.state.y).unit ?? "";
    const rows = [line.series.name, line.name, this.place(p), `${format(p.y)} ${unit}`];
    if (p.low !== undefined) rows.push(`from ${format(p.low)} to ${format(p.high)}`);
    else if (p.raw !== p.y) rows.push(`as logged: ${format(p.raw)}`);
    this.tip.replaceChildren(...rows.filter(Boolean).map((row, k) => html(k ? "div" : "b", {}, row)));
    this.tip.hidden = false;
    const [chart, figure] = [this.chart, this.figure].map((element) => element.getBoundingClientRect());
    const zoom = chart.width / this.width;
    const [across, down] = [x * zoom, chart.top - figure.top + y * zoom];
    const { offsetWidth, offsetHeight } = this.tip;
    const beside = across + 14 + offsetWidth > figure.width ? across - 14 - offsetWidth : across + 14;
    this.tip.style.left = `${Math.max(0, Math.min(beside, figure.width - offsetWidth))}px`;
    this.tip.style.top = `${down - offsetHeight - 10}px`;
  }

  place(p) {
    const { minibatches, seconds } = p.at;
    if (minibatches === undefined) return `${this.spec.x[0].label}: ${format(p.x)}`;
    const time = seconds === null || Number.isNaN(seconds) ? "" : `, ${format(seconds, 3)} s`;
    return `minibatch ${format(minibatches)}${time}`;
  }

  leave() {
    if (this.shown) this.shown.line.path.classList.remove("pointed");
    this.shown = null;
    this.tip.hidden = true;
    if (this.dot) this.dot.setAttribute("visibility", "hidden");
  }
}

// ---- the page -----------------------------------------------------------------------------------------------------

const plots = [...document.querySelectorAll("[data-plot]")].map((figure) => new Plot(figure, figure.dataset.plot));
redraw();

// All widths before any drawing: each would make the browser lay out the page anew.
function redraw() {
  const widths = plots.map((plot) => plot.figure.clientWidth);
  plots.forEach((plot, i) => plot.update(widths[i]));
}

let width = document.body.clientWidth;
addEventListener("resize", () => {
  if (document.body.clientWidth === width) return;
  width = document.body.clientWidth;
  redraw();
});

// A link to a run opens what hides it.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
  target?.scrollIntoView();
}
addEventListener("hashchange", reveal);
if (location.hash) reveal();

// On paper everything is open, but for the configurations of single runs, which their group sums up.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")].filter((d) => !d.closest(".screen"));
  for (const details of closed) details.open = true;
  for (const plot of plots) plot.update(plot.figure.closest(".row") ? PRINT_WIDTH / 3 : PRINT_WIDTH);
});
addEventListener("afterprint", () => {
  for (const details of closed) details.open = false;
  redraw();
});
