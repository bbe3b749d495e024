// The parts of the player that are plain HTML: inspector, list of the tree, legend, tooltip, narration.
// Token text goes in by textContent only.

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'text') node.textContent = value;
    else if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
}

// The strings of the document's language; the exported file has one language only.
function strings() {
  return CONFIG.strings[document.documentElement.lang.split('-')[0]] ?? Object.values(CONFIG.strings)[0];
}

// A string of the table with its places filled in.
function say(key, values = {}) {
  return strings()[key].replace(/\{(\w+)\}/g, (whole, name) => name in values ? String(values[name]) : whole);
}

const ICONS = {
  first: 'M6 5v14M19 5l-10 7 10 7z', back: 'M17 5l-10 7 10 7z', play: 'M7 4.5l12 7.5-12 7.5z', pause: 'M8 5v14M16 5v14',
  forward: 'M7 5l10 7-10 7z', last: 'M18 5v14M5 5l10 7-10 7z', previous: 'M15 5l-7 7 7 7', next: 'M9 5l7 7-7 7',
  plus: 'M12 5v14M5 12h14', minus: 'M5 12h14', reset: 'M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5', close: 'M6 6l12 12M18 6L6 18',
};
const FILLED = new Set(['first', 'back', 'play', 'forward', 'last']);

function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', ICONS[name]);
  path.setAttribute('class', FILLED.has(name) ? 'ep-filled' : 'ep-stroked');
  svg.append(path);
  return svg;
}

// A small picture of a state's marker.
function swatch(style) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '-8 -8 16 16');
  svg.setAttribute('aria-hidden', 'true');
  const shapes = { square: 'M-5-5h10v10h-10z', diamond: 'M0-7L7 0L0 7L-7 0z', round: 'M5 0A5 5 0 1 1-5 0A5 5 0 1 1 5 0z' };
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  const name = style.symbol.split('-')[0];
  path.setAttribute('d', (shapes[name] || shapes.round) + (style.symbol === 'circle-x' ? 'M-3.5-3.5L3.5 3.5M-3.5 3.5L3.5-3.5' : ''));
  const css = colour => colour === 'none' ? 'none' : `var(--${colour.replace('_', '-')})`;
  path.style.fill = style.symbol.endsWith('-open') ? 'none' : css(style.fill);
  path.style.stroke = css(style.line);
  path.style.strokeWidth = Math.max(1.2, style.width);
  svg.append(path);
  return svg;
}

const LEGEND = { n: 'new', x: 'fed', d: 'drafted', k: 'kept', p: 'pruned', v: 'visited', a: 'accepted', c: 'cut', r: 'rejected' };

function legend(round, phase, all) {
  const items = [['o', 'root']];
  for (const [state, name] of Object.entries(LEGEND)) if (phase.nodes.includes(state) && (state !== 'p' || all)) items.push([state, name]);
  if (phase.bonus) items.push(['b', 'bonus']);
  const spans = items.map(([state, name]) => el('span', { class: 'ep-key' }, swatch(CONFIG.nodes[state]), el('span', { text: say(`legend.${name}`) })));
  if (!all && round.tree.chips.length) spans.push(el('span', { class: 'ep-key' }, el('span', { class: 'ep-more', text: '+9' }), el('span', { text: say(phase.cut ? 'legend.chip_pruned' : 'legend.chip') })));
  if (phase.nodes) spans.push(el('span', { class: 'ep-key ep-key-note', text: say(`legend.note.${phase.note}`) }));
  return spans;
}

function number(value) {
  if (value === null || value === undefined) return '';
  if (value >= 0.0995 || value === 0) return value.toFixed(2);
  if (value < 0.0001) return value.toExponential(1);
  return value < 0.00995 ? String(Number(value.toFixed(4))) : value.toFixed(3);
}

function tokenOf(round, point) { return point === ROOT ? round.root : point === BONUS ? round.bonus : round.nodes.token[point]; }
function labelOf(round, token) { return (round.names[token] || [`#${token}`])[0]; }
function fullOf(round, token) { const name = round.names[token] || [`#${token}`]; return name[1] || name[0]; }
function pointLabel(round, point) { return labelOf(round, tokenOf(round, point)); }

function chip(text, kind = 'token') { return el('bdi', { class: `ep-token ep-${kind}`, text }); }

function narration(parts) {
  return parts.map(([kind, text]) => kind === 'text' ? document.createTextNode(text)
    : kind === 'number' ? el('b', { class: 'ep-number', text }) : chip(text, kind));
}

// Rows of the inspector for a point of the tree.
function inspectorRows(round, point) {
  const token = tokenOf(round, point), n = round.nodes, rows = [];
  const add = (key, value) => rows.push([say(`inspector.${key}`), value]);
  const full = fullOf(round, token);
  if (full !== labelOf(round, token)) add('text', full);
  add('token', token);
  if (point < 0) {
    add('position', point === ROOT ? round.prefix : round.prefix + 1 + round.path.length);
    if (point === ROOT && round.mask) add('slot', say('inspector.slot_of', { slot: 0, kept: round.mask.parents.length - 1 }));
    return rows;
  }
  add('parent', pointLabel(round, n.parent[point]));
  add('depth', n.depth[point]);
  add('position', round.prefix + n.depth[point]);
  add('confidence', number(n.confidence[point]));
  add('value', number(n.value[point]));
  add('rank', say('inspector.rank_of', { rank: n.rank[point], drafted: round.drafted }));
  add('expanded', say(n.expanded[point] ? 'inspector.yes' : 'inspector.no'));
  const kept = round.mask.parents.length - 1;
  add('slot', n.slot[point] ? say('inspector.slot_of', { slot: n.slot[point], kept }) : say('inspector.not_kept'));
  add('target', n.target[point] === null ? say('inspector.target_missing') : number(n.target[point]));
  add('fate', say(`fate.${n.fate[point]}`));
  return rows;
}

function inspector(round, point, choose) {
  if (point === null || point === undefined) return [el('p', { class: 'ep-hint', text: say('empty.inspector') })];
  const label = pointLabel(round, point), n = round.nodes;
  const kind = point === ROOT ? 'root' : point === BONUS ? 'bonus' : 'token';
  const list = el('dl', { class: 'ep-facts' });
  for (const [name, value] of inspectorRows(round, point)) list.append(el('dt', { text: name }), el('dd', { text: value }));
  const parts = [list];
  if (point >= 0) {
    const values = { rank: n.rank[point], kept: round.mask.parents.length - 1, drafted: round.drafted, threshold: number(n.threshold) };
    parts.push(el('p', { class: 'ep-why', text: say(n.why[point], values) }));
  }
  if (point >= 0 && n.slot[point]) {
    const path = pathTo(round, point).reverse();
    const row = el('p', { class: 'ep-sees' }, el('span', { class: 'ep-label', text: say('inspector.sees') }),
      el('span', { class: 'ep-prefix', text: say('inspector.sees_prefix', { prefix: round.prefix }) }));
    for (const ancestor of path) row.append(el('button', { type: 'button', class: 'ep-link', onclick: () => choose(ancestor) }, chip(pointLabel(round, ancestor), ancestor === ROOT ? 'root' : 'token')));
    parts.push(row);
  }
  const check = point === BONUS ? null : round.checks[point];
  if (point !== BONUS) parts.push(el('h4', {}, ...inserted(say('inspector.top'), label, kind)));
  if (check) {
    const table = el('div', { class: 'ep-top' });
    for (const [token, probability] of check.top) {
      const bar = el('span', { class: 'ep-share-bar' });
      bar.style.setProperty('--part', Math.max(0.004, Math.min(1, probability)));
      table.append(el('span', { class: token === check.drawn ? 'ep-name ep-drawn' : 'ep-name' }, chip(labelOf(round, token), token === check.drawn ? (check.child === null ? 'bonus' : 'agreed') : 'token')), bar, el('span', { class: 'ep-share', text: number(probability) }));
    }
    parts.push(table);
    const leaf = !n.parent.some((parent, i) => parent === point && n.slot[i]);
    const key = check.child !== null ? 'drawn_child' : leaf ? 'drawn_leaf' : 'drawn_bonus';
    parts.push(el('p', { class: 'ep-why' }, say('inspector.drawn'), ...inserted(say(`inspector.${key}`, {}), labelOf(round, check.drawn))));
  } else if (point !== BONUS) {
    parts.push(el('p', { class: 'ep-hint', text: say('inspector.top_missing') }));
  }
  return [el('h3', {}, ...inserted(say(`inspector.${point === ROOT ? 'root' : point === BONUS ? 'bonus' : 'node'}`), label, kind)), ...parts];
}

// "… {label} …" with the token set in type.
function inserted(template, label, kind = 'token') {
  const [before, after = ''] = template.split('{label}');
  return [before, chip(label, kind), after].filter(part => part !== '');
}

// The kept tree as a nested list for screen readers and the keyboard; arrows move, focus selects.
function outline(round, choose) {
  const children = {}, n = round.nodes;
  n.parent.forEach((parent, i) => { if (n.slot[i]) (children[parent] = children[parent] || []).push(i); });
  const item = point => {
    const text = point === ROOT ? say('panel.outline_root', { label: pointLabel(round, point), root: say('tree.root') })
      : say('panel.outline_node', { label: pointLabel(round, point), value: number(n.value[point]), fate: say(`fate.${n.fate[point]}`) });
    const node = el('li', { role: 'treeitem', tabindex: point === ROOT ? '0' : '-1', 'data-node': point, 'aria-label': text }, el('span', { text }));
    node.addEventListener('focus', event => { event.stopPropagation(); choose(point, true); });
    if (children[point]) { node.setAttribute('aria-expanded', 'true'); node.append(el('ul', { role: 'group' }, ...children[point].map(item))); }
    return node;
  };
  const tree = el('ul', { role: 'tree', class: 'ep-outline', 'aria-label': say('panel.outline') }, item(ROOT));
  tree.addEventListener('keydown', event => {
    const at = event.target.closest('[role=treeitem]');
    if (!at || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const all = [...tree.querySelectorAll('[role=treeitem]')], place = all.indexOf(at);
    const to = { ArrowDown: all[place + 1], ArrowUp: all[place - 1], Home: all[0], End: all[all.length - 1],
      ArrowRight: at.querySelector('[role=treeitem]'), ArrowLeft: at.parentElement.closest('[role=treeitem]') };
    if (!(event.key in to)) return;
    event.preventDefault(); event.stopPropagation();
    const next = to[event.key];
    if (next) { at.tabIndex = -1; next.tabIndex = 0; next.focus({ preventScroll: true }); }
  });
  return tree;
}
