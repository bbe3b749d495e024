// Applies a phase to the figures Python made: fills places, texts and styles in, and answers what lies under a point.
// What a state looks like comes from CONFIG; nothing is decided here.

const PLOT_CONFIG = {
  displayModeBar: false, showSendToCloud: false, plotlyServerURL: '', typesetMath: false, responsive: false,
  doubleClick: false, scrollZoom: false, displaylogo: false,
};
const ROOT = -1, BONUS = -2;

function shade(name, look) { return name === 'none' ? 'rgba(0,0,0,0)' : CONFIG.palettes[look][name]; }

// Colours inside a figure are the light palette's: the same places in the palette in use.
const PALETTE_NAMES = Object.fromEntries(Object.entries(CONFIG.palettes.light).map(([name, value]) => [value, name]));
function recoloured(value, look) {
  if (typeof value === 'string') return PALETTE_NAMES[value] ? CONFIG.palettes[look][PALETTE_NAMES[value]] : value;
  if (Array.isArray(value)) return value.map(item => recoloured(item, look));
  if (value && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, recoloured(item, look)]));
  }
  return value;
}

// Lecture mode: every size that belongs to a font grows. The tree scales as a whole and needs none of this.
function enlarged(value, factor, font = false) {
  if (Array.isArray(value)) return value.map(item => enlarged(item, factor));
  if (!value || typeof value !== 'object' || factor === 1) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key,
    font && key === 'size' ? item * factor : enlarged(item, factor, key.toLowerCase().endsWith('font'))]));
}

// A figure beside the tree: its parts in the palette and type size in use.
function dressed(figure, view, div) {
  const factor = view.lecture ? CONFIG.lecture_scale : 1;
  const base = enlarged(recoloured(figure, view.look), factor);
  const { l, r, t, b } = base.layout.margin;
  base.layout = { ...base.layout, template: enlarged(CONFIG.templates[view.look], factor), hovermode: false, width: div.clientWidth, height: div.clientHeight,
    margin: { l: l * factor, r: r * factor, t: t * factor, b: b * factor } };
  return base;
}

function edgeSlot(state, value) {
  const slot = CONFIG.edge_states[state];
  if (slot !== 'quiet' && slot !== 'new') return slot;
  return slot + CONFIG.edge_steps.filter(step => value >= step).length;
}

function stateOf(point, phase) {
  return point === ROOT ? 'o' : point === BONUS ? (phase.bonus ? 'b' : '-') : phase.nodes[point];
}

// The node and its ancestors down from the root, the root included.
function pathTo(round, node) {
  if (node === null || node === undefined) return [];
  let at = node === BONUS ? (round.path.length ? round.path[round.path.length - 1] : ROOT) : node;
  const path = node === BONUS ? [BONUS] : [];
  while (at !== ROOT && at !== undefined) { path.push(at); at = round.nodes.parent[at]; }
  return [...path, ROOT];
}

class TreeFigure {
  constructor(div, panel) { this.div = div; this.panel = panel; this.zoom = null; this.resets = 0; this.bound = false; }

  scene(round, view) { return view.all && round.all ? round.all : round.tree; }

  // Pixels per unit and how much each gap between levels is widened to use the panel.
  measure(scene, view) {
    const room = { width: this.panel.clientWidth, height: this.panel.clientHeight };
    let scale = view.lecture ? CONFIG.lecture_scale : 1;
    if (view.fit) scale = Math.min(scale, room.height / scene.height, room.width / scene.width);
    const extra = Math.max(-12, Math.min(90 / scale, (room.width / scale - scene.width) / Math.max(1, scene.levels)));
    const width = Math.max(scene.width + extra * scene.levels, room.width / scale);
    const height = Math.max(scene.height, room.height / scale);
    const edge = Math.max(0, 12 - scene.x[0] * scale) / scale;  // the root's marker keeps its size when all shrinks
    const above = (height - scene.height) / 2;
    return { scale, dot: Math.max(scale, 0.55), labelled: scale > 0.45, extra, width, height, range: { x: [-edge, width - edge], y: [height - above, -above] } };
  }

  draw(round, phase, view) {
    const scene = this.scene(round, view), look = view.look, m = this.measure(scene, view);
    if (!this.panel.clientWidth) return;
    const at = new Map(scene.points.map((point, i) => [point, i]));
    const states = scene.points.map(point => stateOf(point, phase));
    const styles = states.map(state => CONFIG.nodes[state]);
    const x = scene.x.map((value, i) => value + m.extra * scene.level[i]);
    const lit = pathTo(round, view.selected).filter(point => at.has(point));
    const lines = {};
    for (const [child, left, lineX, lineY] of scene.lines) {
      const steps = lineX.length - 2;  // after the straight part; a line of two points has none
      const state = states[at.get(child)];
      const slots = [edgeSlot(state, child >= 0 ? round.nodes.value[child] : 0)];
      if (lit.includes(child) && state !== '-') slots.push('lit');
      for (const slot of slots) {
        if (!slot) continue;
        const line = lines[slot] || (lines[slot] = { x: [], y: [] });
        lineX.forEach((value, k) => { line.x.push(value + m.extra * (left + (k === 0 ? 0 : steps ? (k - 1) / steps : 1))); line.y.push(lineY[k]); });
        line.x.push(null); line.y.push(null);
      }
    }
    const notes = scene.notes[phase.note];
    const named = m.labelled ? scene.points.map((point, i) => i).filter(i => scene.label[i]) : [];
    const noteStyle = `font-size:${CONFIG.note_px * m.scale}px;font-weight:400;fill-opacity:0.68`;
    const chips = !m.labelled ? [] : scene.chips.filter(([, , , , , children]) => children.some(child => phase.nodes[child] !== '-'));
    const fill = {
      halo: () => ({
        x: lit.slice(0, 1).map(point => x[at.get(point)]), y: lit.slice(0, 1).map(point => scene.y[at.get(point)]),
        marker: { symbol: 'circle-open', color: shade('ink', look), line: { width: 2 * m.scale },
          size: lit.slice(0, 1).map(point => scene.size[at.get(point)] * m.scale + 9) },
      }),
      chips: () => ({
        x: chips.map(([, chipX, , level]) => chipX + m.extra * level), y: chips.map(chip => chip[2]),
        text: chips.map(chip => chip[4]),
        textfont: { family: CONFIG.mono, size: CONFIG.note_px * m.scale, color: shade('faint', look) },
      }),
      nodes: () => ({
        x, y: scene.y,
        marker: {
          size: scene.size.map(size => size * m.dot), symbol: styles.map(style => style.symbol), opacity: styles.map(style => style.opacity),
          color: styles.map(style => shade(style.fill, look)),
          line: { color: styles.map(style => shade(style.line, look)), width: styles.map(style => style.width * m.scale) },
        },
      }),
      // A text that was empty once loses its element and is not drawn again: hidden labels are transparent instead.
      labels: () => ({
        x: named.map(i => x[i] + CONFIG.label_gap), y: named.map(i => scene.y[i]),
        text: named.map(i => notes[i] && states[i] !== '-' ? `${scene.label[i]} <span style="${noteStyle}">${notes[i].replace('<', '&lt;')}</span>` : scene.label[i]),
        textfont: {
          family: CONFIG.mono, size: CONFIG.label_px * m.scale, color: named.map(i => shade(styles[i].text, look)),
          weight: named.map(i => CONFIG.bold.includes(states[i]) ? 700 : 400),
        },
      }),
    };
    const data = round.tree.figure.data.map(base => {
      const trace = recoloured(base, look);
      if (base.meta.startsWith('edge:')) {
        const line = lines[base.meta.slice(5)] || { x: [], y: [] };
        return { ...trace, ...line, line: { ...trace.line, width: trace.line.width * m.dot } };
      }
      return { ...trace, ...fill[base.meta]() };
    });
    const range = this.zoom || m.range;
    const layout = {
      ...round.tree.figure.layout, template: CONFIG.templates[look], hovermode: false,
      width: Math.floor(m.width * m.scale), height: Math.floor(m.height * m.scale),
      dragmode: matchMedia('(pointer: coarse)').matches ? false : 'pan', uirevision: `tree-${this.resets}`,
      xaxis: { ...round.tree.figure.layout.xaxis, range: [...range.x] },
      yaxis: { ...round.tree.figure.layout.yaxis, range: [...range.y] },
    };
    this.drawn = { scene, m, x, states, at, range, width: layout.width, height: layout.height, chips, round };
    this.div.style.width = `${layout.width}px`;  // at once, so that scrolling to a place can follow
    this.div.style.height = `${layout.height}px`;
    Plotly.react(this.div, data, layout, PLOT_CONFIG);
    this.bind();
  }

  bind() {
    if (this.bound) return;
    this.bound = true;
    this.div.on('plotly_relayout', change => {
      if ('xaxis.range[0]' in change || 'xaxis.range' in change) {
        const { xaxis, yaxis } = this.div.layout;
        this.drawn.range = this.zoom = { x: [...xaxis.range], y: [...yaxis.range] };
      }
    });
  }

  zoomBy(factor, px, py) {
    if (!this.drawn) return;
    const { range, width, height } = this.drawn;
    const about = ([low, high], part) => { const c = low + (high - low) * part; return [c + (low - c) / factor, c + (high - c) / factor]; };
    this.zoom = { x: about(range.x, px / width), y: about(range.y, 1 - py / height) };
  }

  resetZoom() { this.zoom = null; this.resets += 1; }

  toPixels(unitX, unitY) {
    const { range, width, height } = this.drawn;
    return [(unitX - range.x[0]) / (range.x[1] - range.x[0]) * width, (unitY - range.y[1]) / (range.y[0] - range.y[1]) * height];
  }

  // What lies under a pixel of the figure: {node}, {chip: parent} or null.
  hit(px, py) {
    if (!this.drawn) return null;
    const { scene, m, x, states, chips } = this.drawn, s = m.scale;
    let best = null, nearest = Infinity;
    scene.points.forEach((point, i) => {
      if (states[i] === '-') return;
      const [nx, ny] = this.toPixels(x[i], scene.y[i]);
      const labelled = scene.label[i] !== '';
      const right = labelled ? (scene.end[i] - scene.x[i]) * s : 4;
      const tall = labelled ? 11 * s : 5, left = labelled ? 13 * s : 5;
      if (px < nx - left || px > nx + right || Math.abs(py - ny) > tall) return;
      const distance = Math.abs(py - ny);
      if (distance < nearest) { nearest = distance; best = { node: point }; }
    });
    for (const [parent, chipX, chipY, level] of chips) {
      const [cx, cy] = this.toPixels(chipX + m.extra * level, chipY);
      if (px > cx - 4 && px < cx + 28 * s && Math.abs(py - cy) < 11 * s) return { chip: parent };
    }
    return best;
  }

  // Scrolls the panel so that the phase's own nodes are in it.
  reveal(phase, smooth) {
    if (!this.drawn || this.zoom) return;
    const { scene, at, x, m } = this.drawn;
    const spots = phase.focus.filter(point => at.has(point)).map(point => [x[at.get(point)] * m.scale, this.toPixels(0, scene.y[at.get(point)])[1], (scene.end[at.get(point)] - scene.x[at.get(point)]) * m.scale]);
    if (phase.bonus && at.has(BONUS)) { const i = at.get(BONUS); spots.push([x[i] * m.scale, this.toPixels(0, scene.y[i])[1], (scene.end[i] - scene.x[i]) * m.scale]); }
    if (!spots.length) return;
    const top = Math.min(...spots.map(spot => spot[1])), bottom = Math.max(...spots.map(spot => spot[1]));
    const right = Math.max(...spots.map(spot => spot[0] + spot[2]));
    const p = this.panel, room = p.clientHeight, pad = 30;
    const seen = top - pad >= p.scrollTop && bottom + pad <= p.scrollTop + room && right <= p.scrollLeft + p.clientWidth;
    if (seen) return;
    p.scrollTo({ top: Math.max(0, bottom - top > room - 2 * pad ? top - pad : (top + bottom - room) / 2), left: Math.max(0, right + pad - p.clientWidth), behavior: smooth ? 'smooth' : 'auto' });
  }
}

class MaskFigure {
  constructor(div) { this.div = div; }

  draw(round, phase, view) {
    if (!round.mask || !this.div.clientWidth) return;
    const parents = round.mask.parents, slot = view.selected >= 0 ? round.nodes.slot[view.selected] : view.selected === ROOT ? 0 : null;
    const seen = [];
    parents.forEach((parent, row) => seen.push([...(parent >= 0 ? seen[parent] : []), row]));
    const z = seen.map((columns, row) => {
      const line = new Array(parents.length).fill(0);
      const state = phase.rows[row], code = CONFIG.cells.indexOf(row === slot && state !== '-' ? 'l' : state);
      for (const column of columns) line[column] = state === 'm' && row !== slot && column === row ? CONFIG.cells.indexOf('s') : code;
      return line;
    });
    const base = dressed(round.mask.figure, view, this.div);
    const trace = { ...base.data[0], z, colorscale: CONFIG.colorscales[view.look] };
    const layout = { ...base.layout };
    layout.shapes = base.layout.shapes.map(shape => ({ ...shape, opacity: phase.rows[0] === '-' ? 0.35 : 1 }));
    if (slot !== null && slot !== undefined) {
      layout.shapes = [...layout.shapes, { type: 'rect', x0: layout.xaxis.range[0] + 0.2, x1: parents.length - 0.5, y0: slot - 0.5, y1: slot + 0.5, line: { color: shade('ink', view.look), width: 1 } }];
    }
    this.round = round;
    Plotly.react(this.div, [trace], layout, PLOT_CONFIG);
  }

  // The row and column under a pixel of the div.
  hit(px, py) {
    const full = this.div._fullLayout;
    if (!full || !this.round || !this.round.mask) return null;
    const row = Math.round(full.yaxis.p2d(py - full.yaxis._offset)), column = Math.round(full.xaxis.p2d(px - full.xaxis._offset));
    const rows = this.round.mask.parents.length;
    return row >= 0 && row < rows && column < rows ? { row, column } : null;
  }
}

class ValuesFigure {
  constructor(div) { this.div = div; }

  draw(round, phase, view) {
    if (!round.values || !this.div.clientWidth) return;
    // Bars beyond the first stretch are drawn only when all nodes are asked for: they cost more than all the rest.
    const order = view.all ? round.nodes.order : round.nodes.order.slice(0, round.values.shown), look = view.look;
    const base = dressed(round.values.figure, view, this.div);
    const heights = order.map(node => Math.max(round.values.floor, round.nodes.value[node]));
    const states = order.map(node => phase.nodes[node]);
    const flags = states.map((state, place) => CONFIG.flagged.includes(state) ? place : -1).filter(place => place >= 0);
    const data = base.data.map(trace => {
      if (trace.meta === 'bars') {
        return { ...trace, x: order.map((node, place) => place + 1), y: heights, marker: { ...trace.marker,
          color: states.map((state, place) => shade(order[place] === view.selected ? 'ink' : CONFIG.bars[state].fill, look)),
          line: { ...trace.marker.line, color: states.map(state => shade(CONFIG.bars[state].line, look)) } } };
      }
      if (trace.meta === 'flags') return { ...trace, x: flags.map(place => place + 1), y: flags.map(place => heights[place] * 1.35) };
      const seen = trace.meta === 'predicted' ? phase.cut : phase.outcome;
      return { ...trace, opacity: seen ? 1 : 0, textfont: { ...(trace.textfont || {}), color: seen ? shade('ink', look) : 'rgba(0,0,0,0)' } };
    });
    const layout = { ...base.layout };
    const cut = item => item.name === 'cut' ? { ...item, opacity: phase.cut ? 1 : 0 } : item;
    layout.shapes = base.layout.shapes.map(cut);
    layout.annotations = base.layout.annotations.map(cut);
    if (view.all) {
      layout.xaxis = { ...layout.xaxis, tickvals: undefined, nticks: 6, range: [0.3 - 0.02 * order.length, order.length + 0.7] };
      layout.yaxis = { ...layout.yaxis, tickvals: undefined, ticktext: undefined, dtick: 1, exponentformat: 'power', range: [Math.log10(heights[heights.length - 1]) - 0.2, layout.yaxis.range[1]] };
      layout.annotations = layout.annotations.filter(item => item.name !== 'more');
    }
    layout.uirevision = `values-${round.index}-${view.all}`;
    this.round = round;
    Plotly.react(this.div, data, layout, PLOT_CONFIG);
  }

  // The drafted node whose bar's column holds a pixel of the div.
  hit(px, py) {
    const full = this.div._fullLayout;
    if (!full || !this.round || !this.round.values) return null;
    const plotY = py - full.yaxis._offset;
    if (plotY < 0 || plotY > full.yaxis._length) return null;
    const place = Math.round(full.xaxis.p2d(px - full.xaxis._offset)) - 1;
    return place >= 0 && place < this.round.nodes.order.length ? { node: this.round.nodes.order[place] } : null;
  }
}
