"""Run a measurement from beginning to end: one profile, several in turns, an experiment."""
