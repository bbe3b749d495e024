"""Making training data and training EAGLE heads."""
