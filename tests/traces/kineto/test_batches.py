"""The batches of serving engines, from the names of their annotations."""

from __future__ import annotations

import pytest

from roofline.core.batch import Batch, Sequences
from roofline.traces.kineto import batches, reader

NOBODY = Sequences(0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("name", "prefill", "decode"),
    [
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk550sqsq32sqsk550)",
            NOBODY,
            Sequences(32, 32, 550, 32, 550),
        ),
        (
            "execute_9_context_2(sq6sk9sqsq20sqsk30)_generation_3(sq3sk60sqsq3sqsk60)",
            Sequences(2, 6, 9, 20, 30),
            Sequences(3, 3, 60, 3, 60),
        ),
        ("execute_context_2(6)_generation_3(3)", Sequences(2, 6), Sequences(3, 3)),
        ("execute_context_1(888_788544)_generation_0(0)", Sequences(1, 888), NOBODY),
        ("step[EXTEND bs=2 toks=6 c_sq=6 c_sqsq=20 c_sqsk=30 c_sk=9]", Sequences(2, 6, 9, 20, 30), NOBODY),
        ("step[EXTEND bs=2 toks=6]", Sequences(2, 6), NOBODY),
        ("step[DECODE bs=64]", NOBODY, Sequences(64, 64)),
        ("step[DECODE bs=2 g_sq=4 g_sqsq=8 g_sqsk=40 g_sk=20]", NOBODY, Sequences(2, 4, 20, 8, 40)),
        (
            "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]",
            Sequences(1, 5, 8, 25, 40),
            Sequences(1, 1, 12, 1, 12),
        ),
        ("prefill[bs=2 tok=6 ctx=[4, 2]]", Sequences(2, 6), NOBODY),
        ("decode[bs=3/4 tok=3 d=3 sqsq=3 sqsk=60 sk=60]", NOBODY, Sequences(3, 3, 60, 3, 60)),
        # Sums that cannot be are not believed: fewer keys than queries.
        ("step[DECODE bs=2 g_sq=4 g_sqsq=8 g_sqsk=40 g_sk=3]", NOBODY, Sequences(2, 4)),
    ],
)
def test_names_of_steps(name, prefill, decode):
    assert batches.batch(name) == Batch(prefill, decode)


@pytest.mark.parametrize(
    "name",
    [
        *("step", "step[MIXED bs=2]", "decode", "execute_context_x", "ProfilerStep#3"),
        f"step[DECODE bs={'9' * 300}]",  # longer than any batch
        f"execute_context_1({'9' * 300})_generation_0(0)",
        f"decode[bs=2 tok={'9' * 300}]",
    ],
)
def test_other_names_tell_no_batch(name):
    assert batches.batch(name) is None


def test_the_range_with_sums_goes_first(make_kineto):
    made = make_kineto.Trace()
    made.annotation("execute_1_context_1(sq4sk4sqsq16sqsk16)_generation_0(sq0sk0sqsq0sqsk0)", 0, 50)
    made.annotation("step[EXTEND bs=1 toks=4]", 10, 40)
    made.annotation("step[DECODE bs=1]", 60, 90)
    made.op("aten::relu", 20, 30, make_kineto.H)
    trace = reader.read(made.write())
    found = batches.Batches(trace)
    at = [found.at(int(time)) for time in (trace.annotations.start[0], trace.ops.start[0], trace.annotations.start[2])]
    told = Batch(Sequences(1, 4, 4, 16, 16), NOBODY)
    assert at == [told, told, Batch(NOBODY, Sequences(1, 1))]
    assert found.at(int(trace.annotations.end[1]) + 15_000) is None


def test_the_batch_at_a_time_among_many_ranges(make_kineto):
    made = make_kineto.Trace()
    made.annotation("step[EXTEND bs=1 toks=4]", 0, 5_000)
    for number in range(500):
        made.annotation(f"step[DECODE bs={1 + number % 7}]", 10 * number + 2, 10 * number + 6)
    trace = reader.read(made.write())
    found = batches.Batches(trace)
    begin = int(trace.annotations.start[0])
    at = [found.at(begin + 10_000 * number + 4_000) for number in range(500)]
    # Between two ranges the last one is near, and the one around both is the innermost.
    assert at == [found.near(begin + 10_000 * number + 8_000) for number in range(500)]
    assert [told.sequences for told in at] == [1 + number % 7 for number in range(500)]
    assert found.at(begin + 8_000) == Batch(Sequences(1, 4), NOBODY)
    # Edges belong to their range.
    assert [found.at(begin + edge).phase for edge in (1_999, 2_000, 6_000, 6_001)] == [
        *("prefill", "decode", "decode", "prefill")
    ]
