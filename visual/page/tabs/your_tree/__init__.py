"""The tab Your tree.

Imports the page's context and html.
"""
