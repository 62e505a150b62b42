"""What is found in steps made by hand (synthetic.py), and facts made by hand, for the tests of causes."""

from __future__ import annotations

from dataclasses import replace as change
from typing import Any

import pytest
from msgspec.structs import replace
from synthetic import LAYER, Row, step

from roofline.analysis.analysis import analyze
from roofline.comparison.causes.claim import Work
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.findings import Finding, explained
from roofline.comparison.terms import compare
from roofline.core.schema import Compilation, Profile

#: A copy that takes long.
COPY = Row("aten::clone", "movement", 100, bytes=1e6, block="FFN")


def findings(a: Profile, b: Profile) -> tuple[Finding, ...]:
    """What is small beside others is told, too."""
    told = explained(compare(a, b))
    return *told.findings, *told.smaller


def found(a: Profile, b: Profile) -> dict[str, Finding]:
    return {finding.rule: finding for finding in findings(a, b)}


def only(a: Profile, b: Profile) -> Finding:
    (finding,) = findings(a, b)
    return finding


def near(microseconds: float) -> object:
    return pytest.approx(microseconds * 1e-6, rel=1e-6)


def before(name: str, *rows: Row) -> tuple[Row, ...]:
    """The layers with some rows before each op of a name."""
    return tuple(one for row in LAYER * 4 for one in ((*rows, row) if row.name == name else (row,)))


def slower(factor: float, rows: tuple[Row, ...] = LAYER * 4) -> tuple[Row, ...]:
    return tuple(change(row, own=factor * row.own) for row in rows)


def by(kernel: str, run: Profile) -> Profile:
    """The step whose products a kernel carries out."""
    ops = tuple(
        replace(op, kernels=((0, op.own_ns[0]),)) if run.signatures[op.signature].cost.flops else op for op in run.ops
    )
    return replace(run, kernels=(kernel,), ops=ops)


def compiled(graphs: int, breaks: int, eager: float = 0.0) -> Compilation:
    """eager: own time of ops outside of graphs [s]."""
    return Compilation(
        compiler="torch.compile",
        graphs=graphs,
        breaks={"call to print": breaks} if breaks else {},
        eager={"forward": (9, eager)} if eager else {},
    )


def xla(programs: float, rows: tuple = LAYER * 4, **more: object) -> Profile:  # type: ignore[type-arg]
    return step(rows, backend="jax", conditions={"programs_per_step": programs}, **more)


def work(ops: int = 0) -> Work:
    return Work(
        own=0.0, seconds=0.0, ops=ops, launches=float(ops), bytes=1e6, flops=1e6, whole=True, floor=0.0,
        names=("mul",), classes=frozenset({"pointwise"}), fused=0.0,
    )  # fmt: skip


def facts(**changes: Any) -> Facts:
    """100 us more, in 200 launches against 100; gaps of 280 us (28 launches at 10 us) against 140 us."""
    fields: dict[str, Any] = {
        **{"more": "torch", "less": "jax", "seconds": 100e-6, "does_more": work(20), "does_less": work(5)},
        **{"run_more": analyze(step()), "run_less": analyze(step(backend="jax", host=5))},
        **{"launches_more": 200.0, "launches_less": 100.0, "about": {"of": "products"}},
        **{"about_more": "", "about_less": "", "where": "", "certain": True, "dispatch": 0.0, "after": 0.0},
    }
    return Facts(**(fields | changes))
