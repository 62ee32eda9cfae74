// SPDX-License-Identifier: Apache-2.0
// The page itself: tabs, panes, search, keys.
'use strict';

class Page {
  constructor(data) {
    this.data = data;
    this.reports = data.reports.map((r, i) => new Report(r, 'AB'[i]));
    this.palette = new Palette();
    this.details = new Details(this);
    this.sheets = [];    // graphs
    this.painted = [];   // all that is drawn anew with another theme
    this.hits = {sheet: null, list: [], at: -1};
    this.main = document.getElementById('main');
    this.tipBox = document.getElementById('tip');
    this.setTheme(this.savedTheme());
    this.head();
    this.tabs();
    this.listen();
  }

  head() {
    const [a, b] = this.reports, title = document.getElementById('title');
    const name = (r) => r.name || r.path.split('/').pop();
    title.textContent = b ? `${name(a)} beside ${name(b)}` : name(a);
    document.title = `${title.textContent} · Pestle`;
    const facts = document.getElementById('facts');
    facts.textContent = this.reports.map((r) => (b ? `${r.letter}: ` : '') +
      r.facts().join(' · ')).join('   |   ');
    facts.title = this.reports.map((r) => r.path).join('\n');
  }

  // --- Theme ---

  savedTheme() {
    try { if (localStorage.pestleTheme) return localStorage.pestleTheme; } catch (e) { /* file: */ }
    return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  }

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    this.palette.read();
    for (const sheet of this.painted) sheet.paint();
    try { localStorage.pestleTheme = theme; } catch (e) { /* not kept */ }
  }

  // --- Tabs ---

  tabs() {
    const bar = document.getElementById('tabs');
    this.views = [['Graph', (m) => this.graphs(m)], ['Timeline', (m) => this.timeline(m)],
      ['Kernels', (m) => this.kernels(m)], ['Explain', (m) => this.explain(m)]];
    if (this.reports.length > 1) this.views.unshift(['Compare', (m) => compareView(this, m)]);
    this.rooms = this.views.map(([name, build], k) => {
      const tab = make('button', {type: 'button', role: 'tab', id: `tab-${k}`,
        'aria-selected': false, tabIndex: -1}, name);
      const room = make('div', {className: 'pane', role: 'tabpanel', 'aria-labelledby': `tab-${k}`,
        hidden: true});
      room.style.flexDirection = 'row';
      tab.onclick = () => this.tab(k);
      bar.append(tab);
      this.main.append(room);
      return {name, tab, room, build, isBuilt: false};
    });
    bar.addEventListener('keydown', (e) => {
      const by = {ArrowRight: 1, ArrowLeft: -1}[e.key];
      if (!by) return;
      this.tab((this.now + by + this.rooms.length) % this.rooms.length);
      this.rooms[this.now].tab.focus();
    });
    this.tab(0);
    this.details.clear(this.reports[0]);
  }

  tab(k) {
    this.now = typeof k === 'string' ? this.rooms.findIndex((r) => r.name === k) : k;
    this.rooms.forEach((r, i) => {
      r.room.hidden = i !== this.now;
      r.room.style.display = i === this.now ? 'flex' : 'none';
      r.tab.setAttribute('aria-selected', i === this.now);
      r.tab.tabIndex = i === this.now ? 0 : -1;
    });
    const room = this.rooms[this.now];
    if (!room.isBuilt) room.build(room.room);
    room.isBuilt = true;
  }

  // --- Graphs ---

  graphs(room) {
    for (const report of this.reports) {
      const pane = make('div', {className: 'pane'}), bar = make('div', {className: 'bar'});
      const space = make('div', {className: 'room'});
      room.append(pane);
      pane.append(bar, space);
      const sheet = new GraphSheet(space, this, this.palette);
      this.sheets.push(sheet);
      this.painted.push(sheet);
      this.graphBar(sheet, report, bar);
      const fused = report.graphs.length - (report.graphs.length > 1 ? 2 : 1);
      this.showGraph(sheet, report, fused);
    }
  }

  graphBar(sheet, report, bar) {
    const pass = make('select', {'aria-label': 'Which graph'});
    report.graphs.forEach((g, i) => {
      const count = (g.children.get(g.entry) || [])
        .filter((n) => !['constant', 'arg', 'return'].includes(g.op(n))).length;
      const name = g.label === 'as read' || g.label === 'launches' || g.label === 'fused'
        ? g.label : `after ${g.label}`;
      pass.append(make('option', {value: i}, `${name} (${count})`));
    });
    pass.onchange = () => this.showGraph(sheet, report, +pass.value);
    const colours = make('select', {'aria-label': 'What colours say'});
    for (const [value, text] of [['kind', 'kind of op'], ['time', 'time'], ['limit', 'distance from the limit']])
      colours.append(make('option', {value, disabled: value !== 'kind' && !report.isTimed}, text));
    colours.onchange = () => { sheet.colours = colours.value; sheet.paint(); };
    const fit = make('button', {type: 'button'}, 'Show all');
    fit.onclick = () => sheet.fit();
    sheet.where = make('span', {className: 'where'});
    sheet.pass = pass;
    const letter = this.reports.length > 1 ? make('strong', {}, report.letter) : '';
    bar.append(letter, make('label', {}, 'graph ', pass), make('label', {}, 'colour ', colours), fit, sheet.where);
  }

  // A value keeps its name through the passes: what was selected stays so.
  showGraph(sheet, report, index, scope) {
    const before = sheet.selected >= 0 ? {level: sheet.level, id: sheet.level.ids[sheet.selected]} : null;
    const graph = report.graphs[index];
    sheet.pass.value = index;
    sheet.show(graph.level(scope === undefined ? graph.entry : scope));
    const path = [];
    for (let i = sheet.level.scope; i >= 0; i = graph.parent(i)) path.unshift(graph.title(i) || graph.name(i));
    path[0] = graph.name(graph.entry);
    const same = report.passes && report.passes.filter((p) => !p[1]).length;
    sheet.where.textContent = path.length > 1 ? `${path.join(' › ')}  (Backspace: out)`
      : `${sheet.level.count} ops` + (same ? ` · ${same} other passes changed nothing` : '');
    sheet.where.title = (report.passes || []).map((p) => `${p[0]}${p[1] ? '' : ' (nothing)'}`).join(', ');
    const again = before ? this.findAgain(sheet.level, before) : -1;
    if (again >= 0) { sheet.select(again); if (sheet.wide) sheet.look(again); }
    this.search(document.getElementById('search').value);
  }

  // The op of another graph that is what one was: by the node of the model that it comes
  // from, of several the one of the same kind; else by its name, but for numbers, which
  // each pass gives anew.
  findAgain(level, before) {
    const graph = before.level.graph, place = graph.location(before.id), name = graph.name(before.id);
    const here = (test) => level.ids.findIndex((id) => test(id));
    let again = -1;
    if (place) {
      again = here((id) => level.graph.location(id) === place && level.graph.title(id) === graph.title(before.id));
      if (again < 0) again = here((id) => level.graph.location(id) === place);
      if (again < 0) again = here((id) => this.innerPlaces(level.graph, id).has(place));
    }
    return again < 0 && name && !/^\d+$/.test(name) ? here((id) => level.graph.name(id) === name) : again;
  }

  innerPlaces(graph, id) {
    return new Set((graph.children.get(id) || []).map((i) => graph.location(i)).filter(Boolean));
  }

  openOp(sheet, id) {
    const graph = sheet.level.graph;
    if (!graph.isOpen(id)) return;
    this.showGraph(sheet, sheet.level.report, sheet.level.report.graphs.indexOf(graph), id);
    sheet.canvas.focus();
  }

  leaveOp(sheet) {
    const {graph, scope, report} = sheet.level;
    if (scope === graph.entry || scope < 0) return;
    this.showGraph(sheet, report, report.graphs.indexOf(graph), graph.parent(scope));
    const i = sheet.level.place.get(scope);
    if (i !== undefined) { sheet.select(i); sheet.look(i); }
  }

  innerOf(graph, id) {
    const counts = new Map();
    for (const i of graph.children.get(id) || []) {
      const op = graph.op(i);
      if (['arg', 'return', 'constant'].includes(op)) continue;
      counts.set(op, (counts.get(op) || 0) + 1);
    }
    return [...counts].map(([op, n]) => (n > 1 ? `${n} ${op}` : op)).join(', ');
  }

  selectOp(sheet, i) {
    if (i < 0) { this.details.clear(sheet.level.report); return; }
    this.details.op(sheet, i);
    const l = sheet.level;
    this.say(`${l.label(i)}, ${l.types[i]}, reads ${l.sources[i].length}, read by ${sheet.readersOf(i).length}`);
    if (l.steps[i].length) this.markStep(l.report, l.steps[i][0]);
  }

  selectStep(report, step) {
    if (!report || step < 0) { this.details.clear(this.reports[0]); return; }
    this.details.step(report, step);
    this.markStep(report, step);
    this.say(`step ${step}, ${report.nameOf(step)}`);
  }

  // The same step in all views.
  markStep(report, step) {
    if (this.time) { this.time.selected = {report, step}; this.time.paint(); }
    for (const table of this.tables || []) if (table.report === report) table.mark(step);
    for (const sheet of this.sheets) {
      if (!sheet.level || sheet.level.report !== report) continue;
      const i = sheet.level.steps.findIndex((list) => list.includes(step));
      if (i < 0 || i === sheet.selected) continue;
      sheet.selected = i;
      if (sheet.wide) sheet.look(i);
    }
  }

  // --- Timeline, kernels, explain ---

  timeline(room) {
    const pane = make('div', {className: 'pane'}), bar = make('div', {className: 'bar'});
    const space = make('div', {className: 'room'});
    room.append(pane);
    pane.append(bar, space);
    const timed = this.reports.every((r) => r.isTimed);
    bar.append(make('span', {}, timed
      ? 'The fastest of the watched runs: its steps, what lies in the arena from the step that writes it to the last that reads it, and how much of it is live.'
      : 'Not run: steps in their order, and what lies in the arena.'));
    for (const [kind, name] of KINDS) {
      const dot = make('span', {className: 'dot'});
      dot.style.background = `var(--k-${kind})`;
      bar.append(make('span', {}, dot, name));
    }
    this.time = new TimeSheet(space, this, this.palette, this.reports);
    this.painted.push(this.time);
  }

  kernels(room) {
    this.tables = this.reports.map((report) => {
      const pane = make('div', {className: 'pane'});
      room.append(pane);
      return new KernelTable(pane, this, report);
    });
  }

  explain(room) {
    for (const report of this.reports) {
      const text = make('div', {className: 'text', tabIndex: 0});
      if (this.reports.length > 1) text.append(make('h2', {}, report.letter));
      for (let i = 0; i < report.explain.length; i += 2) {
        text.append(make('h3', {}, report.explain[i]),
          this.details.text(report.explain[i + 1].replace(/^[a-z]+\n/, ''), 'wrap'));
      }
      if (!report.explain.length) text.append('A plan has no explanations any more: they are made with it.');
      room.append(text);
    }
  }

  // --- Search ---

  search(text) {
    const status = document.getElementById('found'), words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const sheet = this.sheets[0];
    this.hits = {sheet, list: [], at: -1};
    for (const s of this.sheets) {
      if (!s.level) continue;
      const l = s.level;
      l.search = l.search || l.ids.map((_, i) => l.text(i).toLowerCase());
      const list = [];
      if (words.length) l.search.forEach((t, i) => { if (words.every((w) => t.includes(w))) list.push(i); });
      s.found = words.length ? new Set(list) : null;
      s.paint();
      if (s === sheet) this.hits.list = list;
    }
    status.textContent = words.length ? `${this.hits.list.length} found` : '';
  }

  next(by) {
    const {sheet, list} = this.hits;
    if (!list.length) return;
    if (this.rooms[this.now].name !== 'Graph') this.tab('Graph');
    this.hits.at = (this.hits.at + by + list.length) % list.length;
    const i = list[this.hits.at];
    if (sheet.isCoarse()) sheet.scale = 0.6;
    sheet.select(i);
    sheet.look(i);
    document.getElementById('found').textContent = `${this.hits.at + 1} of ${list.length}`;
  }

  // --- All else ---

  tip(text, e) {
    this.tipBox.hidden = !text;
    if (!text) return;
    this.tipBox.textContent = text;
    const right = e.clientX > innerWidth - 320, low = e.clientY > innerHeight - 120;
    this.tipBox.style.left = right ? 'auto' : `${e.clientX + 14}px`;
    this.tipBox.style.right = right ? `${innerWidth - e.clientX + 14}px` : 'auto';
    this.tipBox.style.top = low ? 'auto' : `${e.clientY + 14}px`;
    this.tipBox.style.bottom = low ? `${innerHeight - e.clientY + 14}px` : 'auto';
  }

  say(text) { document.getElementById('said').textContent = text; }

  listen() {
    const search = document.getElementById('search'), keys = document.getElementById('keys');
    document.getElementById('theme').onclick = () =>
      this.setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
    document.getElementById('help').onclick = () => keys.showModal();
    search.oninput = () => {
      if (!this.sheets.length) this.tab('Graph');
      this.search(search.value);
    };
    search.onkeydown = (e) => {
      if (e.key === 'Enter') this.next(e.shiftKey ? -1 : 1);
      if (e.key === 'Escape') { search.value = ''; this.search(''); search.blur(); }
    };
    document.addEventListener('keydown', (e) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
      if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === '/') { e.preventDefault(); search.focus(); search.select(); }
      if (e.key === '?') keys.showModal();
      const by = {'[': -1, ']': 1}[e.key], sheet = this.sheets[0];
      if (!by || !sheet) return;
      const i = +sheet.pass.value + by, report = sheet.level.report;
      if (report.graphs[i]) this.showGraph(sheet, report, i);
    });
  }
}

const pestleView = new Page(JSON.parse(document.getElementById('data').textContent));
