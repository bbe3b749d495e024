"""What happened in a run, as plain data, and its files.

Imports settings and methods only; no torch.
"""
