"""What a visit costs on the wire, first and again: `python tests/visual/measure_visit.py`. A measurement, not a test.

Bytes are those the browser received, headers included, as Chromium's network panel counts them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

sys.path[:0] = [str(Path(__file__).parents[level]) for level in range(3)]

import tiny_pair  # noqa: E402 - it lies beside this file
from browser import CHROMIUM, FLAGS  # noqa: E402
from serving import serving  # noqa: E402

SETTLE_MS = 3000
"""What still comes in after the first tree is drawn counts too."""


def visit(page: Page, address: str) -> tuple[Counter[str], float]:
    """Bytes received by kind of request, and the seconds until a tree is drawn."""
    received: Counter[str] = Counter()
    urls: dict[str, str] = {}
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.requestWillBeSent", lambda event: urls.update({event["requestId"]: event["request"]["url"]}))

    def add(event: dict, field: str = "encodedDataLength") -> None:
        received[kind(urls.get(event["requestId"], ""))] += max(0, event[field])

    session.on("Network.loadingFinished", add)
    start = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("#player .ep-tree .main-svg")
    drawn = time.perf_counter() - start
    page.wait_for_timeout(SETTLE_MS)
    session.detach()
    return received, drawn


def kind(url: str) -> str:
    path = urlsplit(url).path
    if path in ("", "/"):
        return "the page"
    if path.startswith("/gradio_api/file=") or path.startswith("/scripts/"):
        return f"ours: {path.rsplit('/', 1)[-1]}"
    return "answers" if path.startswith("/gradio_api/") else "Gradio's own files"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2, help="visits by one browser, the first with nothing cached")
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        target, head = tiny_pair.write(Path(folder))
        with serving("--target", target, "--head", head, "--device", "cpu", log=Path(folder) / "log") as address:
            browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            for number in range(times):
                page = context.new_page()
                received, drawn = visit(page, address)
                page.close()
                print(f"visit {number + 1}: {received.total() / 1e6:.2f} MB, first tree after {drawn:.1f} s")
                for name, size in received.most_common():
                    print(f"  {size / 1e3:8.1f} kB  {name}")
            browser.close()


if __name__ == "__main__":
    main()
