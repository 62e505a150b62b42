"""Where results of TensorFlow's nodes lie: what its allocators told of a real step, and what follows from that."""

from __future__ import annotations

import importlib
import os
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.protobuf")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tf = pytest.importorskip("tensorflow")
    framework = importlib.import_module("roofline.tensorflow.framework")

from roofline.core.cost import Cost
from roofline.costs.counted import Costed, Counted, CountedOp
from roofline.tensorflow import allocations
from roofline.tensorflow.allocations import NONE, Allocation, Allocations
from roofline.traces.xplane import reader

STEP = "step"
WIDE = 256


@pytest.fixture(scope="module")
def counted() -> Counted:
    """Two products of 256 x 256: the tanh of the first needs no memory of its own."""
    weights = [tf.Variable(tf.random.normal([WIDE, WIDE])) for _ in range(2)]

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        hidden = tf.tanh(tf.matmul(x, weights[0]))
        return tf.reduce_sum(tf.matmul(tf.sin(hidden), weights[1]) + hidden)

    x = tf.random.normal([WIDE, WIDE])
    recorder = framework.TensorFlow(False, (), ())
    recorder.first(lambda: float(step(x) * 0))
    recorder.watch_memory(lambda: step(x))

    def marked() -> None:
        with recorder.mark(f"{STEP}#0"):
            step(x)

    return recorder.read([reader.read(recorder.profiled(marked))], STEP).counted


def where(counted: Counted, number: int) -> int:
    return counted.addresses[number]


def test_a_result_lies_over_an_argument_that_nothing_reads_any_more(counted: Counted) -> None:
    named = {name: [] for name in counted.names_of_ops}
    for name, op in zip(counted.names_of_ops, counted.ops, strict=True):
        named[name].append(op)
    (tanh,), (sine,) = named["Tanh"], named["Sin"]
    assert where(counted, tanh.writes[0]) == where(counted, tanh.reads[0])
    # What tanh made is read once more, by the addition, so the sine is given memory.
    assert where(counted, sine.writes[0]) != where(counted, sine.reads[0])


def test_no_two_arguments_of_a_node_overlap(counted: Counted) -> None:
    assert {number for op in counted.ops for number in op.reads} - set(counted.addresses) <= {counted.ops[0].reads[0]}
    for name, op in zip(counted.names_of_ops, counted.ops, strict=True):
        sizes = dict(zip(op.reads, (size for _, _, size in op.costed.reads), strict=True))
        ranges = sorted((where(counted, number), size) for number, size in sizes.items() if number in counted.addresses)
        assert all(begin + size <= behind for (begin, size), (behind, _) in pairwise(ranges)), name


def test_variables_lie_behind_all_that_is_allocated(counted: Counted) -> None:
    products = [op for name, op in zip(counted.names_of_ops, counted.ops, strict=True) if "MatMul" in name]
    variables = {where(counted, op.reads[1]) for op in products}
    others = set(counted.addresses.values()) - variables
    assert len(variables) == 2
    assert min(variables) >= max(others) + 4


def test_the_cpus_allocator_tells_only_while_it_is_asked() -> None:
    recorder = framework.TensorFlow(False, (), ())

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        return tf.matmul(x, x)

    x = tf.ones([WIDE, WIDE])
    step(x)
    before = allocations.read(recorder.profiled(lambda: step(x)))
    with allocations.reporting(allocations.library_in(Path(tf.__file__).parent)):
        asked = allocations.read(recorder.profiled(lambda: step(x)))
    assert [(block.bytes, block.output) for block in asked.by_node["MatMul"]] == [(WIDE * WIDE * 4, True)]
    after = allocations.read(recorder.profiled(lambda: step(x)))
    # The allocator of oneDNN, which TensorFlow takes on some processors, always tells.
    assert (after == NONE) == (before == NONE)


def test_a_library_without_the_function_tells_nothing(tmp_path: Path) -> None:
    with allocations.reporting(allocations.library_in(tmp_path)):
        pass
    (tmp_path / "libtensorflow_framework.so.2").write_bytes(b"no library")
    with allocations.reporting(allocations.library_in(tmp_path)):
        pass


# ------------------------------------------------------------------------------------------------- by hand


def op(reads: list[tuple[int, float]], writes: list[tuple[int, float]], times: int = 1) -> CountedOp:
    costed = Costed(
        Cost(), "other", "other", "", None, None,
        reads=tuple((True, place, size) for place, (_, size) in enumerate(reads)),
        writes=tuple((False, place, size) for place, (_, size) in enumerate(writes)),
    )  # fmt: skip
    return CountedOp(0, costed, tuple(n for n, _ in reads), tuple(n for n, _ in writes), times)


def test_of_two_arguments_that_end_the_one_that_is_released_later_becomes_the_result() -> None:
    ops = [op([], [(1, 64.0)]), op([], [(2, 64.0)]), op([(1, 64.0), (2, 64.0)], [(3, 64.0)])]
    blocks = {"a": [Allocation(10, 1000, 64, True)], "b": [Allocation(20, 2000, 64, True)]}
    # Block 2000 is released when the third op has ended, block 1000, which was given earlier, 10 later.
    told = Allocations(blocks, {1000: [100], 2000: [5, 90]})
    assert allocations.addresses(told, ops, ["a", "b", "c"], set()) == {1: 1000, 2: 2000, 3: 1000}
    # An argument that is read later is not written over.
    again = [*ops, op([(1, 64.0)], [])]
    assert allocations.addresses(told, again, ["a", "b", "c", "d"], set())[3] == 2000


def test_turns_of_a_loop_in_several_places_and_several_workspaces_tell_no_address() -> None:
    turns = {"a": [Allocation(10, 1000, 64, True), Allocation(20, 2000, 64, True)]}
    assert allocations.addresses(Allocations(turns), [op([], [(1, 64.0)], times=2)], ["a"], set()) == {}
    spaces = {"a": [Allocation(10, 1000, 64, False), Allocation(20, 2000, 64, False)]}
    assert allocations.addresses(Allocations(spaces), [op([], [(1, 64.0)])], ["a"], set()) == {}
    one = {"a": [Allocation(10, 1000, 64, False), Allocation(20, 2000, 32, False)]}
    assert allocations.addresses(Allocations(one), [op([], [(1, 64.0)])], ["a"], set()) == {1: 1000}


def test_what_lasts_lies_behind_the_rest_from_a_page_on() -> None:
    told = Allocations({"a": [Allocation(10, 5000, 100, True)]})
    # 5,000 + 100 ends in the second page of 4,096, so the variables begin with the third one and the fourth.
    found = allocations.addresses(told, [op([(7, 4000.0), (8, 8.0)], [(1, 100.0)])], ["a"], {7, 8, 9})
    assert found == {1: 5000, 7: 8192, 8: 12288}


def test_a_name_of_two_functions_tells_no_address() -> None:
    told = Allocations({"a": [Allocation(10, 5000, 64, True)]})
    assert allocations.addresses(told, [op([], [(1, 64.0)]), op([], [(2, 64.0)])], ["a", "a"], set()) == {}
