// Picks a static tree from a round's drafted pool. Where nodes stand comes from Python; here a click adds a node with its
// ancestors or takes it away with its descendants, and the tree is reported as text. Token text only via textContent.

const PICK_ROW = 22, PICK_CELL = 7.9, PICK_MARK = 22, PICK_GAP = 40, PICK_PAD = 10, PICK_HEAD = 22;

// A tree is a set of places ("0,1"): closed, since every change keeps or removes whole paths.
function toggled(tree, place) {
  if (tree.has(place)) return new Set([...tree].filter(at => at !== place && !at.startsWith(`${place},`)));
  const ranks = place.split(',');
  return new Set([...tree, ...ranks.map((_, i) => ranks.slice(0, i + 1).join(','))]);
}

class Picker {
  constructor(root, emit) {
    this.root = root;
    this.emit = emit;
    this.pool = null;
    this.tree = new Set();
    const go = step => () => document.dispatchEvent(new CustomEvent('eagle:goto', { detail: { run: this.pool.run, round: this.pool.round + step, phase: 'last' } }));
    const arrow = (name, step) => el('button', { type: 'button', class: `pk-${name}`, title: say(`own.${name}`), 'aria-label': say(`own.${name}`), onclick: go(step) }, icon(name));
    this.previous = arrow('previous', -1);
    this.next = arrow('next', 1);
    this.title = el('b', { class: 'pk-title' });
    const key = name => el('span', { class: 'pk-key' }, el('i', { class: 'pk-mark', 'data-look': name }), el('span', { text: say(`own.legend.${name}`) }));
    this.head = el('div', { class: 'pk-head' }, this.previous, this.title, this.next, ...['picked', 'accepted', 'missed', 'open'].map(key));
    this.lines = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    this.lines.setAttribute('aria-hidden', 'true');
    this.nodes = el('div', { role: 'group', 'aria-label': say('own.pool') });
    this.frame = el('div', { class: 'pk-frame' }, el('div', { class: 'pk-field' }, this.lines, this.nodes));
    root.replaceChildren(this.head, this.frame);
    root.hidden = true;
    this.nodes.addEventListener('click', event => { const at = event.target.closest('[data-node]'); if (at) this.pick(Number(at.dataset.node)); });
    this.nodes.addEventListener('keydown', event => this.key(event));
    document.addEventListener('eagle:shown', ({ detail }) => { this.shown = detail; this.follow(); });
    // The box of paths tells Gradio of key presses only, not of what is pasted or deleted.
    document.addEventListener('input', ({ target }) => { if (root.isConnected && target.closest('#own-text')) this.emit('typed', { text: target.value }); });
    onLook(() => this.draw());
  }

  // The player is in another tab: where it is at another round, and this tab is seen, that round's pool is asked for.
  follow() {
    const { shown, pool } = this;
    if (!shown || !pool || !this.root.isConnected || !this.root.offsetParent) return;
    if (shown.run !== pool.run || shown.round !== pool.round) this.emit('moved', { run: shown.run, round: shown.round });
  }

  receive(message) {
    if (message.serial < (this.serial ?? 0)) return;
    this.serial = message.serial;
    if (message.place) {
      this.root.hidden = !message.place.length;
      this.pool = message.place.length ? message : null;
      if (this.pool) this.build();
    }
    if (message.picked) this.tree = new Set(message.picked);
    this.draw();
    if (message.place) setTimeout(() => this.follow(), 300);  // by then a tab that has just been opened is seen
  }

  build() {
    const p = this.pool;
    this.title.textContent = say('own.round', { round: p.round + 1, rounds: p.rounds });
    this.previous.disabled = p.round === 0;
    this.next.disabled = p.round === p.rounds - 1;
    const chosen = new Set(p.chosen);
    const root = el('span', { class: 'pk-root' }, el('i', { class: 'pk-mark', 'data-look': 'root' }), el('span', { translate: 'no', text: p.root }));
    this.buttons = p.place.map((place, node) => {
      const told = { path: `[${place.replaceAll(',', ', ')}]`, label: p.full[node], confidence: number(p.confidence[node]), value: number(p.value[node]) };
      const text = say(chosen.has(node) ? 'own.node_chosen' : 'own.node', told);
      return el('button', { type: 'button', role: 'checkbox', class: 'pk-node', tabindex: node ? '-1' : '0', 'data-node': node, 'aria-label': text, title: text },
        el('i', { class: 'pk-mark' }), el('span', { translate: 'no', text: p.label[node] }));
    });
    this.levels = p.wide.slice(1).map((_, level) => el('span', { class: 'pk-level', text: say('own.level', { level: level + 1 }) }));
    this.nodes.replaceChildren(root, ...this.levels, ...this.buttons);
    this.chosen = chosen;
  }

  pick(node) {
    this.tree = toggled(this.tree, this.pool.place[node]);
    this.draw();
    this.emit('picked', { paths: [...this.tree].map(place => `[${place}]`).join(', ') });
  }

  // Places, states and lines, at the size of the look in use.
  draw() {
    const p = this.pool;
    if (!p) return;
    const scale = document.documentElement.dataset.lecture === 'on' ? CONFIG.lecture_scale : 1;
    const left = [];
    let x = PICK_PAD;
    for (const cells of p.wide) { left.push(x); x += PICK_MARK + cells * PICK_CELL + PICK_GAP; }
    const put = (part, level, row) => { part.style.left = `${left[level] * scale}px`; part.style.top = `${(PICK_HEAD + row * PICK_ROW) * scale}px`; };
    put(this.nodes.firstChild, 0, 0);
    this.levels.forEach((part, level) => put(part, level + 1, -1));
    const looks = p.place.map((place, node) => this.chosen.has(node) ? (this.tree.has(place) ? 'accepted' : 'missed') : this.tree.has(place) ? 'picked' : 'open');
    this.buttons.forEach((button, node) => {
      put(button, p.depth[node], p.row[node]);
      button.dataset.look = button.firstChild.dataset.look = looks[node];
      button.setAttribute('aria-checked', this.tree.has(p.place[node]) ? 'true' : 'false');
      button.firstChild.style.setProperty('--size', `${Math.round((7 + 7 * Math.sqrt(p.value[node])) * scale)}px`);
    });
    const width = (x - PICK_GAP + PICK_PAD) * scale, height = (PICK_HEAD + p.height * PICK_ROW + PICK_PAD) * scale;
    this.lines.parentElement.style.width = `${width}px`;
    this.lines.parentElement.style.height = `${height}px`;
    this.lines.setAttribute('width', width);
    this.lines.setAttribute('height', height);
    this.lines.replaceChildren(...p.blocks.flatMap(block => this.block(block, looks, left, scale)));
  }

  // From a node to the block of its children, and the bar that holds the block together. Lines turn down one after the
  // other, the lowest parent's first, so that none crosses another.
  block([parent, first, last], looks, left, scale) {
    const p = this.pool, level = parent < 0 ? 0 : p.depth[parent];
    const middle = row => (PICK_HEAD + (row + 0.5) * PICK_ROW) * scale;
    const beside = p.blocks.filter(([other]) => (other < 0 ? 0 : p.depth[other]) === level);
    const turn = (beside.length - 1 - beside.findIndex(([other]) => other === parent)) / Math.max(1, beside.length - 1);
    const from = (left[level] + PICK_MARK + PICK_CELL * (parent < 0 ? p.wide[0] : p.cells[parent]) + 3) * scale;
    const bend = (left[level + 1] - PICK_GAP + 6 + turn * (PICK_GAP - 20)) * scale, to = (left[level + 1] - 5) * scale;
    const y0 = middle(parent < 0 ? 0 : p.row[parent]), y1 = middle(first), corner = Math.min(5 * scale, Math.abs(y1 - y0) / 2);
    const inside = p.place.map((_, node) => node).filter(node => p.parent[node] === parent);
    const seen = ['accepted', 'picked', 'missed'].find(look => inside.some(node => looks[node] === look)) || 'open';
    const down = corner ? `H${bend - corner}Q${bend} ${y0} ${bend} ${y0 + corner}V${y1 - corner}Q${bend} ${y1} ${bend + corner} ${y1}` : '';
    return [line(`M${from} ${y0}${down}H${to}`, seen), line(`M${to} ${y1 - 8 * scale}V${middle(last) + 8 * scale}`, seen)];
  }

  key(event) {
    const at = event.target.closest('[data-node]'), p = this.pool;
    if (!at || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const node = Number(at.dataset.node);
    const column = p.place.map((_, other) => other).filter(other => p.depth[other] === p.depth[node]).sort((a, b) => p.row[a] - p.row[b]);
    const place = column.indexOf(node);
    const to = { ArrowDown: column[place + 1], ArrowUp: column[place - 1], Home: column[0], End: column[column.length - 1],
      ArrowLeft: p.parent[node] < 0 ? undefined : p.parent[node], ArrowRight: p.parent.indexOf(node) };
    if (!(event.key in to)) return;
    event.preventDefault(); event.stopPropagation();
    const next = this.buttons[to[event.key]];
    if (next) { at.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  }
}

function line(d, look) {
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', d);
  path.setAttribute('class', `pk-line pk-${look}`);
  return path;
}

function mountPicker(root, emit) {
  if (!root.eaglePicker) root.eaglePicker = new Picker(root, emit);
  return root.eaglePicker;
}
