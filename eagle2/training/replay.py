"""What a head would have done on a text its target has already written, without running the target.

A tree changes nothing in the text, so a chat on disk and its features hold all that verification would have found: the
drawn token after any node on the text's own path is the text's next one. The engine runs as always, over a target that
remembers instead of computing. That holds for sampled answers too: noise keyed by position makes a tree follow the text
that plain decoding draws.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from eagle2.decoding.engine import Engine
from eagle2.drafters.eagle import EagleDrafter
from eagle2.models.eagle_head import EagleHead
from eagle2.models.target import Target
from eagle2.settings import TreeShape
from eagle2.trace.rounds import Round


@dataclass
class Place:
    """The position of a replay: the committed tokens before the root."""

    length: int = 0


class Replayed:
    """A `Target` of one chat: ids [n] and features [n, hidden], as `Target.extend` would have returned them.

    Its logits only encode the text's next token, and only along the text; nodes off that path get zeros, which no walk
    reads. Probabilities of the target in rounds made with it therefore mean nothing.
    """

    def __init__(self, target: Target, ids: Sequence[int], features: np.ndarray) -> None:
        self.embed, self.lm_head, self.lm_head_over = target.embed, target.lm_head, target.lm_head_over
        self.vocab_size, self.hidden_size, self.states = target.vocab_size, target.hidden_size, target.states
        self.device, self.dtype = target.device, target.dtype
        self.context_limit = len(ids)
        self.end_ids: frozenset[int] = frozenset()  # the text ends where it ends
        self._ids = torch.as_tensor(np.asarray(ids, dtype=np.int64), device=self.device)
        self._features = torch.as_tensor(np.array(features), device=self.device).to(self.dtype)

    def begin(self) -> Place:
        return Place()

    def depth_limit(self, committed: int) -> int:
        """Levels of draft tokens that the remaining text can judge."""
        return max(len(self._ids) - committed - 1, 0)

    def extend(self, cache: Place, ids: list[int]) -> tuple[Tensor, Tensor]:
        start, cache.length = cache.length, cache.length + len(ids)
        return self._features[start : cache.length], self._next(torch.tensor([cache.length - 1]))[0]

    def verify(self, cache: Place, tokens: Tensor, positions: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
        strayed = (visible & (tokens != self._ids[positions])[None]).any(dim=1)
        logits = self._next(positions).masked_fill(strayed[:, None], 0.0)
        return logits, self._features[positions]

    def commit(self, cache: Place, slots: Tensor) -> None:
        cache.length += len(slots)

    def _next(self, positions: Tensor) -> Tensor:
        """Logits [T, V] that give all probability to the text's token after each of `positions` [T]."""
        logits = torch.zeros(len(positions), self.vocab_size, device=self.device)
        following = self._ids[(positions.to(self.device) + 1).clamp(max=len(self._ids) - 1)]
        return logits.scatter(1, following[:, None], 1.0)


def replay(
    target: Target,
    head: EagleHead,
    chats: Iterable[tuple[np.ndarray, np.ndarray, int]],
    shape: TreeShape,
    max_new_tokens: int,
) -> list[Round]:
    """Rounds of EAGLE-2 over each chat's answer, laid end to end.

    chats: (ids [n], features [n, hidden], index of the first answer token). An answer's last token is only ever a
    bonus, since nothing is known about what follows it.
    """
    rounds: list[Round] = []
    for ids, features, answer_start in chats:
        text = Replayed(target, ids, features)
        engine = Engine(text, EagleDrafter(text, head), live_runs=1)
        prompt = [int(token) for token in ids[:answer_start]]
        rounds += engine.rounds(prompt, shape=shape, max_new_tokens=max_new_tokens)
    return rounds
