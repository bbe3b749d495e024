"""Commands of `python -m eagle2`.

Imports everything; nothing imports it.
"""
