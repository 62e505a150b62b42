"""The causes that lie in ops/ and time/, and in which order their rules claim: special ones first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from types import MappingProxyType
from typing import TypeVar

from roofline import plugins
from roofline.comparison.causes.cause import Cause, Rule

_PACKAGES = ("roofline.comparison.causes.ops", "roofline.comparison.causes.time")

R = TypeVar("R", bound=Rule)


@cache
def rules() -> tuple[Rule, ...]:
    """All that claims, in the order in which it does. The order decides which of two causes gets what both could."""
    return tuple(rule for rule in ordered(_found()) if rule.claim is not None)


@cache
def causes() -> Mapping[str, Cause]:
    """All causes by name, in their order."""
    return MappingProxyType({rule.name: rule for rule in ordered(_found()) if isinstance(rule, Cause)})


def ordered(rules: Iterable[R]) -> tuple[R, ...]:
    """Rules so that each comes after those that it names in `after`, and before those that it names in `before`.

    Of several that could come next, the first in the alphabet does. ValueError where a rule names one that is not
    there, two have one name, or the order runs in a circle (`graphlib.CycleError`).
    """
    rules = tuple(rules)
    named = {rule.name: rule for rule in rules}
    if len(named) < len(rules):
        twice = sorted({rule.name for rule in rules if rule is not named[rule.name]})
        raise ValueError(f"There are two causes called {' and '.join(twice)}: rename one of them.")
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for rule in rules:
        if unknown := {*rule.after, *rule.before} - named.keys():
            raise ValueError(
                f"{rule.name} stands beside {', '.join(sorted(unknown))}, which is no cause: mend its order."
            )
        sorter.add(rule.name, *rule.after)
        for later in rule.before:
            sorter.add(later, rule.name)
    sorter.prepare()
    free: list[str] = []
    found = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(free, name)
        found.append(named[heapq.heappop(free)])
        sorter.done(found[-1].name)
    return tuple(found)


@cache
def _found() -> tuple[Rule, ...]:
    """What the files of the two folders offer: `CAUSE`, `CAUSES`, or the `RULE` of what claims for other causes."""
    found: list[Rule] = []
    for package in _PACKAGES:
        for name in plugins.names(package):
            module = import_module(f"{package}.{name.replace('-', '_')}")
            offered = getattr(module, "CAUSES", None) or (getattr(module, "CAUSE", None) or module.RULE,)
            found += offered
    return tuple(found)
