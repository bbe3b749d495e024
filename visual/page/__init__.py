"""The Gradio page: layout, handlers and wiring.

Imports everything of visual; of eagle2 what needs no torch.
"""
