"""Headings and names of tables that say no more than is known."""

from __future__ import annotations

import handmade
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze_timed
from roofline.content import tables, titles
from roofline.content.choice import Choice
from roofline.core.cost import Cost, unknown
from roofline.renderers.figures import breakdown


@pytest.mark.parametrize("known", [True, False])
def test_shares_of_work_are_of_what_is_known(known: bool) -> None:
    # The op without a formula has 367 of 10,750 µs, 3.4 %: with one, all is known.
    signatures = handmade.SIGNATURES
    if known:
        costed = replace(signatures[4], cost=Cost(vector_flops=1e6, bytes_read=4e6, bytes_written=4e6))
        signatures = (*signatures[:4], costed, *signatures[5:])
    columns = tables.table(analyze_timed(handmade.profile(signatures=signatures)), "class").columns
    assert [column.name for column in columns][:2] == (
        ["FLOP %", "bytes %"] if known else ["known FLOP %", "known bytes %"]
    )


def test_of_work_that_is_known_for_less_than_half_of_the_time_there_are_no_shares() -> None:
    """Of 10,800 µs the ops of two signatures have 7,000, and one more is not known anyway."""
    signatures = list(handmade.SIGNATURES)
    for number in (1, 3):
        signatures[number] = replace(signatures[number], cost=unknown("it is not known"))
    analysis = analyze_timed(handmade.profile(signatures=tuple(signatures)))
    assert (analysis.coverage["bytes"] or 0.0) < 0.5
    names = [column.name for column in tables.table(analysis, "class").columns]
    assert names[:2] == ["time", "time %"]
    # Nor in the picture: its title names none, and its bars are of time alone.
    assert "FLOP" not in titles.work([analysis], "class")
    assert "of the known FLOP" in titles.work([analyze_timed(handmade.profile())], "class")
    assert all(row.bytes is None for row in breakdown._rows(analysis, "class"))
    assert any(row.bytes is not None for row in breakdown._rows(analyze_timed(handmade.profile()), "class"))


def test_copies_to_a_device_stand_apart_from_communication() -> None:
    signatures = list(handmade.SIGNATURES)
    signatures[3], signatures[4] = (
        replace(signatures[number], op_class=op_class) for number, op_class in ((3, "transfer"), (4, "communication"))
    )
    analysis = analyze_timed(handmade.profile(signatures=tuple(signatures)))
    seconds = {name: total.seconds for name, total in analysis.by("group").items()}
    assert seconds["transfer"] > seconds["communication"] > 0


@pytest.mark.parametrize(("op_class", "name"), [("transfer", "transfer"), ("communication", "communication")])
def test_copies_to_a_device_are_no_communication(op_class: str, name: str) -> None:
    signatures = (
        *handmade.SIGNATURES[:4],
        replace(handmade.SIGNATURES[4], op_class=op_class),
        *handmade.SIGNATURES[5:],
    )
    analysis = analyze_timed(handmade.profile(signatures=signatures))
    for choice in (Choice(), Choice(contains=name)):
        table = tables.table(analysis, "group", choice)
        assert {"transfer", "communication"} & {row.label for row in table.rows} == {name}
