"""What `roofline compare --preset` prints of saved profiles, a paragraph per row: one file per format.

A format is a module with `render(found) -> str`: the document, newline at the end. `found` is a `PresetRows`.
"""
