"""Methods as combinations: who guesses (a drafter), and which guesses are kept (a tree policy). No torch, no models.

Every method's name is a preset of both; drafters and policies combine freely beside that, as far as they can.
"""

from __future__ import annotations

from eagle2.settings import METHODS, STATIC

HEAD, DRAFT_MODEL, LOOKUP = "head", "draft-model", "ngram"
DRAFTERS = (HEAD, DRAFT_MODEL, LOOKUP)
"""The EAGLE head; an independent draft model; n-gram lookup in the text so far."""

POLICIES = ("chain", "eagle", "eagle2", "eagle2-auto", "eagle2-no-value", "eagle2-no-rerank", "eagle2-no-both")
"""The methods that are tree policies; as methods they take the head or, where there is none, the draft model."""

CHAIN_OF = {LOOKUP: "ngram", DRAFT_MODEL: "sps"}
"""The methods that bring their own drafter: what they make of it is a chain."""


def combine(policy: str, drafter: str | None = None) -> tuple[str, str | None]:
    """A combination by its one name: the method, and the drafter where that is not the method's own.

    policy: a method's name, or "static". drafter: one of `DRAFTERS`, or None for the method's own. Raises ValueError,
    in one sentence, for what is unknown or cannot be combined.
    """
    if policy not in (*METHODS, STATIC):
        raise ValueError(f"policy {policy!r} is unknown; choose one of {', '.join((*METHODS, STATIC))}")
    if drafter is None:
        return policy, None
    if drafter not in DRAFTERS:
        raise ValueError(f"drafter {drafter!r} is unknown; choose one of {', '.join(DRAFTERS)}")
    if policy == "plain":
        raise ValueError("plain decoding drafts nothing, so it takes no drafter; choose another policy or leave it out")
    own = drafter_of(policy)
    if own not in (None, drafter):
        raise ValueError(f"method {policy} is a chain drafted by {own}; for one by {drafter} choose policy chain")
    if drafter == LOOKUP and policy in ("eagle", STATIC):
        raise ValueError(
            "prompt lookup guesses one continuation, which fills no static tree; choose chain or an eagle2 policy"
        )
    if own == drafter or (policy == "chain" and drafter in CHAIN_OF):
        return CHAIN_OF[drafter], None
    return policy, drafter


def drafter_of(method: str, drafter: str | None = None) -> str | None:
    """Whose guesses a combination takes; None where it takes the head's or, without one, the draft model's."""
    return drafter or next((who for who, name in CHAIN_OF.items() if name == method), None)
