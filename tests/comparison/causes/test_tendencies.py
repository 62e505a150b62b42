"""What two runs show and do not resolve. Steps made by hand."""

from __future__ import annotations

from synthetic import ADD, LAYER, step

from roofline.analysis.bootstrap import Interval
from roofline.comparison.causes.findings import explained
from roofline.comparison.causes.tendencies import is_tendency
from roofline.comparison.terms import compare
from roofline.core.schema import Wall

MORE = (*LAYER, ADD, ADD) * 4


def test_what_the_walls_do_not_resolve_is_a_tendency() -> None:
    """Steps that last 4 to 8 ms in either run tell no difference, so less than half of its interval is no finding."""
    uneven = Wall(steps=tuple(ms * 1e-3 for ms in (4, 5, 6, 7, 8, 4, 5, 6, 7, 8)))
    unresolved = compare(step(MORE, wall=uneven), step(wall=uneven))
    assert unresolved.ci95 is not None
    half = (unresolved.ci95[1] - unresolved.ci95[0]) / 2
    near_it: Interval = (1e-6, 1.0)
    assert not unresolved.resolved
    assert is_tendency(unresolved, 0.9 * half, near_it)
    assert not is_tendency(unresolved, 1.1 * half, near_it)
    assert explained(compare(step(MORE), step())).tendencies == ()


def test_a_disturbed_run_needs_twice_the_distance_from_nothing() -> None:
    """Of 3 ± 2 ms twice the interval holds 0, of 3 ± 1 it does not."""
    near_it: Interval = (1e-3, 5e-3)
    calm, disturbed = compare(step(MORE), step()), compare(step(MORE, flags=("contended",)), step())
    assert not is_tendency(calm, 3e-3, near_it)
    assert is_tendency(disturbed, 3e-3, near_it)
    assert is_tendency(disturbed, -3e-3, (-5e-3, -1e-3))
    assert not is_tendency(disturbed, 3e-3, (2e-3, 4e-3))
