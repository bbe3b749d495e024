// The exported file: the run's text, tinted by where each token came from, above the same player as in the app.

function play(root, run) {
  document.head.append(el('style', { text: 'body { margin: 0; padding: 20px; background: var(--page, #f4f6fa); } body.dark { background: #0d1117; }' }));
  if (matchMedia('(prefers-color-scheme: dark)').matches) document.body.classList.add('dark');
  const player = mount(root, () => {});
  const text = el('p', { class: 'ep-transcript' });
  for (const [piece, origin, round] of run.text) {
    text.append(el('button', { type: 'button', 'data-origin': origin, 'data-round': round, text: piece,
      onclick: () => document.dispatchEvent(new CustomEvent('eagle:goto', { detail: { round, phase: 'last' } })) }));
  }
  const said = (role, text) => strings()[`export.role.${role}`] ? say(`export.role.${role}`, { text }) : `${role}: ${text}`;
  const prompts = run.messages.map(([role, content]) => el('p', { class: 'ep-prompt', text: said(role, content) }));
  player.parts.header.before(el('section', { class: 'ep-panel' }, el('h2', { text: run.title }), el('p', { class: 'ep-muted', text: run.settings }), ...prompts, text));
  document.addEventListener('eagle:shown', event => {
    for (const button of text.children) button.dataset.here = Number(button.dataset.round) === event.detail.round;
  });
  player.receive(run.message);
}

play(document.getElementById('player'), JSON.parse(document.getElementById('run').textContent));
