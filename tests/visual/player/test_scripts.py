"""The page's scripts as static files: their names, encodings and lifetimes; what is compressed, and what is not."""

from __future__ import annotations

import asyncio
import gzip
from concurrent.futures import ThreadPoolExecutor

import brotli
import gradio as gr
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.responses import PlainTextResponse, StreamingResponse

from visual.page.parts import Parts
from visual.player import scripts
from visual.player.bundle import PLOTLY_JS
from visual.words.say import LANGUAGES

ANSWER = "one answer, " * 1000


@pytest.fixture(scope="module")
def client():
    app = FastAPI(**scripts.served())
    app.get("/answer")(lambda: PlainTextResponse(ANSWER))
    with TestClient(app) as opened:
        yield opened


def fetched(client, path: str, accepted: str) -> tuple[bytes, dict]:
    """The bytes on the wire, and the headers."""
    with client.stream("GET", path, headers={"Accept-Encoding": accepted}) as answer:
        assert answer.status_code == 200
        return b"".join(answer.iter_raw()), answer.headers


def test_a_script_comes_in_the_best_encoding_and_is_kept_for_good(client):
    path = f"/scripts/{scripts.files()[1].name}"
    plain, headers = fetched(client, path, "identity")
    assert plain == PLOTLY_JS.read_bytes()
    assert "content-encoding" not in headers
    packed, headers = fetched(client, path, "gzip, deflate, br")
    assert headers["content-encoding"] == "br"
    assert brotli.decompress(packed) == plain
    assert "immutable" in headers["cache-control"]
    assert headers["vary"] == "Accept-Encoding"
    packed, headers = fetched(client, path, "gzip;q=1.0")
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed) == plain


def test_another_content_has_another_name():
    assert scripts.Script.of("a", "1").name != scripts.Script.of("a", "2").name


def test_a_script_of_an_earlier_version_is_not_found(client):
    assert client.get("/scripts/eagle2.0000000000000000.js").status_code == 404


def test_answers_are_compressed_as_the_browser_takes_them(client):
    packed, headers = fetched(client, "/answer", "br, gzip")
    assert headers["content-encoding"] == "br"
    assert brotli.decompress(packed).decode() == ANSWER
    packed, headers = fetched(client, "/answer", "gzip")
    assert gzip.decompress(packed).decode() == ANSWER
    assert fetched(client, "/answer", "identity")[0].decode() == ANSWER


@pytest.mark.parametrize("accepted", ["br", "gzip"])
def test_events_of_a_stream_go_out_one_by_one_and_as_they_are(accepted):
    """The next event is made only after the one before was sent: a middleware that holds back would hang here."""
    sent: list[bytes] = []

    async def events():
        for number in range(3):
            assert len([body for body in sent if body]) == number
            yield f"data: {number}\n\n" * 500

    async def send(message):
        sent.append(message.get("body", b""))

    async def receive():
        await asyncio.sleep(3600)

    app = scripts.CompressedAnswers(StreamingResponse(events(), media_type="text/event-stream"))
    scope = {"type": "http", "path": "/queue/data", "headers": [(b"accept-encoding", accepted.encode())]}
    with ThreadPoolExecutor() as pool:  # the browser's fixture has a loop running in this thread
        pool.submit(asyncio.run, app(scope, receive, send)).result()
    assert b"".join(sent).decode() == "".join(f"data: {number}\n\n" * 500 for number in range(3))


def test_no_component_carries_a_script():
    """Gradio copies each component for every visit and searches its script: a line each, the rest is loaded once."""
    with gr.Blocks() as blocks:
        Parts("", 64, ("eagle2",), "en")
    lines = [part.js_on_load or "" for part in blocks.blocks.values() if isinstance(part, gr.HTML)]
    assert max(map(len, lines)) < 2000
    assert sum(map(len, lines)) < 20_000


def test_the_script_has_the_strings_of_all_languages():
    body = scripts.files()[0].bodies["identity"].decode()
    for table in LANGUAGES.values():
        assert f'"chat.empty":"{table["chat.empty"]}"' in body
