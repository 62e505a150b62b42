"""What a trace's header says before its events, without reading on."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc

import pytest

from roofline.errors import InputError
from roofline.traces.chrome import reader, text

HEADER = {"distributedInfo": {"rank": 3, "world_size": 8, "pg_config": [{"ranks": [0, 1]}]}, "record_shapes": 1}
TEXT = json.dumps(HEADER)[:-1].encode() + b', "traceEvents": [\n{"ph": "X", "cut off'


def test_the_fields_before_the_events():
    assert reader.head(TEXT) == HEADER
    assert reader.head(gzip.compress(TEXT)[:-9]) == HEADER  # broken off behind it


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"hello",
        b"[]",
        b'{"traceEvents": [], "distributedInfo": {"rank": 3}}',
        b'{"distributedInfo": {"rank": NaN}, "traceEvents": []}',
        b"x" * (9 << 20),
    ],
)
def test_nothing_where_there_are_none(text):
    assert reader.head(text) == {}


def test_no_more_than_the_beginning_is_read(tmp_path):
    # A megabyte of a gzip file that goes on with damage.
    text = json.dumps(HEADER)[:-1].encode() + b', "traceEvents": [' + b" " * (4 << 20)
    packed = gzip.compress(text)
    (tmp_path / "t.json.gz").write_bytes(packed[:-100] + bytes(100))
    assert reader.head(tmp_path / "t.json.gz") == HEADER
    with pytest.raises(InputError, match="cannot read"):
        reader.head(tmp_path / "absent.json")


def test_a_pipe_is_read_once_and_to_its_end():
    for data in (TEXT, gzip.compress(TEXT)):
        reading, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
        assert reader.head(f"/dev/fd/{reading}") == HEADER
        os.close(reading)


def test_of_many_gzip_members_no_more_is_held_than_of_one():
    """As tools write them that pack in blocks: what is left of a feed behind a member is 30 kB on average."""
    data = gzip.compress(b"", mtime=0) * 10_000 + gzip.compress(b'{"a": ') + gzip.compress(b"1}") + bytes(9)
    tracemalloc.start()
    try:
        told = b"".join(text.pieces(data, "a trace", 1 << 30, pytest.fail))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told == b'{"a": 1}'
    assert most < 10 << 20


@pytest.mark.parametrize("whole", [True, False])
def test_what_the_header_says_can_be_written(whole):
    """A lone surrogate, which JSON can escape and no encoding has, is a question mark, as in the names of events."""
    made = (
        b'{"deviceProperties": [{"name": "a\\ud800b\\ud83d\\ude00"}], "traceEvents": [\n{"ph": "X", "ts": 1, "dur": 1}'
    )
    read = reader.Reader(made + (b"]}" if whole else b""), "a trace", 1 << 20, {})
    assert list(read.chunks())
    assert read.header["deviceProperties"] == [{"name": "a?b\U0001f600"}]
