"""`roofline backends`."""

from __future__ import annotations


def command() -> None:
    """List the backends, the version of each framework that is installed here, and what is missing."""
    from roofline import plugins
    from roofline.recording.backend import load

    names = plugins.names("roofline.backends")
    width = max(map(len, names))
    for name in names:
        backend = load(name)
        print(f"{name:{width}s} {plugins.summary('roofline.backends', name)}")
        print(f"{'':{width}s} {plugins.installed(backend.extras, backend.requires)}")
        if backend.options:
            options = ", ".join(f"{option}={'|'.join(values)}" for option, values in backend.options.items())
            print(f"{'':{width}s} --backend {name}:{options}")
