// SPDX-License-Identifier: Apache-2.0
// What stands beside the picture: all of an op or a step; lists of any length, of which
// only what is in the window is in the page.
'use strict';

function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in node && key !== 'list') node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined && c !== ''));
  return node;
}

function pairs(list) {
  const dl = make('dl');
  for (const [term, value] of list) {
    if (value === '' || value === null || value === undefined) continue;
    dl.append(make('dt', {}, term), make('dd', {}, value));
  }
  return dl;
}

// A list of |count| rows: cells(i) gives the columns of one. Keyboard: up and down.
class Rows {
  constructor(room, columns, {cells, pick, sort}) {
    Object.assign(this, {columns, cells, pick, count: 0, chosen: -1, from: -1});
    this.high = 26;
    this.list = make('div', {className: 'list', tabIndex: 0, role: 'grid'});
    this.sized = make('div', {className: 'sized'});
    this.head = make('div', {className: 'row head', role: 'row'});
    for (const [k, column] of columns.entries()) {
      const cell = make('span', {role: 'columnheader'}, column.title);
      this.style(cell, column);
      if (sort) {
        cell.tabIndex = 0;
        cell.onclick = () => sort(k);
        cell.onkeydown = (e) => { if (e.key === 'Enter') { e.stopPropagation(); sort(k); } };
      }
      this.head.append(cell);
    }
    this.list.append(this.head, this.sized);
    room.append(this.list);
    this.list.addEventListener('scroll', () => this.draw());
    this.list.addEventListener('keydown', (e) => this.key(e));
    new ResizeObserver(() => this.draw(true)).observe(this.list);
  }

  style(cell, column) {
    if (column.wide) cell.style.width = `${column.wide}px`;
    else cell.className = 'fill';
    if (column.isNumber) cell.classList.add('n');
  }

  set(count) {
    this.count = count;
    this.list.setAttribute('aria-rowcount', count);
    this.sized.style.height = `${count * this.high}px`;
    this.draw(true);
  }

  choose(i, scrolls) {
    this.chosen = i;
    const top = i * this.high, seen = this.list.clientHeight - this.high;
    if (scrolls && i >= 0 && (top < this.list.scrollTop || top + this.high > this.list.scrollTop + seen))
      this.list.scrollTop = top - seen / 2;
    this.draw(true);
  }

  key(e) {
    const by = {ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20}[e.key];
    if (!by) return;
    e.preventDefault();
    const i = Math.min(this.count - 1, Math.max(0, this.chosen + by));
    this.choose(i, true);
    this.pick(i);
  }

  draw(isNew) {
    const from = Math.max(0, Math.floor(this.list.scrollTop / this.high) - 4);
    const until = Math.min(this.count, from + Math.ceil(this.list.clientHeight / this.high) + 8);
    if (!isNew && from === this.from) return;
    this.from = from;
    const rows = [];
    for (let i = from; i < until; ++i) {
      const row = make('div', {className: 'row', role: 'row', 'aria-rowindex': i + 1,
        'aria-selected': i === this.chosen});
      row.style.top = `${i * this.high}px`;
      this.cells(i).forEach((value, k) => {
        const cell = make('span', {role: 'gridcell'}, value);
        this.style(cell, this.columns[k]);
        row.append(cell);
      });
      row.onclick = () => { this.choose(i); this.pick(i); };
      rows.push(row);
    }
    this.sized.replaceChildren(...rows);
  }
}

// Texts of hundreds of kilobytes are cut; the rest comes when it is asked for.
const FIRST_TEXT = 60000;

class Details {
  constructor(page) {
    this.page = page;
    this.root = document.getElementById('details');
    this.stage = 0;
  }

  text(text, className = '') {
    const pre = make('pre', {className, tabIndex: 0}, text.slice(0, FIRST_TEXT));
    if (text.length <= FIRST_TEXT) return pre;
    const more = make('button', {type: 'button'},
      `Show the other ${formatBytes(text.length - FIRST_TEXT)}`);
    more.onclick = () => { pre.textContent = text; more.remove(); };
    return make('div', {}, pre, more);
  }

  clear(report) {
    const rows = [['model', report.path], ['made by', `Pestle ${this.page.data.pestle}, ${this.page.data.date}`],
      ['backend', `${report.backend} ${report.cpu}`], ['threads', report.threads]];
    const p = report.profile;
    if (p) {
      rows.push(['a run', `${formatTime(p.run_us)} at best of ${p.runs}; its steps ${formatTime(p.steps_us)}`]);
      const l = p.limits;
      if (l.gflops_per_s) {
        rows.push(['limits', `${l.gflops_per_s.toFixed(0)} GFLOP/s, halves ${l.half_gflops_per_s.toFixed(0)}, ` +
          `bytes ${l.byte_gflops_per_s.toFixed(0)}; L2 ${l.l2_gbytes_per_s.toFixed(0)} GB/s, ` +
          `L3 ${l.l3_gbytes_per_s.toFixed(0)}, memory ${l.memory_gbytes_per_s.toFixed(0)}` +
          (l.date ? `; measured ${l.date}, spread ${(100 * l.spread).toFixed(0)} %` : '')]);
      }
      if (p.machine && p.machine.is_busy) rows.push(['machine', 'was busy: times are not those of a quiet one']);
      if (report.random_inputs) rows.push(['inputs', 'random, where none were given']);
    }
    rows.push(['arena', `${formatBytes(report.arena)}; at least ${formatBytes(report.lower_bound)}`]);
    rows.push(['constants', formatBytes(report.constants.reduce((a, b) => a + b, 0))]);
    const io = (list) => list.map((v) => `${v.name}  ${v.dtype}[${(v.dims || []).join(', ')}]`).join('\n');
    this.root.replaceChildren(make('h2', {}, report.name || report.path), pairs(rows),
      make('h3', {}, 'Inputs'), make('pre', {}, io(report.inputs)),
      make('h3', {}, 'Outputs'), make('pre', {}, io(report.outputs)));
  }

  links(title, sheet, list) {
    if (!list.length) return null;
    const box = make('div', {className: 'links'});
    for (const i of list.slice(0, 40)) {
      const b = make('button', {type: 'button'}, sheet.level.titles[i]);
      b.onclick = () => { sheet.select(i); sheet.look(i); };
      box.append(b);
    }
    if (list.length > 40) box.append(`and ${list.length - 40} more`);
    return make('div', {}, make('h3', {}, title), box);
  }

  op(sheet, i) {
    const level = sheet.level, graph = level.graph, id = level.ids[i], report = level.report;
    const parts = [make('h2', {}, level.titles[i]), pairs([
      ['value', graph.name(id) && `%${graph.name(id)}`], ['type', level.types[i]],
      ['from', graph.location(id)], ['weights', level.weights[i] || ''],
      ['ops', graph.op(id) === 'fusion' ? this.page.innerOf(graph, id) : '']])];
    if (graph.isOpen(id)) {
      const open = make('button', {type: 'button'}, 'Show the graph within (Enter)');
      open.onclick = () => this.page.openOp(sheet, id);
      parts.push(open);
    }
    parts.push(this.links('Reads', sheet, level.sources[i]),
      this.links('Read by', sheet, sheet.readersOf(i)));
    const source = graph.source(id);
    if (source) parts.push(make('h3', {}, 'IR'), this.text(source));
    for (const step of level.steps[i]) parts.push(this.card(report, step, level.steps[i].length > 1));
    this.root.replaceChildren(...parts.filter(Boolean));
    this.root.scrollTop = 0;
  }

  step(report, step) {
    this.root.replaceChildren(make('h2', {}, report.nameOf(step)), this.card(report, step, false));
    this.root.scrollTop = 0;
  }

  card(report, step, isOne) {
    const s = report.steps[step], row = report.rows[step], box = make('section');
    box.append(make('h3', {}, `Step ${step}${isOne ? `, ${report.nameOf(step)}` : ''}`));
    const bytes = row ? row.bytes : s.bytes, flops = row ? row.flops : s.flops;
    box.append(pairs([['kernel', s.kernel],
      ['time', row && `${formatTime(row.best_us)} at best, ${formatTime(row.mean_us)} on average` +
        (row.times > 1 ? `, in ${row.times} trips` : '')],
      ['share', row && `${(100 * row.share).toFixed(1)} % of a run`],
      ['rate', row && (flops ? `${row.gflops_per_s.toPrecision(3)} GFLOP/s, ` : '') +
        `${row.gbytes_per_s.toPrecision(3)} GB/s`],
      ['limit', row && row.limit ? `${(100 * row.limit).toFixed(0)} % of what the machine allows, by ${row.bound}` : ''],
      ['work', flops ? `${formatCount(flops)}FLOP` : ''], ['moves', bytes ? formatBytes(bytes) : ''],
      ['code', s.code ? formatBytes(s.code) : ''],
      ['ops', row ? row.ops : s.ops], ['schedule', row && row.schedule],
      ['from', report.places(step).join(', ')]]));
    if (s.kernel) this.stages(report, s.kernel, box);
    return box;
  }

  stages(report, kernel, box) {
    const texts = report.textsOf(kernel), bar = make('div', {className: 'stages'}), room = make('div');
    const has = STAGES.map((_, k) => k).filter((k) => texts[k]);
    if (!has.length) return;
    const show = (k) => {
      this.stage = k;
      [...bar.children].forEach((b) => b.setAttribute('aria-pressed', +b.value === k));
      room.replaceChildren(this.text(texts[k], k === 0 ? 'wrap' : ''));
    };
    for (const k of has) {
      const b = make('button', {type: 'button', value: k}, STAGES[k]);
      b.onclick = () => show(k);
      bar.append(b);
    }
    box.append(bar, room);
    show(has.includes(this.stage) ? this.stage : has[0]);
  }
}
