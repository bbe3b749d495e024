"""Chats written by the target, heads trained on them, heads measured.

Imports everything below the command line; nothing imports it.
"""
