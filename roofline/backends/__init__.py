"""Backends: one file per `--backend`. Each says how a step is built, run and recorded by one framework.

A backend is a module whose docstring begins with what `roofline backends` shows, and which holds `BACKEND`, a
`roofline.recording.backend.Backend`. No framework is imported before one of its functions is called.
"""
