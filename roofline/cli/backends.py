"""`roofline backends`."""

from __future__ import annotations


def command() -> None:
    """List the backends, the version of each framework that is installed here, and what is missing."""
    from roofline import plugins

    names = plugins.names("roofline.backends")
    width = max(map(len, names))
    for name in names:
        module = plugins.load("roofline.backends", name, "backend")
        print(f"{name:{width}s} {plugins.summary('roofline.backends', name)}")
        print(f"{'':{width}s} {plugins.installed(name, module.REQUIRES)}")
        if module.OPTIONS:
            options = ", ".join(f"{option}={'|'.join(values)}" for option, values in module.OPTIONS.items())
            print(f"{'':{width}s} --backend {name}:{options}")
