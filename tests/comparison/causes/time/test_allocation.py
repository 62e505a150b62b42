"""Memory fetched anew in each step. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import found, near, only, slower
from synthetic import (
    LAYER,
    LINEAR,
    step,
)

from roofline.comparison.causes.findings import explain
from roofline.comparison.terms import compare

#: The system took longer than the ops did: all that they take longer is explained.
MANY = {"page_faults_per_step": 5000.0, "system_seconds_per_step": 10e-3}
FEW = {"page_faults_per_step": 3.0, "system_seconds_per_step": 0.0}


def test_page_faults() -> None:
    slow = tuple(change(row, own=3 * row.own) if not row.flops else row for row in LAYER * 4)
    found = only(step(slow, conditions=MANY), step(conditions=FEW))
    assert found.rule == "allocation"
    assert found.seconds == near(4 * 2 * 100)
    assert "5,000 page faults per step against 3" in found.text


def test_page_faults_inside_products_that_have_another_name() -> None:
    out = tuple(change(row, name="aten::addmm_out", own=2 * row.own) if row == LINEAR else row for row in LAYER * 4)
    found = only(step(out, conditions=MANY), step(conditions=FEW))
    assert found.rule == "allocation"
    assert found.seconds == near(8 * 300)


def test_page_faults_without_the_systems_time_explain_nothing() -> None:
    """What a fault costs is the machine's own, so their number says nothing about seconds."""
    a = step(slower(3.0), conditions={"page_faults_per_step": 5000.0})
    assert "allocation" not in found(a, step(conditions={"page_faults_per_step": 3.0}))


def test_page_faults_explain_no_more_than_the_system_took() -> None:
    a = step(slower(3.0), conditions={"page_faults_per_step": 300.0, "system_seconds_per_step": 500e-6})
    b = step(conditions={"page_faults_per_step": 0.0, "system_seconds_per_step": 0.0})
    told = explain(compare(a, b))
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
    told = found(step(slower(3.0), conditions=slow), step(conditions=quiet))["allocation"]
    assert "3.00 ms of the system's time in 20 page faults per step against less than 1 µs of the system's" in told.text
