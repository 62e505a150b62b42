"""Time a step for every recorder: its ops, its host and its idle moments."""
