// The chat: turns as they were sent, answers from the rounds the player receives, tinted by where each token came from.
// A round is one stop for the keyboard; a click on it opens that round in the player. Text only ever via textContent.

function isEnd(text) { return /^<\|[^|>]*\|>$|^<\/s>$|^<end_of_turn>$/.test(text); }

class Chat {
  constructor(root, emit) {
    this.root = root;
    this.emit = emit;
    this.turns = [];
    this.pieces = {};
    this.futures = [];
    this.shown = null;
    this.log = el('div', { class: 'ec-log', role: 'log', 'aria-label': say('chat.log') });
    const key = origin => el('span', { class: 'ec-token', 'data-origin': origin, text: say(`chat.origin.${origin}`) });
    this.begun = el('span', { class: 'ec-begun', text: say('chat.origin.begun') });
    this.legend = el('p', { class: 'ec-legend', title: say('chat.legend_title') }, key('draft'), key('bonus'), key('prefill'), this.begun);
    this.buildTools();
    this.root.replaceChildren(this.log, this.legend);
    this.root.classList.add('eagle-chat');
    this.log.addEventListener('click', event => { const at = event.target.closest('[data-round]'); if (at) this.open(at); });
    this.log.addEventListener('keydown', event => this.key(event));
    document.addEventListener('eagle:rounds', event => this.rounds(event.detail));
    document.addEventListener('eagle:shown', event => this.mark(event.detail));
    this.draw();
  }

  receive(message) {
    if (message.serial < (this.serial ?? 0)) return;
    this.serial = message.serial;
    this.turns = message.turns;
    this.futures = message.futures;
    const known = new Set(this.turns.map(turn => turn.run));
    for (const run of Object.keys(this.pieces)) if (!known.has(run)) delete this.pieces[run];
    this.draw();
  }

  atEnd() { return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight <= 60; }

  // Rounds may come in any order and more than once.
  rounds({ run, rounds }) {
    const pieces = this.pieces[run] ||= [];
    const atEnd = this.atEnd();
    for (const round of rounds) pieces[round.index] = round.pieces;
    const answer = this.log.querySelector(`[data-run="${CSS.escape(run)}"]`);
    if (!answer) return;
    for (const { index } of rounds) this.drawRound(answer, run, index);
    if (atEnd) this.log.scrollTop = this.log.scrollHeight;
  }

  draw() {
    this.legend.hidden = !this.turns.length;
    this.begun.hidden = !this.turns.some(turn => turn.begun);
    if (!this.turns.length) {
      this.log.replaceChildren(el('div', { class: 'ec-empty' }, el('p', { text: say('chat.empty') }), el('p', { class: 'ec-muted', text: say('chat.empty_hint') })));
      return;
    }
    this.log.replaceChildren(...this.turns.flatMap(turn => {
      const parts = [];
      if (turn.name) parts.push(el('p', { class: 'ec-note', text: turn.name }));
      if (turn.system) parts.push(el('p', { class: 'ec-system', text: `${say('chat.system')} ${turn.system}` }));
      parts.push(el('p', { class: 'ec-user', translate: 'no', text: turn.user }));
      parts.push(el('div', { class: 'ec-answer', translate: 'no', 'data-run': turn.run, role: 'group', 'aria-label': say('chat.answer') }, el('span', { class: 'ec-begun', text: turn.begun || '' })));
      return parts;
    }), this.tools);
    for (const turn of this.turns) {
      const answer = this.log.querySelector(`[data-run="${CSS.escape(turn.run)}"]`);
      (this.pieces[turn.run] || []).forEach((_, index) => this.drawRound(answer, turn.run, index));
    }
    this.mark(this.shown);
    this.log.scrollTop = this.log.scrollHeight;
  }

  drawRound(answer, run, index) {
    const pieces = this.pieces[run][index];
    if (!pieces.length) return;
    const span = el('span', { class: 'ec-round', 'data-round': index, role: 'button', tabindex: -1,
      'aria-label': say('chat.round', { round: index + 1, text: pieces.map(piece => piece[0]).join('') }),
      title: say('chat.round_title', { round: index + 1 }) });
    for (const [text, origin] of pieces) {
      const ends = isEnd(text);
      // A token without anything to see, such as half a character, still has a place to click.
      const style = /^[^\P{C}\n\t]*$/u.test(text) ? 'padding: 0 3px' : null;
      span.append(el('span', { class: ends ? 'ec-token ec-end' : 'ec-token', style, 'data-origin': origin, text: ends ? say('chat.end') : text, title: ends ? text : '' }));
    }
    const old = answer.querySelector(`[data-round="${index}"]`);
    if (old) { old.replaceWith(span); this.mark(this.shown); return; }
    const next = [...answer.querySelectorAll('[data-round]')].find(other => Number(other.dataset.round) > index);
    if (next) next.before(span); else answer.append(span);
    if (!this.log.querySelector('[data-round][tabindex="0"]')) span.tabIndex = 0;
    if (this.shown && this.shown.run === run && this.shown.round === index) this.mark(this.shown);
  }

  open(span) {
    const run = span.closest('[data-run]').dataset.run, round = Number(span.dataset.round);
    if (this.shown && this.shown.run === run) document.dispatchEvent(new CustomEvent('eagle:goto', { detail: { run, round, phase: 'last' } }));
    else this.fetch(run, round, 5);
  }

  // The answer is a message to the player, which Gradio drops if a round of the live run follows quickly: ask again.
  fetch(run, round, tries) {
    clearTimeout(this.fetching);
    if (!tries || (this.shown && this.shown.run === run)) return;
    this.emit('open_run', { run, round });
    this.fetching = setTimeout(() => this.fetch(run, round, tries - 1), 1500);
  }

  mark(shown) {
    this.shown = shown;
    this.showTools();
    if (!shown) return;
    for (const span of this.log.querySelectorAll('[data-round]')) {
      const here = span.closest('[data-run]').dataset.run === shown.run && Number(span.dataset.round) === shown.round;
      if (here === (span.getAttribute('aria-current') === 'true')) continue;
      if (here) {
        this.log.querySelectorAll('[data-round][tabindex="0"]').forEach(other => { other.tabIndex = -1; });
        span.setAttribute('aria-current', 'true');
        span.tabIndex = 0;
      } else span.removeAttribute('aria-current');
    }
  }

  key(event) {
    const span = event.target.closest('[data-round]');
    if (!span) return;
    const all = [...this.log.querySelectorAll('[data-round]')], at = all.indexOf(span);
    const to = { ArrowRight: all[at + 1], ArrowLeft: all[at - 1], Home: all[0], End: all[all.length - 1] }[event.key];
    if (event.key === 'Enter' || event.key === ' ') this.open(span);
    else if (to) { to.focus(); this.open(to); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function mountChat(root, emit) {
  if (!root.eagleChat) root.eagleChat = new Chat(root, emit);
  return root.eagleChat;
}
