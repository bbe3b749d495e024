"""`python -m eagle2 train`: from chats to a head, resumable. Reads like the recipe in README.md here."""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm
from transformers import PreTrainedModel

from eagle2.fingerprint import fingerprint
from eagle2.loading import load as loading
from eagle2.models.eagle_head import EagleHead
from eagle2.training import features
from eagle2.training.corpus import HELD_OUT, Batch, Corpus, answers
from eagle2.training.data import chat_files, load_chats
from eagle2.training.export import save_head
from eagle2.training.objective import Objective, Weights
from eagle2.training.options import TrainSettings
from eagle2.training.start import begin_from, linear_start, new_head, take_over

TOLD_STEPS = 5
"""Draft steps whose agreement is reported; more than are trained, since trees go deeper."""
START_CHATS = 512
"""Chats the linear start is solved from; it has 0.7 million unknowns, so more change little."""


@dataclass
class Progress:
    """How far training has come. minutes: of training alone, evaluations and earlier sessions' idle time left out."""

    step: int = 0
    tokens: int = 0
    epoch: int = 0
    batch: int = 0
    minutes: float = 0.0


class Trainer:
    """Head, optimizer and progress; what `save` writes is all that resuming needs.

    origin: names and fingerprints of what the run was started with, beside the settings; resuming needs the same.
    """

    def __init__(
        self,
        settings: TrainSettings,
        head: EagleHead,
        objective: Objective,
        corpus: Corpus,
        origin: dict[str, str] | None = None,
    ) -> None:
        self.settings, self.head, self.objective, self.corpus = settings, head, objective, corpus
        self.origin = origin or {}
        matrices = [p for p in head.parameters() if p.dim() == 2]
        vectors = [p for p in head.parameters() if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.95))
        self.progress = Progress()

    def share(self) -> float:
        """The part of the budget that is used up, 0 to 1."""
        done, budget = (
            (self.progress.step, self.settings.steps)
            if self.settings.steps
            else (self.progress.minutes, self.settings.minutes)
        )
        return min(1.0, done / budget)

    def run(self) -> Iterator[dict]:
        """Train to the end of the budget. Yields a line for the log after every step, and one for every evaluation,
        where there are chats to evaluate on. Raises ValueError where there are none to train on.
        """
        if not self.corpus.train:
            raise ValueError(
                f"all chats are held out (one prompt in {HELD_OUT} is), or there are none; give more prompts"
            )
        device = next(self.head.parameters()).device
        while self.share() < 1:
            began = time.monotonic()
            for batch in self._rest_of_epoch():
                try:
                    loss = self.step(batch.to(device))
                except torch.OutOfMemoryError as error:
                    size = f"a step of {batch.ids.numel():,} tokens"
                    raise MemoryError(f"{size} does not fit on {device}; give a smaller --batch-tokens") from error
                self.progress.minutes += (time.monotonic() - began) / 60
                yield {"step": self.progress.step, "tokens": self.progress.tokens, "share": self.share(), "loss": loss}
                due = self.progress.step % self.settings.evaluate_every == 0 or self.share() >= 1
                if due and self.corpus.held_out:
                    yield self.evaluate()
                if self.share() >= 1:
                    return
                began = time.monotonic()
            self.progress.epoch, self.progress.batch = self.progress.epoch + 1, 0

    def _rest_of_epoch(self) -> Iterator[Batch]:
        corpus, progress, settings = self.corpus, self.progress, self.settings
        seed = settings.seed + 1_000 * progress.epoch
        batches = corpus.batches(corpus.train, settings.batch_tokens, seed, settings.prompts)
        for place, batch in enumerate(batches):
            if place >= progress.batch:
                progress.batch = place + 1
                yield batch

    def step(self, batch: Batch) -> list[float]:
        """One step of the optimizer. Returns the cross-entropy of each draft step, in nats."""
        settings, share = self.settings, self.share()
        warm = min(1.0, (self.progress.step + 1) / settings.warm_up)
        cosine = 0.02 + 0.98 * (1 + math.cos(math.pi * share)) / 2
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * warm * cosine
        draft_steps = 1 if share < settings.one_step else settings.draft_steps
        loss, told = self.objective.loss(self.head, batch, draft_steps, settings.noise)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"the loss is {loss.item()} at step {self.progress.step}; try a lower rate")
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.head.parameters(), settings.clip)
        self.optimizer.step()
        self.progress.step += 1
        self.progress.tokens += batch.tokens
        return told

    def evaluate(self) -> dict:
        """Agreement of first choices on the held-out chats, for each draft step."""
        device = next(self.head.parameters()).device
        sums = torch.zeros(2, TOLD_STEPS, device=device)
        for batch in self.corpus.batches(self.corpus.held_out, self.settings.batch_tokens, seed=0):
            sums += torch.stack(self.objective.agreement(self.head, batch.to(device), TOLD_STEPS))
        agreement = [round(float(share), 4) for share in sums[0] / sums[1].clamp(min=1)]
        return {**asdict(self.progress), "held_out": agreement}

    def save(self, path: Path) -> None:
        """All of it under its name, or nothing."""
        temporary = path.with_suffix(".tmp")
        state = {"settings": asdict(self.settings), "origin": self.origin, "progress": asdict(self.progress)}
        torch.save({**state, "head": self.head.state_dict(), "optimizer": self.optimizer.state_dict()}, temporary)
        os.replace(temporary, path)

    def restore(self, path: Path) -> None:
        """Resume from a saved state. Raises ValueError if it was started with other settings, chats or another head."""
        state = torch.load(path, map_location="cpu", weights_only=True)
        check_settings(path, state["settings"], self.settings)
        for name, value in self.origin.items():
            if state.get("origin", {}).get(name) != value:
                raise ValueError(
                    f"{path} was begun with other {name}; give the same to go on, or another --out to begin anew "
                    "(--head goes on from a finished head)"
                )
        self.head.load_state_dict(state["head"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = Progress(**state["progress"])


def check_settings(path: Path, begun: dict, settings: TrainSettings) -> None:
    """Raise ValueError where the run that is saved at `path` was begun with other settings."""
    for name, value in asdict(settings).items():
        before = begun.get(name, "not a setting")
        if before != value and name not in ("minutes", "steps", "evaluate_every"):
            raise ValueError(
                f"{path} was begun with {name} = {before}, now it is {value}; "
                "give the same settings to go on, or another --out to begin anew"
            )


def most_frequent(tokens: np.ndarray, vocab_size: int, count: int) -> Tensor:
    """The `count` ids that occur most often in `tokens`, int64 [count] ascending; among equals the lower id is taken.

    Raises ValueError where the vocabulary is smaller.
    """
    if not 1 <= count <= vocab_size:
        raise ValueError(f"a vocabulary of {count} tokens was asked for; this target allows 1 to {vocab_size}")
    order = np.argsort(-np.bincount(tokens, minlength=vocab_size), kind="stable")
    return torch.from_numpy(np.sort(order[:count]))


def run(options: argparse.Namespace) -> None:
    """Train a head with the target, chats and settings that the options name, resuming what `options.out` holds.

    Raises ValueError for options that cannot be.
    """
    settings = TrainSettings.from_options(options)
    device = loading.choose_device(options.device)
    source = options.target or loading.default_target()[1]
    model = loading.load_model(source, device, loading.choose_dtype("auto", device)).eval().requires_grad_(False)
    chats = load_chats([path for given in options.data for path in chat_files(given)], model.config.vocab_size)
    given = begin_from(options.head, model) if options.head else None
    refuse_early(model, settings, options.out, given)
    corpus = Corpus(chats, features.compute(model, list(chats), options.out / "features.f16"))
    if given is not None:
        note = "the given head may have been trained on chats that are held out here; judge it by `measure`"
        print(f"note: {note}", file=sys.stderr)
    train(model, corpus, settings, options.out, given)


def refuse_early(model: PreTrainedModel, settings: TrainSettings, out: Path, given: EagleHead | None) -> None:
    """Raise ValueError now for what would be refused only after the features, which can take long, are computed."""
    most_frequent(np.zeros(0, np.int64), model.config.vocab_size, settings.vocabulary or model.config.vocab_size)
    if getattr(model.get_output_embeddings(), "bias", None) is not None:
        raise ValueError("the target's LM head has a bias, which training does not know; give another target")
    if given is not None:
        take_over(new_head(model, settings, None).to(model.device), given)
    state = out / "state.pt"
    if state.is_file():
        check_settings(state, torch.load(state, map_location="cpu", weights_only=True)["settings"], settings)


def train(
    model: PreTrainedModel, corpus: Corpus, settings: TrainSettings, out: Path, given: EagleHead | None = None
) -> EagleHead:
    """The head after the whole budget. Writes to `out`: state.pt to resume from, log.jsonl, and the head itself.

    given: a head to begin from instead of the linear start; its draft vocabulary is not taken over. Raises ValueError
    where its sizes are others.
    """
    torch.manual_seed(settings.seed)
    device, vocab = model.device, model.config.vocab_size
    learnt = answers(corpus.chats)
    draft_ids = most_frequent(learnt, vocab, settings.vocabulary or vocab)
    common = most_frequent(learnt, vocab, min(settings.loss_vocabulary, len(draft_ids)))
    rest = draft_ids[~torch.isin(draft_ids, common)]
    with torch.no_grad():  # of the module, not its weights: some families scale them
        embedding = model.get_input_embeddings()(torch.arange(vocab, device=device)).float()
    lm_head = model.get_output_embeddings().weight.detach().float()
    head = new_head(model, settings, draft_ids if settings.vocabulary else None).to(device)
    weights = Weights(settings.token_weight)
    objective = Objective(embedding, lm_head, common.to(device), rest.to(device), weights)
    weights_given = [] if given is None else given.parameters()
    origin = {
        "embeddings": fingerprint([embedding.cpu().numpy().tobytes()]),
        "chats": fingerprint(part.tobytes() for part in (corpus.chats.tokens, corpus.chats.length)),
        "weights to continue from": fingerprint(p.detach().cpu().numpy().tobytes() for p in weights_given),
    }
    trainer = Trainer(settings, head, objective, corpus, origin)
    out.mkdir(parents=True, exist_ok=True)
    state, log = out / "state.pt", out / "log.jsonl"
    if state.is_file():
        trainer.restore(state)
        drop_later_lines(log, trainer.progress.step)
    else:
        if given is None:
            linear_start(head, embedding, map(corpus.chat, corpus.train[:START_CHATS]))
        else:
            take_over(head, given)
        log.unlink(missing_ok=True)
    counted = f"{corpus.tokens(corpus.train):,} tokens to train on, {corpus.tokens(corpus.held_out):,} held out"
    print(f"{len(corpus.train) + len(corpus.held_out):,} chats: {counted}", file=sys.stderr)
    saved = time.monotonic()
    with open(log, "a", encoding="utf-8") as lines, _bar(trainer) as bar:
        for line in trainer.run():
            lines.write(json.dumps(line) + "\n")
            if "held_out" in line:
                lines.flush()
                bar.write(f"step {line['step']}: held-out agreement by draft step {line['held_out']}", file=sys.stderr)
            else:
                bar.set_postfix_str(f"cross-entropy {' '.join(f'{nats:.2f}' for nats in line['loss'])}")
                bar.update(round(1000 * line["share"]) / 10 - bar.n)
            if time.monotonic() - saved > 60 * settings.save_minutes:
                lines.flush()  # the log never lacks a step that the state has
                trainer.save(state)
                saved = time.monotonic()
    trainer.save(state)
    save_head(head, out / "head")
    return head


def drop_later_lines(log: Path, step: int) -> None:
    """Leave out of the log what a run did after its last save: it is done again."""
    if log.is_file():
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        log.write_text("".join(kept), encoding="utf-8")


def _bar(trainer: Trainer) -> tqdm:
    patience = 1.0 if sys.stderr.isatty() else 60.0
    return tqdm(total=100.0, initial=round(100 * trainer.share(), 1), unit="%", mininterval=patience, desc="training")
