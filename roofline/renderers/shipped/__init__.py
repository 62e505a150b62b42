"""What `roofline show` prints without a profile, the list of those that ship: one file per format.

A format is a module with `render(profiles) -> str`: the document, newline at the end. `profiles` maps short names to
profiles.
"""
