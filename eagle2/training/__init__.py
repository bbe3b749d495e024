"""Training data for EAGLE heads: the target's own chats."""
