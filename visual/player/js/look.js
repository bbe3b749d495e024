// Light or dark: data-theme on <html> first, then Gradio's own class on the body.

function pageLook() {
  const wanted = document.documentElement.dataset.theme || (document.body.classList.contains('dark') ? 'dark' : 'light');
  return wanted === 'dark' ? 'dark' : 'light';
}

function onLook(changed) {
  const observer = new MutationObserver(changed);
  observer.observe(document.body, { attributes: true, attributeFilter: ['class'] });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme', 'data-lecture'] });
  return observer;
}
