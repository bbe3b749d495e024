"""One module a tab: its components, its handlers, its wiring.

Imports the page's context and html; no tab imports another.
"""
