// The tour's exercise: raise top_k, run again, and say which phase grew. It checks itself against the page: what the
// settings form says, and the trees that the player shows before and after.

class Exercise {
  constructor(topK) {
    this.topK = topK;
    const task = (key, go) => {
      const mark = el('span', { class: 'es-mark', 'aria-hidden': 'true' }), text = el('span', {});
      const part = { mark, text, key, item: el('li', {}, mark, text) };
      if (go) part.item.append(part.button = el('button', { type: 'button', text: say(`lesson.${key}_go`), onclick: go }));
      return part;
    };
    this.tasks = [task('before'), task('raise', () => this.toSettings()), task('after', () => this.toPrompt())];
    this.answers = ['expansion', 'reranking', 'verification'].map(phase => el('button', { type: 'button', 'data-answer': phase, text: say(`lesson.phase_${phase}`), onclick: () => this.answer(phase) }));
    this.verdict = el('p', { class: 'es-verdict', role: 'status' });
    this.root = el('div', { class: 'es-exercise', hidden: true }, el('ol', {}, ...this.tasks.map(part => part.item)),
      el('div', { class: 'es-question' }, el('span', { text: say('lesson.question') }), ...this.answers), this.verdict);
    for (const name of ['input', 'change']) document.addEventListener(name, event => { if (this.field && event.target === this.field && !this.root.hidden) this.formed(name === 'change'); });
  }

  get field() { return document.querySelector('#top-k input[type=number]'); }

  begin(shown) {
    this.before = this.after = null;
    this.verdict.textContent = '';
    this.raised = Number(this.field?.value) >= this.topK;
    this.see(shown);
  }

  // The last smaller tree is what is compared with the first one of another run that is as wide as was asked for.
  see(shown) {
    const width = shown ? shown.width : 0;
    if (width && width < this.topK && !this.after) this.before = shown;
    const found = !this.after && this.before && this.raised && width >= this.topK && shown.run !== this.before.run;
    if (found) this.after = shown;
    this.show();
    if (found && !document.activeElement?.value) this.answers[0].focus({ preventScroll: true });
  }

  formed(settled) {
    const raised = Number(this.field.value) >= this.topK, now = raised && !this.raised;
    this.raised = raised;
    this.show();
    this.wasRaised ||= now;
    if (settled && raised && this.wasRaised) setTimeout(() => this.tasks[2].button.focus({ preventScroll: true }));
  }

  show() {
    const done = [this.before, this.raised, this.after];
    this.tasks.forEach((part, i) => {
      const tree = [this.before, null, this.after][i];
      part.item.dataset.done = Boolean(done[i]);
      part.mark.textContent = done[i] ? '✓' : i + 1;
      part.text.textContent = say(`lesson.${part.key}${tree ? '_done' : ''}`, { top_k: this.topK, drafted: tree?.drafted, kept: tree?.kept });
    });
    for (const button of this.answers) button.disabled = !this.after;
  }

  // Each phase's own count, before and after.
  answer(phase) {
    const count = tree => ({ expansion: tree.drafted, reranking: tree.kept, verification: tree.kept + 1 })[phase];
    const before = count(this.before), after = count(this.after), grew = after > before;
    const said = [say(`lesson.verdict_${grew ? 'yes' : 'no'}`), say(`lesson.count_${phase}`, { before, after })];
    if (phase === 'expansion' && grew) said.push(say('lesson.exercise_answer'));
    this.verdict.dataset.right = grew;
    this.verdict.textContent = said.join(' ');
  }

  toSettings() {
    document.querySelector('#settings:not(.open) .toggle-button')?.click();
    this.wasRaised = false;
    this.focusSoon(() => this.field, 60);
  }

  toPrompt() {
    document.querySelector('#settings.open .toggle-button')?.click();
    this.focusSoon(() => document.querySelector('#prompt textarea'), 60);
  }

  // The settings slide in: a field takes the focus once it can be seen.
  focusSoon(find, tries) {
    const field = find();
    if (field && field.offsetParent) { field.focus(); field.select(); }
    if (document.activeElement !== field && tries) requestAnimationFrame(() => this.focusSoon(find, tries - 1));
  }
}
