"""Headings and names of tables that say no more than is known."""

from __future__ import annotations

import handmade
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze_timed
from roofline.content import tables
from roofline.content.choice import Choice
from roofline.core.cost import Cost


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
