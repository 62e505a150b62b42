"""Where the time of a step goes, by place: sums of the hand-made profile (handmade.py), added up by hand."""

from __future__ import annotations

import handmade
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze_timed
from roofline.analysis.places import place_name, places


def test_equal_ops_of_one_block_are_one_place() -> None:
    analysis = analyze_timed(handmade.profile())
    found = {(place.phase, place.block, place.name): place for place in places(analysis)}
    rows = analysis.table
    ops = analysis.profile.ops
    names = [analysis.profile.signatures[op.signature].name for op in ops]
    ffn = [row for row, name in enumerate(names) if name == "aten::addmm"]  # of two layers, both in the block FFN
    place = found["forward", "FFN", "addmm"]
    own, floor = rows.own[ffn].sum(), rows.floor[ffn].sum()
    assert place.runs == len(ffn) == 2
    assert place.seconds == pytest.approx(rows.share[ffn].sum())
    assert place.of_roof == pytest.approx(floor / own)
    assert place.above == pytest.approx(place.seconds * (1 - floor / own))


def test_they_come_by_what_the_step_could_save_and_unknown_work_counts_whole() -> None:
    analysis = analyze_timed(handmade.profile())
    found = places(analysis)
    assert [place.at_most for place in found] == sorted((place.at_most for place in found), reverse=True)
    unknown = next(place for place in found if place.above is None)
    assert (unknown.of_roof, unknown.at_most) == (None, unknown.seconds)


def test_a_time_without_a_minimum_is_not_above_one() -> None:
    known, unknown = 1, len(handmade.SIGNATURES)
    lacking = replace(handmade.SIGNATURES[known], cost=handmade.SIGNATURES[4].cost)
    ops = handmade.profile().ops
    (first, second) = (row for row, op in enumerate(ops) if op.signature == known)
    mixed = tuple(replace(op, signature=unknown) if row == second else op for row, op in enumerate(ops))
    analysis = analyze_timed(handmade.profile(signatures=(*handmade.SIGNATURES, lacking), ops=mixed))
    place = next(place for place in places(analysis) if place.name == "addmm")
    table = analysis.table
    assert place.above == pytest.approx(table.own[first] - table.floor[first])
    assert place.without_minimum == pytest.approx(table.own[second])
    assert place.at_most == pytest.approx(place.above + place.without_minimum)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("aten::mm", "mm"),
        ("fusion.12", "fusion"),
        ("triton_poi_fused_add_3", "triton_poi_fused_add"),
        ("conv2d", "conv2d"),
    ],
)
def test_a_number_of_the_compiler_is_no_part_of_a_name(name: str, shown: str) -> None:
    assert place_name(replace(handmade.SIGNATURES[0], name=name)) == shown


def test_a_place_has_a_line_where_all_of_its_ops_are_of_one() -> None:
    lined = handmade.lined()
    found = {(place.block, place.name): place for place in places(analyze_timed(lined))}
    assert found["FFN", "addmm"].line == "model/layers.py:12"  # both of its ops
    assert found["embedding", "embedding"].line is None
    ops = tuple(replace(op, line=2) if row == 3 else op for row, op in enumerate(lined.ops))
    apart = {(place.block, place.name): place for place in places(analyze_timed(replace(lined, ops=ops)))}
    assert apart.keys() == found.keys()
    assert apart["FFN", "addmm"].line is None
    assert apart["FFN", "addmm"].seconds == pytest.approx(found["FFN", "addmm"].seconds)
