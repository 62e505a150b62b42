"""Print the list of shipped profiles for `roofline show` without a profile: one file per format.

A format is a module with `render(profiles) -> str`: the document, newline at the end. `profiles` maps short names to
profiles.
"""
