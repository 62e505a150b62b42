"""Bytes that ops move past the last-level cache, by what a profile knows of its buffers."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.analysis.caches import accesses as caches
from roofline.analysis.caches import pieces, repeats
from roofline.analysis.caches.accesses import external_bytes
from roofline.analysis.caches.traffic import cold_traffic
from roofline.core.cost import Cost
from roofline.core.device import Cache, Device
from roofline.core.schema import Imported, Op, Profile
from tests import handmade
from tests.analysis.caches.steps import accesses

MB = 1e6


def with_cache(size: float) -> Device:
    """The device of the handmade profile with a last-level cache of so many bytes."""
    return replace(handmade.device(), caches=(Cache(level="llc", size=size, source="made up"),))


#: A GPU, whose allocator hands out the same blocks in each step.
GPU = replace(handmade.device(), kind="cuda")


#: An op that copies 4 bytes, and one that copies 12.
COPIES = tuple(replace(handmade.SIGNATURES[2], reads=(size,), writes=(size,)) for size in (4.0, 12.0))


def copies(*buffers: tuple[int, int], large: tuple[int, ...] = (), **changes: object) -> Profile:
    """A step of copies from one buffer to another, those numbered `large` of 12 bytes and the others of 4."""
    ops = tuple(
        replace(handmade.OPS[2], signature=int(number in large), reads=(source,), writes=(target,), times=1)
        for number, (source, target) in enumerate(buffers)
    )
    return handmade.profile(ops=ops, signatures=COPIES, **changes)


def test_results_are_a_range_where_addresses_are_not_recorded() -> None:
    # 0 -> 1 -> 2 -> 3, in a cache of 10 bytes: each copy finds what the one before wrote, and buffer 0 is evicted.
    # Results may be written over before they are evicted, or, in memory of their own, none is.
    cold = cold_traffic(copies((0, 1), (1, 2), (2, 3)), with_cache(10.0))
    assert cold.high is not None
    assert (cold.read.tolist(), cold.written.tolist(), cold.high.tolist()) == ([4, 0, 0], [0, 0, 0], [8, 4, 4])
    # What exceeds the cache is evicted for sure: 2 of 12 bytes.
    cold = cold_traffic(copies((0, 1), (1, 2), large=(0,)), with_cache(10.0))
    assert cold.high is not None
    assert (cold.read.tolist(), cold.written.tolist(), cold.high.tolist()) == ([12, 4], [2, 0], [24, 8])


@pytest.mark.parametrize(("microseconds", "above"), [(690, False), (670, True)])
def test_an_op_may_end_before_its_results_have_left_the_cache(microseconds: int, above: bool) -> None:
    """It reads 4 MB and is charged for 4 MB written: 800 us at 10 GB/s. 1 MB may leave later: 700 us, less 3 %."""
    copy = replace(
        handmade.SIGNATURES[2], reads=(4 * MB,), writes=(4 * MB,), cost=Cost(bytes_read=4e6, bytes_written=4e6)
    )
    ops = tuple(
        replace(
            handmade.OPS[2], signature=0, reads=(read,), writes=(read + 1,), times=1, own_ns=(microseconds * 1000,) * 3
        )
        for read in (0, 2)
    )
    device = replace(with_cache(1 * MB), kind="cuda")
    addresses = tuple(range(0, 16_000_000, 4_000_000))
    table = analyze(handmade.profile(ops=ops, signatures=(copy,), addresses=addresses, device=device), device).table
    assert table.floor[0] == pytest.approx(800e-6)
    assert table.above.tolist() == [above] * 2


def test_addresses_say_which_results_are_written_over() -> None:
    # The same chain: 2 lies where 0 lay, 3 where 1 lay. Two blocks of 4 bytes fit the cache, and nothing leaves it.
    blocks = copies((0, 1), (1, 2), (2, 3), addresses=(0, 4, 0, 4), device=GPU)
    cold = cold_traffic(blocks, with_cache(10.0))
    assert (cold.read.tolist(), cold.written.tolist(), cold.high) == ([0, 0, 0], [0, 0, 0], None)
    # On a CPU the blocks of one step say what is evicted at most.
    on_cpu = cold_traffic(replace(blocks, device=handmade.device()), with_cache(10.0))
    assert on_cpu.high is not None
    assert on_cpu.high.tolist() == [0, 0, 0]
    # In a cache of 6 bytes no block outlives the next one: all comes from memory and goes there.
    cold = cold_traffic(blocks, with_cache(6.0))
    assert (cold.read.tolist(), cold.written.tolist(), cold.high) == ([4, 0, 0], [4, 4, 4], None)


def test_results_are_a_range_of_those_ops_whose_results_nobody_located() -> None:
    # Blocks 0 and 4 take turns, and nobody knows where buffer 3 lies: in memory of its own it makes 12 bytes with them,
    # and in a cache of 10 block 4 and buffer 3 are evicted before they are written again. Block 0 is read in each op.
    step = copies((0, 1), (1, 2), (2, 3), addresses=(0, 4, 0, None), device=GPU)
    cold = cold_traffic(step, with_cache(10.0))
    assert cold.high is not None
    assert (cold.read.tolist(), cold.written.tolist(), cold.high.tolist()) == ([0, 0, 0], [4, 0, 0], [4, 0, 4])
    # What is only read needs no address.
    read_only = copies((0, 1), (1, 2), (2, 3), addresses=(None, 4, 0, 4), device=GPU)
    assert cold_traffic(read_only, with_cache(10.0)).high is None


def test_a_range_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(**changes: object) -> str | None:
        return cold_traffic(copies((0, 1), (1, 2), **changes), with_cache(6.0)).reason

    assert reason(device=GPU, addresses=(0, 4, 0)) is None
    assert reason(device=GPU, addresses=(0, None, 0)) == reason(device=GPU) == "no addresses"
    assert reason(addresses=(0, 4, 0)) == reason() == "cpu"
    assert reason(imported=Imported(buffers=False)) == "no buffers"
    monkeypatch.setattr(pieces, "_TOUCHES", 0)
    assert reason(device=GPU, addresses=(0, 4, 0)) == "too many touches"


def test_a_cache_of_unknown_speed_takes_nothing_from_memory() -> None:
    profile = handmade.profile()
    unknown = Device(name="d", kind="cpu", ceilings={}, caches=with_cache(1000.0).caches)
    cold = cold_traffic(profile, unknown)
    assert cold.written.tolist() == [sum(profile.signatures[op.signature].writes) for op in profile.ops]
    assert cold.read.tolist() == [sum(profile.signatures[op.signature].reads) for op in profile.ops]
    assert cold.high is None


@pytest.mark.parametrize("addresses", [(), (0, 4, 0, 4)])
def test_equal_turns_move_the_same_whether_they_are_folded_or_not(
    addresses: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Five turns of a loop between two other ops; in a cache of 13 bytes a turn finds less than half of what it reads.
    turn = [(1, 2), (2, 3), (3, 0), (0, 1)]
    step = copies((0, 1), *turn * 5, (2, 0), large=(0, 2, 6, 10, 14, 18, 21), addresses=addresses)
    followed = cold_traffic(step, with_cache(13.0))
    monkeypatch.setattr(repeats, "_LEAST", 1)
    assert repeats.fold_repeats(caches.accesses(step))[0].size < len(step.ops)
    folded = cold_traffic(
        copies((0, 1), *turn * 5, (2, 0), large=(0, 2, 6, 10, 14, 18, 21), addresses=addresses), with_cache(13.0)
    )
    assert all(np.array_equal(one, other) for one, other in zip(followed, folded, strict=True) if one is not None)
    assert 0 < folded.read.sum() < sum(sum(step.signatures[op.signature].reads) for op in step.ops)


def test_what_a_step_must_move_whatever_its_kernels_are() -> None:
    # y = f(x, w); z = g(y); w += h(z): x and w come from outside, w goes back, y and z could stay on the chip.
    x, w, y, z = (0, 2.0), (1, 8.0), (2, 3.0), (3, 5.0)
    assert external_bytes(accesses(([x, w], [y]), ([y], [z]), ([z, w], [w]))) == 2 + 8 + 8
    # Nobody reads z: it is the result.
    assert external_bytes(accesses(([x, w], [y]), ([y], [z]))) == 2 + 8 + 5
    # Of a weight that is read in parts, its largest part counts, wherever it stands: 3, 8, 5 and 2 bytes of it.
    assert external_bytes(accesses(*(([(1, size)], []) for size in (3.0, 8.0, 5.0, 2.0)))) == 8
    assert external_bytes(accesses()) == 0


def test_without_a_history_what_the_op_before_wrote_is_in_the_cache() -> None:
    # gelu reads 0.4 MB and writes 0.4. Behind an op that wrote 0.4 MB they are in a cache of 1.2 MB, and all else may
    # come from memory: 0.4 of 0.8 MB. In one of 1.1 MB they are pushed out while they are read; behind an op that wrote
    # another size, or ran beside another, they are not known to be there.
    def high(*ops: Op, cache: float = 1.2 * MB) -> list[float]:
        found = cold_traffic(handmade.profile(ops=ops, imported=Imported(buffers=False)), with_cache(cache)).high
        assert found is not None
        return found.tolist()

    gelu, beside = handmade.OPS[2], replace(handmade.OPS[2], overlap_ns=1000)
    assert high(gelu, gelu) == [0.8 * MB, 0.4 * MB]
    assert high(gelu, gelu, cache=1.1 * MB) == [0.8 * MB, 0.8 * MB]
    assert high(handmade.OPS[6], gelu)[1] == high(beside, gelu)[1] == high(gelu, beside)[1] == 0.8 * MB
    assert high() == []
