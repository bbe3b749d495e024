"""Makes the helpers beside the tests importable; one browser, one tiny pair and one page serve all tests."""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(ROOT))


def pytest_collection_modifyitems(items):
    """Browser tests belong to the slow part, which `-m "not model"` leaves out."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.model)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium; each test opens its own context."""
    from browser import CHROMIUM, FLAGS
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        pytest.fail("no Chromium was found; put one on the path, or name it in CHROMIUM")
    with sync_playwright() as p:
        opened = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def pair(tmp_path_factory):
    """(target, head): folders of a whole tiny pair with a tokenizer."""
    import tiny_pair

    return tiny_pair.write(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="session")
def engine(pair):
    from eagle2.loading.load import load

    return load(*pair, "cpu", "float32")


@pytest.fixture
def other(pair, tmp_path):
    """Folders of another pair: the same models, elsewhere."""
    return tuple(str(shutil.copytree(folder, tmp_path / Path(folder).name)) for folder in pair)


@pytest.fixture
def visit():
    """Of somebody who has just come."""
    from visual.server.conversation import Visit

    return Visit()


@pytest.fixture
def common(engine):
    """What the handlers of one page share, with the tiny pair in use."""
    import gradio as gr

    from visual.page.context import Common
    from visual.page.parts import Parts
    from visual.server.studio import Options, Studio

    studio = Studio(Options(max_new_tokens=64), load=lambda *_: engine)
    with gr.Blocks():
        return Common(studio, Parts("", 64, studio.options.methods, "en"), "en")


@pytest.fixture(scope="session")
def address(pair, tmp_path_factory):
    """The page with the tiny pair."""
    from serving import serving

    target, head = pair
    options = ("--target", target, "--head", head, "--device", "cpu", "--max-new-tokens-limit", "1900")
    with serving(*options, log=tmp_path_factory.mktemp("page") / "log") as started:
        yield started


@pytest.fixture
def visitor(browser, address):
    """Opens the page as a new visitor: visitor("?round=2", width=375)."""
    from browser import PATIENCE, App

    contexts = []

    def come(query: str = "", drawn: bool = True, **look: object) -> App:
        size = {"width": look.pop("width", 1440), "height": look.pop("height", 900)}
        context = browser.new_context(viewport=size, accept_downloads=True, **look)
        context.set_default_timeout(20000 * PATIENCE)
        contexts.append(context)
        return App(context.new_page(), address).visit(query, drawn)

    yield come
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def player_address():
    """A small page with the player alone; its runs are those of player_page.RUNS."""
    from player_page import page

    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    from visual.player import scripts

    demo = page()
    served = {"app_kwargs": scripts.served()}
    _, local, _ = demo.queue().launch(prevent_thread_lock=True, quiet=True, run_history=False, **served)
    yield local
    demo.close()


@pytest.fixture
def reader(browser, player_address):
    """Opens that page: reader("recorded") is the player at its first phase."""
    from browser import Page

    contexts = []

    def open_page(name: str = "recorded", width: int = 1440, height: int = 900, drawn: bool = True) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True)
        contexts.append(context)
        return Page(context.new_page(), "#player").open(f"{player_address}?run={name}", drawn)

    yield open_page
    for context in contexts:
        context.close()
