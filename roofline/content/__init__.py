"""Work out what is shown of an analysis, an account or a job: rows, points, lanes, facts and their words.

Each is worked out here once; the formats of `roofline.renderers` place it and escape names for theirs.
"""
