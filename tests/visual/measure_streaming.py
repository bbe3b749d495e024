"""What the page costs: a run with a browser watching against the same run by the engine alone; the size of a round.

    python tests/visual/measure_streaming.py        # a few minutes; the default pair, this machine

Both are warm, interleaved three times, and medians are printed. Nothing is asserted: it measures.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
PROMPT = "Write a Python function that adds two numbers."
PORT, TOKENS, REPEATS = 7981, 64, 3
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def engine_alone(engine: object) -> float:
    """Seconds for the run that the page makes, prefill included."""
    from eagle2 import TreeShape

    ids = engine.encode_chat([{"role": "user", "content": PROMPT}])
    start = time.perf_counter()
    for _ in engine.rounds(ids, TreeShape(), max_new_tokens=TOKENS):
        pass
    return time.perf_counter() - start


def through_the_page(browser: object) -> float:
    """Seconds from Enter to the end of the run, in a fresh tab that draws every round."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"http://127.0.0.1:{PORT}/?round=1")
    page.wait_for_selector(".ep-title >> text=/^Round/", timeout=60_000)
    page.keyboard.press("End")
    page.fill("#prompt textarea", PROMPT)
    page.wait_for_timeout(1500)
    start = time.perf_counter()
    page.press("#prompt textarea", "Enter")
    page.wait_for_selector("#status >> text=/^Done/", timeout=300_000)
    took = time.perf_counter() - start
    page.close()
    return took


def message_cost() -> tuple[float, int]:
    """Milliseconds to write the message of a round of 59 nodes kept of 510, and its bytes."""
    from eagle2.trace import files as trace_files
    from visual.player import component as player

    trace = trace_files.load(ROOT / "assets" / "traces" / "pancakes.json.gz")
    times, sizes = [], []
    for r in trace.rounds:
        start = time.perf_counter()
        message = player.message_append("run", r, trace.tokens)
        times.append(1e3 * (time.perf_counter() - start))
        sizes.append(len(message.encode()))
    return statistics.median(times), max(sizes)


def main() -> None:
    from playwright.sync_api import sync_playwright

    import eagle2

    command = [sys.executable, "app.py", "--port", str(PORT), "--max-new-tokens-limit", str(TOKENS)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    try:
        engine = eagle2.load(device="cpu")
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/").close()
                break
            except OSError:
                time.sleep(0.5)
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=chromium, args=FLAGS)
            engine_alone(engine), through_the_page(browser)
            pairs = [(engine_alone(engine), through_the_page(browser)) for _ in range(REPEATS)]
            browser.close()
    finally:
        server.terminate()
    alone, watched = (statistics.median(side) for side in zip(*pairs, strict=True))
    share = statistics.median(page / engine - 1 for engine, page in pairs)
    print(f"engine alone {alone:.1f} s, through the page {watched:.1f} s: {share:+.0%} (medians of {REPEATS})")
    ms, size = message_cost()
    print(f"message of a round, 59 of 510 nodes: {ms:.0f} ms to write (median), {size / 1000:.0f} kB at most")


if __name__ == "__main__":
    main()
