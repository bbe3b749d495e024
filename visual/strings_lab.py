"""The strings of the laboratory: figures over a session, what if, side by side."""

from __future__ import annotations

LAB_ENGLISH = {
    # a training run's log
    "training.tokens": "tokens seen",
    "training.loss": "cross-entropy (nats)",
    "training.agreement": "agreement, held out",
    "training.step": "draft step {step}",
    # the paper's worked examples
    "recording.figure-7": "The paper's figure 7, by hand: “It is a good”",
    "recording.figure-4": "The paper's figure 4, by hand: “10+2”, two candidates",
    "recording.figure-4-equals-eagle": "Figure 4: “10+2=” with EAGLE's static tree",
    "recording.figure-4-equals-eagle2": "Figure 4: “10+2=” with EAGLE-2",
    # figures over a session
    "session.confidence": "confidence c",
    "session.drawn_share": "share the target drew",
    "session.calibrated": "calibrated",
    "session.reliability_bars": "drafted children of visited nodes",
    "session.count": "{drawn} of {count}",
    "session.position": "position in the tree: child ranks from the root",
    "session.position_bars": "all rounds",
    "session.position_runs": "each run",
    "session.right_share": "share of rounds where it was right",
    "session.predicted": "predicted: 1 + sum of kept values",
    "session.tokens": "tokens per round, bonus included",
    "session.rounds": "rounds",
    "session.means": "mean of the rounds around",
    "session.max_nodes": "max_nodes kept of the recorded pools",
    "session.would": "accepted + bonus",
    "session.foreseen": "predicted by the values",
    "session.as_recorded": "as recorded: {kept}",
    "session.value": "value V",
    "session.node_share": "share of the nodes",
    "session.fate.accepted": "accepted ({count})",
    "session.fate.rejected": "kept, rejected ({count})",
    "session.fate.pruned": "pruned ({count})",
}
