// Going back in the last answer: its text up to the round that is shown becomes a text field, in place; what is in it
// when one goes on is what the run goes on from. Beside it, the futures of the answer that were left.

Object.assign(Chat.prototype, {
  buildTools() {
    const button = (kind, action, key) => el('button', { type: 'button', class: `ec-tool ec-${kind}`, onclick: action, text: key ? say(key) : '' });
    this.back = button('back', () => this.edit());
    this.back.title = say('back.title');
    this.place = el('span', { class: 'ec-place' });
    const step = (by, key) => el('button', { type: 'button', class: 'ec-tool ec-turn', 'data-by': by, title: say(key), 'aria-label': say(key), onclick: () => this.leaf(by) }, icon(by < 0 ? 'previous' : 'next'));
    this.left = step(-1, 'back.earlier');
    this.right = step(1, 'back.later');
    this.leaves = el('span', { class: 'ec-leaves', role: 'group', 'aria-label': say('back.alternatives') }, this.left, this.place, this.right);
    this.tools = el('div', { class: 'ec-tools', hidden: true }, this.leaves, this.back);
    this.field = el('textarea', { class: 'ec-field', 'aria-label': say('back.field'), spellcheck: 'false' });
    this.field.addEventListener('keydown', event => this.fieldKey(event));
    this.field.addEventListener('input', () => this.fitField());
    this.editor = el('div', { class: 'ec-editor' }, this.field, el('p', { class: 'ec-muted', text: say('back.hint') }),
      el('div', { class: 'ec-tools' }, button('go', () => this.goOn(), 'back.go'), button('cancel', () => this.leave(), 'back.cancel')));
  },

  lastTurn() { return this.turns[this.turns.length - 1]; },
  lastAnswer() { return this.log.querySelector(`[data-run="${CSS.escape(this.lastTurn().run)}"]`); },

  // Only a run made here can be gone back in, and not while it is being written.
  showTools() {
    const turn = this.lastTurn(), shown = this.shown;
    const here = Boolean(turn && shown && turn.name === null && shown.run === turn.run && !shown.live);
    const place = this.futures.indexOf(turn && turn.run), atEnd = this.atEnd();
    this.back.hidden = !here || !this.text(turn, shown.round);
    if (here) this.back.textContent = say('back.back', { round: shown.round + 1 });
    this.leaves.hidden = place < 0 || Boolean(shown && shown.live);
    this.place.textContent = say('back.place', { place: place + 1, count: this.futures.length });
    this.left.disabled = place <= 0;
    this.right.disabled = place >= this.futures.length - 1;
    this.tools.hidden = this.back.hidden && this.leaves.hidden || this.editor.isConnected;
    if (atEnd) this.log.scrollTop = this.log.scrollHeight;
  },

  leaf(by) { this.emit('future', { run: this.futures[this.futures.indexOf(this.lastTurn().run) + by] }); },

  // The answer up to and with a round, end tokens left out; null while one of its rounds is still on its way.
  text(turn, round) {
    const rounds = (this.pieces[turn.run] || []).slice(0, round + 1);
    if (rounds.length <= round || rounds.includes(undefined)) return null;
    return (turn.begun || '') + rounds.flat().map(([text]) => isEnd(text) ? '' : text).join('');
  },

  edit() {
    const { run, round } = this.shown, unsent = this.unsent;
    this.editing = { run, round, text: this.text(this.lastTurn(), round) };
    this.lastAnswer().hidden = true;
    this.tools.before(this.editor);
    this.field.value = unsent && unsent.run === run && unsent.round === round ? unsent.value : this.editing.text;
    this.showTools();
    this.fitField();
    this.field.focus();
    this.field.setSelectionRange(this.field.value.length, this.field.value.length);
    this.log.scrollTop = this.log.scrollHeight;
  },

  fitField() {
    this.field.style.height = 'auto';
    this.field.style.height = `${this.field.scrollHeight + 2}px`;
  },

  leave() {
    this.unsent = null;
    this.editor.remove();
    this.lastAnswer().hidden = false;
    this.showTools();
    this.back.focus();
  },

  // An unchanged text keeps its very tokens, which `null` says. Where going on is refused, the text comes again.
  goOn() {
    const { run, round, text } = this.editing;
    this.unsent = { run, round, value: this.field.value };
    this.editor.remove();
    this.lastAnswer().hidden = false;
    this.showTools();
    this.emit('go_back', { run, round, text: this.field.value === text ? null : this.field.value });
  },

  fieldKey(event) {
    if (event.key === 'Escape') this.leave();
    else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.goOn();
    else return;
    event.preventDefault();
    event.stopPropagation();
  },
});
