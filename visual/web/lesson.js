// The guided tour: a card beside the live page, step by step, each pointing at a real element and moving the player to
// the phase it speaks of. Steps come from Python: [{ title, text, point, phase, exercise }].

class Lesson {
  constructor(root, steps) {
    this.root = root;
    this.steps = steps;
    this.at = -1;
    this.round = 0;
    this.begin = el('button', { type: 'button', class: 'es-lesson-open', text: say('lesson.open'), title: say('lesson.open_title'), onclick: () => this.go(0) });
    this.place = el('span', { class: 'es-lesson-place' });
    this.title = el('h3', {});
    this.text = el('p', {});
    this.exercise = el('details', { hidden: true }, el('summary', { text: say('lesson.answer') }), el('p', {}));
    const button = (key, by) => el('button', { type: 'button', text: say(key), onclick: () => this.go(this.at + by) });
    this.back = button('lesson.back', -1);
    this.next = button('lesson.next', 1);
    this.end = el('button', { type: 'button', text: say('lesson.end'), onclick: () => this.close() });
    this.card = el('section', { class: 'es-lesson', role: 'dialog', tabindex: -1, 'aria-live': 'polite', hidden: true },
      this.place, this.title, this.text, this.exercise, el('div', { class: 'es-lesson-buttons' }, this.back, this.next, this.end));
    this.card.addEventListener('keydown', event => this.key(event));
    root.replaceChildren(this.begin);
    document.body.append(this.card);
    document.addEventListener('eagle:shown', event => { this.round = event.detail.round; });
  }

  go(at) {
    if (at < 0) return;
    if (at >= this.steps.length) { this.close(); return; }
    this.at = at;
    const step = this.steps[at];
    this.card.hidden = false;
    this.card.setAttribute('aria-label', step.title);
    this.place.textContent = say('lesson.place', { step: at + 1, steps: this.steps.length });
    this.title.textContent = step.title;
    this.text.textContent = step.text;
    this.exercise.hidden = !step.exercise;
    this.exercise.open = false;
    this.exercise.lastChild.textContent = step.exercise || '';
    this.back.disabled = at === 0;
    this.next.textContent = say(at === this.steps.length - 1 ? 'lesson.done' : 'lesson.next');
    const rounds = document.querySelector('#tabs [role=tab]');
    if (rounds && rounds.getAttribute('aria-selected') !== 'true') rounds.click();
    if (step.phase) document.dispatchEvent(new CustomEvent('eagle:goto', { detail: { round: this.round, phase: step.phase } }));
    this.point(step.point);
    this.card.focus();
  }

  point(selector) {
    for (const lit of document.querySelectorAll('.es-lit')) lit.classList.remove('es-lit');
    const target = selector && document.querySelector(selector);
    if (!target) return;
    target.classList.add('es-lit');
    target.scrollIntoView({ block: 'center', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
  }

  close() {
    this.at = -1;
    this.card.hidden = true;
    this.point(null);
    this.begin.focus();
  }

  // The player listens to the same keys: while the card has the focus they are the lesson's.
  key(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) this.go(this.at + by);
    else if (event.key === 'Escape') this.close();
    else { event.stopPropagation(); return; }
    event.preventDefault();
    event.stopPropagation();
  }
}

function mountLesson(root, steps) {
  if (!root.eagleLesson) root.eagleLesson = new Lesson(root, steps);
  return root.eagleLesson;
}
