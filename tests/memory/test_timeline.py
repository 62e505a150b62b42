"""The timeline of a step's memory: recorded storages as they are, else each buffer until its last use."""

from __future__ import annotations

import handmade
import pytest
from msgspec.structs import replace

from roofline.core.schema import Memory
from roofline.core.vocabulary import RESIDENT, STORAGE_KINDS
from roofline.memory.timeline import timeline
from roofline.memory.use import memory_use

MB = 1e6
OPS = len(handmade.OPS)


def test_recorded_storages_add_up_op_by_op():
    recorded = handmade.storages(
        ("parameters", 100, 0, OPS - 1),
        ("activations", 30, 1, 3),
        ("activations", 50, 2, 2),
        ("workspace", 7, 3, 3),
        source="allocator",
    )
    made = timeline(handmade.profile(storages=recorded))
    # op 2: 100 + 30 + 50; op 3: 100 + 30 + 7
    assert made.total.tolist() == [100, 130, 180, 137, *[100] * (OPS - 4)]
    assert (made.highest, made.peak, made.at_least) == (2, 180, False)
    assert made.parts(2) == {**dict.fromkeys(STORAGE_KINDS, 0.0), "parameters": 100, "activations": 80}


def test_a_compiler_that_assigns_memory_holds_all_of_it():
    recorded = handmade.storages(
        ("inputs", 40, 0, OPS - 1), ("workspace", 20, 4, 4), source="buffer assignment", assigned=75.0
    )
    memory = Memory(parameters=25.0, optimizer=5.0)
    made = timeline(handmade.profile(storages=recorded, memory=memory))
    # 75 are assigned, of which 60 are in use at once; of 40 that go in 25 are parameters and 5 the optimizer's state
    assert (made.peak, made.total.max(), made.highest) == (75, 60, 4)
    parts = {kind: size for kind, size in made.parts(4).items() if size is not None}
    assert parts == {"parameters": 25, "optimizer": 5, "inputs": 10, "workspace": 20}


def test_without_recorded_storages_buffers_live_until_their_last_use():
    # The step made by hand: op 0 writes buffer w of 2 MB that op 1 reads; timelines say at least that much.
    profile = handmade.profile(memory=Memory(parameters=4 * MB, optimizer=8 * MB))
    made = timeline(profile)
    assert (made.source, made.at_least) == ("last use", True)
    assert made.parts(0)["parameters"] == 4 * MB
    assert made.parts(OPS - 1)["optimizer"] == 8 * MB
    reads = {number for op in profile.ops for number in op.reads}
    for row, op in enumerate(profile.ops):
        sizes = dict(zip(op.writes, profile.signatures[op.signature].writes, strict=True))
        fresh = sum(size for number, size in sizes.items() if number in reads and number not in op.reads)
        assert made.parts(row)["activations"] + made.parts(row)["workspace"] >= fresh


def test_an_executor_that_writes_over_arguments_gives_no_timeline():
    assert timeline(handmade.profile(framework="tensorflow")) is None
    assert timeline(handmade.profile(framework="torch")) is not None


def test_unknown_buffers_give_no_timeline():
    ops = tuple(replace(op, reads=(), writes=()) for op in handmade.OPS)
    signatures = tuple(replace(signature, reads=(), writes=()) for signature in handmade.SIGNATURES)
    profile = handmade.profile(ops=ops, signatures=signatures, memory=Memory(resident=5e8, parameters=1e6))
    assert timeline(profile) is None
    use = memory_use(profile)
    assert (use.peak, use.op, use.parts["parameters"], use.parts["activations"]) == (None, None, 1e6, None)


def test_a_measured_peak_stands_and_the_timeline_says_where():
    recorded = handmade.storages(("activations", 50, 2, 2), source="allocator")
    use = memory_use(handmade.profile(storages=recorded, memory=Memory(peak=64.0, source="allocator's peak")))
    assert (use.peak, use.source, use.op, use.parts["activations"]) == (64.0, "allocator's peak", 2, 50)


def test_what_older_profiles_called_a_peak_is_the_memory_of_the_process(tmp_path):
    import roofline

    path = tmp_path / "old.json"
    roofline.save(handmade.profile(memory=Memory(peak=5e8, source=RESIDENT)), path)
    memory = roofline.load(path).memory
    assert (memory.peak, memory.resident, memory.source) == (None, 5e8, "")


@pytest.mark.parametrize("damage", [{"kind": (9,)}, {"last": (OPS,)}, {"first": (3,), "last": (2,)}, {"bytes": (1, 2)}])
def test_storages_that_do_not_fit_are_refused(damage):
    from roofline.core.schema import encode
    from roofline.errors import InputError

    recorded = replace(handmade.storages(("inputs", 5, 0, 1), source="allocator"), **damage)
    with pytest.raises(InputError, match="storages"):
        encode(handmade.profile(storages=recorded))
