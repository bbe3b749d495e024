"""Training data for an EAGLE head on disk: shards of chats, their reader, and the command that makes them.

The head learns to imitate one target, so the best text to learn from is that target's own; `chats.py` writes it.
"""

import argparse
import json
import os
import signal
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm
from transformers import PreTrainedModel

from eagle2.loading import load as loading
from eagle2.training.chats import Chat, ChatFormat, ChatSampler
from eagle2.training.fast_llama import LeanLlama
from eagle2.training.options import ChatSettings

SHARD_MINUTES, SHARD_CHATS = 20.0, 4000  # whichever comes first closes a shard
ARRAYS = {"tokens": "iu", "length": "iu", "answer_start": "iu", "temperature": "f"}  # name -> allowed numpy kinds


@dataclass(frozen=True)
class Chats:
    """Many chats, their tokens end to end."""

    tokens: np.ndarray  # [total], uint16 or uint32
    length: np.ndarray  # [chats], int32
    answer_start: np.ndarray  # [chats], int32: index of the first answer token, within its chat
    temperature: np.ndarray  # [chats], float32: of the answers

    def __len__(self) -> int:
        return len(self.length)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Each chat's tokens, [length], as a view."""
        return iter(np.split(self.tokens, np.cumsum(self.length)[:-1]) if len(self) else ())


def load_chats(paths: Iterable[str | os.PathLike], vocab_size: int | None = None) -> Chats:
    """Read shards into one. Raises ValueError, naming the file, for a malformed one or one of a larger vocabulary."""
    shards = []
    for path in paths:
        shards.append(read_shard(Path(path)))
        largest = int(shards[-1].tokens.max(initial=0))
        if vocab_size is not None and largest >= vocab_size:
            raise ValueError(f"{path} holds token {largest}; the target's vocabulary ends at {vocab_size - 1}.")
    if not shards:
        raise ValueError("No shards were given; load_chats needs at least one .npz file.")
    return Chats(*(np.concatenate([getattr(shard, name) for shard in shards]) for name in ARRAYS))


def chat_files(given: Path) -> list[Path]:
    """The shards that a path names: itself, or those of the folder. Raises ValueError for a folder without any."""
    if not given.is_dir():
        return [given]
    found = shard_paths(given)
    if not found:
        raise ValueError(f"{given} holds no chats-NNNNN.npz; give a folder that `eagle2 data` wrote, or a file")
    return found


def read_shard(path: Path) -> Chats:
    """One shard, checked. Raises ValueError for a file that holds something else."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist, or is not a file.")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not an .npz file, or not a whole one; a shard is what `eagle2 data` writes.")
    with np.load(path) as archive:
        missing = [name for name in ARRAYS if name not in archive]
        if missing:
            raise ValueError(f"{path} has no array {', '.join(missing)}; a shard holds {', '.join(ARRAYS)}.")
        chats = Chats(*(archive[name] for name in ARRAYS))
    for name, kinds in ARRAYS.items():
        array = getattr(chats, name)
        if array.ndim != 1 or array.dtype.kind not in kinds:
            wanted = "floats" if kinds == "f" else "integers"
            raise ValueError(f"{path}: {name} is {array.dtype} of shape {array.shape}; it must be one row of {wanted}.")
    if not len(chats.length) == len(chats.answer_start) == len(chats.temperature):
        raise ValueError(
            f"{path}: {len(chats.length)} lengths, {len(chats.answer_start)} answer starts and "
            f"{len(chats.temperature)} temperatures; there must be one of each for every chat."
        )
    if (total := int(chats.length.sum())) != len(chats.tokens):
        raise ValueError(f"{path}: the lengths add up to {total}, but there are {len(chats.tokens)} tokens.")
    if chats.tokens.min(initial=0) < 0:
        raise ValueError(f"{path} holds token {chats.tokens.min()}; tokens are 0 or more.")
    bad = (chats.answer_start < 1) | (chats.answer_start >= chats.length)
    if bad.any():
        i = int(bad.argmax())
        raise ValueError(
            f"{path}: chat {i} has its answer start at {chats.answer_start[i]}; "
            f"allowed are 1 to {chats.length[i] - 1}, inside its {chats.length[i]} tokens."
        )
    bad = ~(np.isfinite(chats.temperature) & (chats.temperature >= 0))
    if bad.any():
        i = int(bad.argmax())
        raise ValueError(f"{path}: chat {i} has temperature {chats.temperature[i]}; it must be 0 or more.")
    return chats


class ShardFolder:
    """Numbered shards in a folder. A chat that is already there, token for token, is not added again."""

    def __init__(self, folder: Path, vocab_size: int):
        self.folder = folder
        self.dtype = np.uint16 if vocab_size <= 65536 else np.uint32
        self.chats: list[Chat] = []  # of the shard that is being filled
        self.seen: set[bytes] = set()  # whole chats
        self.openings: Counter[bytes] = Counter()  # what stands before first answers that another run left
        self.tokens = self.waiting = 0  # on disk; in the shard that is being filled
        folder.mkdir(parents=True, exist_ok=True)
        for path in shard_paths(folder):
            shard = read_shard(path)
            self.tokens += len(shard.tokens)
            for ids, answer_start in zip(shard, shard.answer_start, strict=True):
                self.seen.add(self._key(ids))
                self.openings[self._key(ids[:answer_start])] += 1
        self.number = 1 + max((int(path.stem.removeprefix("chats-")) for path in shard_paths(folder)), default=-1)

    def _key(self, ids: Sequence[int]) -> bytes:
        return np.asarray(ids, self.dtype).tobytes()

    def answers(self, opening: Sequence[int]) -> int:
        """How many chats of earlier runs begin with these ids and continue with an answer."""
        return self.openings[self._key(opening)]

    def add(self, chat: Chat) -> bool:
        """Take a chat into the shard that is being filled; False if it is a duplicate."""
        key = self._key(chat.tokens)
        if key in self.seen:
            return False
        self.seen.add(key)
        self.chats.append(chat)
        self.waiting += len(chat.tokens)
        return True

    def write(self) -> Path | None:
        """Close the shard: all of it appears under its name, or nothing does. None when there is nothing to write."""
        if not self.chats:
            return None
        path = self.folder / f"chats-{self.number:05d}.npz"
        temporary = path.with_suffix(".tmp")
        with open(temporary, "wb") as file:
            np.savez_compressed(
                file,
                tokens=np.concatenate([np.asarray(chat.tokens, self.dtype) for chat in self.chats]),
                length=np.array([len(chat.tokens) for chat in self.chats], np.int32),
                answer_start=np.array([chat.answer_start for chat in self.chats], np.int32),
                temperature=np.array([chat.temperature for chat in self.chats], np.float32),
            )
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        self.tokens, self.waiting, self.chats, self.number = self.tokens + self.waiting, 0, [], self.number + 1
        return path


def shard_paths(folder: Path) -> list[Path]:
    """The finished shards of a folder, in order."""
    return sorted(folder.glob("chats-" + "[0-9]" * 5 + ".npz"))


def read_prompts(path: Path, encode: Callable[[str], list[int]]) -> list[list[list[int]]]:
    """The user's turns of each prompt, as ids.

    A .jsonl file has objects with `prompt` or `turns`; any other is plain text, one prompt a line.
    """
    prompts = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        turns = [line]
        if path.suffix == ".jsonl":
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}, line {number}, is not JSON: {error}.") from error
            turns = record.get("turns", [record.get("prompt")]) if isinstance(record, dict) else None
            texts = isinstance(turns, list) and all(isinstance(turn, str) and turn.strip() for turn in turns)
            if not texts or not turns:
                raise ValueError(
                    f'{path}, line {number}, is {line.strip()[:80]!r}; it must be an object with "prompt", a text, '
                    'or "turns", a list of texts.'
                )
        # Stripped, because white space could melt into the template's own tokens.
        prompts.append([encode(turn.strip()) for turn in turns])
    if not prompts:
        raise ValueError(f"{path} holds no prompts.")
    return prompts


def generate(
    sampler: ChatSampler,
    folder: ShardFolder,
    tokens: int,
    seed: int = 0,
    shard_minutes: float = SHARD_MINUTES,
    shard_chats: int = SHARD_CHATS,
) -> None:
    """Add shards to the folder until it holds `tokens` tokens or the prompts are used up.

    Each shard has its own random numbers, from (seed, shard number): an interrupted run resumes with the next shard and
    repeats nothing. However this ends, finished chats are written.
    """
    patience = 1.0 if sys.stderr.isatty() else 60.0  # seconds between lines; a log needs few
    bar = tqdm(total=tokens, initial=folder.tokens, unit="tok", unit_scale=True, mininterval=patience, miniters=1)
    sampler.reseed(seed, folder.number)
    opened = time.monotonic()
    try:
        for chat in sampler if folder.tokens < tokens else ():
            if not folder.add(chat):
                sampler.counts["duplicate"] += 1
                continue
            sampler.counts["kept"] += 1
            bar.update(len(chat.tokens))
            done = folder.tokens + folder.waiting >= tokens
            if done or len(folder.chats) >= shard_chats or time.monotonic() - opened >= 60 * shard_minutes:
                bar.write(report(folder.write(), sampler), file=sys.stderr)
                if done:
                    break
                sampler.reseed(seed, folder.number)
                opened = time.monotonic()
    finally:
        bar.write(report(folder.write(), sampler), file=sys.stderr)
        bar.close()


def report(path: Path | None, sampler: ChatSampler) -> str:
    """One line: what was written, and what has been kept and dropped since the start."""
    return f"{path or 'nothing more'} written; " + ", ".join(f"{n} {what}" for what, n in sampler.counts.most_common())


def run(options: argparse.Namespace) -> None:
    """Add shards to a folder with the target that the options name. Raises ValueError for impossible options."""
    if options.tokens < 1:
        raise ValueError(f"--tokens is {options.tokens}; it must be 1 or more.")
    if options.answers < 1:
        raise ValueError(f"--answers is {options.answers}; it must be 1 or more.")
    device = loading.choose_device(options.device)
    source = options.target or loading.default_target()[1]
    model = loading.load_model(source, device, loading.choose_dtype("auto", device)).eval()
    tokenizer = loading.load_tokenizer(source)
    if tokenizer is None:
        raise ValueError(f"{source} has no tokenizer, and chats need its chat template; give a --target that has one.")
    write(model, tokenizer, options)


def write(model: PreTrainedModel, tokenizer: object, options: argparse.Namespace) -> None:
    """Add shards to `options.out` until it holds `options.tokens` tokens; an interrupt keeps what is finished."""
    settings = ChatSettings(slots=options.batch, max_length=options.max_length, max_answer=options.max_answer)
    chat_format = ChatFormat.from_tokenizer(tokenizer)
    folder = ShardFolder(options.out, model.config.vocab_size)
    prompts = None
    if options.prompts is not None:
        prompts = read_prompts(options.prompts, lambda text: tokenizer.encode(text, add_special_tokens=False))
        wanted = [options.answers - folder.answers(chat_format.opening(turns[0])) for turns in prompts]
        prompts = [turns for turns, more in zip(prompts, wanted, strict=True) for _ in range(more)]
    sampler = ChatSampler(LeanLlama(model, settings.slots, settings.max_length), chat_format, settings, prompts)
    # SIGTERM ends the run as ctrl-C does, so that finished chats are written.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        generate(sampler, folder, options.tokens, options.seed)
    finally:
        signal.signal(signal.SIGTERM, before)
