"""Every string a reader sees, by key, one table per language. Functions look strings up; none is written elsewhere.

`{name}` is filled in by `say` in Python and by `fill` in the browser. Plural forms are pairs: key "…_one", "…_many".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from visual.strings_lab import LAB_ENGLISH
from visual.strings_lesson import LESSON_ENGLISH
from visual.strings_page import PAGE_ENGLISH
from visual.strings_pair import PAIR_ENGLISH
from visual.strings_tree import TREE_ENGLISH
from visual.strings_zh import CHINESE

ENGLISH: Mapping[str, str] = MappingProxyType(
    {
        # heading
        "heading.round": "Round {round} of {rounds}",
        "heading.so_far": "Round {round} of {rounds} so far",
        "heading.outcome": "{accepted} accepted + 1 bonus",
        "heading.outcome_cut": "{accepted} accepted + 1 bonus, {dropped} dropped at the end",
        "heading.prefill_only": "ended by the prefill's own token",
        "heading.plain": "no draft · 1 token from the target",
        "heading.facts": "{drafted} drafted · {kept} verified",
        "heading.facts_plain": "after {prefix} tokens",
        "heading.empty": "No round yet",
        "heading.live": "generating",
        "heading.finish.stop": "ended at a stop",
        "heading.finish.length": "ended at the length limit",
        # empty states
        "empty.tree": "The draft tree appears here, one round at a time.",
        "empty.hint": "Send a prompt, or open a recorded run.",
        "empty.mask": "No mask: the target reads a single row in this round.",
        "empty.mask_soon": "The mask is built once the kept nodes are flattened.",
        "empty.values": "No values: nothing was drafted in this round.",
        "empty.unrecorded": "This round's {drafted} drafted nodes were not recorded.",
        "empty.inspector": "Select a node: click it, or move through the tree with Tab and the arrow keys.",
        "empty.waiting": "Fetching round {round}…",
        # transport
        "transport.first": "First phase of the run",
        "transport.back": "Back one phase (←)",
        "transport.play": "Play (space)",
        "transport.pause": "Pause (space)",
        "transport.forward": "Forward one phase (→)",
        "transport.last": "Last phase of the run",
        "transport.speed": "Speed",
        "transport.rounds": "Rounds: height is tokens per round",
        "transport.position": "Round {round}, {phase}",
        "transport.previous_round": "Previous round (shift ←)",
        "transport.next_round": "Next round (shift →)",
        "transport.follow": "Latest",
        "transport.follow_title": "{count} newer: go to the latest round and follow",
        # phases
        "phase.expand": "Expand {level}",
        "phase.more": "{level}",
        "phase.rerank": "Rerank",
        "phase.flatten": "Flatten & mask",
        "phase.verify": "Verify",
        "phase.accept": "Accept",
        "phase.prefill": "Prefill",
        # panels
        "panel.mask": "Tree attention mask",
        "panel.tree_short": "Tree",
        "panel.mask_short": "Mask",
        "panel.values_short": "Values",
        "panel.mask_size": "{rows} × {rows}",
        "panel.values": "Values of all drafted nodes, best first",
        "panel.outline": "Draft tree as a list. Arrow keys move, Home goes to the root.",
        "panel.outline_node": "{label}, value V {value}, {fate}",
        "panel.outline_root": "{label}, {root}",
        # tools
        "tool.all": "All nodes",
        "tool.all_title": "Show every drafted node as a dot",
        "tool.fit": "Fit",
        "tool.fit_title": "Shrink the tree to the panel",
        "tool.lecture": "Lecture",
        "tool.lecture_title": "Larger type, for a projector",
        "tool.theme": "Dark",
        "tool.theme_title": "Switch between light and dark",
        "tool.export": "Export",
        "tool.export_title": "Save a figure as it is shown now",
        "tool.export_item": "{figure} as {format}",
        "tool.help": "Keyboard (?)",
        "tool.zoom_in": "Zoom in (ctrl and wheel)",
        "tool.zoom_out": "Zoom out (ctrl and wheel)",
        "tool.reset_zoom": "Reset zoom",
        "tool.close": "Close",
        # help
        "help.title": "Keyboard",
        "help.space": "play or pause",
        "help.arrows": "back or forward one phase",
        "help.shift_arrows": "back or forward one round",
        "help.home_end": "first or last phase of the run",
        "help.escape": "let go of the node",
        "help.question": "this list",
        "help.tree": "on the tree's list: arrows walk through the nodes",
        "key.space": "space",
        "key.arrows": "← →",
        "key.shift_arrows": "shift ← →",
        "key.home_end": "home end",
        "key.escape": "esc",
        "key.question": "?",
        "key.tree": "tab",
        # legend
        "legend.new": "just drafted",
        "legend.fed": "fed to the drafter",
        "legend.drafted": "drafted",
        "legend.kept": "kept",
        "legend.pruned": "pruned",
        "legend.visited": "target agrees",
        "legend.accepted": "accepted",
        "legend.rejected": "kept, not reached",
        "legend.cut": "accepted, dropped",
        "legend.chip": "more children",
        "legend.chip_pruned": "pruned children",
        "legend.root": "root",
        "legend.bonus": "bonus",
        "legend.note.value": "number: value V",
        "legend.note.slot": "number: slot in the sequence",
        "legend.note.target": "number: target's probability",
        # figures
        "tree.chip": "{count} pruned after {parent}",
        "tree.chip_below": " and {count} below them",
        "tree.root": "root: the last committed token",
        "tree.bonus": "bonus: the target's own token",
        "hover.node": "V {value} · c {confidence} · rank {rank} of {drafted}",
        "values.axis_rank": "rank among all drafted nodes",
        "values.axis_value": "value V",
        "values.cut": "top {kept} of {drafted}",
        "values.all_kept": "all {drafted} kept",
        "values.predicted": "predicted",
        "values.happened": "happened",
        "values.more": "+{count} more",
        "mask.prefix": "prefix",
        "mask.row": "row {slot}, {label}: sees {seen}",
        "mask.row_prefix": "and the prefix",
        "statistics.time": "milliseconds per round",
        "statistics.tokens": "tokens per round",
        "statistics.round": "round",
        "statistics.prefill": "prefill",
        "statistics.draft": "draft",
        "statistics.verify": "verify",
        "statistics.rest": "rest",
        "statistics.accepted": "accepted draft",
        "statistics.bonus": "bonus",
        "statistics.predicted": "predicted",
        "benchmark.tau": "τ",
        "benchmark.speedup": "speedup over plain decoding",
        "benchmark.gain": "mean over families",
        "benchmark.nodes": "nodes verified in a round, on average",
        # inspector
        "inspector.node": "Node {label}",
        "inspector.root": "Root {label}",
        "inspector.bonus": "Bonus {label}",
        "inspector.token": "token id",
        "inspector.text": "text",
        "inspector.parent": "parent",
        "inspector.depth": "depth",
        "inspector.position": "position",
        "inspector.confidence": "confidence c",
        "inspector.value": "value V",
        "inspector.rank": "rank",
        "inspector.rank_of": "{rank} of {drafted}",
        "inspector.expanded": "fed to the drafter",
        "inspector.slot": "slot",
        "inspector.slot_of": "{slot} of {kept}",
        "inspector.not_kept": "not kept",
        "inspector.target": "target's probability",
        "inspector.target_missing": "not asked: not verified",
        "inspector.fate": "fate",
        "inspector.sees": "its row sees",
        "inspector.sees_prefix": "prefix ({prefix})",
        "inspector.top": "Target's top 5 after {label}",
        "inspector.top_missing": "The walk did not come here.",
        "inspector.drawn": "drawn: ",
        "inspector.drawn_child": "{label}, a child: the walk goes on",
        "inspector.drawn_bonus": "{label}, which no child holds: the bonus",
        "inspector.drawn_leaf": "{label}, past the end of this branch: the bonus",
        "inspector.yes": "yes",
        "inspector.no": "no",
        "fate.accepted": "accepted",
        "fate.cut": "accepted, then dropped at the end of the run",
        "fate.rejected": "verified, not on the accepted path",
        "fate.pruned": "pruned",
        "why.all": "Kept: the pool of {drafted} fits into the {kept} places.",
        "why.top": "Kept: rank {rank} is within the top {kept}.",
        "why.policy": "Kept by the tree's policy, though its rank {rank} is beyond {kept}.",
        "why.cut": "Cut: rank {rank} is below the top {kept}; the last one kept has V = {threshold}.",
        "why.cut_policy": "Cut by the tree's policy, though its rank {rank} is within {kept}.",
        # export
        "export.title": "EAGLE-2, {count} rounds",
        "export.settings": "{target} with {head} · {policy} · top_k {top_k} · depth {depth} · max_nodes {max_nodes} · "
        "temperature {temperature}",
        "export.no_head": "no draft head",
        "export.role.user": "user: {text}",
        "export.role.assistant": "assistant: {text}",
        "export.role.system": "system: {text}",
        # narration
        "say.expand_first_one": "From the root {root} the drafter proposes one next token: {best} (c = {confidence}).",
        "say.expand_first_many": "From the root {root} the drafter proposes its {count} likeliest next tokens; "
        "{best} leads with c = {confidence}.",
        "say.expand_one": "{fed} (V = {fed_value}) is fed to the drafter; its likeliest child is {best} (V = {value}).",
        "say.expand_top": "The {fed_count} nodes of highest value in level {above} are fed to the drafter, "
        "{fed} first (V = {fed_value}); their {count} children make level {level}, led by {best} (V = {value}).",
        "say.expand_all": "Every node of level {above} is fed to the drafter; the {count} children make level {level}, "
        "led by {best} (V = {value}).",
        "say.expand_policy": "{fed_count} nodes of level {above} are fed to the drafter; their {count} children make "
        "level {level}, led by {best} (V = {value}).",
        "say.rerank_top": "Of all {drafted} drafted nodes the {kept} of highest value stay: {last} "
        "(V = {last_value}) is the last one in, {out} (V = {out_value}) the first one out.",
        "say.rerank_all": "All {drafted} drafted nodes are kept; nothing has to be cut.",
        "say.rerank_one": "The one drafted node is kept.",
        "say.rerank_policy": "The tree's policy keeps {kept} of the {drafted} drafted nodes.",
        "say.flatten": "Root and kept nodes become one sequence of {rows} rows. Each row sees the {prefix} tokens "
        "before the root, its own ancestors and itself: {seen} of {pairs} pairs, the rest is masked.",
        "say.verify_one": "One pass of the target over {rows} rows. At the root it chooses {walk}, a child in the "
        "tree. ",
        "say.verify_many": "One pass of the target over {rows} rows. From the root it chooses {walk}, each a child in "
        "the tree. ",
        "say.verify_missing": "At {last} it chooses {bonus}, which no branch holds.",
        "say.verify_leaf": "There the branch ends; after {last} it chooses {bonus}.",
        "say.verify_none": "One pass of the target over {rows} rows. At the root {root} it chooses {bonus}, which no "
        "branch holds.",
        "say.verify_plain": "The target reads the root {root} alone and gives one token.",
        "say.sampled": "One pass of the target over {rows} rows. The chain was sampled from the draft model, so each "
        "of its tokens is accepted with probability min(1, p/q): {accepted} of {kept} were.",
        "say.sampled_all": " After the last one the target draws {bonus}.",
        "say.sampled_some": " The first that is refused gives way to {bonus}, drawn from what p has over q.",
        "say.accept_path": "The target agrees with {path}; at {last} it wants {bonus}, which no branch holds, "
        "so {bonus} is the bonus.",
        "say.accept_leaf": "The target agrees with {path}, to the end of that branch; the token it adds there, "
        "{bonus}, is the bonus.",
        "say.accept_none": "The target agrees with none of the {count} first tokens: after {root} it wants {bonus}, "
        "so {bonus} is the bonus.",
        "say.accept_none_one": "The target does not agree with {first}: after {root} it wants {bonus}, so {bonus} is "
        "the bonus.",
        "say.accept_plain": "The target's token is {bonus}. One token from one target pass, as in every round of plain "
        "decoding.",
        "say.accept_unrecorded": "{accepted} drafted tokens were accepted and {bonus} is the bonus; the nodes of this "
        "round were not recorded.",
        "say.tokens_one": "One token from one target pass",
        "say.tokens_many": "{count} tokens from one target pass",
        "say.predicted": "; the kept values had predicted {predicted}.",
        "say.stop": "The run stops there: of the {total} tokens the text keeps {committed}.",
        "say.length": "The length limit is reached: of the {total} tokens the text keeps {committed}.",
        "say.prefill": "The token drawn from the prompt's own pass, {root}, already ended the run; nothing was "
        "drafted.",
        "say.between": " ",
        "say.and": " and ",
        "say.then": ", then ",
        "say.comma": ", ",
        "say.more": "{count} more",
        # numbers as words
        "numbers": "no one two three four five six seven eight nine ten eleven twelve",
        **PAGE_ENGLISH,
        **LAB_ENGLISH,
        **PAIR_ENGLISH,
        **TREE_ENGLISH,
        **LESSON_ENGLISH,
        "method.page": (Path(__file__).parent / "method.en.md").read_text(encoding="utf-8"),
    }
)

PLACE = re.compile(r"\{(\w+)\}")

LANGUAGES: Mapping[str, Mapping[str, str]] = MappingProxyType({"en": ENGLISH, "zh": {**ENGLISH, **CHINESE}})
"""What a table lacks is said in English: a sentence to read is better than a page that fails. A test names it."""


def say(key: str, language: str = "en", **values: object) -> str:
    """The string of a key, filled in. An unknown key raises: it is a fault, not a blank."""
    return PLACE.sub(lambda place: str(values.get(place[1], place[0])), LANGUAGES[language][key])
