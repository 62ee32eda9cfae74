// SPDX-License-Identifier: Apache-2.0
// Steps, and the memory that lies between them, on one axis; and kernels beside what
// the machine's limits allow.
'use strict';

const LANE = 30, AXIS = 22, LEGEND = 92, PAD = 10;

class TimeSheet extends Sheet {
  constructor(room, page, palette, reports) {
    super(room, 'Timeline and memory plan. Plus and minus zoom, arrows pan.');
    Object.assign(this, {page, palette, reports, selected: null});
    this.until = Math.max(1, ...reports.map((r) => r.events.reduce((t, e) => Math.max(t, e[2]), 0)));
    this.from = 0;
    this.to = this.until;
    this.sides = reports.map((report) => this.prepare(report));
    this.listen({
      drag: (dx) => this.pan(-dx / (this.wide - LEGEND) * (this.to - this.from)),
      click: (x, y) => this.click(x, y),
      twice: () => this.fit(),
      hover: (x, y, e) => this.hover(x, y, e),
      wheel: (x, y, delta, e) => (e.shiftKey ? this.pan(delta / 800 * (this.to - this.from))
        : this.zoom(Math.exp(delta * 0.0015), x)),
    });
    this.canvas.addEventListener('keydown', (e) => this.key(e));
  }

  // When each step begins and ends, and each piece of memory.
  prepare(report) {
    const first = new Map(), last = new Map();
    for (const [step, begin, end] of report.events) {
      if (!first.has(step)) first.set(step, begin);
      last.set(step, end);
    }
    const begin = (s) => { while (s > 0 && !first.has(s)) --s; return first.get(s) || 0; };
    // Until the next step begins: what is read by both is not free between them.
    const end = (s) => {
      while (s > 0 && !last.has(s)) --s;
      return Math.max(last.get(s) || 0, first.get(s + 1) || 0);
    };
    const buffers = report.buffers.map((b) => ({...b, from: begin(b.first),
      to: Math.max(end(b.last), end(b.first)), kind: kindOf(report.nameOf(b.first))}));
    // How much is live at each moment at which that changes.
    const moments = [];
    for (const b of buffers) moments.push([b.from, b.end - b.begin], [b.to, b.begin - b.end]);
    // What ends where another begins is not live beside it.
    moments.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let live = 0, most = 0;
    const curve = moments.map(([at, change]) => {
      live += change;
      most = Math.max(most, live);
      return [at, live];
    });
    return {report, buffers, curve, most, kinds: report.steps.map((s, i) => kindOf(report.nameOf(i)))};
  }

  x(t) { return LEGEND + (t - this.from) / (this.to - this.from) * (this.wide - LEGEND - PAD); }
  time(x) { return this.from + (x - LEGEND) / (this.wide - LEGEND - PAD) * (this.to - this.from); }

  fit() { this.from = 0; this.to = this.until; this.paint(); }

  pan(by) {
    const span = this.to - this.from;
    this.from = Math.min(Math.max(0, this.from + by), Math.max(0, this.until - span));
    this.to = this.from + span;
    this.paint();
  }

  zoom(factor, x = this.wide / 2) {
    const at = this.time(x), span = this.to - this.from;
    const next = Math.min(this.until, Math.max(this.until * 1e-5, span * factor));
    this.from = Math.min(Math.max(0, at - (at - this.from) * next / span), this.until - next);
    this.to = this.from + next;
    this.paint();
  }

  key(e) {
    const span = this.to - this.from;
    if (e.key === '+' || e.key === '=') this.zoom(0.8);
    else if (e.key === '-') this.zoom(1.25);
    else if (e.key === 'ArrowLeft') this.pan(-span / 10);
    else if (e.key === 'ArrowRight') this.pan(span / 10);
    else if (e.key === '0') this.fit();
    else return;
    e.preventDefault();
  }

  // The parts of a side: steps, arena, curve, from top to bottom.
  parts(k) {
    const high = this.high / this.sides.length, top = k * high + AXIS;
    const rest = high - AXIS - LANE - 16;
    return {steps: top, arena: top + LANE + 8, arenaHigh: rest * 0.72,
      curve: top + LANE + 16 + rest * 0.72, curveHigh: rest * 0.28 - 14};
  }

  what(x, y) {
    const k = Math.min(this.sides.length - 1, Math.floor(y / (this.high / this.sides.length)));
    const side = this.sides[k], p = this.parts(k), t = this.time(x);
    if (x < LEGEND) return null;
    if (y >= p.steps && y < p.steps + LANE) {
      const e = side.report.events.find((s) => s[1] <= t && t < s[2]);
      return e && {side, step: e[0], event: e};
    }
    if (y < p.arena || y > p.arena + p.arenaHigh) return null;
    const offset = (y - p.arena) / p.arenaHigh * Math.max(1, side.report.arena);
    const buffer = side.buffers.find((b) => b.from <= t && t <= b.to &&
      b.begin <= offset && offset < b.end);
    return buffer && {side, step: buffer.first, buffer};
  }

  click(x, y) {
    const hit = this.what(x, y);
    this.selected = hit && {report: hit.side.report, step: hit.step};
    this.paint();
    this.page.selectStep(hit && hit.side.report, hit ? hit.step : -1);
  }

  hover(x, y, e) {
    const hit = x >= 0 && this.what(x, y);
    if (!hit) { this.page.tip(null); return; }
    const r = hit.side.report, name = r.nameOf(hit.step), row = r.rows[hit.step];
    if (hit.buffer) {
      const b = hit.buffer;
      this.page.tip(`${formatBytes(b.end - b.begin)} at ${b.begin}, written by step ${b.first} ` +
        `(${name}), last read by step ${b.last}`, e);
      return;
    }
    this.page.tip([`step ${hit.step}: ${name}`,
      r.isTimed && `${formatTime(hit.event[2] - hit.event[1])} in this run` +
        (row ? `, ${formatTime(row.best_us)} at best` : ''),
      row && row.limit && `${Math.round(100 * row.limit)} % of the limit by ${row.bound}`]
      .filter(Boolean).join('\n'), e);
  }

  // --- Drawing ---

  draw(c) {
    c.font = '12px system-ui, "DejaVu Sans", sans-serif';
    this.sides.forEach((side, k) => {
      this.drawAxis(c, side, this.parts(k));
      this.drawSteps(c, side, this.parts(k));
      this.drawArena(c, side, this.parts(k));
      this.drawCurve(c, side, this.parts(k));
    });
  }

  drawAxis(c, side, p) {
    const span = this.to - this.from, raw = span / 8, ten = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= raw);
    c.fillStyle = this.palette.faint;
    c.strokeStyle = this.palette.line;
    c.lineWidth = 1;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = this.x(t), timed = side.report.isTimed;
      c.beginPath();
      c.moveTo(x, p.steps - 4);
      c.lineTo(x, p.curve + p.curveHigh);
      c.stroke();
      c.fillText(!timed ? `step ${Math.round(t)}` : t ? formatTime(t) : '0', x + 3, p.steps - 7);
    }
    c.fillStyle = this.palette.ink;
    c.fillText(this.sides.length > 1 ? side.report.letter : '', 10, p.steps - 7);
    c.fillText('steps', 10, p.steps + 19);
    c.fillText('arena', 10, p.arena + 14);
    c.fillText('live', 10, p.curve + 14);
    c.fillStyle = this.palette.faint;
    c.fillText(formatBytes(side.report.arena), 10, p.arena + 31);
    c.fillText(formatBytes(side.most), 10, p.curve + 31);
  }

  // A rectangle of at least a pixel; what falls on the pixel of the one before is left
  // out, so that their number is bounded by the width.
  drawSteps(c, side, p) {
    let done = -Infinity;
    for (const [step, begin, end] of side.report.events) {
      if (end < this.from || begin > this.to) continue;
      const x = Math.max(LEGEND, this.x(begin));
      const wide = Math.min(this.wide - PAD, this.x(end)) - x;
      if (x + wide < done + 1) continue;
      done = x + wide;
      c.fillStyle = this.palette.kinds[side.kinds[step]];
      c.fillRect(x, p.steps, Math.max(1, wide - 0.6), LANE);
      if (this.isSelected(side, step)) this.mark(c, x, p.steps, Math.max(2, wide), LANE);
      if (wide < 46) continue;
      c.save();
      c.beginPath();
      c.rect(x, p.steps, wide - 3, LANE);
      c.clip();
      c.fillStyle = this.palette.panel;
      c.fillText(side.report.nameOf(step), x + 5, p.steps + 19);
      c.restore();
    }
  }

  isSelected(side, step) {
    return this.selected && this.selected.report === side.report && this.selected.step === step;
  }

  mark(c, x, y, wide, high) {
    c.strokeStyle = this.palette.mark;
    c.lineWidth = 2;
    c.strokeRect(x, y, wide, high);
  }

  drawArena(c, side, p) {
    const scale = p.arenaHigh / Math.max(1, side.report.arena);
    c.fillStyle = this.palette.paper;
    c.fillRect(LEGEND, p.arena, this.wide - LEGEND - PAD, p.arenaHigh);
    for (const b of side.buffers) {
      if (b.to < this.from || b.from > this.to) continue;
      const x = Math.max(LEGEND, this.x(b.from));
      const wide = Math.max(1, Math.min(this.wide - PAD, this.x(b.to)) - x);
      const y = p.arena + b.begin * scale, high = Math.max(1, (b.end - b.begin) * scale);
      c.globalAlpha = 0.72;
      c.fillStyle = this.palette.kinds[b.kind];
      c.fillRect(x, y, wide, high);
      c.globalAlpha = 1;
      if (high > 3 && wide > 3) {
        c.strokeStyle = this.palette.panel;
        c.lineWidth = 0.7;
        c.strokeRect(x, y, wide, high);
      }
      if (this.isSelected(side, b.first)) this.mark(c, x, y, wide, high);
    }
  }

  drawCurve(c, side, p) {
    const most = Math.max(1, side.most, side.report.lower_bound), base = p.curve + p.curveHigh;
    const y = (bytes) => base - bytes / most * p.curveHigh;
    c.save();
    c.beginPath();
    c.rect(LEGEND, p.curve - 2, this.wide - LEGEND - PAD, p.curveHigh + 3);
    c.clip();
    c.beginPath();
    c.moveTo(this.x(0), base);
    let before = 0;
    for (const [at, live] of side.curve) {
      c.lineTo(this.x(at), y(before));
      c.lineTo(this.x(at), y(live));
      before = live;
    }
    c.lineTo(this.x(this.until), base);
    c.fillStyle = this.palette.cold;
    c.fill();
    c.strokeStyle = this.palette.accent;
    c.lineWidth = 1.2;
    c.stroke();
    c.restore();
  }
}

// Each kernel by operations a byte and operations a second, under what the machine does
// at most.
class RoofSheet extends Sheet {
  constructor(room, page, palette, report) {
    super(room, 'Roofline: a point a kernel; the table below has the same figures.');
    Object.assign(this, {page, palette, report, selected: -1});
    this.points = report.rows.map((row) => row && row.flops && row.bytes && row.best_us && {
      row, x: Math.log10(row.flops / row.bytes), y: Math.log10(row.gflops_per_s)})
      .filter(Boolean);
    const l = report.profile.limits;
    this.roofs = [['memory', l.memory_gbytes_per_s], ['L3', l.l3_gbytes_per_s], ['L2', l.l2_gbytes_per_s]]
      .filter((r) => r[1] > 0);
    this.tops = [['fma', l.gflops_per_s], ['half', l.half_gflops_per_s], ['bytes', l.byte_gflops_per_s]]
      .filter((r) => r[1] > 0);
    const xs = this.points.map((p) => p.x), ys = this.points.map((p) => p.y);
    this.box = {left: Math.floor(Math.min(-1, ...xs)), right: Math.ceil(Math.max(2, ...xs)),
      low: Math.floor(Math.min(0, ...ys)), top: Math.ceil(Math.max(1,
        ...this.tops.slice(0, 1).map((t) => Math.log10(t[1])), ...ys) + 0.1)};
    this.listen({drag() {}, twice() {}, wheel() {},
      click: (x, y) => { const p = this.near(x, y); if (p) page.selectStep(report, p.row.step); },
      hover: (x, y, e) => {
        const p = x >= 0 && this.near(x, y);
        page.tip(p && `${p.row.name}\n${formatTime(p.row.best_us)}, ${p.row.gflops_per_s.toPrecision(3)} GFLOP/s, ` +
          `${(10 ** p.x).toPrecision(2)} a byte`, e);
      }});
  }

  px(x) { return 56 + (x - this.box.left) / (this.box.right - this.box.left) * (this.wide - 76); }
  py(y) { return 12 + (this.box.top - y) / (this.box.top - this.box.low) * (this.high - 46); }

  near(x, y) {
    let best = null, least = 12;
    for (const p of this.points) {
      const away = Math.hypot(this.px(p.x) - x, this.py(p.y) - y);
      if (away < least) { least = away; best = p; }
    }
    return best;
  }

  draw(c) {
    const {left, right, low, top} = this.box;
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    c.lineWidth = 1;
    c.strokeStyle = this.palette.line;
    c.fillStyle = this.palette.faint;
    for (let x = left; x <= right; ++x) {
      c.strokeRect(this.px(x), this.py(top), 0.1, this.py(low) - this.py(top));
      c.fillText(`${+(10 ** x).toPrecision(3)}`, this.px(x) - 8, this.high - 20);
    }
    for (let y = low; y <= top; ++y) {
      c.strokeRect(this.px(left), this.py(y), this.px(right) - this.px(left), 0.1);
      c.fillText(`${+(10 ** y).toPrecision(3)}`, 14, this.py(y) + 4);
    }
    c.fillText('operations a byte', this.px(right) - 100, this.high - 6);
    c.fillText('GFLOP/s', 4, 10);
    c.save();
    c.beginPath();
    c.rect(this.px(left), this.py(top), this.px(right) - this.px(left), this.py(low) - this.py(top));
    c.clip();
    this.drawRoofs(c);
    c.restore();
    for (const p of this.points) {
      c.globalAlpha = 0.8;
      c.fillStyle = this.palette.kinds[kindOf(p.row.name)];
      c.beginPath();
      c.arc(this.px(p.x), this.py(p.y), 3 + 7 * Math.sqrt(p.row.share), 0, 7);
      c.fill();
      c.globalAlpha = 1;
      if (p.row.step !== this.selected) continue;
      c.strokeStyle = this.palette.mark;
      c.lineWidth = 2;
      c.stroke();
    }
  }

  drawRoofs(c) {
    const {left, right, low, top} = this.box;
    c.strokeStyle = this.palette.accent;
    c.fillStyle = this.palette.accent;
    for (const [k, [name, rate]] of this.roofs.entries()) {
      const y = Math.log10(rate);
      c.beginPath();
      c.moveTo(this.px(left), this.py(left + y));
      c.lineTo(this.px(right), this.py(right + y));
      c.stroke();
      const at = Math.max(left, low - y) + 0.1 + 0.3 * k;
      c.fillText(name, this.px(at) + 4, this.py(at + y) - 6);
    }
    for (const [name, rate] of this.tops) {
      const y = Math.log10(rate);
      if (y > top) continue;
      c.beginPath();
      c.moveTo(this.px(left), this.py(y));
      c.lineTo(this.px(right), this.py(y));
      c.stroke();
      c.fillText(name, this.px(right) - 40, this.py(y) - 4);
    }
  }
}
