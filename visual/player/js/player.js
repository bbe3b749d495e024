// The player: holds where the reader is, shows it, and passes on what happens. What it is made of stands in build.js.
// mount(root, {emit}) returns {receive(message)}; emit(name, detail) reports node_click, round_shown and need.

const BEAT_MS = 1500;
const DRAW_MS = 120;
const DRAW_SHARE = 9;  // pauses are this many times as long as drawing took,
const MOST_MS = 1500;  // but no longer than this

class Player {
  constructor(root, emit) {
    this.root = root;
    this.emit = emit;
    this.store = new Store();
    this.cursor = new Cursor(this.store);
    this.view = { selected: null, all: false, fit: false, lecture: false, look: 'light' };
    this.playing = null;
    this.speed = 1;
    this.follow = true;
    this.shownRound = null;
    this.seen = new Set();
    this.build();
    this.tree = new TreeFigure(this.parts.tree, this.parts.treePanel);
    this.mask = new MaskFigure(this.parts.mask);
    this.values = new ValuesFigure(this.parts.values);
    this.bindFigures();
    this.bindPage();
    this.readLook();
    this.show();
  }

  readLook() {
    this.view.look = pageLook();
    this.view.lecture = document.documentElement.dataset.lecture === 'on';
    this.root.dataset.look = this.view.look;
    this.root.dataset.lecture = this.view.lecture ? 'on' : 'off';
    this.parts.theme.setAttribute('aria-pressed', this.view.look === 'dark');
    this.parts.lecture.setAttribute('aria-pressed', this.view.lecture);
  }

  switchTheme() {
    const dark = this.view.look !== 'dark';
    document.body.classList.toggle('dark', dark);
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  }

  revealPhase() { if (this.phase) this.tree.reveal(this.phase, false); }

  get round() { return this.store.rounds[this.cursor.round] || null; }
  get phase() { return this.round ? this.round.phases[this.cursor.phase] : null; }

  receive(message) {
    // Two handlers' answers can arrive in the other order: an older run must not replace a newer one.
    if (message.op === 'reset') {
      if (message.serial < (this.resetAt ?? 0)) return;
      this.resetAt = message.serial;
    }
    const elsewhere = this.store.elsewhere(message);
    const fresh = !elsewhere && this.store.receive(message);
    if (message.rounds) document.dispatchEvent(new CustomEvent('eagle:rounds', { detail: { run: message.run, rounds: message.rounds } }));
    if (elsewhere) return;
    if (fresh) { this.stop(); this.cursor.goto(0, 'last'); this.view.selected = null; this.follow = true; this.shownRound = null; }
    if (message.show) {
      this.stop();
      this.cursor.goto(message.show.round, message.show.phase ?? 'last');
      this.follow = this.cursor.atEnd;
      if (message.show.play) this.play();
    } else if (this.follow && this.store.count && !this.playing) {
      this.toEnd();
    }
    this.ask();
    if (fresh || message.show) this.pause = 0;  // another run or place was asked for: no waiting
    this.showSoon();
  }

  // Rounds may come faster than a page can draw: at most some eight pictures a second, and fewer where drawing is slow,
  // since the engine may need the same processor. A reader's own steps are drawn at once.
  showSoon() {
    if (this.soon && this.pause) return;
    clearTimeout(this.soon);
    const wait = Math.max(0, (this.pause ?? 0) - (performance.now() - (this.drawnAt ?? -Infinity)));
    this.soon = setTimeout(() => {
      const start = performance.now();
      this.soon = null;
      this.show();
      // The frame after the next comes when this one has been laid out and painted.
      requestAnimationFrame(() => requestAnimationFrame(() => {
        this.drawnAt = performance.now();
        this.pause = this.store.live ? Math.min(MOST_MS, Math.max(DRAW_MS, DRAW_SHARE * (this.drawnAt - start))) : DRAW_MS;
      }));
    }, wait);
  }

  ask() {
    const gap = this.store.missing(performance.now());
    if (gap) this.emit('need', gap);
    clearTimeout(this.asking);
    if (this.store.rounds.length < this.store.count || this.store.rounds.includes(undefined)) this.asking = setTimeout(() => this.ask(), 4100);
  }

  toEnd() { this.cursor.goto(this.store.count - 1, 'last'); }

  play() {
    if (this.playing) return;
    if (this.cursor.atEnd) this.cursor.goto(this.store.live ? this.cursor.round : 0, 'first');
    const beat = () => {
      if (!this.cursor.step(1)) {
        if (!this.store.live) { this.stop(); this.follow = true; this.show(); return; }
      }
      this.follow = this.cursor.atEnd;
      this.show(true);
      this.playing = setTimeout(beat, this.beat());
    };
    this.playing = setTimeout(beat, this.beat());
  }

  beat() { return BEAT_MS / this.speed * (this.phase && this.phase.outcome ? 1.5 : 1); }
  stop() { clearTimeout(this.playing); this.playing = null; }
  togglePlay() { if (this.playing) this.stop(); else this.play(); this.show(); }

  choose(point, quiet = false) {
    this.view.selected = point === undefined ? null : point;
    this.show();
    if (point !== null && point !== undefined && this.round) {
      this.tree.reveal({ focus: [point] }, true);
      const token = tokenOf(this.round, point);
      if (!quiet || this.reported !== `${this.cursor.round}:${point}`) this.emit('node_click', { run: this.store.run, round: this.cursor.round, node: point, token });
      this.reported = `${this.cursor.round}:${point}`;
    }
  }

  zoom(factor) {
    const p = this.parts.treePanel;
    this.tree.zoomBy(factor, p.scrollLeft + p.clientWidth / 2, p.scrollTop + p.clientHeight / 2);
    this.show();
  }

  async save(figure, format) {
    const div = this.parts[figure], look = this.view.look;
    if (this.round) this[figure].draw(this.round, this.phase, this.view);  // it may be below the fold, not drawn yet
    if (!div.data) return;
    const size = { width: div.layout.width, height: div.layout.height };
    const layout = { ...div.layout, paper_bgcolor: CONFIG.palettes[look].panel, plot_bgcolor: CONFIG.palettes[look].panel };
    const url = await Plotly.toImage({ data: div.data, layout, config: PLOT_CONFIG }, { format, ...size, scale: format === 'png' ? 2 : 1 });
    const link = el('a', { href: url, download: `round-${this.cursor.round + 1}-${figure}.${format}` });
    document.body.append(link);
    link.click();
    link.remove();
  }

  // Draws whatever the state says. Cheap parts every time; the figures when they can be seen.
  show(smooth = false) {
    const { parts: p, store, cursor } = this, { round, phase } = this;
    p.all.setAttribute('aria-pressed', this.view.all);
    p.fit.setAttribute('aria-pressed', this.view.fit);
    p.play.replaceChildren(icon(this.playing ? 'pause' : 'play'));
    p.play.title = say(this.playing ? 'transport.pause' : 'transport.play');
    p.play.setAttribute('aria-label', p.play.title);
    p.live.hidden = !store.live;
    this.root.dataset.empty = round ? 'no' : 'yes';
    this.showTimeline();
    if (!round) {
      p.title.textContent = store.count ? say('empty.waiting', { round: cursor.round + 1 }) : say('heading.empty');
      for (const part of [p.outcome, p.facts]) part.textContent = '';
      for (const part of [p.legend, p.phases, p.narration, p.outline]) part.replaceChildren();
      p.inspector.replaceChildren(...inspector(null, null));
      this.shownRound = null;
      return;
    }
    if (this.view.selected !== null && !(this.view.selected < round.nodes.token.length && (this.view.selected !== BONUS || round.bonus !== null))) this.view.selected = null;
    p.title.textContent = say(store.live ? 'heading.so_far' : 'heading.round', { round: cursor.round + 1, rounds: store.count });
    p.outcome.textContent = round.heading.outcome;
    p.outcome.dataset.none = round.accepted === 0;
    p.facts.textContent = [round.heading.facts, round.heading.finish].filter(Boolean).join(' · ');
    if (this.view.all && round.more && !round.all && !round.asked) {
      round.asked = true;
      this.emit('need', { run: store.run, from: cursor.round, to: cursor.round, all: true });
    }
    p.legend.replaceChildren(...legend(round, phase, this.view.all && round.all));
    if (!round.recorded && round.drafted) p.legend.append(el('span', { class: 'ep-key', text: say('empty.unrecorded', { drafted: round.drafted }) }));
    p.narration.replaceChildren(...narration(phase.say));
    const newRound = this.shownRound !== round;
    if (newRound) {
      if (this.shownRound) this.view.selected = null;
      p.phases.replaceChildren(...round.phases.map((step, i) => el('button', { type: 'button', class: 'ep-phase', 'data-phase': step.name, text: step.short, title: step.label, 'aria-label': step.label,
        onclick: () => { this.stop(); this.cursor.phase = i; this.follow = this.cursor.atEnd; this.show(true); } })));
      p.outline.replaceChildren(outline(round, (point, quiet) => this.choose(point, quiet)));
    }
    [...p.phases.children].forEach((button, i) => {
      button.setAttribute('aria-current', i === cursor.phase ? 'step' : 'false');
      button.dataset.done = i < cursor.phase;
    });
    p.maskSize.textContent = round.mask ? say('panel.mask_size', { rows: round.mask.parents.length }) : '';
    for (const name of ['mask', 'values']) { p[name].hidden = !round[name]; p[`${name}Empty`].hidden = Boolean(round[name]); }
    p.maskSoon.hidden = !round.mask || phase.rows[0] !== '-';
    p.treePanel.setAttribute('aria-label', `${p.title.textContent}, ${round.heading.outcome}`);
    const nothing = this.view.selected === null;
    p.inspector.replaceChildren(...inspector(round, nothing ? ROOT : this.view.selected, point => this.choose(point)), ...(nothing && round.recorded ? inspector(null, null) : []));
    this.shownRound = round;
    this.draw();
    if (newRound || smooth || this.lastPhase !== phase) this.tree.reveal(phase, smooth && !newRound);
    this.lastPhase = phase;
    if (newRound) { clearTimeout(this.reporting); this.reporting = setTimeout(() => this.emit('round_shown', { run: store.run, round: cursor.round, count: store.count }), 150); }
    document.dispatchEvent(new CustomEvent('eagle:shown', { detail: {
      run: store.run, live: store.live, round: cursor.round, phase: phase.name, drafted: round.drafted,
      kept: round.mask ? round.mask.parents.length - 1 : 0, width: round.nodes.depth.filter(depth => depth === 1).length,
    } }));
  }

  draw() {
    if (!this.round || !window.Plotly || !this.root.offsetParent) return;
    this.tree.draw(this.round, this.phase, this.view);
    for (const name of ['mask', 'values']) if (this.seen.has(this.parts[name])) this[name].draw(this.round, this.phase, this.view);
  }

  showTimeline() {
    const { parts: p, store, cursor } = this;
    const key = `${store.run}:${store.count}:${store.rounds.filter(Boolean).length}`;
    if (this.timelineKey !== key) {
      this.timelineKey = key;
      const most = Math.max(1, ...store.rounds.filter(Boolean).map(round => round.accepted + 1));
      const cells = [];
      for (let i = 0; i < store.count; i++) {
        const round = store.rounds[i];
        const cell = el('span', { class: 'ep-cell' });
        if (round) for (let k = round.accepted; k >= 0; k--) { const block = el('i', { class: k === 0 && round.bonus !== null ? 'ep-b' : 'ep-a' }); block.style.height = `${100 / Math.max(4, most)}%`; cell.append(block); }
        cells.push(cell);
      }
      p.strip.replaceChildren(...cells);
      p.scrubber.max = Math.max(0, store.count * 100 - 1);
    }
    const steps = cursor.phases().length || 1;
    const at = cursor.round + (cursor.phase + 0.5) / steps;
    p.scrubber.value = Math.floor(at * 100);
    p.playhead.hidden = !store.count;
    p.playhead.style.left = `${at / Math.max(1, store.count) * 100}%`;
    [...p.strip.children].forEach((cell, i) => cell.classList.toggle('ep-here', i === cursor.round));
    const phase = this.phase;
    p.scrubber.setAttribute('aria-valuetext', phase ? say('transport.position', { round: cursor.round + 1, phase: phase.label }) : '');
    const newer = store.count - 1 - cursor.round;
    p.latest.hidden = !(store.live && newer > 0);
    p.latest.textContent = `${say('transport.follow')} +${newer}`;
    p.latest.title = say('transport.follow_title', { count: newer });
  }
}
