"""XSpace bytes to columns, against a plain reading of the same bytes, event by event."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
from collections import Counter

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st
from upstream_protos import file_descriptor

from roofline.errors import InputError
from roofline.protobuf import messages
from roofline.traces.xplane import reader

# The messages as XLA writes them: everything decoded at once, strings of text.
WRITTEN = messages(
    "test.xplane",
    """
    message XSpace { repeated XPlane planes = 1; repeated string errors = 2; repeated string warnings = 3; }
    message XPlane {
      message EventMetadataEntry { int64 key = 1; XEventMetadata value = 2; }
      message StatMetadataEntry { int64 key = 1; XStatMetadata value = 2; }
      int64 id = 1;
      string name = 2;
      repeated XLine lines = 3;
      repeated EventMetadataEntry event_metadata = 4;
      repeated StatMetadataEntry stat_metadata = 5;
      repeated XStat stats = 6;
    }
    message XLine {
      int64 id = 1; string name = 2; int64 timestamp_ns = 3; repeated XEvent events = 4; int64 duration_ps = 9;
      string display_name = 11;
    }
    message XEvent {
      int64 metadata_id = 1; int64 duration_ps = 3; repeated XStat stats = 4;
      oneof data { int64 offset_ps = 2; int64 num_occurrences = 5; }
    }
    message XStat {
      int64 metadata_id = 1;
      oneof value {
        double double_value = 2; uint64 uint64_value = 3; int64 int64_value = 4; string str_value = 5;
        bytes bytes_value = 6; uint64 ref_value = 7;
      }
    }
    message XEventMetadata { int64 id = 1; string name = 2; string display_name = 4; repeated XStat stats = 5; }
    message XStatMetadata { int64 id = 1; string name = 2; }
    """,
)
XSpace = WRITTEN["XSpace"]


class Writer:
    """An XSpace under construction; ids of names are given in the order of their first use."""

    def __init__(self):
        self.space = XSpace()
        self._ids = {}

    def plane(self, name, **stats):
        plane = self.space.planes.add(name=name)
        self._ids[id(plane)] = plane, {}, {}
        for stat, value in stats.items():
            self.stat(plane, plane, stat, value)
        return plane

    def text(self, plane, text):
        """The id of a stat's name or of a text that stats refer to."""
        ids = self._ids[id(plane)][1]
        if text not in ids:
            ids[text] = len(ids) + 1
            plane.stat_metadata.add(key=ids[text]).value.name = text
        return ids[text]

    def kind(self, plane, name, **stats):
        """The id of an event's metadata, and that metadata's stats."""
        ids = self._ids[id(plane)][2]
        if name not in ids:
            ids[name] = len(ids) + 1
            entry = plane.event_metadata.add(key=ids[name])
            entry.value.name = name
            for stat, value in stats.items():
                self.stat(plane, entry.value, stat, value)
        return ids[name]

    def stat(self, plane, owner, name, value):
        """`value`: (field, value), or what is written most: a reference for a text, int64 for a number."""
        if isinstance(value, str):
            value = ("ref_value", self.text(plane, value))
        elif not isinstance(value, tuple):
            value = ("int64_value", value)
        owner.stats.add(metadata_id=self.text(plane, name), **dict([value]))

    def event(self, plane, line, name, offset, duration, **stats):
        event = line.events.add(metadata_id=self.kind(plane, name), offset_ps=offset, duration_ps=duration)
        for stat, value in stats.items():
            self.stat(plane, event, stat, value)
        return event

    def encoded(self):
        return self.space.SerializeToString()


def small():
    """One program on two threads, as the CPU writes it, and one copy on a device."""
    w = Writer()
    meta = w.plane("/host:metadata")
    for key, name, hlo in [(1, "jit_f(50)", b"hlo f"), (2, "jit_g(-7)", b"hlo g")]:
        entry = meta.event_metadata.add(key=key)
        entry.value.name = name
        w.stat(meta, entry.value, "Hlo Proto", ("bytes_value", hlo))
    cpu = w.plane("/host:CPU")
    pool = cpu.lines.add(name="tf_XLAEigen/1", display_name="pool", timestamp_ns=1_000)
    thunk = {"hlo_module": "jit_f", "program_id": 50, "device_ordinal": 0}
    w.event(cpu, pool, "dot.3", 5_000, 7_000, hlo_op="dot.3", run_id=-9, _pt=0, _p=1 << 33, **thunk)
    w.event(cpu, pool, "end: dot.3", 14_000, 500, _ct=0, _c=1 << 33)
    w.event(cpu, pool, "ThreadpoolListener::Record", 15_000, 0, _pt=15, _p=4)
    w.event(cpu, pool, "add.1", 2_000, 1_000, hlo_op="add.1", run_id=-9, _p=2, **thunk)
    python = cpu.lines.add(name="python", timestamp_ns=990)
    w.event(cpu, python, "roofline:step#0", 0, 40_000)
    gpu = w.plane("/device:GPU:0")
    stream = gpu.lines.add(name="Stream #1", timestamp_ns=1_005)
    w.event(gpu, stream, "gemm_kernel", 0, 0, hlo_op="gemm.1", program_id=-7, tf_op="jit(g)/dot", cuda_graph_id=3)
    w.event(gpu, stream, "MemcpyD2D", 1, 2, memcpy_details="kind:Unknown size:655360 dest:2 async:1")
    w.plane("Task Environment", profile_start_time=("uint64_value", 1_795_232_418_066_911_712))
    return w


def rows(trace):
    """The events as the tuples that `plain` gives, in the trace's order."""

    def name(number):
        return trace.names[number] if number >= 0 else None

    return [
        (
            trace.lines[trace.line[i]].plane,
            trace.lines[trace.line[i]].name,
            int(trace.start[i]),
            int(trace.end[i]),
            trace.names[trace.name[i]],
            name(trace.hlo_op[i]),
            int(trace.program[i]),
            int(trace.run[i]),
            int(trace.produces[i]),
            int(trace.consumes[i]),
            name(trace.scope[i]),
            int(trace.bytes[i]),
            int(trace.graph[i]),
        )
        for i in range(len(trace))
    ]


def plain(data, kind=XSpace):
    """What `rows` should be, read event by event with every message decoded."""
    space = kind.FromString(data)
    lines = []
    for plane in space.planes:
        by_id = plane.event_metadata
        if not hasattr(by_id, "keys"):
            by_id = {entry.key: entry.value for entry in plane.event_metadata}
            texts = {entry.key: entry.value.name for entry in plane.stat_metadata}
        else:  # upstream's own classes have a map
            texts = {key: value.name for key, value in plane.stat_metadata.items()}

        def value(stat, texts=texts):
            field = stat.WhichOneof("value")
            found = getattr(stat, field)
            if field == "uint64_value":
                return int(np.uint64(found).view(np.int64))
            return texts[found] if field == "ref_value" else found

        for line in plane.lines:
            events = []
            for event in line.events:
                about = by_id[event.metadata_id]
                if about.name.startswith("ThreadpoolListener::"):
                    continue
                stats = {texts[stat.metadata_id]: value(stat) for stat in (*about.stats, *event.stats)}
                start = line.timestamp_ns * 1000 + event.offset_ps
                size = re.search(r"size:(\d+)", stats.get("memcpy_details", ""))
                events.append(
                    (
                        plane.name,
                        line.display_name or line.name,
                        start,
                        start + event.duration_ps,
                        about.name,
                        stats.get("hlo_op"),
                        stats["program_id"] if "hlo_op" in stats else 0,
                        stats.get("run_id", 0),
                        stats.get("_p", -1),
                        stats.get("_c", -1),
                        stats.get("tf_op"),
                        int(size[1]) if size else -1,
                        stats.get("cuda_graph_id", 0),
                    )
                )
            if events:
                lines.append((line.timestamp_ns * 1000, sorted(events, key=lambda row: (row[2], -row[3]))))
    begin = min((time for time, _ in lines), default=0)
    return [(*row[:2], row[2] - begin, row[3] - begin, *row[4:]) for _, events in lines for row in events]


def test_every_column():
    trace = reader.read(small().encoded())
    assert rows(trace) == [
        # Time 0 is the earliest line's, 990 ns, so that the pool starts at 10,000 ps and the stream at 15,000 ps.
        ("/host:CPU", "pool", 12_000, 13_000, "add.1", "add.1", 50, -9, 2, -1, None, -1, 0),
        ("/host:CPU", "pool", 15_000, 22_000, "dot.3", "dot.3", 50, -9, 1 << 33, -1, None, -1, 0),
        ("/host:CPU", "pool", 24_000, 24_500, "end: dot.3", None, 0, 0, -1, 1 << 33, None, -1, 0),
        ("/host:CPU", "python", 0, 40_000, "roofline:step#0", None, 0, 0, -1, -1, None, -1, 0),
        ("/device:GPU:0", "Stream #1", 15_000, 15_000, "gemm_kernel", "gemm.1", -7, 0, -1, -1, "jit(g)/dot", -1, 3),
        ("/device:GPU:0", "Stream #1", 15_001, 15_003, "MemcpyD2D", None, 0, 0, -1, -1, None, 655_360, 0),
    ]
    assert rows(trace) == plain(small().encoded())
    assert trace.modules == {50: ("jit_f", b"hlo f"), -7: ("jit_g", b"hlo g")}
    assert trace.origin == 1_795_232_418_066_911_712 + 990
    assert trace.warnings == ()
    for column in ("start", "end", "program", "run", "produces", "consumes", "bytes", "graph"):
        assert getattr(trace, column).dtype == np.int64, column
    for column in ("name", "line", "hlo_op", "scope"):
        assert getattr(trace, column).dtype == np.int32, column


def test_planes_that_are_not_wanted_are_left_out_but_their_programs_are_not():
    trace = reader.read(small().encoded(), planes=lambda name: name.startswith("/device"))
    assert [line.name for line in trace.lines] == ["Stream #1"]
    assert set(trace.modules) == {50, -7}
    assert trace.start.tolist() == [0, 1]


def test_a_stat_of_the_metadata_is_every_event_s_unless_it_has_its_own():
    w = Writer()
    plane = w.plane("/device:TPU:0")
    line = plane.lines.add(name="XLA Ops")
    w.kind(plane, "fusion.1", hlo_op="fusion.1", program_id=("uint64_value", 4), run_id=8)
    w.event(plane, line, "fusion.1", 0, 1)
    w.event(plane, line, "fusion.1", 2, 1, run_id=9)
    trace = reader.read(w.encoded())
    assert [(row[5], row[6], row[7]) for row in rows(trace)] == [("fusion.1", 4, 8), ("fusion.1", 4, 9)]
    assert rows(trace) == plain(w.encoded())


def test_every_kind_of_value():
    """A text as a reference, as itself and as bytes; a number in every way that a profiler could write it."""
    w = Writer()
    plane = w.plane("/host:CPU")
    line = plane.lines.add(name="a")
    values = [
        (("ref_value", w.text(plane, "dot")), 1, 1),
        (("str_value", "dot"), ("uint64_value", 2**64 - 2), -2),
        (("bytes_value", b"dot"), ("double_value", 3.0), 3),
        (("ref_value", w.text(plane, "dot")), ("str_value", "-4"), -4),
        (("str_value", "dot"), ("double_value", float("nan")), 0),
        (("str_value", "dot"), ("str_value", "four"), 0),
        (("str_value", "dot"), "5", 5),
    ]
    for i, (op, run, _) in enumerate(values):
        w.event(plane, line, "e", i, 1, hlo_op=op, run_id=run)
    w.event(plane, line, "e", 98, 1, hlo_op=7)  # a number names no instruction
    w.event(plane, line, "e", 99, 1, hlo_op=("ref_value", 77))  # nor does a text that is not there
    trace = reader.read(w.encoded())
    assert [row[5] for row in rows(trace)] == ["dot"] * len(values) + [None, None]
    assert trace.run.tolist() == [expected for *_, expected in values] + [0, 0]


@pytest.mark.parametrize("piece", [1, 3, 1 << 16])
def test_fields_that_are_left_out_shift_no_column(piece, monkeypatch):
    """Zeros are not written: a start, a duration, an id or all stats may be missing anywhere in a line."""
    monkeypatch.setattr(reader, "_PIECE", piece)
    w = Writer()
    plane = w.plane("/host:CPU")
    line = plane.lines.add(name="a")
    for i in range(11):
        event = w.event(plane, line, f"e{i % 3}", 10 * i, i % 2, **({"_p": i, "run_id": 0} if i % 3 else {}))
        if i % 5 == 1:
            event.ClearField("offset_ps")
        if i % 4 == 2:
            event.stats.add()  # a stat of nothing
    assert rows(reader.read(w.encoded())) == plain_without_empty_stats(w)


def test_a_stat_without_a_value_is_absent():
    w = Writer()
    plane = w.plane("/host:CPU")
    line = plane.lines.add(name="a")
    for i in range(3):
        event = w.event(plane, line, "e", i, 1, _p=i + 5)
        if i == 1:
            event.stats[0].ClearField("value")
    assert reader.read(w.encoded()).produces.tolist() == [5, -1, 7]


def plain_without_empty_stats(w):
    for plane in w.space.planes:
        for line in plane.lines:
            for event in line.events:
                kept = [stat for stat in event.stats if stat.metadata_id]
                del event.stats[:]
                event.stats.extend(kept)
    return plain(w.encoded())


TEXT = st.sampled_from(["dot.1", "add", "%fusion", "end: dot.1", "ThreadpoolListener::Record"])
INT = st.one_of(st.integers(-3, 3), st.integers(-(2**63) + 1, 2**63 - 1))
UINT = st.tuples(st.just("uint64_value"), st.integers(0, 2**64 - 1))
STATS = st.fixed_dictionaries(
    {},
    optional={
        "run_id": INT,
        "_p": INT | UINT,
        "_c": UINT,
        "cuda_graph_id": INT,
        "tf_op": TEXT,
        "_src": TEXT,
        "other": INT,
    },
)
OP = st.one_of(st.just({}), st.fixed_dictionaries({"hlo_op": TEXT, "program_id": st.integers(0, 9)}))
EVENT = st.tuples(TEXT, st.integers(0, 50), st.integers(0, 20), STATS, OP)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.lists(EVENT, max_size=12)), max_size=4), st.integers(1, 9))
def test_columns_are_what_a_plain_reading_finds(lines, piece):
    w = Writer()
    plane = w.plane("/host:CPU")
    for number, (time, events) in enumerate(lines):
        line = plane.lines.add(name=f"line {number}", timestamp_ns=time)
        for name, offset, duration, stats, op in events:
            w.event(plane, line, name, offset, duration, **stats, **op)
    before, reader._PIECE = reader._PIECE, piece
    try:
        # Events of one start and end stay in the order of the file, in both.
        assert rows(reader.read(w.encoded())) == plain(w.encoded())
    finally:
        reader._PIECE = before


# Programs


def test_the_number_of_a_program():
    """That in parentheses; without it the stat, and without that the key of the entry."""
    w = Writer()
    plane = w.plane("/host:metadata")
    for key, name, stats in [
        (5, "jit_f(3)(18446744073709551615)", {"program_id": 4}),
        (6, "jit_g", {"program_id": ("uint64_value", 8)}),
        (7, "a(b)", {}),
    ]:
        entry = plane.event_metadata.add(key=key)
        entry.value.name = name
        w.stat(plane, entry.value, "hlo_proto", ("bytes_value", b"hlo"))
        for stat, value in stats.items():
            w.stat(plane, entry.value, stat, value)
    assert reader.read(w.encoded()).modules == {  # 2^64 - 1 is the bits of -1
        -1: ("jit_f(3)", b"hlo"),
        8: ("jit_g", b"hlo"),
        7: ("a(b)", b"hlo"),
    }


def test_the_program_of_an_event_without_its_number_is_the_only_one_of_its_module_s_name():
    w = small()
    plane = w.space.planes[1]
    line = plane.lines.add(name="old", timestamp_ns=1_000)
    w.event(plane, line, "a", 0, 1, hlo_op="a", hlo_module="jit_g")
    w.event(plane, line, "b", 1, 1, hlo_op="b", hlo_module="jit_h")
    w.event(plane, line, "c", 2, 1, hlo_op="c")
    trace = reader.read(w.encoded())
    assert trace.program[trace.line == [line.name for line in trace.lines].index("old")].tolist() == [-7, -1, -1]
    entry = w.space.planes[0].event_metadata.add(key=9)
    entry.value.name = "jit_g(11)"
    w.stat(w.space.planes[0], entry.value, "Hlo Proto", ("bytes_value", b"another"))
    trace = reader.read(w.encoded())
    assert trace.program[trace.line == [line.name for line in trace.lines].index("old")].tolist() == [-1, -1, -1]


def test_of_two_programs_of_one_number_the_name_of_the_module_tells():
    """The copy of XLA that runs a GPU numbers its programs from 1 on as that of the CPU does."""
    w = small()
    entry = w.space.planes[0].event_metadata.add(key=9)
    entry.value.name = "jit_other(50)"
    w.stat(w.space.planes[0], entry.value, "Hlo Proto", ("bytes_value", b"another"))
    gpu = w.space.planes[2]
    w.event(gpu, gpu.lines[0], "add_kernel", 9, 1, hlo_op="add.2", hlo_module="jit_other", program_id=50)
    trace = reader.read(w.encoded())
    names = [trace.names[code] for code in trace.name]
    of_kernel, of_thunk = (trace.program[names.index(name)] for name in ("add_kernel", "dot.3"))
    assert trace.modules[of_kernel] == ("jit_other", b"another")
    assert trace.modules[of_thunk] == ("jit_f", b"hlo f")
    assert trace.warnings == ()
    # Of equal names, too, nothing tells.
    same = w.space.planes[0].event_metadata.add(key=10)
    same.value.name = "jit_f(50)"
    w.stat(w.space.planes[0], same.value, "Hlo Proto", ("bytes_value", b"a third"))
    trace = reader.read(w.encoded())
    assert trace.modules[50] == ("jit_f", b"hlo f")
    assert trace.warnings == ("Left out 1 programs with the number and name of another.",)


# Times


def test_times_since_1970_need_no_start_time():
    w = Writer()
    plane = w.plane("/host:CPU")
    for number in (1, 0):
        line = plane.lines.add(name=f"line {number}", timestamp_ns=1_795_232_418_066_911_712 + number)
        w.event(plane, line, "e", 5, 1)
    trace = reader.read(w.encoded())
    assert trace.origin == 1_795_232_418_066_911_712
    assert trace.start.tolist() == [1_005, 5]


def test_an_unknown_start_is_none():
    w = small()
    del w.space.planes[-1]
    assert reader.read(w.encoded()).origin is None


def test_impossible_events_are_left_out_and_told():
    w = small()
    plane = w.space.planes[1]
    line = plane.lines[0]
    day = 86_400 * 10**12
    for offset, duration in [(0, -1), (0, day + 1), (day + 1, 0), (-day - 1, 0), (2**63 - 1, 2**63 - 1), (-(2**63), 1)]:
        w.event(plane, line, "odd", offset, duration)
    line.events.add(metadata_id=999, offset_ps=0, duration_ps=1)
    line.events.add(offset_ps=0, duration_ps=1)
    line.events.add(metadata_id=1, num_occurrences=12, duration_ps=1)
    for name, time in [("far", 2**63 - 1), ("early", -(2**63))]:
        w.event(plane, plane.lines.add(name=name, timestamp_ns=time), "e", 0, 1)
    trace = reader.read(w.encoded())
    assert rows(trace) == rows(reader.read(small().encoded()))
    assert sorted(trace.warnings) == [
        "Left out 1 events that stand for several, without times.",
        "Left out 2 events without a name.",
        "Left out 2 lines further than a day from the others.",
        "Left out 6 events with impossible times.",
    ]


def test_planes_and_lines_without_end_are_left_out_and_told(monkeypatch):
    monkeypatch.setattr(reader, "_PLANES", 3)
    monkeypatch.setattr(reader, "_LINES", 5)
    w = Writer()
    for number in range(5):
        plane = w.plane(f"/device:GPU:{number}")
        for stream in range(4):
            w.event(plane, plane.lines.add(name=f"Stream #{stream}"), "kernel", 10 * stream, 5)
    trace = reader.read(w.encoded())
    # The first device whole, of the second one stream, of the third none.
    assert [(line.plane[-1], line.name[-1]) for line in trace.lines] == [*(("0", str(n)) for n in range(4)), ("1", "0")]
    assert trace.warnings == ("Left out 2 planes beyond the first 3.", "Left out 7 lines beyond the first 5.")


def test_events_before_the_time_of_their_line_are_kept():
    w = Writer()
    plane = w.plane("/host:CPU")
    w.event(plane, plane.lines.add(name="a", timestamp_ns=100), "e", -7, 9)
    trace = reader.read(w.encoded())
    assert (trace.start.tolist(), trace.end.tolist()) == ([-7], [2])


# Whole files


def test_what_the_profiler_says_is_passed_on():
    w = small()
    w.space.errors.append("dropped 5 events")
    w.space.warnings.append("x" * 1000)
    assert reader.read(w.encoded()).warnings == (
        "The profiler reported: dropped 5 events",
        "The profiler reported: " + "x" * 200,
    )


def test_names_that_are_not_utf8_are_kept():
    data = small().encoded().replace(b"dot.3", b"d\xff\xfe.3").replace(b"pool", b"po\xffl")
    trace = reader.read(data)
    assert trace.lines[0].name == "po�l"
    assert rows(trace)[1][4:6] == ("d��.3", "d��.3")


def test_a_trace_without_events():
    w = Writer()
    w.plane("/host:CPU")
    trace = reader.read(w.encoded())
    assert (len(trace), trace.lines, trace.modules, trace.names) == (0, (), {}, ())
    assert trace.bytes.dtype == np.int64


def test_reads_files_and_gzip(tmp_path):
    data = small().encoded()
    expected = rows(reader.read(data))
    (tmp_path / "a.xplane.pb").write_bytes(data)
    (tmp_path / "a.xplane.pb.gz").write_bytes(gzip.compress(data))
    assert rows(reader.read(tmp_path / "a.xplane.pb")) == expected
    assert rows(reader.read(str(tmp_path / "a.xplane.pb.gz"))) == expected


def test_unreadable_files(tmp_path, monkeypatch):
    data = small().encoded()
    with pytest.raises(InputError, match=r"No such file.*give the path of a trace"):
        reader.read(tmp_path / "none.xplane.pb")
    with pytest.raises(InputError, match="directory"):
        reader.read(tmp_path)
    for cut in (12, len(gzip.compress(data)) - 3):
        with pytest.raises(InputError, match="the trace is damaged gzip"):
            reader.read(gzip.compress(data)[:cut])
    monkeypatch.setattr(reader, "LARGEST", len(data) - 1)
    for large in (data, gzip.compress(data)):
        with pytest.raises(InputError, match="larger than 0 MiB: record fewer steps"):
            reader.read(large)


def png():
    return b"\x89PNG\r\n\x1a\n" + bytes(100)


def hlo():
    from roofline.xla.hlo.proto import HloProto

    module = HloProto()
    module.hlo_module.name = "jit_f"
    computation = module.hlo_module.computations.add(name="main", id=1, root_id=2)
    computation.instructions.add(name="p", opcode="parameter", id=2)
    return module.SerializeToString()


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00", png(), json.dumps({"traceEvents": []}).encode(), b"\x08\x01" * 50, hlo(), gzip.compress(b"text")],
    ids=["empty", "zero", "png", "chrome", "varints", "hlo", "gzip"],
)
def test_foreign_files(data):
    with pytest.raises(InputError, match=r"no profiler trace \(XSpace\): give the whole \*\.xplane\.pb"):
        reader.read(data)


def test_a_cut_never_passes_for_the_whole():
    """Where a cut falls between two planes the rest is a trace, of fewer planes; anywhere else it is an error."""
    data = small().encoded()
    planes = list(small().space.planes)
    whole = []
    for n in range(1, len(planes)):
        kept = XSpace()
        kept.planes.extend(planes[:n])
        whole.append(kept.ByteSize())
    passed = {}
    for cut in range(len(data)):
        with contextlib.suppress(InputError):
            trace = reader.read(data[:cut])
            passed[cut] = len(trace)
    # The metadata's plane has no events, the CPU's 4, the GPU's 2.
    assert passed == dict(zip(whole, (0, 4, 6), strict=True))


@settings(max_examples=150)
@given(st.data())
def test_damage_is_an_error_or_a_trace(data):
    """Bytes changed anywhere: nothing but InputError comes out, and what is read is consistent."""
    encoded = bytearray(small().encoded())
    for at, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(encoded) - 1), st.integers(0, 255)), min_size=1, max_size=6)
    ):
        encoded[at] = value
    try:
        trace = reader.read(bytes(encoded))
    except InputError:
        return
    assert (trace.end >= trace.start).all()
    assert len(rows(trace)) == len(trace)
    assert (np.diff(trace.line) >= 0).all()
    assert ((trace.hlo_op >= 0) | (trace.program == 0)).all()


@given(st.binary(max_size=60))
def test_noise_is_an_error_or_a_trace(data):
    try:
        reader.read(data)
    except InputError:
        return


# Real traces


def upstream_xspace():
    """XSpace as TensorFlow has it, in a pool of its own."""
    file = descriptor_pb2.FileDescriptorProto()
    file.CopyFrom(file_descriptor("tsl/profiler/protobuf/xplane_pb2.py"))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.profiler.XSpace"))


def test_a_recorded_gpu_trace(recorded):
    path = recorded("mi300x_jax_conv.xplane.pb")
    trace = reader.read(path)
    assert rows(trace) == plain(path.read_bytes(), upstream_xspace())
    assert sorted(trace.modules) == [1, 3, 5, 7, 9, 11, 13, 15]
    assert trace.modules[15][0] == "jit_forward_3d_conv"
    on_gpu = [row for row in rows(trace) if row[0] == "/device:GPU:7"]
    assert Counter(row[5] for row in on_gpu)["input_transpose_fusion.1"] == 5
    assert {row[6] for row in on_gpu} == {15}
    # Each of the 53 copies on the other device moves 655,360 B.
    assert [row[11] for row in rows(trace) if row[0] == "/device:GPU:0"] == [655_360] * 53
    data = path.read_bytes()
    for cut in range(1, len(data), 7 * 1499):
        with pytest.raises(InputError):
            reader.read(io.BytesIO(data).read(cut))


@pytest.mark.filterwarnings("ignore")
def test_a_trace_that_jax_writes(tmp_path):
    """Of a jitted product: its instruction has events, with the program whose HLO the trace holds."""
    jax = pytest.importorskip("jax")
    product = jax.jit(lambda a, b: jax.numpy.tanh(a @ b) @ b)
    a = jax.numpy.ones((64, 64))
    jax.block_until_ready(product(a, a))
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(tmp_path, profiler_options=options)
    for i in range(3):
        with jax.profiler.TraceAnnotation(f"roofline:step#{i}"):
            jax.block_until_ready(product(a, a))
    jax.profiler.stop_trace()
    (path,) = tmp_path.rglob("*.xplane.pb")
    trace = reader.read(path)
    assert rows(trace) == plain(path.read_bytes(), upstream_xspace())
    assert {f"roofline:step#{i}" for i in range(3)} <= set(trace.names)
    ops = trace.hlo_op >= 0
    assert len(set(trace.run[ops].tolist())) == 3
    (program,) = set(trace.program[ops].tolist())
    name, hlo = trace.modules[program]
    assert name.startswith("jit_")
    from roofline.xla.hlo.proto import HloProto

    module = HloProto.FromString(hlo).hlo_module
    instructions = {i.name for computation in module.computations for i in computation.instructions}
    assert {trace.names[op] for op in trace.hlo_op[ops]} <= instructions
    # The same events as JAX's own reader gives, which knows no programs.
    theirs = jax.profiler.ProfileData.from_file(str(path))
    kept = Counter(
        (event.name, round(event.duration_ns * 1000))
        for plane in theirs.planes
        for line in plane.lines
        for event in line.events
        if not event.name.startswith("ThreadpoolListener::")
    )
    assert kept == Counter((row[4], row[3] - row[2]) for row in rows(trace))
