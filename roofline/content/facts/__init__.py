"""Describe the facts below a table in words: one file for each subject."""
