"""The page as a user starts it: app.py in its own process, on a port of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def serving(*options: str, log: Path, **settings: str):
    """`python app.py` in its own process, its port from GRADIO_SERVER_PORT; yields its address once it answers.

    settings: more environment variables.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    quiet = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **quiet, "GRADIO_SERVER_PORT": str(number), **settings}
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "app.py", *options], cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT
        )
        try:
            address = f"http://127.0.0.1:{number}"
            _wait(address, process, log)
            yield address
        finally:
            process.terminate()
            process.wait(20)


def _wait(address: str, process: subprocess.Popen, log: Path) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.1)
    raise RuntimeError(f"the page did not start: {log.read_text()[-2000:]}")
