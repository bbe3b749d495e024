// What the player is made of: its buttons, panels, menu and help, each under its name in `parts`.

const SPEEDS = [0.5, 1, 2, 4];

Object.assign(Player.prototype, {
  button(name, key, action, content) {
    const title = say(key);
    const button = el('button', { type: 'button', class: `ep-button ep-${name}`, title, 'aria-label': title, 'data-action': name, onclick: action });
    button.append(content || icon(name));
    return button;
  },

  toggle(name, action) {
    return el('button', { type: 'button', class: 'ep-button ep-toggle', 'aria-pressed': 'false', 'data-action': name, title: say(`tool.${name}_title`), text: say(`tool.${name}`), onclick: action });
  },

  build() {
    const p = this.parts = {};
    const go = action => () => { this.stop(); action(); this.follow = this.cursor.atEnd; this.show(); };
    p.title = el('h2', { class: 'ep-title' });
    p.outcome = el('span', { class: 'ep-outcome' });
    p.facts = el('span', { class: 'ep-muted' });
    p.live = el('span', { class: 'ep-live', text: say('heading.live') });
    p.all = this.toggle('all', () => { this.view.all = !this.view.all; this.show(); this.revealPhase(); });
    p.fit = this.toggle('fit', () => { this.view.fit = !this.view.fit; this.tree.resetZoom(); this.show(); this.revealPhase(); });
    p.lecture = this.toggle('lecture', () => { const on = document.documentElement.dataset.lecture === 'on'; document.documentElement.dataset.lecture = on ? 'off' : 'on'; });
    p.theme = this.toggle('theme', () => this.switchTheme());
    p.export = el('details', { class: 'ep-menu' }, el('summary', { class: 'ep-button', title: say('tool.export_title'), text: say('tool.export') }), this.exportMenu());
    p.header = el('header', { class: 'ep-header' },
      el('div', { class: 'ep-heading' }, this.button('previous', 'transport.previous_round', go(() => this.cursor.jump(-1))), p.title,
        this.button('next', 'transport.next_round', go(() => this.cursor.jump(1))), p.outcome, p.facts, p.live),
      el('div', { class: 'ep-tools' }, p.lecture, p.theme, p.export, this.button('question', 'tool.help', () => this.help(), document.createTextNode('?'))));
    p.tree = el('div', { class: 'ep-plot' });
    p.treePanel = el('div', { class: 'ep-tree', role: 'img' }, p.tree);
    p.empty = el('div', { class: 'ep-empty' }, el('p', { text: say('empty.tree') }), el('p', { class: 'ep-muted', text: say('empty.hint') }));
    p.legend = el('div', { class: 'ep-legend' });
    p.outline = el('div', { class: 'ep-outline-box' });
    p.zoom = el('div', { class: 'ep-zoom' }, p.all, p.fit,
      this.button('plus', 'tool.zoom_in', () => this.zoom(1.25)), this.button('minus', 'tool.zoom_out', () => this.zoom(0.8)),
      this.button('reset', 'tool.reset_zoom', () => { this.tree.resetZoom(); this.show(); }));
    p.strip = el('div', { class: 'ep-strip', 'aria-hidden': 'true' });
    p.scrubber = el('input', { type: 'range', min: 0, max: 0, step: 1, value: 0, class: 'ep-scrubber', 'aria-label': say('transport.rounds') });
    p.playhead = el('div', { class: 'ep-playhead' });
    p.play = this.button('play', 'transport.play', () => this.togglePlay());
    p.speed = el('select', { class: 'ep-speed', 'aria-label': say('transport.speed'), title: say('transport.speed') }, ...SPEEDS.map(s => el('option', { value: s, text: `${s}×` })));
    p.speed.value = '1';
    p.latest = el('button', { type: 'button', class: 'ep-button ep-latest', 'data-action': 'latest', onclick: () => { this.stop(); this.follow = true; this.toEnd(); this.show(); } });
    p.phases = el('div', { class: 'ep-phases', role: 'group' });
    p.transport = el('div', { class: 'ep-transport' },
      el('div', { class: 'ep-buttons' },
        this.button('first', 'transport.first', go(() => this.cursor.goto(0, 'first'))), this.button('back', 'transport.back', go(() => this.cursor.step(-1))), p.play,
        this.button('forward', 'transport.forward', go(() => this.cursor.step(1))), this.button('last', 'transport.last', go(() => this.toEnd())), p.speed),
      p.phases,
      el('div', { class: 'ep-timeline', title: say('transport.rounds') }, p.strip, p.playhead, p.scrubber), p.latest);
    p.narration = el('p', { class: 'ep-narration', 'aria-live': 'polite' });
    p.mask = el('div', { class: 'ep-plot ep-mask' });
    p.maskSize = el('span', { class: 'ep-muted' });
    p.values = el('div', { class: 'ep-plot ep-values' });
    p.inspector = el('div', { class: 'ep-inspector' });
    p.maskSoon = el('p', { class: 'ep-hint ep-soon', text: say('empty.mask_soon') });
    p.maskEmpty = el('p', { class: 'ep-hint', text: say('empty.mask') });
    p.valuesEmpty = el('p', { class: 'ep-hint', text: say('empty.values') });
    const panel = (name, head, ...body) => el('section', { class: `ep-panel ep-panel-${name}` }, head, ...body);
    p.lower = el('div', { class: 'ep-lower' },
      panel('mask', el('h3', {}, say('panel.mask') + ' ', p.maskSize), p.mask, p.maskSoon, p.maskEmpty),
      panel('values', el('h3', { text: say('panel.values') }), p.values, p.valuesEmpty),
      panel('inspector', null, p.inspector));
    p.tooltip = el('div', { class: 'ep-tooltip', role: 'tooltip', hidden: true });
    p.help = this.helpDialog();
    this.root.classList.add('eagle-player');
    this.root.replaceChildren(p.header, el('section', { class: 'ep-panel ep-panel-tree' }, el('div', { class: 'ep-bar' }, p.legend, p.zoom), p.treePanel, p.empty, p.outline), p.transport, p.narration, p.lower, p.tooltip, p.help);
  },

  exportMenu() {
    const menu = el('div', { class: 'ep-menu-list' });
    for (const figure of ['tree', 'mask', 'values']) {
      for (const format of ['svg', 'png']) {
        menu.append(el('button', { type: 'button', 'data-export': `${figure}-${format}`, text: say('tool.export_item', { figure: say(`panel.${figure}_short`), format: format.toUpperCase() }),
          onclick: () => { this.parts.export.open = false; this.save(figure, format); } }));
      }
    }
    return menu;
  },

  helpDialog() {
    const list = el('dl');
    for (const key of ['space', 'arrows', 'shift_arrows', 'home_end', 'tree', 'escape', 'question']) list.append(el('dt', {}, el('kbd', { text: say(`key.${key}`) })), el('dd', { text: say(`help.${key}`) }));
    const dialog = el('dialog', { class: 'ep-help' }, el('h3', { text: say('help.title') }), list);
    dialog.append(this.button('close', 'tool.close', () => dialog.close()));
    dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
    return dialog;
  },

  help() { if (this.parts.help.open) this.parts.help.close(); else this.parts.help.showModal(); },
});
