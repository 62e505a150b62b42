"""Reading a Kineto trace, whole or damaged."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import re
import tracemalloc
import zipfile
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.errors import InputError
from roofline.timing import idle
from roofline.traces import intervals, nesting
from roofline.traces.chrome import reader, times
from roofline.traces.chrome import text as chrome_text
from roofline.traces.kineto import links as link
from roofline.traces.kineto import reader as kineto
from roofline.traces.kineto import steps


@pytest.fixture(scope="module")
def trace(make_kineto):
    return kineto.read(make_kineto.training().write())


def names(trace, events):
    return [trace.names[code] for code in events.name]


# The synthetic trace


def test_committed_file_is_what_the_generator_writes(make_kineto):
    assert make_kineto.FILE.read_bytes() == make_kineto.training().write()
    assert make_kineto.FILE.stat().st_size < 100_000


def test_tables_hold_the_events_of_three_steps(trace):
    assert len(trace.ops) == 3 * 33
    assert len(trace.device) == 3 * 19
    assert len(trace.launches) == 3 * (19 + 2)  # one call for each device event, two synchronisations
    assert len(trace.annotations) == 3 * 3
    assert trace.recorded == 3 * (33 + 19 + 21 + 3)
    assert trace.warnings == ()
    kinds = [kineto.KINDS[kind] for kind in trace.device.kind]
    assert kinds.count("memcpy") == 3 * 2
    assert kinds.count("kernel") == 3 * 17


def test_times_are_whole_nanoseconds_after_the_first_event(trace, make_kineto):
    assert trace.origin == make_kineto.FIRST
    assert trace.base_time == make_kineto.BASE
    first = names(trace, trace.device).index("sm80_gemm_f32f32_tn")
    assert trace.device.start[first] == 130_000
    assert trace.device.end[first] == 200_000
    assert trace.device.duration[first] == 70_000


def test_threads_of_device_events_are_streams(trace):
    assert {trace.threads[code] for code in trace.device.thread} == {("0", "7"), ("0", "20")}
    assert {trace.threads[code] for code in trace.ops.thread} == {("100", "100"), ("100", "101")}


def test_rows_are_sorted_and_arguments_decoded_on_demand(trace):
    for events in (trace.ops, trace.launches, trace.device, trace.annotations):
        assert (np.diff(events.start) >= 0).all()
    row = names(trace, trace.ops).index("aten::addmm")
    assert trace.ops.arguments(row)["Input Dims"] == [[512], [32, 256], [256, 512], [], []]
    assert trace.ops.external[row] == trace.ops.order[row] + 1
    assert trace.ops.correlation[row] == -1


def test_select_takes_masks_and_indices(trace):
    mask = trace.device.kind == kineto.MEMCPY
    chosen = trace.device.select(mask)
    assert len(chosen) == mask.sum()
    assert chosen.arguments(0)["bytes"] == 32 * 256 * 4
    again = trace.device.select(np.flatnonzero(mask)[::-1])
    assert again.start.tolist() == chosen.start.tolist()[::-1]


def test_epoch_times_keep_their_nanoseconds(make_kineto):
    epoch = 1_712_195_495_527_379_266  # float64 microseconds of this size are 0.25 µs apart
    trace = kineto.read(make_kineto.training(1).write(first=epoch, base=None))
    assert trace.origin == epoch
    assert trace.base_time is None
    assert set((trace.device.start % 1000).tolist()) == {0}


# Times as text


@given(st.integers(-(2**62) + 1000, 2**62 - 1000))
def test_nanoseconds_are_exact(time):
    sign = "-" if time < 0 else ""
    text = f"{sign}{abs(time) // 1000}.{abs(time) % 1000:03d}".encode()
    value, usable = times.from_texts([text, b"0"])
    assert usable.all()
    assert value[0] == time


@given(st.floats(-1e12, 1e12))
def test_any_float_reads_as_the_nearest_nanosecond(time):
    value, usable = times.from_texts([repr(time).encode()])
    assert usable.all()
    assert abs(value[0] - time * 1000) <= 0.5 + abs(time) * 1e-12


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"12", 12_000),
        (b"0.5", 500),
        (b"0.0004", 0),
        (b"0.0005", 1),
        (b"-1.25", -1_250),
        (b"1e3", 1_000_000),
        (b'"3.5"', 3_500),
        (b"0.1234567890123456789012345678901234567890", 123),
        (b"", None),
        (b"-", None),
        (b".", None),
        (b"null", None),
        (b"1e30", None),
        (b"1e999999999999", None),
        (b"9" * 5000, None),
        (b"9999999999999999.999", None),
        (b'"long"', None),
        (b'"\xff"', None),
        (b"[1,2]", None),
        (b"true", None),
    ],
)
def test_what_is_a_time(text, value):
    found, usable = times.from_texts([text, b"1"])
    assert usable.tolist() == [value is not None, True]
    assert found.tolist() == [value or 0, 1000]


# Damage

# Of these, all that is left is no trace.
REFUSED = {
    "gzip cut in its header",
    "empty gzip",
    "empty",
    "not json",
    "html",
    "a number",
    "null",
    "no traceEvents",
    "traceEvents is null",
    "traceEvents is an object",
    "no events",
    "deep nesting",
    "deep nesting of heads",
    "UTF-16",
    "only other events",
}
# What is read as it stands, with nothing to mend.
SOUND = {
    "gzip with bytes behind it",
    "two gzip members",
    "only the list",
    "duration as text",
    "byte order mark",
    "name a number",
    "name null",
    "name with markup",
    "args null",
    # The links say what is missing here.
    "no args",
    "no correlation",
    "one correlation for ten",
    "launches twice",
}


def test_damage_is_mended_with_a_warning_or_refused(damaged):
    name, data = damaged
    if name in REFUSED:
        with pytest.raises(InputError, match=r"^the trace [^\n]*;[^\n]*\.$"):
            kineto.read(data)
        return
    trace = kineto.read(data)
    assert bool(trace.warnings) == (name not in SOUND)
    assert all(repair.count > 0 and str(repair).endswith(f": {repair.count}") for repair in trace.warnings)
    for events in (trace.ops, trace.launches, trace.device, trace.annotations):
        assert (events.end >= events.start).all()
        assert (events.start >= 0).all()
    assert all(isinstance(name, str) and name.encode() is not None for name in trace.names)
    links = link.link(trace)
    windows = steps.find(trace)
    idle.causes(trace, links, windows.start, windows.end)
    steps.device_windows(windows, trace, steps.assign(windows, trace, links))


@pytest.mark.parametrize(
    ("name", "repair", "count"),
    [
        ("bare NaN", "bare NaN or Infinity read as missing", 30),
        ("negative duration", "events with a missing or impossible duration counted as 0 ns", 10),
        ("no duration", "events with a missing or impossible duration counted as 0 ns", 10),
        ("time null", "events without a usable time dropped", 10),
        ("time 1e30", "events without a usable time dropped", 10),
        ("time 0", "events more than a day away from the others dropped", 10),
        ("correlation 2**70", "events with ids that are not numbers or too large", 10),
        ("invalid UTF-8", "invalid UTF-8 characters replaced", 2 * 3),
        ("control character", "damaged pieces of JSON dropped", 1),
        ("gzip cut", "gzip streams that end early, their last events missing", 1),
        ("gzip with a damaged block", "damaged blocks of gzip, the events after them missing", 1),
    ],
)
def test_repairs_are_counted(make_kineto, name, repair, count):
    data = dict(make_kineto.damaged(make_kineto.training(1).write()))[name]
    assert kineto.Repair(repair, count) in kineto.read(data).warnings


@pytest.mark.parametrize(
    "name", ["trailing comma", "bytes behind the end", "other things among the events", "gzip with a wrong checksum"]
)
def test_salvage_loses_no_whole_event(make_kineto, name):
    text = make_kineto.training(1).write()
    whole, mended = kineto.read(text), kineto.read(dict(make_kineto.damaged(text))[name])
    assert [len(e) for e in (mended.ops, mended.launches, mended.device)] == [
        len(e) for e in (whole.ops, whole.launches, whole.device)
    ]
    assert mended.device_properties == whole.device_properties
    assert mended.base_time == whole.base_time


@given(data=st.data())
def test_a_cut_file_keeps_what_was_whole(make_kineto, data):
    text = make_kineto.training(1).write()
    packed = data.draw(st.booleans())
    whole = gzip.compress(text, mtime=0) if packed else text
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        trace = kineto.read(cut)
    except InputError:
        return
    assert trace.warnings or cut.rstrip() == text.rstrip()
    everything = kineto.read(text)
    for name in ("ops", "launches", "device", "annotations"):
        kept, known = (Counter(getattr(t, name).args) for t in (trace, everything))
        assert kept <= known


@given(data=st.data())
def test_bytes_changed_anywhere_never_raise_another_error(make_kineto, data):
    text = bytearray(make_kineto.training(1).write()[:20_000])
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        kineto.read(bytes(text))


# Chunks


@pytest.fixture
def small(monkeypatch):
    """Chunks of a few events."""
    monkeypatch.setattr(chrome_text, "_FEED", 300)
    monkeypatch.setattr(reader, "_CHUNK", 1500)
    monkeypatch.setattr(reader, "_LONGEST", 1 << 20)


def columns(trace):
    """Everything that is read of a trace."""
    tables = [trace.ops, trace.launches, trace.device, trace.annotations]
    names = ("start", "end", "name", "thread", "kind", "order", "correlation", "external")
    values = [[getattr(table, name).tolist() for name in names] + [list(table.args)] for table in tables]
    return values, trace.names, trace.threads, trace.metadata, trace.recorded, trace.origin, trace.warnings


def test_chunks_make_no_difference(make_kineto, small):
    text = make_kineto.training().write()
    in_chunks = columns(kineto.read(text))
    packed = columns(kineto.read(gzip.compress(text)))
    assert in_chunks == packed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_CHUNK", 1 << 22)
        assert columns(kineto.read(text)) == in_chunks


def test_times_as_text_and_as_floats_are_the_same(make_kineto, small, monkeypatch):
    text = make_kineto.training().write()
    quick = columns(kineto.read(text))
    monkeypatch.setattr(reader.Reader, "_of_floats", lambda self, events: None)
    assert columns(kineto.read(text)) == quick


def test_damage_in_chunks_is_mended_or_refused_as_well(damaged, small):
    name, data = damaged
    if name in REFUSED:
        with pytest.raises(InputError, match=r"^the trace [^\n]*;[^\n]*\.$"):
            kineto.read(data)
        return
    trace = kineto.read(data)
    assert bool(trace.warnings) == (name not in SOUND)


def test_damage_costs_the_damaged_event_alone(make_kineto, small):
    text = make_kineto.training(1).write()
    lines = text.split(b"\n")
    lines[30] = lines[30].replace(b'"args": {', b'"args": ', 1)
    mended = kineto.read(b"\n".join(lines))
    assert mended.recorded == kineto.read(text).recorded - 1
    assert kineto.Repair("damaged pieces of JSON dropped", 1) in mended.warnings


def test_a_cut_inside_arguments_is_noticed(make_kineto, small):
    # Lists of objects that begin as events do, in every event, longer than a chunk and shorter.
    document = json.loads(make_kineto.training(1).write())
    for number, event in enumerate(document["traceEvents"]):
        event["args"]["nested"] = [{"name": "x" * 20, "of": '},{"name":'}] * (1 + number % 7 * 10)
    text = json.dumps(document).encode()
    trace = kineto.read(text)
    assert trace.warnings == ()
    assert trace.recorded == len(document["traceEvents"])


@pytest.mark.parametrize("order", [0, 1])
def test_the_header_may_stand_before_or_behind(make_kineto, small, order):
    document = json.loads(make_kineto.training(1).write())
    devices = [{"name": f"GPU {number}", "ph": 1} for number in range(40)]  # they begin as events do
    parts = [("deviceProperties", devices), ("traceEvents", document["traceEvents"])]
    trace = kineto.read(json.dumps(dict(parts[:: 1 - 2 * order])).encode())
    assert trace.warnings == ()
    assert trace.recorded == len(document["traceEvents"])
    assert list(trace.device_properties) == devices


def test_memory_does_not_grow_with_what_is_left_out(make_kineto, monkeypatch):
    monkeypatch.setattr(reader, "_CHUNK", 1 << 17)
    monkeypatch.setattr(chrome_text, "_BLOCK", 1 << 17)
    made = make_kineto.training(1).write()
    frame = b'{"ph": "X", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2.5},\n'
    number = 200_000
    head, events = made.split(b"[\n", 1)
    packed = gzip.compress(head + b"[\n" + frame * number + events, compresslevel=1)
    inflated = number * len(frame)
    tracemalloc.start()
    try:
        trace = kineto.read(packed)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert trace.recorded == number + 33 + 19 + 21 + 3
    assert inflated > 20e6
    assert peak < inflated / 3


def test_text_without_an_event_ends_the_reading(make_kineto, small):
    text = make_kineto.training(1).write()
    filler = b'"' + b"x" * (1 << 21) + b'"'
    cut = text.index(b'{"ph": "X", "cat": "kernel"')
    trace = kineto.read(text[:cut] + filler + b", " + text[cut:])
    assert 0 < trace.recorded < kineto.read(text).recorded
    assert any("without an event" in repair.description for repair in trace.warnings)
    with pytest.raises(InputError, match="not a Chrome trace"):
        kineto.read(gzip.compress(b'{"x": ' + filler * 5))


def test_more_events_than_memory_are_refused(make_kineto, monkeypatch):
    monkeypatch.setattr(kineto, "_MOST", 50)
    with pytest.raises(InputError, match=r"more than 50 ops.*record fewer steps"):
        kineto.read(make_kineto.training(1).write())


# Archives


def archive(*files, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as packed:
        for name, data in files:
            packed.writestr(name, data)
    return file.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_archive_of_one_trace(tmp_path, make_kineto, method):
    text = make_kineto.training(1).write()
    others = [("folder/", b""), ("readme.txt", b"{}"), ("__MACOSX/._t.json", b"x")]
    expected = columns(kineto.read(text))
    for name, data in (("../../t.json", text), ("t.json.gz", gzip.compress(text))):
        path = tmp_path / "t.zip"
        path.write_bytes(archive((name, data), *others, method=method))
        assert columns(kineto.read(path)) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["t.zip"]  # nothing was unpacked
    assert columns(kineto.read(archive(("trace", text)))) == expected
    # A name ends at its first NUL: this one is empty.
    assert columns(kineto.read(archive(("nameless", text)).replace(b"nameless", b"\0ameless"))) == expected


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([], "with 0 traces"),
        ([("a.json", b"[]"), ("b.json", b"[]")], "with 2 traces"),
        ([("a.txt", b"[]"), ("b.txt", b"[]")], "with 2 traces"),
        ([("a.json", b"hello")], "not a Chrome trace"),
    ],
)
def test_archives_of_none_or_several_are_refused(files, reason):
    data = archive(*files)
    if not files:
        data = b"PK\x03\x04" + data
    with pytest.raises(InputError, match=reason if files else "zip archive"):
        kineto.read(data)


def test_unusual_and_damaged_archives(make_kineto):
    text = make_kineto.training(1).write()
    with pytest.raises(InputError, match="encrypted or packed in an unusual way; unpack it"):
        kineto.read(archive(("a.json", text), method=zipfile.ZIP_LZMA))
    packed = archive(("a.json", text))
    encrypted = bytearray(packed)
    encrypted[6] |= 1  # the flags before the file
    with pytest.raises(InputError, match="encrypted or packed in an unusual way; unpack it"):
        kineto.read(bytes(encrypted))
    middle = len(packed) // 2
    trace = kineto.read(packed[:middle] + bytes(100) + packed[middle + 100 :])
    assert 0 < trace.recorded < 76
    assert kineto.Repair("zip archives with a wrong checksum, their events perhaps damaged", 1) in trace.warnings
    cut = kineto.read(packed[:middle])
    assert 0 < cut.recorded < 76
    assert kineto.Repair("zip archives that are damaged, their first file read", 1) in cut.warnings
    with pytest.raises(InputError, match="damaged zip archive"):
        kineto.read(packed[:20])
    # The end says that the list of files begins 1000 bytes later than it does, and the file so many before the archive.
    displaced = packed[:-6] + (int.from_bytes(packed[-6:-2], "little") + 1000).to_bytes(4, "little") + packed[-2:]
    trace = kineto.read(displaced)
    assert trace.recorded == kineto.read(text).recorded
    assert kineto.Repair("zip archives that are damaged, their first file read", 1) in trace.warnings


def test_a_zip_bomb_is_refused():
    bomb = archive(("a.json", bytes(3_000_000)))
    assert len(bomb) < 10_000
    with pytest.raises(InputError, match="larger than"):
        kineto.read(bomb, max_bytes=1_000_000)


@pytest.mark.parametrize("size", [50_000, 10**9])
def test_a_gzip_bomb_is_refused(size):
    bomb = gzip.compress(bytes(2_000_000))
    with pytest.raises(InputError, match=r"larger than .* record fewer steps"):
        kineto.read(bomb if size < 10**9 else bomb * 1000, max_bytes=1_000_000)


def test_a_long_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "long.json"
    path.write_bytes(b" " * 2000)
    with pytest.raises(InputError, match="larger than"):
        kineto.read(path, max_bytes=1000)


def test_a_path_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.json: No such file"):
        kineto.read(tmp_path / "nowhere.json")
    with pytest.raises(InputError, match="cannot read"):
        kineto.read(tmp_path)


def test_a_path_and_its_gzip_read_alike(tmp_path, make_kineto):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(make_kineto.FILE.read_bytes()))
    plain, packed = kineto.read(make_kineto.FILE), kineto.read(path)
    assert packed.names == plain.names
    assert list(packed.device.args) == list(plain.device.args)


def test_two_times_far_apart_keep_one():
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": ts, "dur": 1} for ts in (0, 10**14)]
    trace = kineto.read(json.dumps({"traceEvents": events}).encode())
    assert len(trace.ops) == 1
    assert len(trace.warnings) == 1


# Real traces


def test_busy_time_agrees_with_another_tool(recorded):
    with recorded("expected/h100_bert_small_gpu_timeline.csv").open() as file:
        expected = {row["type"]: float(row["time ms"]) for row in csv.DictReader(file)}
    device = kineto.read(recorded("h100_bert_small_infer.json.gz")).device
    assert intervals.length(device.start, device.end) * 1e-6 == pytest.approx(expected["busy_time"], abs=1e-6)
    total = (device.end.max() - device.start.min()) * 1e-6
    assert total == pytest.approx(expected["total_time"], abs=1e-5)


@pytest.mark.parametrize(
    ("name", "events", "device"),
    [
        ("h100_bert_small_infer.json.gz", 2551, 61),
        ("h100_qwen_0.5b_infer.json.gz", 18221, 1707),
        ("mi300x_vllm_decode_graph.json.gz", 1993, 434),
        ("b200_eager.json.gz", 24656, 929),
        ("a100_recsys_train.json.gz", 109123, 9450),
        ("v100_recsys_train.json.gz", 105167, 15632),
    ],
)
def test_recorded_traces_are_read_whole(recorded, name, events, device):
    trace = kineto.read(recorded(name))
    assert trace.warnings == ()
    assert (trace.recorded, len(trace.device)) == (events, device)


def test_parents_on_a_real_trace_contain_their_children(recorded):
    ops = kineto.read(recorded("h100_qwen_0.5b_infer.json.gz")).ops
    parent = nesting.parents(ops.thread, ops.start, ops.end, ops.order)
    child = np.flatnonzero(parent >= 0)
    assert len(child) > 1000
    assert (ops.start[parent[child]] <= ops.start[child]).all()
    assert (ops.end[parent[child]] >= ops.end[child]).all()


def test_names_are_searched_once_each_and_no_others_than_those_of_the_events(make_kineto):
    """Of 60 kernels with names of their own no name is searched for what launches are."""
    made = make_kineto.Trace()
    made.op("aten::relu", 0, 900, ([4], "float", [1]))
    for number in range(60):
        made.launch(f"kernel_{number}", 10 * number, 10 * number + 5, 10 * number + 9)
    trace = kineto.read(made.write())
    searched = []

    class Pattern:
        def search(self, name):
            searched.append(name)
            return re.search("Launch", name)

    assert trace.matches(Pattern(), trace.launches.name).tolist() == [True] * 60
    assert searched == ["cudaLaunchKernel"]
    assert trace.matches(Pattern(), trace.device.name).tolist() == [False] * 60
    assert len(searched) == 1 + 60
    assert trace.matches(Pattern(), trace.device.name[:0]).tolist() == []
