"use strict";

// The networks, in plain JavaScript: the same equations in the same order as associative_lstm.nn, and the parts of a
// logit as in associative_lstm.inside. A complex vector is [real half, imaginary half]. Nothing here knows of the page.

// Little-endian float32 numbers in base64.
function numbers(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// What a modulus is multiplied by.
const SCALES = {
  bound: (m) => 1 / Math.max(1, m),
  tanh: (m) => (m < 3e-3 ? 1 - (m * m) / 3 + (2 * m ** 4) / 15 : Math.tanh(m) / m),
};

// W_x x + b for x a symbol (a one-hot vector) or a vector.
function fromInput(weight, bias, rows, inputs, x) {
  const z = new Float64Array(rows);
  for (let r = 0; r < rows; r++) {
    let sum = bias ? bias[r] : 0;
    if (typeof x === "number") sum += weight[r * inputs + x];
    else for (let i = 0; i < inputs; i++) sum += weight[r * inputs + i] * x[i];
    z[r] = sum;
  }
  return z;
}

// z + W_h h, where W_h may have fewer rows (W_hu = 0).
function addRecurrent(z, weight, h) {
  const rows = weight.length / h.length;
  for (let r = 0; r < rows; r++) {
    let sum = 0;
    for (let i = 0, at = r * h.length; i < h.length; i++) sum += weight[at + i] * h[i];
    z[r] += sum;
  }
}

// Multiplies one complex number by e^{i angle}.
function turn(reals, imaginaries, re, im, angle) {
  const a = reals[re], b = imaginaries[im], cos = Math.cos(angle), sin = Math.sin(angle);
  reals[re] = a * cos - b * sin;
  imaginaries[im] = a * sin + b * cos;
}

class AssociativeLSTM {
  constructor(spec) {
    Object.assign(this, spec); // inputs, size (N), heads, copies, activation, permutations
    this.n = this.size / 2;
    for (const name of ["weight_ih", "weight_hh", "bias", "h_0", "c_0", "angles"]) {
      this[name] = spec[name] === null ? null : numbers(spec[name]);
    }
    this.permutations = Int32Array.from(spec.permutations.flat());
    this.scale = SCALES[this.activation];
    this.width = this.heads * this.size;
  }

  start() {
    const c = new Float64Array(this.copies * this.size);
    if (this.c_0) for (let s = 0; s < this.copies; s++) c.set(this.c_0, s * this.size);
    return { h: this.h_0 ? Float64Array.from(this.h_0) : new Float64Array(this.width), c };
  }

  bound(z, from) {
    const { n, size, heads } = this;
    const r = z.slice(from, from + heads * size);
    for (let head = 0; head < heads; head++) {
      for (let j = head * size; j < head * size + n; j++) {
        const scale = this.scale(Math.hypot(r[j], r[j + n]));
        r[j] *= scale;
        r[j + n] *= scale;
      }
    }
    return r;
  }

  step(x, before) {
    const { n, size, heads, copies, permutations: P, width } = this;
    const rows = n + heads * (2 * n + 3 * size);
    const z = fromInput(this.weight_ih, this.bias, rows, this.inputs, x);
    addRecurrent(z, this.weight_hh, before.h);
    const gF = z.slice(0, n).map(sigmoid);
    const gI = z.slice(n, n + heads * n).map(sigmoid);
    const gO = z.slice(n + heads * n, n + 2 * heads * n).map(sigmoid);
    const keys = n + 2 * heads * n;
    const [rI, rO, u] = [0, 1, 2].map((k) => this.bound(z, keys + k * width));
    // c_s = g_f c_s + sum over heads of (P_s r_i) * (g_i u); units that turn do it first
    const c = Float64Array.from(before.c);
    for (let s = 0; s < copies; s++) {
      for (let j = 0; j < n; j++) {
        const re = s * size + j, im = re + n, p = P[s * n + j];
        if (this.angles) turn(c, c, re, im, this.angles[p]);
        c[re] *= gF[j];
        c[im] *= gF[j];
        for (let at = 0, head = 0; head < heads; head++, at += size) {
          const vRe = gI[head * n + j] * u[at + j], vIm = gI[head * n + j] * u[at + n + j];
          c[re] += rI[at + p] * vRe - rI[at + n + p] * vIm;
          c[im] += rI[at + p] * vIm + rI[at + n + p] * vRe;
        }
      }
    }
    // q = mean over copies of (P_s r_o) * c_s, and h = g_o bound(q)
    const q = new Float64Array(width), h = new Float64Array(width);
    for (let at = 0, head = 0; head < heads; head++, at += size) {
      for (let j = 0; j < n; j++) {
        let re = 0, im = 0;
        for (let s = 0; s < copies; s++) {
          const p = P[s * n + j], cRe = c[s * size + j], cIm = c[s * size + n + j];
          re += rO[at + p] * cRe - rO[at + n + p] * cIm;
          im += rO[at + p] * cIm + rO[at + n + p] * cRe;
        }
        q[at + j] = re / copies;
        q[at + n + j] = im / copies;
        const out = gO[head * n + j] * this.scale(Math.hypot(q[at + j], q[at + n + j]));
        h[at + j] = out * q[at + j];
        h[at + n + j] = out * q[at + n + j];
      }
    }
    return { h, c, gF, gI, gO, rI, rO, u, q };
  }

  // Re<d, part> of every write in the read at step t by these heads; d is as long as h. What the initial state left
  // comes last.
  project(steps, t, d, heads) {
    const { n, size, copies, permutations: P } = this;
    const parts = new Float64Array(t + 2);
    const aRe = new Float64Array(copies * n), aIm = new Float64Array(copies * n);
    for (const reader of heads) {
      const at = reader * size, rO = steps[t].rO;
      for (let s = 0; s < copies; s++) {
        for (let j = 0; j < n; j++) {
          const p = at + P[s * n + j]; // conj(d) P_s r_o / copies
          aRe[s * n + j] = (d[at + j] * rO[p] + d[at + n + j] * rO[p + n]) / copies;
          aIm[s * n + j] = (d[at + j] * rO[p + n] - d[at + n + j] * rO[p]) / copies;
        }
      }
      const kept = new Float64Array(n).fill(1); // the product of the forget gates after step k
      for (let k = t; k >= 0; k--) {
        const { rI, gI, u, gF } = steps[k];
        for (let from = 0, writer = 0; writer < this.heads; writer++, from += size) {
          let sum = 0;
          for (let j = 0; j < n; j++) {
            let re = 0, im = 0;
            for (let i = j; i < copies * n; i += n) {
              const p = from + P[i];
              re += aRe[i] * rI[p] - aIm[i] * rI[p + n];
              im += aRe[i] * rI[p + n] + aIm[i] * rI[p];
            }
            sum += kept[j] * gI[writer * n + j] * (re * u[from + j] - im * u[from + n + j]);
          }
          parts[k] += sum;
        }
        for (let j = 0; j < n; j++) kept[j] *= gF[j];
        if (this.angles) aRe.forEach((_, i) => turn(aRe, aIm, i, i, this.angles[P[i]]));
      }
      const { c } = this.start();
      for (let i = 0; i < copies * n; i++) {
        const s = Math.floor(i / n), j = i % n, from = s * size + j;
        parts[t + 1] += kept[j] * (aRe[i] * c[from] - aIm[i] * c[from + n]);
      }
    }
    return parts;
  }
}

class LSTM {
  constructor(spec) {
    Object.assign(this, spec); // inputs, size
    for (const name of ["weight_ih", "weight_hh", "bias", "h_0", "c_0"]) {
      this[name] = spec[name] === null ? null : numbers(spec[name]);
    }
    this.width = this.size;
  }

  start() {
    const state = (given) => (given ? Float64Array.from(given) : new Float64Array(this.size));
    return { h: state(this.h_0), c: state(this.c_0) };
  }

  step(x, before) {
    const N = this.size;
    const z = fromInput(this.weight_ih, this.bias, 4 * N, this.inputs, x);
    addRecurrent(z, this.weight_hh, before.h);
    const h = new Float64Array(N), c = new Float64Array(N);
    for (let j = 0; j < N; j++) {
      c[j] = sigmoid(z[N + j]) * before.c[j] + sigmoid(z[j]) * Math.tanh(z[2 * N + j]);
      h[j] = sigmoid(z[3 * N + j]) * Math.tanh(c[j]);
    }
    return { h, c };
  }
}

const KINDS = { associative: AssociativeLSTM, lstm: LSTM };

class Network {
  constructor(spec) {
    this.name = spec.name;
    this.label = spec.label;
    this.layers = spec.layers.map((layer) => new KINDS[layer.kind](layer));
    this.last = this.layers.at(-1);
    this.recalls = this.last instanceof AssociativeLSTM;
    this.weight = numbers(spec.readout.weight);
    this.bias = numbers(spec.readout.bias);
    this.symbols = []; // what it has read so far
    this.steps = []; // and what happened: for every layer its states
    this.logits = [];
    const width = this.last.width;
    this.meanRow = new Float64Array(width);
    this.weight.forEach((w, i) => (this.meanRow[i % width] += w / this.bias.length));
    this.meanBias = this.bias.reduce((a, b) => a + b, 0) / this.bias.length;
  }

  // Reads a text from its beginning; what it has in common with the one before is kept. Returns how much that was.
  read(symbols) {
    let same = 0;
    while (same < Math.min(symbols.length, this.symbols.length) && symbols[same] === this.symbols[same]) same++;
    this.symbols = [...symbols];
    this.steps.length = this.logits.length = same;
    for (let t = same; t < symbols.length; t++) {
      let x = symbols[t];
      const records = this.layers.map((layer, k) => {
        const record = layer.step(x, t ? this.steps[t - 1][k] : layer.start());
        x = record.h;
        return record;
      });
      this.steps.push(records);
      this.logits.push(fromInput(this.weight, this.bias, this.bias.length, this.last.width, x));
    }
    return same;
  }

  probabilities(t) {
    const largest = Math.max(...this.logits[t]);
    const powers = this.logits[t].map((logit) => Math.exp(logit - largest));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / sum);
  }

  get ofLast() {
    return this.steps.map((records) => records.at(-1));
  }

  // The logit of a symbol less the mean of all, in bits: {writes, initial, bias}, which add up to it.
  bits(t, symbol, heads = this.allHeads) {
    const { n, size, scale, width } = this.last;
    const steps = this.ofLast;
    const { q, gO } = steps[t];
    const d = new Float64Array(width);
    for (let i = 0; i < width; i++) {
      const head = Math.floor(i / size), j = i % n, re = head * size + j;
      const row = this.weight[symbol * width + i] - this.meanRow[i];
      d[i] = (gO[head * n + j] * scale(Math.hypot(q[re], q[re + n])) * row) / Math.LN2;
    }
    const parts = this.last.project(steps, t, d, heads);
    const bias = (this.bias[symbol] - this.meanBias) / Math.LN2;
    return { writes: parts.subarray(0, t + 1), initial: parts[t + 1], bias };
  }

  // The share of every write in what these heads read: {writes, initial}, which add up to 1 for each head.
  shares(t, heads = this.allHeads) {
    const { size, width } = this.last;
    const steps = this.ofLast;
    const { q } = steps[t];
    const d = new Float64Array(width);
    for (const head of heads) {
      const read = q.subarray(head * size, (head + 1) * size);
      const square = read.reduce((sum, x) => sum + x * x, 0) || 1;
      read.forEach((x, i) => (d[head * size + i] = x / square / heads.length));
    }
    const parts = this.last.project(steps, t, d, heads);
    return { writes: parts.subarray(0, t + 1), initial: parts[t + 1] };
  }

  // How well the key that step t reads with opens what step k has written: the cosine with its conjugate.
  opens(t, k, heads = this.allHeads) {
    return this.alike(this.steps[t].at(-1).rO, this.steps[k].at(-1).rI, heads, -1);
  }

  // How alike the keys are that two steps have written under.
  alikeKeys(t, k, heads = this.allHeads) {
    return this.alike(this.steps[t].at(-1).rI, this.steps[k].at(-1).rI, heads, 1);
  }

  alike(a, b, heads, sign) {
    const { n, size } = this.last;
    let product = 0, aa = 0, bb = 0;
    for (const head of heads) {
      for (let i = head * size; i < (head + 1) * size; i++) {
        product += (i % size < n ? 1 : sign) * a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
      }
    }
    return product / (Math.sqrt(aa * bb) || 1);
  }

  get allHeads() {
    return Array.from({ length: this.last.heads ?? 1 }, (_, head) => head);
  }

  // The means of the gates of the last layer, and the load of its memory: the mean square modulus of its units. What
  // is written with a key and an update of modulus 1, and an open gate, adds 1.
  summary(t) {
    const { gI, gF, gO, c } = this.steps[t].at(-1);
    const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
    return { input: mean(gI), forget: mean(gF), output: mean(gO), load: 2 * mean(c.map((x) => x * x)) };
  }
}
