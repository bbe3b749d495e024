"""The guided tour."""

LESSON = {
    "lesson.open": "Lesson",
    "lesson.open_title": "EAGLE-2 in ten steps and an exercise, on this page",
    "lesson.place": "{step} of {steps}",
    "lesson.back": "Back (←)",
    "lesson.next": "Next (→)",
    "lesson.done": "Done",
    "lesson.end": "Leave (Esc)",
    "lesson.plain": "Plain decoding",
    "lesson.plain_text": "A language model writes one token at a time, and each costs a whole pass through the "
    "model. In this answer each green stretch, with the orange token behind it, came from one pass.",
    "lesson.draft": "Draft, then verify",
    "lesson.draft_text": "A small draft model guesses what might come next; the large target model then checks all "
    "the guesses in a single pass. One such cycle is a round. The heading says how many guesses this round had "
    "right.",
    "lesson.tree": "A tree of guesses",
    "lesson.tree_text": "One chain of guesses ends at its first mistake. A tree has several candidates at each "
    "place, so that one of them may be right. It hangs under the root, the last token that is certain.",
    "lesson.value": "Confidence and value",
    "lesson.value_text": "The draft model gives each guess a probability, its confidence. The product of the "
    "confidences from the root down to a node is its value: about the chance that the target accepts all the way to "
    "it.",
    "lesson.expansion": "Expansion",
    "lesson.expansion_text": "Level by level, the top_k nodes of highest value are fed to the draft model, and each "
    "gets top_k children. So the tree grows where it is likely to be right: that is what EAGLE-2 adds to EAGLE.",
    "lesson.reranking": "Reranking",
    "lesson.reranking_text": "Of all drafted nodes the max_nodes of highest value are kept. Deep nodes may lose to "
    "shallow ones that were never expanded. A kept node's parent is always kept, since its value is at least as "
    "high.",
    "lesson.mask": "One sequence, one mask",
    "lesson.mask_text": "The kept nodes are laid out in one row. Each may see the text so far, its own ancestors "
    "and itself, and nothing else: the mask makes every branch look like a text of its own.",
    "lesson.verification": "Exact verification",
    "lesson.verification_text": "After the root and after every node the target says what it would write. Walk down "
    "from the root: where a child holds the target's own token, go there; where none does, stop.",
    "lesson.bonus": "The bonus token",
    "lesson.bonus_text": "Where the walk stops, the target's own token is added: it has been computed anyway. So even "
    "a round whose guesses are all wrong yields one token, as much as plain decoding.",
    "lesson.lossless": "Why it is lossless, and what it buys",
    "lesson.lossless_text": "Every token written is the target's own; the tree only decides how many of them one pass "
    "can yield. Their mean number per round, bonus included, is called τ: about that many times fewer passes than "
    "plain decoding takes.",
    "lesson.exercise": "Exercise",
    "lesson.exercise_text": "Make the tree wider: raise top_k to {top_k} and run again. This page checks each step.",
    "lesson.before": "Show a round whose top_k is below {top_k}, such as one from the recorded run “Python code”.",
    "lesson.before_done": "Before: {drafted} nodes drafted, {kept} kept.",
    "lesson.raise": "Raise top_k to {top_k} in the settings.",
    "lesson.raise_go": "Open the settings",
    "lesson.after": "Ask something, and wait for a round.",
    "lesson.after_go": "To the prompt",
    "lesson.after_done": "After: {drafted} nodes drafted, {kept} kept.",
    "lesson.question": "Which phase grew?",
    "lesson.phase_expansion": "Expansion",
    "lesson.phase_reranking": "Reranking",
    "lesson.phase_verification": "Verification",
    "lesson.verdict_yes": "Yes.",
    "lesson.verdict_no": "No, look again.",
    "lesson.count_expansion": "Expansion drafted {before} nodes before, and {after} after.",
    "lesson.count_reranking": "Reranking kept {before} nodes before, and {after} after.",
    "lesson.count_verification": "Verification took {before} rows before, the root's included, and {after} after.",
    "lesson.exercise_answer": "The pool has top_k + (depth − 1) · top_k² nodes. Reranking still keeps max_nodes of "
    "them at most, so verification need not cost more.",
}
