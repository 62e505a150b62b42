"""The gate of `roofline check`. The step is that of handmade.py: 12.5 ms, of which 1.8 ms (14.4 %) are the gap."""

from __future__ import annotations

import math

import handmade
import numpy as np
import pytest
import randomly
from hypothesis import given, settings
from msgspec.structs import replace

from roofline.analysis.analysis import WorkAnalysis, analyze
from roofline.core.cost import unknown
from roofline.core.schema import Compilation, Op, Precision, Profile, Wall
from roofline.core.statistics import median_interval
from roofline.errors import InputError, MeasurementError
from roofline.regression.check import Result, check
from roofline.regression.growth import Gate, grown_places
from roofline.regression.limits import Limit, Limits
from roofline.regression.times import interval

#: One more gelu in the FFN of layer 1: 0.8 MB, 25 µs.
MORE = handmade.op(2, 2, 1, 25, 6050, (9,), (19,))


def grown(*ops: Op, **changes: object) -> Profile:
    """The hand-made step with more ops."""
    return handmade.profile(ops=(*handmade.OPS, *ops), **changes)


def slower(factor: float, steps: int = 10) -> Wall:
    """The wall of the hand-made step, all steps longer by one factor."""
    return Wall(steps=tuple(step * factor for step in handmade.profile().wall.steps[:steps]))


def judge(
    current: Profile, baseline: Profile | None = None, *, counts_only: bool = False, **limits: Limit
) -> dict[str, Gate]:
    """The gates by name."""
    result = checked(current, baseline, counts_only=counts_only, **limits)
    return {f"{one.measure} {one.phase}" if one.phase else one.measure: one for one in result.gates}


def checked(current: Profile, baseline: Profile | None = None, *, counts_only: bool = False, **limits: Limit) -> Result:
    return check(handmade.profile() if baseline is None else baseline, current, Limits(**limits), counts_only)


# ------------------------------------------------------------------------------------- the same step


def test_a_step_passes_by_itself() -> None:
    gates = judge(handmade.profile())
    assert list(gates) == [
        *("time", "gap", "memory", "model FLOPs forward", "executed FLOPs forward", "bytes", "kernels"),
        "unknown work",
    ]
    assert {one.status for one in gates.values()} == {"passed"}
    assert {one.growth for one in gates.values()} == {0.0}
    assert gates["model FLOPs forward"].baseline == 400e6
    # 4 + 2 * 4.804 + 0.8 + 8 + 0.008 + 28 MB; 8 ops with one launch each, one of them of unknown work
    assert gates["bytes"].baseline == pytest.approx(50.416e6)
    assert gates["kernels"].baseline == 8
    assert gates["unknown work"].baseline == 1


@settings(max_examples=50)
@given(randomly.profiles())
def test_any_step_passes_by_itself(profile: Profile) -> None:
    if not profile.ops:
        return
    for counts_only in (False, True):
        try:
            result = check(profile, profile, Limits(), counts_only)
        except MeasurementError:
            assert {"inflated", "beyond-step"} & {*analyze(profile).flags}
            continue
        assert not result.failed
        assert not result.differences
        assert all(one.status in ("passed", "skipped") for one in result.gates)


# ------------------------------------------------------------------------------------- counts


def test_more_bytes_name_their_place() -> None:
    gates = judge(grown(MORE), counts_only=True)
    assert set(gates) == {"model FLOPs forward", "executed FLOPs forward", "bytes", "kernels", "unknown work"}
    more = gates["bytes"]
    assert more.status == "failed"
    assert more.growth == pytest.approx(0.8 / 50.416)
    (cause,) = more.causes
    assert cause.place == ("forward", "FFN", "pointwise")
    assert (cause.what, cause.ops) == ("aten::gelu [100, 1000]", 1)
    assert cause.amount == pytest.approx(0.8e6)
    assert gates["kernels"].status == "failed"
    assert gates["kernels"].growth == 1
    assert gates["kernels"].causes[0].what == "aten::gelu [100, 1000]"
    assert gates["model FLOPs forward"].status == "passed"
    # The other way round it is less of everything.
    assert not checked(handmade.profile(), grown(MORE), counts_only=True).failed


def test_limits_are_limits() -> None:
    exactly = 0.8 / 50.416
    assert judge(grown(MORE), bytes=Limit(exactly))["bytes"].status == "passed"
    assert judge(grown(MORE), bytes=Limit(exactly * 0.999))["bytes"].status == "failed"
    assert judge(grown(MORE), kernels=Limit(1, absolute=True))["kernels"].status == "passed"
    assert judge(grown(MORE), kernels=Limit(0.125))["kernels"].status == "passed"
    assert judge(grown(MORE), kernels=Limit(0.12))["kernels"].status == "failed"


def test_where_most_grew_comes_first() -> None:
    # softmax 8 MB in attention, adamw 28 MB in the optimizer, gelu twice 0.8 and embedding 4 MB: of four places three
    # are told.
    more = (handmade.OPS[4], handmade.OPS[7], MORE, MORE, handmade.OPS[0])
    causes = judge(grown(*more), counts_only=True)["bytes"].causes
    assert [cause.place[2] for cause in causes] == ["optimizer", "softmax", "embedding"]
    assert [cause.amount for cause in causes] == pytest.approx([28e6, 8e6, 4e6])


def test_what_shrank_hides_nothing() -> None:
    # One gelu more, one embedding less: fewer bytes, as many kernels.
    ops = (*handmade.OPS[1:], MORE)
    assert not checked(handmade.profile(ops=ops), counts_only=True).failed
    # softmax twice instead of the embedding: 4 MB more, and softmax is the cause with 8.
    twice = handmade.profile(ops=(*handmade.OPS[1:], handmade.OPS[4]))
    (cause,) = judge(twice, counts_only=True)["bytes"].causes
    assert (cause.place[2], cause.amount) == ("softmax", pytest.approx(8e6))


def test_flops_must_not_grow_in_any_phase() -> None:
    backward = replace(handmade.OPS[1], phase=1)
    gates = judge(grown(backward), counts_only=True)
    assert gates["model FLOPs forward"].status == "passed"
    new = gates["executed FLOPs optimizer"]
    assert (new.status, new.baseline, new.current, new.growth) == ("failed", 0.0, 200e6, math.inf)
    assert new.causes[0].what.startswith("aten::addmm")
    # Growth of another phase is none of its causes.
    more = judge(grown(backward, handmade.OPS[1]), counts_only=True)["executed FLOPs optimizer"]
    assert [cause.place[0] for cause in more.causes] == ["optimizer"]


def test_recomputation_grows_what_ran_and_not_what_was_asked_for() -> None:
    again = replace(handmade.SIGNATURES[1], cost=replace(handmade.SIGNATURES[1].cost, flops=300e6, useful_flops=300e6))
    signatures = (handmade.SIGNATURES[0], again, *handmade.SIGNATURES[2:])
    gates = judge(handmade.profile(signatures=signatures), counts_only=True)
    assert gates["model FLOPs forward"].status == "passed"
    assert gates["executed FLOPs forward"].growth == pytest.approx(0.5)
    assert gates["executed FLOPs forward"].status == "failed"


def test_a_program_that_asks_for_less_passes_and_says_so() -> None:
    ops = tuple(op for number, op in enumerate(handmade.OPS) if number != 3)
    one = judge(handmade.profile(ops=ops), counts_only=True)["model FLOPs forward"]
    assert one.status == "passed"
    assert one.note == "the program asks for less than in BASELINE"


def test_work_that_is_no_longer_known_fails() -> None:
    """Else an op that lost its formula would look like fewer bytes."""
    lost = replace(handmade.SIGNATURES[3], cost=unknown("no formula"))
    signatures = (*handmade.SIGNATURES[:3], lost, *handmade.SIGNATURES[4:])
    gates = judge(handmade.profile(signatures=signatures), counts_only=True)
    assert gates["bytes"].status == "passed"
    assert gates["bytes"].note == "known of 7 of 8 ops in BASELINE and 6 of 8 in CURRENT"
    assert gates["unknown work"].status == "failed"
    assert gates["unknown work"].causes[0].what == "aten::_softmax [1000, 1000]"


def test_bytes_of_which_nothing_is_known_are_not_judged() -> None:
    signatures = tuple(replace(one, cost=unknown("no shapes")) for one in handmade.SIGNATURES)
    bare = handmade.profile(signatures=signatures)
    gates = judge(bare, bare, counts_only=True)
    assert (gates["bytes"].status, gates["bytes"].note) == ("skipped", "the work of no op is known")
    assert set(gates) == {"bytes", "kernels", "unknown work"}


def test_graph_breaks_and_opaque_regions() -> None:
    whole = handmade.profile(compilation=Compilation(compiler="torch.compile", breaks={"print": 1}))
    broken = handmade.profile(
        compilation=Compilation(compiler="torch.compile", breaks={"print": 1, "item()": 2}, opaque=1)
    )
    gates = judge(broken, whole, counts_only=True)
    assert gates["graph breaks"].status == gates["opaque"].status == "failed"
    assert (gates["graph breaks"].baseline, gates["graph breaks"].current) == (1, 3)
    assert [(cause.what, cause.amount) for cause in gates["graph breaks"].causes] == [("item()", 2)]
    assert not checked(whole, broken, counts_only=True).failed
    # A step that is no longer compiled is not one without graph breaks.
    for current, side in ((handmade.profile(), "BASELINE"), (whole, "CURRENT")):
        other = handmade.profile() if side == "CURRENT" else whole
        one = judge(current, other, counts_only=True)["graph breaks"]
        assert (one.status, one.note) == ("skipped", f"only {side} was compiled")


def test_launches_of_a_gpu_are_known_from_a_timed_run_alone() -> None:
    timed = handmade.profile(device=replace(handmade.device(), kind="cuda"))
    counted = replace(timed, profiled=None)
    assert judge(counted, timed, counts_only=True)["kernels"].status == "skipped"
    assert judge(counted, counted, counts_only=True)["kernels"].status == "passed"
    assert judge(handmade.profile(profiled=None), counts_only=True)["kernels"].status == "passed"


# ------------------------------------------------------------------------------------- times


def test_time_beyond_limit_and_interval_fails_and_names_what_grew() -> None:
    # 10 % more wall; busy is the same, and the profiled steps did not see more idle time.
    one = judge(handmade.profile(wall=slower(1.1)))["time"]
    assert one.status == "failed"
    assert one.growth == pytest.approx(0.1)
    assert one.interval is not None
    assert 0.05 < one.interval[0] < 0.1 < one.interval[1]
    (cause,) = one.causes
    assert cause.what == "time without an op, cause not known: none in BASELINE, 1.25 ms in CURRENT."
    assert cause.amount == pytest.approx(1.25e-3)


def test_time_of_an_op_that_grew() -> None:
    # softmax takes 3 ms instead of 2: wall 13.5 ms, gap as before.
    ops = (*handmade.OPS[:4], replace(handmade.OPS[4], own_ns=(2_970_000, 3_000_000, 3_030_000)), *handmade.OPS[5:])
    wall = Wall(steps=tuple(step + 1e-3 for step in handmade.profile().wall.steps))
    profiled = replace(handmade.profile().profiled, corrected=(13.4e-3, 13.5e-3, 13.6e-3))
    gates = judge(handmade.profile(ops=ops, wall=wall, profiled=profiled))
    assert gates["time"].status == "failed"
    (cause,) = gates["time"].causes
    assert cause.place == (None, None, "softmax")
    assert cause.what.startswith("the same softmax op: 1.95 ms in BASELINE, 2.95 ms in CURRENT")
    assert cause.amount == pytest.approx(1e-3)
    assert gates["gap"].status == "passed"


def test_time_within_the_noise_is_not_resolved() -> None:
    # Steps of 12.2 to 12.8 ms: 5.5 % more than their median is beyond 5 %, and its interval is not.
    loose = Limit(1, absolute=True)
    one = judge(handmade.profile(wall=slower(1.055)), gap=loose)["time"]
    assert one.status == "unresolved"
    assert one.note == "its 95 % interval reaches below the limit"
    assert one.interval is not None
    assert one.interval[0] < 0.05
    assert not checked(handmade.profile(wall=slower(1.055)), gap=loose).failed


def test_two_steps_resolve_nothing_and_so_do_not_pass() -> None:
    loose = Limit(1, absolute=True)
    # Three times as long is beyond 5 %, and no two steps could ever fail for it. Within the limit they pass.
    with pytest.raises(MeasurementError, match=r"time is beyond its limit, and fewer than 3 steps .*--counts-only"):
        checked(handmade.profile(wall=slower(3, steps=2)), gap=loose)
    assert judge(handmade.profile(wall=slower(1.04, steps=2)), gap=loose)["time"].status == "passed"
    # What fails by its counts fails all the same, and the time stands beside it.
    gates = judge(grown(MORE, wall=slower(3, steps=2)), gap=loose)
    assert gates["kernels"].status == "failed"
    assert (gates["time"].status, gates["time"].note) == ("unresolved", "fewer than 3 steps give no interval")


def test_the_interval_of_a_growth() -> None:
    # Relative: 10 (9 to 11) to 12 (11 to 13): log 1.2 - hypot(log 12/11, log 11/10), + hypot(log 13/12, log 10/9)
    low, high = interval((10, 12), [(9, 11), (11, 13)], Limit(0.05)) or (0, 0)
    assert low == pytest.approx(1.2 * math.exp(-math.hypot(math.log(12 / 11), math.log(1.1))) - 1)
    assert high == pytest.approx(1.2 * math.exp(math.hypot(math.log(13 / 12), math.log(10 / 9))) - 1)
    # In points: 0.10 (0.07 to 0.14) to 0.15 (0.12 to 0.19): 0.05 - hypot(0.03, 0.04), + hypot(0.04, 0.03)
    found = interval((0.10, 0.15), [(0.07, 0.14), (0.12, 0.19)], Limit(0.03, absolute=True))
    assert found == pytest.approx((0.0, 0.1))
    assert interval((1, 2), [None, (1, 2)], Limit(0.05)) is None


def test_the_interval_holds_the_truth_about_95_times_of_100() -> None:
    """Two runs of 20 normal steps whose true medians differ by 10 %."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(150):
        steps = [tuple(rng.normal(mean, 0.05, 20)) for mean in (1.0, 1.1)]
        medians = (float(np.median(steps[0])), float(np.median(steps[1])))
        found = interval(medians, [median_interval(each, ()) for each in steps], Limit(0.05))
        assert found is not None
        held += found[0] <= 0.1 <= found[1]
    assert 134 <= held <= 150  # 0.95 * 150 = 142.5, three standard deviations of 2.7 below it


def test_the_gap_is_judged_in_points_of_the_wall() -> None:
    # 1.8 + 0.875 of 13.375 ms is 20 %, 5.6 points more than 14.4 %; the rows of the gap say what grew.
    wall = slower(1.07)
    profiled = replace(
        handmade.profile().profiled,
        corrected=(13.275e-3, 13.375e-3, 13.475e-3),
        idle=(2.6e-3, 2.7e-3, 2.8e-3),
        idle_causes={"host dispatch": 1.2e-3, "synchronisation": 1.5e-3},
    )
    one = judge(handmade.profile(wall=wall, profiled=profiled))["gap"]
    assert one.status == "failed"
    assert one.growth == pytest.approx(2.675 / 13.375 - 1.8 / 12.5)
    assert one.causes[0].what.startswith("time without an op, after blocking calls: none in BASELINE")
    # The profiled steps saw 1.5 ms of it in 2.7 idle.
    assert one.causes[0].amount == pytest.approx(1.5e-3 * 2.675 / 2.7)
    assert judge(handmade.profile(wall=wall, profiled=profiled), gap=Limit(0.06, absolute=True))["gap"].status == (
        "passed"
    )


def test_memory() -> None:
    memory = replace(handmade.profile().memory, peak=44e6, optimizer=11e6)
    one = judge(handmade.profile(memory=memory))["memory"]
    assert (one.status, one.growth) == ("failed", pytest.approx(0.1))
    assert [(cause.what, cause.amount) for cause in one.causes] == [("optimizer state", 3e6)]
    other = replace(memory, source="allocator's peak")
    assert judge(handmade.profile(memory=other))["memory"].note == "the peaks were not read the same way"
    assert judge(handmade.profile(memory=replace(memory, peak=None)))["memory"].status == "skipped"


# ------------------------------------------------------------------------------------- what cannot be judged


@pytest.mark.parametrize("flag", ["contended", "throttled: power cap", "contended: \x1b[31m"])
def test_times_of_a_machine_in_use_are_no_failure(flag: str) -> None:
    disturbed = handmade.profile(flags=(flag,), wall=slower(2))
    for baseline, current, name in (
        (handmade.profile(), disturbed, "CURRENT"),
        (disturbed, handmade.profile(), "BASELINE"),
    ):
        with pytest.raises(MeasurementError, match=rf"times of {name} cannot be judged, .*--counts-only") as raised:
            checked(current, baseline)
        assert raised.value.exit_code == 4
        assert "\x1b" not in str(raised.value)
    assert not checked(disturbed, counts_only=True).failed


def test_an_inflated_profile_is_no_failure() -> None:
    profiled = replace(handmade.profile().profiled, corrected=(14e-3, 14e-3, 14e-3))
    with pytest.raises(MeasurementError, match="inflated"):
        checked(handmade.profile(profiled=profiled))


def test_ceilings_measured_beside_others_say_nothing_about_the_step() -> None:
    assert not checked(handmade.profile(flags=("contended-ceilings", "few-steps"))).failed


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": "gpt2"}, "model is 'toy' in BASELINE and 'gpt2' in CURRENT"),
        ({"mode": "infer"}, "mode is 'train'"),
        ({"batch": 8}, "batch is 4 in BASELINE and 8 in CURRENT"),
        ({"seq": None}, "seq is 25 in BASELINE and None in CURRENT"),
        ({"size": "base"}, "size is 'tiny'"),
        ({"layers": 3}, "layers is None"),
        ({"precision": "bf16"}, "precision is 'fp32'"),
        ({"device": replace(handmade.device(), kind="cuda")}, "kind of device is 'cpu'"),
        ({"ops": ()}, "CURRENT has no ops"),
    ],
)
def test_profiles_of_other_steps_are_refused(change: dict[str, object], sentence: str) -> None:
    for counts_only in (False, True):
        with pytest.raises(InputError, match=sentence):
            checked(handmade.profile(**change), counts_only=counts_only)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"device": replace(handmade.device(), name="Other")}, "the device is 'Round Device' in BASELINE and 'Other'"),
        ({"environment": {"threads": "8"}}, "the number of threads is '2' in BASELINE and '8' in CURRENT"),
        ({"wall": replace(slower(1), protocol="single")}, "how steps were timed is 'back to back'"),
        ({"wall": replace(slower(1), source="profiled")}, "what timed the steps is 'plain'"),
        ({"profiled": None}, "CURRENT was counted and not timed: .* --count-only, or add --counts-only"),
    ],
)
def test_times_need_the_same_conditions_and_counts_do_not(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        checked(handmade.profile(**change))
    assert not checked(handmade.profile(**change), counts_only=True).failed


def test_a_profile_without_profiled_steps_has_no_times_to_judge() -> None:
    with pytest.raises(InputError, match=r"CURRENT holds no profiled step, .* measure it again, or add --counts-only"):
        checked(handmade.without_steps())
    assert not checked(handmade.without_steps(), counts_only=True).failed


def test_a_long_name_is_cut_and_a_hostile_one_written_out() -> None:
    with pytest.raises(InputError) as raised:
        checked(handmade.profile(model="\x1b[31m" + "x" * 1000))
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 250


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (replace(handmade.FP32, arithmetic="tf32"), ("arithmetic of float32 products", "fp32", "tf32")),
        (replace(handmade.FP32, arithmetic=None), ("arithmetic of float32 products", "fp32", "unknown")),
        (replace(handmade.FP32, inputs="bf16", arithmetic="bf16"), ("data of products", "fp32", "bf16")),
    ],
)
def test_fewer_digits_are_named_whatever_they_make_faster(now: Precision, told: tuple[str, str, str]) -> None:
    table = tuple(one if one.precision is None else replace(one, precision=now) for one in handmade.SIGNATURES)
    result = checked(handmade.profile(signatures=table))
    assert not result.failed
    assert result.differences == (told,)


def test_what_else_is_different() -> None:
    other = handmade.profile(
        backend="torch-compile", versions={"torch": "2.14.0", "python": "3.11.9"}, switches={}, options={"mode": "x"}
    )
    assert checked(other).differences == (
        ("backend", "torch", "torch-compile"),
        ("mode", "none", "x"),
        ("torch", "2.13.0", "2.14.0"),
        ("tf32", "off", "none"),
    )


def test_ops_that_are_alike_are_asked_once() -> None:
    """Of 40 times the step, each op of it is asked once for all, and the amounts are those of 40 steps."""
    before, after = (analyze(handmade.profile(ops=handmade.OPS * times)) for times in (1, 40))
    asked: list[Op] = []

    def launches(side: WorkAnalysis, op: Op) -> float:
        asked.append(op)
        return float(op.launches)

    places = grown_places(before, after, launches)
    assert len(asked) <= 2 * len(handmade.OPS)
    assert sum(place.amount for place in places) == 39 * sum(op.launches for op in handmade.OPS)
    assert sum(place.ops or 0 for place in places) == 39 * len(handmade.OPS)
