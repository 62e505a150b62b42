"""Memory fetched anew in each step. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import findings, found, near, only, slower
from msgspec.structs import replace
from synthetic import LAYER, LINEAR, UNFUSED_NORM, instead, step

#: The system took longer than the ops did: all that they take longer is explained.
MANY = {"page_faults_per_step": 5000.0, "system_seconds_per_step": 10e-3}
FEW = {"page_faults_per_step": 3.0, "system_seconds_per_step": 0.0}
#: The C library told to give back what is freed.
ANEW = {"MALLOC_TRIM_THRESHOLD_": "0"}


def test_page_faults() -> None:
    slow = tuple(change(row, own=3 * row.own) if not row.flops else row for row in LAYER * 4)
    found = only(step(slow, conditions=MANY, environment=ANEW), step(conditions=FEW))
    assert found.rule == "allocation"
    assert found.seconds == near(4 * 2 * 100)
    assert "5,000 page faults per step against 3" in found.text


def test_page_faults_inside_products_that_have_another_name() -> None:
    out = tuple(change(row, name="aten::addmm_out", own=2 * row.own) if row == LINEAR else row for row in LAYER * 4)
    found = only(step(out, conditions=MANY, environment=ANEW), step(conditions=FEW))
    assert found.rule == "allocation"
    assert found.seconds == near(8 * 300)


def test_page_faults_without_the_systems_time_explain_nothing() -> None:
    """What a fault costs is the machine's own, so their number says nothing about seconds."""
    a = step(slower(3.0), conditions={"page_faults_per_step": 5000.0})
    assert "allocation" not in found(a, step(conditions={"page_faults_per_step": 3.0}))


def test_page_faults_explain_no_more_than_the_system_took() -> None:
    faults = {"page_faults_per_step": 300.0, "system_seconds_per_step": 500e-6}
    a = step(slower(3.0), conditions=faults, environment=ANEW)
    b = step(conditions={"page_faults_per_step": 0.0, "system_seconds_per_step": 0.0})
    told = findings(a, b)
    assert [f.seconds for f in told if f.rule == "allocation"] == [near(500)]
    # 2 * 1200 us a layer are slower kernels, in products and in vector ops
    assert sum(f.seconds for f in told if f.rule == "efficiency") == near(4 * 2400 - 500)


def test_page_faults_of_the_faster_run_explain_nothing() -> None:
    a = step(slower(3.0), conditions={"page_faults_per_step": 0.0, "system_seconds_per_step": 0.0})
    b = step(conditions={"page_faults_per_step": 3000.0, "system_seconds_per_step": 500e-6})
    assert "allocation" not in found(a, b)


def test_next_to_no_page_faults_are_no_allocation() -> None:
    slow = tuple(change(row, own=2 * row.own) for row in LAYER * 4)
    conditions = {"page_faults_per_step": 0.3, "system_seconds_per_step": 2e-3}
    quiet = {"page_faults_per_step": 0.0, "system_seconds_per_step": 0.0}
    assert "allocation" not in found(step(slow, conditions=conditions), step(conditions=quiet))


def test_the_systems_time_without_page_faults_is_no_allocation() -> None:
    slow = tuple(change(row, own=2 * row.own) for row in LAYER * 4)
    system = {"page_faults_per_step": 0.0, "system_seconds_per_step": 2e-3}
    told = found(step(slow, conditions=system), step(conditions=system | {"system_seconds_per_step": 0.0}))
    assert set(told) == {"efficiency"}


def test_a_huge_page_is_told_by_the_systems_time() -> None:
    slow = {"page_faults_per_step": 20.0, "system_seconds_per_step": 3e-3}
    quiet = {"page_faults_per_step": 3.0, "system_seconds_per_step": 30e-9}
    told = found(step(slower(3.0), conditions=slow, environment=ANEW), step(conditions=quiet))["allocation"]
    assert "3.00 ms of the system's time in 20 page faults per step against less than 1 µs of the system's" in told.text


def test_two_processes_of_one_program_are_no_cause() -> None:
    """One finds its pages mapped, the other one does not: twice as slow, and nobody's doing but chance's."""
    slow = tuple(change(row, own=2 * row.own) for row in LAYER * 4)
    assert "allocation" not in found(step(slow, conditions=MANY), step(conditions=FEW))
    # Where each process of several says so, it is no chance.
    walls = [tuple(one.wall.steps for _ in range(3)) for one in (step(slow), step())]
    a, b = step(slow, conditions=MANY), step(conditions=FEW)
    a, b = (replace(one, wall=replace(one.wall, processes=each)) for one, each in zip((a, b), walls, strict=True))
    assert found(a, b)["allocation"].seconds == near(4 * 1200)


def test_what_the_host_fetches_between_ops_is_a_cause_whatever_the_ops_do() -> None:
    a = step(extra_gap=3000, conditions={"page_faults_per_step": 5000.0, "system_seconds_per_step": 3e-3})
    assert found(a, step(conditions=FEW))["allocation"].seconds == near(3000)


def test_page_faults_belong_to_what_writes_the_new_bytes() -> None:
    # Norms from six ops move 1 MB more per layer and take 150 us more; the products beside them are 20 us slower each,
    # for 160 pages in all. They were fetched for the pieces: one cause, not two.
    pieces = instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)
    pieces = tuple(change(row, own=row.own + 20) if row == LINEAR else row for row in pieces)
    faults = {"page_faults_per_step": 400.0, "system_seconds_per_step": 160e-6}
    one = only(step(pieces, conditions=faults), step(conditions=FEW))
    assert one.rule == "fusion"
    # Launches of 5 ops more per layer are the host's: 10 us each.
    assert one.seconds == near(4 * (180 - 30 + 5 * 10) + 160)


def test_what_of_the_systems_time_is_inside_of_the_cause_is_no_other_one() -> None:
    # As above, but the system took 600 us: more than half of the 800 of the pieces, which have most of it inside.
    # Beside them 160 are left.
    pieces = instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)
    pieces = tuple(change(row, own=row.own + 20) if row == LINEAR else row for row in pieces)
    faults = {"page_faults_per_step": 400.0, "system_seconds_per_step": 600e-6}
    one = only(step(pieces, conditions=faults), step(conditions=FEW))
    assert (one.rule, one.seconds) == ("fusion", near(4 * (180 - 30 + 5 * 10) + 160))
