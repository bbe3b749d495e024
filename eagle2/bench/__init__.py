"""The paper's tables on this machine: questions, the measuring procedure, results, tables. `python -m eagle2 bench`."""
