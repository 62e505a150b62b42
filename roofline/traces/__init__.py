"""Recorded bytes become tables: one file per trace format, and the joins between their columns."""
