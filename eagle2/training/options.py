"""Settings of data generation and training, and their commands' options. Loads no torch, so that --help is quick."""

import argparse
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class ChatSettings:
    """Which chats are generated. Lengths are in tokens."""

    slots: int = 128
    max_length: int = 352  # of a chat, its prefix included
    max_user: int = 160  # of one sampled user turn, without its end token
    max_answer: int = 0  # of one answer, which ends its chat; 0: as long as there is room
    top_k: int = 50  # of user turns and sampled answers
    temperatures: tuple[tuple[float, float], ...] = ((0.0, 0.4), (0.7, 0.3), (1.0, 0.3))  # (temperature, share)
    second_turn: float = 0.3  # share of ended answers after which the user speaks again, where there is room
    room: int = 64  # that must be left for a further turn

    def __post_init__(self):
        for name in ("slots", "max_length", "max_user", "top_k", "room"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        if self.max_answer < 0:
            raise ValueError(f"max_answer is {self.max_answer}; it must be 0 or more.")
        if not 0 <= self.second_turn <= 1:
            raise ValueError(f"second_turn is {self.second_turn}; it must be from 0 to 1.")
        if not self.temperatures or any(t < 0 or share <= 0 for t, share in self.temperatures):
            raise ValueError(f"temperatures is {self.temperatures}; it takes (temperature >= 0, share > 0) pairs.")


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m eagle2 data`."""
    settings = ChatSettings()
    parser.add_argument("--out", type=Path, required=True, help="folder of the shards; existing ones are kept")
    parser.add_argument("--tokens", type=int, required=True, help="stop when the folder holds this many")
    parser.add_argument("--target", help="folder or hub id of the target (default: the bundled one)")
    parser.add_argument("--prompts", type=Path, help=".jsonl with prompt or turns, or text, one a line; default: none")
    parser.add_argument("--answers", type=int, default=1, help="per prompt, at most one of them greedy (default: 1)")
    parser.add_argument("--batch", type=int, default=settings.slots, help="chats side by side (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument(
        "--max-length", type=int, default=settings.max_length, help="tokens per chat (default: %(default)s)"
    )
    parser.add_argument(
        "--max-answer",
        type=int,
        default=settings.max_answer,
        help="tokens per answer; 0: unlimited (default: %(default)s)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")


@dataclass(frozen=True)
class TrainSettings:
    """How a head is trained; the README here lists what was tried. The budget is `minutes` or, where not 0, `steps`."""

    minutes: float = 60.0
    steps: int = 0
    batch_tokens: int = 704
    learning_rate: float = 6e-4
    weight_decay: float = 0.01
    warm_up: int = 20  # steps over which the rate rises; then it falls along a cosine to a fiftieth
    clip: float = 1.0  # largest norm of a gradient
    draft_steps: int = 3  # trained per position, each from the head's own guesses
    prompts: float = 0.0  # share of batches in which prompts are learnt too, not only answers
    one_step: float = 0.3  # share of the budget, at the beginning, that trains one draft step only
    token_weight: float = 1.0  # of the cross-entropy, against 1 for the features' SmoothL1
    noise: float = 0.0  # half width of the uniform noise on features
    vocabulary: int = 8192  # tokens the head can propose, the most frequent of the data; 0: all
    loss_vocabulary: int = 2048  # of them, most frequent first, that are compared in every batch; see objective.py
    intermediate_size: int = 0  # of the MLP; 0: as the target's
    evaluate_every: int = 250  # steps
    save_minutes: float = 2.0
    seed: int = 0

    def __post_init__(self):
        positive = ("minutes", "batch_tokens", "learning_rate", "warm_up", "clip", "draft_steps", "loss_vocabulary")
        for name in (*positive, "evaluate_every", "save_minutes"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be more than 0.")
        for name in ("steps", "weight_decay", "token_weight", "noise", "vocabulary", "intermediate_size", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be 0 or more.")
        for name in ("one_step", "prompts"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 0 to 1.")

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> "TrainSettings":
        return cls(**{setting.name: getattr(options, setting.name) for setting in fields(cls)})


TRAIN_HELP = {
    "minutes": "budget of training time; the schedule is fitted to it",
    "steps": "budget in steps of the optimizer, instead of minutes; 0: none",
    "batch_tokens": "tokens a step",
    "learning_rate": "its peak",
    "weight_decay": "of AdamW, on matrices",
    "warm_up": "steps over which the rate rises",
    "clip": "largest norm of a gradient",
    "draft_steps": "draft steps trained at each position, from the head's own guesses",
    "prompts": "share of batches in which prompts are learnt too; 0: they are only read",
    "one_step": "share of the budget, at the beginning, that trains one draft step only",
    "token_weight": "of the cross-entropy, against 1 for the features' SmoothL1",
    "noise": "half width of uniform noise on the features",
    "vocabulary": "tokens the head can propose, the most frequent of the data; 0: all",
    "loss_vocabulary": "how many of them are compared in every batch, beside its own and half as many drawn",
    "intermediate_size": "of the head's MLP; 0: as the target's",
    "evaluate_every": "steps between evaluations on the held-out chats",
    "save_minutes": "between two saves of the state",
    "seed": "of batches and first weights",
}


def add_train_options(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m eagle2 train`."""
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="shards of chats, or folders of them")
    parser.add_argument("--out", type=Path, required=True, help="folder of state, log, features and head; resumed")
    parser.add_argument("--target", help="folder or hub id of the target (default: the bundled one)")
    parser.add_argument("--head", help="folder or hub id of a head to continue from (default: the linear start)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    for setting in fields(TrainSettings):
        parser.add_argument(
            f"--{setting.name.replace('_', '-')}",
            type=type(setting.default),
            default=setting.default,
            help=f"{TRAIN_HELP[setting.name]} (default: %(default)s)",
        )


def add_cut_options(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m eagle2 cut`."""
    parser.add_argument("--head", required=True, help="folder or hub id of an EAGLE-1 or EAGLE-2 head")
    parser.add_argument("--vocabulary", type=int, required=True, help="how many tokens the head can propose")
    parser.add_argument(
        "--data", type=Path, nargs="+", required=True, help="shards of chats, or folders, whose tokens count"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write the head to")
    parser.add_argument("--target", help="folder or hub id of the target (default: the bundled one)")


def add_measure_options(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m eagle2 measure`."""
    text = parser.add_mutually_exclusive_group(required=True)
    text.add_argument("--questions", type=Path, help="JSON lines with turns, as in Spec-Bench")
    text.add_argument("--data", type=Path, nargs="+", help="shards of chats, or folders: those that `train` holds out")
    parser.add_argument("--every", type=int, default=1, help="use every N-th text (default: %(default)s)")
    parser.add_argument("--head", action="append", help="folder or hub id; may be repeated (default: the bundled head)")
    parser.add_argument("--target", help="folder or hub id of the target (default: the bundled one)")
    parser.add_argument("--top-k", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--depth", type=int, default=6, help="(default: %(default)s)")
    parser.add_argument("--max-nodes", type=int, default=59, help="(default: %(default)s)")
    parser.add_argument("--max-new-tokens", type=int, default=128, help="(default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument("--dtype", default="auto", help="of the weights (default: %(default)s)")
