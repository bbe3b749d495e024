"""The target's own texts, heads trained on them, heads measured."""
