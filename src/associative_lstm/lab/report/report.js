// Draws the plots of the page as SVG, and obeys their buttons; points.js comes before it.

const PRINT_WIDTH = 660;

class Plot {
  constructor(figure, name) {
    this.figure = figure;
    this.spec = DATA.plots[name];
    this.hidden = new Set();
    this.hiddenRates = new Set();
    this.state = { view: this.spec.views[0].key, y: this.spec.y[0].key, x: this.spec.x[0].key, scale: "linear" };
    this.controls = html("div", { className: "controls" });
    this.chart = svg("svg", { class: "chart", tabindex: 0, role: "img" });
    this.legend = html("div", { className: "legend" });
    this.tip = html("div", { className: "tip", role: "status", hidden: true });
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
    this.choice("runs", "view", this.spec.views);
    this.choice("cost of", "y", this.spec.y);
    this.choice("y", "scale", [{ key: "linear", name: "linear" }, { key: "log", name: "log" }]);
    this.choice("x", "x", this.spec.x);
    const ids = this.spec.series.flatMap((series) => series.views.sweep ?? []);
    this.rates = [...new Set(ids.map((id) => DATA.lines[id].rate))].sort((a, b) => a - b);
    this.rateGroup = this.group("rates");
    for (const rate of this.rates) {
      const button = this.button(this.rateGroup, true, String(rate));
      button.addEventListener("click", () => this.toggle(this.hiddenRates, rate, button));
    }
  }

  // Buttons of which one is pressed; none where there is nothing to choose.
  choice(label, key, options) {
    if (options.length < 2) return;
    const group = this.group(label);
    for (const option of options) {
      const button = this.button(group, this.state[key] === option.key, option.name);
      button.dataset.choice = `${key}:${option.key}`;
      button.addEventListener("click", () => {
        for (const other of group.querySelectorAll("button")) other.ariaPressed = String(other === button);
        this.state[key] = option.key;
        this.update();
      });
    }
  }

  group(label) {
    const group = html("div", { className: "group", role: "group", ariaLabel: label }, html("span", {}, label));
    this.controls.append(group);
    return group;
  }

  button(parent, pressed, ...content) {
    const button = html("button", { type: "button", ariaPressed: String(pressed) }, ...content);
    parent.append(button);
    return button;
  }

  makeLegend() {
    this.spec.series.forEach((series, index) => {
      const swatch = svg("svg", { width: 30, height: 10, "aria-hidden": "true" });
      swatch.append(svg("path", { d: "M0 5H30", class: "mean", ...this.ink(series) }));
      const label = html("span", {}, series.label);
      if (series.note) label.append(" ", html("small", {}, `(${series.note})`));
      const button = this.button(this.legend, true, swatch, label);
      button.disabled = !Object.values(series.views).some((ids) => ids.length);
      button.addEventListener("click", () => this.toggle(this.hidden, index, button));
      for (const [event, value] of [["pointerenter", index], ["pointerleave", null]]) {
        button.addEventListener(event, () => this.emphasise(value));
      }
    });
  }

  ink(series) {
    return { style: `stroke: var(--${series.colour})`, "stroke-dasharray": series.dash };
  }

  toggle(hidden, value, button) {
    if (!hidden.delete(value)) hidden.add(value);
    button.ariaPressed = String(!hidden.has(value));
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
      const sweep = view === "sweep";
      const ids = series.views[view].filter((id) => !sweep || !this.hiddenRates.has(DATA.lines[id].rate));
      const runs = ids.map((id) => ({ id, points: pointsOf(id, x, y) })).filter((run) => run.points.length);
      for (const { id, points } of runs) {
        const main = sweep ? best.has(id) : runs.length === 1;
        const kind = main ? "mean" : sweep ? "swept" : "single";
        const { name, diverged } = DATA.lines[id];
        found.push({ series, index, kind, name, points, diverged });
      }
      if (!sweep && runs.length > 1) {
        const whole = runs.filter((run) => !DATA.lines[run.id].diverged);
        const chosen = whole.length ? whole : runs;
        const name = `mean of ${chosen.length} ${this.spec.of}`;
        found.push({ series, index, kind: "mean", name, points: meanOf(chosen.map((run) => run.points)) });
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
    const log = this.state.scale === "log";
    const points = this.drawn.flatMap((line) => line.points).filter((p) => p.y > 0 || !log);
    const extreme = (pick, key, start) => points.reduce((value, p) => pick(value, p[key]), start);
    const right = extreme(Math.max, "x", 0) || 1;
    const [least, most] = [extreme(Math.min, "y", Infinity), 1.04 * extreme(Math.max, "y", 0) || 1];
    const lowest = this.lowest(quantity, Math.min(least, most), log);
    const highest = quantity.top > lowest ? Math.min(most, quantity.top) : most;
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

  // Where the axis begins: at 0, unless it is logarithmic or the quantity is never near 0.
  lowest(quantity, least, log) {
    if (log) return Math.max(0.9 * least, quantity.bottom ?? 0);
    return quantity.zero === false ? 0.98 * least : 0;
  }

  drawAxes(quantity, abscissa) {
    const { left, right, bottom } = this.box;
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
    const below = { x: (left + right) / 2, y: this.height - 5, "text-anchor": "middle", class: "x-label" };
    axes.append(svg("text", below, abscissa.label));
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
      const attributes = { "data-series": line.index, "clip-path": `url(#${clip})` };
      if (!groups.has(line.index)) groups.set(line.index, svg("g", attributes));
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
    this.dot.setAttribute("cx", x);
    this.dot.setAttribute("cy", y);
    this.dot.setAttribute("visibility", "visible");
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

// ---- the wall -----------------------------------------------------------------------------------------------------

// A plot where there is little room: the mean of every series on bare axes, which a link leads to.
function small(place) {
  const { series, x, y, views } = DATA.plots[place.dataset.small];
  const [width, height] = [220, 115];
  const lines = series.flatMap((one) => {
    const ids = one.views[views[0].key];
    const whole = ids.filter((id) => !DATA.lines[id].diverged);
    const runs = (whole.length ? whole : ids).map((id) => pointsOf(id, x[0].key, y[0].key)).filter((p) => p.length);
    return runs.length ? [{ one, points: meanOf(runs) }] : [];
  });
  const points = lines.flatMap((line) => line.points);
  const right = points.reduce((most, p) => Math.max(most, p.x), 0) || 1;
  const top = Math.min(points.reduce((most, p) => Math.max(most, p.y), 0), y[0].top ?? Infinity) || 1;
  const low = y[0].zero === false ? 0.98 * points.reduce((least, p) => Math.min(least, p.y), top) : 0;
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  chart.append(svg("line", { x1: 0, x2: width, y1: height - 1, y2: height - 1 }));
  for (const { one, points: its } of lines) {
    const at = (p) => `${((p.x / right) * width).toFixed(1)} ${(height - 1 - ((p.y - low) / (top - low)) * (height - 4)).toFixed(1)}`;
    const style = `stroke: var(--${one.colour})`;
    chart.append(svg("path", { d: its.map((p, i) => `${i ? "L" : "M"}${at(p)}`).join(""), style, "stroke-dasharray": one.dash }));
  }
  place.append(chart);
}

// ---- the page -----------------------------------------------------------------------------------------------------

const plots = [...document.querySelectorAll("[data-plot]")].map((figure) => new Plot(figure, figure.dataset.plot));
redraw();
document.querySelectorAll("[data-small]").forEach(small);

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
