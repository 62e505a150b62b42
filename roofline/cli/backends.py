"""List the backends: `roofline backends`."""

from __future__ import annotations


def command() -> None:
    """List the backends, and the installed packages of each."""
    from roofline import plugins
    from roofline.content.terminal import columns
    from roofline.recording.backend import load

    rows = []
    for name in plugins.names("roofline.backends"):
        backend = load(name)
        rows.append((name, plugins.summary("roofline.backends", name)))
        rows.append(("", plugins.installed(backend.extras, backend.requires)))
        if backend.options:
            options = ", ".join(f"{option}={'|'.join(values)}" for option, values in backend.options.items())
            rows.append(("", f"--backend {name}:{options}"))
    print("\n".join(columns(rows, left_aligned=(0, 1), separator=" ")))
