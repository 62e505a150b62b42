"""Which rows of a table are shown, in which order, and what becomes of the others."""
