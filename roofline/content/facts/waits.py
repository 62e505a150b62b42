"""Describe idle time whose cause a trace names: what the device waited for, and functions that the host was in."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.waits import Wait, longest_named
from roofline.content.wording import plain

#: Letters of what was waited for.
_LONGEST = 100


def in_words(wait: Wait) -> str:
    """Say what the device waited for, or what the host was in: "waiting for another stream (stream 7)"."""
    if not wait.is_of_device:
        return f"the host in {plain(wait.of, _LONGEST)}"
    return f"{wait.cause} ({plain(wait.of, _LONGEST)})" if wait.of else wait.cause


def longest(analysis: Analysis) -> str:
    """Say what most of the named waits are for, of the host and of the device; "" where none is named."""
    found = [longest_named(analysis.profile, of_device=of_device) for of_device in (False, True)]
    return ", ".join(_before(analysis, wait) for wait in found if wait is not None)


def _before(analysis: Analysis, wait: Wait) -> str:
    op = analysis.profile.signatures[analysis.profile.ops[wait.op].signature].name
    return f"{units.seconds(wait.seconds)} of it {in_words(wait)}, longest before {plain(op, _LONGEST)}"


def most_in_function(analysis: Analysis) -> str:
    """Name the function of Python that the host was in for more than half of the gap; "" where there is none."""
    wait = longest_named(analysis.profile, of_device=False)
    if wait is None or 2 * wait.seconds <= analysis.gap:
        return ""
    return f"most of it in {plain(wait.of, _LONGEST)}"
