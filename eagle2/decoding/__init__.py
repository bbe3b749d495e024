"""The paper: expansion, reranking, mask, verification, the exact walk, and runs of rounds.

Imports models and drafters only as types or through `engine`; trace for what it records; never loading, cli or visual.
"""
