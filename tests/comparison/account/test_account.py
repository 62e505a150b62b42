"""The account of two steps made by hand: 4 layers of 7 ops (synthetic.py), the host 10 µs before each op.

Own times are given in µs; each row's seconds follow from the rows that were changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as change

import pytest
from msgspec.structs import replace
from synthetic import ADD, GELU, LAYER, LINEAR, NORM, UNFUSED_NORM, instead, step
from synthetic import Row as Made

from roofline.analysis.gap_parts import AFTER, FOR_A_CORE, NOT_KNOWN, OUTSIDE, PAGE_FAULTS, READING, SLEEPING
from roofline.comparison.account.account import account
from roofline.comparison.account.row import SAME_OPS, Account, OpChange, Row
from roofline.comparison.terms import compare
from roofline.core.executor import ASLEEP, COMPILING, ON_CORE
from roofline.core.schema import Profile


def accounted(a: Profile, b: Profile) -> Account:
    comparison = compare(a, b)
    result = account(comparison)
    assert sum(row.seconds or 0.0 for row in result.rows) == pytest.approx(comparison.difference, abs=1e-12)
    for row in result.rows:
        if row.kind in ("only", "rate"):
            assert sum(each.seconds for each in row.ops) == pytest.approx(row.seconds, abs=1e-12)
    return result


def of(result: Account, kind: str, place: str | None = None) -> list[Row]:
    return [row for row in result.rows if row.kind == kind and (place is None or row.place == place)]


def microseconds(value: float) -> object:
    return pytest.approx(value * 1e-6, abs=1e-9)


def recorded(rows: Iterable[Made] = LAYER * 4) -> tuple[Made, ...]:
    """The rows, with their 10 µs recorded: 2 of the framework and 8 of Python."""
    return tuple(change(row, host=row.host or (2.0, 8.0)) for row in rows)


def test_ops_in_the_place_of_others_are_one_row_with_their_dispatching() -> None:
    a, b = step(recorded(instead(LAYER * 4, NORM.name, UNFUSED_NORM))), step(recorded())
    result = accounted(a, b)
    (row,) = of(result, "only")
    # 4 layers: 180 µs and six launches where B has 30 and one; the host 10 µs more for each of five. The ops right
    # after take the host 10 µs in both runs.
    assert row.seconds == microseconds(4 * (180 - 30 + 5 * 10))
    assert (row.a.launches, row.b.launches) == (24, 4)
    assert row.a.dispatch - row.b.dispatch == microseconds(4 * 5 * 10)
    counts = {change.name: (change.a, change.b) for change in row.ops}
    assert counts["aten::native_layer_norm"] == (0, 4)
    assert counts["aten::mean"] == (8, 0)
    # And these close the row.
    assert row.ops[-1] == OpChange(name="dispatching the op after", seconds=row.ops[-1].seconds)
    assert sum(change.seconds for change in row.ops) == microseconds(row.seconds * 1e6)
    assert result.rows[0] == row


def test_forward_and_backward_of_one_change_are_one_row() -> None:
    rows = (*LAYER * 4, *(change(row, name=f"{row.name}_backward", phase="backward") for row in LAYER * 4))
    tanh = Made("aten::tanh", "pointwise", 7)
    more = {NORM.name: tanh, f"{NORM.name}_backward": change(tanh, name="aten::tanh_backward", phase="backward")}
    a = tuple(made for row in rows for made in ((row, more[row.name]) if row.name in more else (row,)))
    (row,) = of(accounted(step(recorded(a)), step(recorded(rows))), "only")
    assert row.phase is None
    assert row.seconds == microseconds(8 * (7 + 10))
    assert sorted((each.name, each.a, each.b) for each in row.ops[:-1]) == [
        ("aten::tanh", 4, 0),
        ("aten::tanh_backward", 4, 0),
    ]


def test_the_same_ops_at_another_rate_are_a_row_of_their_class() -> None:
    slower = tuple(change(row, own=row.own + 60) if row.name == LINEAR.name else row for row in LAYER * 4)
    rows = {row.op_class: row for row in of(accounted(step(slower), step()), "rate")}
    assert rows["contraction"].seconds == microseconds(12 * 60)
    # 20 MFLOP at 100 GFLOP/s are 200 µs: 200 of 360 and of 300.
    assert rows["contraction"].a.of_roof == pytest.approx(200 / 360)
    assert rows["contraction"].b.of_roof == pytest.approx(200 / 300)
    assert rows["pointwise"].seconds == microseconds(0)


def test_parts_of_plain_steps_count_whole_and_what_is_left_is_not_known() -> None:
    conditions = {"asleep_seconds_per_step": 3e-4, "waiting_for_a_core_seconds_per_step": 1e-4}
    a = step(recorded(), extra_gap=500, conditions=conditions)
    result = accounted(a, step(recorded(), conditions=dict.fromkeys(conditions, 0.0)))
    (asleep,), (core,) = of(result, "gap", SLEEPING), of(result, "gap", FOR_A_CORE)
    assert (asleep.seconds, core.seconds) == (microseconds(300), microseconds(100))
    assert not asleep.upper
    # 500 of which 400 are measured, and the profiled steps saw 500 after the last op: 300 of them asleep.
    rest = sum(row.seconds or 0.0 for row in of(result, "gap") if row.place in (AFTER, NOT_KNOWN, SAME_OPS))
    assert rest == microseconds(100)
    # 280 of dispatching and these 200 are scaled into the 380 that plain steps leave.
    (after,) = of(result, "gap", AFTER)
    assert after.seconds == microseconds(200 * 380 / 480)


def test_a_row_holds_the_scopes_of_both_runs_and_what_its_arguments_differ_in() -> None:
    """ADD in the FFN of A, in its own type or in another one, and in the attention of B: at a scope of each run."""
    for dtype, differing in (("fp32", ()), ("bf16", ("types",))):
        moved = instead(LAYER * 4, ADD.name, (change(ADD, dtype=dtype, block="FFN"),))
        a, b = step(recorded(moved), scopes=("keras/add",)), step(recorded(), scopes=("torch/add",))
        (row,) = of(accounted(a, b), "only")
        assert row.run_scopes == (("keras/add",), ("torch/add",))
        assert row.differing == differing
        assert row.text.startswith("A: keras/add; B: torch/add; forward: ")
        assert ("with the same shapes and types" in row.text) == (not differing)


def test_python_before_an_op_is_outside_of_the_framework_and_an_upper_end() -> None:
    late = tuple(change(row, host=(2.0, 608.0)) if row.name == GELU.name else row for row in recorded())
    (row,) = of(accounted(step(late), step(recorded())), "gap", OUTSIDE)
    # 608 µs before each of four ops, of which the median op takes 8.
    assert row.seconds == microseconds(4 * 600)
    assert row.upper


def test_a_host_that_runs_ahead_sleeps_no_longer_than_no_op_runs() -> None:
    """600 µs before each of four ops it was outside of the framework: 1000 of them asleep, or all of 9000."""
    late = tuple(change(row, host=(2.0, 608.0)) if row.name == GELU.name else row for row in recorded())
    for asleep, expected in ((1000.0, 1000.0), (9000.0, 2400.0)):
        conditions = {ON_CORE: 1e-4, "asleep_seconds_per_step": asleep * 1e-6}
        result = accounted(step(late, conditions=conditions), step(recorded(), conditions={ON_CORE: 1e-4}))
        (row,) = of(result, "gap", SLEEPING)
        assert row.seconds == microseconds(expected)
        assert row.upper
        assert sum(row.seconds for row in of(result, "gap", OUTSIDE)) == microseconds(2400 - expected)
    hidden = accounted(step(recorded(), conditions=conditions), step(recorded(), conditions={ON_CORE: 1e-4}))
    assert of(hidden, "gap", SLEEPING) == []


def test_reading_results_is_what_the_host_takes_longer_before_the_next_op() -> None:
    reads = tuple(
        change(row, host=(2.0, 38.0), host_reads=1) if row.name == ADD.name else change(row, host_reads=0)
        for row in recorded()
    )
    plain = tuple(change(row, host_reads=0) for row in recorded())
    (row,) = of(accounted(step(reads), step(plain)), "gap", READING)
    assert row.seconds == microseconds(4 * 30)


def test_page_faults_are_taken_off_the_ops_that_take_longer() -> None:
    slower = tuple(change(row, own=row.own + 50) if row.name == ADD.name else row for row in LAYER * 4)
    faults = {"page_faults_per_step": 100.0, "system_seconds_per_step": 150e-6}
    a = step(slower, conditions=faults)
    result = accounted(a, step(conditions=dict.fromkeys(faults, 0.0)))
    (row,) = of(result, "gap", PAGE_FAULTS)
    assert row.seconds == microseconds(150)
    rates = {row.op_class: row for row in of(result, "rate")}
    assert rates["pointwise"].seconds == microseconds(4 * 50 - 150)
    # Its ops are as they were timed, 4 x 50 us apart, and say last what they are less.
    assert [each.seconds for each in rates["pointwise"].ops if each.a] == [microseconds(200), microseconds(0)]
    assert (rates["pointwise"].ops[-1].counts, rates["pointwise"].ops[-1].seconds) == ((0, 0), microseconds(-150))
    assert [note.step for note in rates["pointwise"].notes] == ["page faults"]
    assert "A has 150 µs more of page faults in it, which another row counts" in rates["pointwise"].text
    assert "in the row of" not in rates["contraction"].text


@pytest.mark.parametrize(
    ("compiling", "expected"),
    # Clearing 2 MiB at 10 GB/s takes 210 us: no more is a fault's. And compiling 1.9 of the 2 ms leaves 100 us of them.
    [(0.0, 2**21 / 10e9), (1.9e-3, 100e-6)],
)
def test_a_page_fault_explains_no_more_than_clearing_a_page_and_nothing_of_compiling(
    compiling: float, expected: float
) -> None:
    slower = tuple(change(row, own=row.own + 1000) if row.name == ADD.name else row for row in LAYER * 4)
    conditions = {"page_faults_per_step": 1.0, "system_seconds_per_step": 2e-3, COMPILING: compiling}
    (row,) = of(accounted(step(slower, conditions=conditions), step()), "gap", PAGE_FAULTS)
    assert (row.seconds, row.a.seconds, row.b.seconds) == (pytest.approx(expected), pytest.approx(expected), 0)


def test_page_faults_are_taken_off_ops_with_other_arguments_and_off_all_intervals() -> None:
    """Both run ADD four times, in A on larger tensors: 4 times 50 us more, of which page faults explain 150."""
    slower = instead(LAYER * 4, ADD.name, (change(ADD, own=ADD.own + 50, bytes=ADD.bytes + 4e3, block="FFN"),))
    faults = {"page_faults_per_step": 100.0, "system_seconds_per_step": 150e-6}
    (before,) = of(accounted(step(slower), step()), "only")
    result = accounted(step(slower, conditions=faults), step())
    (row,), (faulty,) = of(result, "only"), of(result, "gap", PAGE_FAULTS)
    assert row.differing == ("shapes",)
    assert (row.seconds, faulty.seconds) == (microseconds(4 * 50 - 150), microseconds(150))
    assert before.ci95 is not None
    assert row.ci95 == pytest.approx([bound / 4 for bound in before.ci95])
    assert faulty.ci95 == pytest.approx([bound * 3 / 4 for bound in before.ci95])
    assert faulty.text.endswith(" a step, inside ops: that much is taken off other rows, which say so.")
    assert "A has 150 µs more of page faults in it, which another row counts" in row.text


def test_a_row_of_page_faults_says_how_much_of_them_other_rows_held() -> None:
    slower = tuple(change(row, own=row.own + 10) if row.name == ADD.name else row for row in LAYER * 4)
    faults = {"page_faults_per_step": 100.0, "system_seconds_per_step": 150e-6}
    (row,) = of(accounted(step(slower, conditions=faults), step()), "gap", PAGE_FAULTS)
    assert row.seconds == microseconds(40)
    assert "inside ops: 40.0 µs of 150 µs is taken off other rows" in row.text


def test_page_faults_are_no_row_where_the_other_run_has_more_of_them() -> None:
    a = step(conditions={"page_faults_per_step": 1.0, "system_seconds_per_step": 150e-6})
    b = step(conditions={"page_faults_per_step": 9.0, "system_seconds_per_step": 0.0})
    assert not of(accounted(a, b), "gap", PAGE_FAULTS)


def test_equal_layers_are_one_place_and_notes_say_why() -> None:
    def placed(profile: Profile) -> Profile:
        scopes = tuple(f"layers.{number}/norm" for number in range(4))
        ops = tuple(replace(op, scope=4 * number // len(profile.ops)) for number, op in enumerate(profile.ops))
        return replace(profile, scopes=scopes, ops=ops)

    result = accounted(placed(step(instead(LAYER * 4, NORM.name, UNFUSED_NORM))), placed(step()))
    (row,) = of(result, "only")
    assert row.scopes == ("layers.*/norm",)
    assert {note.step for note in row.notes} == {"group"}


@pytest.mark.parametrize("recorded_times", [True, False])
def test_a_loop_of_one_run_is_said_of_that_run(recorded_times: bool) -> None:
    """Each of four tanh runs five times: 20 in all, also in older profiles, whose ops were launched so often."""
    tanh = Made("aten::tanh", "pointwise", 7, launches=5)
    a = step(instead(LAYER * 4, NORM.name, (NORM, tanh)))
    looped = tuple(replace(op, times=5) if recorded_times and op.launches == 5 else op for op in a.ops)
    (row,) = of(accounted(replace(a, ops=looped), step()), "only")
    assert [(each.name, each.a, each.b) for each in row.ops[:-1]] == [("aten::tanh", 20, 0)]
    assert (row.times, row.a.times, row.b.times) == (5, 5, 1)
    assert "A runs 20 x tanh, B nothing instead; A: " in row.text
    assert " (5 rounds), " in row.text


def test_a_fused_kernel_counts_once_however_many_parts_it_has() -> None:
    parts = (
        Made("normalisation", "normalisation", 0, bytes=0.2e6),
        Made("pointwise", "pointwise", 0, bytes=0.1e6, block="FFN"),
    )
    fused = Made("add_norm_fusion", "normalisation", 40, bytes=0.3e6, parts=parts)
    row = max(
        of(accounted(step(instead(LAYER * 4, NORM.name, (fused,))), step()), "only"), key=lambda row: row.a.launches
    )
    (kernel,) = [each for each in row.ops if each.name == fused.name]
    assert (kernel.a, kernel.b) == (4, 0)
    assert {*kernel.classes} == {"normalisation", "pointwise"}


def test_a_fused_kernel_is_told_as_itself_and_its_parts_are_no_ops_that_run() -> None:
    """A bias that a kernel adds bears the name of the product that it is of, and is none."""
    bias = Made("matmul", "contraction", 0, bytes=0.2e6)
    for number, parts in enumerate(((change(NORM, name="native_layer_norm"), ADD, bias), (ADD, bias)), 7):
        kernel = Made(f"triton_per_fused_add_{number}", "normalisation", 40, bytes=0.3e6, parts=parts)
        (row,) = of(accounted(step(instead(LAYER * 4, NORM.name, (kernel,))), step()), "only")
        assert {each.name: (each.a, each.b) for each in row.ops[:-1]} == {
            "triton_per_fused_add": (4, 0),
            NORM.name: (0, 4),
        }
        assert "contraction" not in row.ops[0].classes + row.ops[1].classes


def test_what_stands_beside_a_product_that_both_runs_have_is_a_part_of_its_kernel() -> None:
    """B fuses each activation with the product before it. 4 norms of B are kernels of two parts, all of them there."""
    gemm = Made("gemm_fusion_dot", "contraction", 330, bytes=1.8e6, parts=(change(LINEAR, name="dot"), GELU))
    norm = Made("norm_fusion", "normalisation", 40, bytes=0.3e6, parts=(change(NORM, name="norm"), ADD))
    others = [change(row, name=f"{row.name}_fusion") for row in LAYER if row.name not in (GELU.name, NORM.name)]
    result = accounted(step(), step([*others, gemm, norm] * 4, backend="jax"))
    kernels = {each.name: each for row in of(result, "only") for each in row.ops if each.b and each.parts}
    assert {name: (each.b, each.is_part, {*each.classes}) for name, each in kernels.items()} == {
        "gemm_fusion_dot": (4, True, {"pointwise"}),
        "norm_fusion": (4, False, {"normalisation", "pointwise"}),
    }


def test_what_a_kernel_fuses_is_not_said_to_be_absent() -> None:
    dropout = Made("aten::native_dropout", "random", 40, bytes=0.3e6)
    parts = (change(dropout, name="native_dropout"), ADD)
    kernel = Made("triton_poi_fused_add_native_dropout_1", "random", 10, bytes=0.3e6, parts=parts)
    a, b = (step(instead(LAYER * 4, ADD.name, ops)) for ops in ((dropout, ADD), (kernel,)))
    (row,) = of(accounted(a, b), "only")
    assert [each.parts for each in row.ops if each.b] == [("aten::add", "native_dropout")]
    assert row.annotations == ()


def test_fused_kernels_make_no_row_of_two_phases() -> None:
    """The norms of the forward and the activations of the backward share a scope that has little time in either."""

    def fused(name: str, phase: str, own: float) -> Made:
        return Made(name, "pointwise", own, phase=phase, parts=(ADD, change(ADD, op_class="reduction")))

    rows = (
        LINEAR,
        fused("fused_norm", "forward", 90),
        change(LINEAR, phase="backward"),
        fused("fused_gelu", "backward", 70),
    )
    a = step(rows * 4)
    scopes = ("product", "norm", "gelu", "shared")
    places = {1: 1, 3: 2}
    ops = tuple(
        replace(
            op,
            scope=places.get(number % 4, 0),
            places=tuple((scope, op.phase, op.block) for scope in (places[number % 4], 3)),
        )
        if op.constituents
        else op
        for number, op in enumerate(a.ops)
    )
    shares = {1: (ADD,), 3: (GELU,)}
    b = step(tuple(made for number, row in enumerate(rows) for made in shares.get(number, (row,))) * 4)
    changes = of(accounted(replace(a, scopes=scopes, ops=ops), b), "only")
    assert {row.phase for row in changes} == {"forward", "backward"}


def test_ops_whose_names_differ_by_a_namespace_are_one() -> None:
    rows = instead(LAYER * 4, GELU.name, (change(GELU, name="gelu", bytes=0.4e6), ADD, ADD))
    (row,) = of(accounted(step(rows), step()), "only")
    assert [(each.name, each.a, each.b) for each in row.ops if "gelu" in each.name] == [("gelu", 4, 4)]


def test_ops_that_were_not_seen_are_not_known_and_not_0_seconds() -> None:
    """A's wall is measured, 9 ms of which it was asleep for 6, and its profiler saw none of its ops.

    So all that it saw of the host is not known either, which closes the sum.
    """
    a, b = step(recorded(), conditions={ASLEEP: 6e-3}), step(recorded())
    a = replace(a, wall=replace(a.wall, steps=(9e-3,) * 3), ops=tuple(replace(op, own_ns=(0, 0, 0)) for op in a.ops))
    result = accounted(a, b)
    assert [row.kind for row in result.rows if row.kind in ("only", "rate")] == []
    asleep, row = result.rows
    assert (asleep.place, asleep.seconds) == (SLEEPING, microseconds(6000))
    assert row.place == NOT_KNOWN
    took = sum(made.own + 10 for made in LAYER * 4)
    assert (row.a.seconds, row.b.seconds) == (None, microseconds(took))
    assert row.ci95 is None
    (back,) = of(accounted(b, a), "gap", NOT_KNOWN)
    assert (back.a.seconds, back.b.seconds) == (microseconds(took), None)


def test_an_update_that_one_run_makes_in_another_phase_is_the_same_ops() -> None:
    """B updates by two mul and an add in its optimizer, A by the same before its last product, where it has a tanh too.

    They are 60 us slower in all in A. A third mul in B, and A has not all of the update: then it is told as it is.
    """
    update = [Made("aten::mul", "optimizer", 50, bytes=0.3e6, phase="optimizer")] * 2
    update.append(change(update[0], name="aten::add_"))
    tanh = Made("aten::tanh", "pointwise", 7)
    early = [change(row, own=row.own + 20, phase="forward", op_class="pointwise") for row in update]

    def told(b: list[Made]) -> Account:
        a, b = (step(recorded(rows)) for rows in ([*LAYER * 3, tanh, *early, *LAYER], [*LAYER * 4, *b]))
        there, back = accounted(a, b), accounted(b, a)
        assert [row.seconds for row in back.rows] == pytest.approx([-row.seconds for row in there.rows], abs=1e-12)
        return there

    result = told(update)
    (only,) = of(result, "only")
    assert [(each.name, each.a, each.b) for each in only.ops if each.a or each.b] == [("aten::tanh", 1, 0)]
    (row,) = [row for row in of(result, "rate") if any(each.name == "aten::add_" for each in row.ops)]
    assert row.seconds == microseconds(3 * 20)
    changes = of(told([*update, update[0]]), "only")
    assert sorted(row.phase for row in changes) == ["forward", "optimizer"]


def test_products_that_the_other_run_has_at_another_place_are_one_row() -> None:
    """A has two products in attention where B has one of as many FLOPs in its head. One not asked for is none."""
    rest = [change(row, name=f"dot.{row.name}") for row in LAYER * 4]
    halves, whole = [change(LINEAR, flops=5e6)] * 2, change(LINEAR, name="dot", flops=10e6, block="head")

    def rows(b: list[Made]) -> list[Row]:
        changes = of(accounted(step([*halves, *LAYER * 4]), step(b, backend="jax")), "only")
        return [row for row in changes if any("addmm" in each.name for each in row.ops)]

    (row,) = rows([whole, *rest])
    assert {each.name: (each.a, each.b) for each in row.ops if each.name in (LINEAR.name, "dot")} == {
        LINEAR.name: (2, 0),
        "dot": (0, 1),
    }
    (row,) = rows([change(whole, model_flops=0.0), *rest])
    assert not any(each.name == "dot" for each in row.ops)


def test_rows_between_frameworks_name_classes_and_ops_of_both_and_their_times() -> None:
    """What XLA names after a transpose is laid out otherwise, whatever else it does."""
    names = {LINEAR.name: "gemm_fusion_dot", GELU.name: "loop_multiply_fusion", ADD.name: "input_transpose_fusion"}
    others = [change(row, name=names.get(row.name, f"{row.op_class}_fusion")) for row in LAYER * 4]
    result = accounted(step(recorded()), step(others))
    (products,) = [row for row in of(result, "rate") if row.op_class == "contraction"]
    assert products.text.startswith("the same 12 matmul ops (addmm in A, gemm_fusion_dot in B): 3.60 ms in A, ")
    changes = [row for row in of(result, "only") if any(each.name == "input_transpose_fusion" for each in row.ops)]
    assert "4 x input_transpose_fusion (movement and pointwise)" in changes[0].text
    assert "4 x native_layer_norm (normalisation)" in changes[0].text


def test_settings_that_differ_come_first_and_have_no_seconds() -> None:
    result = accounted(step(environment={"threads": "1"}), step(environment={"threads": "2"}))
    (row,) = of(result, "setting")
    assert result.rows[0] == row
    assert row.seconds is None
    assert [(setting.name, setting.a, setting.b) for setting in row.ops] == [("threads", "1", "2")]


def test_swapping_the_runs_turns_the_signs() -> None:
    a, b = step(recorded(instead(LAYER * 4, NORM.name, UNFUSED_NORM))), step(recorded())
    there, back = ([row.seconds for row in accounted(*pair).rows] for pair in ((a, b), (b, a)))
    assert back == pytest.approx([-(seconds or 0.0) for seconds in there])
