"""The page's scripts as static files: all of js/ in one, Plotly in another, each once a page and not once a component.

    demo.launch(app_kwargs=scripts.served())

A file's name holds a digest of its content, so that browsers may keep it for good; it is compressed once, when the app
starts, and not for each request. Knows HTTP, and of Gradio only that it takes keyword arguments of FastAPI.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import brotli
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware, IdentityResponder
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from visual.player.bundle import PLOTLY_JS, page_script

FOLDER = "scripts"
BROTLI_QUALITY = 9
"""Its best, 11, makes Plotly a tenth smaller and takes twenty times as long, at every start."""
ANSWER_QUALITY, LEAST_BYTES = 5, 1000
FOR_GOOD = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class Script:
    """A file as it is sent: under its name, by content encoding."""

    name: str
    bodies: dict[str, bytes]

    @classmethod
    def of(cls, stem: str, text: str) -> Script:
        body = text.encode()
        name = f"{stem}.{hashlib.sha256(body).hexdigest()[:16]}.js"
        packed = {"br": brotli.compress(body, quality=BROTLI_QUALITY), "gzip": gzip.compress(body, mtime=0)}
        return cls(name, {**packed, "identity": body})

    def answer(self, accepted: str) -> Response:
        """In the best encoding that the browser takes. accepted: its header Accept-Encoding."""
        taken = encodings(accepted)
        encoding = next((name for name in self.bodies if name in taken), "identity")
        headers = {"Cache-Control": FOR_GOOD, "Vary": "Accept-Encoding"}
        if encoding != "identity":
            headers["Content-Encoding"] = encoding
        return Response(self.bodies[encoding], media_type="text/javascript", headers=headers)


class BrotliResponder(IdentityResponder):
    """What Starlette's GZipMiddleware does, in Brotli: a third smaller for our answers, in the same time."""

    content_encoding = "br"

    def __init__(self, app: ASGIApp, minimum_size: int) -> None:
        super().__init__(app, minimum_size)
        self.compressor = brotli.Compressor(quality=ANSWER_QUALITY)

    async def apply_compression(self, body: bytes, *, more_body: bool) -> bytes:
        packed = self.compressor.process(body)
        return packed + (self.compressor.flush() if more_body else self.compressor.finish())


class CompressedAnswers:
    """Compresses pages and answers as they are sent; event streams are left alone, or they would be held back. Files
    (the last part of their path has a dot) are Gradio's to compress, which it does by their ending.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.gzip = app, GZipMiddleware(app, LEAST_BYTES, compresslevel=6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http" and "." not in scope["path"].rsplit("/", 1)[-1]:
            takes_brotli = "br" in encodings(Headers(scope=scope).get("accept-encoding", ""))
            app = BrotliResponder(app, LEAST_BYTES) if takes_brotli else self.gzip
        await app(scope, receive, send)


def encodings(accepted: str) -> set[str]:
    """The names in a header Accept-Encoding."""
    return {part.split(";")[0].strip() for part in accepted.split(",")}


@lru_cache(maxsize=1)
def files() -> tuple[Script, Script]:
    """The page's script and Plotly."""
    plotly = Script.of("plotly", PLOTLY_JS.read_text(encoding="utf-8"))
    return Script.of("eagle2", page_script(plotly.name)), plotly


def head() -> str:
    """What a component names as its head: Gradio loads a script once, however many components name it, and calls the
    component's own line after that. The path is relative to the page's, which may lie anywhere.
    """
    return f'<script src="./{FOLDER}/{files()[0].name}"></script>'


def served() -> dict[str, Any]:
    """Keyword arguments for FastAPI: the routes of the scripts, and the compression of answers."""
    by_name = {script.name: script for script in files()}

    async def send(request: Request) -> Response:
        script = by_name.get(request.path_params["name"])
        if script is None:
            return Response("No such script; reload the page.", 404, media_type="text/plain")
        return script.answer(request.headers.get("accept-encoding", ""))

    return {"routes": [Route(f"/{FOLDER}/{{name}}", send)], "middleware": [Middleware(CompressedAnswers)]}
