"""Define a boundary: a kind of place at which steps of a program end. Each file of `boundaries` holds one.

A file holds `BOUNDARY`, and `boundaries.ORDER` its name. Its `watch` hooks into a library that the program has just
imported, and calls the watcher for all that it sees; which of the boundaries a program's steps have, which calls make
up a step and which steps are unlike the others is decided in `steps`, from what all of them report.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from roofline.core.step import Mode

EMPTY: Mapping[str, int] = {}


class Watcher(Protocol):
    """Receive what a boundary sees. All methods are cheap, and do nothing when they are not needed (any more)."""

    @property
    def wanted(self) -> bool:
        """True while reports are of use: a hook that is called often may ask before it prepares one."""

    def ended(
        self,
        source: Hashable,
        label: str,
        *,
        results: tuple[object, ...] = (),
        model: object = None,
        detail: Hashable = None,
        sizes: Mapping[str, int] = EMPTY,
        since: float | None = None,
    ) -> None:
        """Report that something of this boundary's kind has ended: a call, an update, a mark.

        To be called when the call has returned, outside of what the library itself still does: the measurement starts
        and stops here, on the program's stack. source: tells things of this kind apart, see `source`. label: names it
        for people ("Adam", "Net without gradients"). results: of the step, to be awaited where steps are asynchronous.
        model: what is called. detail: what differs between unlike calls (shapes of arguments). sizes: of the step,
        where they are known: fields of `Step` such as batch, seq and new_tokens. since: when the hook began to prepare
        the report (`perf_counter`); None: it only begins now. What it takes from then on is no time of the step.
        """

    def source(self, thing: Any, kind_of: Callable[[Any], Hashable]) -> Hashable:
        """Return what tells an object of the program apart, also when it is gone and another one has its address.

        kind_of: asks what objects share of which one may stand for another that is gone, as a loop makes it anew.
        """

    def met(self, label: str) -> None:
        """Report something that happens in some steps and ends none ("a checkpoint"): such a step is unlike others."""

    def expect(self) -> None:
        """Report that there will be ends of this kind (an optimizer was made): boundaries further down must wait."""

    def blocked(self, by: str | None) -> None:
        """Report that a profiler of the program's own runs, by its name, or None: no longer. Two cannot run at once."""

    def when_imported(self, module: str, function: Callable[[], None]) -> None:
        """Call a function right after the program has imported a module, or at once where it has."""

    def wrap(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replace a function of a module, or a method of a class, until the program has ended.

        make: makes the wrapper of the original; it gets the original's name, docstring and attributes.
        """

    def remove_by(self, remove: Callable[[], None]) -> None:
        """Give a function that takes hooks away again that `wrap` does not make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """Describe where steps of a kind end.

    name: of what ends, in "a step: from one {name} to the next"; "{label}" in it stands for the label of what ended.
    "": nothing of this kind ends a step, and it only tells that some steps are unlike the others. module: `watch` is
    called right after the program has imported it; "": at once. backend: the one of `roofline profile` that records
    such steps; None: that of the framework which the program has imported. mode: of the steps; None: they train if
    something of another boundary was seen that trains, and else infer. at_begin: its reports come when a call begins,
    and a step ends where the first call of the next one does: the backward pass and the update of a training without an
    optimizer are then behind the forward pass that they belong to. may_cease: a program may use it in its first steps
    only; it is given up when there have been more steps without it than before. parameters: counts those of a model
    that it reports; that with the most in a step gives the profile its name.
    """

    name: str
    module: str
    watch: Callable[[Watcher], None]
    backend: str | None = None
    mode: Mode | None = None
    at_begin: bool = False
    may_cease: bool = False
    parameters: Callable[[Any], int] = lambda model: 0
