"""Show results of the Python interface: one file per class of result and its subclasses (`roofline/repr_mixin.py`).

Each has `text(result)`, `html(result)`, `document(result)` and `columns(result)`: all but the HTML is the output of the
command line's formats, so that the numbers are the same.
"""
