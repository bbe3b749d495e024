"""A round of a recorded run grown again, from the same committed prefix, by the models that made it."""

from __future__ import annotations

from dataclasses import replace

from eagle2.methods import WALK
from eagle2.settings import Settings
from eagle2.trace.rounds import Pair, Round, Trace


def regrow(engine: object, trace: Trace, index: int, settings: Settings) -> Round:
    """Grow round `index` of a recorded run again under `settings`.

    engine: an `Engine` with the models that made the run; sampling and rule are the round's own, so the target's
    choices are the same. At the run's own settings the round comes out as recorded, but for times and rounding;
    "eagle2-auto" decides by the recorded costs, or by the engine's where the run has none. Raises ValueError where the
    engine has other models, the run has no such round, or the settings' method cannot go by the round's rule: what
    rejection sampling emits depends on the draft.
    """
    check_pair(engine, trace.pair)
    if not 0 <= index < len(trace.rounds):
        raise ValueError(f"the run has no round {index + 1}; it has {len(trace.rounds)}")
    run, rule = trace.settings, trace.rounds[index].rule
    if rule != WALK and settings.method.rule(run.sampling.greedy) != rule:
        raise ValueError(
            f"round {index + 1} was verified by rejection sampling, whose tokens depend on the sampled draft; "
            f"grow it again with its own method, {run.policy}, not {settings.policy}"
        )
    if settings.method.needs_costs and trace.costs is not None:
        engine = engine.deciding_by(trace.costs)
    asked = replace(settings, sampling=run.sampling, max_new_tokens=run.max_new_tokens)
    rounds = engine.run(trace.prompt_ids, asked, after=trace.rounds[:index], rule=rule)
    try:
        return next(rounds)
    finally:
        rounds.close()


def check_pair(engine: object, pair: Pair) -> None:
    """Raise ValueError unless the engine has the models of `pair`, of the same revisions where both are known."""
    own = engine.pair
    if (own.target, own.head) != (pair.target, pair.head):
        raise ValueError(
            f"this run was made by {pair.target} with {pair.head}, and {own.target} with {own.head} is loaded; load "
            "the same models to continue it or to redraft its rounds"
        )
    for field in ("target_revision", "head_revision", "vocabulary", "draft_vocabulary"):
        theirs, mine = getattr(pair, field), getattr(own, field)
        if None not in (theirs, mine) and theirs != mine:
            raise ValueError(
                f"this run was made by the same models at another version: its {field.replace('_', ' ')} is {theirs}, "
                f"that of the pair in use is {mine}; load that version to continue the run or to redraft its rounds"
            )
