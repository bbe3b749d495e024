"""What lives on the server between events: models, visits, conversations. No Gradio.

Imports eagle2; nothing of the page.
"""
