"""The tab Models: the pair in use, known pairs, loading another."""

MODELS = {
    "page.tab_models": "Models",
    "pair.with": "{target} with {head}",
    "pair.alone": "{target} without a head",
    "pair.other": "This run was made by {made}, but {used} is loaded now: write a new prompt, or load that pair again "
    "under Models.",
    "pair.new_chat": "Generating… This is a new conversation: the previous one used another pair.",
    # the pair in use
    "pair.used": "In use",
    "pair.used_none": "No models yet",
    "pair.revision": "revision {revision}",
    "pair.local": "from a folder",
    "pair.target": "target",
    "pair.head": "head",
    "pair.draft_model": "draft model",
    "pair.place": "runs on",
    "pair.place_value": "{device} in {dtype}",
    "pair.shape": "recommended tree",
    "pair.shape_value": "top_k {k} · depth {d} · {m} nodes",
    "pair.no_head": "none: plain decoding and prompt lookup only",
    "pair.guessed": "This head's config does not say which hidden states it reads; we assumed states {states}. If "
    "that is wrong, almost no draft is accepted; the text is still exactly the target's. To settle it, name them in "
    "the head's config.json as eagle_aux_hidden_state_layer_ids.",
    "pair.found": "What this head is",
    "summary.kind": "kind",
    "summary.features": "features",
    "summary.hidden_size": "hidden size",
    "summary.attention": "attention",
    "summary.biases": "biases",
    "summary.embeddings": "embeddings",
    "summary.lm_head": "LM head",
    "summary.vocabulary": "draft vocabulary",
    "summary.rope": "rope",
    "summary.positions": "positions",
    "summary.parameters": "parameters",
    # another pair
    "pair.choose": "Load another pair",
    "pair.choose_about": "Folders on this machine or names on the Hugging Face hub. The current pair stays in use "
    "until the new one is ready, or if loading fails.",
    "pair.field_target": "Target",
    "pair.field_head": "Head",
    "pair.target_info": "empty: the bundled SmolLM2-135M-Instruct",
    "pair.head_info": "empty: no head, or the bundled target's",
    "pair.load": "Load this pair",
    "pair.cancel": "Cancel",
    "pair.fits": "Takes about {needed} in {dtype}; {device} has {free} free beside the pair in use.",
    "pair.too_large": "Will not fit: it takes about {needed} in {dtype}, and {device} has {free} free beside the pair "
    "in use.",
    "pair.room_unknown": "Takes about {needed} in {dtype}; what {device} has free is not known.",
    "pair.part_unknown": "Not included: sizes only the hub knows, and quantised weights.",
    "pair.ask_hub": "The hub is asked for the size first; what will not fit is refused before anything large is "
    "downloaded.",
    # who may
    "pair.public": "This page is public, and all its visitors share one pair: only its owner can load another. The "
    "owner's key is on the console of the server.",
    "pair.console": "This page is public. Its owner's key, which lets you switch models on its tab Models: {owner_key}",
    "pair.key": "Owner's key",
    "pair.key_wrong": "That is not the owner's key.",
    "pair.not_owner": "Only the owner of this page can load other models.",
    # progress
    "pair.loading": "Loading {pair}",
    "pair.step.begin": "looking up the models…",
    "pair.step.download": "downloading: {done} of {of}",
    "pair.step.weights": "weights: {done} of {of} tensors",
    "pair.step.products": "timing matrix products: {done} of {of} layers",
    "pair.step.ready": "ready",
    "pair.cancelling": "cancelling after the current step…",
    "pair.busy": "Another pair is being loaded: wait until it is done, or cancel it.",
    "pair.done": "{pair} is in use, with its recommended tree in the settings. The next prompt starts a new "
    "conversation; runs in progress finish with the models they started with.",
    "pair.failed": "{fault}. Still in use: {pair}.",
    "pair.failed_none": "{fault}. No models are loaded.",
    "pair.cancelled": "Loading {asked} was cancelled. Still in use: {pair}.",
    "pair.cancelled_none": "Loading {asked} was cancelled. No models are loaded.",
    # known pairs
    "pair.known": "Known pairs",
    "pair.known_about": "Public targets and heads made for them, with the paper's tree for their size. Memory is for "
    "weights and a tenth more, in {dtype}. {free}",
    "pair.known_free": "{device} has {free} free; what fits comes first.",
    "pair.known_free_unknown": "What {device} has free is not known.",
    "pair.column_pair": "Target and head",
    "pair.column_tree": "Tree",
    "pair.column_memory": "Memory",
    "pair.column_notes": "Licence and notes",
    "pair.tree": "{k} · {d} · {m}",
    "pair.tree_title": "top_k {k}, depth {d}, {m} nodes kept, the root not counted",
    "pair.mark_fits": "fits",
    "pair.mark_too_large": "too large here",
    "pair.gated": "gated: accept its licence on the hub, then log in on the server with “hf auth login”",
    "pair.take": "Choose",
    "pair.take_title": "Put {pair} into the fields above",
}
