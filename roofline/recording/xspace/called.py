"""Functions of libraries that are seen to be called, where no trace tells of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any


@contextmanager
def called(functions: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """While active, the names of those of `functions` that are called are collected.

    functions: (module, name or Class.name); of modules that nobody has imported none is called. A subclass that has the
    function from its base is seen as well.
    """
    seen: list[str] = []
    with ExitStack() as undo:
        for module, path in functions:
            *outer, name = path.split(".")
            owner: Any = sys.modules.get(module)
            for part in outer:
                owner = getattr(owner, part, None)
            function = getattr(owner, name, None)
            if callable(function):
                undo.callback(_put_back, owner, name, vars(owner).get(name))
                setattr(owner, name, _noting(function, f"{module}.{path}", seen))
        yield seen


def _noting(function: Callable[..., Any], name: str, seen: list[str]) -> Callable[..., Any]:
    @wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        if name not in seen:
            seen.append(name)
        return function(*args, **kwargs)

    return noting


def _put_back(owner: Any, name: str, before: object) -> None:
    """before: None where the owner had it from a base."""
    if before is None:
        delattr(owner, name)
    else:
        setattr(owner, name, before)
