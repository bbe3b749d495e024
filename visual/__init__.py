"""Pictures of runs: figures, phases, sentences and the player. Reads `eagle2.trace`; knows no models and no torch."""
