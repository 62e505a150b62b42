"""`roofline backends`."""

from __future__ import annotations


def command() -> None:
    """List the backends, the version of each framework that is installed here, and what is missing."""
    from roofline import plugins
    from roofline.renderers._terminal import columns

    rows = []
    for name in plugins.names("roofline.backends"):
        module = plugins.load("roofline.backends", name, "backend")
        rows.append((name, plugins.summary("roofline.backends", name)))
        rows.append(("", plugins.installed(name, module.REQUIRES)))
        if module.OPTIONS:
            options = ", ".join(f"{option}={'|'.join(values)}" for option, values in module.OPTIONS.items())
            rows.append(("", f"--backend {name}:{options}"))
    print("\n".join(columns(rows, left=(0, 1), separator=" ")))
