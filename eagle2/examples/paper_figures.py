"""The paper's worked examples (figures 4 and 7) as exact runs, for the page and for the tests. No model, no torch.

From the paper: the tokens, the shapes of the trees, which nodes each method keeps, and in figure 7 every value that can
be read. Ours, since no figure gives them: figure 4's confidences, figure 7's for "be" and "nice", and everything the
target says. Values are products of confidences down the tree, written out so that each can be checked by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eagle2.settings import Settings, TreeShape
from eagle2.trace import files as trace_files
from eagle2.trace.rounds import ROOT, Check, Pair, Round, Trace

PAIR = Pair("worked example", "the paper's figures", device="by", dtype="hand")

NOTE_7 = (
    "Figure 7 of the EAGLE-2 paper, worked out by hand. The figure does not show what the target says, nor the "
    "confidences of “be” and “nice”: those are ours."
)
NOTE_4 = (
    "Figure 4 of the EAGLE-2 paper, worked out by hand. The figure shows the candidates; the numbers and what the "
    "target says are ours."
)

# token, parent, confidence, value, fed to the drafter, the target's probability (kept nodes only)
Row = tuple[str, int, float, float, bool, float | None]

FIGURE_7: tuple[Row, ...] = (
    (" is", ROOT, 0.6, 0.6, True, 0.7),
    (" has", ROOT, 0.2, 0.2, True, 0.1),
    (" a", 0, 0.8, 0.48, True, 0.6),
    (" the", 0, 0.1, 0.06, False, 0.2),
    (" to", 1, 0.7, 0.14, True, 0.5),
    (" a", 1, 0.1, 0.02, False, None),
    (" good", 2, 0.7, 0.336, False, 0.5),
    (" nice", 2, 0.1, 0.048, False, None),
    (" be", 4, 0.7, 0.098, False, 0.6),
    (" do", 4, 0.2, 0.028, False, None),
)
TEN_PLUS_TWO: tuple[Row, ...] = (
    ("=", ROOT, 0.5, 0.5, True, 0.6),
    ("+", ROOT, 0.3, 0.3, True, 0.2),
    ("1", 0, 0.5, 0.25, False, None),
    ("?", 0, 0.2, 0.1, False, None),
    ("1", 1, 0.4, 0.12, False, None),
    ("3", 1, 0.3, 0.09, False, None),
)
EQUALS_BY_EAGLE: tuple[Row, ...] = (
    ("1", ROOT, 0.9, 0.9, False, 0.95),
    ("3", ROOT, 0.05, 0.05, False, 0.02),
)
EQUALS_BY_EAGLE_2: tuple[Row, ...] = (
    ("1", ROOT, 0.9, 0.9, True, 0.95),
    ("3", ROOT, 0.05, 0.05, True, None),
    ("2", 0, 0.9, 0.81, False, 0.95),
    ("3", 0, 0.05, 0.045, False, None),
    ("1", 1, 0.4, 0.02, False, None),
    ("2", 1, 0.2, 0.01, False, None),
)

# What the target draws at each visited node, with its probability, then what else it thought of.
Said = tuple[tuple[str, float], ...]


def examples() -> dict[str, Trace]:
    """Every example by the name of its file."""
    dynamic = Settings("eagle2", TreeShape(2, 2, 2))
    static = Settings("static", TreeShape(2, 1, 2), paths=((0,), (1,)))
    said_7 = (
        ((" is", 0.7), (" has", 0.1), (" was", 0.05)),
        ((" a", 0.6), (" the", 0.2), (" not", 0.05)),
        ((" good", 0.5), (" nice", 0.2), (" great", 0.1)),
        ((" idea", 0.4), (" thing", 0.2), (" day", 0.1)),
    )
    said_2 = (("=", 0.6), ("+", 0.2), ("?", 0.1)), (("1", 0.9), ("?", 0.05), ("3", 0.02))
    said_one = (("1", 0.95), ("3", 0.02), ("?", 0.01))
    said_two = (("2", 0.95), ("3", 0.02), ("1", 0.01))
    said_end = ((".", 0.8), ("!", 0.1), ("0", 0.05))
    return {
        "figure-7": _run(NOTE_7, "It", FIGURE_7, (0, 2, 6), said_7, Settings("eagle2", TreeShape(2, 3, 7))),
        "figure-4": _run(NOTE_4, "10+2", TEN_PLUS_TWO, (0,), said_2, dynamic),
        "figure-4-equals-eagle": _run(NOTE_4, "10+2=", EQUALS_BY_EAGLE, (0,), (said_one, said_two), static),
        "figure-4-equals-eagle2": _run(
            NOTE_4, "10+2=", EQUALS_BY_EAGLE_2, (0, 2), (said_one, said_two, said_end), dynamic
        ),
    }


def write(folder: Path) -> Iterator[Path]:
    """Every example as a file of its own."""
    for name, trace in examples().items():
        path = folder / f"{name}.json.gz"
        trace_files.save(trace, path)
        yield path


def _run(
    note: str, text: str, rows: tuple[Row, ...], accepted: tuple[int, ...], said: tuple[Said, ...], settings: Settings
) -> Trace:
    """A run of one round. note: what the chat shows. text: up to the root, "It", or "10" and single characters."""
    *before, root = "<s>", *((text,) if text.isalpha() else ("10", *text[2:]))
    spellings = dict.fromkeys([*before, root, *(row[0] for row in rows), *(text for step in said for text, _ in step)])
    ids = {text: token for token, text in enumerate(spellings)}
    texts, parents, confidences, values, fed, probabilities = zip(*rows, strict=True)
    depth: list[int] = []
    for parent in parents:
        depth.append(1 if parent == ROOT else depth[parent] + 1)
    kept = [node for node, probability in enumerate(probabilities) if probability is not None]
    drawn = [step[0][0] for step in said]
    one = Round(
        index=0,
        prefix_length=len(before),
        root=ids[root],
        accepted=accepted,
        bonus=ids[drawn[-1]],
        committed=(ids[root], *(ids[text] for text in drawn)),
        finish="length",
        drafted=len(rows),
        kept=len(kept),
        token=tuple(ids[text] for text in texts),
        parent=parents,
        depth=tuple(depth),
        confidence=confidences,
        value=values,
        expanded=fed,
        slot=tuple(kept.index(node) + 1 if node in kept else None for node in range(len(rows))),
        target_probability=probabilities,
        fate=tuple(
            "accepted" if node in accepted else "rejected" if node in kept else "pruned" for node in range(len(rows))
        ),
        checks=tuple(
            Check(node, ids[step[0][0]], 1.0, child, tuple(ids[text] for text, _ in step), tuple(p for _, p in step))
            for node, child, step in zip((ROOT, *accepted), (*accepted, None), said, strict=True)
        ),
    )
    return Trace(
        prompt_ids=tuple(ids[text] for text in before),
        settings=settings,
        effective=settings.shape,
        pair=PAIR,
        tokens={token: text.encode() for text, token in ids.items()},
        rounds=(one,),
        messages=(("user", note), ("assistant", text.removesuffix(root))),
    )
