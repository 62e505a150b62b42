"""A function that the user names: `--step module.path:function`. It is no member of the list, and goes before it.

A function of the script itself is wrapped as soon as it is defined, by a decorator that its source gets when it is
compiled: the script's own code may call it before the script has been run to its end.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import partial, reduce, wraps
from pathlib import Path
from types import CodeType
from typing import Any

from roofline.errors import InputError
from roofline.running.boundary import Boundary, Watcher

_DECORATOR = f"__import__({__name__!r}, fromlist=('SCRIPT',)).SCRIPT.reporting"


class _Script:
    """Hold what wraps a function of the script."""

    reporting: Callable[[Callable[..., Any]], Callable[..., Any]] = staticmethod(lambda function: function)


SCRIPT = _Script()


def boundary(path: str, script: str | None) -> tuple[Boundary, Callable[[bytes, str], CodeType] | None]:
    """Make the boundary of a function, and what compiles the script if the function is in it.

    path: "module.path:function" or "module.path:Class.method"; of the script, "__main__:function" or its name instead
    of the module. Raises InputError for another form, and for a function that the script does not define.
    """
    module, colon, function = path.partition(":")
    names = function.split(".")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *names)):
        raise InputError(f"--step {path} names no function: give module.path:function.")
    if script is None or module not in ("__main__", Path(script).stem):
        if module == "__main__":
            raise InputError("--step cannot name a function of the module that is run: move it to another module.")
        return Boundary(name=f"{function}()", module=module, watch=partial(_watch_module, module, names)), None
    _decorated(Path(script).read_bytes(), names, script)
    return (
        Boundary(name=f"{function}()", module="", watch=partial(_watch_script, function)),
        lambda source, name: compile(_decorated(source, names, name), name, "exec", dont_inherit=True),
    )


def _watch_module(module: str, names: list[str], watcher: Watcher) -> None:
    import sys

    owner = reduce(getattr, names[:-1], sys.modules[module])
    watcher.expect()
    watcher.wrap(owner, names[-1], partial(_reporting, watcher, ".".join(names)))


def _watch_script(function: str, watcher: Watcher) -> None:
    watcher.expect()
    SCRIPT.reporting = partial(_reporting, watcher, function)


def _reporting(watcher: Watcher, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its outermost calls are reported."""
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise InputError(f"{name} is a generator or a coroutine, whose call is no step: name a function.")
    running = False

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        nonlocal running
        if running:
            return function(*args, **kwargs)
        running = True
        try:
            result = function(*args, **kwargs)
        finally:
            running = False
        watcher.ended("step", f"{name}()", results=(result,))
        return result

    return wrapper


def _decorated(source: bytes, names: list[str], script: str) -> ast.Module:
    """Parse a script and put the decorator in front of its function. Raises InputError where there is none."""
    tree = ast.parse(source, script)
    body: list[ast.stmt] = tree.body
    for name in names[:-1]:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == name), [])
    function = next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == names[-1]), None)
    if function is None:
        raise InputError(f"{script} defines no function {'.'.join(names)}: name one that it defines, for --step.")
    decorator = ast.parse(_DECORATOR, mode="eval").body
    for node in ast.walk(decorator):
        ast.copy_location(node, function)
    function.decorator_list.insert(0, decorator)
    return tree
