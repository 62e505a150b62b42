"""Finding backends, models, devices, verbs and renderers by looking in their folders, and what is installed for them.

A plugin is a module. Listing reads file names and docstrings and imports nothing, so `roofline backends`
works where no framework is installed.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from roofline.errors import InputError

_ON_ONE_LINE = re.compile(r"^([A-Z_]+) = (.+)$", re.MULTILINE)


def folder(package: str) -> Path:
    """The folder that holds the modules of `package`."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"{package} is not installed: run `pip install -e .` in the checkout.")
    return Path(next(iter(spec.submodule_search_locations)))


def names(package: str, suffix: str = ".py", *, sorted_by_kind: bool = False) -> tuple[str, ...]:
    """The plugins in `package`, as the user types them (`bert_layer.py` is "bert-layer").

    sorted_by_kind: they lie in folders of it.
    """
    return tuple(sorted(_paths(package, suffix, sorted_by_kind)))


def _paths(package: str, suffix: str, sorted_by_kind: bool) -> dict[str, Path]:
    """By name, the files of the plugins in `package`."""
    found = folder(package).glob(f"[!_]*/[!_]*{suffix}" if sorted_by_kind else f"[!_]*{suffix}")
    return {path.stem.replace("_", "-"): path for path in found}


def require(package: str, name: str, kind: str, *, sorted_by_kind: bool = False) -> str:
    """`name` if it is a plugin of `package`; InputError with the alternatives otherwise."""
    known = names(package, sorted_by_kind=sorted_by_kind)
    if name not in known:
        raise InputError(f"There is no {kind} called {name!r}; there are: {', '.join(known)}.")
    return name


def distributions(extra: str, needed: Iterable[str]) -> dict[str, str | None]:
    """What a backend and its models are made of: the version installed here of each distribution, None for none.

    needed: without which the backend does not run at all. The rest of the installation extra follows, which some of the
    models need; where roofline itself runs without having been installed there is no list of it.
    """
    from importlib import metadata

    from packaging.requirements import Requirement

    try:
        declared = metadata.requires("roofline") or []
    except metadata.PackageNotFoundError:
        declared = []
    of_extra = [
        asked.name
        for asked in map(Requirement, declared)
        if asked.marker and asked.marker.evaluate({"extra": extra}) and not asked.marker.evaluate({"extra": ""})
    ]
    return {name: version_of(name) for name in (*needed, *of_extra)}


def version_of(distribution: str) -> str | None:
    """The version that is installed here, found without importing it; None for none."""
    from importlib import metadata  # not above: it takes a tenth of what `roofline --help` does

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def importable(module: str) -> bool:
    """Whether a module of that name is installed here; looks without importing it."""
    try:
        return find_spec(module) is not None
    except ImportError:  # from a finder that somebody put in to forbid it
        return False


@contextmanager
def importing() -> Iterator[None]:
    """While active, nobody looks for garbage: what is imported stays, and looking at it takes up to a quarter more."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def installed(extras: Sequence[str], needed: Iterable[str]) -> str:
    """`distributions` in words: "jax 0.10.2, flax 0.12.8; optax is missing: pip install 'roofline[jax]'".

    extras: the first holds what the models are made of; what any others hold is in `needed`, as far as it is.
    """
    found = distributions(extras[0], needed)
    there = ", ".join(f"{name} {number}" for name, number in found.items() if number is not None)
    missing = [name for name, number in found.items() if number is None]
    verb = "is" if len(missing) == 1 else "are"
    lacking = f"{', '.join(missing)} {verb} missing: pip install 'roofline[{','.join(extras)}]'" if missing else ""
    return "; ".join(filter(None, (there, lacking)))


def load(package: str, name: str, kind: str, *, sorted_by_kind: bool = False) -> ModuleType:
    """The module of plugin `name`. Raises InputError for an unknown name."""
    require(package, name, kind, sorted_by_kind=sorted_by_kind)
    below = f".{_paths(package, '.py', True)[name].parent.name}" if sorted_by_kind else ""
    return import_module(f"{package}{below}.{name.replace('-', '_')}")


def summary(package: str, name: str) -> str:
    """The first line of the plugin's docstring, read without importing it."""
    return (ast.get_docstring(ast.parse(_source(package, name))) or "").partition("\n")[0]


def constants(package: str, name: str) -> dict[str, Any]:
    """What the plugin assigns to its constants as literals on one line, read without importing or parsing all of it."""
    found: dict[str, Any] = {}
    for constant, text in _ON_ONE_LINE.findall(_source(package, name)):
        with suppress(ValueError, SyntaxError):  # not a literal, or not all of it
            found[constant] = ast.literal_eval(text)
    return found


def _source(package: str, name: str) -> str:
    return (folder(package) / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
