"""Who proposes tokens: EAGLE heads, an independent draft model, prompt lookup.

Imports models and the pure parts of decoding; never an engine.
"""
