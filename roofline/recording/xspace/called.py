"""Record calls of library functions that no trace shows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any


@contextmanager
def called(functions: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Collect the names of those of `functions` that are called while the context is active.

    functions: (module, name or Class.name); those of modules that are not imported are skipped. A subclass that
    inherits the function is covered as well.
    """
    names: list[str] = []
    with ExitStack() as undo:
        for module, path in functions:
            *outer, name = path.split(".")
            owner: Any = sys.modules.get(module)
            for part in outer:
                owner = getattr(owner, part, None)
            function = getattr(owner, name, None)
            if callable(function):
                undo.callback(_put_back, owner, name, vars(owner).get(name))
                setattr(owner, name, _noting(function, f"{module}.{path}", names))
        yield names


def _noting(function: Callable[..., Any], name: str, names: list[str]) -> Callable[..., Any]:
    @wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        if name not in names:
            names.append(name)
        return function(*args, **kwargs)

    return noting


def _put_back(owner: Any, name: str, before: object) -> None:
    """Restore a function of its owner. before: None where the owner inherited it."""
    if before is None:
        delattr(owner, name)
    else:
        setattr(owner, name, before)
