"""The paper's tables on this machine: questions, the measuring procedure, results, tables. `python -m eagle2 bench`.

Imports the engine and analysis; figures are given to it, since `eagle2` never imports `visual`.
"""
