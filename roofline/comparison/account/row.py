"""The account of a difference: rows of four kinds, all facts, which add up to wall_A - wall_B.

    sum of row.seconds = wall_A - wall_B         a setting has no seconds of its own

A positive row is time that A spends and B does not.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from roofline.analysis.bootstrap import Interval
from roofline.analysis.gap_parts import DISPATCHING

#: setting: settings that differ. only: ops that one run has in the place of what the other has there, with what
#: dispatching them takes. rate: the same ops, which take longer in one run. gap: a measured part of the time in which
#: no op ran, less the dispatching that other rows hold.
Kind = Literal["setting", "only", "rate", "gap"]

#: Of PyTorch's ops; what compilers write in kernels and calls of them has none.
NAMESPACE = "aten::"
#: The part of a gap in which hosts dispatch ops that both runs have.
SAME_OPS = f"{DISPATCHING} the same ops"
#: The pass that takes page faults off the rows of ops; its note says how much [s].
MOVED_BY = "page faults"
#: Names of ops and of places that a sentence gives of a row, the rest is counted; and the last parts of a scope.
NAMES = 3


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one run in a row, per step.

    launches: of kernels; on a CPU, how often its ops ran. bytes: read and written; None: not known of all ops.
    seconds: of its ops and of dispatching them, or its part of the gap [s]; None: they were not seen. dispatch: of
    that, dispatching [s]. of_roof: floor / own time of its ops; None where one has no floor. times: how often a loop
    executes those with most of its time, 1 outside of loops.
    """

    launches: float = 0.0
    bytes: float | None = None
    seconds: float | None = 0.0
    dispatch: float = 0.0
    of_roof: float | None = None
    times: int = 1


class OpChange(msgspec.Struct, frozen=True, kw_only=True):
    """The ops of one name and type in a row: how often each run executes them, and their part of its seconds [s].

    classes: of what the row holds of them, most time first; is_part: whether that is not all of them, as of a kernel
    that fused a product with what follows it, where the other run has that product. parts: what a compiler fused into
    them. Of a setting, a and b are its values in both runs, None where it was not recorded, and seconds is None.
    """

    name: str
    type: str | None = None
    classes: tuple[str, ...] = ()
    is_part: bool = False
    parts: tuple[str, ...] = ()
    a: float | str | None = None
    b: float | str | None = None
    seconds: float | None = None

    @property
    def counts(self) -> tuple[float, float]:
        """Return how often A and B execute the ops; 0 of what is no number."""
        a, b = (float(value) if isinstance(value, (int, float)) else 0.0 for value in (self.a, self.b))
        return a, b


class KernelChange(msgspec.Struct, frozen=True, kw_only=True):
    """Hold ops that both runs execute by other kernels: the names that the other run lacks, and the time in each.

    kernels: most time first, empty where a run has no other ones; ops: how many; seconds: of these ops in each run [s].
    """

    kernels: tuple[tuple[str, ...], tuple[str, ...]]
    ops: int
    seconds: tuple[float, float]


class Note(msgspec.Struct, frozen=True):
    """The reason why a pass merged ops into a row, moved them out of it or left them out of it."""

    step: str
    reason: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the account.

    scopes: where its ops are, with numbers as "*", most time first; empty: everywhere. run_scopes: those of A and of B.
    differing: what the arguments of its ops in A and B differ in. place: the part of the gap, None of other rows.
    phase, op_class: where it is one. ops: most time first; last, without counts, what dispatching the op after takes,
    and what the row of page faults has of them; they add up to its seconds. times: how often a loop executes the op
    that it executes most often, 1 outside of loops. upper: whether its seconds were seen under the profiler alone, and
    are an upper end. advice: what to try about what it is called; "" where no measured pair shows what that gains.
    kernels: of the same ops those that other kernels carry out, the largest difference first. notes: of the passes.
    text: one sentence.
    """

    kind: Kind
    scopes: tuple[str, ...] = ()
    run_scopes: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    differing: tuple[str, ...] = ()
    place: str | None = None
    phase: str | None = None
    op_class: str | None = None
    seconds: float | None = None
    ci95: Interval | None = None
    a: Amount = Amount()
    b: Amount = Amount()
    ops: tuple[OpChange, ...] = ()
    times: int = 1
    upper: bool = False
    annotations: tuple[str, ...] = ()
    advice: str = ""
    kernels: tuple[KernelChange, ...] = ()
    notes: tuple[Note, ...] = ()
    text: str = ""

    @property
    def sign(self) -> int:
        """Return 1 where A spends more, else -1: `(a, b)[:: row.sign]` begins with the run that spends more."""
        return 1 if (self.seconds or 0.0) >= 0 else -1


class Style(NamedTuple):
    """How rows are said. names: of the runs; classes: whether ops have their class; kernels: of launched ones."""

    names: tuple[str, str]
    classes: bool = False
    kernels: bool = False


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a difference, settings first, then the largest first, and how they are said."""

    rows: tuple[Row, ...]
    style: Style = Style(("A", "B"))
