"""Write the table of `roofline show --wall`: shares of work and of busy time, run by run; one file per format.

A format is a module with `render(chart) -> str`: the document, newline at the end. `chart` is of `_facts/wall.py`.
Names in a profile come from anywhere: each format escapes them.
"""
