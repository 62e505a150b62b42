"""Events that no counted op explains, in the notes of a recording."""

from __future__ import annotations

from roofline.recording.assemble import _unmatched


def test_a_few_events_have_a_note_each() -> None:
    assert len(_unmatched({"aten::mul": 2e-6, "aten::div": 1e-6, "aten::add": 3e-6})) == 3


def test_many_events_have_one_note_that_names_the_longest() -> None:
    """1 + 2 + ... + 40 us = 820 us; the longest three are the last."""
    [note] = _unmatched({f"aten::{number}": number * 1e-6 for number in range(1, 41)})
    assert all(word in note for word in ("aten::40, aten::39, aten::38", "37 more", "820"))
    assert "aten::37" not in note
