"""torch's own Python code behind ops, run without loading its compiler first.

torch keeps its compiler out of some of them with a decorator (`torch._disable_dynamo`), which imports all of
`torch._dynamo` at the first call: 1.2 s of a CPU, a third of an import, so that nothing of it is then used. The
decorator looks whether that was done before; here it is told so, for the time of our own calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from types import FunctionType
from typing import Any

import torch._compile
import torch._refs.nn.functional
from torch._decomp import decomposition_table, meta_table

#: Where the decorator (torch/_compile.py) keeps what it made of a function.
_DONE = "__dynamo_disable"


@contextmanager
def without_dynamo(*handlers: Callable[..., Any]) -> Iterator[None]:
    """While active, what is decorated runs as it is. Nothing is changed where the compiler is loaded already.

    handlers: `__torch_dispatch__` of our own modes, which torch decorates too.
    """
    functions = () if "torch._dynamo" in sys.modules else _decorated(handlers)
    fresh = [function for function in functions if not hasattr(function, _DONE)]
    for function in fresh:
        setattr(function, _DONE, function)
    try:
        yield
    finally:
        for function in fresh:
            delattr(function, _DONE)


@cache
def _decorated(handlers: tuple[Callable[..., Any], ...]) -> tuple[Callable[..., Any], ...]:
    """The functions behind torch's decorator: `handlers`, and what ops are taken apart and evaluated with."""
    modules = (torch._refs, torch._refs.nn.functional, torch._refs.special)
    tables: tuple[Mapping[Any, Any], ...] = (decomposition_table, meta_table, *map(vars, modules))
    waiting: list[Any] = [*handlers, *(value for table in tables for value in table.values())]
    ids_met: set[int] = set()
    functions = []
    while waiting:
        function = waiting.pop()
        if not isinstance(function, FunctionType) or id(function) in ids_met:
            continue
        ids_met.add(id(function))
        # Not all wrappers name what they wrap: what a function has inside stands in its closure.
        inside = _closure(function)
        waiting += inside
        if function.__code__.co_filename == torch._compile.__file__:
            functions += [content for content in inside if isinstance(content, FunctionType)]
    return tuple(functions)


def _closure(function: FunctionType) -> list[Any]:
    contents = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # of a name that was not assigned
            contents.append(cell.cell_contents)
    return contents
