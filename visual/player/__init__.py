"""The round player: its messages, its scripts, the exported file.

Imports figures and words.
"""
