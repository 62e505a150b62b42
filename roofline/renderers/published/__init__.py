"""Print `roofline published`: one file per format, found by its name.

A format is a module with `render(publication, cells) -> str`: the document, newline at the end.
"""
