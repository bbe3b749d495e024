// What the reader's hands do: keys, pointer on the figures, scrubber; and what the page does around the player.

Object.assign(Player.prototype, {
  bindPage() {
    const p = this.parts;
    p.scrubber.addEventListener('input', () => {
      this.stop();
      const at = Number(p.scrubber.value) / 100, round = Math.min(this.store.count - 1, Math.floor(at));
      this.cursor.goto(round, Math.floor((at - round) * this.cursor.phases(round).length));
      this.follow = this.cursor.atEnd;
      this.show();
    });
    p.speed.addEventListener('change', () => { this.speed = Number(p.speed.value); });
    this.onKey = event => this.key(event);
    document.addEventListener('keydown', this.onKey);
    this.onGoto = event => { if ((event.detail.run ?? this.store.run) === this.store.run) this.receive({ op: 'goto', run: this.store.run, show: event.detail }); };
    document.addEventListener('eagle:goto', this.onGoto);
    const look = onLook(() => {
      const before = `${this.view.look}${this.view.lecture}`;
      this.readLook();
      if (`${this.view.look}${this.view.lecture}` !== before) this.show();
    });
    // A figure first drawn in a hidden tab has no size: draw when it gets one, and again when that changes.
    let frame = 0;
    const resized = new ResizeObserver(() => { cancelAnimationFrame(frame); frame = requestAnimationFrame(() => { this.draw(); this.revealPhase(); }); });
    for (const part of [p.treePanel, p.mask, p.values]) resized.observe(part);
    // Figures below the fold are not drawn until they come near.
    const near = new IntersectionObserver(entries => {
      for (const entry of entries) this.seen[entry.isIntersecting ? 'add' : 'delete'](entry.target);
      if (entries.some(entry => entry.isIntersecting)) this.draw();
    }, { rootMargin: '150px' });
    for (const part of [p.mask, p.values]) near.observe(part);
    document.addEventListener('pointerdown', event => { if (!p.export.contains(event.target)) p.export.open = false; });
    const waiting = setInterval(() => {
      if (!this.root.isConnected) { this.unbind(); clearInterval(waiting); return; }
      if (window.Plotly && !this.ready) { this.ready = true; this.show(); }
    }, 100);
    this.unbind = () => {
      document.removeEventListener('keydown', this.onKey);
      document.removeEventListener('eagle:goto', this.onGoto);
      look.disconnect();
      resized.disconnect();
      near.disconnect();
      this.stop();
    };
  },

  key(event) {
    const target = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !this.root.offsetParent) return;
    if (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
    if (target.closest && target.closest('[role=slider], [role=tablist], [role=listbox], [role=menu]')) return;
    // Of several players on a page the one with the focus listens, else the first that is seen.
    const seen = [...document.querySelectorAll('.eagle-player')].filter(root => root.offsetParent);
    if ((seen.find(root => root.contains(document.activeElement)) || seen[0]) !== this.root) return;
    if (this.parts.help.open && event.key !== '?') return;
    const move = action => { this.stop(); action(); this.follow = this.cursor.atEnd; this.show(true); };
    if (event.key === ' ') {
      if (target.closest && target.closest('button, summary, a, [role=button]')) return;
      this.togglePlay();
    } else if (event.key === 'ArrowRight') move(() => event.shiftKey ? this.cursor.jump(1) : this.cursor.step(1));
    else if (event.key === 'ArrowLeft') move(() => event.shiftKey ? this.cursor.jump(-1) : this.cursor.step(-1));
    else if (event.key === 'Home') move(() => this.cursor.goto(0, 'first'));
    else if (event.key === 'End') move(() => this.toEnd());
    else if (event.key === '?') this.help();
    else if (event.key === 'Escape' && this.view.selected !== null) this.choose(null);
    else return;
    event.preventDefault();
  },

  bindFigures() {
    const p = this.parts;
    const place = (div, event) => { const box = div.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const watch = (div, find, lines) => {
      let pressed = null;
      // Plotly covers the page while a button is down, so the release is caught at the window.
      div.addEventListener('pointerdown', event => { pressed = [event.clientX, event.clientY]; }, true);
      window.addEventListener('pointerup', event => {
        if (!pressed) return;
        const still = Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) < 5;
        pressed = null;
        if (!still || !this.round) return;
        const hit = find(...place(div, event));
        if (hit && hit.node !== undefined && hit.node !== null) this.choose(hit.node);
        else if (!hit) this.choose(null);
      }, true);
      div.addEventListener('pointermove', event => {
        const hit = !event.buttons && this.round ? find(...place(div, event)) : null;
        div.classList.toggle('ep-over', Boolean(hit));
        this.tip(hit ? lines(hit) : null, event);
      });
      div.addEventListener('pointerleave', () => this.tip(null));
    };
    watch(p.tree, (x, y) => this.tree.hit(x, y), hit => 'chip' in hit ? this.chipLines(hit.chip) : this.nodeLines(hit.node));
    watch(p.values, (x, y) => this.values.hit(x, y), hit => this.nodeLines(hit.node));
    watch(p.mask, (x, y) => {
      const hit = this.mask.hit(x, y);
      return hit && { ...hit, node: hit.row === 0 ? ROOT : this.nodeOfSlot(hit.row) };
    }, hit => this.rowLines(hit));
    p.treePanel.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.tree.zoomBy(event.deltaY < 0 ? 1.15 : 1 / 1.15, ...place(p.tree, event));
      this.show();
    }, { passive: false });
    p.treePanel.addEventListener('scroll', () => this.tip(null));
    p.tree.addEventListener('dblclick', () => { this.tree.resetZoom(); this.show(); });
  },

  nodeOfSlot(slot) { return this.round.nodes.slot.indexOf(slot); },

  nodeLines(point) {
    const round = this.round, full = fullOf(round, tokenOf(round, point));
    if (point < 0) return [full, say(point === ROOT ? 'tree.root' : 'tree.bonus')];
    const n = round.nodes;
    return [full, say('hover.node', { value: number(n.value[point]), confidence: number(n.confidence[point]), rank: n.rank[point], drafted: round.drafted }), say(`fate.${n.fate[point]}`)];
  },

  chipLines(parent) {
    const round = this.round, n = round.nodes;
    const children = round.tree.chips.find(chip => chip[0] === parent)[5];
    const below = (function count(nodes) { const next = n.parent.flatMap((p, i) => nodes.has(p) ? [i] : []); return next.length ? next.length + count(new Set(next)) : 0; })(new Set(children));
    const lines = children.slice(0, 12).map(child => `${labelOf(round, n.token[child])}  ${number(n.value[child])}`);
    const more = below ? say('tree.chip_below', { count: below }) : '';
    return [say('tree.chip', { count: children.length, parent: pointLabel(round, parent) }) + more, ...lines, ...(children.length > 12 ? ['…'] : [])];
  },

  rowLines(hit) {
    const round = this.round, path = pathTo(round, hit.node).reverse();
    return [say('mask.row', { slot: hit.row, label: pointLabel(round, hit.node), seen: path.map(point => pointLabel(round, point)).join(' ') }), say('mask.row_prefix')];
  },

  tip(lines, event) {
    const tip = this.parts.tooltip;
    tip.hidden = !lines;
    if (!lines) return;
    tip.replaceChildren(...lines.map((line, i) => el('div', { class: i ? 'ep-tip-line' : 'ep-tip-head', text: line })));
    const box = tip.getBoundingClientRect();
    const left = event.clientX + 16 + box.width > innerWidth ? event.clientX - 12 - box.width : event.clientX + 16;
    const top = Math.min(event.clientY + 14, innerHeight - box.height - 8);
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  },
});

function mount(root, emit) {
  if (root.eaglePlayer) return root.eaglePlayer;
  if (!document.getElementById('eagle-player-style')) document.head.append(el('style', { id: 'eagle-player-style', text: STYLE }));
  root.eaglePlayer = new Player(root, emit);
  return root.eaglePlayer;
}
