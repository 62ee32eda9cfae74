// SPDX-License-Identifier: Apache-2.0
// Where the ops of a level stand: in ranks from top to bottom, each below all that it
// reads, with edges that bend around what lies between; and the same in coarser and
// coarser cells, which are drawn where single ops would be too small to see.
'use strict';

const RANK = 76, HEIGHT = 40, GAP = 22, BEND = 14, SWEEPS = 6;
// Edges across more ranks than this are straight where there are very many bends.
const MOST_BENDS = 60000, LONG_SPAN = 40;

function ranksOf(level) {
  const ranks = new Int32Array(level.count);
  for (let i = 0; i < level.count; ++i) {
    for (const from of level.sources[i]) ranks[i] = Math.max(ranks[i], ranks[from] + 1);
  }
  // What is made of weights alone, and an input, stands right above its first reader.
  const early = new Uint8Array(level.count), first = new Int32Array(level.count).fill(-1);
  for (let i = 0; i < level.count; ++i) {
    early[i] = level.sources[i].some((from) => early[from] || level.graph.op(level.ids[from]) === 'arg');
  }
  for (let i = level.count; i-- > 0;) {
    if (!early[i] && first[i] > 0) ranks[i] = Math.max(ranks[i], first[i] - 1);
    for (const from of level.sources[i]) {
      if (first[from] < 0 || ranks[i] < first[from]) first[from] = ranks[i];
    }
  }
  return ranks;
}

// Points are ops and, behind them, bends of long edges: ranks, links to the rank above.
function pointsOf(level, ranks) {
  let bends = 0;
  for (let i = 0; i < level.count; ++i) {
    for (const from of level.sources[i]) bends += ranks[i] - ranks[from] - 1;
  }
  const most = bends > MOST_BENDS ? LONG_SPAN : Infinity;
  const rank = Array.from(ranks), up = Array.from(ranks, () => []), straight = [];
  for (let i = 0; i < level.count; ++i) {
    for (const from of level.sources[i]) {
      if (ranks[i] - ranks[from] > most) {
        straight.push([from, i]);
        continue;
      }
      let last = from;
      for (let r = ranks[from] + 1; r < ranks[i]; ++r) {
        rank.push(r);
        up.push([last]);
        last = rank.length - 1;
      }
      up[i].push(last);
    }
  }
  return {rank, up, straight};
}

function downOf(up) {
  const down = up.map(() => []);
  up.forEach((list, i) => { for (const from of list) down[from].push(i); });
  return down;
}

// The order within each rank: by the middle of the neighbours, down and up again.
function orderRows(rank, up, down) {
  const rows = [];
  rank.forEach((r, i) => (rows[r] = rows[r] || []).push(i));
  for (let r = 0; r < rows.length; ++r) rows[r] = rows[r] || [];
  const place = new Float64Array(rank.length), key = new Float64Array(rank.length);
  const number = (row) => row.forEach((i, k) => { place[i] = k - row.length / 2; });
  rows.forEach(number);
  const sort = (row, near) => {
    for (const i of row) {
      let sum = 0;
      for (const j of near[i]) sum += place[j];
      key[i] = near[i].length ? sum / near[i].length : place[i];
    }
    row.sort((a, b) => key[a] - key[b] || a - b);
    number(row);
  };
  for (let sweep = 0; sweep < SWEEPS; ++sweep) {
    if (sweep % 2) for (let r = rows.length; r-- > 0;) sort(rows[r], down);
    else for (const row of rows) sort(row, up);
  }
  return rows;
}

// Each point as near to the middle of its neighbours as the order and gaps allow.
function placeRows(rows, up, down, width) {
  const x = new Float64Array(up.length);
  for (const row of rows) {
    let at = 0;
    for (const i of row) { x[i] = at + width[i] / 2; at += width[i] + GAP; }
    for (const i of row) x[i] -= at / 2;
  }
  const wish = new Float64Array(up.length);
  const settle = (row, near) => {
    for (const i of row) {
      let sum = 0;
      for (const j of near[i]) sum += x[j];
      wish[i] = near[i].length ? sum / near[i].length : x[i];
    }
    const apart = (a, b) => (width[a] + width[b]) / 2 + GAP;
    const left = [], right = [];
    row.forEach((i, k) => {
      left[k] = k ? Math.max(wish[i], left[k - 1] + apart(row[k - 1], i)) : wish[i];
    });
    for (let k = row.length; k-- > 0;) {
      const i = row[k];
      right[k] = k + 1 < row.length
        ? Math.min(wish[i], right[k + 1] - apart(i, row[k + 1])) : wish[i];
      x[i] = (left[k] + right[k]) / 2;
    }
  };
  for (let sweep = 0; sweep < SWEEPS; ++sweep) {
    if (sweep % 2) for (let r = rows.length; r-- > 0;) settle(rows[r], down);
    else for (const row of rows) settle(row, up);
  }
  return x;
}

class Layout {
  constructor(level) {
    const ranks = ranksOf(level);
    const {rank, up, straight} = pointsOf(level, ranks);
    const down = downOf(up);
    this.level = level;
    this.rank = rank;
    this.straight = straight;
    this.width = new Float64Array(rank.length).fill(BEND);
    for (let i = 0; i < level.count; ++i) {
      const longest = Math.max(level.label(i).length, level.types[i].length * 0.86);
      this.width[i] = Math.min(320, Math.max(84, 34 + 7.4 * longest));
    }
    this.rows = orderRows(rank, up, down);
    this.x = placeRows(this.rows, up, down, this.width);
    this.up = up;
    this.bounds = {left: -50, right: 50, top: -20, bottom: this.rows.length * RANK};
    for (let i = 0; i < level.count; ++i) {
      this.bounds.left = Math.min(this.bounds.left, this.x[i] - this.width[i] / 2);
      this.bounds.right = Math.max(this.bounds.right, this.x[i] + this.width[i] / 2);
    }
    this.cells = new Map();
  }

  y(i) { return this.rank[i] * RANK; }

  // The op at a place, or -1.
  at(x, y) {
    const row = this.rows[Math.floor(y / RANK)];
    if (!row || y - Math.floor(y / RANK) * RANK > HEIGHT) return -1;
    for (const i of row) {
      if (i < this.level.count && Math.abs(x - this.x[i]) <= this.width[i] / 2) return i;
    }
    return -1;
  }

  // Ops by cells of 2^k ranks: how many, how long, of which kind most, and from which
  // cell to which there are edges. Sorted by rows of cells.
  coarse(k) {
    if (this.cells.has(k)) return this.cells.get(k);
    const size = RANK * 2 ** k, found = new Map(), edges = new Set(), of = [];
    const level = this.level;
    const cell = (i) => {
      const column = Math.floor(this.x[i] / (size * 2)), row = Math.floor(this.y(i) / size);
      return [column, row, `${column},${row}`];
    };
    for (let i = 0; i < level.count; ++i) {
      const [column, row, key] = cell(i);
      let c = found.get(key);
      if (!c) {
        c = {column, row, count: 0, time: 0, limit: 0, kinds: {}, first: i, ops: []};
        found.set(key, c);
      }
      ++c.count;
      c.time += level.times[i];
      c.limit += level.limits[i] * level.times[i];
      c.kinds[level.kinds[i]] = (c.kinds[level.kinds[i]] || 0) + 1;
      if (c.ops.length < 4) c.ops.push(level.titles[i]);
      of[i] = key;
    }
    for (let i = 0; i < level.count; ++i) {
      for (const from of level.sources[i]) {
        if (of[from] !== of[i]) edges.add(`${of[from]}|${of[i]}`);
      }
    }
    let longest = 1e-9;
    for (const c of found.values()) {
      c.kind = Object.keys(c.kinds).reduce((a, b) => (c.kinds[a] >= c.kinds[b] ? a : b));
      longest = Math.max(longest, c.time);
    }
    const list = [...found.values()].sort((a, b) => a.row - b.row);
    const links = [...edges].map((e) => e.split('|').map((key) => found.get(key)));
    links.sort((a, b) => a[1].row - b[1].row);
    const made = {size, list, links, longest, found};
    this.cells.set(k, made);
    return made;
  }
}
