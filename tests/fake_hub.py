"""A hub on this machine: serves folders as repositories, as slowly as it is told, and refuses as the real one does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REVISION = sha1(b"the only revision").hexdigest()
CHUNK = 16_384


class Hub(ThreadingHTTPServer):
    """folders: by repository. refusals: (status, error code of the hub) by repository. pause_s: behind each chunk of a
    file of weights.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.folders: dict[str, Path] = {}
        self.refusals: dict[str, tuple[int, str]] = {}
        self.pause_s = 0.0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *_: object) -> None:
        """Nothing: tests have no use for it."""

    def _answer(self, body: bool) -> None:
        parts = self.path.split("?")[0].strip("/").split("/")
        about = parts[:2] == ["api", "models"]
        repository = "/".join(parts[2:4] if about else parts[:2])
        if repository in self.server.refusals:
            self._refuse(*self.server.refusals[repository])
        elif repository not in self.server.folders:
            self._refuse(404, "RepoNotFound")
        elif about:
            self._send(json.dumps(self._about(parts, self.server.folders[repository])).encode(), body)
        else:
            file = self.server.folders[repository] / "/".join(parts[4:])
            if file.is_file():
                self._send(file.read_bytes(), body, self.server.pause_s if file.suffix == ".safetensors" else 0.0)
            else:
                self._refuse(404, "EntryNotFound")

    def _about(self, parts: list[str], folder: Path) -> object:
        files = [file for file in sorted(folder.iterdir()) if file.is_file()]
        if "tree" in parts:
            sizes = ((file.name, file.stat().st_size, _tag(file.read_bytes())) for file in files)
            return [{"type": "file", "path": name, "size": size, "oid": tag} for name, size, tag in sizes]
        return {"id": "/".join(parts[2:4]), "sha": REVISION, "siblings": [{"rfilename": file.name} for file in files]}

    def _send(self, content: bytes, body: bool, pause_s: float = 0.0) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{_tag(content)}"')
        self.send_header("X-Repo-Commit", REVISION)
        self.end_headers()
        if not body:
            return
        try:
            for start in range(0, len(content), CHUNK):
                self.wfile.write(content[start : start + CHUNK])
                time.sleep(pause_s)
        except ConnectionError:
            pass  # whoever asked does not want it any more

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _tag(content: bytes) -> str:
    return sha1(content).hexdigest()


@contextmanager
def serving_hub() -> Iterator[Hub]:
    with Hub() as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        yield hub
        hub.shutdown()
