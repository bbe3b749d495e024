// The guided tour: a strip under the live page, step by step, each pointing at a real element and moving the player to
// the phase it speaks of. Steps come from Python: [{ key, point, phase, top_k }]; one with top_k is the exercise.

class Lesson {
  constructor(root, steps) {
    this.root = root;
    this.steps = steps;
    this.at = -1;
    this.shown = null;
    this.exercise = new Exercise(steps.find(step => step.top_k).top_k);
    this.begin = el('button', { type: 'button', class: 'es-lesson-open', text: say('lesson.open'), title: say('lesson.open_title'), onclick: () => this.go(0) });
    this.place = el('span', { class: 'es-lesson-place' });
    this.title = el('h3', {});
    this.text = el('p', {});
    const button = (key, by) => el('button', { type: 'button', text: say(key), onclick: () => this.go(this.at + by) });
    this.back = button('lesson.back', -1);
    this.next = button('lesson.next', 1);
    this.next.classList.add('es-lesson-next');
    this.end = el('button', { type: 'button', text: say('lesson.end'), onclick: () => this.close() });
    this.card = el('section', { class: 'es-lesson', role: 'dialog', tabindex: -1, 'aria-live': 'polite', hidden: true },
      el('header', {}, this.place, this.title), el('div', { class: 'es-lesson-body' }, this.text, this.exercise.root),
      el('div', { class: 'es-lesson-buttons' }, this.back, this.next, this.end));
    this.card.addEventListener('keydown', event => this.key(event));
    root.replaceChildren(this.begin);
    document.body.append(this.card);
    // The page keeps clear of the strip, however high its text makes it.
    new ResizeObserver(() => document.documentElement.style.setProperty('--lesson', `${this.card.offsetHeight}px`)).observe(this.card);
    // What is pointed at stays in sight, also when it gets its height only once it is drawn.
    this.sight = new ResizeObserver(() => this.bring());
    document.addEventListener('eagle:shown', event => {
      this.shown = event.detail;
      if (this.coming) requestAnimationFrame(() => this.bring());  // the phase asked for may have moved what is below
      this.coming = false;
      if (this.at >= 0 && this.steps[this.at].top_k) this.exercise.see(this.shown);
    });
  }

  go(at) {
    if (at < 0) return;
    if (at >= this.steps.length) { this.close(); return; }
    this.at = at;
    this.coming = true;
    const step = this.steps[at], title = say(`lesson.${step.key}`);
    this.card.hidden = false;
    this.card.setAttribute('aria-label', title);
    this.card.style.setProperty('--done', (at + 1) / this.steps.length);
    this.place.textContent = say('lesson.place', { step: at + 1, steps: this.steps.length });
    this.title.textContent = title;
    this.text.textContent = say(`lesson.${step.key}_text`, { top_k: this.exercise.topK });
    this.exercise.root.hidden = !step.top_k;
    if (step.top_k) this.exercise.begin(this.shown);
    this.back.disabled = at === 0;
    this.next.textContent = say(at === this.steps.length - 1 ? 'lesson.done' : 'lesson.next');
    const rounds = document.querySelector('#tabs [role=tab]');
    if (rounds && rounds.getAttribute('aria-selected') !== 'true') rounds.click();
    if (this.shown) document.dispatchEvent(new CustomEvent('eagle:goto', { detail: { round: this.shown.round, phase: step.phase } }));
    this.point(step.point);
    this.card.focus({ preventScroll: true });
  }

  point(selector) {
    this.sight.disconnect();
    for (const lit of document.querySelectorAll('.es-lit')) lit.classList.remove('es-lit');
    this.target = selector && document.querySelector(selector);
    if (!this.target) return;
    this.target.classList.add('es-lit');
    this.sight.observe(this.target);
  }

  bring() {
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.target?.scrollIntoView({ block: 'nearest', behavior: still ? 'auto' : 'smooth' });
  }

  close() {
    this.at = -1;
    this.card.hidden = true;
    this.point(null);
    this.begin.focus();
  }

  // The player listens to the same keys: while the strip has the focus they are the lesson's.
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
