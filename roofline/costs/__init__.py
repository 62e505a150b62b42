"""The work of an op, whatever the language that it is written in."""
