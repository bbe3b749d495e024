"""What a head turned out to be, in a table of plain words: printed when one is loaded by name."""

from __future__ import annotations

import sys

from eagle2.models.eagle3_head import Eagle3Head
from eagle2.models.eagle_head import EagleHead


def found(head: EagleHead | Eagle3Head, vocab_size: int) -> list[tuple[str, str]]:
    """Rows (what, how it is) of a head for a target of `vocab_size` tokens."""
    third = isinstance(head, Eagle3Head)
    config = head.config.layer if third else head.config
    biases = [
        name
        for name, has in (
            ("fc", config.fc_bias),
            ("q, k and v", config.qkv_bias),
            ("o", config.o_bias),
            ("MLP", config.mlp_bias),
        )
        if has
    ]
    parameters = sum(parameter.numel() for parameter in head.parameters())
    rows = [
        ("kind", "EAGLE-3" if third else "EAGLE-1/2"),
        ("features", _features(head) if third else "the target's last, after its final norm"),
        ("hidden size", f"{config.hidden_size}"),
        ("attention", f"{config.heads} heads of width {config.head_dim}, {config.kv_heads} key-value heads"),
        ("biases", ", ".join(biases) or "none"),
        ("embeddings", "its own" if config.own_embeddings else "the target's"),
        ("LM head", "its own" if head.lm_head is not None else "the target's"),
        ("vocabulary", f"{config.draft_vocab_size or vocab_size:,} of {vocab_size:,} tokens"),
        ("rope", ", ".join(f"{name} {value}" for name, value in config.rope.items())),
        ("positions", f"made for {config.max_positions:,}"),
        ("parameters", f"{parameters / 1e6:,.1f} million, {str(next(head.parameters()).dtype).removeprefix('torch.')}"),
    ]
    if config.window is not None:
        rows.insert(4, ("window", f"each row sees {config.window} positions, its own among them"))
    return rows + [("note", note) for note in head.notes]


def _features(head: Eagle3Head) -> str:
    config = head.config
    norms = [
        name
        for name, has in (
            ("each state normed before fc", config.fc_norm),
            ("normed before fc", config.norm_before_fc),
            ("normed residual", config.norm_before_residual),
            ("its output goes in again normed", config.norm_output),
        )
        if has
    ]
    if not config.fuses:
        return "; ".join(["the target's last, after its final norm", *norms])
    states = ", ".join(map(str, config.states))
    return "; ".join([f"hidden states {states} of the target ({config.states_source})", *norms])


def announce(name: str, head: EagleHead | Eagle3Head, vocab_size: int) -> None:
    """Print the table on stderr, for those who brought the head."""
    print(table(f"head {name}", found(head, vocab_size)), file=sys.stderr, flush=True)


def table(title: str, rows: list[tuple[str, str]]) -> str:
    """Rows under a title, in aligned columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join([title, *(f"  {name:<{width}}  {value}" for name, value in rows)])
