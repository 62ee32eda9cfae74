// SPDX-License-Identifier: Apache-2.0
// What the page shows, from what 'pestle view' wrote into it: reports, their graphs,
// steps and buffers. Nothing here draws.
'use strict';

const STAGES = ['Explain', 'Schedule', 'Kernel IR', 'Source', 'Assembly'];
const KINDS = [
  ['conv', 'convolution', /convolution/],
  ['dot', 'product', /dot|attention|gemm|matmul/],
  ['reduce', 'reduction', /reduce|softmax|norm|pool|window|sort|top_k|scan|cum/],
  ['flow', 'loop, call', /while|^if$|case|call|lstm|gru|rnn|func/],
  ['move', 'movement', new RegExp('^(transpose|reshape|slice|concat|pad|gather|' +
    'scatter|broadcast|copy|reverse|iota|dynamic_|constant|jump|end|view)')],
  ['io', 'input, output', /^(arg|return|input|output)$/],
  ['map', 'elementwise', /./],
];

function kindOf(name) {
  return KINDS.find((k) => k[2].test(name))[0];
}

function formatBytes(n) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  for (; n >= 1000 && unit < 4; ++unit) n /= 1000;
  return `${unit && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

function formatTime(us) {
  if (us >= 1e6) return `${(us / 1e6).toPrecision(4)} s`;
  if (us >= 1e3) return `${(us / 1e3).toPrecision(4)} ms`;
  return `${us.toPrecision(us < 1 ? 2 : 3)} µs`;
}

function formatCount(n) {
  for (const [unit, size] of [['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]]) {
    if (n >= size) return `${(n / size).toPrecision(3)} ${unit}`;
  }
  return `${n}`;
}

// "tensor<1x64xf32>" as f32[1, 64].
function formatType(type) {
  return type.replace(/tensor<([^<>]*)>/g, (all, inner) => {
    const parts = inner.split(',')[0].split('x');
    const dtype = parts.pop();
    return `${dtype}[${parts.join(', ')}]`;
  });
}

// --- Graphs ---

// One level of a module: the ops of a function or region. |nodes| are indices into the
// graph's nodes; of constants only their number is kept, with what reads them.
class Level {
  constructor(report, graph, scope) {
    this.report = report;
    this.graph = graph;
    this.scope = scope;
    this.ids = [];
    this.place = new Map();
    this.weights = [];
    for (const i of graph.children.get(scope) || []) {
      if (graph.op(i) === 'constant') continue;
      this.place.set(i, this.ids.length);
      this.ids.push(i);
    }
    this.count = this.ids.length;
    this.titles = this.ids.map((i) => graph.title(i));
    this.types = this.ids.map((i) => formatType(graph.type(i)));
    this.kinds = this.ids.map((i, k) => (graph.op(i) === 'arg' ? 'io' : kindOf(this.titles[k])));
    this.sources = this.ids.map((i) => this.sourcesOf(i));
    this.steps = this.ids.map((i) => graph.steps.get(i) || []);
    this.measure();
  }

  // What |i| reads on this level, also from within its regions.
  sourcesOf(i) {
    const found = new Set();
    let weights = 0;
    const add = (node) => {
      for (const from of this.graph.operands(node)) {
        if (this.place.has(from)) found.add(this.place.get(from));
        weights += this.graph.op(from) === 'constant';
      }
      for (const inner of this.graph.children.get(node) || []) add(inner);
    };
    add(i);
    found.delete(this.place.get(i));
    this.weights.push(weights);
    return [...found];
  }

  measure() {
    const rows = this.report.rows;
    this.times = this.steps.map((list) =>
      list.reduce((sum, s) => sum + (rows[s] ? rows[s].best_us : 0), 0));
    this.limits = this.steps.map((list, i) => {
      const limit = list.reduce((sum, s) =>
        sum + (rows[s] && rows[s].limit ? rows[s].limit * rows[s].best_us : 0), 0);
      return this.times[i] ? limit / this.times[i] : 0;
    });
    this.longest = Math.max(1e-9, ...this.chunksMax(this.times));
  }

  // Math.max(...) of many values would exceed the stack.
  chunksMax(values) {
    const most = [];
    for (let i = 0; i < values.length; i += 4096)
      most.push(Math.max(...values.slice(i, i + 4096)));
    return most;
  }

  label(i) {
    const time = this.times[i] ? ` · ${formatTime(this.times[i])}` : '';
    return `${this.titles[i]}${time}`;
  }

  text(i) {
    const id = this.ids[i];
    const inner = (this.graph.children.get(id) || []).map((k) =>
      `${this.graph.op(k)} ${this.graph.location(k)}`).join(' ');
    return `${this.titles[i]} ${this.graph.name(id)} ${this.graph.location(id)} ${inner} ` +
      `${this.types[i]} ${this.steps[i].map((s) => this.report.steps[s].kernel).join(' ')}`;
  }
}

class Graph {
  constructor(report, data) {
    Object.assign(this, {report, data, label: data.name, steps: new Map(), levels: new Map()});
    this.children = new Map();
    data.nodes.forEach((n, i) => {
      if (!this.children.has(n[3])) this.children.set(n[3], []);
      this.children.get(n[3]).push(i);
    });
    const roots = this.children.get(-1) || [];
    this.entry = roots.find((i) => this.name(i) === 'main') ??
      roots.find((i) => this.op(i) === 'func') ?? -1;
  }

  op(i) { return this.data.ops[this.data.nodes[i][0]]; }
  name(i) { return this.data.nodes[i][1]; }
  type(i) { return this.data.types[this.data.nodes[i][2]]; }
  parent(i) { return i < 0 ? -1 : this.data.nodes[i][3]; }
  line(i) { return this.data.nodes[i][4]; }
  operands(i) { return this.data.nodes[i][5]; }
  // A node's name, or file:line:column.
  location(i) { return (this.data.nodes[i][7] || '').replace('":', ':'); }
  title(i) {
    const op = this.op(i);
    if (op === 'arg') return this.name(i);
    return this.data.nodes[i][6] || op;
  }
  isOpen(i) { return this.children.has(i); }

  level(scope) {
    if (!this.levels.has(scope)) this.levels.set(scope, new Level(this.report, this, scope));
    return this.levels.get(scope);
  }

  // The lines of the module's text that the op takes.
  source(i) {
    const lines = this.lines || (this.lines = this.report.texts[this.data.text].split('\n'));
    let end = this.line(i) + 1;
    const indent = /^ */.exec(lines[this.line(i)])[0].length;
    const closes = (l) => /^ */.exec(l)[0].length > indent || /^ *[})]/.test(l) ||
      /^ *(cond|do|reducer|\^)/.test(l);
    if (this.isOpen(i)) {
      while (end < lines.length && closes(lines[end]) &&
        /^ */.exec(lines[end])[0].length >= indent) ++end;
    }
    return lines.slice(this.line(i), end)
      .map((l) => l.slice(indent).replace(/ loc\(("[^"]*")?.*\)$/, '')).join('\n');
  }
}

// --- Reports ---

// The launches as a graph of their own: who reads what another one wrote.
function graphOfSteps(report) {
  const nodes = [], ops = [], types = [''];
  const add = (op, name, operands) => {
    ops.push(op);
    nodes.push([ops.length - 1, name, 0, 0, 0, operands, '', '']);
    return nodes.length - 1;
  };
  ops.push('func');
  nodes.push([0, 'main', 0, -1, 0, [], '', '']);
  const inputs = report.inputs.map((io) => add('arg', io.name, []));
  const live = [], outputs = new Map(), steps = new Map();
  report.steps.forEach((s, i) => {
    if (s.kind === 'jump' || s.kind === 'end') return;
    const from = new Set();
    for (const b of s.bindings) {
      if (b[4]) continue;
      if (b[0] === 1) from.add(inputs[b[1]]);
      if (b[0] === 2 && outputs.has(b[1])) from.add(outputs.get(b[1]));
      if (b[0] !== 0) continue;
      for (const l of live) if (l.begin < b[2] + b[3] && b[2] < l.end) from.add(l.node);
    }
    const node = add(s.kernel || s.kind, s.kernel || s.kind, [...from]);
    steps.set(node, [i]);
    for (const b of s.bindings) {
      if (!b[4]) continue;
      if (b[0] === 2) outputs.set(b[1], node);
      if (b[0] !== 0) continue;
      for (let k = live.length; k-- > 0;) {
        if (live[k].begin >= b[2] && live[k].end <= b[2] + b[3]) live.splice(k, 1);
      }
      live.push({begin: b[2], end: b[2] + b[3], node});
    }
  });
  add('return', '', [...new Set(outputs.values())]);
  const graph = new Graph(report, {name: 'launches', nodes, ops, types, text: -1});
  graph.steps = steps;
  graph.source = () => '';
  return graph;
}

// Pieces of the arena: from the step that writes them to the last that reads them. A
// write ends what it covers; what is left of a piece beside it lives on.
function buffersOf(report) {
  const buffers = [];
  let live = [];
  const write = (begin, end, step) => {
    const left = [];
    for (const l of live) {
      if (l.end <= begin || end <= l.begin) { left.push(l); continue; }
      // In place of what the step itself reads: that is not live beside it.
      const last = l.last === step ? Math.max(l.first, step - 1) : l.last;
      buffers.push({...l, last, begin: Math.max(l.begin, begin), end: Math.min(l.end, end)});
      if (l.begin < begin) left.push({...l, end: begin});
      if (l.end > end) left.push({...l, begin: end});
    }
    left.push({begin, end, first: step, last: step});
    live = left;
  };
  report.steps.forEach((s, i) => {
    const arena = s.bindings.filter((b) => b[0] === 0);
    for (const b of arena) {
      if (b[4]) continue;
      for (const l of live) if (l.begin < b[2] + b[3] && b[2] < l.end) l.last = i;
    }
    for (const b of arena) if (b[4]) write(b[2], b[2] + b[3], i);
  });
  return buffers.concat(live).sort((a, b) => a.first - b.first || a.begin - b.begin);
}

class Report {
  constructor(data, letter) {
    Object.assign(this, data);
    this.letter = letter;
    this.rows = [];
    for (const row of (data.profile || {steps: []}).steps) this.rows[row.step] = row;
    this.graphs = data.graphs.map((g) => new Graph(this, g));
    const fused = this.graphs[this.graphs.length - 1];
    this.steps.forEach((s, i) => {
      if (!fused || s.node < 0) return;
      if (!fused.steps.has(s.node)) fused.steps.set(s.node, []);
      fused.steps.get(s.node).push(i);
    });
    this.graphs.push(graphOfSteps(this));
    this.buffers = buffersOf(this);
    this.events = this.eventsOf();
    this.total = this.profile ? this.profile.steps_us : 0;
  }

  // [step, begin, end]: as measured, else one after the other.
  eventsOf() {
    if (this.profile && this.profile.events.length) return this.profile.events;
    return this.steps.map((s, i) => [i, i, i + 1])
      .filter((e) => !['jump', 'end'].includes(this.steps[e[0]].kind));
  }

  get isTimed() { return !!(this.profile && this.profile.events.length); }

  nameOf(step) {
    const s = this.steps[step];
    return s.kernel || s.ops || s.kind;
  }

  places(step) {
    return this.steps[step].locations.map((l) => {
      const [op, name, file, line] = this.locations[l];
      return name || (file ? `${op} ${file}:${line}` : op);
    });
  }

  textsOf(kernel) {
    return (this.kernels[kernel] || []).map((t) => (t < 0 ? '' : this.texts[t]));
  }

  facts() {
    const launches = this.steps.filter((s) => s.kind === 'kernel').length;
    const flops = this.steps.reduce((sum, s) => sum + (s.flops || 0), 0);
    const facts = [`${this.backend}${this.cpu ? ` for ${this.cpu}` : ''}`,
      `${this.threads} thread${this.threads === 1 ? '' : 's'}`, `${launches} launches`,
      `${formatCount(flops)}FLOP`, `arena ${formatBytes(this.arena)}`];
    if (this.profile) facts.splice(2, 0, `${formatTime(this.profile.run_us)} a run`);
    return facts;
  }
}
