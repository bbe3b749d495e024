"""One visitor's conversation and the runs in it. Plain data and one live generator; knows no Gradio and no pictures.

A turn is a prompt and the run that answers it. A follow-up turn's prompt is exactly the ids of the turns before, then
the new one. A run can be taken round by round, stopped anywhere and gone on with.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from eagle2.config import AUTO, TreeShape
from eagle2.costs import Costs
from eagle2.trace import Pair, Round, Settings, Trace
from visual.loads import Load

_RUNS = itertools.count(1)


@dataclass
class Turn:
    """A prompt and its rounds so far.

    messages: the chat up to this user turn. effective: the shape after clamping. name: what a recorded run is called,
    None for one made here; recording: its key among the shipped ones. source: the live generator. found: the comparison
    with plain decoding, once it was asked for. costs: the machine's, where the method decides by them.
    """

    prompt_ids: list[int]
    messages: list[dict[str, str]]
    settings: Settings
    pair: Pair
    tokens: dict[int, bytes] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    name: str | None = None
    run: str = field(default_factory=lambda: f"run-{next(_RUNS)}")
    recording: str = ""
    effective: TreeShape | None = None
    costs: Costs | None = None
    source: Iterator[Round] | None = None
    found: object | None = None

    @property
    def ids(self) -> list[int]:
        return self.prompt_ids + [token for r in self.rounds for token in r.committed]

    @property
    def open(self) -> bool:
        """Whether more rounds can come: it is no recording and no stop or cap has ended it."""
        return self.name is None and not (self.rounds and self.rounds[-1].finish)

    @classmethod
    def recorded(cls, trace: Trace, name: str) -> Turn:
        messages = [{"role": role, "content": content} for role, content in trace.messages]
        made = cls(list(trace.prompt_ids), messages, trace.settings, trace.pair, trace.tokens, list(trace.rounds), name)
        made.effective, made.costs = trace.effective, trace.costs
        return made

    def close(self) -> None:
        """Let go of the live generator, if there is one; the run can still be gone on with."""
        source, self.source = self.source, None
        if source is not None:
            source.close()

    def trace(self) -> Trace:
        """The run so far as a record."""
        messages = tuple((turn["role"], turn["content"]) for turn in self.messages)
        rounds = tuple(self.rounds)
        kept = Trace(tuple(self.prompt_ids), self.settings, self.effective, self.pair, {}, rounds, messages, self.costs)
        kept.tokens.update((token, self.tokens[token]) for token in sorted(kept.used_ids()))
        return kept


@dataclass
class Visit:
    """What one browser tab has: its turns, the one that is shown and at which round; whether its run should halt.

    waited: whether it was told that the models are loading. quiet: its status line says something that stays. figured:
    what the open figures were drawn from. owner: whether it proved to be the page's. awaited: the load it began, until
    it was told of its end.
    """

    turns: list[Turn] = field(default_factory=list)
    shown: Turn | None = None
    round: int = 0
    halt: bool = False
    busy: bool = False
    waited: bool = False
    quiet: bool = False
    figured: tuple = ()
    owner: bool = False
    awaited: Load | None = None

    @property
    def last(self) -> Turn | None:
        return self.turns[-1] if self.turns else None

    def turn(self, run: str) -> Turn:
        """The turn of a run's name. Raises ValueError where this visitor has none of that name."""
        for turn in self.turns:
            if turn.run == run:
                return turn
        raise ValueError("that run is not part of this conversation any more")

    def load(self, trace: Trace, name: str) -> Turn:
        """Show a recorded run instead of the conversation so far."""
        self.close()
        self.turns = [Turn.recorded(trace, name)]
        self.shown = self.turns[0]
        return self.shown

    def begin(self, engine: object, prompt: str, system: str, settings: Settings) -> Turn:
        """A new turn: the next of the conversation, or the first where none is going on. Raises ValueError."""
        last = self.last
        turn = {"role": "user", "content": prompt}
        if last is None or last.name is not None or last.pair != engine.pair:
            messages = [{"role": "system", "content": system}] if system.strip() else []
            messages.append(turn)
            ids, turns = engine.encode_chat(messages), []
        else:
            ids = engine.encode_follow_up(last.messages, last.ids, prompt)
            messages = [
                *last.messages,
                {"role": "assistant", "content": engine.decode(last.ids[len(last.prompt_ids) :])},
                turn,
            ]
            turns = self.turns
        made = Turn(ids, messages, settings, engine.pair)
        policy = engine.policy(settings.policy, settings.shape)
        made.effective = policy.shape if policy else None
        made.costs = engine.costs if settings.policy == AUTO else None
        made.source = engine.rounds(ids, settings.shape, settings.sampling, settings.max_new_tokens, settings.policy)
        self.close()
        self.turns = [*turns, made]
        self.shown = made
        return made

    def close(self) -> None:
        """Let go of the live run's generator, if there is one; the run can still be gone on with."""
        for turn in self.turns:
            turn.close()

    def clear(self) -> None:
        self.close()
        self.turns, self.shown = [], None


def advance(turn: Turn, engine: object) -> Round:
    """The next round of an open run, from its generator or, where that is gone, behind the rounds so far."""
    if turn.source is None:
        s = turn.settings
        turn.source = engine.rounds(turn.prompt_ids, s.shape, s.sampling, s.max_new_tokens, s.policy, after=turn.rounds)
    source, turn.source = turn.source, None  # where the round fails, the next try begins behind the rounds so far
    made = next(source)
    if not made.finish:
        turn.source = source
    absorb(turn, made, engine)
    return made


def absorb(turn: Turn, made: Round, engine: object) -> None:
    """Add a round to its turn, with the bytes of the tokens that are new in it."""
    turn.rounds.append(made)
    used = Trace(tuple(turn.prompt_ids), turn.settings, None, turn.pair, {}, (made,)).used_ids()
    turn.tokens.update(engine.spell(used - turn.tokens.keys()))


class Visits:
    """Visitors by session, at most `limit`; the one seen longest ago is forgotten first. Safe across threads."""

    def __init__(self, limit: int = 100) -> None:
        self._limit = limit
        self._visits: OrderedDict[str, Visit] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session: str | None) -> Visit:
        """A session's visit. What comes without a session shares nothing with anybody."""
        if session is None:
            return Visit()
        with self._lock:
            visit = self._visits.setdefault(session, Visit())
            self._visits.move_to_end(session)
            idle = [key for key, other in self._visits.items() if not other.busy and key != session]
            for key in idle[: max(0, len(self._visits) - self._limit)]:
                self._visits.pop(key).close()
            return visit

    def forget(self, session: str) -> None:
        with self._lock:
            visit = self._visits.pop(session, None)
        if visit is not None:
            visit.halt = True
            if not visit.busy:
                visit.close()

    def let_go(self) -> None:
        """Close what runs have going on in their engine, but for those that a round is being made of just now."""
        with self._lock:
            idle = [visit for visit in self._visits.values() if not visit.busy]
        for visit in idle:
            visit.close()

    def __len__(self) -> int:
        return len(self._visits)
