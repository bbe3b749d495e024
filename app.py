"""EAGLE-2, round by round: parses options, starts loading the models, builds the page and launches it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

if importlib.util.find_spec("spaces"):
    import spaces  # noqa: F401 - on ZeroGPU it must come before torch

import gradio as gr

from eagle2.trace import files as trace_files
from visual.figures import theme
from visual.page import page
from visual.player import scripts
from visual.player.bundle import page_head
from visual.server.studio import Options, Studio
from visual.words.say import say

FONT = tuple(name.strip(' "') for name in theme.SANS.split(","))
THEME = gr.themes.Default(primary_hue=gr.themes.colors.blue, font=FONT, font_mono=("ui-monospace", "monospace"))
"""Fonts of the system only: a page without a network must look the same."""

ON_A_SPACE = "SPACE_ID" in os.environ

OWNER_KEY = "EAGLE2_OWNER_KEY"
SHORTEST_KEY = 12


def is_public(asked: bool, environment: Mapping[str, str]) -> bool:
    """Whether people beyond this machine can reach the page: asked for, on a Space, or by Gradio's settings."""
    name = environment.get("GRADIO_SERVER_NAME", "localhost")
    by_gradio = name not in ("localhost", "127.0.0.1", "::1") or bool(environment.get("GRADIO_SHARE"))
    return asked or "SPACE_ID" in environment or by_gradio


def owner_key(environment: Mapping[str, str]) -> str:
    """The key that lets only the owner of a public page load other models. ValueError for one too easily guessed."""
    key = environment.get(OWNER_KEY, "").strip() or secrets.token_urlsafe(SHORTEST_KEY)
    if len(key) < SHORTEST_KEY:
        raise ValueError(
            f"{OWNER_KEY} has {len(key)} characters; give at least {SHORTEST_KEY}, or none to have one made"
        )
    return key


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    default = Options()
    shown = "(default: %(default)s)"
    parser = argparse.ArgumentParser(prog="python app.py", description="EAGLE-2 speculative decoding, round by round.")
    parser.add_argument("--target", help="folder or hub id of a causal LM (default: the bundled SmolLM2-135M-Instruct)")
    parser.add_argument("--head", help="folder or hub id of its EAGLE head")
    parser.add_argument(
        "--draft-model", help="folder or hub id of a smaller causal LM with the same tokenizer, for method sps"
    )
    parser.add_argument("--device", default=default.device, help=f"auto, cpu, cuda, cuda:N, mps or spread {shown}")
    parser.add_argument(
        "--dtype", "--weights", default=default.dtype, help=f"auto, float32, bfloat16, float16 or 4bit {shown}"
    )
    parser.add_argument("--trace", metavar="FILE", help="open this saved run first")
    parser.add_argument(
        "--max-new-tokens-limit", type=int, default=default.max_new_tokens, help=f"tokens per run at most {shown}"
    )
    parser.add_argument("--runs", type=int, default=default.runs, help=f"runs that go on at once {shown}")
    parser.add_argument(
        "--waiting",
        type=int,
        default=default.waiting,
        help=f"runs that may wait for a place; more are turned away {shown}",
    )
    parser.add_argument(
        "--upload-mb", type=int, default=default.upload_mb, help=f"largest saved run that is read {shown}"
    )
    parser.add_argument("--port", type=int, help="port (default: GRADIO_SERVER_PORT, else a free one from 7860 on)")
    parser.add_argument("--public", action="store_true", help="serve all interfaces, not only this machine")
    options = parser.parse_args(arguments)
    for name in ("max_new_tokens_limit", "runs", "waiting", "upload_mb"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} is {getattr(options, name)}; it must be at least 1")
    return options


def build(options: argparse.Namespace) -> tuple[gr.Blocks, Studio]:
    """The page and the models behind it, not loaded yet. ValueError or OSError for a trace that cannot be read."""
    opened = None
    if options.trace:
        opened = Path(options.trace).name, trace_files.load(options.trace, options.upload_mb * 2**20)
        if not opened[1].rounds:
            raise ValueError(say("trace.empty", name=opened[0]))
    owner = Options(
        target=options.target,
        head=options.head,
        device=options.device,
        dtype=options.dtype,
        draft_model=options.draft_model,
        max_new_tokens=options.max_new_tokens_limit,
        runs=options.runs,
        waiting=options.waiting,
        upload_mb=options.upload_mb,
        key=owner_key(os.environ) if is_public(options.public, os.environ) else "",
    )
    studio = Studio(owner)
    blocks = page.build(studio, opened)
    # What runs has left the queue, and what needs no model never enters it (`page.QUICK`).
    blocks.queue(max_size=options.waiting, default_concurrency_limit=options.runs)
    return blocks, studio


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    try:
        blocks, studio = build(options)
    except (ValueError, OSError) as error:
        raise SystemExit(f"error: {error}") from error
    if studio.options.key:
        print(say("pair.console", owner_key=studio.options.key), flush=True)
    studio.start()
    blocks.launch(
        server_port=options.port,
        server_name="0.0.0.0" if options.public or ON_A_SPACE else None,
        max_file_size=f"{options.upload_mb}mb",
        run_history=False,
        head=page_head(),  # not `css`, whose selectors Gradio would rewrite
        theme=THEME,
        footer_links=[],
        app_kwargs=scripts.served(),
    )


if __name__ == "__main__":
    main()
