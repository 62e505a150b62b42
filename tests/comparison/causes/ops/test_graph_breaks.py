"""Compiled steps that break. Steps made by hand."""

from __future__ import annotations

from explained import compiled, found, near
from msgspec.structs import replace
from synthetic import (
    LAYER,
    NORM,
    UNFUSED_NORM,
    Row,
    instead,
    step,
)


def test_what_a_broken_graph_no_longer_fuses_is_the_breaks() -> None:
    a = step(instead(LAYER * 4, NORM.name, UNFUSED_NORM), backend="torch-compile", compilation=compiled(5, 4))
    b = step(backend="torch-compile", compilation=compiled(1, 0))
    told = found(a, b)
    assert set(told) == {"graph-breaks"}
    # per layer 180 us of six ops instead of 30 us of one, and 5 * 10 us of the host
    assert told["graph-breaks"].seconds == near(4 * (150 + 50))
    assert "5 compiled graphs per step against 1" in told["graph-breaks"].text
    assert "broken by call to print" in told["graph-breaks"].text


def test_what_only_the_unbroken_step_has_an_op_for_may_be_in_the_python_that_breaks_the_other() -> None:
    """A sine of 100 µs in each layer, and 4 breaks of 250 µs in the run without it: it is not to be left out."""
    sine = Row("sin", "pointwise", 100, bytes=0.4e6, block="FFN")
    whole = step((*LAYER, sine) * 4, backend="torch-compile", compilation=compiled(1, 0))
    broken = step(backend="torch-compile", extra_gap=1000, compilation=compiled(5, 4))
    told = found(broken, whole)
    assert told["graph-breaks"].seconds == near(1000)
    assert "unless torch-compile (A) does them in the Python that breaks its graph" in told["more-work"].text
    assert told["more-work"].advice.startswith("look what torch-compile (A) does in their place between its graphs")
    alike = found(replace(broken, compilation=compiled(1, 0)), whole)
    assert alike["more-work"].advice == "leave them out where they are not needed"


def test_as_many_breaks_in_both_runs_are_no_cause() -> None:
    a = step(instead(LAYER * 4, NORM.name, UNFUSED_NORM), backend="torch-compile", compilation=compiled(5, 4))
    b = step(backend="torch-compile", compilation=compiled(5, 4))
    assert set(found(a, b)) == {"fusion"}


def test_of_a_step_that_is_mostly_eager_graph_breaks_are_not_the_cause() -> None:
    a = step(
        instead(LAYER * 4, NORM.name, UNFUSED_NORM), backend="torch-compile", compilation=compiled(5, 4, eager=5e-3)
    )
    b = step(backend="torch-compile", compilation=compiled(1, 0))
    assert set(found(a, b)) == {"jit-not-in-effect"}
