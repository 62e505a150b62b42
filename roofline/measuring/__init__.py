"""A measurement from its beginning to its end: one profile, several in turns, an experiment."""
