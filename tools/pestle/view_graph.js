// SPDX-License-Identifier: Apache-2.0
// A graph on a canvas: only what is in the window is drawn, as boxes with text, boxes,
// or cells of many ops, by how near one looks. Keyboard and pointer walk through it.
'use strict';

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Read once a theme, not once a frame.
class Palette {
  read() {
    for (const name of ['paper', 'panel', 'ink', 'faint', 'line', 'edge', 'accent', 'mark',
      'hot', 'cold']) this[name] = colour(`--${name}`);
    this.kinds = {};
    for (const [kind] of KINDS) this.kinds[kind] = colour(`--k-${kind}`);
    const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
    this.steps = Array.from({length: 33}, (_, i) => `rgb(${[0, 1, 2].map((k) => Math.round(
      part(this.cold, k) + (part(this.hot, k) - part(this.cold, k)) * i / 32)).join(' ')})`);
  }

  // From cold (0) to hot (1).
  heat(share) { return this.steps[Math.round(32 * Math.min(1, Math.max(0, share)))]; }
}

// A canvas as large as its room, drawn when something changed, at most once a frame.
class Sheet {
  constructor(room, label) {
    this.canvas = document.createElement('canvas');
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-label', label);
    room.append(this.canvas);
    this.context = this.canvas.getContext('2d');
    new ResizeObserver(() => this.resize()).observe(room);
  }

  resize() {
    if (!this.canvas.clientWidth) return;  // not in sight
    const ratio = window.devicePixelRatio || 1;
    this.wide = this.canvas.clientWidth;
    this.high = this.canvas.clientHeight;
    this.canvas.width = Math.max(1, Math.round(this.wide * ratio));
    this.canvas.height = Math.max(1, Math.round(this.high * ratio));
    this.ratio = ratio;
    if (this.resized) this.resized();
    this.paintNow();
  }

  paint() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => this.paintNow());
  }

  paintNow() {
    this.isAsked = false;
    if (!this.wide || !this.high) return;
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.context.clearRect(0, 0, this.wide, this.high);
    this.draw(this.context);
  }

  // |drag|(dx, dy) while the pointer is down, |click|(x, y) where it was not moved.
  listen({drag, click, hover, wheel, twice}) {
    let from = null, moved = false;
    const place = (e) => {
      const box = this.canvas.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    this.canvas.addEventListener('pointerdown', (e) => {
      from = place(e);
      moved = false;
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener('pointermove', (e) => {
      const to = place(e);
      if (!from) { hover(to[0], to[1], e); return; }
      if (!moved && Math.hypot(to[0] - from[0], to[1] - from[1]) < 4) return;
      moved = true;
      drag(to[0] - from[0], to[1] - from[1]);
      from = to;
    });
    this.canvas.addEventListener('pointerup', (e) => {
      if (from && !moved) click(...place(e));
      from = null;
    });
    this.canvas.addEventListener('pointercancel', () => { from = null; });
    this.canvas.addEventListener('pointerleave', (e) => hover(-1, -1, e));
    this.canvas.addEventListener('dblclick', (e) => twice(...place(e)));
    this.canvas.addEventListener('wheel', (e) => {
      e.preventDefault();
      wheel(...place(e), e.deltaY * (e.deltaMode === 1 ? 20 : 1), e);
    }, {passive: false});
  }
}

class GraphSheet extends Sheet {
  // |page| is told what is selected and opened.
  constructor(room, page, palette) {
    super(room, 'Graph. Arrow keys walk along edges, plus and minus zoom, Enter opens.');
    Object.assign(this, {page, palette, scale: 1, left: 0, top: 0, selected: -1,
      colours: 'kind', found: null});
    this.listen({
      drag: (dx, dy) => this.pan(dx, dy),
      click: (x, y) => this.click(x, y),
      twice: (x, y) => { this.click(x, y); this.open(); },
      hover: (x, y, e) => this.hover(x, y, e),
      wheel: (x, y, delta) => this.zoom(Math.exp(-delta * 0.0015), x, y),
    });
    this.canvas.addEventListener('keydown', (e) => this.key(e));
  }

  resized() {
    if (this.layout && !this.wasSeen) this.begin();
  }

  show(level) {
    this.level = level;
    this.layout = level.layout || (level.layout = new Layout(level));
    this.selected = -1;
    this.found = null;
    this.wasSeen = false;
    this.readers = null;
    if (this.wide) this.begin();
    this.paint();
  }

  // --- Window ---

  // The whole graph where it can be read so, else its first ops.
  begin() {
    this.wasSeen = true;
    this.fit();
    if (this.scale > 0.45) return;
    const row = (this.layout.rows[0] || []).filter((i) => i < this.level.count);
    const input = row.find((i) => this.level.kinds[i] === 'io');
    this.scale = 0.8;
    this.look(input ?? row[0] ?? 0);
    this.top = -24 / this.scale;
  }

  fit() {
    const b = this.layout.bounds;
    this.scale = Math.min(1.2, this.wide / (b.right - b.left + 60),
      this.high / (b.bottom - b.top + 20));
    this.left = (b.left + b.right) / 2 - this.wide / this.scale / 2;
    this.top = (b.top + b.bottom) / 2 - this.high / this.scale / 2;
    this.paint();
  }

  look(i) {
    this.left = this.layout.x[i] - this.wide / this.scale / 2;
    this.top = this.layout.y(i) + HEIGHT / 2 - this.high / this.scale / 2;
    this.paint();
  }

  pan(dx, dy) {
    this.left -= dx / this.scale;
    this.top -= dy / this.scale;
    this.paint();
  }

  zoom(factor, x = this.wide / 2, y = this.high / 2) {
    const to = Math.min(4, Math.max(0.002, this.scale * factor));
    this.left += x / this.scale - x / to;
    this.top += y / this.scale - y / to;
    this.scale = to;
    this.paint();
  }

  // --- What a user does ---

  at(x, y) {
    return this.layout ? this.layout.at(this.left + x / this.scale, this.top + y / this.scale) : -1;
  }

  cellAt(x, y) {
    const coarse = this.layout.coarse(this.power());
    const column = Math.floor((this.left + x / this.scale) / (coarse.size * 2));
    const row = Math.floor((this.top + y / this.scale) / coarse.size);
    return coarse.found.get(`${column},${row}`);
  }

  click(x, y) {
    if (!this.layout) return;
    if (!this.isCoarse()) {
      this.select(this.at(x, y));
      return;
    }
    const cell = this.cellAt(x, y);
    if (!cell) return;
    this.scale = 0.6;
    this.select(cell.first);
    this.look(cell.first);
  }

  hover(x, y, e) {
    if (!this.layout || x < 0) { this.page.tip(null); return; }
    if (this.isCoarse()) {
      const c = this.cellAt(x, y);
      this.page.tip(c && `${c.count} ops: ${c.ops.join(', ')}${c.count > 4 ? ', …' : ''}` +
        (c.time ? `\n${formatTime(c.time)}` : ''), e);
      return;
    }
    const i = this.at(x, y);
    if (i < 0) { this.page.tip(null); return; }
    const l = this.level, id = l.ids[i];
    const lines = [l.label(i), l.types[i]];
    if (l.graph.location(id)) lines.push(l.graph.location(id));
    if (l.limits[i]) lines.push(`${Math.round(100 * l.limits[i])} % of the machine's limit`);
    if (l.graph.op(id) === 'fusion') lines.push(this.page.innerOf(l.graph, id));
    this.page.tip(lines.join('\n'), e);
  }

  select(i) {
    this.selected = i;
    this.paint();
    this.page.selectOp(this, i);
  }

  open() {
    if (this.selected >= 0) this.page.openOp(this, this.level.ids[this.selected]);
  }

  readersOf(i) {
    if (!this.readers) {
      this.readers = this.level.sources.map(() => []);
      this.level.sources.forEach((list, to) => {
        for (const from of list) this.readers[from].push(to);
      });
    }
    return this.readers[i];
  }

  walk(way) {
    const i = this.selected, row = this.layout.rows[this.layout.rank[i]]
      .filter((p) => p < this.level.count);
    const next = {
      ArrowUp: () => this.level.sources[i][0],
      ArrowDown: () => this.readersOf(i)[0],
      ArrowLeft: () => row[row.indexOf(i) - 1],
      ArrowRight: () => row[row.indexOf(i) + 1],
    }[way]();
    if (next === undefined) return;
    this.select(next);
    this.look(next);
  }

  key(e) {
    if (!this.layout || e.ctrlKey || e.metaKey || e.altKey) return;
    const pans = {ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80]};
    if (pans[e.key]) {
      if (this.selected >= 0) this.walk(e.key);
      else this.pan(...pans[e.key]);
    } else if (e.key === '+' || e.key === '=') this.zoom(1.25);
    else if (e.key === '-') this.zoom(0.8);
    else if (e.key === '0') this.fit();
    else if (e.key === 'Enter') this.open();
    else if (e.key === 'Backspace') this.page.leaveOp(this);
    else if (e.key === 'Escape') this.select(-1);
    else return;
    e.preventDefault();
  }

  // --- Drawing ---

  // Single ops stay boxes as long as there are not too many to draw.
  isCoarse() { return this.scale < (this.level.count > 1500 ? 0.14 : 0.03); }
  // Cells are about a dozen pixels high.
  power() { return Math.max(1, Math.ceil(Math.log2(11 / (RANK * this.scale)))); }

  draw(c) {
    if (!this.layout) return;
    c.scale(this.scale, this.scale);
    c.translate(-this.left, -this.top);
    if (this.isCoarse()) this.drawCells(c);
    else this.drawOps(c);
  }

  fillOf(kind, time, longest, limit) {
    if (this.colours === 'time') return this.palette.heat(Math.sqrt(time / longest));
    if (this.colours === 'limit') return limit ? this.palette.heat(1 - Math.min(1, limit)) : this.palette.line;
    return this.palette.kinds[kind];
  }

  drawCells(c) {
    const {size, list, links, longest} = this.layout.coarse(this.power());
    const top = Math.floor(this.top / size), bottom = (this.top + this.high / this.scale) / size;
    const wide = size * 2, edge = 0.1 * size;
    c.strokeStyle = this.palette.edge;
    c.globalAlpha = 0.5;
    c.lineWidth = 1 / this.scale;
    c.beginPath();
    for (const [a, b] of links) {
      if (Math.max(a.row, b.row) < top || Math.min(a.row, b.row) > bottom) continue;
      c.moveTo((a.column + 0.5) * wide, (a.row + 0.5) * size);
      c.lineTo((b.column + 0.5) * wide, (b.row + 0.5) * size);
    }
    c.stroke();
    for (const cell of list) {
      if (cell.row < top || cell.row > bottom) continue;
      const limit = cell.time ? cell.limit / cell.time : 0;
      c.globalAlpha = this.isDim(cell.first, cell) ? 0.15 : 1;
      c.fillStyle = this.fillOf(cell.kind, cell.time, longest, limit);
      const share = Math.min(1, 0.35 + 0.13 * cell.count);
      c.fillRect((cell.column + 0.5) * wide - wide * share / 2 + edge, cell.row * size + edge,
        wide * share - 2 * edge, size - 2 * edge);
    }
    c.globalAlpha = 1;
    if (this.selected >= 0) this.drawMark(c, this.selected, 3 / this.scale);
  }

  isDim(i, cell) {
    if (!this.found) return false;
    return cell ? !this.foundCells(this.power()).has(cell) : !this.found.has(i);
  }

  foundCells(k) {
    if (this.foundAt === k && this.foundOf === this.found) return this.foundSet;
    const {found, size} = this.layout.coarse(k);
    this.foundSet = new Set([...this.found].map((i) => found.get(
      `${Math.floor(this.layout.x[i] / (size * 2))},${Math.floor(this.layout.y(i) / size)}`)));
    this.foundAt = k;
    this.foundOf = this.found;
    return this.foundSet;
  }

  // Edges of a row lead up to what was placed in the rows above.
  drawEdges(c, first, last) {
    const l = this.layout, count = this.level.count;
    const line = (from, to) => {
      const y1 = l.y(from) + (from < count ? HEIGHT : 0), y2 = l.y(to);
      const middle = (y1 + y2) / 2;
      c.moveTo(l.x[from], y1);
      c.bezierCurveTo(l.x[from], middle, l.x[to], middle, l.x[to], y2);
      if (to >= count) c.lineTo(l.x[to], y2);
    };
    c.beginPath();
    for (let r = first; r <= Math.min(last + 1, l.rows.length - 1); ++r) {
      for (const i of l.rows[r]) for (const from of l.up[i]) line(from, i);
    }
    for (const [from, to] of l.straight) {
      if (l.rank[from] <= last && l.rank[to] >= first) line(from, to);
    }
    c.strokeStyle = this.palette.edge;
    c.lineWidth = Math.max(1.2, 0.7 / this.scale);
    c.globalAlpha = this.found ? 0.35 : 0.75;
    c.stroke();
    c.globalAlpha = 1;
    if (this.selected >= 0) this.drawNear(c, line);
  }

  // The edges of what is selected, above the others.
  drawNear(c, line) {
    c.beginPath();
    const trace = (i) => {
      for (const from of this.layout.up[i]) {
        line(from, i);
        if (from >= this.level.count) trace(from);
      }
    };
    trace(this.selected);
    c.strokeStyle = this.palette.accent;
    c.lineWidth = Math.max(2, 1.5 / this.scale);
    c.stroke();
  }

  drawOps(c) {
    const l = this.layout, bottom = this.top + this.high / this.scale;
    const first = Math.max(0, Math.floor(this.top / RANK) - 1);
    const last = Math.min(l.rows.length - 1, Math.ceil(bottom / RANK));
    const left = this.left, right = this.left + this.wide / this.scale;
    this.drawEdges(c, first, last);
    c.font = '600 12.5px system-ui, "DejaVu Sans", sans-serif';
    for (let r = first; r <= last; ++r) {
      for (const i of l.rows[r]) {
        if (i >= this.level.count) continue;
        if (l.x[i] + l.width[i] / 2 < left || l.x[i] - l.width[i] / 2 > right) continue;
        this.drawOp(c, i);
      }
    }
    if (this.selected >= 0) this.drawMark(c, this.selected, 2.5);
  }

  drawOp(c, i) {
    const l = this.layout, level = this.level, wide = l.width[i];
    const x = l.x[i] - wide / 2, y = l.y(i), p = this.palette;
    const fill = this.fillOf(level.kinds[i], level.times[i], level.longest, level.limits[i]);
    c.globalAlpha = this.isDim(i) ? 0.25 : 1;
    c.beginPath();
    c.roundRect(x, y, wide, HEIGHT, level.kinds[i] === 'io' ? HEIGHT / 2 : 6);
    c.fillStyle = this.scale < 0.34 ? fill : p.paper;
    c.fill();
    c.strokeStyle = fill;
    c.lineWidth = 1.3;
    c.stroke();
    if (this.scale >= 0.34) this.drawText(c, i, x, y, wide, fill);
    c.globalAlpha = 1;
  }

  drawText(c, i, x, y, wide, fill) {
    const level = this.level, p = this.palette;
    c.fillStyle = fill;
    if (level.kinds[i] === 'io') c.fillRect(x + 8, y + HEIGHT / 2 - 3, 6, 6);
    else c.fillRect(x, y + 5, 5, HEIGHT - 10);
    c.fillStyle = p.ink;
    const time = level.times[i] ? formatTime(level.times[i]) : '', room = 7 * time.length;
    c.fillText(this.cut(c, level.titles[i], wide - 30 - room), x + 18, y + 16);
    c.fillStyle = p.faint;
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    if (time) {
      c.textAlign = 'right';
      c.fillText(time, x + wide - 7, y + 16);
      c.textAlign = 'left';
    }
    c.fillText(this.cut(c, level.types[i], wide - 28), x + 18, y + 32);
    c.font = '600 12.5px system-ui, "DejaVu Sans", sans-serif';
    if (!level.weights[i] || this.scale < 0.6) return;
    c.fillStyle = p.kinds.io;
    for (let k = 0; k < Math.min(5, level.weights[i]); ++k)
      c.fillRect(x + wide - 9 - 6 * k, y + HEIGHT - 8, 4, 4);
  }

  // Cut where it does not fit; what fits is remembered.
  cut(c, text, wide) {
    const key = `${Math.round(wide)} ${text}`;
    this.cuts = this.cuts && this.cuts.size < 20000 ? this.cuts : new Map();
    if (this.cuts.has(key)) return this.cuts.get(key);
    let out = text;
    while (out.length > 3 && c.measureText(out).width > wide) out = `${out.slice(0, -3).trimEnd()}…`;
    this.cuts.set(key, out);
    return out;
  }

  drawMark(c, i, wide) {
    const l = this.layout;
    c.strokeStyle = this.palette.mark;
    c.lineWidth = wide;
    c.strokeRect(l.x[i] - l.width[i] / 2 - 4, l.y(i) - 4, l.width[i] + 8, HEIGHT + 8);
  }
}
