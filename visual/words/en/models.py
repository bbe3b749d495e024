"""The tab Models: the pair in use, known pairs, loading another."""

MODELS = {
    "page.tab_models": "Models",
    "pair.with": "{target} with {head}",
    "pair.alone": "{target} without a head",
    "pair.other": "This run was made by {made}, and {used} is in use now: write a new prompt, or load that pair again "
    "under Models.",
    "pair.new_chat": "Generating… This is a new conversation: the one before was another pair's.",
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
    "pair.guessed": "That this head takes the hidden states {states} of the target is a guess, since its config names "
    "none. If the guess is wrong, hardly any draft is accepted; the text is right all the same. To settle it, name "
    "them in the head's config.json as eagle_aux_hidden_state_layer_ids.",
    "pair.found": "What was found in the head",
    "found.kind": "kind",
    "found.features": "features",
    "found.hidden_size": "hidden size",
    "found.attention": "attention",
    "found.biases": "biases",
    "found.embeddings": "embeddings",
    "found.lm_head": "LM head",
    "found.vocabulary": "draft vocabulary",
    "found.rope": "rope",
    "found.positions": "positions",
    "found.parameters": "parameters",
    # another pair
    "pair.choose": "Load another pair",
    "pair.choose_about": "Folders on this machine or names on the Hugging Face hub. The pair in use serves until the "
    "new one is there, and stays where that fails.",
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
    "pair.part_unknown": "Not counted: what only the hub knows the size of, or what is quantised.",
    "pair.ask_hub": "The hub is asked for its size first; what will not fit is refused before anything large is "
    "fetched.",
    # who may
    "pair.public": "This page is public, and all its visitors share one pair: only its owner can load another. The "
    "owner's key is on the console of the server.",
    "pair.console": "This page is public. Its owner's key, which lets you switch models on its tab Models: {owner_key}",
    "pair.key": "Owner's key",
    "pair.key_wrong": "That is not the owner's key.",
    "pair.not_owner": "Only the owner of this page can load other models.",
    # progress
    "pair.loading": "Loading {pair}",
    "pair.step.begin": "looking at what was asked for…",
    "pair.step.download": "fetching: {done} of {of}",
    "pair.step.weights": "weights: {done} of {of} tensors",
    "pair.step.products": "products timed: {done} of {of} layers",
    "pair.step.ready": "ready",
    "pair.cancelling": "giving up at the next step…",
    "pair.busy": "Another pair is being loaded: wait for its end, or cancel it.",
    "pair.done": "{pair} is in use, and the settings hold its recommended tree. The next prompt begins a new "
    "conversation; runs that are going on end with the models they began with.",
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
