"""Checkpoints in one another: what each repeats, and how much of it was asked for once."""

from __future__ import annotations

from collections import Counter

from roofline.costs.repeated import named_from_outside, repeated_once


def test_what_lies_in_several_checkpoints_has_the_names_of_all() -> None:
    names = named_from_outside({"inner": {"b"}, "outer": {"a", "b", "c"}, "other": {"d"}})
    assert names == {"a": "outer;", "b": "outer;inner;", "c": "outer;", "d": "other;"}


def test_what_an_inner_checkpoint_repeats_again_was_asked_for_once() -> None:
    """Of 3 products the outer one repeats all, and the inner one 2 of these again; a name may begin like another."""
    sums = {"outer;": Counter(product=3), "outer;inner;": Counter(product=2), "outer2;": Counter(product=1)}
    assert repeated_once(sums) == {"product": 3 + 1}
    # What only the inner one repeats, as the outer one kept it, counts as well.
    assert repeated_once({"outer;": Counter(product=1), "outer;inner;": Counter(product=2)}) == {"product": 2}
