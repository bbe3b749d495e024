"""One round small enough to work out by hand, and its tokens. See `ROUND` for the picture.

    I ── 'm .6 ── ·glad .36 (.6)
      │        └─ ·sorry .12 (.2)
      └─ 'd .3 ── ·love .15 (.5)        pruned: ·be .03 (.1)

top_k 2, depth 2, max_nodes 5: kept 'm, 'd, ·glad, ·sorry, ·love. The target takes 'm, ·glad, then wants ·you.
"""

from eagle2.trace.rounds import ROOT, Check, Round

TOKENS = {
    0: b"I",
    1: b"'m",
    2: b"'d",
    3: b" glad",
    4: b" sorry",
    5: b" love",
    6: b" be",
    7: b" you",
    8: b" think",
}

ROUND = Round(
    index=6,
    prefix_length=37,
    root=0,
    accepted=(0, 2),
    bonus=7,
    committed=(1, 3, 7),
    finish=None,
    drafted=6,
    kept=5,
    token=(1, 2, 3, 4, 5, 6),
    parent=(ROOT, ROOT, 0, 0, 1, 1),
    depth=(1, 1, 2, 2, 2, 2),
    confidence=(0.6, 0.3, 0.6, 0.2, 0.5, 0.1),
    value=(0.6, 0.3, 0.36, 0.12, 0.15, 0.03),
    expanded=(True, True, False, False, False, False),
    slot=(1, 2, 3, 4, 5, None),
    target_probability=(0.8, 0.1, 0.7, 0.1, 0.4, None),
    fate=("accepted", "rejected", "accepted", "rejected", "rejected", "pruned"),
    checks=(
        Check(ROOT, 1, 0.8, 0, (1, 2, 8, 6, 5), (0.8, 0.1, 0.05, 0.02, 0.01)),
        Check(0, 3, 0.7, 2, (3, 4, 8, 6, 5), (0.7, 0.1, 0.05, 0.02, 0.01)),
        Check(2, 7, 0.9, None, (7, 4, 8, 6, 5), (0.9, 0.05, 0.02, 0.01, 0.01)),
    ),
    draft_ms=40.0,
    verify_ms=150.0,
    rest_ms=3.0,
)
