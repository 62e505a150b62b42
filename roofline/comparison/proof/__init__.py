"""Turning the switch of a cause and measuring again (`compare --prove`)."""
