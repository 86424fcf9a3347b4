"use strict";

// From the JSON in #data (lines.py says what is in it) to points, and from ranges to the ticks of an axis.

const DATA = JSON.parse(document.getElementById("data").textContent);

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
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); k++) {
    ticks.push(k * step + 0); // never -0
  }
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
