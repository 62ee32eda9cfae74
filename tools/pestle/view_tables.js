// SPDX-License-Identifier: Apache-2.0
// Kernels as a table below their roofline, and two reports side by side.
'use strict';

class KernelTable {
  constructor(pane, page, report) {
    Object.assign(this, {page, report, by: 2, down: true});
    this.steps = report.steps.map((_, i) => i)
      .filter((i) => !['jump', 'end'].includes(report.steps[i].kind));
    if (report.isTimed && report.profile.limits.gflops_per_s) {
      const roof = make('div', {className: 'room'});
      pane.append(roof);
      this.roof = new RoofSheet(roof, page, page.palette, report);
      page.painted.push(this.roof);
    }
    const room = make('div', {className: 'room'});
    pane.append(room);
    this.columns = [
      {title: 'step', wide: 56, isNumber: true, value: (i) => i, show: (i) => i},
      {title: 'kernel', value: (i) => report.nameOf(i), show: (i) => report.nameOf(i)},
      {title: 'time', wide: 90, isNumber: true, value: (i) => this.row(i).best_us || 0,
        show: (i) => (this.row(i).best_us ? formatTime(this.row(i).best_us) : '')},
      {title: 'share', wide: 66, isNumber: true, value: (i) => this.row(i).share || 0,
        show: (i) => (this.row(i).share ? `${(100 * this.row(i).share).toFixed(1)} %` : '')},
      {title: 'GFLOP/s', wide: 84, isNumber: true, value: (i) => this.row(i).gflops_per_s || 0,
        show: (i) => (this.row(i).flops ? this.row(i).gflops_per_s.toPrecision(3) : '')},
      {title: 'GB/s', wide: 70, isNumber: true, value: (i) => this.row(i).gbytes_per_s || 0,
        show: (i) => (this.row(i).bytes ? this.row(i).gbytes_per_s.toPrecision(3) : '')},
      {title: 'limit', wide: 66, isNumber: true, value: (i) => this.row(i).limit || 0,
        show: (i) => (this.row(i).limit ? `${(100 * this.row(i).limit).toFixed(0)} %` : '')},
      {title: 'by', wide: 66, value: (i) => this.row(i).bound || '', show: (i) => this.row(i).bound || ''},
      {title: 'bytes', wide: 84, isNumber: true, value: (i) => this.cost(i).bytes || 0,
        show: (i) => (this.cost(i).bytes ? formatBytes(this.cost(i).bytes) : '')},
    ];
    this.rows = new Rows(room, this.columns, {
      cells: (k) => this.columns.map((c) => c.show(this.steps[k])),
      pick: (k) => page.selectStep(report, this.steps[k]),
      sort: (k) => { this.down = this.by === k ? !this.down : k !== 1; this.by = k; this.sort(); },
    });
    this.sort();
  }

  row(i) { return this.report.rows[i] || {}; }
  cost(i) { return this.report.rows[i] || this.report.steps[i]; }

  sort() {
    const value = this.columns[this.by].value, sign = this.down ? -1 : 1;
    this.steps.sort((a, b) => {
      const x = value(a), y = value(b);
      return sign * (x < y ? -1 : x > y ? 1 : 0) || a - b;
    });
    this.rows.set(this.steps.length);
  }

  mark(step) {
    this.rows.choose(this.steps.indexOf(step), true);
    if (this.roof) { this.roof.selected = step; this.roof.paint(); }
  }
}

// Steps of two reports that are for the same ops of the model, as groups of [steps of
// A, steps of B]: each step goes with the one of the other side with which it shares
// most places. What one side fuses stands beside all that the other has for it.
function matchSteps(a, b) {
  const sides = [a, b].map((r) => r.steps.map((_, i) => i)
    .filter((i) => !['jump', 'end'].includes(r.steps[i].kind))
    .map((step) => ({step, places: new Set(r.places(step))})));
  const groups = new Map(), root = (x) => (groups.get(x) === x ? x : root(groups.get(x)));
  for (const item of sides.flat()) groups.set(item, item);
  sides.forEach((side, k) => {
    const holders = new Map();
    for (const other of sides[1 - k]) {
      for (const p of other.places) holders.set(p, [...(holders.get(p) || []), other]);
    }
    for (const item of side) {
      const common = new Map();
      for (const p of item.places) {
        for (const other of holders.get(p) || []) common.set(other, (common.get(other) || 0) + 1);
      }
      let best = null, most = 0;
      for (const [other, count] of common) {
        const alike = count / (item.places.size + other.places.size - count);
        if (alike > most) { most = alike; best = other; }
      }
      if (best) groups.set(root(item), root(best));
    }
  });
  const found = new Map();
  sides.forEach((side, k) => {
    for (const item of side) {
      const r = root(item);
      if (!found.has(r)) found.set(r, [[], []]);
      found.get(r)[k].push(item.step);
    }
  });
  return [...found.values()];
}

function compareView(page, room) {
  const [a, b] = page.reports;
  const pane = make('div', {className: 'pane'}), space = make('div', {className: 'room'});
  const table = make('div', {className: 'text'});
  table.style.flex = 'none';
  const sum = (list) => list.reduce((x, y) => x + y, 0);
  const facts = [
    ['a run', (r) => r.profile && r.profile.run_us, formatTime],
    ['its steps', (r) => r.profile && r.profile.steps_us, formatTime],
    ['launches', (r) => r.steps.filter((s) => s.kind === 'kernel').length, String],
    ['operations', (r) => sum(r.steps.map((s) => s.flops || 0)), formatCount],
    ['bytes moved', (r) => sum(r.steps.map((s) => s.bytes || 0)), formatBytes],
    ['arena', (r) => r.arena, formatBytes],
    ['constants', (r) => sum(r.constants), formatBytes],
    ['code', (r) => sum(r.steps.map((s) => s.code || 0)), formatBytes],
  ];
  const grid = make('dl');
  grid.style.gridTemplateColumns = '120px 1fr 1fr 90px';
  const line = (...cells) => cells.forEach((c, k) => grid.append(make(k ? 'dd' : 'dt', {}, c)));
  line('', `A: ${a.path}`, `B: ${b.path}`, 'B / A');
  for (const [name, value, show] of facts) {
    const x = value(a), y = value(b);
    if (x === null && y === null) continue;
    line(name, x === null ? '-' : show(x), y === null ? '-' : show(y), x && y ? (y / x).toFixed(3) : '');
  }
  table.append(grid);
  room.append(pane);
  pane.append(table, space);
  const time = (r, list) => sum(list.map((i) => (r.rows[i] ? r.rows[i].best_us : 0)));
  const matched = matchSteps(a, b);
  const weight = ([i, j]) => Math.abs(time(b, j) - time(a, i));
  matched.sort((x, y) => weight(y) - weight(x) || (x[0][0] ?? 1e9) - (y[0][0] ?? 1e9));
  const longest = (r, list) => list.reduce((x, y) => (time(r, [y]) > time(r, [x]) ? y : x), list[0]);
  const name = (r, list) => (list.length ? r.nameOf(longest(r, list)) +
    (list.length > 1 ? ` and ${list.length - 1} more` : '') : '');
  const columns = [{title: 'A'}, {title: 'time', wide: 90, isNumber: true}, {title: 'B'},
    {title: 'time', wide: 90, isNumber: true}, {title: 'B − A', wide: 100, isNumber: true}];
  const rows = new Rows(space, columns, {
    cells: (k) => {
      const [i, j] = matched[k], x = time(a, i), y = time(b, j);
      const change = make('span', {className: y > x ? 'worse' : 'better'},
        x === y ? '' : `${y > x ? '+' : '−'}${formatTime(Math.abs(y - x))}`);
      return [name(a, i), x ? formatTime(x) : '', name(b, j), y ? formatTime(y) : '', change];
    },
    pick: (k) => {
      const boxes = [];
      [a, b].forEach((r, side) => {
        for (const step of matched[k][side].slice(0, 12))
          boxes.push(make('h2', {}, `${r.letter}: ${r.nameOf(step)}`), page.details.card(r, step, false));
      });
      page.details.root.replaceChildren(...boxes);
    },
  });
  rows.set(matched.length);
}
