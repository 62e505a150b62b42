"""Warm and cold against the definition, read literally."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from roofline.analysis.caches import repeats
from roofline.analysis.caches.accesses import Accesses, external_bytes
from roofline.analysis.caches.least_recently_used import cold_reads
from roofline.analysis.caches.traffic import cold_traffic
from roofline.core.device import Cache, Ceiling, Device
from roofline.core.schema import Imported, Op
from tests import handmade

MB = 1e6
Step = list[list[tuple[int, float]]]


def accesses(reads: Step, writes: Step) -> Accesses:
    """The accesses of a step that is told op by op."""
    touched = [each for op in zip(reads, writes, strict=True) for some in op for each in some]
    return Accesses(
        np.asarray([buffer for buffer, _ in touched], np.int64),
        np.asarray([size for _, size in touched], np.float64),
        np.asarray([len(op) for op in reads], np.int64),
        np.asarray([len(op) for op in writes], np.int64),
    )


def by_definition(reads: Step, writes: Step, cache: float) -> list[float]:
    """An input is warm if the distinct bytes touched since its last use, its own included, fit the cache.

    Walks back from each input of the second of two steps, collecting distinct buffers until it meets itself.
    """
    touches = 2 * list(zip(reads, writes, strict=True))
    found = []
    for number in range(len(reads), 2 * len(reads)):
        cold = 0.0
        for buffer, size in reads[number % len(reads)]:
            between: dict[int, float] = {}
            warm = False
            for before in range(number - 1, -1, -1):
                op_reads, op_writes = touches[before]
                # Within an op the order of touch is reads, then writes; the latest come first on the way back.
                for other, other_size in reversed([*op_reads, *op_writes]):
                    if other == buffer:
                        warm = sum(between.values()) + size <= cache
                        break
                    between.setdefault(other, other_size)
                else:
                    continue
                break
            if not warm:
                cold += size
        found.append(cold)
    return found


@st.composite
def steps(draw: st.DrawFn) -> tuple[Step, Step, float]:
    sizes = [float(size) for size in draw(st.lists(st.integers(1, 6), min_size=6, max_size=6))]
    buffers = st.lists(st.integers(0, 5), unique=True, max_size=3)
    ops = draw(st.lists(st.tuples(buffers, buffers), min_size=1, max_size=6))
    reads = [[(b, sizes[b]) for b in op[0]] for op in ops]
    # An op that updates a buffer touches it when it reads it.
    writes = [[(b, sizes[b]) for b in op[1] if b not in op[0]] for op in ops]
    return reads, writes, float(draw(st.integers(0, 20)))


@settings(max_examples=300)
@given(steps())
def test_like_the_definition(step: tuple[Step, Step, float]) -> None:
    reads, writes, cache = step
    assert cold_reads(accesses(reads, writes), cache) == by_definition(reads, writes, cache)


@pytest.mark.parametrize("cache", [40.0, 400.0, 2000.0, 20000.0])
def test_the_second_walk_may_end_where_it_goes_on_like_the_first(cache: float) -> None:
    # 3000 ops, each reads two of 300 buffers and writes one, of which it touches a fifth or all. The smallest cache
    # holds a few of them, the largest all: 300 buffers of at most 50 bytes. A walk of three steps in a row has no
    # second walk that could end: its last step finds what the second of two finds.
    draws = np.random.default_rng(0)
    whole, chosen = draws.integers(1, 11, 300) * 5, draws.integers(0, 300, (3000, 3))
    parts = np.where(draws.random((3000, 3)) < 0.5, 0.2, 1.0)
    steps = [
        [(int(b), float(whole[b] * part)) for b, part in zip(*op, strict=True)]
        for op in zip(chosen, parts, strict=True)
    ]
    found = cold_reads(accesses([op[:2] for op in steps], [op[2:] for op in steps]), cache)
    assert found == one_walk(2 * [op[:2] for op in steps], 2 * [op[2:] for op in steps], cache)[3000:]
    assert (sum(found) > 0) == (cache < 20000)


def one_walk(reads: Step, writes: Step, cache: float) -> list[float]:
    """Cold bytes read by each op, from an empty cache on: buffers by when they were touched last, oldest first."""
    held: dict[int, float] = {}
    found = []
    for read, written in zip(reads, writes, strict=True):
        found.append(sum(max(0.0, size - held.get(buffer, 0.0)) for buffer, size in read))
        for buffer, size in (*read, *written):
            held[buffer] = max(size, held.pop(buffer, 0.0))
        while held and sum(held.values()) > cache:
            del held[next(iter(held))]
    return found


@settings(max_examples=200)
@given(steps(), st.integers(3, 9), steps(), st.integers(0, 1))
# 2 bytes of a buffer are in a cache of 2 when the loop touches one of them and 1 byte of another buffer: the first turn
# finds the buffer, the second one does not, and the third one finds what the second left.
@example(([[(0, 1.0)]], [[(1, 1.0)]], 2.0), 3, ([[]], [[(0, 2.0)]], 0.0), 0)
def test_the_turns_of_a_loop_are_as_cold_as_they_are_one_by_one(
    body: tuple[Step, Step, float], turns: int, rest: tuple[Step, Step, float], where: int
) -> None:
    (reads, writes, cache), (other_reads, other_writes, _) = body, rest
    before, behind = (other_reads, other_writes) if where else ([], []), (other_reads, other_writes)
    reads = [*before[0], *reads * turns, *behind[0]]
    writes = [*before[1], *writes * turns, *behind[1]]
    touched = accesses(reads, writes)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(repeats, "_LEAST", 1)
        assert repeats.repeats(touched)
        found = cold_reads(touched, cache)
    assert found == one_walk(2 * reads, 2 * writes, cache)[len(reads) :]


def test_a_chain_stays_warm_while_it_fits() -> None:
    # Each op reads what the one before wrote: 0.4 MB in, 0.4 MB out, 1 MB of cache. The first input was used one step
    # ago, with 0.4 * 3 MB touched since: it is cold.
    reads = [[(0, 0.4 * MB)], [(1, 0.4 * MB)], [(2, 0.4 * MB)]]
    writes = [[(1, 0.4 * MB)], [(2, 0.4 * MB)], [(3, 0.4 * MB)]]
    assert cold_reads(accesses(reads, writes), 1 * MB) == [0.4 * MB, 0.0, 0.0]
    # With room for all four it is warm too: 1.6 MB with its own.
    assert cold_reads(accesses(reads, writes), 1.6 * MB) == [0.0, 0.0, 0.0]


def test_what_is_larger_than_the_cache_is_never_warm() -> None:
    # Read twice in a row, 4 MB against 1 MB of cache.
    touched = accesses([[(0, 4 * MB)], [(0, 4 * MB)]], [[], [(1, 4 * MB)]])
    assert cold_reads(touched, 1 * MB) == [4 * MB, 4 * MB]


def test_what_is_written_beyond_the_cache_and_what_a_cache_of_unknown_speed_holds() -> None:
    profile, known = handmade.profile(), handmade.profile().device
    whole = [sum(profile.signatures[op.signature].writes) for op in profile.ops]
    assert max(whole) > 1000
    small = Device(
        name="d",
        kind="cpu",
        ceilings={**known.ceilings, "cache.llc": Ceiling(value=1e12, source="x")},
        caches=(Cache(level="llc", size=1000.0, source="x"),),
    )
    # 1000 bytes may be overwritten or consumed before they reach memory.
    assert cold_traffic(profile, small).written.tolist() == [max(0.0, each - 1000) for each in whole]
    unknown = Device(name="d", kind="cpu", ceilings={}, caches=small.caches)
    cold = cold_traffic(profile, unknown)
    assert cold.written.tolist() == whole
    assert cold.read.tolist() == [sum(profile.signatures[op.signature].reads) for op in profile.ops]
    assert cold.high is None


def test_a_step_without_ops() -> None:
    assert cold_reads(accesses([], []), 1 * MB) == []


def test_what_a_step_must_move_whatever_its_kernels_are() -> None:
    # y = f(x, w); z = g(y); w += h(z): x and w come from outside, w goes back, y and z could stay on the chip.
    x, w, y, z = (0, 2.0), (1, 8.0), (2, 3.0), (3, 5.0)
    assert external_bytes(accesses([[x, w], [y], [z, w]], [[y], [z], [w]])) == 2 + 8 + 8
    # Nobody reads z: it is the result.
    assert external_bytes(accesses([[x, w], [y]], [[y], [z]])) == 2 + 8 + 5
    # Of a weight that is read in parts, its largest part counts, wherever it stands: 3, 8, 5 and 2 bytes of it.
    parts = [[(1, size)] for size in (3.0, 8.0, 5.0, 2.0)]
    assert external_bytes(accesses(parts, [[]] * 4)) == 8
    assert external_bytes(accesses([], [])) == 0


def test_of_a_buffer_touched_in_part_only_the_part_is_there() -> None:
    # 4 bytes of a buffer, then 100 of it: 96 were not there, and 100 - 4 of them have to come each time around, since
    # between two rounds 200 other bytes pass through a cache of 150
    reads = [[(0, 4.0)], [(0, 100.0)], [(1, 150.0)]]
    cold = cold_reads(accesses(reads, [[], [], []]), 150.0)
    assert cold == [4.0, 96.0, 150.0]
    # Touching 4 bytes of what is there whole leaves it there whole.
    cold = cold_reads(accesses([[(0, 100.0)], [(0, 4.0)], [(0, 100.0)]], [[], [], []]), 150.0)
    assert cold == [0.0, 0.0, 0.0]


def test_without_a_history_what_the_op_before_wrote_is_in_the_cache() -> None:
    # gelu reads 0.4 MB and writes 0.4. Behind an op that wrote 0.4 MB they are in a cache of 1.2 MB, and all else may
    # come from memory: 0.4 of 0.8 MB. In one of 1.1 MB they are pushed out while they are read; behind an op that wrote
    # another size, or ran beside another, they are not known to be there.
    def high(*ops: Op, cache: float = 1.2 * MB) -> list[float]:
        device = replace(handmade.device(), caches=(Cache(level="llc", size=cache, source="made up"),))
        profile = handmade.profile(ops=ops, imported=Imported(buffers=False))
        found = cold_traffic(profile, device).high
        assert found is not None
        return found.tolist()

    gelu, beside = handmade.OPS[2], replace(handmade.OPS[2], overlap_ns=1000)
    assert high(gelu, gelu) == [0.8 * MB, 0.4 * MB]
    assert high(gelu, gelu, cache=1.1 * MB) == [0.8 * MB, 0.8 * MB]
    assert high(handmade.OPS[6], gelu)[1] == high(beside, gelu)[1] == high(gelu, beside)[1] == 0.8 * MB
    assert high() == []
