"""Copies from the host to the device. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import found, near, only
from msgspec.structs import replace
from synthetic import LAYER, Row, step

from roofline.core.schema import Profile

PAGEABLE, PINNED = "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)"
COPY = Row("aten::_to_copy", "transfer", 2000, bytes=1e6)
CAST = Row("aten::to", "movement", 300, bytes=1e6)
READ = Row("aten::item", "transfer", 1000, bytes=4)


def with_kernels(run: Profile, kernels: dict[str, str]) -> Profile:
    """The run, with the kernel of each op of some names."""
    names = tuple(kernels.values())
    ops = []
    for op in run.ops:
        name = run.signatures[op.signature].name
        ops.append(replace(op, kernels=((names.index(kernels[name]), op.own_ns[0]),)) if name in kernels else op)
    return replace(run, kernels=names, ops=tuple(ops))


def test_copies_in_are_no_results_that_are_read() -> None:
    """Four copies of 2 ms against four of 0.5 ms; 4 results of 1 ms against 0.2 ms: 6 and 3.2 ms."""
    slow = with_kernels(
        step((*LAYER, COPY, READ) * 4), {"aten::_to_copy": PAGEABLE, "aten::item": "Memcpy DtoH (Device -> Pinned)"}
    )
    fast = with_kernels(
        step((*LAYER, change(COPY, own=500), change(READ, own=200)) * 4),
        {"aten::_to_copy": PINNED, "aten::item": "Memcpy DtoH (Device -> Pinned)"},
    )
    told = found(slow, fast)
    assert {rule: each.seconds for rule, each in told.items()} == {
        "copies-in": near(4 * 1500),
        "synchronisation": near(4 * 800),
    }
    copies = told["copies-in"]
    assert f"4 copies ({PAGEABLE}), torch (B) has 4 copies ({PINNED})" in copies.text
    assert "pin_memory" in copies.advice
    assert ".item()" not in copies.advice


def test_a_copy_of_one_run_alone_has_what_stands_beside_it() -> None:
    """The copy, the cast after it, and both dispatches of 10 µs, four times; named by the driver alone."""
    copy = change(COPY, name=PINNED)
    told = only(step((copy, CAST, *LAYER) * 4), step())
    assert (told.rule, told.seconds) == ("copies-in", near(4 * (2000 + 300 + 2 * 10)))
    assert "pin_memory" not in told.advice  # it is pinned


def test_the_same_copies_a_little_slower_are_noise_and_other_copies_are_not() -> None:
    """A tenth longer in one process each."""
    slow, fast = step((*LAYER, COPY) * 4), step((*LAYER, change(COPY, own=1800)) * 4)
    kernel = "aten::_to_copy"
    assert not found(with_kernels(slow, {kernel: PINNED}), with_kernels(fast, {kernel: PINNED}))
    told = only(with_kernels(slow, {kernel: PAGEABLE}), with_kernels(fast, {kernel: PINNED}))
    assert (told.rule, told.seconds) == ("copies-in", near(4 * 200))
