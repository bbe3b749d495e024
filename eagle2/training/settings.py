"""Settings of data generation and its command's options. Loads no torch, so that --help is quick."""

import argparse
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ChatSettings:
    """What chats are made. Lengths are in tokens."""

    slots: int = 128
    max_length: int = 352  # of a chat, its prefix included
    max_user: int = 160  # of one sampled user turn, without its end token
    top_k: int = 50  # of user turns and sampled answers
    temperatures: tuple[tuple[float, float], ...] = ((0.0, 0.4), (0.7, 0.3), (1.0, 0.3))  # (temperature, share)
    second_turn: float = 0.3  # share of ended answers after which the user speaks again, where there is room
    room: int = 64  # that must be left for a further turn

    def __post_init__(self):
        for name in ("slots", "max_length", "max_user", "top_k", "room"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        if not 0 <= self.second_turn <= 1:
            raise ValueError(f"second_turn is {self.second_turn}; it must be from 0 to 1.")
        if not self.temperatures or any(t < 0 or share <= 0 for t, share in self.temperatures):
            raise ValueError(f"temperatures is {self.temperatures}; it takes (temperature >= 0, share > 0) pairs.")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m eagle2 data`."""
    settings = ChatSettings()
    parser.add_argument("--out", type=Path, required=True, help="folder of the shards; what is there is kept")
    parser.add_argument("--tokens", type=int, required=True, help="stop when the folder holds this many")
    parser.add_argument("--target", help="folder or hub id of the target (default: the embedded one)")
    parser.add_argument("--prompts", type=Path, help=".jsonl with prompt or turns, or text, one a line; default: none")
    parser.add_argument("--batch", type=int, default=settings.slots, help="chats side by side (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument(
        "--max-length", type=int, default=settings.max_length, help="tokens a chat (default: %(default)s)"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
