"""Complete words for a shell: names of plugins, read from their folders and not imported."""

from __future__ import annotations

from collections.abc import Callable

from roofline import plugins

Complete = Callable[[str], list[str]]

#: Keys of tables; `analysis.KEYS` would load numpy.
_KEYS = ("class", "group", "op", "scope", "block", "phase", "kernel", "source")


def _beginning(words: tuple[str, ...], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def formats(package: str) -> Complete:
    """Make the completion of a verb's formats."""

    def complete(incomplete: str) -> list[str]:
        return _beginning(plugins.names(package), incomplete)

    return complete


def keys(incomplete: str) -> list[str]:
    """Complete the keys of tables."""
    return _beginning(_KEYS, incomplete)


def columns(incomplete: str) -> list[str]:
    """Complete the columns that sort the rows of a table."""
    from roofline.content.choice import SORTS

    return _beginning(tuple(SORTS), incomplete)


def backends(incomplete: str) -> list[str]:
    """Complete `--backend NAME`."""
    return _beginning(plugins.names("roofline.backends"), incomplete)


def backends_listed(incomplete: str) -> list[str]:
    """Complete the last backend of `--backends A,B`."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in backends(last)]


def devices(incomplete: str) -> list[str]:
    """Complete the devices whose ceilings are known."""
    return _beginning(plugins.names("roofline.devices", ".toml"), incomplete)


def models(incomplete: str) -> list[str]:
    """Complete the models of any framework."""
    return _beginning(plugins.names("roofline.models._geometry", ".toml", sorted_by_kind=True), incomplete)


def profiles(incomplete: str) -> list[str]:
    """Complete shipped profiles, where no file on disk begins so: the shell completes names of files itself."""
    from glob import escape, iglob

    if next(iglob(f"{escape(incomplete)}*"), None) is not None:
        return []
    from roofline.core import shipped

    return _beginning(tuple(shipped.paths()), incomplete)


def runs(incomplete: str) -> list[str]:
    """Complete the runs of `compare`: models, and profiles."""
    return [*models(incomplete), *profiles(incomplete)]


def publications(incomplete: str) -> list[str]:
    """Complete the published benchmarks."""
    return _beginning(plugins.names("roofline.published", ".toml"), incomplete)
