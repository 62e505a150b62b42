"""Kernels replayed from graphs get their ops back: by order and name, and only where that is certain."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.core.cost import unknown
from roofline.costs import counted as counted_ops
from roofline.costs.counted import Costed, CountedOp
from roofline.errors import InputError, MeasurementError
from roofline.pytorch import time_cuda
from roofline.recording.rows import op_rows
from roofline.traces.kineto import links as link
from roofline.traces.kineto import reader, replays, steps

PREFIX = "roofline:step"


def column(values):
    return np.asarray(list(values), np.int64)


def kernels(text, launch=None, stream=None, step=None, node=None):
    """One kernel per letter of `text`; `launch`: digits, "." for an eager kernel."""
    n = len(text)
    launches = [-1] * n if launch is None else [-1 if c == "." else int(c) for c in launch]
    return replays.Kernels(
        key=column(map(ord, text)),
        stream=column([7] * n if stream is None else stream),
        step=column([0] * n if step is None else step),
        launch=column(launches),
        node=column([-1] * n if node is None else node),
    )


def places(replayed, reference):
    return replays.positions(replayed, reference).tolist()


# Stretches


@pytest.mark.parametrize(
    ("stretch", "whole", "expected"),
    [("ab", "abcabab", [0, 3, 5]), ("aa", "aaa", [0, 1]), ("b", "abc", [1]), ("d", "abc", []), ("", "abc", [])],
)
def test_occurrences(stretch, whole, expected):
    assert replays.occurrences(column(map(ord, stretch)), column(map(ord, whole))).tolist() == expected
    assert replays.occurrences(column(map(ord, whole)), column(map(ord, stretch))).tolist() == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("ac", "abc", [0, 2]),
        ("axc", "abc", [0, -1, 2]),
        ("ab", "abab", [-1, -1]),  # any of three ways
        ("xaby", "xababy", [0, -1, -1, 5]),  # its ends are certain, its repeated middle is not
        ("aab", "ab", [-1, -1, 1]),  # one of the two a, who knows which
        ("ba", "ab", [-1, -1]),
        ("", "ab", []),
        ("ab", "", [-1, -1]),
        ("ab", "cd", [-1, -1]),
    ],
)
def test_pairs_of_every_longest_common_subsequence(one, other, expected):
    assert replays.certain(column(map(ord, one)), column(map(ord, other))).tolist() == expected


def by_trying(one, other):
    """`certain` by the definition: all common subsequences of the greatest length."""
    for size in range(min(len(one), len(other)), 0, -1):
        ways = [
            dict(zip(mine, theirs, strict=True))
            for mine in combinations(range(len(one)), size)
            for theirs in combinations(range(len(other)), size)
            if all(one[i] == other[j] for i, j in zip(mine, theirs, strict=True))
        ]
        if ways:
            return [ways[0].get(i, -1) if len({way.get(i, -1) for way in ways}) == 1 else -1 for i in range(len(one))]
    return [-1] * len(one)


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_certain_pairs_are_those_of_the_definition(one, other):
    assert replays.certain(column(map(ord, one)), column(map(ord, other))).tolist() == by_trying(one, other)


def test_stretches_too_long_to_compare_are_left_alone(monkeypatch):
    monkeypatch.setattr(replays, "MAX_CELLS", 6)
    assert replays.certain(column([1, 2]), column([1, 3, 2])).tolist() == [0, 2]  # 2 x 2: the 3 does not count
    assert replays.certain(column([1, 2, 1]), column([1, 2, 2])).tolist() == [-1, -1, -1]


# One step


def test_a_step_of_one_graph():
    assert places(kernels("abcabc", "111111"), kernels("abcabc")) == [0, 1, 2, 3, 4, 5]


def test_graphs_with_eager_kernels_between():
    # Copies c into the graphs' inputs are no part of the reference; e runs eagerly in both.
    found = places(kernels("cabecab", ".11..22"), kernels("abeab"))
    assert found == [-1, 0, 1, 2, -1, 3, 4]


def test_a_copy_before_a_graph_is_not_taken_for_the_graphs_own():
    # Without the graph's borders either of the two c could be the first of the reference.
    assert places(kernels("ccab", ".111"), kernels("cab")) == [-1, 0, 1, 2]


def test_a_graph_that_fits_in_several_places_is_not_matched():
    assert places(kernels("ab", "11"), kernels("abab")) == [-1, -1]
    # With the eager layer in front of it there is one way only.
    assert places(kernels("abab", "..11"), kernels("abab")) == [0, 1, 2, 3]
    # As many graphs as there are places.
    assert places(kernels("abxab", "11.22"), kernels("abyab")) == [0, 1, -1, 3, 4]


def test_graphs_lie_in_the_order_of_their_launches():
    # The graph ab fits twice, but behind cd only once.
    assert places(kernels("cdab", "1122"), kernels("abcdab")) == [2, 3, 4, 5]
    # Both are there, but not in this order: one of the two runs is another program.
    assert places(kernels("cdab", "1122"), kernels("abcd")) == [-1] * 4


def test_many_equal_graphs_need_as_many_places():
    # As a model of layers that are graphs of their own, between a first and a last one: 4, 23 times 15, 12 kernels.
    first, layer, last = "ABCD", "abcdefghijklmno", "EFGHIJKLMNOP"
    text = first + layer * 23 + last
    launch = column([0] * 4 + [1 + n // 15 for n in range(23 * 15)] + [24] * 12)
    replayed = replace(kernels(text), launch=launch)
    assert places(replayed, kernels(text)) == list(range(361))
    # With eager kernels between the graphs, which the reference lacks.
    mixed = replace(kernels(text + "x" * 25), launch=np.append(launch, [-1] * 25))
    mixed = mixed.select(np.argsort(np.append(launch, np.arange(25)), kind="stable"))
    assert [place for place in places(mixed, kernels(text)) if place >= 0] == list(range(361))
    # One layer more in the reference: the ends are where they were, of the layers nothing is certain.
    found = places(replayed, kernels(first + layer * 24 + last))
    assert found == [0, 1, 2, 3, *[-1] * 345, *range(364, 376)]


def test_a_missing_kernel():
    assert places(kernels("acabd", "11111"), kernels("abcabd")) == [0, 2, 3, 4, 5]
    # A layer of three is missing altogether: the ends are known, the others not.
    assert places(kernels("xaby", "1111"), kernels("xabababy")) == [0, -1, -1, 7]


def test_two_streams_keep_their_own_order():
    # In the reference the streams begin in the other order, and run under other numbers.
    reference = kernels("nabcn", stream=[20, 7, 7, 7, 20])
    assert places(kernels("abncn", "11111", stream=[1, 1, 2, 1, 2]), reference) == [1, 2, 0, 3, 4]


def test_streams_that_hold_the_same_are_told_apart_by_their_numbers_or_not_at_all():
    reference = kernels("abab", stream=[7, 7, 20, 20])
    assert places(kernels("abab", "1111", stream=[20, 20, 7, 7]), reference) == [2, 3, 0, 1]
    assert places(kernels("abab", "1111", stream=[1, 1, 2, 2]), reference) == [-1] * 4
    assert places(kernels("ab", "11", stream=[1, 1]), reference) == [-1] * 2


def test_branches_that_a_graph_shows_on_one_stream():
    reference = kernels("anbnc", stream=[7, 20, 7, 20, 7])
    assert places(kernels("anbnc", "11111"), reference) == [0, 1, 2, 3, 4]
    # An eager kernel says itself on which stream it ran.
    assert places(kernels("anb", "1.1"), kernels("anb", stream=[7, 20, 7])) == [0, -1, 2]


def test_steps_are_matched_one_by_one():
    found = places(kernels("ababa", "11223", step=[0, 0, 1, 1, 2]), kernels("ab"))
    assert found == [0, 1, 0, 1, 0]


def test_a_node_is_the_same_kernel_in_every_replay():
    # The second step lacks a layer, and its kernels cannot be placed by their names.
    text, launch, step = "ababab" + "abab", "1111112222", [0] * 6 + [1] * 4
    assert places(kernels(text, launch, step=step), kernels("ababab"))[6:] == [-1] * 4
    node = [1, 2, 3, 4, 5, 6, 1, 2, 5, 6]
    assert places(kernels(text, launch, step=step, node=node), kernels("ababab"))[6:] == [0, 1, 4, 5]


def test_a_graph_that_is_launched_twice_in_a_step():
    # The same two nodes, called for two layers; in the second step the first x was lost.
    text, launch, step = "xyxy" + "yxy", "1122344", [0] * 4 + [1] * 3
    node = [1, 2, 1, 2, 2, 1, 2]
    found = places(kernels(text, launch, step=step, node=node), kernels("xyxy"))
    assert found[:4] == [0, 1, 2, 3]
    assert found[4] == 1
    assert found[6] == 3


def test_nodes_that_contradict_each_other_are_not_believed():
    # Both steps hold the same, but the nodes of the two b have changed places: what the ids mean is not known.
    found = places(
        kernels("abcb" * 2, "11112222", step=[0] * 4 + [1] * 4, node=[1, 2, 3, 4, 1, 4, 3, 2]), kernels("abcb")
    )
    assert found == [0, -1, 2, -1] * 2
    # Without its id the first b of the second step speaks for nobody, and node 4 has one place only.
    found = places(
        kernels("abcb" * 2, "11112222", step=[0] * 4 + [1] * 4, node=[1, 2, 3, 4, 1, -1, 3, 2]), kernels("abcb")
    )
    assert found == [0, -1, 2, 3, 0, 1, 2, -1]


def test_two_kernels_of_a_step_are_never_one_of_the_reference():
    # By the id of its node the last a of the second step is the a that another kernel is by its order.
    found = places(kernels("ab" + "aba", "11223", step=[0, 0, 1, 1, 1], node=[1, 2, -1, -1, 1]), kernels("ab"))
    assert found == [0, 1, -1, 1, -1]


def test_owners_and_what_the_host_knows():
    reference = kernels("cab")
    owner = column([5, 6, -1])
    # No op launched the last kernel of the reference: that of the replay has none either.
    assert replays.owners(kernels("cab", "111"), reference, owner).tolist() == [5, 6, -1]
    # A copy c that order cannot place belongs to the op that launched it if the reference has one to spare ...
    ambiguous = kernels("cc", "..")
    two = kernels("cac"), column([5, 6, 5])
    assert replays.owners(ambiguous, *two, hosts=column([5, 5])).tolist() == [5, 5]
    # ... and to nobody if it has fewer of them, or others.
    assert replays.owners(kernels("ccab", ".111"), reference, owner, column([5, -1, -1, -1])).tolist() == [-1, 5, 6, -1]
    # What a graph launched has no op by its launch.
    assert replays.owners(kernels("ab", "11"), kernels("abab"), column([1, 2, 3, 4]), column([1, 2])).tolist() == [
        -1,
        -1,
    ]


def test_nothing_to_match():
    empty = kernels("")
    assert places(empty, kernels("ab")) == []
    assert places(kernels("ab", "11"), empty) == [-1, -1]
    assert replays.owners(kernels("ab", ".1"), empty, column([]), column([3, -1])).tolist() == [-1, -1]


# Properties


SEQUENCE = st.text("abcd", min_size=1, max_size=40)


@st.composite
def cut(draw, text):
    """Launches for a sequence: graphs of any length with eager kernels between them."""
    launch, number = "", 0
    while len(launch) < len(text):
        size = draw(st.integers(1, len(text) - len(launch)))
        eager = draw(st.booleans()) or number == 9
        number += not eager
        launch += ("." if eager else str(number)) * size
    return launch


@given(st.data(), SEQUENCE)
def test_a_replay_in_the_same_order_is_matched_whole(data, text):
    replayed = kernels(text, data.draw(cut(text)))
    assert places(replayed, kernels(text)) == list(range(len(text)))


@given(st.data(), SEQUENCE)
def test_eager_kernels_that_the_reference_lacks_do_no_harm(data, text):
    launch = data.draw(cut(text))
    borders = [0, *(i for i in range(1, len(text)) if launch[i] != launch[i - 1]), len(text)]
    mixed, mixed_launch, true = "", "", []
    for low, high in pairwise(borders):
        extra = "x" * data.draw(st.integers(0, 2))
        mixed += extra + text[low:high]
        mixed_launch += "." * len(extra) + launch[low:high]
        true += [-1] * len(extra) + list(range(low, high))
    assert places(kernels(mixed, mixed_launch), kernels(text)) == true


@given(st.data(), SEQUENCE)
def test_whatever_is_lost_or_added_no_kernel_gets_an_op_of_another_name(data, text):
    launch = data.draw(cut(text))
    kept = data.draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text)))
    added = data.draw(st.lists(st.sampled_from(["", "", "a", "b", "x"]), min_size=len(text), max_size=len(text)))
    mixed, mixed_launch = "", ""
    for letter, number, keep, more in zip(text, launch, kept, added, strict=True):
        mixed += more + letter * keep
        mixed_launch += number * (len(more) + keep)
    found = places(kernels(mixed, mixed_launch), kernels(text))
    matched = [place for place in found if place >= 0]
    assert all(text[place] == letter for place, letter in zip(found, mixed, strict=True) if place >= 0)
    assert matched == sorted(set(matched))  # in order, none twice


@given(st.data(), st.text("abc", min_size=1, max_size=4), st.integers(2, 6))
def test_a_lost_kernel_of_a_repeated_layer_shifts_nothing(data, layer, layers):
    text = layer * layers
    lost = data.draw(st.integers(0, len(text) - 1))
    rest = text[:lost] + text[lost + 1 :]
    found = places(kernels(rest, "1" * len(rest)), kernels(text))
    true = [*range(lost), *range(lost + 1, len(text))]
    # Each is where it was, or where an equal kernel beside the lost one was: the two cannot be told apart.
    for place, was in zip(found, true, strict=True):
        low, high = min(was, lost), max(was, lost)
        assert place in (-1, was) or (low <= place <= high and len(set(text[low : high + 1])) == 1)


# Traces


def columns_of(make_kineto, replayed, reference):
    """Both as columns; each kernel is (name, args that differ from the usual ones)."""
    found = []
    for kernels_of in (replayed, reference):
        made = make_kineto.Trace()
        call = made.call("cudaGraphLaunch", 0, 5)
        for index, (name, args) in enumerate(kernels_of):
            made.kernel(name, 10 * index, 10 * index + 9, call, **args)
        trace = reader.read(made.write())
        rows = np.arange(len(trace.device))
        found.append((trace, link.link(trace), np.zeros(len(rows), np.int64), rows))
    return replays.columns(*found)


def test_grid_and_block_tell_kernels_of_one_name_apart(make_kineto):
    small, large = ("k", {"grid": (1, 1, 1)}), ("k", {"grid": (2, 1, 1)})
    one, other = columns_of(make_kineto, [small, large], [large, small])
    assert one.key.tolist() == other.key[::-1].tolist()
    assert one.key[0] != one.key[1]
    assert replays.positions(*columns_of(make_kineto, [large], [small, large])).tolist() == [1]


def test_a_kernel_that_was_tuned_in_another_way_keeps_its_op(make_kineto):
    """Coordinate descent may choose other blocks in each of two compilations; if one launch is alike, shapes count."""
    here, there, k = ("tuned", {"block": (128, 1, 1)}), ("tuned", {"block": (256, 1, 1)}), ("k", {})
    replayed, reference = columns_of(make_kineto, [here, k, here], [there, k, there])
    assert replays.owners(replayed, reference, np.arange(3)).tolist() == [0, 1, 2]
    replayed, reference = columns_of(make_kineto, [here, k, here], [there, k, here])
    assert replays.owners(replayed, reference, np.arange(3)).tolist() == [-1, 1, 2]


def test_a_name_that_lacks_its_grid_somewhere_is_compared_without(make_kineto):
    bare, k, other_name = ("k", {"grid": (), "block": None}), ("k", {}), ("m", {})
    replayed, reference = columns_of(make_kineto, [bare, other_name], [k, other_name])
    assert replayed.key.tolist() == reference.key.tolist()


def test_the_suffix_of_a_graphs_kernels_does_not_count(make_kineto):
    replayed, reference = columns_of(make_kineto, [("gemm.kd", {}), ("kd", {})], [("gemm", {}), ("kd", {})])
    assert replayed.key.tolist() == reference.key.tolist()


def test_a_trace_that_was_written_anew_has_the_same_grids(make_kineto, layers):
    text = layers[0]
    compact = json.dumps(json.loads(text), separators=(",", ":")).encode()
    assert len(compact) < len(text)
    runs = []
    for source in (text, compact):
        trace = reader.read(source)
        rows = np.arange(15)
        runs.append((trace, link.link(trace), np.zeros(len(trace.device), np.int64), rows))
    replayed, reference = replays.columns(*runs)
    assert replayed.key.tolist() == reference.key.tolist()
    assert len(set(reference.key.tolist())) == 4  # of five ops in a layer two are products


def test_nodes_of_a_graph(make_kineto):
    ids = [{"graph node id": value} for value in (2**40 + 7, 0, None, 2**40 + 7)] + [{}]
    replayed, reference = columns_of(make_kineto, [("k", each) for each in ids], [("k", {})])
    assert replayed.node[0] == replayed.node[3] >= 0
    assert replayed.node[[1, 2, 4]].tolist() == [-1] * 3
    assert reference.node.tolist() == [-1]


def by_hand(*calls):
    """What is counted of a step of these ops, each on its own."""
    nothing = Costed(unknown("not of interest here"), "op", "other", "", None, None)
    return replace(
        counted_ops.NOTHING,
        names=calls,
        thread=np.zeros(len(calls), np.int64),
        parent=np.full(len(calls), -1, np.int64),
        op_of=np.arange(len(calls)),
        view_of=np.zeros(len(calls), bool),
        ops=tuple(CountedOp(node, nothing, (), ()) for node in range(len(calls))),
        names_of_ops=calls,
        scope=np.zeros(len(calls), np.int64),
        phase=np.zeros(len(calls), np.int64),
    )


LAYER = ("layer_norm", "addmm", "gelu", "addmm", "add")


def stack(make_kineto, layers=3, steps=3):
    """Eager layers, each op of one kernel that lasts 1 µs longer than the one before it: 10, 11, ..."""
    made = make_kineto.Trace()
    calls = LAYER * layers
    for number in range(steps):
        zero = number * 2000
        made.annotation(f"{PREFIX}#{number}", zero, zero + 1900)
        now = zero + 100
        for index, name in enumerate(calls):
            made.op(f"aten::{name}", zero + 10 * index, zero + 10 * index + 8)
            made.launch(f"{name}_kernel", zero + 10 * index + 1, now, now + 10 + index)
            now += 12 + index
    return made.write(), by_hand(*(f"aten::{name}" for name in calls))


def step_and(part, period=2000, first=None):
    """graph_of for `graphed`: the graph of the n-th kernel of each step is part(n)."""
    seen = {}

    def graph_of(event):
        step = int((event["ts"] - graph_of.first) // period)
        seen[step] = seen.get(step, -1) + 1
        graph = part(seen[step])
        return None if graph is None else (step, graph)

    graph_of.first = first
    return graph_of


@pytest.fixture
def layers(make_kineto):
    text, counted = stack(make_kineto)
    first = make_kineto.FIRST / 1000
    reference = reader.read(text)
    return text, counted, reference, first


def timed(source, counted, reference=None, prefix=PREFIX):
    return time_cuda.time_cuda(reader.read(source), counted, prefix, reference)


@pytest.mark.parametrize("nodes", [False, True], ids=["names", "node ids"])
@pytest.mark.parametrize("geometry", [True, False], ids=["grids", "no grids"])
@pytest.mark.parametrize(
    ("part", "launches", "replayed"),
    [
        (lambda n: "all", 1, 15),
        (lambda n: "front" if n < 6 else "back", 2, 15),
        (lambda n: None if 5 <= n < 8 else "front" if n < 5 else "back", 2, 12),  # partitioned
        (lambda n: n // 5, 3, 15),  # a graph per layer, alike but for the times
    ],
    ids=["one", "two", "eager between", "per layer"],
)
def test_a_replay_has_the_ops_of_its_reference(make_kineto, layers, part, launches, replayed, nodes, geometry):
    text, counted, reference, first = layers
    graphed = make_kineto.graphed(text, step_and(part, first=first), nodes, geometry)
    expected = timed(text, counted)
    # The n-th op of a step took 10 + n µs.
    assert expected.own[:, 0] == pytest.approx([(10 + n) * 1e-6 for n in range(15)])
    assert (expected.graph_launches, expected.replayed.tolist(), expected.unattributed) == (0, [0] * 15, 0)
    found = timed(graphed, counted, reference)
    assert found.own == pytest.approx(expected.own)
    assert found.extra == ()
    assert found.launches.tolist() == [1] * 15
    assert (found.graph_launches, int(found.replayed.sum())) == (launches, replayed)
    assert time_cuda.conditions(found) == {"graph_launches_per_step": launches, "graph_kernels_per_step": replayed}
    assert time_cuda.conditions(expected) == time_cuda.conditions(None) == {}
    assert found.unattributed == 0
    assert time_cuda.flags(found) == (() if nodes else ("replays-by-order",))
    assert (found.joined, found.unmatched) == (1, {})
    assert found.walls == pytest.approx(expected.walls)
    assert found.idle == pytest.approx(expected.idle)


def test_without_a_reference_they_stay_kernels_by_name(make_kineto, layers):
    text, counted, _, first = layers
    found = timed(make_kineto.graphed(text, step_and(lambda n: "all", first=first)), counted)
    assert set(found.extra) == {f"{name}_kernel" for name in LAYER}
    assert found.own[:15].sum() == 0
    # 10 + 11 + ... + 24 µs of kernels.
    assert found.own[:, 0].sum() == pytest.approx(255e-6)
    assert (found.graph_launches, found.unattributed) == (1, 15)
    assert found.replayed[:15].tolist() == [0] * 15
    assert int(found.replayed.sum()) == 15


def lose(text, step, index):
    """Without the index-th kernel of the given step."""
    trace = json.loads(text)
    found = sorted((e for e in trace["traceEvents"] if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    gone = found[15 * step + index]
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event is not gone]
    return json.dumps(trace).encode()


def test_a_replayed_kernel_that_was_not_recorded(make_kineto, layers):
    text, counted, reference, first = layers
    graphed = make_kineto.graphed(text, step_and(lambda n: "all", first=first))
    # Without the gelu of the first layer in the last step: no other kernel of its name can stand in its place.
    found = timed(lose(graphed, 2, 2), counted, reference)
    expected = timed(text, counted).own.copy()
    expected[2, 1] = 0
    assert found.own == pytest.approx(expected)
    assert found.unattributed == 0
    rows = op_rows(counted, found, ["(top)"], {}, "cuda")
    assert sum(np.mean(op.own_ns) for op in rows.ops) == pytest.approx(255e3 - 12e3 / 2)


def test_what_is_not_certain_is_counted_and_stays_busy(make_kineto, layers):
    text, counted, reference, first = layers
    # The graph of a single layer, of three that look alike: which of them it is nothing says.
    graphed = make_kineto.graphed(text, step_and(lambda n: "middle" if 5 <= n < 10 else None, first=first))
    trace = json.loads(graphed)
    trace["traceEvents"] = [
        e for e in trace["traceEvents"] if e.get("cat") != "kernel" or e["args"]["correlation"] >= 10**8
    ]
    found = timed(json.dumps(trace).encode(), counted, reference)
    assert found.unattributed == 5
    # The middle layer's kernels last 15, 16, 17, 18, 19 µs.
    assert found.own.sum(axis=0) == pytest.approx([85e-6] * 2)
    assert found.own[:15].sum() == 0


def test_copies_into_the_inputs_of_a_graph_are_nobodys(make_kineto):
    made = make_kineto.Trace()
    reference = make_kineto.Trace()
    counted = by_hand("aten::copy_", "aten::mm")
    for number in range(3):
        zero = 1000 * number
        for trace in (made, reference):
            trace.annotation(f"{PREFIX}#{number}", zero, zero + 900)
        reference.op("aten::copy_", zero, zero + 9)
        reference.launch("copy_kernel", zero + 1, zero + 20, zero + 30)
        reference.op("aten::mm", zero + 10, zero + 19)
        reference.launch("gemm", zero + 11, zero + 30, zero + 50)
        # By its name the copy into the graph's input is the op of the program, which lies in the graph.
        made.op("aten::copy_", zero, zero + 9)
        made.launch("copy_kernel", zero + 1, zero + 20, zero + 23)
        graph = made.call("cudaGraphLaunch", zero + 10, zero + 15)
        made.kernel("copy_kernel", zero + 30, zero + 40, graph)
        made.kernel("gemm", zero + 40, zero + 60, graph)
    found = timed(made.write(), counted, reader.read(reference.write()))
    assert found.extra == ("copy_kernel",)
    assert found.own[:, 0] == pytest.approx([10e-6, 20e-6, 3e-6])
    assert (found.replayed.tolist(), found.unattributed) == ([1, 1, 0], 0)


@pytest.fixture
def training(make_kineto):
    """The synthetic training: its text, what is counted of a step, and which graph its backward kernels form."""
    events = [event for event in make_kineto.training(1).events if event["cat"] == "cpu_op"]
    events.sort(key=lambda event: (event["start"], -event["end"]))
    counted = by_hand(*(event["name"] for event in events))
    counted = replace(counted, thread=column(event["tid"] for event in events))
    words = ("sm80_gemm_f32f32_n", "ncclDevKernel", "Backward", "SumOps", "layer_norm_grad", "GammaBeta")

    def graph_of(event):
        step = int((event["ts"] - make_kineto.FIRST / 1000) // make_kineto.PERIOD)
        return (step, "backward") if any(word in event["name"] for word in words) else None

    return make_kineto.training().write(), counted, graph_of


def test_a_graph_with_a_communication_stream(make_kineto, training):
    text, counted, graph_of = training
    expected = timed(text, counted)
    graphed = make_kineto.graphed(text, graph_of)
    assert graphed.count(b"cudaGraphLaunch") == 3
    found = timed(graphed, counted, reader.read(text))
    assert found.own == pytest.approx(expected.own)
    assert found.overlap == pytest.approx(expected.overlap)
    assert found.overlap.sum() == pytest.approx(80e-6)  # the all-reduce runs 80 µs beside other kernels
    assert (found.extra, found.graph_launches, found.unattributed) == ((), 1, 0)
    assert int(found.replayed.sum()) == 8


def test_a_reference_without_the_marks_is_refused(make_kineto, layers):
    text, counted, _, first = layers
    other = make_kineto.Trace()
    other.op("aten::mm", 0, 10)
    other.launch("gemm", 1, 5, 15)
    graphed = make_kineto.graphed(text, step_and(lambda n: "all", first=first))
    with pytest.raises(InputError, match="mark steps"):
        timed(graphed, counted, reader.read(other.write()))
    # Where nothing is replayed it is not looked at.
    assert timed(text, counted, reader.read(other.write())).unattributed == 0


def test_a_reference_that_replays_graphs_itself_tells_nothing(make_kineto, layers):
    text, counted, _, first = layers
    graphed = make_kineto.graphed(text, step_and(lambda n: "all", first=first))
    found = timed(graphed, counted, reader.read(graphed))
    assert (found.unattributed, found.own[:15].sum()) == (15, 0)


def test_a_warm_up_step_is_no_reference(make_kineto, layers):
    text, counted, _, first = layers
    # The first step of the reference lacks a kernel: the others decide.
    found = timed(
        make_kineto.graphed(text, step_and(lambda n: n // 5, first=first)), counted, reader.read(lose(text, 0, 7))
    )
    assert found.unattributed == 0


def test_damaged_references_are_refused_or_leave_a_step_that_adds_up(make_kineto, training, damaged):
    text, counted, graph_of = training
    graphed = make_kineto.graphed(text, graph_of)
    try:
        found = timed(graphed, counted, reader.read(damaged[1]))
    except InputError:
        return
    # 441 µs of each step are busy, whoever owns them.
    assert found.own.sum(axis=0) - found.overlap.sum() == pytest.approx([441e-6] * 2)
    assert found.own.sum(axis=0) - found.overlap.sum() == pytest.approx(found.walls - found.idle)
    assert found.unattributed <= 8


def test_damaged_replays_are_refused_or_leave_a_step_that_adds_up(make_kineto, training):
    text, counted, graph_of = training
    reference = reader.read(text)
    whole = make_kineto.graphed(make_kineto.training(1).write(), graph_of, nodes=True)
    read = 0
    for name, data in make_kineto.damaged(whole):
        try:
            found = timed(data, counted, reference)
        except (InputError, MeasurementError):
            continue
        read += 1
        assert (found.own >= 0).all(), name
        assert found.own.sum(axis=0) - found.overlap.sum() == pytest.approx(found.walls - found.idle), name
        assert found.unattributed <= int(found.replayed.sum()), name
    assert read > 30


# Recorded traces


def test_replays_of_a_recorded_training_are_alike(recorded):
    """Six steps on a V100, with two graphs of 339 and 502 nodes among 2421 device events of a step.

    The eager half of the steps is their own reference here: the fourth step, each kernel owned by itself.
    """
    trace = reader.read(recorded("v100_recsys_train.json.gz"))
    links = link.link(trace)
    step = steps.assign(steps.find(trace), trace, links)
    rows = np.flatnonzero(step >= 1)
    known = np.flatnonzero(step == 3)
    # As if what the graphs launch had been launched one by one.
    replayed, reference = replays.columns((trace, links, step, rows), (trace, links, step, known))
    assert len(rows) == 5 * len(known)
    counts = [np.unique(replayed.launch[(replayed.step == number) & (replayed.launch >= 0)]) for number in range(1, 6)]
    assert [len(each) for each in counts] == [2] * 5
    place = replays.positions(replayed, reference)
    graph = replayed.launch >= 0
    assert int(graph.sum()) == 5 * (339 + 502)
    assert (place[graph] >= 0).all()
    # Each graph lies where it lay in the reference, kernel for kernel.
    inside = np.flatnonzero(reference.launch >= 0)
    for number in range(1, 6):
        assert place[graph & (replayed.step == number)].tolist() == inside.tolist()
    # Copies and fills of a graph are recorded as such, under their eager names.
    kinds = trace.device.kind[links.graph]
    assert np.bincount(kinds)[[reader.MEMSET, reader.MEMCPY]].tolist() == [576, 6]


def test_a_recorded_inference_as_a_replay(recorded, make_kineto):
    """A BERT on an H100: its 60 kernels replayed from one graph have the same ops and times, beside an eager copy."""
    text = gzip.decompress(recorded("h100_bert_small_infer.json.gz").read_bytes())
    plain = reader.read(text)
    order = np.argsort(plain.ops.start, kind="stable")
    counted = by_hand(*(plain.names[code] for code in plain.ops.name[order]))
    expected = time_cuda.time_cuda(plain, counted, None)
    graphed = make_kineto.graphed(text, lambda event: 0 if event["cat"] == "kernel" else None, geometry=False)
    found = time_cuda.time_cuda(reader.read(graphed), counted, None, plain)
    assert expected.own.sum() > 0.3e-3
    assert found.own == pytest.approx(expected.own)
    assert (found.unattributed, found.extra, int(found.replayed.sum())) == (0, (), 60)


def test_a_recorded_graph_without_a_reference(recorded):
    trace = reader.read(recorded("mi300x_vllm_decode_graph.json.gz"))
    found = time_cuda.time_cuda(trace, counted_ops.NOTHING, None)
    assert (found.graph_launches, found.unattributed) == (1, 421)
    # 96.9 % of 10.72 ms: the rows of what was replayed, none of which has an op.
    assert found.own[found.replayed > 0].sum() == pytest.approx(0.969 * 10.72e-3, rel=1e-3)
