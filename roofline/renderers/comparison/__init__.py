"""Write what `roofline compare` prints: one file per format, found by its name.

A format is a module with `render(ranking) -> str`: the document, newline at the end. It may take `page`, `columns` and
`caption` as formats of `show` do. Names in a profile come from
anywhere: each format escapes them. Modules with an underscore are shared by the formats and are none themselves.
"""
