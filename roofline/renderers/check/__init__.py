"""Print `roofline check`: one file per format, found by its name.

A format is a module with `render(judged) -> str`, of one or more profiles: the document, newline at the end. Names in a
profile come from anywhere: each format escapes them. Modules with an underscore are shared by the formats and are none
themselves.
"""
