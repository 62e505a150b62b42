"""Write an analysis for people and programs: one file per format of `roofline show`, figures in `figures/`.

A new format is one new file here with `render(analysis, by) -> str`; the command line finds it by its name. `by` is one
of `analysis.KEYS`, None leaves the choice to the format; the document ends in a newline. The other parameters of
`render` say what `show` offers for the format: `rows` (which rows), `page` (how wide, with colours), `columns` and
`caption` (of a table in a paper). Names in a profile come from anywhere: each format escapes them. The formats of the
other verbs lie in `comparison/`, `check/` and `whatif/`. What formats share is worked out in
`roofline.content`; modules with an underscore help formats of one kind and are none themselves.
"""
