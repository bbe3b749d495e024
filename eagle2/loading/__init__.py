"""From names to an engine: folders, hub ids, head files, known pairs, memory.

Imports everything below it; nothing of analysis, cli or visual.
"""
