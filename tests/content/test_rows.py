"""Rows that are asked for: which are shown, in which order, and that totals close whatever is left out."""

from __future__ import annotations

from typing import Any

import handmade
import pytest
from msgspec.structs import replace

from roofline import plugins
from roofline.analysis import totals
from roofline.analysis.analysis import KEYS, analyze
from roofline.content import tables
from roofline.content.choice import SORTS, Choice, chosen
from roofline.content.points import points
from roofline.errors import InputError

#: The ops of the hand-made step by time: 5 ms in two, 3, 1.95, 0.4, 0.317, 0.025 and 0.008 ms.
OPS = ("addmm", "adamw", "softmax", "embedding", "mystery", "gelu", "layer_norm")


def shown(choice: Choice, by: str = "op") -> list[str]:
    return [next(op for op in OPS if op in name) for name in chosen(analyze(handmade.profile()), by, choice).shown]


def test_the_first_rows_are_shown_and_the_others_are_one() -> None:
    assert shown(Choice(top=2)) == ["addmm", "adamw"]
    found = chosen(analyze(handmade.profile()), "op", Choice(top=2))
    assert [(label, total.seconds) for label, total in found.remainders] == [("(5 more)", pytest.approx(2.7e-3))]


def test_rows_are_sorted_by_any_column_and_the_unknown_come_last() -> None:
    assert shown(Choice(sort="name", top=3)) == ["adamw", "softmax", "addmm"]  # aten::_fused_adamw_, aten::_softmax
    assert shown(Choice(sort="minimum"))[0] == "addmm"
    assert shown(Choice(sort="attained"))[:2] == ["adamw", "addmm"]  # 90 and 80 %
    assert shown(Choice(sort="flop"))[-1] == "mystery", "its work is not known"
    assert shown(Choice(sort="bytes"))[0] == "adamw"
    for column in SORTS:
        assert sorted(shown(Choice(sort=column))) == sorted(OPS)


def test_a_row_near_the_ridge_is_so_in_tables_and_in_pictures() -> None:
    """The cache at 2.5 GB/s: 4.804 MB of an addmm take 1922 µs, 96 % of the 2000 µs of its FLOP."""
    for cache, roof in ((2.5e9, "near ridge"), (25e9, "compute")):
        analysis = analyze(handmade.profile(), handmade.device(cache_llc=cache))
        assert next(row.roof for row in tables.rows(analysis, "op") if "addmm" in row.label) == roof
        assert next(point.bound for point in points(analysis).placed if "addmm" in point.name) == roof


def test_a_text_is_looked_for_in_whole_names_and_in_what_was_fused() -> None:
    assert shown(Choice(contains="SOFT")) == ["softmax"]
    assert shown(Choice(contains="aten::_")) == ["adamw", "softmax"]
    found = chosen(analyze(handmade.profile()), "op", Choice(contains="aten::_", top=1))
    assert [label for label, _ in found.remainders] == ["(1 more)", "(5 filtered out)"]
    ops = list(handmade.profile().ops)
    fused = handmade.profile(ops=(replace(ops[0], constituents=(2,)), *ops[1:]))
    name = fused.signatures[2].name.rpartition(":")[2]
    assert fused.signatures[ops[0].signature].name in " ".join(
        chosen(analyze(fused), "op", Choice(contains=name)).shown
    )


@pytest.mark.parametrize("by", KEYS)
@pytest.mark.parametrize(
    "choice", [Choice(top=1), Choice(every=True), Choice(sort="above", top=2), Choice(contains="a", top=1)]
)
def test_totals_close_in_every_column(by: str, choice: Choice) -> None:
    analysis = analyze(handmade.profile())
    try:
        *rows, total = tables.rows(analysis, by, choice)
    except InputError:
        assert not any("a" in name.casefold() for name in analysis.by(by))
        return
    assert sum(row.seconds for row in rows) == pytest.approx(total.seconds)
    for column in ("flops", "bytes", "floor", "loss"):
        assert sum(getattr(row, column) or 0.0 for row in rows) == pytest.approx(getattr(total, column))
    assert sum(row.ops or 0 for row in rows) == total.ops


def test_what_the_lesser_part_of_a_row_attains_is_not_said_of_it() -> None:
    # In the attention a softmax of 2000 us at 700 us of roofs, and an op of unknown work.
    for own, attained in ((1_990_000, pytest.approx(0.35)), (2_010_000, None)):
        ops = [replace(one, own_ns=(own,) * 3) if one.signature == 4 else one for one in handmade.OPS]
        found = tables.rows(analyze(handmade.profile(ops=tuple(ops))), "scope")
        row = next(row for row in found if row.label == "toy/attention")
        assert row.attained == attained
        assert row.floor == pytest.approx(700e-6 / 12.5e-3), "what is known of its floor is still in the sum"


def test_sums_of_rows_are_those_of_all_ops() -> None:
    analysis = analyze(handmade.profile())
    rows = analysis.by("op")
    whole, sums, singly = analysis.total, rows.together(rows), list(rows.values())
    for name in ("ops", "kernels", "flops", "bytes_read", "seconds", "floor", "uncosted", "unknown_flops", "costed"):
        assert sum(getattr(row, name) for row in singly) == pytest.approx(getattr(whole, name))
        assert getattr(sums, name) == pytest.approx(getattr(whole, name))
    for name in ("bounds", "functions"):
        keys = getattr(whole, name)
        assert {key: sum(getattr(row, name).get(key, 0.0) for row in singly) for key in keys} == pytest.approx(keys)
        assert getattr(sums, name) == pytest.approx(keys)


@pytest.mark.parametrize("by", ["op", "kernel", "scope"])
def test_a_table_adds_up_the_rows_that_it_shows_and_the_others_at_once(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows of many take three sums, one of them of all others."""
    analysis = analyze(handmade.profile())
    add_up, added = totals.add_up, []

    def counting(*arguments: Any) -> Any:
        added.append(arguments[-1])
        return add_up(*arguments)

    monkeypatch.setattr(totals, "add_up", counting)
    assert len(analysis.by(by)) > 3
    selection = chosen(analysis, by, Choice(top=2))
    assert len(selection.shown) == 2
    assert len(added) == 3
    assert sum(map(len, added)) == len(analysis.profile.ops)


def test_what_cannot_be_chosen_is_said() -> None:
    analysis = analyze(handmade.profile())
    with pytest.raises(InputError, match="No op has 'xyz' in its name"):
        chosen(analysis, "op", Choice(contains="xyz"))
    with pytest.raises(InputError, match="no column 'colour' to sort by; there are: name, ops, flop"):
        chosen(analysis, "op", Choice(sort="colour"))


@pytest.mark.parametrize("name", ["text", "markdown", "csv", "latex"])
def test_formats_show_the_rows_that_are_asked_for(name: str) -> None:
    renderer = plugins.load("roofline.renderers", name, "format")
    text = renderer.render(analyze(handmade.profile()), "op", rows=Choice(top=1, contains="aten"))
    assert "addmm" in text
    assert "adamw" not in text
    assert "(5 more)" in text
    assert "(1 filtered out)" in text


def test_rows_of_a_counted_step_are_chosen_too() -> None:
    counted = handmade.profile(profiled=None)
    text = plugins.load("roofline.renderers", "text", "format").render(analyze(counted), "op", rows=Choice(top=1))
    assert "(6 more)" in text
