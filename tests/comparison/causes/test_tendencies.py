"""What two runs show and do not resolve. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import slower
from msgspec.structs import replace
from synthetic import ADD, LAYER, NORM, UNFUSED_NORM, Row, instead, step

from roofline.analysis.bootstrap import Interval
from roofline.comparison.causes.findings import explained
from roofline.comparison.causes.tendencies import is_tendency
from roofline.comparison.terms import compare
from roofline.core.executor import QUEUED
from roofline.core.schema import Profile, Wall

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


#: A call that the other run does not make: 900 µs, and 10 µs of its host.
CALL = Row("xla_ffi_python_cpu_callback", "other", 900, known=False)
#: Walls that tell no difference of less than a millisecond.
UNEVEN = Wall(steps=tuple(ms * 1e-3 for ms in (4, 5, 6, 7, 8, 4, 5, 6, 7, 8)))


def told(a: Profile, b: Profile) -> tuple[list[str], list[str]]:
    """Findings and tendencies, by name."""
    comparison = compare(a, b)
    assert not comparison.resolved
    found = explained(comparison)
    return [each.rule for each in found.findings], [each.rule for each in found.tendencies]


def test_what_one_run_alone_does_is_found_whatever_the_walls_are() -> None:
    """The other run spends nothing on it, so its own time says enough; the same ops, slower, need both walls."""
    plain = step(wall=UNEVEN)
    assert told(step((*LAYER * 4, CALL), wall=UNEVEN), plain) == (["host-idle"], [])
    assert told(plain, step((*LAYER * 4, CALL), wall=UNEVEN)) == (["host-idle"], [])
    assert told(step(slower(1.3), wall=UNEVEN), plain)[0] == []


def test_other_work_in_one_place_is_found_by_what_it_surely_takes_more() -> None:
    """A norm in pieces takes 4 x 180 µs, in one 4 x 30. Of 4 x 60 and 4 x 30 little is certain."""
    in_pieces = instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)
    assert told(step(in_pieces, wall=UNEVEN), step(wall=UNEVEN)) == (["fusion"], [])
    assert told(step(wall=UNEVEN), step(in_pieces, wall=UNEVEN)) == (["fusion"], [])
    nearly = instead(LAYER * 4, "aten::native_layer_norm", (change(NORM, name="mine::norm", own=60, bytes=0.4e6),))
    assert told(step(nearly, wall=UNEVEN), step(wall=UNEVEN))[0] == []


def test_what_one_run_alone_does_must_surely_matter() -> None:
    """300 µs of a step of 6 ms, of which 120 µs matter, where one process takes 1.4 times as long as another.

    The lower end of such an interval is more than that; under `contended`, as far below again, it is less.
    """
    wall = replace(UNEVEN, processes=(tuple(1.4 * each for each in UNEVEN.steps),))
    runs = step((*LAYER * 4, change(CALL, own=300)), wall=wall), step(wall=wall)
    assert told(*runs) == (["host-idle"], [])
    (finding,) = explained(compare(*runs)).findings
    assert 2 * finding.ci95[0] - finding.seconds < 120e-6 < finding.ci95[0]
    disturbed = (replace(run, flags=("contended",)) for run in runs)
    assert told(*disturbed)[0] == []


def waiting(seconds: float | None, more: bool) -> Profile:
    """One thread that waits so long for a core in each step; 2 ms of a longer one it runs no op in."""
    known = {"away_seconds_per_step": 0.0} | ({} if seconds is None else {QUEUED: seconds})
    return step(extra_gap=2000 if more else 0, conditions=known, environment={"threads": "1"})


def test_a_host_that_others_had_the_core_of_is_not_said_to_do_more() -> None:
    """2 ms more in which no op runs: all of it, or all but 5 µs, may be the 2 ms that it waited longer for a core."""

    def of(a: float | None, b: float | None) -> tuple[list[str], list[str]]:
        found = explained(compare(waiting(a, more=True), waiting(b, more=False)))
        return [each.rule for each in found.findings], [each.rule for each in found.tendencies]

    assert of(0.0, 0.0) == (["host-idle"], [])
    assert of(None, 0.0) == (["host-idle"], [])
    assert of(2.5e-3, 0.0) == ([], ["host-idle"])
    assert of(1.995e-3, 0.0) == ([], ["host-idle"])
    # Half of it may be: that is told, and the interval reaches as far.
    (half,) = explained(compare(waiting(1e-3, more=True), waiting(0.0, more=False))).findings
    assert "waited for a core that other programs had for 1.00 ms of a step, against less than 1 µs" in half.text
    assert half.advice == "measure again while no other program wants the cores"
    assert half.ci95[0] <= half.seconds - 1e-3 < 1.1e-3
    # 1 ms of it is more than the waiting; and who waits more in the faster run says nothing of the slower one.
    assert of(1e-3, 0.0) == (["host-idle"], [])
    assert of(0.0, 2.5e-3) == (["host-idle"], [])
    assert of(3e-3, 2.8e-3) == (["host-idle"], [])
