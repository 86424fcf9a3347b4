// What is seen of the networks: the text, what they expect, the parts of it, the map. network.js comes before it.
// Texts and names are set as text, never as HTML.

const DATA = JSON.parse(document.getElementById("data").textContent);
const NETWORKS = DATA.networks.map((spec) => new Network(spec));
const AHEAD = DATA.ahead; // what is read at step t answers for character t + AHEAD
const STRIPS = ["input", "forget", "output", "load"];
const SHOWN = 5;

function html(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

const CODES = new Map(DATA.vocabulary.map((character, code) => [character, code]));
const VISIBLE = { " ": "␣", "\n": "↵", "\r": "↵", "\t": "→" };

// One visible character for a symbol.
function visible(symbol) {
  const character = DATA.vocabulary[symbol];
  if (character in VISIBLE) return VISIBLE[character];
  const code = character.codePointAt(0);
  return code < 32 || (code > 126 && code < 160) || (DATA.bytes && code > 126) ? "·" : character;
}

// The symbols of a text, and what of it the task does not have.
function encode(text) {
  if (DATA.bytes) return { symbols: [...new TextEncoder().encode(text)], unknown: [] };
  const characters = Array.from(text);
  const unknown = [...new Set(characters.filter((character) => !CODES.has(character)))];
  return { symbols: characters.filter((c) => CODES.has(c)).map((c) => CODES.get(c)), unknown };
}

const signed = (value, digits = 1) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
const percent = (p) => (p >= 0.9995 ? "100%" : p < 0.001 ? "<0.1%" : `${(100 * p).toFixed(p < 0.0995 ? 1 : 0)}%`);
const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

// ---- the page ----------------------------------------------------------------------------------------------------

const page = {
  symbols: [],
  selected: 0, // a character, or the one that comes next
  pointed: null, // the one under the mouse, shown as long as it is there
  views: [],

  get shown() {
    return this.pointed ?? this.selected;
  },

  // How many characters can be asked about: those of the text, and the next.
  get places() {
    return this.symbols.length + AHEAD;
  },

  read(text, select = null) {
    const { symbols, unknown } = encode(text);
    const cut = symbols.length > DATA.longest;
    this.symbols = symbols.slice(0, DATA.longest);
    const messages = [];
    if (unknown.length) {
      const names = unknown.slice(0, 5).map((character) => `“${character}”`).join(", ");
      messages.push(`${names}${unknown.length > 5 ? " and others" : ""}: not in the alphabet of this task, and left out.`);
    }
    if (cut) messages.push(`Only the first ${DATA.longest.toLocaleString("en")} symbols are read.`);
    document.getElementById("message").textContent = messages.join(" ");
    this.pointed = null;
    this.selected = Math.max(0, Math.min(select ?? this.places - 1, this.places - 1));
    for (const view of this.views) view.read();
  },

  select(place) {
    this.pointed = null;
    this.selected = Math.max(0, Math.min(place, this.places - 1));
    for (const view of this.views) view.show();
  },

  point(place) {
    if (this.pointed === place) return;
    this.pointed = place;
    for (const view of this.views) view.show();
  },
};

// ---- one network -------------------------------------------------------------------------------------------------

class View {
  constructor(network, index) {
    this.network = network;
    this.index = index;
    this.heads = null; // all, or one
    this.symbol = null; // of which the parts are shown, if not of the most probable
    this.text = html("div", { className: "text", tabIndex: 0, role: "listbox", id: `text-${index}` });
    this.text.setAttribute("aria-label", `What ${network.label} expects`);
    this.detail = html("div", { className: "detail" });
    this.detail.setAttribute("aria-live", "polite");
    const name = html("h2", {}, network.label);
    this.element = html("section", { className: "network" }, name, this.text, this.detail);
    if (network.recalls) this.detail.before(legend());
    if (network.recalls) {
      this.map = new RecallMap(this);
      this.element.append(this.map.element);
    } else {
      this.element.append(
        html("p", { className: "note" }, "An LSTM has no keys by which a step could look something up: only its answers are shown."),
      );
    }
    this.text.addEventListener("pointermove", (event) => {
      const place = this.placeOf(event);
      if (event.pointerType === "mouse" && place !== null) page.point(place);
    });
    this.text.addEventListener("pointerleave", () => page.point(null));
    this.text.addEventListener("click", (event) => {
      const place = this.placeOf(event);
      if (place !== null) page.select(place);
    });
    this.text.addEventListener("keydown", (event) => this.walk(event));
  }

  placeOf(event) {
    const cell = event.target.closest(".cell");
    return cell ? Number(cell.dataset.place) : null;
  }

  get chosenHeads() {
    return this.heads === null ? this.network.allHeads : [this.heads];
  }

  // The step whose read answers for a character; none has read before the first.
  stepOf(place) {
    const t = place - AHEAD;
    return t >= 0 && t < page.symbols.length ? t : null;
  }

  read() {
    const same = this.network.read(page.symbols);
    this.cells = Array.from({ length: page.places }, (_, place) => this.cell(place));
    this.strips();
    this.text.replaceChildren(...this.cells);
    this.element.classList.toggle("long", this.text.clientHeight > 0.6 * innerHeight);
    this.map?.forget(same);
    this.show();
  }

  cell(place) {
    const cell = html("span", { className: "cell", id: `cell-${this.index}-${place}`, role: "option" });
    cell.dataset.place = place;
    const actual = page.symbols[place], t = this.stepOf(place);
    const character = html("b", {}, actual === undefined ? "?" : visible(actual));
    if (actual === undefined) cell.classList.add("next");
    let expected = "", words = "nothing is expected before the first character";
    if (t !== null) {
      const probabilities = this.network.probabilities(t);
      const said = probabilities.indexOf(Math.max(...probabilities));
      expected = visible(said);
      cell.style.setProperty("--sure", probabilities[said].toFixed(3));
      if (AHEAD && said === actual) cell.classList.add("right");
      words = `${expected} ${AHEAD ? "expected" : "answered"}, ${percent(probabilities[said])}`;
    }
    cell.append(character, html("i", {}, expected));
    cell.setAttribute("aria-label", `${actual === undefined ? "next" : visible(actual)}: ${words}`);
    return cell;
  }

  strips() {
    if (!this.network.recalls) return;
    this.summaries = page.symbols.map((_, t) => this.network.summary(t));
    const ranges = STRIPS.map((name) => {
      const values = this.summaries.map((one) => one[name]);
      const least = Math.min(...values);
      return [name, least, Math.max(Math.max(...values) - least, 0.1)]; // what hardly changes is not made to seem to
    });
    this.summaries.forEach((one, t) => {
      const strips = html("span", { className: "strips" });
      for (const [name, least, range] of ranges) {
        const strip = html("span", { className: name });
        strip.style.setProperty("--v", ((one[name] - least) / range).toFixed(3));
        strips.append(strip);
      }
      this.cells[t].append(strips);
      this.cells[t].title =
        `input gate ${one.input.toFixed(2)}, forget gate ${one.forget.toFixed(2)}, ` +
        `output gate ${one.output.toFixed(2)}, load ${one.load.toFixed(2)}`;
    });
  }

  show() {
    const place = page.shown, t = this.stepOf(place);
    if (place !== this.shown) this.symbol = null;
    this.shown = place;
    for (const cell of this.text.querySelectorAll(".selected, .for, .against")) {
      cell.classList.remove("selected", "for", "against");
      cell.removeAttribute("aria-selected");
    }
    const cell = this.cells[place];
    if (!cell) {
      this.detail.replaceChildren(html("p", {}, "There is nothing to read yet."));
      this.map?.show();
      return;
    }
    cell.classList.add("selected");
    cell.setAttribute("aria-selected", "true");
    this.text.setAttribute("aria-activedescendant", cell.id);
    if (t === null) {
      this.detail.replaceChildren(html("p", {}, "Before the first character nothing has been read, and nothing is expected."));
    } else {
      this.explain(t, place);
    }
    this.map?.show();
  }

  // The probabilities, and what the chosen symbol's score is the sum of.
  explain(t, place) {
    const probabilities = this.network.probabilities(t);
    const order = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a]);
    const chosen = this.symbol ?? order[0];
    const actual = AHEAD ? page.symbols[place] : undefined;
    const listed = order.slice(0, SHOWN);
    for (const symbol of [actual, chosen]) if (symbol !== undefined && !listed.includes(symbol)) listed.push(symbol);
    const choices = html("div", { className: "choices" });
    for (const symbol of listed) {
      const bar = html("span", { className: "bar" });
      bar.style.setProperty("--v", probabilities[symbol].toFixed(4));
      const button = html("button", { type: "button" }, html("b", {}, visible(symbol)), bar,
        html("span", { className: "number" }, percent(probabilities[symbol])));
      if (symbol === actual) button.append(html("span", { className: "here" }, "in the text"));
      if (this.network.recalls) {
        button.setAttribute("aria-pressed", String(symbol === chosen));
        button.addEventListener("click", () => {
          page.selected = place;
          page.pointed = null;
          this.symbol = symbol;
          this.show();
          this.detail.querySelector('[aria-pressed="true"]')?.focus();
        });
      } else {
        button.disabled = true;
      }
      choices.append(button);
    }
    const title = html("h3", {}, AHEAD ? "Expected after " : "Answered at ", this.excerpt(t, 14));
    this.detail.replaceChildren(html("div", { className: "expected" }, title, choices));
    if (this.network.recalls) this.detail.append(this.recalled(t, chosen));
  }

  recalled(t, symbol) {
    const { writes, initial, bias } = this.network.bits(t, symbol, this.chosenHeads);
    const most = Math.max(largest(writes), 1e-9);
    writes.forEach((bits, k) => {
      const strength = Math.abs(bits) / most;
      if (strength < 0.04) return;
      this.cells[k].classList.add(bits > 0 ? "for" : "against");
      this.cells[k].style.setProperty("--w", strength.toFixed(3));
    });
    const order = [...writes.keys()].sort((a, b) => Math.abs(writes[b]) - Math.abs(writes[a]));
    const listed = order.slice(0, SHOWN), rest = order.slice(SHOWN);
    const list = html("ol", { className: "parts" });
    const line = (what, bits) => {
      const bar = html("span", { className: `bar ${bits < 0 ? "against" : "for"}` });
      bar.style.setProperty("--v", Math.min(1, Math.abs(bits) / most).toFixed(4));
      list.append(html("li", {}, html("span", { className: "what" }, what), bar,
        html("span", { className: "number" }, signed(bits))));
    };
    for (const k of listed) line(this.excerpt(k, 7), writes[k]);
    if (rest.length) {
      line(rest.length === 1 ? "the other" : `the ${rest.length} others`, rest.reduce((sum, k) => sum + writes[k], 0));
    }
    if (this.network.last.c_0) line("the initial state", initial);
    if (this.heads === null) line("the readout’s bias", bias);
    const sum = writes.reduce((a, b) => a + b, 0) + initial + (this.heads === null ? bias : 0);
    const total = html("p", { className: "total" }, "together ", html("b", {}, `${signed(sum)} bits`),
      this.heads === null ? " above the mean of all symbols" : ` by head ${this.heads + 1}`);
    const title = html("h3", {}, "Recalled from, for ", html("code", {}, visible(symbol)), ", in bits");
    return html("div", { className: "recalled" }, title, list, total);
  }

  // A character with those before it, and one after.
  excerpt(k, before) {
    const from = Math.max(0, k - before), symbols = page.symbols;
    const text = symbols.slice(from, k).map(visible).join("");
    const after = AHEAD && before > 10 ? "" : symbols.slice(k + 1, k + 3).map(visible).join("");
    return html("code", { className: "excerpt" }, from > 0 ? "…" : "", text,
      html("mark", {}, visible(symbols[k])), after);
  }

  walk(event) {
    const last = page.places - 1, at = page.selected;
    const line = (direction) => {
      const box = this.cells[at].getBoundingClientRect();
      const others = this.cells.filter((cell) => {
        const top = cell.getBoundingClientRect().top;
        return direction < 0 ? top < box.top - 1 : top > box.top + 1;
      });
      if (!others.length) return at;
      const tops = others.map((cell) => cell.getBoundingClientRect().top);
      const next = direction < 0 ? Math.max(...tops) : Math.min(...tops);
      const row = others.filter((_, i) => Math.abs(tops[i] - next) < 1);
      const distance = (cell) => Math.abs(cell.getBoundingClientRect().left - box.left);
      return Number(row.reduce((a, b) => (distance(b) < distance(a) ? b : a)).dataset.place);
    };
    const moves = {
      ArrowLeft: () => at - 1, ArrowRight: () => at + 1, Home: () => 0, End: () => last,
      ArrowUp: () => line(-1), ArrowDown: () => line(1),
    };
    if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey || !this.cells.length) return;
    event.preventDefault();
    page.select(moves[event.key]());
    this.cells[page.selected].scrollIntoView({ block: "nearest" });
  }
}

function legend() {
  const line = html("p", { className: "legend" }, html("span", { className: "key for" }, "speaks for it"),
    html("span", { className: "key against" }, "against it"));
  for (const name of STRIPS) {
    line.append(html("span", { className: `name ${name}` }, name === "load" ? "load" : `${name} gate`));
  }
  return line;
}

// ---- the map -----------------------------------------------------------------------------------------------------

const MAPS = {
  answer: {
    name: "answer",
    words: "How many bits each character (across) gives to what is expected at each place (down).",
    row: (network, t, heads) => {
      const logits = network.logits[t];
      return network.bits(t, logits.indexOf(Math.max(...logits)), heads).writes;
    },
    says: (value) => `${signed(value)} bits`,
  },
  read: {
    name: "read",
    words: "The share of each write (across) in each read (down); with the initial state’s, a row adds up to 1. Where " +
      "the shares are even, the answer’s part in the read is small, and the readout picks it out.",
    row: (network, t, heads) => network.shares(t, heads).writes,
    says: (value) => `a share of ${value.toFixed(3)}`,
  },
  opens: {
    name: "reading key",
    words: "How well the key that a step reads with (down) opens what a step wrote (across): the cosine of the one with " +
      "the other’s conjugate. 1 opens it.",
    row: (network, t, heads) => Float64Array.from({ length: t + 1 }, (_, k) => network.opens(t, k, heads)),
    says: (value) => `a cosine of ${value.toFixed(2)}`,
    most: 1,
  },
  keys: {
    name: "writing keys",
    words: "How alike the keys are that two steps wrote under: their cosine. What is written under like keys is read together.",
    row: (network, t, heads) => Float64Array.from({ length: t + 1 }, (_, k) => network.alikeKeys(t, k, heads)),
    says: (value) => `a cosine of ${value.toFixed(2)}`,
    most: 1,
  },
};

class RecallMap {
  constructor(view) {
    this.view = view;
    this.kind = "answer";
    this.rows = {};
    this.canvas = html("canvas", { tabIndex: 0 });
    this.canvas.setAttribute("role", "img");
    this.words = html("p", { className: "words" });
    this.tip = html("p", { className: "tip", role: "status" });
    const controls = html("div", { className: "controls" });
    const kinds = Object.entries(MAPS).map(([key, map]) => [key, map.name]);
    controls.append(this.choice("show", kinds, () => this.kind, (key) => (this.kind = key)));
    const heads = view.network.allHeads;
    if (heads.length > 1) {
      const names = [[null, "all"], ...heads.map((head) => [head, String(head + 1)])];
      controls.append(this.choice("reading head", names, () => view.heads, (head) => {
        view.heads = head;
        this.rows = {};
        view.show();
      }));
    }
    this.element = html("figure", { className: "map" }, html("h3", {}, "The whole map"), controls, this.words,
      html("div", { className: "scroll" }, this.canvas), this.tip);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.draw());
    this.canvas.addEventListener("click", (event) => {
      const [t] = this.at(event);
      if (t !== null) page.select(t + AHEAD);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      page.select(page.selected + by);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.picture = null;
      this.draw();
    });
  }

  choice(label, entries, current, set) {
    const group = html("span", { className: "group", role: "group" }, html("span", {}, label));
    group.setAttribute("aria-label", label);
    const update = () => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(entries[i][0] === current())));
    const buttons = entries.map(([key, name]) => {
      const button = html("button", { type: "button" }, name);
      button.dataset.choice = `${label}:${key}`;
      button.addEventListener("click", () => {
        set(key);
        this.picture = null;
        update();
        this.show();
      });
      return button;
    });
    group.append(...buttons);
    update();
    return group;
  }

  // Only what was read anew is computed anew.
  forget(same) {
    for (const rows of Object.values(this.rows)) rows.length = Math.min(rows.length, same);
    this.picture = null;
  }

  // The rows are computed a few at a time, so that the page goes on obeying.
  show() {
    const rows = (this.rows[this.kind] ??= []);
    const network = this.view.network, map = MAPS[this.kind];
    const end = performance.now() + 12;
    while (rows.length < page.symbols.length && performance.now() < end) {
      rows.push(map.row(network, rows.length, this.view.chosenHeads));
      this.picture = null;
    }
    this.words.textContent = map.words;
    this.canvas.setAttribute("aria-label", `${map.name}: ${map.words}`);
    this.canvas.setAttribute("aria-busy", String(!this.whole));
    this.draw();
    clearTimeout(this.waiting);
    if (rows.length < page.symbols.length) this.waiting = setTimeout(() => this.show(), 0);
  }

  get whole() {
    return (this.rows[this.kind] ?? []).length === page.symbols.length;
  }

  geometry() {
    const T = Math.max(page.symbols.length, 1);
    const room = this.element.clientWidth || 600;
    const left = 18, top = 4, below = 54;
    const side = Math.max(2, Math.min(22, (Math.min(room, 900) - left - 2) / T));
    return { T, left, top, below, side, width: left + T * side + 2, height: top + T * side + 18 + below };
  }

  draw(pointed = null) {
    const { T, left, top, side, width, height } = this.geometry();
    const ratio = Math.min(window.devicePixelRatio || 1, width > 1500 ? 1 : 3);
    const style = getComputedStyle(this.element);
    const colour = (name) => style.getPropertyValue(name).trim();
    const { canvas } = this, rows = this.rows[this.kind] ?? [];
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = colour("--panel");
    pen.fillRect(left, top, T * side, T * side);
    this.picture ??= this.paint(rows, T, rgb(colour("--for")), rgb(colour("--against")));
    pen.imageSmoothingEnabled = false;
    pen.drawImage(this.picture, left, top, T * side, T * side);
    this.axes(pen, colour, pointed);
    this.load(pen, colour);
    if (!pointed) this.tip.textContent = this.whole ? "Point at it, or touch it, for the number." : "computing …";
  }

  // One pixel for every read and write.
  paint(rows, T, positive, negative) {
    const most = MAPS[this.kind].most ?? Math.max(...rows.map(largest), 1e-9);
    const image = new ImageData(T, T);
    rows.forEach((row, t) => row.forEach((value, k) => {
      const [r, g, b] = value < 0 ? negative : positive;
      image.data.set([r, g, b, 255 * Math.min(1, Math.abs(value) / most) ** 0.7], 4 * (t * T + k));
    }));
    const small = html("canvas", { width: T, height: T });
    small.getContext("2d").putImageData(image, 0, 0);
    return small;
  }

  axes(pen, colour, pointed) {
    const { T, left, top, side } = this.geometry();
    const selected = page.shown - AHEAD;
    pen.font = `${Math.max(8, Math.min(13, side))}px ui-monospace, "DejaVu Sans Mono", monospace`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const written = (symbol, x, y, strong) => {
      pen.fillStyle = strong ? colour("--ink") : colour("--quiet");
      pen.fillText(symbol, x, y);
    };
    if (side >= 7) {
      for (let k = 0; k < T && k < page.symbols.length; k++) {
        const asked = page.symbols[k + AHEAD];
        written(visible(page.symbols[k]), left + (k + 0.5) * side, top + T * side + 9, pointed?.[1] === k);
        written(asked === undefined ? "?" : visible(asked), left / 2, top + (k + 0.5) * side, selected === k || pointed?.[0] === k);
      }
    } else {
      pen.save();
      pen.translate(left / 2, top + (T * side) / 2);
      pen.rotate(-Math.PI / 2);
      written(AHEAD ? "expected" : "answered", 0, 0, false);
      pen.restore();
      written("written", left + (T * side) / 2, top + T * side + 9, false);
    }
    pen.strokeStyle = colour("--ink");
    pen.lineWidth = 1;
    if (selected >= 0 && selected < page.symbols.length) {
      pen.strokeRect(left + 0.5, top + selected * side + 0.5, (selected + 1) * side, Math.max(side - 1, 1));
    }
    if (pointed) pen.strokeRect(left + pointed[1] * side, top + pointed[0] * side, side, side);
  }

  // What the memory holds over time, under the columns of the map.
  load(pen, colour) {
    const { T, left, top, below, side } = this.geometry();
    const loads = this.view.summaries.map((one) => one.load);
    if (!loads.length) return;
    const most = Math.max(...loads, 1e-9), base = top + T * side + 18 + below - 4, high = below - 20;
    pen.fillStyle = colour("--load");
    loads.forEach((load, t) => pen.fillRect(left + t * side, base - (load / most) * high, Math.max(side - (side > 4 ? 1 : 0), 1), (load / most) * high));
    pen.fillStyle = colour("--quiet");
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.fillText(`load, at most ${most.toFixed(most < 10 ? 1 : 0)}`, left, base - high - 8);
  }

  at(event) {
    const { left, top, side } = this.geometry();
    const t = Math.floor((event.offsetY - top) / side), k = Math.floor((event.offsetX - left) / side);
    const row = this.rows[this.kind]?.[t];
    return row && k >= 0 && k < row.length ? [t, k] : [null, null];
  }

  point(event) {
    const [t, k] = this.at(event);
    if (t === null) {
      this.draw();
      return;
    }
    this.draw([t, k]);
    const value = this.rows[this.kind][t][k];
    const asked = page.symbols[t + AHEAD];
    this.tip.replaceChildren(html("b", {}, MAPS[this.kind].says(value)), ` from ${k + 1}, `, this.view.excerpt(k, 7),
      `, at ${t + AHEAD + 1}, ${AHEAD ? "before" : "at"} `, html("code", {}, asked === undefined ? "the next" : visible(asked)));
  }
}

function rgb(colour) {
  const number = parseInt(colour.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

// ---- and it begins -----------------------------------------------------------------------------------------------

{
  const field = document.getElementById("text");
  const controls = document.getElementById("controls");
  const fit = () => {
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight + 2, 220)}px`;
  };
  const put = (text, select = null) => {
    field.value = text;
    fit();
    page.read(text, select);
  };
  page.views = NETWORKS.map((network, index) => new View(network, index));
  const networks = document.getElementById("networks");
  networks.className = page.views.length > 1 ? "pair" : "";
  networks.replaceChildren(...page.views.map((view) => view.element));
  field.addEventListener("input", () => {
    fit();
    page.read(field.value);
  });
  const button = (name, title, act) => {
    const made = html("button", { type: "button", title }, name);
    made.addEventListener("click", act);
    controls.append(made);
  };
  if (AHEAD) {
    button("Write on", "Append what the first network expects", () => {
      const network = NETWORKS[0];
      if (!network.logits.length || page.symbols.length >= DATA.longest) return;
      const logits = network.logits.at(-1);
      put(field.value + DATA.vocabulary[logits.indexOf(Math.max(...logits))]);
    });
  }
  const texts = [DATA.text, ...DATA.examples];
  let shown = 0;
  if (texts.length > 1) {
    button("Another text", "A fresh one of the task", () => put(texts[++shown % texts.length], null));
  }
  button("Clear", "Begin anew", () => {
    put("");
    field.focus();
  });
  put(DATA.text);
  // What is most worth seeing first: where the network is surest of having recalled something from far away.
  const view = page.views.find((one) => one.network.recalls);
  let best = 0, place = page.selected;
  page.symbols.forEach((symbol, t) => {
    if (t > 300) return; // long texts are not searched to their end
    const probabilities = view.network.probabilities(t);
    const sure = Math.max(...probabilities), said = probabilities.indexOf(sure);
    if (sure < 0.5 || (AHEAD && page.symbols[t + 1] !== said) || !/[a-z0-9]/.test(visible(said))) return;
    const { writes } = view.network.bits(t, said);
    const distant = writes.subarray(0, Math.max(0, t - 3));
    const far = distant.reduce((most, value) => Math.max(most, value), 0);
    if (far > best) [best, place] = [far, t + AHEAD];
  });
  page.select(place);
}
