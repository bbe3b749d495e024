"""Results as text: a table like the paper's table 1, and where the time of a round went. Pure; no torch."""

from __future__ import annotations

from collections.abc import Sequence

from eagle2.bench.results import Overhead, Phases, Result, overall

NOTE = "speedup over plain decoding / tau (bonus included); * not plain decoding's text"


def table(made: Sequence[Result]) -> str:
    """Methods down, families and their mean across; one block for each temperature."""
    families = list(dict.fromkeys(r.family for r in made))
    blocks = []
    for temperature in dict.fromkeys(r.temperature for r in made):
        cells = {(r.method, r.family): r for r in made if r.temperature == temperature}
        rows = [[f"temperature {temperature:g}", *families, "mean"]]
        for method in dict.fromkeys(method for method, _ in cells):
            row = [method] + [_cell(cells.get((method, family))) for family in families]
            rows.append([*row, "{:.2f}x / {:.2f}".format(*overall(made, method, temperature))])
        blocks.append(_aligned(rows))
    return "\n\n".join([*blocks, NOTE])


def _cell(result: Result | None) -> str:
    if result is None:
        return "-"
    return f"{result.speedup:.2f}x / {result.tau:.2f}{'' if result.lossless else ' *'}"


def time_table(made: Sequence[Phases]) -> str:
    """Milliseconds of a round by phase, for each method and temperature."""
    heading = ["", "temperature", "nodes", "prefill ms", "draft ms", "verify ms", "rest ms", "outside", "near-ties"]
    rows = [heading] + [
        [
            phase.method,
            f"{phase.temperature:g}",
            f"{phase.nodes:.1f}",
            *(f"{ms:.1f}" for ms in (phase.prefill_ms, phase.draft_ms, phase.verify_ms, phase.rest_ms)),
            f"{phase.outside:.1%}",
            str(phase.near_ties),
        ]
        for phase in made
    ]
    return _aligned(rows) + "\nper round: nodes verified, medians of milliseconds, share outside draft and verify"


def overhead_table(made: Sequence[Overhead], nodes: int, tree_ms: float) -> str:
    """What our own work costs. tree_ms: of selecting and masking a tree of so many nodes."""
    rows = [["recording on", "outside the models", "longer than with recording off"]]
    rows += [[cost.method, f"{cost.outside:.1%}", f"{cost.recording:+.1%}"] for cost in made]
    large = f"a tree of {nodes:,} nodes is selected, laid out and masked in {tree_ms:.1f} ms"
    return "\n".join([_aligned(rows), large] if made else [large])


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest entry; the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        first, *others = (
            entry.ljust(w) if i == 0 else entry.rjust(w) for i, (entry, w) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join(lines)
