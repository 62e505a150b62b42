"""Print `roofline whatif`: one file per format, found by its name.

A format is a module with `render(whatif) -> str`: the document, newline at the end. Names in a profile come from
anywhere: each format escapes them. Modules with an underscore are shared by the formats and are none themselves.
"""
