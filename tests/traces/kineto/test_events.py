"""Columns of events, and arguments that are decoded when asked for."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from roofline.traces.kineto import reader
from roofline.traces.kineto.events import Arguments, decoded

# Three texts in two buffers, as chunks leave them.
TEXTS = [b'{"a": 1}', b"[2]", b'{"a": 18446744073709551616}']
BUFFERS = (b"[" + TEXTS[0] + b"," + TEXTS[1] + b"]", b"[" + TEXTS[2] + b"]")


class A(msgspec.Struct):
    a: int = 0


@pytest.fixture
def arguments():
    begin = [1, 1 + len(TEXTS[0]) + 1, len(BUFFERS[0]) + 1]
    return Arguments(BUFFERS, np.array(begin), np.array([len(text) for text in TEXTS]))


def test_texts_are_found_in_their_buffers(arguments):
    assert list(arguments) == TEXTS
    assert [arguments[row] for row in (0, 1, 2, -1)] == [*TEXTS, TEXTS[-1]]
    assert list(arguments[1:]) == TEXTS[1:]
    assert len(arguments) == 3
    with pytest.raises(IndexError):
        arguments[3]


def test_choosing_rows_keeps_their_order(arguments):
    chosen = arguments.select(np.array([2, 0, 2]))
    assert list(chosen) == [TEXTS[2], TEXTS[0], TEXTS[2]]
    assert list(chosen.select(np.array([1]))) == [TEXTS[0]]


def test_what_does_not_fit_is_none_and_the_others_stay():
    assert decoded([b'{"a": 3}', b"{}"], A) == [A(3), A(0)]
    assert decoded([b'{"a": 3}', b"[1]", b'{"a": "x"}', b"\xff"], A) == [A(3), None, None, None]
    # Two values in one text do not shift the others.
    assert decoded([b'{"a": 1}, {"a": 2}', b'{"a": 3}'], A) == [None, A(3)]
    assert decoded([], A) == []


def test_rows_of_a_trace_decode_together(make_kineto):
    class Copy(msgspec.Struct):
        bytes: int = -1

    device = reader.read(make_kineto.training(1).write()).device
    copies = np.flatnonzero(device.kind == reader.MEMCPY)
    assert [copy.bytes for copy in device.decoded(copies, Copy)] == [32 * 256 * 4, 4]
    listed = device.select(copies)
    assert [copy.bytes for copy in listed.select(np.array([1, 0])).decoded(np.array([0, 1]), Copy)] == [4, 32768]


def test_arguments_that_are_no_object_are_empty(make_kineto):
    for name in ("args a list", "args null", "args text", "deep args"):
        data = dict(make_kineto.damaged(make_kineto.training(1).write()))[name]
        trace = reader.read(data)
        for events in (trace.device, trace.launches):
            assert all(isinstance(events.arguments(row), dict) for row in range(len(events)))
