"""Find backends, models, devices, verbs and renderers in their folders, and the versions installed for them.

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
    """Find the folder of a package's modules. Raises InputError where the package is not installed."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"{package} is not installed: run `pip install -e .` in the checkout.")
    return Path(next(iter(spec.submodule_search_locations)))


def names(package: str, suffix: str = ".py", *, sorted_by_kind: bool = False) -> tuple[str, ...]:
    """List the plugins in `package`, as the user types them (`bert_layer.py` is "bert-layer").

    sorted_by_kind: they lie in folders by kind.
    """
    return tuple(sorted(_paths(package, suffix, sorted_by_kind)))


def _paths(package: str, suffix: str, sorted_by_kind: bool) -> dict[str, Path]:
    """Map the names of the plugins in `package` to their files."""
    paths = folder(package).glob(f"[!_]*/[!_]*{suffix}" if sorted_by_kind else f"[!_]*{suffix}")
    return {path.stem.replace("_", "-"): path for path in paths}


def require(package: str, name: str, kind: str, *, sorted_by_kind: bool = False) -> str:
    """Return `name` if it is a plugin of `package`. Raises InputError with the alternatives otherwise."""
    available = names(package, sorted_by_kind=sorted_by_kind)
    if name not in available:
        raise InputError(f"There is no {kind} called {name!r}; there are: {', '.join(available)}.")
    return name


def distributions(extra: str, needed: Iterable[str]) -> dict[str, str | None]:
    """Look up the installed version of each distribution of a backend and its models, None for a missing one.

    needed: distributions without which the backend does not run. The others of the installation extra follow, which
    some of the models need; they are unknown where roofline runs without being installed.
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
    """Look up the installed version of a distribution without importing it; None where it is missing."""
    from importlib import metadata  # not above: it takes a tenth of the time of `roofline --help`

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def importable(module: str) -> bool:
    """Tell whether a module is installed here, without importing it."""
    try:
        return find_spec(module) is not None
    except ImportError:  # from a finder that somebody put in to forbid it
        return False


@contextmanager
def importing() -> Iterator[None]:
    """Pause the garbage collector for an import: modules stay, and collecting takes up to a quarter more time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def installed(extras: Sequence[str], needed: Iterable[str]) -> str:
    """Write `distributions` in words: "jax 0.10.2, flax 0.12.8; optax is missing: pip install 'roofline[jax]'".

    extras: the first holds the libraries of the models; those of the others that are necessary are in `needed`.
    """
    versions = distributions(extras[0], needed)
    present = ", ".join(f"{name} {number}" for name, number in versions.items() if number is not None)
    missing = [name for name, number in versions.items() if number is None]
    verb = "is" if len(missing) == 1 else "are"
    lacking = f"{', '.join(missing)} {verb} missing: pip install 'roofline[{','.join(extras)}]'" if missing else ""
    return "; ".join(filter(None, (present, lacking)))


def load(package: str, name: str, kind: str, *, sorted_by_kind: bool = False) -> ModuleType:
    """Import the module of plugin `name`. Raises InputError for an unknown name."""
    require(package, name, kind, sorted_by_kind=sorted_by_kind)
    below = f".{_paths(package, '.py', True)[name].parent.name}" if sorted_by_kind else ""
    return import_module(f"{package}{below}.{name.replace('-', '_')}")


def summary(package: str, name: str) -> str:
    """Read the first line of the plugin's docstring without importing it."""
    return (ast.get_docstring(ast.parse(_source(package, name))) or "").partition("\n")[0]


def constants(package: str, name: str) -> dict[str, Any]:
    """Read the plugin's constants that are literals on one line, without importing or parsing all of it."""
    literals: dict[str, Any] = {}
    for constant, text in _ON_ONE_LINE.findall(_source(package, name)):
        with suppress(ValueError, SyntaxError):  # not a literal, or not all of it
            literals[constant] = ast.literal_eval(text)
    return literals


def _source(package: str, name: str) -> str:
    return (folder(package) / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
