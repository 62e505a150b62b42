"""Write files for other programs with `roofline export`: one file per format, found by its name.

A format is a module with

    SUFFIX: str                     how its files end
    WORDS: str                      what it is, for the help
    written(analysis) -> bytes      the whole file

Names in a profile come from anywhere: each format escapes them as its readers need it.
"""
