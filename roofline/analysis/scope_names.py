"""Name scopes in few words: the last parts of each, and of many those that share a prefix, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from roofline.units import plain

#: Names that are given of some scopes, the rest is counted; and the last parts of a scope that its name has.
_NAMES = 3


def name_scopes(scopes: Sequence[str]) -> str:
    """Name some scopes, the first by itself: "embeddings, 8 places in encoder/layer.*, 3 more"."""
    groups, unnamed = _grouped(scopes)
    numbers: Counter[str] = Counter()
    for (name, _), number in groups.items():
        numbers[name] += number
    words = [name if number == 1 else f"{number} places in {name}" for name, number in numbers.items()]
    return ", ".join([*words, f"{unnamed} more place{'' if unnamed == 1 else 's'}"] if unnamed else words)


def label_scopes(scopes: Sequence[str]) -> str:
    """Name some scopes as JSON has them: "embeddings, 8 more in encoder/layer.* and 3 more places"."""
    groups, unnamed = _grouped(scopes)
    tail = f" and {unnamed} more {'place' if unnamed == 1 else 'places'}" if unnamed else ""
    lone = {name: f"{name} ({n} places)" if n > 1 else name for (name, nested), n in groups.items() if not nested}
    return ", ".join(f"{n} more in {name}" if nested else lone[name] for (name, nested), n in groups.items()) + tail


def last_parts(scope: str) -> str:
    """Return the last parts of a scope: of "bert/encoder/layer.*/attention/self" "layer.*/attention/self"."""
    return "/".join(scope.split("/")[-_NAMES:])


def _grouped(scopes: Sequence[str]) -> tuple[Counter[tuple[str, bool]], int]:
    """Count the first scope, then those in the prefixes with most places x parts, and those that remain without a name.

    Keys are a name, and whether several scopes begin with it.
    """
    numbers, unnamed = Counter((plain(last_parts(scope)), False) for scope in scopes[:1]), scopes[1:]
    while unnamed and len(numbers) < _NAMES:
        parts = [scope.split("/") for scope in unnamed]
        counts = Counter("/".join(scope[:end]) for scope in parts for end in range(1, len(scope) + 1))
        prefix, count = max(counts.items(), key=lambda item: item[1] * (1 + item[0].count("/")))
        numbers[plain(last_parts(prefix)), count > 1] += count
        unnamed = [scope for scope in unnamed if not f"{scope}/".startswith(f"{prefix}/")]
    return numbers, len(unnamed)
