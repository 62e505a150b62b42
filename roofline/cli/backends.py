"""`roofline backends`."""

from __future__ import annotations


def command() -> None:
    """List the backends, the version of each framework that is installed here, and what is missing."""
    from importlib.metadata import PackageNotFoundError, version

    from roofline import plugins

    for name in plugins.names("roofline.backends"):
        module = plugins.load("roofline.backends", name, "backend")
        found = []
        for distribution in module.REQUIRES:
            try:
                found.append(f"{distribution} {version(distribution)}")
            except PackageNotFoundError:
                found.append(f"{distribution} is missing: pip install 'roofline[{plugins.extra(name)}]'")
        options = "".join(f"; {option}={'|'.join(values)}" for option, values in module.OPTIONS.items())
        print(f"{name:12s} {plugins.summary('roofline.backends', name)}")
        print(f"{'':12s} {', '.join(found)}{options}")
