"""Answers from recorded rounds, without a model.

Imports trace and the numbers of decoding; no torch.
"""
