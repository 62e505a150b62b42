"""Finding backends, models, devices, verbs and renderers by looking in their folders.

A plugin is a module. Listing reads file names and docstrings and imports nothing, so `roofline backends`
works where no framework is installed.
"""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from roofline.errors import InputError


def folder(package: str) -> Path:
    """The folder that holds the modules of `package`."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"{package} is not installed: run `pip install -e .` in the checkout.")
    return Path(next(iter(spec.submodule_search_locations)))


def names(package: str, suffix: str = ".py") -> tuple[str, ...]:
    """The plugins in `package`, as the user types them (`bert_layer.py` is "bert-layer")."""
    return tuple(
        sorted(
            path.stem.replace("_", "-") for path in folder(package).glob(f"*{suffix}") if not path.name.startswith("_")
        )
    )


def require(package: str, name: str, kind: str) -> str:
    """`name` if it is a plugin of `package`; InputError with the alternatives otherwise."""
    known = names(package)
    if name not in known:
        raise InputError(f"There is no {kind} called {name!r}; there are: {', '.join(known)}.")
    return name


def extra(backend: str) -> str:
    """The name of the installation extra of a backend: `pip install 'roofline[...]'`."""
    family, _, engine = backend.partition("-")
    return f"keras,{engine}" if family == "keras" else family


def load(package: str, name: str, kind: str) -> ModuleType:
    """The module of plugin `name`. Raises InputError for an unknown name."""
    require(package, name, kind)
    return import_module(f"{package}.{name.replace('-', '_')}")


def summary(package: str, name: str) -> str:
    """The first line of the plugin's docstring, read without importing it."""
    path = folder(package) / f"{name.replace('-', '_')}.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
