"""What results of the Python interface show of themselves: one file per class of result (see `roofline/shown.py`).

Each has `text(result)`, `html(result)`, `document(result)` and `columns(result)`: all but the HTML is what the formats
of the command line write, so that the numbers are the same.
"""
