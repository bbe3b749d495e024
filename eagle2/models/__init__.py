"""Networks and their memory: the target, EAGLE heads, key-value caches.

Imports tree masks from decoding; never drafters, loading or an engine.
"""
