// Which language's page this is, and which one the visitor should see; runs before Gradio builds the page.
// An address that names a language is obeyed; else what was chosen here before counts, then the browser's language.

(() => {
  const CHOSEN = 'eagle2-language', VIEW = 'eagle2-view';
  const store = (kind, change, nothing = null) => { try { return change(window[kind]); } catch { return nothing; } };
  const last = location.pathname.replace(/\/$/, '').split('/').pop();
  const named = Object.keys(PLACES).find(name => PLACES[name].path && PLACES[name].path === last);
  const here = named || 'en';
  const query = new URLSearchParams(location.search), asked = query.get('lang');
  const asQuery = query => { const text = String(query); return text && `?${text}`; };  // `size` is newer than some browsers
  const known = name => name in PLACES ? name : null;
  const spoken = () => navigator.languages.map(tag => known(tag.split('-')[0])).find(Boolean);
  const wanted = known(asked) || named || known(store('localStorage', kept => kept.getItem(CHOSEN))) || spoken() || 'en';
  if (wanted !== here) {
    query.delete('lang');
    if (wanted === 'en') query.set('lang', 'en');
    const base = location.pathname.replace(/\/$/, '').replace(named ? /\/[^/]*$/ : '', '');
    location.replace(`${base}/${PLACES[wanted].path}${asQuery(query)}${location.hash}`);
    return;
  }
  document.documentElement.lang = PLACES[here].tag;
  // Gradio's own few words, such as those in an upload box, follow the browser's language, and no setting changes that
  // for one page. Where its module is not found they stay as they are.
  const core = performance.getEntriesByType('resource').map(entry => entry.name).find(name => /\/core-[^/]*\.js$/.test(name));
  if (core) import(core).then(module => module.changeLocale?.(PLACES[here].tag)).catch(() => {});

  // The browser's half of a change of language.
  window.eagleLanguage = {
    // What is looked at: the server is told, and what only the browser knows of it waits here for the next page.
    view() {
      const player = document.querySelector('#player .eagle-player')?.eaglePlayer, root = document.documentElement;
      const view = JSON.stringify({
        round: player?.cursor.round ?? 0, phase: player?.phase?.name ?? 'last',
        tab: document.querySelector('#tabs [role=tab][aria-selected=true]')?.dataset.tabId ?? '',
        lecture: root.dataset.lecture ?? '', theme: root.dataset.theme ?? '',
      });
      store('sessionStorage', kept => kept.setItem(VIEW, view));
      return view;
    },
    go(address, name) {
      if (!address) return;
      store('localStorage', kept => kept.setItem(CHOSEN, name));
      location.replace(new URL(address, document.baseURI));  // no step of its own: "back" would find a page without its run
    },
    arrive() {
      document.title = PLACES[here].title;  // Gradio has one for all pages, and has set it by now
      const query = new URLSearchParams(location.search);
      if (!query.has('resume')) return;
      query.delete('resume');
      history.replaceState(history.state, '', `${location.pathname}${asQuery(query)}${location.hash}`);
      const view = store('sessionStorage', kept => JSON.parse(kept.getItem(VIEW))), root = document.documentElement;
      store('sessionStorage', kept => kept.removeItem(VIEW));
      if (!view) return;
      if (view.lecture) root.dataset.lecture = view.lecture;
      if (view.theme) { root.dataset.theme = view.theme; document.body.classList.toggle('dark', view.theme === 'dark'); }
      const tab = document.querySelector(`#tabs [role=tab][data-tab-id="${CSS.escape(view.tab)}"]`);
      if (tab && tab.getAttribute('aria-selected') !== 'true') tab.click();
    },
  };
})();
