"""Runs that come with the project: the paper's figures by hand, and the recordings.

Imports trace; recordings take an engine.
"""
