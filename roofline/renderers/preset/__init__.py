"""Print `roofline compare --preset` of saved profiles, a paragraph per row: one file per format.

A format is a module with `render(preset_rows) -> str`: the document of a `PresetRows`, newline at the end.
"""
