"""The page's part of the English table: chat, settings, chips, metrics, traces, the method in words. See `strings`."""

PAGE_ENGLISH = {
    "page.title": "EAGLE-2, round by round",
    "page.tab_rounds": "Rounds",
    "page.tab_metrics": "Metrics",
    "page.tab_trace": "Trace",
    "page.tab_method": "Method",
    "page.settings": "Settings",
    # chat
    "chat.log": "Conversation",
    "chat.empty": "Ask something, and watch every round of the answer being drafted and verified.",
    "chat.empty_hint": "Or open one of the recorded runs below.",
    "chat.answer": "Answer; each round is a button that opens it",
    "chat.round": "Round {round}: {text}",
    "chat.round_title": "Open round {round}",
    "chat.system": "System:",
    "chat.end": "end",
    "chat.origin.draft": "accepted draft",
    "chat.origin.bonus": "bonus from the target",
    "chat.origin.prefill": "from the prefill",
    "chat.legend_title": "Where each token came from",
    "chat.prompt": "Prompt",
    "chat.placeholder": "Ask something… (Enter sends)",
    "chat.generate": "Generate",
    "chat.go_on": "Go on",
    "chat.step": "Step one round",
    "chat.stop": "Stop",
    "chat.clear": "New chat",
    "chat.examples": "Try one",
    "chat.recordings": "Recorded runs",
    "chat.recorded": "Recorded run: {name}",
    # recordings
    "recording.pancakes": "A recipe, the paper's tree (59 of 510)",
    "recording.counting": "Easy: counting, the tree runs deep",
    "recording.ten-plus-two": "“10+2”, before the equals sign",
    "recording.ten-plus-two-equals": "“10+2=”, after it",
    "recording.code": "Python code",
    "recording.list": "A list of planets",
    "recording.story-at-temperature-1": "Hard: a story at temperature 1, the tree branches",
    # status
    "status.waiting": "The models load when the first prompt is sent.",
    "status.loading": "Loading the models… recorded runs play meanwhile.",
    "status.ready": "{pair} is ready.",
    "status.failed": "No model: {fault}",
    "status.generating": "Generating…",
    "status.stopped": "Stopped after round {round}. Go on, step, or ask something else.",
    "status.stepped": "Round {round} done. Step again, or go on.",
    "status.done_stop": "Done: the model ended its answer.",
    "status.done_length": "Done: the length limit of this run is reached.",
    "status.busy": "A run is going on in this tab: stop it first, or wait for its end.",
    "status.nothing": "Nothing to go on with: write a prompt first.",
    "status.applies": "These settings apply to the next prompt; the open run keeps its own.",
    "status.fault": "{fault}",
    "status.loaded": "{name}: {rounds} rounds, made by {pair}.",
    "status.no_recording": "There is no recorded run “{name}”; choose one of the list.",
    # settings
    "form.method": "Method",
    "form.top_k": "top_k",
    "form.top_k_info": "nodes expanded per level, and children of each",
    "form.depth": "depth",
    "form.depth_info": "levels of draft tokens",
    "form.max_nodes": "max_nodes",
    "form.max_nodes_info": "nodes kept and verified, root not counted",
    "form.temperature": "Temperature",
    "form.temperature_info": "0 is greedy",
    "form.top_p": "Top-p",
    "form.top_p_info": "1 is off",
    "form.sample_top_k": "Top-k of sampling",
    "form.sample_top_k_info": "0 is off",
    "form.seed": "Seed",
    "form.seed_info": "same seed, same text, whatever the method",
    "form.max_new_tokens": "New tokens at most",
    "form.system": "System prompt",
    "form.system_info": "for the next new chat",
    "form.tree": "Draft tree",
    "form.law": "Sampling",
    "form.unknown_method": "The method “{method}” is unknown; choose one of the list.",
    "form.no_number": "{name} is “{value}”; it must be a number.",
    "form.range": "{name} is {value}; it must be a whole number from {least} to {most}.",
    "form.pool": "Pool: {k} + {less} × {k}² = {pool} nodes are drafted; the {kept} best are kept.",
    "form.pool_chain": "A chain: {pool} nodes are drafted, {kept} are kept.",
    "form.pool_static": "{kept} nodes in {d} levels, at the same places in every round.",
    "form.cost": "Each round costs one target pass over {rows} rows and {passes} passes of the drafter; it gives 1 to "
    "{most} tokens.",
    "form.cost_plain": "Each round costs one target pass and gives one token.",
    "form.clamped": "max_nodes {asked} becomes {kept}: that is all this method can keep.",
    "form.fixed": "top_k, depth and max_nodes have no effect here.",
    "form.greedy": "Greedy: the likeliest token every time.",
    "form.sampled": "Drawn with seed {seed}: the same seed gives the same text with every method.",
    "method.plain": "Plain decoding: no draft, the baseline.",
    "method.chain": "A chain: one guess per level, as in classic speculative decoding.",
    "method.eagle": "EAGLE's static tree: the shape never changes, the context only fills in tokens.",
    "method.eagle2": "EAGLE-2: expand by value, then keep the best of all drafted nodes.",
    "method.eagle2-no-value": "Ablation: expand by confidence instead of value.",
    "method.eagle2-no-rerank": "Ablation: no reranking, the best of every level stay.",
    "method.eagle2-no-both": "Ablation: confidence instead of value, and no reranking.",
    "method_name.plain": "Plain decoding",
    "method_name.chain": "Chain",
    "method_name.eagle": "EAGLE, static tree",
    "method_name.eagle2": "EAGLE-2",
    "method_name.eagle2-no-value": "EAGLE-2 without value",
    "method_name.eagle2-no-rerank": "EAGLE-2 without reranking",
    "method_name.eagle2-no-both": "EAGLE-2 without both",
    "method_name.static": "A static tree of one's own",
    # chips
    "chip.shape": "top_k {k} · depth {d} · {m} nodes",
    "chip.tau": "τ {tau} (bonus included)",
    "chip.speed": "{speed} tokens/s",
    "chip.slower": "{speedup}× plain: slower here",
    "chip.faster": "{speedup}× plain",
    "chip.lossless": "lossless ✓ {agreed} of {checked} tokens",
    "chip.lossy": "differs at {differing} of {checked} tokens",
    "chip.recorded": "recorded",
    "chip.recorded_title": "A recorded run: no model is needed to look at it.",
    "chip.pair_title": "target {target} ({revision}), head {head} ({head_revision})",
    # metrics
    "metrics.empty": "Nothing has been verified yet.",
    "metrics.tau": "τ, mean acceptance length, bonus included",
    "metrics.accepted": "accepted draft tokens per round, bonus not included",
    "metrics.tokens": "tokens written",
    "metrics.passes": "target passes after the prefill",
    "metrics.share": "accepted share of verified nodes",
    "metrics.predicted": "tokens per round: predicted, happened",
    "metrics.against": "{a} predicted, {b} happened",
    "metrics.speed": "tokens per second",
    "metrics.split": "time: draft / verify / rest",
    "metrics.prefill": "prefill, apart",
    "metrics.speedup": "against plain decoding",
    "metrics.lossless": "losslessness",
    "metrics.verdict": "{agreed} of {checked} positions agree, {near} of them by rounding only",
    "metrics.by_depth": "acceptance at depth 1, 2, …",
    "metrics.compare": "Compare with plain decoding",
    "metrics.comparing": "Decoding the same text plainly, one token a pass…",
    "metrics.compare_none": "There is no run of this page's own models to compare; generate one first.",
    "formula.tau": "τ = tokens committed ÷ target passes; the prefill and its token are not counted",
    "formula.accepted": "Σ accepted ÷ target passes = τ − 1, before stops and caps",
    "formula.tokens": "all rounds' committed tokens, the prefill's token included",
    "formula.passes": "one per round",
    "formula.share": "Σ accepted ÷ Σ kept nodes (the pool is not counted)",
    "formula.predicted": "1 + Σ V over the kept nodes, against 1 + accepted",
    "formula.speed": "tokens after the prefill's ÷ (draft + verify + rest)",
    "formula.split": "shares of the decoding time",
    "formula.prefill": "the prompt's own pass; not in tokens per second",
    "formula.speedup": "tokens/s of this run ÷ tokens/s of plain decoding, same engine, ids and dtype, warm",
    "formula.lossless": "each token against what plain decoding draws at its position, with the same noise",
    "formula.by_depth": "of the walks that came to depth d − 1, the share that went on",
    # trace
    "trace.save": "Save the run (JSON)",
    "trace.html": "Save as one HTML file",
    "trace.link": "Copy a link",
    "trace.load": "Open a saved run",
    "trace.linked": "The link is in the clipboard: {link}",
    "trace.link_turn": "A link holds one prompt, and this is a later turn of a chat: save the run instead.",
    "trace.none": "There is no run to save yet.",
    "trace.about": "A saved run holds everything that was drafted, verified and drawn, and the bytes of each token: it "
    "plays anywhere without a model. Figures are saved from the player's Export menu.",
}

METHOD_ENGLISH = r"""
### What happens in a round

A language model writes one token per pass. **Speculative decoding** lets a cheap *draft model* guess several tokens
first; the *target* then checks all guesses in one pass. EAGLE-2 drafts a **tree**, and lets the context decide its shape.

1. **Draft.** EAGLE's head takes the embedding of token $t_{i+1}$ and the target's feature $f_i$, guesses the next feature
   $\hat f_{i+1}$, and the target's own LM head turns that into probabilities. A child's probability given its parent is
   its **confidence** $c$.
2. **Value.** A node is accepted only if all nodes above it are. Its value stands in for that probability:
   $$V_i = \prod_{t_j \in \mathrm{Path}(\mathrm{root},\, t_i)} p_j \;\approx\; \prod_{t_j \in \mathrm{Path}(\mathrm{root},\, t_i)} c_j$$
3. **Expansion.** Level by level, the `top_k` nodes of highest value in the newest level are fed to the draft model; each
   gets `top_k` children. With depth $d$ that drafts $k + (d-1)\,k^2$ nodes.
4. **Reranking.** Of *all* drafted nodes the $m$ = `max_nodes` of highest value are kept. A child's value never exceeds its
   parent's and ties go to the shallower node, so what is kept is a tree.
5. **Flatten and mask.** Root and kept nodes become one sequence. In the tree attention mask each row sees the text so
   far, its own ancestors and itself; siblings share a position.
6. **Verify.** One pass of the target gives its law after every node at once.
7. **Accept.** Start at the root and draw $y$ from the target's law. If some child holds $y$, go there and draw again; if
   none does, $y$ is the **bonus token** and the round ends.

### Why nothing is lost

What is written is always $y$, drawn from the target's own law at its position. The tree only decides how many of those
draws one pass can serve. The noise of each draw is keyed by (seed, position), so tree decoding and plain decoding write
*the same tokens* at every temperature, and the check under *Metrics* compares them one by one.

### What it buys

If values are true probabilities, the expected number of accepted nodes is the sum of the kept values:
$$\mathbb{E}[\text{tokens per pass}] = 1 + \sum_{i \,\in\, \text{kept}} V_i, \qquad
\tau = \frac{\text{tokens committed}}{\text{target passes}}$$
A pass over many rows costs more than a pass over one; whether the tree pays depends on the machine. On a CPU a handful of
nodes is nearly free and sixty are not.

*EAGLE-2: Faster Inference of Language Models with Dynamic Draft Trees*, Li, Wei, Zhang and Zhang, arXiv 2406.16858.
Its ablations (table 3) are published without an exact procedure; the ones here are this project's reading.
"""
