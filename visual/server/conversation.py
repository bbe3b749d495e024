"""One visitor's conversation and the runs in it. Plain data and one live generator; knows no Gradio and no pictures.

A turn is a prompt and the run that answers it. A follow-up turn's prompt is exactly the ids of the turns before, then
the new one. A run can be taken round by round, stopped anywhere and gone on with.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from eagle2.analysis.regrow import check_pair
from eagle2.decoding.budget import Costs
from eagle2.settings import Settings, TreeShape
from eagle2.trace.rounds import Pair, Round, Trace
from visual.server.loads import Load

MOST_REPLACED = 16
"""Broken characters of an answer's beginning that are looked for: each is another place to try."""
_RUNS = itertools.count(1)


@dataclass
class Turn:
    """A prompt and its rounds so far.

    messages: the chat up to this user turn. effective: the shape after clamping. name: a recorded run's file or key,
    None for a run made here; recording: its key among the shipped ones. source: the live generator. found: the
    comparison with plain decoding, once it was asked for. costs: the machine's, where the method decides by them.
    begun: how many of the prompt's last ids belong to the answer already: the text kept of a run one went back in.
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
    begun: int = 0

    @property
    def asked(self) -> list[dict[str, str]]:
        """The chat up to the user's words, without the answer's given beginning."""
        return self.messages[:-1] if self._answers else self.messages

    @property
    def answer_begun(self) -> str:
        """The answer's given beginning, "" where it has none."""
        return self.messages[-1]["content"] if self._answers else ""

    @property
    def _answers(self) -> bool:
        return bool(self.messages) and self.messages[-1]["role"] == "assistant"

    @property
    def answer_ids(self) -> list[int]:
        """The answer, its given beginning included."""
        return self.ids[len(self.prompt_ids) - self.begun :]

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
        made.begun = _spelling(made.answer_begun, trace)
        return made

    def close(self) -> None:
        """Let go of the live generator, if there is one; the run can still be gone on with."""
        source, self.source = self.source, None
        if source is not None:
            source.close()

    def ready(self, engine: object) -> None:
        """Have the generator that goes on behind the rounds so far. Raises ValueError where the engine cannot."""
        s = self.settings
        policy = engine.policy(s.tree, s.shape, s.drafter)
        self.effective = policy.shape if policy else None
        self.costs = engine.costs_with(s.drafter) if s.method.needs_costs else None
        self.source = rounds_of(self, engine)

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
    beside: the two runs of a comparison, () before the first.
    latest: by tab, what was asked for there last; an answer to anything earlier comes too late.
    futures: of the last turn, in the order they were begun and the present one among them; () where there is no other.
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
    beside: tuple[Turn, ...] = ()
    latest: dict[str, object] = field(default_factory=dict)
    futures: tuple[Turn, ...] = ()

    @property
    def last(self) -> Turn | None:
        return self.turns[-1] if self.turns else None

    def turn(self, run: str) -> Turn:
        """The turn of a run's name. Raises ValueError where this visitor has none of that name."""
        for turn in self.turns:
            if turn.run == run:
                return turn
        raise ValueError("that run is no longer part of this conversation")

    def load(self, trace: Trace, name: str) -> Turn:
        """Show a recorded run instead of the conversation so far."""
        self.close()
        self.futures = ()
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
            ids = engine.encode_follow_up(last.asked, last.ids, prompt)
            messages = [*last.asked, {"role": "assistant", "content": engine.decode(last.answer_ids)}, turn]
            turns = self.turns
        made = Turn(ids, messages, settings, engine.pair)
        made.ready(engine)
        self.close()
        self.futures = ()
        self.turns = [*turns, made]
        self.shown = made
        return made

    def again(self, settings: Settings, engine: object) -> Turn:
        """Begin the shown run's prompt once more under other settings; what it was stays among `futures`, if made here.

        Raises ValueError where other turns follow it, where it is a prompt of another target's tokens, and where the
        engine cannot do this.
        """
        was = self.shown
        if was is not self.last:
            raise ValueError("other turns follow that run, so it cannot be run again; open the last one, or a new chat")
        if was.pair.target != engine.pair.target:
            raise ValueError(
                f"this run was made by {was.pair.target} and {engine.pair.target} is loaded; write a prompt for it"
            )
        made = Turn(was.prompt_ids, was.messages, settings, engine.pair, dict(was.tokens), begun=was.begun)
        made.ready(engine)
        self.close()
        self.futures = (*(self.futures or (was,)), made) if was.name is None else ()
        return self._put(made)

    def back(self, index: int, text: str | None, settings: Settings, engine: object) -> Turn:
        """Begin a run that goes on from the last turn's answer as it was after round `index`, or from `text` instead.

        A record holds one prompt under one set of settings. So what is kept of the answer becomes the end of the new
        run's prompt: each record stays true of all its rounds, and what is measured was made under the new settings. An
        end token is not kept. The run as it was stays among `futures`. Raises ValueError where the engine has other
        models or cannot do this.
        """
        last = self.turns[-1]
        check_pair(engine, last.pair)
        asked, given = last.prompt_ids[: len(last.prompt_ids) - last.begun], last.answer_ids[: last.begun]
        kept = [*given, *(token for r in last.rounds[: index + 1] for token in r.committed)]
        while kept and kept[-1] in engine.target.end_ids:
            kept.pop()
        if text is None:
            text = engine.decode(kept)
        else:
            kept = engine.encode_answer(text)
        messages = [*last.asked, *([{"role": "assistant", "content": text}] if kept else [])]
        made = Turn([*asked, *kept], messages, settings, last.pair, dict(last.tokens), begun=len(kept))
        made.ready(engine)
        self.close()
        self.futures = (*(self.futures or (last,)), made)
        return self._put(made)

    def switch(self, run: str) -> Turn:
        """Show the future of that name instead of the present one. Raises ValueError where there is none."""
        for turn in self.futures:
            if turn.run == run:
                self.close()
                return self._put(turn)
        raise ValueError("that continuation is no longer part of this conversation")

    def _put(self, turn: Turn) -> Turn:
        self.turns = [*self.turns[:-1], turn]
        self.shown = turn
        return turn

    def close(self) -> None:
        """Let go of the live run's generator, if there is one; the run can still be gone on with."""
        for turn in self.turns:
            turn.close()

    def clear(self) -> None:
        self.close()
        self.turns, self.futures, self.shown = [], (), None


def _spelling(text: str, trace: Trace) -> int:
    """How many of the prompt's last ids spell `text`; 0 where it is empty or none do, as in a file written by hand."""
    wanted = (text, f" {text}")  # a SentencePiece tokenizer puts a blank before the first word
    most = len(wanted[1].encode())
    # Half of a character that was cut is replaced in both alike, by 3 bytes where there was 1 or more.
    least = most - 1 - 2 * min(text.count("\N{REPLACEMENT CHARACTER}"), MOST_REPLACED)
    spelled: list[bytes] = []
    size = 0
    for token in reversed(trace.prompt_ids if text else ()):
        spelled.append(trace.tokens[token])
        size += len(spelled[-1])
        if size > most:
            break
        if size >= least and spelled[-1] and b"".join(reversed(spelled)).decode(errors="replace") in wanted:
            return len(spelled)
    return 0


def advance(turn: Turn, engine: object) -> Round:
    """The next round of an open run, from its generator or, where that is gone, behind the rounds so far."""
    if turn.source is None:
        turn.source = rounds_of(turn, engine)
    source, turn.source = turn.source, None  # where the round fails, the next try begins behind the rounds so far
    made = next(source)
    if not made.finish:
        turn.source = source
    absorb(turn, made, engine)
    return made


def rounds_of(turn: Turn, engine: object) -> Iterator[Round]:
    """The rounds still to come of an open run."""
    return engine.run(turn.prompt_ids, turn.settings, after=turn.rounds)


def absorb(turn: Turn, made: Round, engine: object) -> None:
    """Add a round to its turn, with the bytes of the tokens that are new in it."""
    turn.found = None  # it was of the shorter text
    turn.rounds.append(made)
    used = Trace(tuple(turn.prompt_ids), turn.settings, None, turn.pair, {}, (made,)).used_ids()
    turn.tokens.update(engine.spell(used - turn.tokens.keys()))
