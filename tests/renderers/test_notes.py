"""What is above its roof is told in the line where it stands, and what is told adds up."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from roofline import devices, importing, units
from roofline.analysis.analysis import Analysis, analyze
from roofline.content import bounds, json_document, tables, wording
from roofline.content.facts import evidence, floors, notes
from roofline.content.facts import measured as measured_facts
from roofline.core.device import Device
from roofline.core.schema import Profile
from roofline.core.vocabulary import BOUNDS
from roofline.renderers import text
from roofline.renderers.figures import _bars, bound
from tests import handmade
from tests.randomly import profiles


def measured(name: str, value: float) -> Device:
    """The round device with a ceiling that somebody measured, 1 % apart."""
    device = handmade.device()
    ceiling = replace(device.ceilings[name], value=value, spread=0.01)
    return replace(device, ceilings={**device.ceilings, name: ceiling})


def test_whose_defect_it_is() -> None:
    profile = handmade.profile()
    assert not notes.above(analyze(profile))
    # 200 MFLOP at 70 instead of 100 GFLOP/s: 2857 µs for 2500 µs.
    words = "2 ops ran faster than their minimum time: 2 under matrix.fp32, up to 1.14 times as fast"
    either = "the ceiling is too low, or the count too high"
    assert notes.above(analyze(profile, measured("matrix.fp32", 70e9))) == f"{words} ({either})"
    sheet = handmade.device(matrix_fp32=70e9)
    assert notes.above(analyze(profile, sheet)) == f"{words} (the count: no code is faster than a datasheet)"
    guessed = tuple(replace(s, cost=replace(s.cost, quality="assumed")) for s in profile.signatures)
    known = replace(profile, signatures=(*guessed[:-1], profile.signatures[-1]))
    assert "(the count: it rests on an assumption)" in notes.above(analyze(known, measured("matrix.fp32", 70e9)))
    # adamw 27 MB at 6 GB/s: 4500 µs for 3000 µs; embedding 3 MB: 500 for 400 µs.
    slow = analyze(profile, handmade.device(dram_copy=6e9))
    assert "2 under dram.copy, up to 1.50 times as fast (the count: a cache held more)" in notes.above(slow)


def test_an_mfu_above_all_is_explained_where_it_can_be() -> None:
    # Two addmm of 200 MFLOP at 100 GFLOP/s are 4000 µs of a step of 12 500: 32 %. Four times as many FLOPs
    # are 128 %; of these a mask leaves out half: 64 %.
    def worded(useful: float, kind: str = "", flops: float = 800e6) -> tuple[str, str, dict[str, str]]:
        addmm = handmade.SIGNATURES[1]
        cost = replace(addmm.cost, flops=flops, model_flops=flops, useful_flops=useful)
        signatures = (
            handmade.SIGNATURES[0],
            replace(addmm, cost=cost, kind=kind or addmm.kind),
            *handmade.SIGNATURES[2:],
        )
        kernels = {"kernels": ((0, 1),)} if kind else {}
        ops = tuple(replace(op, **kernels) if op.signature == 1 else op for op in handmade.OPS)
        analysis = analyze(handmade.profile(signatures=signatures, ops=ops, kernels=("winograd_3x3",)))
        facts = dict(evidence.facts(analysis))
        return dict(measured_facts.facts(analysis)).get("MFU", ""), wording.verdict(analysis), facts

    assert worded(800e6)[0] == (
        "at least 128.0 % of 100 GFLOP/s (fp32): impossible, so the device or the count is wrong"
    )
    assert worded(400e6)[0].endswith(": multiplications that a mask leaves out are counted; all else is 64.0 %")
    mfu, verdict, facts = worded(800e6, "convolution")
    words = "in kernels that need fewer multiplications than are counted"
    assert mfu.endswith(f": convolutions are counted as direct ones, and ran {words} (Winograd or FFT)")
    # 16 000 µs by the count, of two ops that took 5000.
    assert f"compute-limited, at 320 % of FP32 peak (above its roof, {words});" in verdict
    assert words not in worded(800e6)[1]
    assert "took, which ran faster than their minimum times" in facts["least step"]
    assert "which ran faster" not in worded(200e6, "convolution", 200e6)[2]["least step"]


def test_host_time_has_an_interval_or_where_it_may_be_nothing_an_end() -> None:
    """The ops of three steps take as long as each other; then 0.8, 1 and 1.2 times as long: some draws leave no gap."""
    uneven = tuple(
        replace(op, own_ns=tuple(round(own * factor) for own, factor in zip(op.own_ns, (0.8, 1, 1.2), strict=True)))
        for op in handmade.OPS
    )
    alike, apart = (
        dict(evidence.facts(analyze(profile)))["host time"]
        for profile in (handmade.profile(), handmade.profile(ops=uneven))
    )
    assert alike.startswith("1.80 ms, 95 % interval 1.")
    assert apart.startswith("1.79 ms, at most ")


def test_several_devices_share_the_matmuls_whose_work_is_known() -> None:
    # Two of 200 MFLOP are known, on four devices.
    of_four = dict(evidence.facts(analyze(handmade.profile(devices=4))))
    assert of_four["devices"] == "4 share the step; divided equally, at least 100 MFLOP of matmuls for each"
    unknown = tuple(replace(one, cost=handmade.SIGNATURES[4].cost) for one in handmade.SIGNATURES)
    analysis = analyze(handmade.profile(devices=4, signatures=unknown))
    assert dict(evidence.facts(analysis))["devices"] == "4 share the step"


def test_no_mask_is_named_where_none_leaves_anything_out() -> None:
    """Two convolutions, one by Winograd: 2 x 25.8 of 25.9 GFLOP that the step has room for. m * m / m is not m here."""
    flops = 25802608296.0
    cost = replace(handmade.SIGNATURES[1].cost, flops=flops, model_flops=flops, useful_flops=flops)
    convolution = replace(handmade.SIGNATURES[1], cost=cost, kind="convolution")
    assert flops * flops / flops != flops
    ops = tuple(replace(op, kernels=((0, 1),)) if row == 1 else op for row, op in enumerate(handmade.OPS))
    signatures = (handmade.SIGNATURES[0], convolution, *handmade.SIGNATURES[2:])
    profile = handmade.profile(signatures=signatures, ops=ops, kernels=("winograd_3x3",))
    told = notes.mfu(analyze(profile, handmade.device(matrix_fp32=25.9e9 / 12.5e-3)))
    assert told.startswith("convolutions are counted as direct ones")


def test_all_of_a_step_above_its_ceilings_ran_elsewhere() -> None:
    # Half of the rates: floors of twice 7725 µs and more, of ops that took 10 433 µs.
    rates = {name: ceiling.value for name, ceiling in handmade.device().ceilings.items()}
    half = handmade.device(**{n: value * 2 if n.startswith("launch") else value / 2 for n, value in rates.items()})
    analysis = analyze(handmade.profile(), half)
    assert "ran on a faster device than Round Device, or not all of its time was recorded" in notes.above(analysis)
    assert "memory-limited, at 137 to 141 % of DRAM bandwidth (above its roof)" in wording.verdict(analysis)
    told = floors.describe_floors(analysis)
    more = units.seconds(-analysis.total.loss)
    assert told.endswith(f"on this device, which is at least {more} more than they take.")
    assert analysis.total.loss < -5e-3
    assert "above 6 ops" in " ".join(text.render(analysis, "class").split()), "beside the table of a key, too"


def test_ops_that_fill_more_than_their_step_are_told_where_their_shares_stand() -> None:
    """Each is shorter than the step of 13.75 ms, and all of them, 10.7 ms of shares, five times: 53.5 ms."""
    analysis = analyze(handmade.profile(ops=handmade.OPS * 5))
    assert analysis.beyond_step == 0
    assert analysis.beyond_together == pytest.approx(53.5 / 13.75)
    assert "beyond-step" in json_document.document(analysis)["flags"]
    words = "all ops together took 3.89 times as long as the step they ran in, so the recorded times are wrong"
    assert notes.beyond(analysis) == words
    for by in (None, "class", "op"):
        told = " ".join(text.render(analysis, by, details=True).split())
        assert ("beyond-step: Some ops, alone or together" if by is None else f"beyond {words}") in told
    assert words in bound.figure([analysis], 7.0)[1].long
    assert "All ops together took 3.89 times" in notes.caption(analysis)
    plain = analyze(handmade.profile())
    assert (plain.beyond_together, notes.beyond(plain)) == (None, "")
    longest = tuple(replace(op, own_ns=(14_000_000,) * 3, overlap_ns=0) for op in handmade.OPS[:1])
    assert "1 op took longer than the whole step and all ops together" in notes.beyond(
        analyze(handmade.profile(ops=longest))
    )


def test_a_scale_that_takes_ops_below_their_floors_is_named() -> None:
    # Steps of 12.5 ms beside the profiler and of 8 ms without: 0.64 of 2500 µs is less than the 2000 µs of the floor.
    plain = handmade.profile()
    scaled = analyze(replace(plain, wall=replace(plain.wall, steps=(8e-3,) * 10)))
    assert scaled.above_ceiling == 0
    assert scaled.table.floor[1] > scaled.table.own[1]
    assert "only by the factor of 0.640 that all times were scaled by" in notes.above(scaled)


@settings(max_examples=30)
@given(profiles(), st.floats(0.05, 20))
def test_what_is_told_adds_up(profile: Profile, slower: float) -> None:
    """Whatever the ceilings: rows close, the headline's floor and loss are its share, and no excess is silent."""
    ceilings = {
        name: replace(ceiling, value=ceiling.value * slower) for name, ceiling in profile.device.ceilings.items()
    }
    analysis = analyze(profile, replace(profile.device, ceilings=ceilings))
    for times in bounds.split(analysis).values():
        assert times.reach >= times.floor
        if times.attained is not None:
            closing = times.closing
            assert closing.floor + closing.loss == pytest.approx(times.seconds, abs=1e-15)
            assert closing.floor == pytest.approx(times.attained * times.seconds)
    assert sum(piece.seconds for piece in _bars.segments(analysis)) >= analysis.wall * (1 - 1e-9)
    table = analysis.table
    faster = (table.uncosted == 0) & (table.own > 0) & (table.floor > table.own * 1.03)
    assert bool(notes.above(analysis)) == bool(faster.any())
    for row in tables.rows(analysis, "class"):
        if row.attained is not None and row.attained > 1.03:
            assert "above" in text.render(analysis, "class")


def test_a_view_is_under_no_launch_floor() -> None:
    # It moves and computes nothing, and took 1 µs where the launch of a kernel takes 5.
    plain = handmade.profile()
    cost = replace(plain.signatures[0].cost, bytes_read=0.0, bytes_written=0.0, vector_flops=0.0, int_ops=0.0)
    view = replace(plain.signatures[0], name="aten::detach_", cost=cost, reads=(), writes=())
    op = replace(plain.ops[0], signature=len(plain.signatures), own_ns=(1000,) * 3, reads=(), writes=())
    profile = replace(plain, signatures=(*plain.signatures, view), ops=(*plain.ops, op))

    def last(profile: Profile) -> dict[str, Any]:
        return json_document.document(analyze(profile), "op")["ops"][-1]

    shown = last(profile)
    assert (shown["floor"], shown["loss"], shown["uncosted"]) == (0.0, pytest.approx(shown["own_seconds"]), 0.0)
    assert (shown["bound"], shown["ceiling"], shown["above_ceiling"]) == ("overhead", None, False)
    # What a GPU ran was launched, whatever it did.
    assert last(replace(profile, device=replace(profile.device, kind="cuda")))["floor"] == pytest.approx(5e-6)


@pytest.fixture(scope="module")
def imported(recorded: Any) -> Analysis:
    """A real trace whose floors are ranges."""
    (profile,) = importing.read([recorded("h100_bert_small_infer.json.gz")], say=lambda text: None)
    return analyze(profile, devices.load("h100-sxm"))


def test_text_json_and_figure_tell_one_range(imported: Analysis) -> None:
    document = json.loads(json.dumps(json_document.document(imported)))
    assert wording.is_range(imported)
    verdict, pieces = wording.verdict(imported), _bars.segments(imported)
    told = 0
    for name, ends in document["bounds_attained"].items():
        if ends is None:
            continue
        share = document["bounds"][name]
        drawn = {piece.label: piece.seconds for piece in pieces if piece.label.startswith(name)}
        floor = drawn[f"{name}, minimum"]
        assert [floor, floor + drawn.get(f"{name}, minimum or above it", 0.0)] == pytest.approx(
            [end * share for end in ends]
        )
        if name in ("compute", "memory") and f" {name}-" in verdict:
            told += 1
            assert f"{name}-limited, at {wording.between(*ends)} of " in verdict
    assert told
    for label, row in document["groups"].items():
        costed = row["own_seconds"] - row["uncosted"]
        if costed > 0 and row["floor_reach"] > 0:
            names = (label, "transfer") if label == "communication" else (label,)
            shown = next(line for line in text.render(imported, "group").splitlines() if line.startswith(names))
            ends = (row["floor"] / costed, row["floor_reach"] / costed)
            assert shown.endswith(f" {tables.between(*ends)}")


def test_time_whose_roof_turns_within_its_range_is_in_both_ends_of_a_bound(recorded: Any) -> None:
    (profile,) = importing.read([recorded("h100_qwen_0.5b_infer.json.gz")], say=lambda text: None)
    analysis = analyze(profile, devices.load("h100-sxm"))
    document = json_document.document(analysis)
    table, wall = analysis.table, analysis.wall
    for name, seconds in document["bounds_turning"].items():
        rows = (table.bound_high != table.bound) & (table.bound == BOUNDS.index(name))
        assert seconds == pytest.approx(float(table.share[rows].sum()))
        # At the upper end memory takes longer than all else that these ops do.
        assert (np.fmax(table.compute, table.launch) <= table.floor_high)[rows].all()
    turning = document["bounds_turning"]["compute"] + document["bounds_turning"]["overhead"]
    assert document["bounds_turning"]["memory"] == 0 < turning
    # Of 49.7 ms: memory's 26.9 and 3.9 more, compute's 14.9 less 3.9.
    memory, compute = (document["bounds"][name] for name in ("memory", "compute"))
    verdict = wording.verdict(analysis)
    assert f"{wording.between(memory / wall, (memory + turning) / wall)} memory-" in verdict
    low = (compute - document["bounds_turning"]["compute"]) / wall
    assert f"{wording.between(low, compute / wall)} compute-" in verdict
    words = f"Ops of {units.percent(turning / wall, 0)} are under another roof at the upper end."
    assert words in bound.figure([analysis], 7.0)[1].long
