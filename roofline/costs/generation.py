"""The phases of a step that generates text: prefill and decode, told by its scopes of these names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roofline.costs.counted import PHASES, Counted

_FORWARD = PHASES.index("forward")
_NAMED = {name: PHASES.index(name) for name in ("prefill", "decode")}


def told_apart(counted: Counted) -> Counted:
    """A generating step with its forward ops in the phases of prefill and decode, and their scopes below those two.

    What is in neither scope stays forward: nobody told whether the prompt is read there or a token made.
    """
    marks = [_mark(path) for path in counted.scopes]
    scopes = tuple(dict.fromkeys(path for _, path in marks))
    number = {path: place for place, path in enumerate(scopes)}
    below = np.asarray([number[path] for _, path in marks], np.int64)
    marked = np.asarray([phase for phase, _ in marks], np.int64)
    phase = np.where(counted.phase == _FORWARD, marked[counted.scope], counted.phase)
    ops = tuple(
        replace(
            op,
            places=tuple((int(below[at]), int(marked[at]) if when == _FORWARD else when) for at, when in op.places),
        )
        if op.places
        else op
        for op in counted.ops
    )
    return replace(counted, ops=ops, scopes=scopes, scope=below[counted.scope], phase=phase)


def _mark(path: str) -> tuple[int, str]:
    """The phase that the first parts of a scope name, the innermost of several, and the rest of its path."""
    phase = _FORWARD
    while (first := path.partition("/"))[0] in _NAMED:
        phase, path = _NAMED[first[0]], first[2]
    return phase, path
