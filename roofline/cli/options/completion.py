"""What a shell completes: names of files in the folders where plugins lie, read and not imported."""

from __future__ import annotations

from collections.abc import Callable

from roofline import plugins

Complete = Callable[[str], list[str]]

#: What tables can be made by; `analysis.KEYS` would load numpy.
_KEYS = ("class", "group", "op", "scope", "block", "phase", "kernel", "source")


def _beginning(words: tuple[str, ...], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def formats(package: str) -> Complete:
    """The formats of a verb."""

    def complete(incomplete: str) -> list[str]:
        return _beginning(plugins.names(package), incomplete)

    return complete


def keys(incomplete: str) -> list[str]:
    """What tables can be made by."""
    return _beginning(_KEYS, incomplete)


def columns(incomplete: str) -> list[str]:
    """What rows of a table can be sorted by."""
    from roofline.renderers._rows.choice import SORTS

    return _beginning(tuple(SORTS), incomplete)


def backends(incomplete: str) -> list[str]:
    """`--backend NAME`."""
    return _beginning(plugins.names("roofline.backends"), incomplete)


def backends_listed(incomplete: str) -> list[str]:
    """`--backends A,B`: the last of them."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in backends(last)]


def devices(incomplete: str) -> list[str]:
    """The devices whose ceilings are known."""
    return _beginning(plugins.names("roofline.devices", ".toml"), incomplete)


def models(incomplete: str) -> list[str]:
    """The models of any framework."""
    return _beginning(plugins.names("roofline.models._geometry", ".toml", sorted_by_kind=True), incomplete)


def profiles(incomplete: str) -> list[str]:
    """Profiles that ship, where nothing on disk begins so: the shell completes names of files if there is no word."""
    from glob import escape, iglob

    if next(iglob(f"{escape(incomplete)}*"), None) is not None:
        return []
    from roofline.core import shipped

    return _beginning(tuple(shipped.paths()), incomplete)


def runs(incomplete: str) -> list[str]:
    """What `compare` takes: models, and profiles."""
    return [*models(incomplete), *profiles(incomplete)]


def publications(incomplete: str) -> list[str]:
    """The published benchmarks."""
    return _beginning(plugins.names("roofline.published", ".toml"), incomplete)
