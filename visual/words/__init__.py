"""Every sentence a reader sees, one table a language.

Imports nothing of the page.
"""
