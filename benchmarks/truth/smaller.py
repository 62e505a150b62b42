"""Leaves out the layers of a model that do not matter for what is wrong with its count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from draw import named

#: Whether each of these models is counted wrongly still, in the same way.
Wrong = Callable[[Sequence[str]], list[bool]]


def smaller(name: str, wrong: Wrong) -> str:
    """The name of the smallest model that is found by cutting the end off, then layer by layer.

    The result is counted as wrongly as the whole.
    """
    depth = len(named(name).layers)
    name = _first([_without(name, range(end, depth)) for end in range(1, depth)], wrong) or name
    while True:
        present = [number for number in range(depth) if str(number) not in name.split("~")[1:]]
        shorter = _first([_without(name, [number]) for number in present], wrong)
        if shorter is None:
            return name
        name = shorter


def _without(name: str, layers: Sequence[int] | range) -> str:
    return "~".join([name, *map(str, layers)])


def _first(names: Sequence[str], wrong: Wrong) -> str | None:
    """The first of these models that is one and is counted wrongly."""
    models = [name for name in names if _is_model(name)]
    return (
        next((name for name, is_wrong in zip(models, wrong(models), strict=True) if is_wrong), None) if models else None
    )


def _is_model(name: str) -> bool:
    try:
        named(name)
    except (ValueError, IndexError, KeyError, ZeroDivisionError):
        return False
    return True
