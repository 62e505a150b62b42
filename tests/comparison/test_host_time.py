"""Whose time it is when no op runs, on steps made by hand: 4 layers of 7 ops, the host 10 µs before each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace as change

import pytest
from msgspec.structs import replace
from synthetic import LAYER, LINEAR, NORM, UNFUSED_NORM, Row, instead, step

from roofline.analysis.analysis import analyze
from roofline.comparison.causes.findings import Finding, explain
from roofline.comparison.host_time import dispatch, host_time
from roofline.comparison.terms import compare
from roofline.core.schema import Profile, decode, encode
from roofline.errors import InputError

AWAKE, ASLEEP = {"away_seconds_per_step": 0.0}, {"away_seconds_per_step": 2e-3}
ONE = {"threads": "1"}


def found(a: Profile, b: Profile) -> dict[str, Finding]:
    return {finding.rule: finding for finding in explain(compare(a, b))}


def near(microseconds: float) -> object:
    return pytest.approx(microseconds * 1e-6, rel=1e-6)


def before(rows: Iterable[Row], name: str, framework: float, python: float) -> tuple[Row, ...]:
    """The rows, with another host time before each op of that name."""
    return tuple(change(row, host=(framework, python)) if row.name == name else row for row in rows)


def recorded(rows: Iterable[Row] = LAYER * 4) -> tuple[Row, ...]:
    """The rows, with their 10 µs recorded: 2 of the framework and 8 of Python."""
    return tuple(change(row, host=(2.0, 8.0)) for row in rows)


def test_recorded_times_are_taken_as_they_are() -> None:
    host = host_time(analyze(step(before(recorded(), LINEAR.name, 30, 1), conditions=AWAKE)))
    # 12 linear ops of 31 us and 16 others of 10 us
    assert host.whole == pytest.approx(1e3 * (12 * 31 + 16 * 10))
    assert (host.median, host.usual) == (10_000, 100_000)
    assert host.framework[:2].tolist() == [30_000, 2_000]
    assert not host.asleep


def test_input_is_before_no_op() -> None:
    causes = {"host dispatch": 0.5, "data input": 0.5}
    # 280 us before ops, 280 of input. Where gap and idle time do not agree (6.00 ms), no part of the gap is input.
    a = step(recorded(), extra_gap=280, causes=causes)
    apart = replace(a, wall=replace(a.wall, steps=tuple(each + 1e-3 for each in a.wall.steps)))
    assert [host_time(analyze(run)).whole for run in (a, apart)] == pytest.approx([280_000, 560_000])


def test_what_was_not_recorded_is_told_by_the_representative_step() -> None:
    host = host_time(analyze(step()))
    assert host.python == pytest.approx([10_000] * 28, abs=50)  # own times are means of 0.99, 1 and 1.01
    assert host.framework.sum() == 0
    assert host.asleep  # nothing says that it was not


def test_pythons_part_of_a_dispatch_is_limited_and_the_frameworks_is_not() -> None:
    awake, asleep = (
        host_time(analyze(step((change(LINEAR, host=(500, 500)), *recorded()), conditions=conditions)))
        for conditions in (AWAKE, ASLEEP)
    )
    # Usual is 10 x the median of 10 us. A thread that slept may have slept in the framework as well.
    assert dispatch(awake, awake)[0] * awake.whole == pytest.approx(600_000)
    assert dispatch(asleep, asleep)[0] * asleep.whole == pytest.approx(100_000)


def unfused(host: tuple[float, float]) -> tuple[Row, ...]:
    """Layer norms from six ops of 180 µs instead of one of 30 µs, with this host time before each of the six."""
    return instead(recorded(), NORM.name, tuple(change(row, host=host) for row in UNFUSED_NORM))


def test_what_the_framework_does_for_an_op_is_its_causes_however_long_it_takes() -> None:
    told = found(step(unfused((300.0, 8.0)), conditions=AWAKE), step(recorded(), conditions=AWAKE))
    # per layer 150 us of ops, 6 * 308 us of the host against 10
    assert set(told) == {"fusion"}
    assert told["fusion"].seconds == near(4 * (150 + 6 * 308 - 10))


def test_a_sleep_before_an_op_is_not_its_causes() -> None:
    first, *others = UNFUSED_NORM
    rows = (change(first, host=(402.0, 8.0)), *(change(row, host=(2.0, 8.0)) for row in others))
    a = step(instead(recorded(), NORM.name, rows), conditions=ASLEEP, environment=ONE)
    told = found(a, step(recorded(), conditions=AWAKE, environment=ONE))
    # Before the first of the six 10 x the median of 10 us is dispatch, the other 310 us are not
    assert told["fusion"].seconds == near(4 * (150 + 100 + 5 * 10 - 10))
    assert told["host-idle"].seconds == near(4 * 310)
    assert "slept or waited" in told["host-idle"].text


def test_what_ends_after_the_cause_belongs_to_it() -> None:
    # After the six ops stands a linear op (after the last layer nothing); before it the framework takes 200 us
    rows = list(unfused((2.0, 8.0)))
    at = [number + 1 for number, row in enumerate(rows[:-1]) if row.name == "aten::mul"]
    for number in at:
        assert rows[number].name == LINEAR.name
        rows[number] = change(rows[number], host=(202.0, 8.0))
    told = found(step(rows, conditions=AWAKE), step(recorded(), conditions=AWAKE))
    assert set(told) == {"fusion"}
    assert told["fusion"].seconds == near(4 * (150 + 6 * 10 - 10) + 200 * len(at))


def test_time_before_other_ops_is_not_the_causes() -> None:
    # 400 us before each gelu, which stands two ops after the norm
    told = found(
        step(before(unfused((2.0, 8.0)), "aten::gelu", 402, 8), conditions=AWAKE, environment=ONE),
        step(recorded(), conditions=AWAKE, environment=ONE),
    )
    assert told["fusion"].seconds == near(4 * (150 + 6 * 10 - 10))
    assert told["host-idle"].seconds == near(4 * 400)
    assert "on a core all the while" in told["host-idle"].text


def test_a_thread_that_waits_for_others_says_nothing_of_sleep() -> None:
    a = step(before(recorded(), "aten::gelu", 402, 8), conditions=ASLEEP, environment={"threads": "2"})
    told = found(a, step(recorded(), conditions=AWAKE, environment={"threads": "2"}))
    assert told["host-idle"].seconds == near(4 * 400)
    assert "Python, sleeping or input" in told["host-idle"].text


def test_what_ops_take_longer_right_after_a_sleep_belongs_to_it() -> None:
    # 500 us before each gelu, which takes 50 us otherwise and 150 us then; the linear ops take 1 % longer for no reason
    rows = before(recorded(), "aten::gelu", 2, 508)
    rows = tuple(change(row, own=150) if row.name == "aten::gelu" else row for row in rows)
    rows = tuple(change(row, own=303) if row.name == LINEAR.name else row for row in rows)
    a = step(rows, conditions={"away_seconds_per_step": 2e-3}, environment=ONE)
    told = found(a, step(recorded(), conditions=AWAKE, environment=ONE))
    assert set(told) == {"host-idle"}
    assert told["host-idle"].seconds == near(4 * (500 + 100))
    assert "400 µs of it is what the ops right after it take longer" in told["host-idle"].text


def drifted(profile: Profile, seconds: float) -> Profile:
    """The run with plain steps slower by that than what the profiled ones show."""
    return replace(profile, wall=replace(profile.wall, steps=tuple(each + seconds for each in profile.wall.steps)))


@pytest.mark.parametrize(
    ("before_first", "part"),
    [
        (200.0, 190),  # setting a segment up
        (600.0, 92),  # longer than that takes: as far as it is dispatch, 2 us and ten times the median of 10 us
    ],
)
def test_what_the_host_takes_longer_before_what_is_computed_again(before_first: float, part: float) -> None:
    backward = recorded(change(row, phase="backward", flops=2 * row.flops) for row in LAYER)
    again = recorded(change(row, phase="backward", model_flops=0.0) for row in LAYER)
    first, *others = recorded(LAYER)
    set_up = change(first, host=(2.0, before_first - 2.0))
    told = found(
        step((set_up, *others, *again, *backward), conditions=AWAKE),
        step((first, *others, *backward), conditions=AWAKE),
    )
    assert told["recomputation"].seconds == near(1200 + 7 * 10 + part)


def test_what_plain_steps_are_slower_by_goes_to_ops_and_idle_time_alike() -> None:
    # 4 * (1200 + 150) us of ops and 4 * (7 + 5) * 10 us of the host are 5880 us; 147 us more are 2.5 % of each of them
    a = step(instead(recorded(), NORM.name, tuple(change(row, host=(2.0, 8.0)) for row in UNFUSED_NORM)))
    told = found(drifted(a, 147e-6), step(recorded()))
    assert set(told) == {"fusion"}
    # the op after them is dispatched slower, too
    assert told["fusion"].seconds == near(1.025 * 4 * (180 + 6 * 10) - 4 * (30 + 10) + 0.025 * 4 * 10)


def test_no_more_than_a_tenth_of_a_step_goes_to_ops_and_idle_time() -> None:
    # Of 5880 + 1000 us a tenth, 688, is spread over the 5880; on what the other 312 went nobody knows
    a = step(instead(recorded(), NORM.name, tuple(change(row, host=(2.0, 8.0)) for row in UNFUSED_NORM)))
    told = found(drifted(a, 1e-3), step(recorded()))
    slower = 688 / 5880
    assert set(told) == {"fusion"}
    assert told["fusion"].seconds == near((1 + slower) * 4 * (180 + 6 * 10) - 4 * (30 + 10) + slower * 4 * 10)


def test_drift_is_not_waited_for() -> None:
    # Of 1280 us of gap 768 are synchronisation. Plain steps of 6.08 ms are slower by 304 us, 5 %: so are both parts
    a = step(extra_gap=1000, causes={"host dispatch": 0.4, "synchronisation": 0.6})
    told = found(drifted(a, 304e-6), step())
    assert told["synchronisation"].seconds == pytest.approx(1.05 * 768e-6, rel=0.01)


def test_what_no_op_and_no_idle_time_of_the_profiled_steps_shows_has_no_cause() -> None:
    # 1 ms of 6480 us in the plain steps of a CPU: a host that does anything does it in the profiled steps as well
    a, b = drifted(step(recorded()), 1e-3), drifted(step(recorded()), 1e-12)
    assert found(a, b) == {}
    doubts = [each for each in compare(a, b).parity.differences if each.what == "drift"]
    assert [(each.severity, each.seconds) for each in doubts] == [("warning", near(1000))]
    assert (doubts[0].a, doubts[0].b) == ("1.00 ms", "0 s")  # below a nanosecond it is rounding
    # one of 5480 + 500 us is less than a tenth
    few = compare(drifted(step(recorded()), 5e-4), b).parity.differences
    assert [each.what for each in few] == []


def test_an_older_profile_says_nothing_of_the_host() -> None:
    document = json.loads(encode(step(recorded())))
    document["ops"] = [op[:-5] for op in document["ops"]]  # what came last to a row was added last
    old = decode(json.dumps(document).encode())
    assert {(op.host_ns, op.host_reads, op.host_calls, op.python_ns) for op in old.ops} == {(None,) * 4}
    assert host_time(analyze(old)).python == pytest.approx([10_000] * 28, abs=50)


def test_a_host_that_is_slower_before_all_ops_must_be_far_slower_than_before_a_few() -> None:
    """28 ops with 10 µs before each: 280 µs. In runs of one process a host may well take 1.7 times as long."""
    evenly = [step(host=10.0 * factor) for factor in (1.6, 1.7, 2.0)]
    assert [[*found(run, step())] for run in evenly] == [[], ["host-idle"], ["host-idle"]]  # 38, 41, 50 % of the gap
    # 160 us more before one op of 28, which is 36 % of the gap of 440 us
    rows = recorded()
    late = (*rows[:5], change(rows[5], host=(2, 168)), *rows[6:])
    assert [*found(step(late), step(rows))] == ["host-idle"]


READS = {"host_reads_per_step": 80.0, **AWAKE}
NO_READS = {"host_reads_per_step": 0.0, **AWAKE}


def reading(rows: Iterable[Row], name: str) -> tuple[Row, ...]:
    """The rows; before each op of that name the host reads 20 results, which takes 300 µs besides."""
    return tuple(
        change(row, host_reads=20, host=(202.0, 108.0)) if row.name == name else change(row, host_reads=0)
        for row in rows
    )


def test_reading_results_is_no_dispatch_of_the_op_that_follows() -> None:
    # A reads before each linear op that follows a norm, and its norms are six ops; B's is one.
    rows = tuple(change(row, host_reads=0) for row in unfused((2.0, 8.0)))
    at = [number + 1 for number, row in enumerate(rows[:-1]) if row.name == "aten::mul"]
    rows = tuple(
        change(row, host_reads=20, host=(202.0, 108.0)) if number in at else row for number, row in enumerate(rows)
    )
    told = found(step(rows, conditions=READS), step(reading(recorded(), ""), conditions=NO_READS))
    assert told["synchronisation"].seconds == near(len(at) * 300)
    assert "80 per step" in told["synchronisation"].text
    assert told["fusion"].seconds == near(4 * (150 + 6 * 10 - 10))


def test_reading_before_a_fused_op_is_not_the_fusion_of_the_other_run() -> None:
    # A has the six ops, B reads before its one norm: two causes of opposite sign at one place.
    a = step(reading(unfused((2.0, 8.0)), ""), conditions=NO_READS)
    told = found(a, step(reading(recorded(), NORM.name), conditions=READS))
    assert told["synchronisation"].seconds == near(-4 * 300)
    assert told["fusion"].seconds == near(4 * (150 + 6 * 10 - 10))


def test_as_many_reads_in_both_runs_are_no_cause() -> None:
    # 4 * 20 of 310 us against as many of 210 us: 400 us of 1.48 ms, too little for "the same work, slower"
    faster = before(reading(recorded(), NORM.name), NORM.name, 102.0, 108.0)
    assert not found(step(reading(recorded(), NORM.name), conditions=READS), step(faster, conditions=READS))


def test_what_an_optimizer_reads_is_its_own() -> None:
    update = Row("aten::_fused_adamw_", "optimizer", 100, bytes=1e6, phase="optimizer")
    rows = (*reading(recorded(), ""), change(update, host=(202.0, 108.0), host_reads=80))
    host = host_time(analyze(step(rows, conditions=READS)), placed=True)
    assert (host.reading.tolist(), host.reads) == ([0.0] * len(rows), 0)


def test_one_read_costs_no_more_than_it_can() -> None:
    rows = (change(LINEAR, host=(400.0, 10.0), host_reads=2), *recorded())
    host = host_time(analyze(step(rows, conditions=READS)), placed=True)
    # 2 reads of 50 us each at most; the rest stays what it was, in the same parts
    assert host.reading[0] == pytest.approx(100_000)
    assert host.all[0] == pytest.approx(310_000)
    assert host.framework[0] / host.python[0] == pytest.approx(40)


def test_reads_that_one_profile_does_not_place_are_told_as_before() -> None:
    # The same times; an older profile has no `host_reads`, and one read more.
    rows = reading(recorded(), NORM.name)
    old = tuple(change(row, host_reads=None) for row in rows)
    assert not found(step(rows, conditions=READS), step(old, conditions=READS | {"host_reads_per_step": 81.0}))


def test_what_is_read_after_the_last_op_is_reading_too() -> None:
    rows = reading(recorded(), "")
    told = found(step(rows, extra_gap=800, conditions=READS), step(rows, conditions=NO_READS))
    assert set(told) == {"synchronisation"}
    assert told["synchronisation"].seconds == near(800)
    assert "80 per step" in told["synchronisation"].text


def test_reads_get_no_more_of_a_gap_than_the_host_was_seen_dispatching() -> None:
    # Half of A's gap of 1480 us is known to be waiting for input: of its 1200 us of reading half is left
    a = step(reading(recorded(), NORM.name), conditions=READS, causes={"host dispatch": 0.5, "data input": 0.5})
    told = found(a, step(reading(recorded(), ""), conditions=NO_READS))
    assert told["synchronisation"].seconds == near(600)
    assert told["data-input"].seconds == near(740)


def test_a_profile_with_impossible_reads_is_refused() -> None:
    for reads in (-1, 1 << 41):
        rows = (change(LINEAR, host=(400.0, 10.0), host_reads=reads), *recorded())
        with pytest.raises(InputError, match="damaged"):
            decode(encode(step(rows)))
