"""How accesses become touches of pieces of memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.analysis.caches import pieces
from roofline.analysis.caches.pieces import Touches, touch_pieces
from tests.analysis.caches.steps import accesses


def by_op(touches: Touches) -> list[list[tuple[int, bool, float]]]:
    rows = zip(touches.piece.tolist(), touches.written.tolist(), touches.bytes.tolist(), strict=True)
    found: list[list[tuple[int, bool, float]]] = [[] for _ in range(int(touches.op.max(initial=-1)) + 1)]
    for op, row in zip(touches.op.tolist(), rows, strict=True):
        found[op].append(row)
    return found


def test_an_op_walks_through_all_its_inputs_at_once_and_then_writes() -> None:
    # A cache of 256 bytes has pieces of 4. The op reads 8 bytes of buffer 0 and 16 of buffer 1: when it is half through
    # the one it is half through the other. Then it writes 4 bytes.
    touches = touch_pieces(accesses(([(0, 8.0), (1, 16.0)], [(2, 4.0)])), 256.0)
    assert touches.size.tolist() == [4.0] * 7
    assert [piece for piece, *_ in by_op(touches)[0]] == [0, 2, 3, 1, 4, 5, 6]
    assert by_op(touches)[0][-1] == (6, True, 4.0)


def test_what_is_touched_in_part_is_cut_there() -> None:
    # 3 of 10 bytes, then all of them: the first piece is touched twice.
    touches = touch_pieces(accesses(([(7, 3.0)], []), ([(7, 10.0)], [])), 1e6)
    assert by_op(touches) == [[(0, False, 3.0)], [(0, False, 3.0), (1, False, 7.0)]]


def test_parts_of_one_buffer_lie_behind_each_other() -> None:
    # Queries, keys and values of a packed tensor of 30 bytes are three reads of it; what is written is another thing.
    touches = touch_pieces(accesses(([(0, 10.0)] * 3, [(0, 10.0)])), 1e6)
    assert sorted(by_op(touches)[0]) == [(0, False, 10.0), (0, True, 10.0), (1, False, 10.0), (2, False, 10.0)]


def test_buffers_at_one_address_share_pieces() -> None:
    # Buffer 1 takes over the block of buffer 0, and is half as large. Buffer 2 lies elsewhere.
    step = accesses(([], [(0, 8.0)]), ([], [(1, 4.0)]), ([(2, 8.0)], []))
    touches = touch_pieces(step, 1e6, (64, 64, 128))
    (lower, _, _), (upper, _, _) = by_op(touches)[0]
    assert by_op(touches)[1] == [(lower, True, 4.0)]
    assert {piece for piece, *_ in by_op(touches)[2]}.isdisjoint({lower, upper})
    # Without an address a buffer has memory of its own.
    apart = touch_pieces(step, 1e6, (64, None, 128))
    assert {piece for piece, *_ in by_op(apart)[1]}.isdisjoint({piece for piece, *_ in by_op(apart)[0]})


@given(
    st.lists(
        st.tuples(*[st.lists(st.tuples(st.integers(0, 4), st.integers(0, 90)), max_size=3)] * 2), min_size=1, max_size=6
    ),
    st.lists(st.one_of(st.none(), st.integers(0, 200)), max_size=5),
    st.sampled_from([1.0, 64.0, 1000.0]),
    st.sampled_from([0, 12, 1 << 21]),
)
def test_no_byte_is_lost_however_memory_is_cut(
    step: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]],
    addresses: list[int | None],
    cache: float,
    most: int,
) -> None:
    ops = [([(b, float(s)) for b, s in reads], [(b, float(s)) for b, s in writes]) for reads, writes in step]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pieces, "_TOUCHES", most)
        touches = touch_pieces(accesses(*ops), cache, addresses)
    for written in (False, True):
        moved = np.bincount(touches.op, touches.bytes * (touches.written == written), len(ops))
        assert moved == pytest.approx([sum(size for _, size in op[written]) for op in ops])
    assert (np.diff(touches.op) >= 0).all()
    assert (touches.size[touches.piece] > 0).all()


def test_steps_with_too_many_touches_are_cut_less_finely(monkeypatch: pytest.MonkeyPatch) -> None:
    # 640 bytes in pieces of 64/64 = 1, 4, 16 or 64 bytes, a buffer in at most 256, 64, 16 or 4 of them: 640 / 256 is
    # 2.5, so that each has 4 bytes, 640 / 64 = 10 gives 16, 640 / 16 = 40 gives 64, 640 / 4 = 160 gives 256.
    whole = accesses(([(0, 640.0)], []))
    for most, count in ((160, 160), (159, 40), (39, 10), (9, 3), (2, 1)):
        monkeypatch.setattr(pieces, "_TOUCHES", most)
        touches = touch_pieces(whole, 64.0, (0,))
        assert len(touches.op) == count
        # The coarsest cut takes each buffer as a whole and as memory of its own.
        assert touches.shared == (count > 1)


def test_addresses_that_no_allocator_gives_cost_no_more() -> None:
    # 3,000 buffers, each a byte behind the other and all of 3,000 bytes: 9 million touches, were they cut everywhere.
    count = 3000
    step = accesses(*(([(buffer, 3000.0)], []) for buffer in range(count)))
    touches = touch_pieces(step, 1e9, range(count))
    assert len(touches.op) == count
    assert not touches.shared


def test_cuts_that_make_too_many_touches_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    # 5,000 buffers of 640 pieces, in 160 each: 800,000 cuts, 6.4 MB in each of several arrays.
    monkeypatch.setattr(pieces, "_TOUCHES", 1 << 10)
    step = accesses(*(([(buffer, 1e6)], []) for buffer in range(5000)))
    tracemalloc.start()
    touches = touch_pieces(step, 1e5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(touches.op) == 5000
    assert peak < 6.4e6
